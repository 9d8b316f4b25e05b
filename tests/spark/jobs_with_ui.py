"""A program that asks for jobs at lines of its own; it prints what Spark's UI says of them.

As JSON: by action, the line of this file that asked for it; and the jobs.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pointstamp.spark
from tests.spark.with_ui import ask_until, session_with_ui


def by_id(scope: Any, records: Any) -> Any:
    return records.exchange("id")


def here() -> int:
    """The line that calls this."""
    return sys._getframe(1).f_lineno


def done(jobs: Any) -> bool:
    """Whether all have ended that do end."""
    running = [job["name"] for job in jobs if job["status"] == "RUNNING"]
    return bool(jobs) and not [name for name in running if not name.startswith("serve ")]


def main() -> None:
    with session_with_ui(4) as spark:
        numbers = spark.range(0, 1000, 1, 2)
        frame = pointstamp.spark.run(by_id, {"records": numbers}, "id long", workers=2)
        edges = spark.createDataFrame([(1, 2), (2, 3)], "src long, dst long")
        graph = pointstamp.spark.graph(edges, workers=2)
        asked = [
            ("collect", here(), frame.collect()),
            ("count", here(), frame.count()),
            ("toArrow", here(), frame.toArrow()),
            ("toPandas", here(), frame.toPandas()),
            ("first", here(), frame.first()),
            ("take", here(), frame.take(1)),
            ("isEmpty", here(), frame.isEmpty()),
            ("foreach", here(), frame.foreach(lambda row: None)),
        ]
        of_graph = [
            ("count", here(), graph.count("(a)-[]->(b); (b)-[]->(c)")),
            ("bfs", here(), graph.bfs("id = 1", "id = 3")),
            ("validate", here(), graph.validate()),
        ]
        with pointstamp.spark.serve(
            lambda scope, records: records,
            spark,
            inputs={"records": "id long"},
            outputs={"result": "id long"},
        ) as service:
            served = ("send", here(), service.input("records").send(numbers))
            service.input("records").advance_to(1)
            service.probe.wait(0, 60)
        # What is no DataFrame of ours is PySpark's again.
        plain = ("collect", here(), numbers.collect())
        jobs = ask_until(spark, "jobs", done)
        lines = [(name, line) for name, line, _ in (*asked, *of_graph, served, plain)]
        queries = [query["description"] for query in ask_until(spark, "sql?length=100", bool)]
        print(json.dumps({"asked": lines, "jobs": jobs, "queries": queries}))


if __name__ == "__main__":
    main()
