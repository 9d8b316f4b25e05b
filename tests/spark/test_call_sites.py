"""The line of the program that asked for a job, which Spark's UI shows with it."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import pointstamp.spark
from pointstamp.errors import WorkerError
from pointstamp.spark.call_sites import LONG, SHORT, call_site, called_at
from tests.spark import jobs_with_ui

pytestmark = pytest.mark.spark
shared = pytest.mark.xdist_group("spark")
ROOT = Path(__file__).resolve().parents[2]
alone = pytest.mark.xdist_group("own spark")


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


@alone
def test_the_ui_shows_each_job_at_the_line_that_asked_for_it():
    program = jobs_with_ui.__file__
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.jobs_with_ui"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=360,
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    names = {job["name"] for job in found["jobs"]}
    known = {f"{action} at {program}:{line}" for action, line in found["asked"]}
    assert known <= names
    # No line of Spark's or ours is the place of any job; a service begins where it is served.
    assert {name.partition(f" at {program}:")[0] for name in names - known} == {"serve"}
    described = {job.get("description") for job in found["jobs"]}
    assert "pointstamp: by_id, 2 workers" in described
    assert "pointstamp: by_id, 2 workers" in found["queries"]


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
