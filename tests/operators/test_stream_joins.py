"""Joins of two streams against nested loops: per time, and with retained state."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import BuildError, ColumnError, SchemaError, TimestampError, WorkerError
from pointstamp.testing import collect
from tests.simulation.moments import EventProcessing, Moment

Side = list[tuple[Any, int, int]]
"""(time, key, value) of each record."""
Pairs = list[tuple[Any, int, int, int]]
"""(time, key, left value, right value) of each pair."""


def as_rows(records: Side, name: str) -> Any:
    return [(key, value) for _, key, value in records]


def as_columns(records: Side, name: str) -> Any:
    keys, values = ([r[i] for r in records] for i in (1, 2))
    return pa.RecordBatch.from_pydict(
        {"key": pa.array(keys, pa.int64()), name: pa.array(values, pa.int64())}
    )


def as_texts(records: Side, name: str) -> Any:
    """With keys of two columns, of which one is text."""
    batch = as_columns(records, name)
    text = batch["key"].cast(pa.string())
    parity = pa.array([key % 2 == 0 for _, key, _ in records])
    return pa.RecordBatch.from_arrays([text, parity, batch[name]], names=["key", "even", name])


def as_arrays(records: Side, name: str) -> Any:
    keys, values = (np.array([r[i] for r in records], np.int64) for i in (1, 2))
    return Arrays({"key": keys, name: values})


MAKES = [as_rows, as_columns, as_texts, as_arrays]
CONTAINERS = [pytest.param(make, id=make.__name__) for make in MAKES]


def key_of(make: Any) -> Any:
    return (lambda r: r[0]) if make is as_rows else ["key", "even"] if make is as_texts else "key"


def run(
    make: Callable[[Side, str], Any],
    left: Side,
    right: Side,
    retain: bool,
    workers: int = 1,
    timestamp: Any = ps.Int,
    seed: int | None = None,
) -> Pairs:
    """What the operator makes of two sides, each in the order of its list."""

    def main(worker: Any) -> Pairs:
        found: Pairs = []

        def note(time: Any, batch: Any) -> None:
            for record in ps.containers.kind_of(batch).records(batch):
                found.append((time, *_plain(make, record)))

        with worker.dataflow(timestamp=timestamp) as scope:
            handles, streams = zip(*(scope.new_input() for _ in range(2)), strict=True)
            pairs = streams[0].join(streams[1], key_of(make), retain=retain)
            pairs.inspect_batch(note)
        groups = [
            _by_time(side[worker.index :: worker.peers], handle, name)
            for side, handle, name in zip((left, right), handles, ("left", "right"), strict=True)
        ]
        for turn in range(max(map(len, groups), default=0)):
            for group in groups:
                if turn < len(group):
                    handle, name, time, records = group[turn]
                    handle.advance_to(time)
                    handle.send_batch(make(records, name))
                elif turn == len(group) and group:
                    group[0][0].close()
                worker.step()
        return found

    if seed is not None:
        parts = ps.simulate(main, workers=workers, seed=seed)
    else:
        parts = ps.execute(main, workers=workers, threads=True)
    return sorted((pair for part in parts for pair in part), key=repr)


def _by_time(side: Side, handle: Any, name: str) -> list[Any]:
    groups: dict[Any, Side] = collections.defaultdict(list)
    for record in side:
        groups[record[0]].append(record)
    return [(handle, name, time, records) for time, records in groups.items()]


def _plain(make: Any, record: Any) -> tuple[int, int, int]:
    if make is as_rows:
        (key, left), (other, right) = record
        assert key == other
        return key, left, right
    if make is as_texts:
        key, even, left, right = record
        assert even == (int(key) % 2 == 0)
        return int(key), left, right
    key, left, right = record
    return key, left, right


def oracle(left: Side, right: Side, retain: bool, timestamp: Any = ps.Int) -> Pairs:
    """The same by two loops."""
    return sorted(
        (
            (timestamp.join(a_time, b_time), a_key, a, b)
            for a_time, a_key, a in left
            for b_time, b_key, b in right
            if a_key == b_key and (retain or a_time == b_time)
        ),
        key=repr,
    )


LEFT: Side = [(t, k % 7, 100 * t + k) for t in range(4) for k in range(9)]
RIGHT: Side = [(t, k % 5, 100 * t + k) for t in range(1, 6) for k in range(6)]


@pytest.mark.parametrize("retain", [False, True], ids=["per time", "retained"])
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("make", CONTAINERS)
def test_pairs_are_those_of_two_loops(make: Any, workers: int, retain: bool) -> None:
    assert run(make, LEFT, RIGHT, retain, workers) == oracle(LEFT, RIGHT, retain)


SIDES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-2, 3), st.integers(0, 99)), max_size=20
).map(sorted)


@given(SIDES, SIDES, st.booleans(), st.sampled_from([1, 2]), st.sampled_from(MAKES))
def test_any_two_sides(left: Side, right: Side, retain: bool, workers: int, make: Any) -> None:
    assert run(make, left, right, retain, workers) == oracle(left, right, retain)


MOMENTS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 1), min_size=2, max_size=2), st.integers(0, 1), st.integers(0, 99)
    ),
    max_size=10,
)


@given(MOMENTS, MOMENTS, st.booleans(), st.sampled_from(MAKES), st.booleans())
def test_times_in_a_partial_order_meet_at_the_least_after_both(
    left: Any, right: Any, retain: bool, make: Any, is_product: bool
) -> None:
    timestamp: Any = ps.Product(ps.Int, ps.Int) if is_product else EventProcessing()

    def side(steps: Any) -> Side:
        at = [0, 0]
        found = []
        for step, key, value in steps:
            at = [at[0] + step[0], at[1] + step[1]]
            found.append((tuple(at) if is_product else Moment(*at), key, value))
        return found

    sides = side(left), side(right)
    assert run(make, *sides, retain, timestamp=timestamp) == oracle(*sides, retain, timestamp)


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_pairs_do_not_depend_on_timing(seed: int, retain: bool) -> None:
    for make in (as_rows, as_columns):
        found = run(make, LEFT, RIGHT, retain, workers=3, seed=seed)
        assert found == oracle(LEFT, RIGHT, retain)


def test_a_pair_leaves_before_its_time_is_complete() -> None:
    def main(worker: Any) -> None:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            inputs, streams = zip(*(scope.new_input() for _ in range(2)), strict=True)
            streams[0].join(streams[1], lambda x: x).inspect(seen.append)
        for input in inputs:
            input.send(7)
        for _ in range(5):
            worker.step()
        assert seen == [(7, 7)]

    ps.execute(main)


def test_what_no_other_record_can_meet_is_forgotten() -> None:
    """State is that of the open times alone; or, retained, of the side that may still be met."""

    class Big:
        alive = 0

        def __init__(self, key: int) -> None:
            self.key = key
            Big.alive += 1

        def __del__(self) -> None:
            Big.alive -= 1

    def main(worker: Any, retain: bool) -> list[int]:
        alive = []
        with worker.dataflow() as scope:
            (left, lefts), (right, rights) = (scope.new_input() for _ in range(2))
            probe = lefts.join(rights, lambda x: x.key, retain=retain).probe()
        for epoch in range(4):
            left.send(Big(epoch))
            left.advance_to(epoch + 1)
            right.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(left.time))
            alive.append(Big.alive)
        right.close()
        worker.step_while(lambda: probe.less_than(left.time))
        for _ in range(5):
            worker.step()
        return [*alive, Big.alive]

    assert ps.execute(main, False) == [[0, 0, 0, 0, 0]]
    assert ps.execute(main, True) == [[1, 2, 3, 4, 0]]


def test_the_two_keys_may_have_different_names_and_columns_that_clash_are_renamed() -> None:
    left = pa.RecordBatch.from_pydict({"id": [1, 2], "name": ["a", "b"]})
    right = pa.RecordBatch.from_pydict({"of": [2, 3], "name": ["x", "y"]})
    out: list[Any] = []

    def build(scope: Any) -> Any:
        streams = (scope.batches_to_stream([batch]) for batch in (left, right))
        pairs = next(streams).join(next(streams), "id", "of")
        return pairs.inspect_batch(lambda time, batch: out.append(batch))

    collect(build)
    assert [batch.to_pydict() for batch in out] == [{"id": [2], "name": ["b"], "name_right": ["x"]}]


def test_nulls_and_nans_are_no_keys() -> None:
    for values, kind in (([1, None, None], pa.int64()), ([1.0, float("nan"), None], pa.float64())):
        batch = pa.RecordBatch.from_pydict({"k": pa.array(values, kind), "x": [1, 2, 3]})

        def build(scope: Any, batch: Any = batch) -> Any:
            return scope.batches_to_stream([batch]).join(scope.batches_to_stream([batch]), "k")

        assert collect(build) == [(0, (1, 1, 1))]


def test_keys_of_different_types_meet_when_they_are_equal() -> None:
    left = pa.RecordBatch.from_pydict({"k": pa.array([1, 2, 3], pa.int8())})
    halves = pa.array([1.0, 2.5, 3.0], pa.float16())
    for right in (pa.array([1.0, 2.5, 3.0]), halves, pa.array([1, 3, 9], pa.uint64())):
        batch = pa.RecordBatch.from_pydict({"k": right})

        def build(scope: Any, batch: Any = batch) -> Any:
            return scope.batches_to_stream([left]).join(scope.batches_to_stream([batch]), "k")

        assert collect(build) == [(0, (1,)), (0, (3,))]


LARGE = [
    (pa.array([10**17, 2**53 + 1]), pa.array([1e17, 2.0**53]), [10**17]),
    (pa.array([2**63 - 1, -(2**63), None]), pa.array([2.0**63, -(2.0**63), None]), [-(2**63)]),
    (pa.array([2**64 - 1, 2**63], pa.uint64()), pa.array([2.0**64, 2.0**63]), [2**63]),
    (
        pa.array([2**24 + 1, 2**24 + 2], pa.int32()),
        pa.array(np.array([2**24, 2**24 + 2, np.nan], np.float32)),
        [2**24 + 2],
    ),
]


@pytest.mark.parametrize(("integers", "floats", "expected"), LARGE)
def test_large_integers_meet_the_floats_that_they_equal(
    integers: Any, floats: Any, expected: list[int]
) -> None:
    left, right = pa.record_batch({"k": integers}), pa.record_batch({"k": floats})

    def build(scope: Any, one: Any, other: Any) -> Any:
        return scope.batches_to_stream([one]).join(scope.batches_to_stream([other]), "k")

    assert collect(lambda s: build(s, left, right)) == [(0, (k,)) for k in expected]
    assert collect(lambda s: build(s, right, left)) == [(0, (float(k),)) for k in expected]


@pytest.mark.parametrize("retain", [False, True])
def test_a_column_that_is_called_by_a_number_is_not_the_one_at_that_place(retain: bool) -> None:
    left = pa.record_batch({"1": [100, 200], "0": [1, 2]})
    right = pa.record_batch({"0": [1, 2], "z": [7, 8]})

    def build(scope: Any) -> Any:
        streams = [scope.batches_to_stream([batch]) for batch in (left, right)]
        return streams[0].join(streams[1], "0", retain=retain)

    assert collect(build) == [(0, (100, 1, 7)), (0, (200, 2, 8))]


@pytest.mark.parametrize("how", ["inner", "anti"])
def test_keys_of_which_none_can_be_equal_are_refused(how: Any, first_cause: Any) -> None:
    """And not joined to nothing, or to what has the same bits."""

    def joined(one: Any, other: Any) -> Any:
        make = Arrays if isinstance(one, np.ndarray) else pa.record_batch
        left, right = make({"k": one}), make({"k": other})
        return collect(
            lambda s: s.batches_to_stream([left]).join(s.batches_to_stream([right]), "k", how=how)
        )

    days = pa.array([0, 1], pa.date32())
    of_numpy = np.array([0, 1], "M8[D]")
    for one, other in (
        (days, pa.array(["0"])),
        (days, pa.array([0, 86_400], pa.timestamp("s"))),
        (days, pa.array([0, 1])),
        (of_numpy, of_numpy.astype("M8[us]")),
        (of_numpy.astype("M8[us]"), np.array([0, 1], "m8[us]")),
        (np.array([b"a"]), np.array(["a"])),
    ):
        with pytest.raises(WorkerError, match="keys of a join cannot be compared") as raised:
            joined(one, other)
        assert isinstance(first_cause(raised.value), SchemaError)
    # The hashes of -1 and of the other one are equal.
    found = joined(pa.array([-1, 5]), pa.array([2**64 - 1, 5], pa.uint64()))
    assert found == {"inner": [(0, (5,))], "anti": [(0, (-1,))]}[how]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", ["inner", "full", "anti"])
def test_times_of_two_zones_are_equal_if_they_are_one_moment(how: Any, workers: int) -> None:
    rome = pa.array([0, 3_600_000_000, 7], pa.timestamp("us", "Europe/Rome"))
    utc = pa.array([0, 3_600_000, 9], pa.timestamp("ms", "UTC"))
    sides = (
        pa.record_batch({"k": rome, "i": [0, 1, 2]}),
        pa.record_batch({"k": utc, "j": [0, 1, 2]}),
    )

    def build(scope: Any) -> Any:
        left, right = (
            scope.batches_to_stream([side] if scope.index == 0 else []) for side in sides
        )
        return left.join(right, "k", how=how)

    found = [row[1:] for _, row in collect(build, workers=workers)]
    both = [(0, 0), (1, 1)]
    expected = {"inner": both, "full": [*both, (2, None), (None, 2)], "anti": [(2,)]}[how]
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("how", ["inner", "left", "semi"])
@pytest.mark.parametrize("peers", [1, 2, 4])
@pytest.mark.parametrize("sides", ["dates and times", "texts and numbers", "rows and columns"])
def test_a_join_is_refused_however_many_workers_there_are(
    how: Any, peers: int, sides: str, first_cause: Any
) -> None:
    """Of one key each, so that with several workers both sides need not come to one of them."""
    for n in range(4):
        days = np.array([n], "M8[D]")
        both: Any = {
            "dates and times": (Arrays(k=days), Arrays(k=days.astype("M8[us]"))),
            "texts and numbers": (pa.record_batch({"k": ["0"]}), pa.record_batch({"k": [n]})),
            "rows and columns": ([(n,)], Arrays(k=np.array([n + 1]))),
        }[sides]
        key = (lambda row: row[0]) if sides == "rows and columns" else "k"

        def main(worker: Any, both: Any = both, key: Any = key) -> None:
            with worker.dataflow() as scope:
                # From two workers, where there are so many.
                given = [
                    scope.batches_to_stream([batch] if worker.index == place % worker.peers else [])
                    for place, batch in enumerate(both)
                ]
                schema = pa.schema([("k", pa.int64())])
                given[0].join(given[1], key, "k", how=how, schemas=(schema, schema))

        with pytest.raises(WorkerError, match="operator 'Join' failed") as raised:
            ps.simulate(main, workers=peers, seed=n)
        # Of rows and columns it may be that the key of the other side names no column.
        assert isinstance(first_cause(raised.value), (SchemaError, ColumnError))


@pytest.mark.parametrize("peers", [1, 2])
def test_a_join_is_refused_where_sides_come_at_different_times(peers: int) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            left, numbers = scope.new_input()
            right, texts = scope.new_input()
            numbers.join(texts, "k", retain=False)
        left.send_batch(pa.record_batch({"k": [1]}))
        left.close()
        right.advance_to(1)
        right.send_batch(pa.record_batch({"k": ["1"]}))
        right.close()
        worker.run()

    with pytest.raises(WorkerError, match="keys of a join cannot be compared"):
        ps.simulate(main, workers=peers, seed=1)


@pytest.mark.parametrize("peers", [1, 2, 4])
@pytest.mark.parametrize("windows", [ps.Tumbling(10), ps.Sessions(10)])
def test_a_join_of_windows_is_refused_however_many_workers_there_are(
    windows: Any, peers: int, first_cause: Any
) -> None:
    for n in range(4):
        at, days = np.array([n]), np.array([n], "M8[D]")
        both = Arrays(k=days, at=at), Arrays(k=days.astype("M8[us]"), at=at)

        def main(worker: Any, both: Any = both) -> None:
            with worker.dataflow() as scope:
                one, other = (
                    scope.batches_to_stream([batch] if worker.index == place % worker.peers else [])
                    for place, batch in enumerate(both)
                )
                one.join_window(other, windows, "at", "k")

        with pytest.raises(WorkerError, match="keys of a join cannot be compared") as raised:
            ps.simulate(main, workers=peers, seed=n)
        assert isinstance(first_cause(raised.value), SchemaError)


def test_what_workers_compare_is_nothing_outside_that_a_dataflow_may_wait_for() -> None:
    def main(worker: Any) -> tuple[bool, int]:
        with worker.dataflow() as scope:
            scope.empty().join(scope.empty())
        (dataflow,) = worker._dataflows.values()
        return dataflow.closers.is_empty, len(worker.environment.comparisons)

    assert ps.simulate(main, workers=2, seed=1) == [(True, 1), (True, 1)]


def test_keys_that_can_be_compared_are_not_refused_on_several_workers() -> None:
    """Also where they are of other types, as texts of two lengths, days and weeks."""

    def main(worker: Any) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            sides = [
                scope.batches_to_stream([Arrays(k=np.array(keys))])
                for keys in (["a", "bcd"], ["a", "bcdef"])
            ]
            days = np.array([0, 40], "M8[D]")
            dates = [
                scope.batches_to_stream([Arrays(k=days.astype(f"M8[{unit}]"))]) for unit in "DW"
            ]
            sides[0].join(sides[1], "k").inspect(found.append)
            dates[0].join(dates[1], "k").inspect(found.append)
        worker.run()
        return found

    found = [record for records in ps.simulate(main, workers=2, seed=1) for record in records]
    assert len(found) == 8


def test_equal_hashes_of_different_keys_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    from pointstamp.containers.arrays import ArraysKind

    monkeypatch.setattr(
        ArraysKind, "hashes", lambda self, batch, key: np.zeros(len(batch), np.uint64)
    )
    left, right = Arrays(k=["a", "b", "b"], x=[1, 2, 3]), Arrays(k=["b", "c"], y=[4, 5])

    def build(scope: Any) -> Any:
        return scope.batches_to_stream([left]).join(scope.batches_to_stream([right]), "k")

    assert collect(build) == [(0, ("b", 2, 4)), (0, ("b", 3, 4))]


def test_rows_without_a_key_meet_their_equals() -> None:
    assert collect(lambda s: s.to_stream([1, 2, 2]).join(s.to_stream([2, 3]))) == [
        (0, (2, 2)), (0, (2, 2))]  # fmt: skip


# What is wrong is named.


def test_keys_and_containers_that_do_not_fit_are_named(first_cause: Any) -> None:
    batch = as_columns([(0, 1, 2)], "x")

    def rows(scope: Any) -> Any:
        return scope.to_stream([(1, 2)])

    def columns(scope: Any) -> Any:
        return scope.batches_to_stream([batch])

    def arrays(scope: Any) -> Any:
        return scope.batches_to_stream([as_arrays([(0, 1, 2)], "x")])

    def joined(left: Any, right: Any, *keys: Any) -> Any:
        with pytest.raises(WorkerError) as raised:
            collect(lambda scope: left(scope).join(right(scope), *keys))
        return first_cause(raised.value)

    assert isinstance(joined(rows, rows, "key"), ColumnError)
    assert isinstance(joined(columns, columns, "no such"), ColumnError)
    assert isinstance(joined(columns, columns), ColumnError)
    assert isinstance(joined(columns, arrays, "key"), SchemaError)
    assert isinstance(joined(columns, rows, "key", lambda r: r[0]), ColumnError)
    assert isinstance(joined(rows, columns, lambda r: r[0], "key"), (ColumnError, SchemaError))
    assert isinstance(joined(columns, columns, ["key", "x"], "key"), BuildError)


def test_a_type_of_times_without_a_join_is_an_error_where_it_is_needed(first_cause: Any) -> None:
    class Bare(EventProcessing):
        join = ps.Timestamp.join

    sides: Any = [(Moment(0, 1), 1, 1)], [(Moment(1, 0), 1, 2)]
    with pytest.raises(WorkerError, match=r"no join\(\)") as raised:
        run(as_rows, *sides, True, timestamp=Bare())
    assert isinstance(first_cause(raised.value), TimestampError)
    assert run(as_rows, *sides, False, timestamp=Bare()) == []
