"""Takes the pictures of docs/spark.md: Spark's UI with a job of ours, in headless Chromium.

    python -m docs.picture_spark_ui [FOLDER]      writes them here, or there

What they show is the program below, which is called `report.py` in them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.observability.browser import Browser
from tests.spark.with_ui import ask_until, session_with_ui

DOCS = Path(__file__).resolve().parent

PROGRAM = """\
import pointstamp.spark
from pointstamp.graph import motifs


def triangles(scope, edges):
    return motifs(edges, "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)")


edges = spark.range(50_000).selectExpr("hash(id) % 1000 as src", "hash(-id) % 1000 as dst")
schema = "a int, b int, c int"
found = pointstamp.spark.run(triangles, {"edges": edges}, schema, workers=2)
found.toArrow()
pointstamp.spark.graph(edges, workers=2).page_rank(max_iter=20).collect()
"""


OF_THE_WORKERS = """(() => {
const nodes = [...document.querySelectorAll("#plan-viz-graph g.node")];
const steps = nodes.filter(each => each.textContent === "MapInArrow");
return steps.length === 3 && (steps[1].id = "workers"); })()"""
"""Gives the node of the workers an id; there are three of that kind, of which it is the second."""


def have_ended(queries: Any) -> bool:
    """Whether both have."""
    return len(queries) > 1 and not any(query["runningJobIds"] for query in queries)


def main() -> None:
    """Run the program, and take the pictures while its session is there."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    with tempfile.TemporaryDirectory() as profile, session_with_ui(4) as spark:
        exec(compile(PROGRAM, "report.py", "exec"), {"spark": spark})
        first = min(query["id"] for query in ask_until(spark, "sql", have_ended))
        with Browser(Path(profile), 1250, 1000) as browser:
            browser.open(f"{spark.sparkContext.uiWebUrl}/jobs/")
            browser.wait("!!document.querySelector('#completedJob-table tbody tr')")
            browser.picture(folder / "spark_jobs.png", "#completedJob-table")
            browser.open(f"{spark.sparkContext.uiWebUrl}/SQL/execution/?id={first}")
            browser.wait("!!document.querySelector('#sql-execution-table tbody tr')")
            browser.wait(f"!!document.querySelector('#plan-viz-graph g.node') && {OF_THE_WORKERS}")
            browser.click("#workers")
            browser.wait("!!document.querySelector('.tooltip.show')")
            browser.wait("document.querySelector('#plan-viz-details-body').textContent")
            browser.picture(folder / "spark_plan.png", "#sql-execution-table", "#plan-viz-content")


if __name__ == "__main__":
    main()
