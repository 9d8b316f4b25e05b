"""A container of the user's own goes through the operators as the containers here do.

Its kind is written with what a kind must have, and with its columns; everything else follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint.keyed_state import KeyedBatches, by_key
from pointstamp.containers import Kind, hash_key, hash_keys, register, registry
from pointstamp.errors import ColumnError, ContainerError
from pointstamp.testing import collect
from tests.checkpoint.test_keyed_state import Store


@dataclass(frozen=True)
class Lists:
    """Named lists of one length."""

    columns: dict[str, list[Any]]


class ListsKind(Kind[Lists]):
    """What can be done with `Lists`: what a kind must say, and what its columns are."""

    name = "lists"
    has_columns = True

    def length(self, batch: Lists) -> int:
        return len(next(iter(batch.columns.values()), []))

    def records(self, batch: Lists) -> Iterator[Any]:
        return zip(*batch.columns.values(), strict=True)

    def slice(self, batch: Lists, start: int, stop: int) -> Lists:
        return Lists({name: column[start:stop] for name, column in batch.columns.items()})

    def concat(self, batches: Sequence[Lists]) -> Lists:
        names = batches[0].columns
        return Lists({name: [x for b in batches for x in b.columns[name]] for name in names})

    def names(self, batch: Lists) -> list[str]:
        return list(batch.columns)

    def column(self, batch: Lists, chosen: Any, operator: str) -> Any:
        if chosen in batch.columns:
            return batch.columns[chosen]
        return super().column(batch, chosen, operator)

    def with_columns(self, batch: Lists, more: Mapping[str, Any]) -> Lists:
        return Lists({**batch.columns, **{name: list(column) for name, column in more.items()}})

    def paired(self, left: Lists, right: Lists, key: Sequence[str], suffix: str) -> Lists:
        more = {name + suffix: column for name, column in right.columns.items() if name not in key}
        return self.with_columns(left, more)

    def to_arrow(self, batch: Lists) -> Any:
        return pa.RecordBatch.from_pydict(batch.columns)


class Pile(tuple[Any, ...]):
    """Python values, in no list."""

    __slots__ = ()


class PileKind(Kind[Pile]):
    """What a kind must define, of records without columns."""

    name = "piles"

    def length(self, batch: Pile) -> int:
        return len(batch)

    def records(self, batch: Pile) -> Iterator[Any]:
        return iter(batch)

    def slice(self, batch: Pile, start: int, stop: int) -> Pile:
        return Pile(batch[start:stop])

    def concat(self, batches: Sequence[Pile]) -> Pile:
        return Pile(record for batch in batches for record in batch)


RECORDS = [(x % 3, x, f"s{x % 5}") for x in range(30)]
WORKERS = pytest.mark.parametrize("workers", [1, 2])


def lists(records: Sequence[tuple[Any, ...]], names: str = "kxs") -> Lists:
    return Lists({name: [r[i] for r in records] for i, name in enumerate(names)})


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind, for the time of a test."""
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    monkeypatch.setattr(registry, "_names", dict(registry._names))
    register(Lists, ListsKind())
    register(Pile, PileKind())


def found(build: Any, workers: int = 1, records: Any = RECORDS, names: str = "kxs") -> list[Any]:
    """The records that come out of what `build` makes of a stream of `Lists`, in an order."""

    def whole(scope: Any) -> Any:
        mine = records[scope.index :: scope.peers]
        parts = [lists(mine[i : i + 4], names) for i in range(0, len(mine), 4)]
        return build(scope.batches_to_stream(parts))

    return sorted(record for _, record in collect(whole, workers))


@WORKERS
def test_it_is_exchanged_filtered_and_split(workers: int) -> None:
    assert found(lambda s: s.exchange("k"), workers) == sorted(RECORDS)
    assert found(lambda s: s.exchange(["k", "s"]).exchange(), workers) == sorted(RECORDS)
    assert found(lambda s: s.exchange(to="x").broadcast(), workers) == sorted(RECORDS * workers)
    flagged = [(x, x % 3 == 0) for x in range(20)]
    kept = found(lambda s: s.filter("f"), workers, flagged, "xf")
    assert kept == [(x, f) for x, f in flagged if f]
    assert found(lambda s: s.branch("f")[0], workers, flagged, "xf") == [
        (x, f) for x, f in flagged if not f
    ]
    assert found(lambda s: s.partition(3, "k")[1], workers) == [r for r in RECORDS if r[0] == 1]
    assert found(lambda s: s.delay("x").count(), workers) == [1] * 30


@WORKERS
def test_it_is_grouped_and_aggregated(workers: int) -> None:
    totals = [(k, sum(x for of, x, _ in RECORDS if of == k)) for k in range(3)]

    def by_batch(key: Any, batch: Any, total: Any) -> Any:
        return total + sum(batch.columns["x"])

    def by_record(key: Any, record: Any, total: Any) -> Any:
        return total + record[1]

    def counted(key: Any, batch: Any, n: Any) -> Any:
        return None, lists([(key, len(batch.columns["x"]))], "kn")

    assert found(lambda s: s.aggregate(by_batch, key="k", default=0), workers) == totals
    assert found(lambda s: s.aggregate([("x", "sum")], key="k"), workers) == totals
    by_first = found(
        lambda s: s.aggregate(by_record, key=lambda record: record[0], default=0), workers
    )
    assert by_first == totals
    assert found(lambda s: s.state_machine(counted, key="k"), workers) == [
        (k, 10) for k in range(3)
    ]


@WORKERS
def test_it_is_joined_by_columns(workers: int) -> None:
    def build(stream: Any) -> Any:
        others = [lists([(k, 10 * k) for k in range(2)], "ky")] if stream.scope.index == 0 else []
        return stream.join(stream.scope.batches_to_stream(others), "k")

    assert found(build, workers) == sorted((k, x, s, 10 * k) for k, x, s in RECORDS if k < 2)


@WORKERS
def test_it_is_put_into_windows(workers: int) -> None:
    def build(stream: Any) -> Any:
        windows, _ = stream.window(ps.Tumbling(10), time="x", key="k")
        return windows

    expected = sorted((*r, r[1] // 10 * 10, r[1] // 10 * 10 + 10) for r in RECORDS)
    assert found(build, workers) == expected


@WORKERS
def test_one_without_columns_is_taken_record_by_record(workers: int) -> None:
    numbers = list(range(12))

    def found(build: Any) -> list[Any]:
        def whole(scope: Any) -> Any:
            mine = numbers[scope.index :: scope.peers]
            piles = [Pile(mine[i : i + 4]) for i in range(0, len(mine), 4)]
            return build(scope.batches_to_stream(piles))

        return sorted((record for _, record in collect(whole, workers)), key=str)

    def window(stream: Any) -> Any:
        return stream.window(ps.Tumbling(6), time=lambda x: x)[0].map(lambda w: sum(w.records))

    def fold(stream: Any) -> Any:
        folded, _ = stream.fold_window(
            lambda key, x, before: (*before, x), ps.Tumbling(6), lambda x: x, default=()
        )
        return folded.map(lambda w: w.value)

    def failed(stream: Any) -> Any:
        keyed = lambda x: x // (x - 5)  # noqa: E731
        return stream.aggregate(lambda key, x, n: n + 1, None, keyed, 0, on_error="route")[1]

    assert found(lambda s: s.map(lambda x: -x)) == sorted((-x for x in numbers), key=str)
    assert found(lambda s: s.filter(lambda x: x > 9)) == [10, 11]
    assert found(lambda s: s.exchange(lambda x: x % 3)) == sorted(numbers, key=str)
    assert found(lambda s: s.concat(s).distinct()) == sorted(numbers, key=str)
    assert found(lambda s: s.join(s, lambda x: x)) == sorted(
        zip(numbers, numbers, strict=True), key=str
    )
    assert found(window) == [15, 51]
    assert found(fold) == [tuple(range(6)), tuple(range(6, 12))]
    assert found(lambda s: failed(s).map(lambda f: f.record)) == [5]


def test_what_a_checkpoint_keeps_of_it_goes_to_the_workers_of_its_keys() -> None:
    store, kept = Store(), [("tag", lists(RECORDS))]
    store.take(KeyedBatches(lambda: kept, lambda *both: None, by_key("k")))
    got: list[tuple[Any, Any]] = []
    for index in range(2):
        mine: list[tuple[Any, Any]] = []
        copy = KeyedBatches(lambda: mine, lambda *both: mine.append(both), by_key("k"))  # noqa: B023
        copy.load(store.read(index, 2), index, 2)
        ours = [record for _, batch in mine for record in ListsKind().records(batch)]
        assert all(hash_key(k) % 2 == index for k, _, _ in ours)
        got += ours
    assert sorted(got) == sorted(RECORDS)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.floats(0, 1), st.text("ab")), max_size=20),
    st.integers(1, 4),
    st.data(),
)
def test_what_follows_for_a_kind_obeys_the_laws(records: Any, peers: int, data: Any) -> None:
    batch, kind = lists(records), ListsKind()
    assert list(kind.records(kind.decode(kind.encode(batch)))) == records
    places = np.array(
        data.draw(st.lists(st.integers(0, len(records) - 1))) if records else [], np.int64
    )
    assert list(kind.records(kind.take(batch, places))) == [records[p] for p in places.tolist()]
    hashes = kind.hashes(batch, "k")
    assert hashes.tolist() == hash_keys([r[0] for r in records]).tolist()
    parts = kind.exchange(batch, "k", peers)
    expected = [[r for r, h in zip(records, hashes, strict=True) if h % np.uint64(peers) == p]
                for p in range(peers)]  # fmt: skip
    assert [list(kind.records(part)) for part in parts] == expected
    groups = [(key, list(kind.records(part))) for key, part in kind.group(batch, "k", "a test")]
    assert [key for key, _ in groups] == list(dict.fromkeys(r[0] for r in records))
    assert all(part == [r for r in records if r[0] == key] for key, part in groups)
    assert kind.n_bytes(batch) >= 0


def test_columns_that_a_container_does_not_have_are_named() -> None:
    batch, kind = lists(RECORDS), ListsKind()
    with pytest.raises(ColumnError, match=r"a test is given the column 'z'.*\['k', 'x', 's'\]"):
        kind.column(batch, "z", "a test")
    with pytest.raises(ContainerError, match="derive its class from Kind"):
        register(set, object())  # type: ignore[arg-type]  # that is what is tested
