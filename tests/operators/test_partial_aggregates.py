"""Aggregates by name: what is sent of them, and that nothing of it is lost or counted twice."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.dataflow.channels import ExchangePusher
from pointstamp.operators import partial_aggregates
from pointstamp.testing import collect

N = 4_000
"""Records of a batch: enough for it to be worth grouping."""

HOW = [("x", "sum"), ("x", "max"), ("x", "count")]


def batch(start: int, n_keys: int, shift: int = 0, *, null: bool = False) -> pa.RecordBatch:
    values = np.arange(start, start + N)
    keys = values % n_keys + shift
    x = pa.array(values, mask=values == start + 5) if null else pa.array(values)
    return pa.RecordBatch.from_pydict({"k": pa.array(keys), "x": x})


def expected(batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    whole = pa.Table.from_batches(batches).group_by("k").aggregate(HOW)
    return sorted(tuple(row.values()) for row in whole.to_pylist())


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The records of each batch that is given to an exchange."""
    counted: list[int] = []
    split = ExchangePusher.split

    def counting(self: Any, kind: Any, batch: Any) -> Any:
        counted.append(kind.length(batch))
        return split(self, kind, batch)

    monkeypatch.setattr(ExchangePusher, "split", counting)
    return counted


def answers(worker: Any, epochs: list[list[pa.RecordBatch]]) -> list[Any]:
    """The rows of each epoch; one batch after another, with steps in between.

    An empty time comes first: once it is complete, all workers have built the dataflow, and
    none waits for another before it sends.
    """
    found: list[Any] = []
    with worker.dataflow("counts") as scope:
        input, stream = scope.new_input()
        counts = stream.aggregate(HOW, key="k")
        counts.inspect_batch(
            lambda time, b: found.extend((time - 1, *row.values()) for row in b.to_pylist())
        )
        probe = counts.probe()
    input.advance_to(1)
    worker.step_while(lambda: probe.less_than(1))
    for epoch, batches in enumerate(epochs):
        for one in batches[worker.index :: worker.peers]:
            input.send_batch(one)
            for _ in range(3):
                worker.step()
        input.advance_to(epoch + 2)
    input.close()
    worker.step_while(lambda: not probe.done)
    return found


def of_all(workers: list[list[Any]], epoch: int) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[1:]) for found in workers for row in found if row[0] == epoch)


@pytest.mark.interpreted
def test_keys_that_come_again_and_again_are_sent_once(sent: list[int]) -> None:
    """Of the first part a worker does not know that more will come; the rest is one batch."""
    epochs = [[batch(i * N, 50) for i in range(20)]]
    found = ps.execute(answers, epochs, workers=2, threads=True)
    assert of_all(found, 0) == expected(epochs[0])
    assert set(sent) == {50}
    assert len(sent) == 4


@pytest.mark.interpreted
def test_a_batch_that_is_alone_is_sent_at_once(sent: list[int]) -> None:
    def main(worker: Any) -> list[int]:
        with worker.dataflow("counts") as scope:
            input, stream = scope.new_input()
            probe = stream.aggregate(HOW, key="k").probe()
        input.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        if worker.index == 0:
            input.send_batch(batch(0, 50))
            for _ in range(10):
                worker.step()
        before = list(sent)
        input.close()
        worker.run()
        return before

    assert ps.execute(main, workers=2, threads=True)[0] == [50]


@pytest.mark.interpreted
def test_a_table_that_has_grown_is_sent_before_its_time_is_complete(
    sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_aggregates, "KEPT_GROUPS", 120)
    epochs = [[batch(i * N, 50, shift=50 * (i // 4)) for i in range(20)]]
    found = ps.execute(answers, epochs, workers=2, threads=True)
    assert of_all(found, 0) == expected(epochs[0])
    assert len(sent) > 4


@pytest.mark.interpreted
def test_keys_that_are_all_different_are_not_kept(sent: list[int]) -> None:
    epochs = [[batch(i * N, 10**9) for i in range(8)]]
    found = ps.execute(answers, epochs, workers=2, threads=True)
    assert of_all(found, 0) == expected(epochs[0])
    assert sum(sent) == 8 * N
    assert min(sent) >= N


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_parts_with_nulls_come_between_those_of_a_table(workers: int) -> None:
    epochs = [[batch(i * N, 50, null=i % 5 == 4) for i in range(20)] for _ in range(2)]
    found = ps.execute(answers, epochs, workers=workers, threads=True)
    for epoch, batches in enumerate(epochs):
        assert of_all(found, epoch) == expected(batches)


T = pa.timestamp

OTHER_TYPES = [
    pytest.param("v", [1], pa.int8(), [300], pa.int64(), id="int8, int64"),
    pytest.param("v", [2**63 + 1], pa.uint64(), [-1], pa.int64(), id="uint64, int64"),
    pytest.param("v", [1_767_268_800], T("s"), [1_767_268_800_000_000], T("us"), id="units"),
    pytest.param("v", [5], pa.int64(), [7], T("s"), id="integers and times"),
    pytest.param("k", [86_400_000], pa.date64(), [1], pa.date32(), id="keys that are dates"),
    pytest.param("k", [1_767_268_800], T("s"), [1_767_268_800_000_000], T("us"), id="keys, units"),
    pytest.param("k", ["1"], pa.string(), [b"1"], pa.binary(), id="keys, texts and bytes"),
    pytest.param("k", ["1"], pa.string(), ["1"], pa.large_string(), id="keys, large texts"),
]


@pytest.mark.parametrize(("name", "one", "kind", "other", "its_kind"), OTHER_TYPES)
def test_parts_of_other_types_are_refused(
    name: str, one: list[Any], kind: Any, other: list[Any], its_kind: Any
) -> None:
    """Each worker reads its own, and nothing compares them before their keys meet."""
    columns = {"k": pa.array([0]), "v": pa.array([0])}
    parts = [
        pa.record_batch({**columns, name: pa.array(values, of)})
        for values, of in ((one, kind), (other, its_kind))
    ]

    def build(scope: Any) -> Any:
        return scope.batches_to_stream([parts[scope.index]]).aggregate([("v", "max")], key="k")

    with pytest.raises(ps.errors.PointstampError, match="cast them to one schema"):
        collect(build, workers=2)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_times_under_way_at_once_are_kept_apart(workers: int) -> None:
    """Batches of three times, in turns, from an input that has all of them at once."""
    batches = {time: [batch(i * N, 50 + time) for i in range(6)] for time in range(3)}

    def build(scope: Any) -> Any:
        mine = [batches[i % 3][i // 3] for i in range(18)][scope.index :: scope.peers]
        timed = [
            b.append_column("t", pa.array(np.full(N, b["k"].to_numpy().max() - 49))) for b in mine
        ]
        return scope.batches_to_stream(timed).delay("t").aggregate(HOW, key="k")

    found = collect(build, workers=workers)
    for time in range(3):
        assert sorted(row for at, row in found if at == time) == expected(batches[time])


few = st.lists(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 40), st.booleans()), max_size=5),
    max_size=3,
)


@given(epochs=few, workers=st.integers(1, 3), seed=st.integers(0, 99), kept=st.integers(1, 60))
def test_every_schedule_gives_the_answer_of_all_records(
    epochs: list[list[tuple[int, int, bool]]], workers: int, seed: int, kept: int
) -> None:
    given_ = [
        [batch(i * N, 10 * n_keys, shift, null=null) for i, (n_keys, shift, null) in enumerate(of)]
        for of in epochs
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_aggregates, "KEPT_GROUPS", kept)
        found = ps.simulate(partial(answers, epochs=given_), workers=workers, seed=seed)
    times = Counter(row[0] for rows in found for row in rows)
    assert set(times) == {epoch for epoch, batches in enumerate(given_) if batches}
    for epoch, batches in enumerate(given_):
        if batches:
            assert of_all(found, epoch) == expected(batches)


@pytest.mark.parametrize("column", ["v", ["v"]], ids=str)
@pytest.mark.parametrize("workers", [1, 2])
def test_distinct_values_of_a_column_without_a_type_are_refused(workers: int, column: Any) -> None:
    """Arrow ends the process there, without a word."""
    table = pa.table({"k": ["a", "a"], "v": pa.nulls(2)})
    with pytest.raises(ps.errors.PointstampError, match=r"by 'distinct': it is of type null; cast"):
        collect(
            lambda scope: scope.to_stream(table).aggregate([(column, "distinct")], key="k"),
            workers=workers,
        )


def test_a_list_of_one_name_is_that_column() -> None:
    table = pa.table({"k": ["a", "a"], "v": [1, 1]})
    ((_, found),) = collect(
        lambda scope: scope.to_stream(table).aggregate([(["v"], "distinct")], key="k")
    )
    assert found == ("a", [1])
