"""`pointstamp.spark.run` whose workers are the tasks that read its input."""

from __future__ import annotations

import pytest

import pointstamp.spark
from pointstamp.errors import SparkSetupError, UsageError
from tests.spark.flows import COUNTS, by_id, count_all, failure_of, same

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_fused_run_has_the_tasks_that_read_as_its_workers(spark, workers):
    records = spark.range(0, 10_000, 1, workers)
    result = pointstamp.spark.run(by_id, {"records": records}, "id long", fused=True)
    assert sorted(result.toArrow()["id"].to_pylist()) == list(range(10_000))
    counts = pointstamp.spark.run(count_all, {"records": records}, COUNTS, workers, fused=True)
    assert sorted((row.worker, row.peers) for row in counts.collect()) == [
        (worker, workers) for worker in range(workers)
    ]


def test_a_fused_run_goes_on_behind_a_shuffle_and_into_one(spark):
    records = spark.range(0, 100, 1, 5).repartition(2, "id")
    result = pointstamp.spark.run(by_id, {"records": records}, "id long", fused=True)
    assert result.groupBy("id").count().count() == 100
    assert result.limit(7).count() == 7  # each task takes some, and then all of them do


@pytest.mark.parametrize("part", ["a union", "some of the result"])
def test_a_fused_run_that_cannot_be_a_barrier_stage_is_refused_by_spark(spark, part):
    records = spark.range(0, 100, 1, 2)
    if part == "a union":
        records = records.union(records)
    result = pointstamp.spark.run(by_id, {"records": records}, "id long", fused=True)
    with pytest.raises(Exception, match="Barrier execution mode does not allow"):
        result.collect() if part == "a union" else result.take(5)


def test_what_cannot_be_fused_is_said_before_anything_starts(spark):
    records = spark.range(0, 100, 1, 2)
    with pytest.raises(UsageError, match=r"a fused run reads one DataFrame, .* and not 2"):
        pointstamp.spark.run(same, {"a": records, "b": records}, "id long", fused=True)
    with pytest.raises(UsageError, match=r"'records' has no partitions, as it is empty"):
        pointstamp.spark.run(same, {"records": spark.range(0)}, "id long", fused=True)
    with pytest.raises(UsageError, match=r"'records' has 2 partitions, .* 3 were asked for"):
        pointstamp.spark.run(same, {"records": records}, "id long", 3, fused=True)
    with pytest.raises(SparkSetupError, match="5 workers need 5 slots"):
        pointstamp.spark.run(same, {"records": spark.range(0, 9, 1, 5)}, "id long", fused=True)


def test_what_a_fused_operator_raises_is_in_the_message(spark):
    def fails(scope, records):
        def check(batch):
            raise ValueError("never mind")

        return records.map_batches(check)

    records = spark.range(0, 100, 1, 2)
    result = pointstamp.spark.run(fails, {"records": records}, "id long", fused=True)
    assert "ValueError: never mind" in failure_of(result)
