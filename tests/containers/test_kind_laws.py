"""The laws of `Kind` over every kind there is, against a model that goes record by record.

Rows, Arrow record batches, NumPy columns, a kind of the user's own with columns and one without,
and what tables and data frames become where they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pointstamp.containers import Arrays, hash_keys, kind_of, register, registry
from pointstamp.containers.frames import record_batches
from pointstamp.containers.keys import canonical_key
from pointstamp.errors import ColumnError, ContainerError, DataError
from tests.containers.test_own_container import Lists, ListsKind, Pile, PileKind

LAW = settings(max_examples=max(20, settings.default.max_examples // 5))
"""Each law is tried over ten forms, so fewer examples of each do."""

NAMES = ("k", "s", "f")
Record = tuple[Any, ...]


def by_column(records: list[Record]) -> dict[str, list[Any]]:
    return {name: [record[i] for record in records] for i, name in enumerate(NAMES)}


def as_arrays(records: list[Record]) -> Arrays:
    k, s, f = by_column(records).values()
    return Arrays(k=np.array(k, np.int64), s=np.array(s, object), f=np.array(f, np.bool_))


SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("f", pa.bool_())])


def as_columns(records: list[Record]) -> Any:
    return pa.RecordBatch.from_pydict(by_column(records), schema=SCHEMA)


def converted(table: Any) -> Any:
    """What an operator is given of a table: none of it is sent if it is empty."""
    batches = list(record_batches(table))
    assume(batches)
    return kind_of(batches[0]).concat(batches)


@dataclass(frozen=True)
class Form:
    """How to make a container of one kind of the same records."""

    name: str
    make: Callable[[list[Record]], Any]
    has_columns: bool = True
    has_nulls: bool = False

    def chosen(self, place: int) -> Any:
        """What chooses a field."""
        return NAMES[place] if self.has_columns else (lambda record: record[place])

    @property
    def pair(self) -> Any:
        """What chooses two."""
        return ["s", "k"] if self.has_columns else (lambda record: (record[1], record[0]))


FORMS = [
    Form("rows", list, has_columns=False),
    Form("piles", Pile, has_columns=False),
    Form("arrays", as_arrays),
    Form("columns", as_columns),
    Form("columns with nulls", as_columns, has_nulls=True),
    Form("lists", lambda records: Lists(by_column(records))),
    Form("table", lambda records: converted(pa.table(by_column(records), schema=SCHEMA))),
    Form(
        "table of chunks",
        lambda records: converted(
            pa.Table.from_batches([as_columns([record]) for record in records], schema=SCHEMA)
        ),
    ),
    Form("pandas", lambda records: converted(pd.DataFrame(by_column(records)))),
    Form(
        "reader",
        lambda records: converted(pa.table(by_column(records), schema=SCHEMA).to_reader(3)),
    ),
]


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    """The kinds of this module, for its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_kinds", dict(registry._kinds))
        patch.setattr(registry, "_names", dict(registry._names))
        register(Lists, ListsKind())
        register(Pile, PileKind())
        yield


@pytest.fixture(scope="module", params=FORMS, ids=lambda form: form.name)
def form(request: Any) -> Form:
    found: Form = request.param
    return found


def records_of(form: Form) -> st.SearchStrategy[list[Record]]:
    null = st.none() if form.has_nulls else st.nothing()
    record = st.tuples(
        st.integers(-3, 3) | null, st.text("ab", max_size=2) | null, st.booleans() | null
    )
    return st.lists(record, max_size=20)


def listed(batch: Any) -> list[Any]:
    return list(kind_of(batch).records(batch))


@LAW
@given(st.data())
def test_some_of_the_records(form: Form, data: Any) -> None:
    records = data.draw(records_of(form))
    batch = form.make(records)
    kind = kind_of(batch)
    assert kind.length(batch) == len(records)
    assert listed(batch) == records
    places = data.draw(st.lists(st.integers(0, len(records) - 1))) if records else []
    taken = kind.take(batch, np.array(places, np.int64))
    assert type(taken) is type(batch)
    assert listed(taken) == [records[place] for place in places]
    flag = form.chosen(2)
    assert listed(kind.filter(batch, flag, "a test")) == [r for r in records if r[2]]
    assert listed(kind.filter(batch, flag, "a test", keep=False)) == [
        r for r in records if not r[2]
    ]
    at = data.draw(st.integers(0, len(records)))
    parts = [kind.slice(batch, 0, at), kind.slice(batch, at, len(records))]
    assert [listed(part) for part in parts] == [records[:at], records[at:]]
    assert listed(kind.concat(parts)) == records
    assert listed(kind.decode(kind.encode(batch))) == records


@LAW
@given(st.data())
def test_the_first_of_equal_records_is_unseen(form: Form, data: Any) -> None:
    records = data.draw(records_of(form))
    seen = set(data.draw(st.lists(st.sampled_from(records)))) if records else set()
    expected = [r for r in dict.fromkeys(records) if r not in seen]
    batch = form.make(records)
    new = kind_of(batch).unseen(batch, seen)
    assert (new is None) == (not expected)
    assert new is None or listed(new) == expected
    assert seen >= set(records)
    assert kind_of(batch).unseen(batch, seen) is None or not records


@LAW
@given(st.data())
def test_columns_are_chosen_added_and_put_beside(form: Form, data: Any) -> None:
    records = data.draw(records_of(form))
    others = data.draw(st.permutations(records))
    batch, other = form.make(records), form.make(others)
    kind = kind_of(batch)
    pairs = kind.paired(batch, other, ["k"], "_right")
    if not form.has_columns:
        assert pairs == list(zip(records, others, strict=True))
        with pytest.raises(ColumnError, match="has none"):
            kind.with_columns(batch, {"n": range(len(records))})
        with pytest.raises(ContainerError, match="map_batches"):
            kind.to_arrow(batch)
        assert listed(kind.as_columns(batch, as_arrays)) == records
        return
    assert kind.names(batch) == list(NAMES)
    for place, name in enumerate(NAMES):
        assert values(kind.column(batch, name, "a test")) == [r[place] for r in records]
    wider = kind.with_columns(batch, {"n": np.arange(len(records))})
    assert listed(wider) == [(*r, i) for i, r in enumerate(records)]
    assert values(kind.column(wider, "n", "a test")) == list(range(len(records)))
    assert kind.as_columns(batch, as_arrays) is batch
    fewer = kind.select(batch, ["s", "f"])
    assert [values(kind.column(fewer, name, "a test")) for name in ("s", "f")] == [
        [r[place] for r in records] for place in (1, 2)
    ]
    assert listed(pairs) == [(*a, *b[1:]) for a, b in zip(records, others, strict=True)]
    assert kind.names(pairs) == [*NAMES, "s_right", "f_right"]
    assert listed(kind.to_arrow(batch)) == records


def values(column: Any) -> list[Any]:
    """As Python has them."""
    convert = getattr(column, "to_pylist", None) or getattr(column, "tolist", None)
    return list(convert() if convert else column)


@LAW
@given(st.data(), st.integers(1, 4))
def test_keys_groups_and_parts(form: Form, data: Any, peers: int) -> None:
    records = data.draw(records_of(form))
    batch = form.make(records)
    kind = kind_of(batch)
    assert kind.keys(batch, None, "a test") == records
    for key, of in [
        (form.chosen(0), lambda r: r[0]),
        (form.chosen(1), lambda r: r[1]),
        (form.pair, lambda r: (r[1], r[0])),
        (None, lambda r: r),
    ]:
        keys = list(map(of, records))
        assert kind.keys(batch, key, "a test") == keys
        hashes = hash_keys(keys)
        assert kind.hashes(batch, key).tolist() == hashes.tolist()
        to = (hashes % np.uint64(peers)).tolist()
        expected = [
            [r for r, peer in zip(records, to, strict=True) if peer == p] for p in range(peers)
        ]
        assert list(map(listed, kind.exchange(batch, key, peers))) == expected
        assert list(map(listed, kind.split(batch, hashes, peers))) == expected
        if key is None:
            continue
        groups = [(found, listed(part)) for found, part in kind.group(batch, key, "a test")]
        assert groups == [
            (wanted, [r for r in records if of(r) == wanted]) for wanted in dict.fromkeys(keys)
        ]


class NotWanted(Exception):
    """What the user's code of these tests raises."""


@LAW
@given(st.data())
def test_code_is_called_with_units_and_its_failures_are_theirs(form: Form, data: Any) -> None:
    records = data.draw(records_of(form).filter(bool))
    batch = form.make(records)
    kind = kind_of(batch)
    units = [batch] if form.has_columns else records
    assert kind.units(batch) == units
    bad = set(data.draw(st.lists(st.sampled_from(records))))

    def check(part: Any) -> None:
        if bad.intersection(listed(part)):
            raise NotWanted

    noted: list[tuple[Any, int]] = []
    passed = kind.passing(
        batch,
        check,
        lambda unit, error, n: noted.append((unit, n)) if type(error) is NotWanted else None,
    )
    if form.has_columns:
        expected, failed = ([], [(batch, len(records))]) if bad else (records, [])
        with pytest.raises(ContainerError, match=r"a test takes one record at a time.*map_batches"):
            kind.listed(batch, "a test")
    else:
        expected = [r for r in records if r not in bad]
        failed = [(r, 1) for r in records if r in bad]
        assert kind.listed(batch, "a test") == records
        with pytest.raises(ColumnError, match="names columns"):
            kind.check_chosen(batch, "k")
    kind.check_chosen(batch, form.chosen(0))
    assert noted == failed
    assert (passed is None) == (not expected)
    assert passed is None or listed(passed) == expected


@LAW
@given(st.data())
def test_what_is_kept_is_in_the_order_of_times_where_units_are_records(
    form: Form, data: Any
) -> None:
    records = data.draw(records_of(form))
    times = data.draw(st.lists(st.integers(0, 5), min_size=len(records), max_size=len(records)))
    batch = form.make(records)
    kept = kind_of(batch).with_times(batch, np.array(times, np.int64))
    ordered = kind_of(kept).by_times(kept)
    by_time = sorted(zip(times, records, strict=True), key=lambda timed: timed[0])
    assert listed(ordered) == (records if form.has_columns else [r for _, r in by_time])


@LAW
@given(st.data())
def test_parts_are_sent_with_what_is_said_of_them_or_apart(form: Form, data: Any) -> None:
    parts = data.draw(st.lists(records_of(form).filter(bool), min_size=1, max_size=4))
    batches = list(map(form.make, parts))
    kind = kind_of(batches[0])

    def to_columns(whole: Any, numbers: Any) -> Any:
        return kind.with_columns(whole, {"part": numbers})

    found = kind.labelled(batches, lambda n, part: [(n, kind.length(part))], to_columns)
    if form.has_columns:
        assert listed(found) == [(*r, n) for n, part in enumerate(parts) for r in part]
    else:
        assert found == [(n, len(part)) for n, part in enumerate(parts)]
    sent = kind.kept_apart(batches)
    assert sent == ([parts] if form.name == "rows" else batches)


@LAW
@given(st.data())
def test_pairs_are_keys_and_values(form: Form, data: Any) -> None:
    records = data.draw(records_of(form).filter(bool))
    batch = form.make(records)
    kind = kind_of(batch)
    key = form.chosen(1)
    if form.name.partition(" ")[0] in ("columns", "table", "pandas", "reader"):
        for refused in (kind.keyed, lambda *of: kind.keyed_pairs(of[0], of[2])):
            with pytest.raises(ContainerError, match="name the columns of the key"):
                refused(batch, key, "a test")
        return
    assert list(kind.keyed(batch, key, "a test")) == [(r[1], r) for r in records]
    if form.has_columns:
        assert list(kind.keyed_pairs(batch, "a test")) == [(r, r) for r in records]
        return
    with pytest.raises(DataError, match="a test without a key takes records that are pairs"):
        list(kind.keyed_pairs(batch, "a test"))
    pairs = kind.concat([type(batch)((r[1], r[2]) for r in records)])
    assert list(kind.keyed_pairs(pairs, "a test")) == [(canonical_key(r[1]), r[2]) for r in records]
