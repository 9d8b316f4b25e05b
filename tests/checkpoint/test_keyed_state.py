"""Tables of keyed state: what they hand out makes the same table again, anywhere."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.checkpoint.bins import N_BINS, bins_for, bins_of, is_for
from pointstamp.checkpoint.keyed_columns import KeyedColumns
from pointstamp.checkpoint.keyed_state import KeyedBatches, KeyedRows, by_key
from pointstamp.containers import Arrays, hash_key
from pointstamp.errors import BuildError, ColumnError, SerializationError

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 30), st.integers()),
        st.tuples(st.just("pop"), st.integers(0, 30), st.none()),
        st.tuples(st.sampled_from(["cut", "clear"]), st.none(), st.none()),
    ),
    max_size=60,
)


class Store:
    """What a folder would have of a table: by bin, what was told of it."""

    def __init__(self) -> None:
        self.bins: dict[int, list[Any]] = {}
        self.kind = ""

    def take(self, table: Any) -> int:
        """A cut; how many bins it was of."""
        cut = table.take_delta()
        if cut.is_whole:
            self.bins.clear()
        for bin, change in cut.changes.items():
            before = [] if change.is_whole else self.bins.get(bin, [])
            self.bins[bin] = [*before, change.batch]
        return len(cut.changes)

    def read(self, index: int, peers: int) -> list[Any]:
        return [batch for bin in bins_for(index, peers) for batch in self.bins.get(bin, [])]

    def n_rows(self) -> int:
        return sum(batch.num_rows for batches in self.bins.values() for batch in batches)


@given(ACTIONS, st.integers(1, 5))
def test_what_was_cut_makes_the_same_tables_on_any_number_of_workers(
    actions: list[Any], peers: int
) -> None:
    table, store = KeyedRows(), Store()
    for what, key, value in actions:
        if what == "put":
            table[key] = value
        elif what == "pop":
            table.pop(key, None)
        elif what == "clear":
            table.clear()
        else:
            store.take(table)
    store.take(table)
    assert store.n_rows() <= 1.5 * len(table) + 1
    copies = []
    for index in range(peers):
        copy = KeyedRows()
        copy.load(store.read(index, peers), index, peers)
        assert all(hash_key(key) % peers == index for key in copy)
        copies.append(copy)
    assert sum(map(len, copies)) == len(table)
    assert {key: value for copy in copies for key, value in copy.items()} == table


@given(ACTIONS)
def test_a_table_that_was_loaded_goes_on_where_it_was(actions: list[Any]) -> None:
    store, table = Store(), KeyedRows()
    for key in range(20):
        table[key] = -1
    store.take(table)
    copy = KeyedRows()
    copy.load(store.read(0, 1), 0, 1)
    for what, key, value in actions:
        if what == "put":
            copy[key] = value
        elif what == "cut":
            store.take(copy)
        else:
            copy.pop(key, None)
    store.take(copy)
    last = KeyedRows()
    last.load(store.read(0, 1), 0, 1)
    assert last == copy


def test_every_way_to_change_a_dictionary_is_noticed() -> None:
    table, store = KeyedRows(), Store()
    table.update({n: n for n in range(100)})
    store.take(table)
    table["a"] = 1
    table.update(b=2)
    table |= {"c": 3}
    table.setdefault("d", 4)
    del table[0]
    assert table.pop(1) == 1
    table.popitem()
    table[5] += 1
    copy = KeyedRows()
    store.take(table)
    copy.load(store.read(0, 1), 0, 1)
    assert copy == table
    assert len(copy) == 101
    assert isinstance(table, KeyedRows)
    assert pickle.loads(pickle.dumps(table)) == dict(table)


def test_a_cut_is_of_what_has_changed_and_no_more() -> None:
    table, store = KeyedRows(), Store()
    table.update({n: n for n in range(1000)})
    assert store.take(table) == len({hash_key(n) % N_BINS for n in range(1000)})
    assert store.take(table) == 0
    table[7] = 8
    cut = table.take_delta()
    assert [(c.batch.num_rows, c.is_whole) for c in cut.changes.values()] == [(1, False)]
    table.begin_anew()
    assert sum(change.batch.num_rows for change in table.take_delta().changes.values()) == 1000


def test_what_was_handed_out_does_not_change() -> None:
    table = KeyedRows()
    table["a"] = [1]
    (change,) = table.take_delta().changes.values()
    table["a"].append(2)
    assert pickle.loads(change.batch["value"][0].as_py()) == [1]


def test_a_route_says_where_keys_are_if_not_by_themselves() -> None:
    table, store = KeyedRows(lambda key: key[0]), Store()
    table.update({(n % 2, n): n for n in range(20)})
    store.take(table)
    for index in range(3):
        copy = KeyedRows(lambda key: key[0])
        copy.load(store.read(index, 3), index, 3)
        assert set(copy) == {key for key in table if hash_key(key[0]) % 3 == index}


def test_what_cannot_be_pickled_is_named() -> None:
    table = KeyedRows()
    table["here"] = threading.Lock()
    with pytest.raises(SerializationError, match="under the key 'here' cannot be pickled: lock"):
        table.take_delta()


BATCHES = st.lists(st.lists(st.integers(-40, 40), max_size=30), max_size=8)


@given(BATCHES, st.integers(1, 4), st.integers(0, 7))
def test_columns_make_the_same_table_on_any_number_of_workers(
    batches: list[list[int]], peers: int, restart: int
) -> None:
    columns = {"key": "int64", "n": "int32", "weight": "float64"}
    tables, store = [KeyedColumns(columns)], Store()
    counts: Counter[int] = Counter()
    for number, keys in enumerate(batches):
        counts.update(keys)
        array = np.array(keys, np.int64)
        rows = tables[-1].rows(array)
        np.add.at(tables[-1]["n"], rows, 1)
        np.add.at(tables[-1]["weight"], rows, 0.5)
        tables[-1].touch(rows)
        store.take(tables[-1])
        if number == restart:  # and go on with what was stored
            tables.append(KeyedColumns(columns))
            tables[-1].load(store.read(0, 1), 0, 1)
    assert store.n_rows() <= 1.5 * len(tables[-1]) + 1
    found = {}
    for index in range(peers):
        copy = KeyedColumns(columns)
        copy.load(store.read(index, peers), index, peers)
        assert all(hash_key(key) % peers == index for key in copy["key"].tolist())
        found.update(zip(copy["key"].tolist(), copy["n"].tolist(), strict=True))
        assert (copy["weight"] * 2 == copy["n"]).all()
    assert found == counts


def test_columns_are_a_key_and_numbers() -> None:
    for columns in ({}, {"key": "int32"}, {"key": "int64", "name": "O"}):
        with pytest.raises(BuildError, match="a key, int64, and then columns of numbers"):
            KeyedColumns(columns)
    with pytest.raises(ColumnError, match=r"no column 'm'; there are \['key', 'n'\]"):
        KeyedColumns({"key": "int64", "n": "int64"})["m"]


@pytest.mark.parametrize("grows_only", [False, True])
@pytest.mark.parametrize("peers", [1, 3, 4])
def test_batches_are_cut_by_key_and_put_together_again(grows_only: bool, peers: int) -> None:
    kept: list[tuple[Any, Any]] = []
    table = KeyedBatches(lambda: kept, lambda *both: None, by_key("k"), grows_only=grows_only)
    store = Store()
    expected = []
    for tag in range(3):
        batch = Arrays(k=np.arange(50) % (7 + tag), v=np.arange(50) + tag)
        kept.append((tag, batch))
        table.add(tag, batch)
        store.take(table)
        expected += [(tag, *record) for record in batch]
    found: list[Any] = []
    for index in range(peers):
        got: list[tuple[Any, Any]] = []
        copy = KeyedBatches(lambda: got, lambda *b: got.append(b), by_key("k"))  # noqa: B023
        copy.load(store.read(index, peers), index, peers)
        for tag, batch in got:
            assert is_for(
                np.array([hash_key(int(k)) for k in batch["k"]], np.uint64), index, peers
            ).all()
            found += [(tag, *record) for record in batch]
    assert sorted(found) == sorted(expected)


def test_batches_that_were_let_go_are_forgotten() -> None:
    kept: list[tuple[Any, Any]] = [(None, [1, 2, 3])]
    table = KeyedBatches(lambda: kept, lambda *both: None, by_key(None), grows_only=True)
    store = Store()
    store.take(table)
    assert store.n_rows() == 3
    kept.clear()
    table.clear()
    store.take(table)
    assert store.n_rows() == 0


@given(st.integers(1, 300), st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_a_workers_keys_are_in_its_bins(peers: int, hashes: list[int]) -> None:
    array = np.array(hashes, np.uint64)
    for bin, worker in zip(
        bins_of(array).tolist(), (array % np.uint64(peers)).tolist(), strict=True
    ):
        assert bin in bins_for(worker, peers)
    owners = [is_for(array, index, peers) for index in range(peers)]
    assert (np.sum(owners, axis=0) == 1).all()
