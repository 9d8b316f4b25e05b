"""What happens to records on which an operator's code fails: raised, routed, dropped."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.dataflow.error_policy import Unpicklable
from pointstamp.errors import (
    BuildError,
    CarriedError,
    ColumnError,
    ContainerError,
    KeyHashError,
    OperatorError,
    WorkerError,
)

NUMBERS = list(range(20))
GOOD = [x for x in NUMBERS if x % 5]
BAD = [0, 5, 10, 15]


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def rows(scope: Any) -> Any:
    """0 to 19 as rows, spread over the workers."""
    return scope.to_stream(NUMBERS[scope.index :: scope.peers])


def columns(scope: Any) -> Any:
    """0 to 19 as a column `x`, in batches of 3."""
    mine = NUMBERS[scope.index :: scope.peers]
    batch = pa.RecordBatch.from_pydict({"x": pa.array(mine, pa.int64())})
    return scope.batches_to_stream(batch.slice(i, 3) for i in range(0, len(mine), 3))


def arrays(scope: Any) -> Any:
    """The same as NumPy columns."""
    return scope.batches_to_stream(
        [Arrays(x=np.array(NUMBERS[scope.index :: scope.peers], dtype=np.int64))]
    )


def plain(record: Any) -> Any:
    return record[0] if isinstance(record, tuple) else record


def refuses(record: Any) -> Any:
    """Fails on multiples of 5, in rows or in columns."""
    if plain(record) % 5 == 0:
        raise ValueError(f"{plain(record)} is refused")
    return plain(record)


def outcome(
    build: Callable[[Any], Any], workers: int
) -> tuple[list[Any], list[ps.Failed[Any]], int]:
    """(records, failures, number of records dropped) of all workers."""

    def main(worker: ps.Worker) -> tuple[list[Any], list[Any], int]:
        good: list[Any] = []
        bad: list[Any] = []
        with worker.dataflow() as scope:
            streams = build(scope)
            *results, failed = streams if isinstance(streams, tuple) else (streams, None)
            for result in results:
                result.inspect(lambda x: good.append(plain(x)))
            if failed is not None:
                failed.inspect(bad.append)
        worker.run()
        return good, bad, sum(worker.dropped.values())

    parts = ps.execute(main, workers=workers, threads=True)
    goods, bads, counts = zip(*parts, strict=True)
    return sorted(chain.from_iterable(goods)), list(chain.from_iterable(bads)), sum(counts)


BY_RECORD: dict[str, Callable[[Any, Any], Any]] = {
    "Map": lambda stream, on_error: stream.map(refuses, on_error=on_error),
    "FlatMap": lambda stream, on_error: stream.flat_map(
        lambda x: (refuses(x) for _ in range(1)), on_error=on_error
    ),
    "Filter": lambda stream, on_error: stream.filter(
        lambda x: refuses(x) is not None, on_error=on_error
    ),
}


@pytest.mark.parametrize("operator", BY_RECORD)
def test_route_sends_what_fails_with_its_error_on_a_second_stream(
    operator: str, workers: int
) -> None:
    good, bad, dropped = outcome(lambda s: BY_RECORD[operator](rows(s), "route"), workers)
    assert good == GOOD
    assert sorted(failed.record for failed in bad) == BAD
    assert {failed.operator for failed in bad} == {operator}
    assert all(str(failed.error) == f"{failed.record} is refused" for failed in bad)
    assert dropped == 0


@pytest.mark.parametrize("operator", BY_RECORD)
def test_drop_leaves_out_what_fails_and_counts_it(operator: str, workers: int) -> None:
    good, _, dropped = outcome(lambda s: BY_RECORD[operator](rows(s), "drop"), workers)
    assert good == GOOD
    assert dropped == 4


@pytest.mark.parametrize("operator", BY_RECORD)
def test_raise_is_the_default_and_stops_everything(operator: str) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            BY_RECORD[operator](rows(scope), "raise")
        worker.run()

    with pytest.raises(WorkerError, match="0 is refused") as caught:
        ps.execute(main)
    assert (caught.value.operator, caught.value.time) == (operator, 0)


def test_failures_are_sent_at_the_time_of_their_record() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            _, failed = stream.map(refuses, on_error="route")
            failed.inspect_batch(lambda time, batch: out.extend((time, f.record) for f in batch))
        for record in (5, 6, 10):
            input.send(record)
            input.advance_to(record)
        return out

    assert ps.execute(main) == [[(0, 5), (6, 10)]]


def doubled(batch: Any) -> Any:
    """Fails on a batch with 19 in it."""
    kind = ps.containers.kind_of(batch)
    if any(plain(record) == 19 for record in kind.records(batch)):
        raise ValueError("19 is refused")
    return kind.concat([batch, batch])


@pytest.mark.parametrize("make", [rows, columns, arrays])
def test_map_batches_fails_for_the_whole_batch(make: Any, workers: int) -> None:
    good, bad, _ = outcome(lambda s: make(s).map_batches(doubled, on_error="route"), workers)
    (failed,) = bad
    kind = ps.containers.kind_of(failed.record)
    lost = [plain(record) for record in kind.records(failed.record)]
    assert 19 in lost
    assert sorted(good + 2 * lost) == sorted(2 * NUMBERS)
    good, _, dropped = outcome(lambda s: make(s).map_batches(doubled, on_error="drop"), workers)
    assert (dropped, len(good)) == (len(lost), 2 * (20 - len(lost)))


def test_an_expression_fails_for_the_whole_batch(workers: int) -> None:
    """A division by zero: in the batches of the workers that have a 10."""
    expression = pc.divide(pc.scalar(100), pc.field("x") - 10) > 0
    holders = [{*b} for w in range(workers) for b in _batches_of(w, workers)]
    lost = [x for batch in holders if 10 in batch for x in batch]
    kept = sorted(x for x in NUMBERS if x not in lost and x > 10 and 100 // (x - 10) > 0)

    good, bad, _ = outcome(lambda s: columns(s).filter(expression, on_error="route"), workers)
    assert good == kept
    assert [sorted(f.record["x"].to_pylist()) for f in bad] == [sorted(lost)]
    good, _, dropped = outcome(lambda s: columns(s).filter(expression, on_error="drop"), workers)
    assert (good, dropped) == (kept, len(lost))


def _batches_of(worker: int, workers: int) -> list[list[int]]:
    mine = NUMBERS[worker::workers]
    return [mine[i : i + 3] for i in range(0, len(mine), 3)]


def test_a_missing_column_is_an_error_of_the_batch() -> None:
    good, bad, _ = outcome(
        lambda s: columns(s).filter(pc.field("nowhere") > 0, on_error="route"), 1
    )
    assert good == []
    assert all(isinstance(failed.error, ColumnError) for failed in bad)
    assert sum(len(failed.record) for failed in bad) == 20


def test_keys_that_cannot_be_hashed_are_routed(workers: int) -> None:
    def build(scope: Any) -> Any:
        mixed = [1, object(), "a"] if scope.index == 0 else []
        good, failed = scope.to_stream(mixed).aggregate(
            lambda key, record, n: n + 1, key=lambda x: x, default=0, on_error="route"
        )
        return good.map(lambda pair: str(pair[0])), failed

    good, bad, _ = outcome(build, workers)
    assert good == ["1", "a"]
    (failed,) = bad
    assert isinstance(failed.error, KeyHashError)


def test_a_key_of_columns_fails_for_the_batch(workers: int) -> None:
    good, bad, _ = outcome(
        lambda s: columns(s).aggregate([("x", "sum")], key="nowhere", on_error="route"), workers
    )
    assert good == []
    assert sum(len(failed.record) for failed in bad) == 20


def test_the_wrong_kind_of_stream_is_never_routed() -> None:
    for build in (
        lambda s: columns(s).map(refuses, on_error="route"),
        lambda s: rows(s).filter(pc.field("x") > 0, on_error="drop"),
        lambda s: rows(s).aggregate([("x", "sum")], key="x", on_error="drop"),
    ):
        with pytest.raises(WorkerError) as caught:
            outcome(build, 1)
        assert isinstance(caught.value.__cause__, ContainerError | ColumnError)


def test_a_result_that_is_no_batch_is_never_routed() -> None:
    with pytest.raises(WorkerError, match="make it a list of records"):
        outcome(lambda s: rows(s).map_batches(set, on_error="route"), 1)


@pytest.mark.parametrize("on_error", ["route", "drop"])
@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt])
def test_interruptions_stop_the_worker(on_error: Any, stop: Any) -> None:
    def refuse(record: Any) -> Any:
        raise stop

    with pytest.raises((WorkerError, KeyboardInterrupt)) as caught:
        outcome(lambda s: rows(s).map(refuse, on_error=on_error), 1)
    assert isinstance(caught.value, KeyboardInterrupt) or "sys.exit" in str(caught.value)


def test_a_record_gives_all_of_its_results_or_none() -> None:
    def some(x: int) -> Any:
        yield x
        yield refuses(x)

    good, _, _ = outcome(lambda s: rows(s).flat_map(some, on_error="drop"), 1)
    assert good == sorted(2 * GOOD)


def test_another_word_is_refused_when_the_dataflow_is_built() -> None:
    with pytest.raises(WorkerError, match="'raise', 'route' and 'drop', not 'ignore'"):
        outcome(lambda s: rows(s).map(refuses, on_error="ignore"), 1)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("exchange", [refuses]),
        ("distribute", [lambda time, batch: 0]),
        ("inspect", [refuses]),
        ("inspect_batch", [print]),
        ("branch", [refuses]),
        ("partition", [2, refuses]),
        ("branch_when", [refuses]),
        ("ok_err", [refuses]),
        ("delay", [refuses]),
        ("delay_total", [refuses]),
        ("delay_batch", [refuses]),
    ],
)
def test_only_what_maps_or_folds_has_a_policy(method: str, arguments: list[Any]) -> None:
    """Elsewhere one writes a map before it."""
    with pytest.raises(WorkerError, match="unexpected keyword argument 'on_error'"):
        outcome(lambda s: getattr(rows(s), method)(*arguments, on_error="drop"), 1)


@pytest.mark.parametrize("method", ["filter", "inspect", "inspect_batch", "branch"])
def test_code_that_is_never_awaited_is_refused(method: str) -> None:
    async def always(*args: Any) -> bool:
        return True

    with pytest.raises(WorkerError, match="is an async def") as caught:
        outcome(lambda s: getattr(rows(s), method)(always), 1)
    assert isinstance(caught.value.__cause__, BuildError)


class PickyError(Exception):
    """Pickles, and cannot be unpickled: its arguments are others than those it was made of."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")


@pytest.mark.once
def test_failures_reach_other_workers_whatever_they_carry() -> None:
    """Over processes everything is pickled: the error, and the record."""

    def main(worker: ps.Worker) -> list[Any]:
        found: list[Any] = []

        def refuse(record: Any) -> Any:
            raise (PickyError("here", "picky") if callable(record) else ValueError("plain"))

        with worker.dataflow() as scope:
            locks = [1, threading.Lock().acquire] if worker.index == 0 else []
            _, failed = scope.to_stream(locks).map(refuse, on_error="route")
            failed.exchange(lambda f: 0).inspect(found.append).exchange(lambda f: 1)
            failed.broadcast().inspect(found.append)
        worker.run()
        return [(type(f.record).__name__, type(f.error).__name__, str(f.error)) for f in found]

    for found in ps.execute(main, workers=2):
        assert {("int", "ValueError", "plain")} <= {*found}
    theirs = next(f for f in ps.execute(main, workers=2)[1] if f[0] != "int")
    assert theirs == ("Unpicklable", "CarriedError", "PickyError: here: picky")


def test_what_cannot_be_pickled_is_replaced_by_its_text() -> None:
    lock = threading.Lock()
    failed = ps.Failed(lock, "Map", PickyError("a", "b"))
    failed.error.add_note("raised somewhere")
    carried = pickle.loads(pickle.dumps(failed))
    assert carried.record == Unpicklable("lock", repr(lock))
    assert isinstance(carried.error, CarriedError)
    assert str(carried.error) == "PickyError: a: b"
    assert carried.error.__notes__ == ["raised somewhere"]
    assert carried.operator == "Map"


class Silent:
    """Says nothing of itself, and stays where it is."""

    def __repr__(self) -> str:
        raise ValueError("no")

    def __reduce__(self) -> Any:
        raise TypeError("no")


def test_even_without_a_text_it_travels() -> None:
    carried = pickle.loads(pickle.dumps(ps.Failed(Silent(), "Map", ValueError())))
    assert carried.record.type == "Silent"


def test_a_routed_error_says_where_it_was_raised_and_keeps_no_frames() -> None:
    """Frames keep what was in them alive: whoever collects errors would hold back time."""

    class Anchor:
        pass

    anchors: list[weakref.ref[Anchor]] = []

    def refuse(record: Any) -> Any:
        anchor = Anchor()
        anchors.append(weakref.ref(anchor))
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ExceptionGroup("both", [error, ValueError("second")]) from error

    _, bad, _ = outcome(lambda s: s.to_stream([1]).map(refuse, on_error="route"), 1)
    gc.collect()
    assert [ref() for ref in anchors] == [None]
    (failed,) = bad
    assert failed.error.__traceback__ is None
    (note,) = failed.error.__notes__
    assert note.startswith(f"raised at {__file__}:")
    assert note.endswith("in refuse")
    assert isinstance(failed.error.__cause__, KeyError)


def test_an_error_that_is_raised_again_and_again_is_noted_once() -> None:
    error = ValueError("always the same")

    def refuse(record: Any) -> Any:
        raise error

    _, bad, _ = outcome(lambda s: rows(s).map(refuse, on_error="route"), 1)
    assert len(bad) == 20
    assert len(error.__notes__) == 1


def test_the_default_is_the_plain_operator() -> None:
    """So it costs what it did: no look at each record's errors."""

    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            stream = scope.to_stream([1])
            plain, routed = stream.map(str), stream.map(str, on_error="drop")
            return [scope._children[s.source[0]]._logic for s in (plain, routed)]

    if ps.build_info() != "compiled":
        logics = ps.execute(main)[0]
        assert [type(logic).__name__ for logic in logics] == ["_EachRecord", "_TryTransform"]


def test_whoever_watches_hears_of_what_is_dropped() -> None:
    heard: list[tuple[str, int]] = []

    def main(worker: ps.Worker) -> dict[str, int]:
        worker.environment.observers.append(lambda what, n: heard.append((what, n)))
        with worker.dataflow() as scope:
            rows(scope).map(refuses, on_error="drop")
        worker.run()
        return worker.dropped

    assert ps.execute(main) == [{"Map": 4}]
    assert heard == 4 * [("dropped", 1)]


def test_an_error_inside_of_a_dropped_record_does_not_reach_the_caller(workers: int) -> None:
    """A simulation of several workers gives the same as threads do."""

    def main(worker: ps.Worker) -> int:
        out: list[int] = []
        with worker.dataflow() as scope:
            good, failed = rows(scope).exchange().map(refuses, on_error="route")
            good.concat(failed.map(lambda f: f.record)).inspect(out.append)
        worker.run()
        return sum(out)

    assert sum(ps.simulate(main, workers=workers, seed=3)) == sum(NUMBERS)


def test_operator_errors_keep_their_words() -> None:
    """A routed operator is asked for its error as any other."""
    with pytest.raises(WorkerError, match=r"operator 'Map' failed at time 0: ValueError") as caught:
        outcome(lambda s: rows(s).map(refuses), 1)
    assert not isinstance(caught.value.__cause__, OperatorError)
