"""The line of the program that asked for a job, which Spark's UI shows with it."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pytest

import pointstamp.spark
from pointstamp.errors import WorkerError
from pointstamp.spark.call_sites import LONG, SHORT, call_site, called_at

pytestmark = pytest.mark.spark
shared = pytest.mark.xdist_group("spark")
PATIENCE_S = 120.0


def seen_by_task(scope, records):
    """What a task of the job knows of where it was asked for."""

    def seen(batch):
        from pyspark import TaskContext

        return pa.RecordBatch.from_pydict({"said": [TaskContext.get().getLocalProperty(SHORT)]})

    return records.map_batches(seen)


def seen_by_plain_task(batches):
    from pyspark import TaskContext

    for _ in batches:
        said = TaskContext.get().getLocalProperty(SHORT)
        yield pa.RecordBatch.from_pydict({"said": [said]})


def seen(spark):
    inputs = {"records": spark.range(0, 100, 1, 2)}
    return pointstamp.spark.run(seen_by_task, inputs, "said string", workers=2)


def here():
    """The line that calls this."""
    return sys._getframe(1).f_lineno


def by_id(scope, records):
    return records.exchange("id")


@dataclass(frozen=True)
class ShownJob:
    """What Spark's UI shows of a job."""

    id: int
    name: str
    description: str | None
    is_running: bool


def each(found):
    """The elements of a sequence of Scala."""
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def shown_jobs(spark, after=-1):
    """Those with a higher number: the UI has them from here, where they are without it as well."""
    return [
        ShownJob(
            job.jobId(),
            job.name(),
            job.description().get() if job.description().isDefined() else None,
            job.status().toString() == "RUNNING",
        )
        for job in each(spark.sparkContext._jsc.sc().statusStore().jobsList(None))
        if job.jobId() > after
    ]


def ask_for_jobs(spark, folder):
    """Have jobs of all kinds; by action, the line that asked for it."""
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
        ("parquet", here(), frame.write.parquet(f"{folder}/parquet")),
        ("save", here(), frame.write.format("csv").save(f"{folder}/csv")),
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
        asked.append(("send", here(), service.input("records").send(numbers)))
        service.input("records").advance_to(1)
        service.probe.wait(0, 60)
    # What is no DataFrame of ours is PySpark's again.
    asked.append(("collect", here(), numbers.collect()))
    return [(action, line) for action, line, _ in asked]


@shared
def test_the_ui_shows_each_job_at_the_line_that_asked_for_it(spark, tmp_path):
    before = max((job.id for job in shown_jobs(spark)), default=-1)
    known = {f"{action} at {__file__}:{line}" for action, line in ask_for_jobs(spark, tmp_path)}
    until = time.monotonic() + PATIENCE_S
    # It learns of what happens a little later.
    while not (jobs := shown_jobs(spark, before)) or any(job.is_running for job in jobs):
        assert time.monotonic() < until, jobs
        time.sleep(0.05)
    names = {job.name for job in jobs}
    assert known <= names
    # No line of Spark's or ours is the place of any job; a service begins where it is served.
    assert {name.partition(f" at {__file__}:")[0] for name in names - known} == {"serve"}
    assert "pointstamp: by_id, 2 workers" in {job.description for job in jobs}
    queries = each(spark._jsparkSession.sharedState().statusStore().executionsList())
    assert "pointstamp: by_id, 2 workers" in {query.description() for query in queries}


@shared
def test_the_thread_is_as_before_when_the_action_is_over(spark):
    here = f"{__file__}:"
    context = spark.sparkContext
    assert {row.said.partition(here)[0] for row in seen(spark).collect()} == {"collect at "}
    assert context.getLocalProperty(SHORT) is context.getLocalProperty(LONG) is None
    plain = spark.range(3).mapInArrow(seen_by_plain_task, "said string")
    assert {row.said.partition(here)[0] for row in plain.collect()} == {"collect at "}
    context.setLocalProperty(SHORT, "mine")
    try:
        seen(spark).collect()
        assert context.getLocalProperty(SHORT) == "mine"
    finally:
        context.setLocalProperty(SHORT, None)


@shared
def test_the_outer_of_two_calls_is_the_place(spark):
    with called_at(spark, call_site("outer")):
        found = seen(spark).toArrow()
    assert {said.partition(" at ")[0] for said in found["said"].to_pylist()} == {"outer"}


@shared
def test_an_action_that_fails_leaves_nothing_set(spark):
    def fails(scope, records):
        return records.map_batches(lambda batch: 1 / 0)

    inputs = {"records": spark.range(0, 10, 1, 2)}
    frame = pointstamp.spark.run(fails, inputs, "id long", workers=2)
    with pytest.raises(WorkerError):
        frame.collect()
    assert spark.sparkContext.getLocalProperty(SHORT) is None
    assert {row.said.partition(" at ")[0] for row in seen(spark).collect()} == {"collect"}


@shared
def test_threads_have_places_of_their_own(spark):
    def first():
        return seen(spark).collect()

    def second():
        return seen(spark).collect()

    with ThreadPoolExecutor(2) as pool:
        found = [each.result() for each in [pool.submit(first), pool.submit(second)]]
    places = [{row.said for row in rows} for rows in found]
    for place, function in zip(places, (first, second), strict=True):
        assert place == {f"collect at {__file__}:{function.__code__.co_firstlineno + 1}"}


def inner():
    return call_site("collect")


def test_a_call_site_has_the_lines_of_the_callers():
    site = inner()
    line = inner.__code__.co_firstlineno + 1
    assert site.short == f"collect at {__file__}:{line}"
    first, second, *_ = site.long.splitlines()
    assert first == f"{__file__}:{line} in inner"
    assert second.endswith(" in test_a_call_site_has_the_lines_of_the_callers")
