"""Totals by an integer key or a text, against what Arrow makes of all records together.

Arrow has groups nearly in the order of their first records, so that answers are sorted here.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.containers import group_totals
from pointstamp.containers.arrow_groups import combined
from pointstamp.containers.group_totals import GroupTotals
from pointstamp.containers.named_aggregates import AggregatesByName
from pointstamp.containers.texts import is_text
from pointstamp.kernels.hashing import hash_bytes

KEYS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()),
    *(pa.date32(), pa.date64(), pa.timestamp("us", "UTC"), pa.duration("ns"), pa.time32("s")),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
]
NUMBERS = [pa.int16(), pa.int64(), pa.uint8(), pa.uint64(), pa.float64(), pa.date32()]


def column(rng: Any, n: int, kind: pa.DataType) -> Any:
    """Values with the least and the greatest among them, where they are integers."""
    if kind == pa.float64():
        return pa.array(rng.random(n) - 0.5)
    if is_text(kind):
        texts = [text[: rng.integers(0, 30)] for text in ["some text", "", "and ä longer one too"]]
        return pa.array([f"{texts[i % 3]}{i}" for i in rng.integers(0, 50, n)]).cast(kind)
    unit = 86_400_000 if kind == pa.date64() else 1
    words = rng.integers(0, 50, n) * unit
    column = pa.array(words, pa.int64())
    if pa.types.is_integer(kind) and kind.bit_width == 64:
        limits = np.iinfo(np.uint64 if kind == pa.uint64() else np.int64)
        values = words.tolist()
        values[-2:] = [limits.min, limits.max][-n:]
        return pa.array(values, kind)
    return (
        column.cast(pa.int32()).view(kind)
        if kind.bit_width == 32 and not pa.types.is_integer(kind)
        else column.cast(kind)
    )


def functions_of(kind: pa.DataType) -> list[str]:
    if kind == pa.float64():
        return ["sum", "count"]
    if kind == pa.date32():
        return ["min", "max", "count"]
    return ["sum", "count"] if kind == pa.uint64() else ["sum", "min", "max", "count"]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_totals_are_those_of_arrow(
    key: pa.DataType, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_totals, "TOGETHER", 70)
    rng = np.random.default_rng(4)
    aggregates = [("x", function) for function in functions_of(kind)]
    named = AggregatesByName("k", aggregates, "an example")
    parts = []
    for n in (100, 1, 300):
        fields = {"k": column(rng, n, key), "x": column(rng, n, kind)}
        parts.append(named.part([pa.RecordBatch.from_pydict(fields)]))
    totals = named.totals(parts[0])
    assert totals is not None
    assert all(totals.add(part) for part in parts)
    found, wanted = totals.batch(), combined(parts, "k", aggregates, "an example")
    assert found.schema == wanted.schema
    assert found.num_rows > 40
    assert found.sort_by("k").equals(wanted.sort_by("k"))
    again = pickle.loads(pickle.dumps(totals))
    assert again.batch().equals(found)
    assert again.add(parts[0])
    wanted = combined([*parts, parts[0]], "k", aggregates, "an example")
    assert again.batch().sort_by("k").equals(wanted.sort_by("k"))


@pytest.mark.parametrize(
    ("key", "kind", "function"),
    [
        (pa.float64(), pa.int64(), "sum"),
        (pa.string_view(), pa.int64(), "sum"),
        (pa.int64(), pa.decimal128(30, 2), "sum"),
        (pa.int64(), pa.uint64(), "max"),
        (pa.int64(), pa.float64(), "min"),
        (pa.int64(), pa.int64(), "product"),
    ],
    ids=str,
)
def test_what_arrow_adds_up_has_no_table(
    key: pa.DataType, kind: pa.DataType, function: str
) -> None:
    fields = {"k": pa.array([1, 2]).cast(key), "x": pa.array([1, 2]).cast(kind)}
    named = AggregatesByName("k", [("x", function)], "an example")
    assert named.totals(named.part([pa.RecordBatch.from_pydict(fields)])) is None


def test_a_part_of_other_types_is_not_added() -> None:
    part = pa.RecordBatch.from_pydict({"k": [1, 2], "x": [3, 4]})
    totals = GroupTotals(part.schema, ["sum"])
    for name in ("k", "x"):
        narrow = part.set_column(
            part.schema.get_field_index(name), name, part[name].cast(pa.int32())
        )
        assert not totals.add(narrow)
        assert totals.batch().num_rows == 0


def test_a_part_with_a_null_is_not_added() -> None:
    part = pa.RecordBatch.from_pydict({"k": [1, 2], "x": [3, 4]})
    totals = GroupTotals(part.schema, ["sum"])
    for fields in ({"k": [1, None], "x": [3, 4]}, {"k": [1, 2], "x": [None, 4]}):
        assert not totals.add(pa.RecordBatch.from_pydict(fields))
        assert totals.batch().num_rows == 0
    assert totals.add(part)
    assert totals.batch().equals(part)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary()], ids=str)
def test_texts_are_told_apart_by_each_byte_and_not_by_hashes(
    kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nearly_one(bounds: Any, data: Any) -> Any:  # up to eight bytes it is a hash for each text
        return np.where(np.diff(bounds) > 8, np.uint64(1), hash_bytes(bounds, data))

    monkeypatch.setattr(group_totals, "hash_bytes", nearly_one)
    texts = ["", "\0", "\0\0"]
    for n_bytes in (1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40):
        text = "x" * n_bytes
        texts += [text, *(text[:at] + "y" + text[at + 1 :] for at in range(n_bytes))]
    keys = pa.array(texts * 2).cast(kind)
    part = pa.RecordBatch.from_arrays([keys, pa.array([1] * len(keys))], ["k", "x"])
    totals = GroupTotals(part.schema, ["sum"])
    assert totals.add(part.slice(3))
    assert totals.add(part.slice(0, 3))
    assert totals.batch().to_pydict() == {
        "k": (keys[3:]).to_pylist()[: len(texts)],
        "x": [2] * len(texts),
    }


def test_texts_that_would_be_too_long_for_one_column_are_not_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_totals, "MOST_BYTES", 5)
    for kind, fits in ((pa.string(), False), (pa.large_string(), True)):
        part = pa.RecordBatch.from_arrays([pa.array(["abc"]).cast(kind), pa.array([1])], ["k", "x"])
        totals = GroupTotals(part.schema, ["sum"])
        assert totals.add(part)
        assert totals.add(part) is fits
        assert totals.batch()["x"].to_pylist() == [1 + fits]


@pytest.mark.parametrize("is_sent", [True, False])
def test_parts_of_batches_of_other_types_are_made_by_arrow(is_sent: bool) -> None:
    named = AggregatesByName("k", [("k", "count")], "an example", is_sent=is_sent)
    keys = [[1, 1, 2] * 500, [1.5, 1.5] * 900, ["a", "b", None] * 500, ["a", "b", "b"] * 500]
    for values in (*keys, *keys[::-1]):
        part = named.part([pa.RecordBatch.from_pydict({"k": values})])
        whole = combined([part], "k", [("k", "count")], "an example")
        found = dict(zip(whole["k"].to_pylist(), whole["k_count"].to_pylist(), strict=True))
        assert found == {k: values.count(k) if k is not None else 0 for k in values}
