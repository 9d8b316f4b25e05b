"""A Spark job as an operator of a dataflow, on a real Spark session."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import AnalysisException

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import ContainerError, DataError, UsageError, WorkerError
from pointstamp.testing import collect

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

WORDS = [["b", "a", "b"], [], ["c", "a"]]
"""What is sent at epochs 0, 1, 2."""

COUNTS = [(0, ("a", 1)), (0, ("b", 2)), (2, ("a", 1)), (2, ("c", 1))]


def count(frame: Any) -> Any:
    return frame.groupBy("word").count()


def columns(word: str) -> Any:
    return pa.RecordBatch.from_pydict({"word": [word]})


def arrays(word: str) -> Any:
    return Arrays(word=np.array([word], "U"))


def rows(word: str) -> Any:
    return [(word,)]


def main(worker: Any, make: Any, job: Any, schema: Any = None) -> list[Any]:
    """What this worker sees of the job's answers to the words, which are dealt to the workers."""
    found: list[Any] = []

    def note(time: Any, batch: Any) -> None:
        assert isinstance(batch, pa.RecordBatch)
        found.extend((time, tuple(row.values())) for row in batch.to_pylist())

    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        probe = stream.spark(job, schema=schema).inspect_batch(note).probe()
    for epoch, words in enumerate(WORDS):
        for word in words[worker.index :: worker.peers]:
            input.send_batch(make(word))
        input.advance_to(epoch + 1)
        worker.step()
    input.close()
    worker.run()
    assert probe.done
    return found


@pytest.mark.parametrize(
    ("make", "schema", "workers"),
    [(columns, None, 1), (arrays, None, 2), (rows, "word string", 4)],
)
def test_each_time_is_a_frame_and_its_answer_comes_at_that_time(
    spark: Any, make: Any, schema: Any, workers: int
) -> None:
    parts = ps.execute(main, make, count, schema, workers=workers, threads=True)
    assert sorted(parts[0]) == COUNTS
    assert not any(parts[1:])  # all of it on worker 0
    assert spark.range(3).count() == 3  # the session was not ours to stop


def test_it_answers_inside_a_loop(spark: Any) -> None:
    def build(scope: Any) -> Any:
        start = scope.batches_to_stream([pa.RecordBatch.from_pydict({"n": pa.array([1, 5])})])
        with scope.iterative() as inner:
            loop, again = inner.feedback(1)
            doubled = start.enter(inner).concat(again).spark(lambda df: df.selectExpr("n * 2 as n"))
            small, large = doubled.branch(pc.field("n") > 6)
            loop.connect(small)
            return large.leave()

    assert collect(build) == [(0, (8,)), (0, (10,))]


def test_the_worker_goes_on_while_a_job_runs(spark: Any) -> None:
    go_on = threading.Event()

    def main(worker: Any) -> bool:
        def job(frame: Any) -> Any:
            assert go_on.wait(60)
            return frame

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.spark(job).probe()
        input.send_batch(columns("a"))
        input.advance_to(1)
        for _ in range(20):
            worker.step()
        assert probe.less_equal(0)
        go_on.set()
        worker.step_while(lambda: probe.less_equal(0))
        return probe.less_equal(1)

    assert ps.execute(main) == [True]


def test_a_job_that_fails_says_which_and_when(spark: Any) -> None:
    def fails_later(frame: Any) -> Any:
        return frame.selectExpr("if(word = 'c', raise_error('no c please'), word)")

    with pytest.raises(WorkerError, match="no c please") as caught:
        ps.execute(main, columns, fails_later, workers=2, threads=True)
    assert (caught.value.worker, caught.value.operator, caught.value.time) == (0, "Spark", 2)

    with pytest.raises(
        WorkerError, match=r"operator 'Spark' failed at time 0: .*nonsense"
    ) as caught:
        ps.execute(main, columns, lambda frame: frame.select("nonsense"))
    assert isinstance(caught.value.__cause__, AnalysisException)
    assert spark.range(3).count() == 3


def test_what_fails_a_job_is_said_once(spark: Any) -> None:
    def fails(frame: Any) -> Any:
        raise ArithmeticError("no luck")

    with pytest.raises(WorkerError) as caught:
        ps.execute(main, columns, fails)
    assert str(caught.value) == (
        "worker 0 failed: operator 'Spark' failed at time 0: its Spark job failed: "
        "ArithmeticError: no luck"
    )
    with pytest.raises(WorkerError) as caught:
        ps.execute(main, columns, lambda frame: frame.select("nonsense"))
    assert str(caught.value).count("AnalysisException") == 1


def test_rows_that_spark_would_change_fail_the_job(spark: Any) -> None:
    def numbered(word: str) -> Any:
        return [(word, len(word) if word == "b" else word)]

    with pytest.raises(WorkerError, match="column 'n', which is string, does not keep 1") as caught:
        ps.execute(main, numbered, count, "word string, n string")
    assert isinstance(caught.value.__cause__, DataError)


def test_a_function_that_gives_no_frame(spark: Any) -> None:
    with pytest.raises(WorkerError, match=r"gives a DataFrame; .* gave 2") as caught:
        ps.execute(main, columns, lambda frame: frame.where("word = 'b'").count())
    assert isinstance(caught.value.__cause__, UsageError)
    assert caught.value.operator == "Spark"


@pytest.mark.parametrize(
    ("make", "schema", "what"),
    [(rows, None, "rows need a schema"), (columns, "word string", "takes rows")],
)
def test_records_that_do_not_fit(spark: Any, make: Any, schema: Any, what: str) -> None:
    with pytest.raises(WorkerError, match=what) as caught:
        ps.execute(main, make, count, schema)
    assert isinstance(caught.value.__cause__, ContainerError)


def test_a_job_is_interrupted_when_its_worker_fails(spark: Any) -> None:
    """It would take an hour."""
    started = threading.Event()

    def never(batches: Any) -> Any:
        import time

        for batch in batches:
            time.sleep(3600)
            yield batch

    def slow(frame: Any) -> Any:
        started.set()
        return frame.mapInArrow(never, "word string")

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.batches_to_stream([columns("a")]).spark(slow)
        while not started.is_set():
            worker.step_or_park(0.05)
        raise ArithmeticError

    with pytest.raises(WorkerError, match="ArithmeticError"):
        ps.execute(main)
    assert spark.range(3).count() == 3
