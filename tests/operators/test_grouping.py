"""Operators that answer for times and keys: accumulate, aggregate, state_machine."""

from __future__ import annotations

import collections
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays, kind_of
from pointstamp.dataflow.channels import ExchangePusher
from pointstamp.errors import BuildError, ColumnError, ContainerError
from pointstamp.operators import folds
from pointstamp.testing import collect
from tests.dataflow.carried import (
    Run,
    arrays,
    cause_of,
    columns,
    over_containers,
    over_runs,
    rows,
    settle,
)

RECORDS = [(x % 5, x, x % 3) for x in range(40)]
"""A key, a value, and a time."""

over_columns = pytest.mark.parametrize("make", [columns, arrays], ids=lambda make: make.__name__)


def timed(make: Any, scope: Any, records: Any = RECORDS) -> Any:
    """The records at their times, with the columns k, x and t."""
    return make(scope, "kxt", records).delay("t" if make is not rows else lambda r, time: r[2])


def sums(records: Any = RECORDS) -> dict[tuple[int, int], int]:
    """The oracle: by time and key."""
    found: dict[tuple[int, int], int] = collections.defaultdict(int)
    for key, value, time in records:
        found[time, key] += value
    return found


def by_key(make: Any, name: str = "k") -> Any:
    return name if make is not rows else lambda r: r["kxt".index(name)]


def values(records: Any) -> list[int]:
    """The column x of a batch."""
    return [r[1] for r in kind_of(records).records(records)]


@over_containers
@over_runs
def test_accumulate_gives_one_value_per_time_and_worker(make: Any, run: Run) -> None:
    def build(scope: Any) -> Any:
        return timed(make, scope).accumulate([], lambda seen, batch: seen + values(batch))

    found = collections.defaultdict(list)
    for time, seen in run(build):
        found[time] += seen
    assert {time: sorted(seen) for time, seen in found.items()} == {
        t: [x for _, x, at in RECORDS if at == t] for t in range(3)
    }


def test_accumulate_starts_every_time_from_a_copy() -> None:
    default: list[int] = []

    def add(seen: list[int], batch: Any) -> list[int]:
        seen.extend(batch)
        return seen

    def build(scope: Any) -> Any:
        return scope.to_stream([1, 2]).delay(lambda x, time: x).accumulate(default, add)

    assert collect(build) == [(1, [1]), (2, [2])]
    assert default == []


@over_containers
@over_runs
def test_aggregate_gives_one_record_per_key_and_time(make: Any, run: Run) -> None:
    def fold(key: int, record: Any, total: int) -> int:
        return total + (record[1] if make is rows else sum(values(record)))

    def build(scope: Any) -> Any:
        return timed(make, scope).aggregate(fold, lambda k, total: (k, total), by_key(make), 0)

    assert run(build) == sorted((t, (k, total)) for (t, k), total in sums().items())


@over_columns
@over_runs
def test_aggregate_by_name(make: Any, run: Run) -> None:
    def build(scope: Any) -> Any:
        named = [("x", "sum"), ("x", "max"), ("x", "count")]
        return timed(make, scope).aggregate(named, key="k")

    groups = collections.defaultdict(list)
    for key, value, time in RECORDS:
        groups[time, key].append(value)
    assert run(build) == sorted(
        (t, (k, sum(found), max(found), len(found))) for (t, k), found in groups.items()
    )


@over_columns
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_aggregate_by_name_and_several_columns_as_one_kind_of_container(
    make: Any, workers: int
) -> None:
    kinds: set[str] = set()

    def build(scope: Any) -> Any:
        found = make(scope, "kxt", RECORDS).aggregate([("x", "min")], key=["k", "t"])
        return found.inspect_batch(lambda time, batch: kinds.add(kind_of(batch).name))

    least: dict[Any, int] = {}
    for k, x, t in RECORDS:
        least[k, t] = min(x, least.get((k, t), x))
    assert collect(build, workers) == sorted((0, (*key, x)) for key, x in least.items())
    assert kinds == {"columns"}


def test_what_aggregate_emits_is_up_to_the_function() -> None:
    def build(scope: Any) -> Any:
        pairs = scope.to_stream([("a", 1), ("b", 5), ("a", 2)])
        return pairs.aggregate(lambda key, value, n: n + value, lambda k, n: f"{k}{n}", default=0)

    assert collect(build, 2) == [(0, "a6"), (0, "b10")]  # each worker gives all of them

    def renamed(scope: Any) -> Any:
        return columns(scope, "kx", [(1, 2), (1, 3)]).aggregate(
            [("x", "sum")], lambda batch: batch.rename_columns(["key", "total"]), "k"
        )

    assert collect(renamed) == [(0, (1, 5))]


def test_keys_of_any_type_and_null_are_grouped() -> None:
    batch = pa.RecordBatch.from_pydict({"k": ["a", None, "a", None, "b"], "x": [1, 2, 3, 4, 5]})

    def build(scope: Any) -> Any:
        stream = scope.batches_to_stream([batch] if scope.index == 0 else [])
        return stream.aggregate(lambda key, found, _: sum(found["x"].to_pylist()), key="k")

    for workers in (1, 2):
        found = dict(record for _, record in collect(build, workers))
        assert found == {"a": 4, None: 6, "b": 5}


def test_aggregate_answers_when_the_time_is_complete_and_not_before() -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            counted = stream.aggregate(lambda key, value, n: n + value, default=0)
            counted.inspect_batch(lambda time, batch: out.append((time, batch)))

        def settled() -> list[Any]:
            settle(worker)
            return list(out)

        input.send(("a", 1))
        seen = [settled()]
        input.send(("a", 2))
        input.advance_to(1)
        seen.append(settled())
        input.send(("a", 4))
        input.advance_to(2)
        seen.append(settled())
        return seen

    first, second = (0, [("a", 3)]), (1, [("a", 4)])
    assert ps.execute(main) == [[[], [first], [first, second]]]


def nothing(*args: Any) -> Any:
    """A fold that is never called."""
    raise AssertionError(args)


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (lambda s: rows(s, "kx", [(1, 2)]).aggregate(nothing, key="k"), ColumnError,
         ["'k'", "r[0]"]),
        (lambda s: rows(s, "kx", [(1, 2)]).state_machine(nothing, key="k"), ColumnError,
         ["'k'", "r[0]"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate(nothing, key="z"), ColumnError,
         ["'z'", "'k'"]),
        (lambda s: columns(s, "kx", [(1, 2)]).state_machine(nothing, key="z"), ColumnError,
         ["'z'", "'k'"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate([("z", "sum")], key="k"), ColumnError,
         ["'z'", "'k'"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate([("x", "summ")], key="k"), BuildError,
         ["'summ'", "'sum'"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate(["x"], key="k"), BuildError,
         ["'x'", "(column, function)"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate(5, key="k"), BuildError,
         ["a function", "[('spent', 'sum')]", "found 5"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate([(5, "sum")], key="k"), BuildError,
         ["(5, 'sum')", "(column, function)"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate([("x", "sum", 5)], key="k"), BuildError,
         ["('x', 'sum', 5)", "options"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate([("x", "count_all")], key="k"), BuildError,
         ["'count_all' is of []", "([], 'count_all')"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate([([], "sum")], key="k"), BuildError,
         ["'sum' is of a column"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate([(["x", "k"], "sum")], key="k"),
         BuildError, ["'sum' is of a column"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate([("x", "sum")]), BuildError, ["None"]),
        (lambda s: rows(s, "kx", [(1, 2)]).aggregate([("x", "sum")], key="k"), ColumnError,
         ["'k'"]),
        (lambda s: columns(s, "kx", [(1, 2)]).aggregate(nothing), ContainerError, ["record batch"]),
    ],
    ids=["rows", "machine of rows", "no column", "machine, no column", "no column to sum",
         "no function", "no pair", "no list", "no name", "no options",
         "a column to count records", "no column", "too many columns", "no key",
         "names on rows", "columns without a key"],
)  # fmt: skip
def test_a_key_or_an_aggregate_that_does_not_fit_is_named(
    build: Any, kind: Any, words: list[str]
) -> None:
    _, cause = cause_of(build)
    assert isinstance(cause, kind)
    for word in words:
        assert word in str(cause)


def previous(key: int, record: Any, last: int) -> tuple[int, list[Any]]:
    """A machine whose answers show in which order it had its turns: (key, time before, time)."""
    time = record[2]
    return time, [(key, last, time)]


@pytest.mark.parametrize("seed", range(12))
def test_a_state_machine_changes_in_the_order_of_times(seed: int) -> None:
    random_ = random.Random(seed)
    times = random_.sample(range(200), 60)
    records = [(random_.randrange(4), x, t) for x, t in enumerate(times)]

    def build(scope: Any) -> Any:
        return timed(rows, scope, records).state_machine(previous, by_key(rows), -1)

    expected = []
    for key in range(4):
        mine = sorted(t for k, _, t in records if k == key)
        expected += [(t, (key, last, t)) for last, t in zip([-1, *mine], mine, strict=False)]
    assert collect(build, workers=3, seed=seed) == sorted(expected)


@over_containers
@over_runs
def test_a_state_machine_keeps_a_state_for_each_key(make: Any, run: Run) -> None:
    """The total of each key so far, at the end of each time."""

    def of_row(key: int, record: Any, total: int) -> Any:
        return total + record[1], [(key, record[2], total + record[1])]

    def of_column(key: int, records: Any, total: int) -> Any:
        total += sum(values(records))
        (time,) = {r[2] for r in kind_of(records).records(records)}
        return total, Arrays(k=[key], t=[time], total=[total])

    fold = of_row if make is rows else of_column

    def build(scope: Any) -> Any:
        return timed(make, scope).state_machine(fold, by_key(make), 0)

    last: dict[Any, int] = {}
    found = run(build)
    for at, (key, time, total) in found:
        assert at == time
        last[time, key] = max(total, last.get((time, key), 0))
    expected: dict[Any, int] = {}
    for key in range(5):
        total = 0
        for time in range(3):
            total += sums()[time, key]
            expected[time, key] = total
    assert last == expected
    assert len(found) == (len(RECORDS) if make is rows else len(expected))


def test_a_state_machine_answers_at_once_where_nothing_earlier_can_come() -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            early, first = scope.new_input("early")
            late, second = scope.new_input("late")
            turns = first.concat(second).state_machine(previous, lambda r: r[0], -1)
            turns.inspect(out.append)

        def settled() -> list[Any]:
            settle(worker)
            return list(out)

        late.advance_to(1)
        late.send((0, 0, 1))
        seen = [settled()]  # waits for time 0 to be complete
        early.send((0, 0, 0))
        seen.append(settled())
        early.advance_to(1)
        seen.append(settled())  # which it is now; time 1 is not
        return seen

    first, second = (0, -1, 0), (0, 0, 1)
    assert ps.execute(main) == [[[], [first], [first, second]]]


def test_a_state_that_is_none_is_forgotten() -> None:
    def count_to_two(key: str, value: int, n: int) -> Any:
        return (n + 1, None) if n < 1 else (None, [f"{key}: two"])

    def build(scope: Any) -> Any:
        return scope.to_stream([("a", 0)] * 5).state_machine(count_to_two, default=0)

    assert collect(build) == [(0, "a: two"), (0, "a: two")]


def test_a_state_machine_in_a_partial_order_waits_for_what_comes_before() -> None:
    def build(scope: Any) -> Any:
        with scope.iterative() as inner:
            times = [(1, 1), (0, 0), (0, 1), (1, 0)]
            stream = scope.to_stream(times).enter(inner).delay(lambda r, time: r)
            return stream.state_machine(
                lambda key, time, seen: ((*seen, time), [(time, set(seen))]),
                lambda r: "all",
                (),
            ).leave()

    seen = dict(record for _, record in collect(build))
    assert len(seen) == 4
    assert seen[0, 0] == set()
    assert (0, 0) in seen[0, 1]
    assert (0, 0) in seen[1, 0]
    assert seen[1, 1] == {(0, 0), (0, 1), (1, 0)}


@pytest.mark.interpreted
def test_waiting_times_cost_nothing_while_one_is_worked_on() -> None:
    """10,000 later times wait; the turn of the first costs what it costs without them."""
    from tests.runtime.test_cost import n_calls

    def main(worker: Any, waiting: int) -> int:
        with worker.dataflow() as scope:
            early, first = scope.new_input("early")
            late, second = scope.new_input("late")
            first.concat(second.delay(lambda r, time: r[2])).state_machine(
                previous, lambda r: r[0], -1
            )
        late.send_batch([(0, 0, 1 + t) for t in range(waiting)] or [(0, 0, 1)])
        late.close()
        settle(worker)
        early.send((0, 0, 0))
        return n_calls(worker.step)

    few, many = (ps.execute(main, n)[0] for n in (1, 2_000))
    assert many <= few + 20


FUNCTIONS = ["sum", "product", "min", "max", "count"]

PLAIN = [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.float64(), pa.decimal128(5, 2)]


@pytest.mark.parametrize("make", [columns, arrays], ids=lambda make: make.__name__)
@over_runs
def test_aggregates_of_parts_are_those_of_the_whole(
    make: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is aggregated after every seventh record, and some cannot be."""

    def build(scope: Any) -> Any:
        stream = timed(make, scope).aggregate([("x", how) for how in FUNCTIONS], key=["k"])
        other = timed(make, scope).aggregate([("x", "mean"), ("x", "sum")], key="k")
        return _both(stream, other)

    whole = run(build)
    monkeypatch.setattr(folds, "KEPT_RECORDS", 7)
    assert run(build) == whole
    assert len(whole) == 2 * len(sums())


def _both(*streams: Any) -> Any:
    """The records of streams of different schemas, as rows."""
    first, *others = [s.map_batches(lambda b: list(kind_of(b).records(b))) for s in streams]
    return first.concat(*others)


@pytest.mark.parametrize("kind", [*PLAIN, pa.bool_()], ids=str)
def test_the_schema_of_an_answer_is_that_of_one_from_parts(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the answers of a small and of a large time could not go down one stream."""
    batch = pa.RecordBatch.from_pydict(
        {"k": [1, 2, 1, 1], "x": pa.array([1, 1, None, 0], pa.int8()).cast(kind)}
    )
    functions = ["any", "all", "count"] if kind == pa.bool_() else FUNCTIONS
    schemas, found = [], []

    def build(scope: Any) -> Any:
        stream = scope.batches_to_stream([batch] * 4)
        return stream.aggregate([("x", how) for how in functions], key="k").inspect_batch(
            lambda time, batch: schemas.append(batch.schema)
        )

    for kept in (100, 4):
        monkeypatch.setattr(folds, "KEPT_RECORDS", kept)
        found.append(collect(build))
    assert schemas[0] == schemas[1]
    assert found[0] == found[1]


@pytest.mark.parametrize(("key", "most"), [(np.int64, 7), (np.float64, 119)])
def test_what_is_kept_grows_with_the_keys_and_not_with_the_records(
    key: Any,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folds, "KEPT_RECORDS", 100)
    kept: list[int] = []
    part_of = folds._Named.take

    def take(self: Any, batch: Any) -> None:
        part_of(self, batch)
        in_table = 0 if self._totals is None else self._totals.batch().num_rows
        kept.append(in_table + sum(part.num_rows for part in self._parts))

    monkeypatch.setattr(folds._Named, "take", take)
    batches = [Arrays(k=np.array([x % 7, x % 5], key), x=np.array([x, 1])) for x in range(2_000)]

    def build(scope: Any) -> Any:
        return scope.batches_to_stream(batches).aggregate([("x", "count")], key="k")

    assert sum(n for _, (_, n) in collect(build)) == 4_000
    assert len(kept) == 2_000
    assert max(kept) <= most


@over_runs
def test_a_null_may_come_after_the_records_of_a_table(run: Run) -> None:
    keys = [[7, 9, 7], [7, None, 8], [9, 9, None]]
    values = [[1, 2, 3], [4, 5, None], [None, 6, 7]]

    def build(scope: Any) -> Any:
        batches = [
            pa.RecordBatch.from_pydict({"k": pa.array(k, pa.int32()), "x": x})
            for k, x in zip(keys, values, strict=True)
        ]
        mine = batches if scope.index == 0 else []
        return scope.batches_to_stream(mine).aggregate([("x", "sum"), ("x", "count")], key="k")

    found = sorted((record for _, record in run(build)), key=str)
    assert found == [(7, 8, 3), (8, None, 0), (9, 8, 2), (None, 12, 2)]


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "add",
    [
        lambda s: s.delay(lambda r, time: time),
        lambda s: s.delay_batch(lambda time: time),
        lambda s: s.reclock(s),
        lambda s: s.accumulate(0, nothing),
        lambda s: s.aggregate(nothing),
        lambda s: s.state_machine(nothing),
        lambda s: s.partition(2, len)[1],
        lambda s: s.branch_when(bool)[0],
        lambda s: s.ok_err(nothing)[0],
        lambda s: s.distribute(nothing),
    ],
    ids=["delay", "delay_batch", "reclock", "accumulate", "aggregate", "state_machine",
         "partition", "branch_when", "ok_err", "distribute"],
)  # fmt: skip
def test_idle_operators_cost_nothing(add: Any) -> None:
    from tests.runtime.test_cost import cost_of_a_round

    def idle(n: int) -> Any:
        def build(worker: Any, scope: Any) -> None:
            _, stream = scope.new_input("idle")
            for _ in range(n):
                stream = add(stream)

        return build

    assert cost_of_a_round(idle(100)) == cost_of_a_round(idle(1))


@pytest.mark.interpreted
def test_aggregates_by_name_send_their_columns_alone_and_one_record_for_each_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[tuple[list[str], int]] = []
    hand = ExchangePusher.split

    def noted(self: ExchangePusher, kind: Any, batch: Any) -> Any:
        sent.append((list(kind.names(batch)), kind.length(batch)))
        return hand(self, kind, batch)

    monkeypatch.setattr(ExchangePusher, "split", noted)
    wide = {f"c{i}": np.arange(4_000) % (i + 2) for i in range(19)}

    def found(aggregates: list[Any], key: Any = "c3") -> Any:
        def build(scope: Any) -> Any:
            batches = [pa.record_batch(wide)] * 2 if scope.index == 0 else []
            return scope.batches_to_stream(batches).aggregate(aggregates, key=key)

        sent.clear()
        return collect(build, 2)

    assert found([("c4", "sum"), ("c4", "count")]) == [
        (0, (k, 2 * sum(x % 6 for x in range(k, 4_000, 5)), 1_600)) for k in range(5)
    ]
    assert sent == [(["c3", "c4_sum", "c4_count"], 5)] * 2
    means = found([("c4", "mean")])
    assert [key for _, (key, _) in means] == list(range(5))
    assert sent == [(["c3", "c4"], 4_000)] * 2  # means of parts do not make the mean

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input_, stream = scope.new_input()
            stream.aggregate([("c4", "sum")], key="c3").probe()
        if worker.index == 0:
            input_.send_batch(pa.record_batch({name: np.tile(wide[name], 15) for name in wide}))

    sent.clear()
    ps.execute(main, workers=2, threads=True)
    assert sent == [(["c3", "c4_sum"], 5)]  # the pieces that a large batch is moved in make one


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_of_different_keys_and_of_few_records_combine_as_others(workers: int) -> None:
    how = ("sum", "count", "min", "max", "product")
    values = [None if x % 7 == 0 else x % 5 for x in range(6_000)]
    table = pa.table({"k": range(6_000), "x": pa.array(values, pa.int8())})
    parts = [table[:2_000], table[2_000:2_003], table[1_000:3_000], table[:5], table[2_500:]]
    batches = [part.combine_chunks().to_batches()[0] for part in parts]

    def build(scope: Any) -> Any:
        given = batches if scope.index == 0 else []
        return scope.batches_to_stream(given).aggregate([("x", h) for h in how], key="k")

    whole = pa.concat_tables(parts).group_by("k").aggregate([("x", h) for h in how])
    expected = sorted((tuple(row.values()) for row in whole.to_pylist()), key=lambda row: row[0])
    assert sorted((row for _, row in collect(build, workers)), key=lambda r: r[0]) == expected
