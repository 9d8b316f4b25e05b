"""Small record batches are split in one go, and as large ones are, record for record."""

from __future__ import annotations

import datetime
import decimal
import gc
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pointstamp
from pointstamp.containers import small_columns
from pointstamp.containers.arrays import Arrays
from pointstamp.containers.kind import Kind
from pointstamp.containers.registry import kind_of
from pointstamp.containers.small_columns import SMALL_RECORDS, SmallSplits
from pointstamp.errors import ColumnError
from pointstamp.kernels.deal import MAX_DEALT

IS_COMPILED = pointstamp.build_info() == "compiled"

rng = np.random.default_rng(3)
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def columns(n):
    """Columns of all types that are split so, of so many records."""
    made = {name: pa.array(rng.integers(0, 1 << 62, n).astype(name)) for name in INTEGERS} | {
        f"negative {name}": pa.array(-rng.integers(0, 9, n).astype(name)) for name in INTEGERS[:4]
    }
    made["high"] = pa.array(np.full(n, (1 << 64) - 1, np.uint64))
    for name in ("float32", "float64"):
        values = rng.choice([0.0, -0.0, 1.0, 1.5, -3.0, np.nan, np.inf, 1e18, 1.5e19, 1e30], n)
        made[name] = pa.array(values.astype(name))
    texts = ["", "a", "seven..", "exactly8", "nine bytes", "ä\U0001f600", "x" * 100]
    made["text"] = pa.array(rng.choice(texts, n).tolist())
    made["octets"] = pa.array([text.encode() for text in rng.choice(texts, n).tolist()])
    made["day"] = pa.array([datetime.date(2026, 1, 1 + i % 28) for i in range(n)])
    made["moment"] = pa.array(rng.integers(0, 1 << 40, n)).cast(pa.timestamp("us"))
    made["money"] = pa.array([decimal.Decimal(i) for i in range(n)], pa.decimal128(20, 2))
    return made


KEYS = [*INTEGERS, *(f"negative {name}" for name in INTEGERS[:4]), "high", "float32", "float64"]
KEYS += ["text", "octets", ["int64"], ["text", "int8"], ("float64", "octets", "uint16")]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("peers", [1, 2, 3, 4, 7])
def test_the_split_is_that_of_large_batches(key, peers):
    batch = pa.record_batch(columns(50))
    kind = kind_of(batch)
    for part in (batch, batch.slice(13, 20), batch.slice(49), batch.slice(3, 0)):
        expected = Kind.exchange(kind, part, key, peers)
        found = SmallSplits().split(part, key, peers)
        assert (found is not None) == IS_COMPILED
        found = kind.exchange(part, key, peers)
        assert len(found) == peers
        for one, other in zip(found, expected, strict=True):
            one.validate(full=True)
            assert one.schema.equals(part.schema, check_metadata=True)
            assert one.to_pydict().keys() == other.to_pydict().keys()
            # By their bytes, as NaN is not equal to itself.
            for a, b in zip(one.columns, other.columns, strict=True):
                assert repr(a.to_pylist()) == repr(b.to_pylist())


def test_the_key_may_be_all_columns():
    batch = pa.record_batch({"a": np.arange(20), "b": [str(i) for i in range(20)]})
    kind = kind_of(batch)
    assert kind.exchange(batch, None, 3) == Kind.exchange(kind, batch, None, 3)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"k": [1, None, 3]}, "k"),
        ({"k": [1, 2, 3], "v": [None, 1.5, 2.5]}, "k"),
        ({"k": [1, 2, 3], "v": [True, False, True]}, "k"),
        ({"k": [True, False, True]}, "k"),
        ({"k": [[1], [2], [3]]}, "k"),
        ({"k": [1, 2, 3], "v": [{"a": 1}] * 3}, "k"),
        ({"k": pa.array(["a", "b", "a"]).dictionary_encode()}, "k"),
        ({"k": pa.array([1, 2, 3], pa.timestamp("s"))}, "k"),
        ({"k": pa.array(["a", "b", "c"], pa.large_string())}, "k"),
        ({"k": [1, 2, 3]}, lambda batch: batch.column(0)),
    ],
)
def test_others_are_split_as_large_ones(given, key):
    batch = pa.record_batch(given)
    kind = kind_of(batch)
    assert SmallSplits().split(batch, key, 2) is None
    assert kind.exchange(batch, key, 2) == Kind.exchange(kind, batch, key, 2)


def test_a_mask_without_nulls_is_no_hindrance():
    column = pa.array([1, None, 3, 4]).slice(2)
    batch = pa.record_batch({"k": column})
    assert batch.column(0).null_count == 0
    kind = kind_of(batch)
    assert kind.exchange(batch, "k", 2) == Kind.exchange(kind, batch, "k", 2)


@pytest.mark.parametrize("peers", [1, 2, 3, 9, MAX_DEALT, MAX_DEALT + 1])
@pytest.mark.parametrize("form", ["arrow", "arrays"])
def test_large_batches_go_where_their_hashes_say(form, peers):
    n = 3 * SMALL_RECORDS
    of_all = columns(n)
    numbers = {name: column for name, column in of_all.items() if name in KEYS and name != "text"}
    numbers.pop("octets")
    for given, keys in (
        (numbers, [*INTEGERS, "float64", ["int8"], ["int8", "float32"], None]),
        (of_all, ["int64", "text"]),
        ({"k": pa.array([None, *range(n)])}, ["k"]),
        ({"k": pa.array([True, False] * n)}, ["k", None]),
    ):
        if form == "arrays" and given is not numbers:
            continue
        batch = pa.record_batch(given).slice(7)
        if form == "arrays":
            batch = Arrays({name: column.to_numpy() for name, column in numbers.items()})
        kind = kind_of(batch)
        for key in keys:
            part_of = kind.hashes(batch, key) % np.uint64(peers)
            parts = kind.exchange(batch, key, peers)
            assert len(parts) == peers
            for peer, part in enumerate(parts):
                expected = kind.take(batch, np.flatnonzero(part_of == peer))
                for one, other in zip(
                    kind.to_arrow(part).columns, kind.to_arrow(expected).columns, strict=True
                ):
                    one.validate(full=True)
                    assert one.type == other.type
                    # By their bytes, as NaN is not equal to itself.
                    assert repr(one.to_pylist()) == repr(other.to_pylist())


def test_large_batches_are_left_to_the_other_split():
    batch = pa.record_batch({"k": np.arange(SMALL_RECORDS + 1)})
    assert SmallSplits().split(batch, "k", 2) is None
    assert (SmallSplits().split(batch.slice(1), "k", 2) is not None) == IS_COMPILED


def test_a_column_that_is_not_there_is_named():
    batch = pa.record_batch({"k": [1]})
    with pytest.raises(ColumnError, match=r"cannot be keyed by 'x': its columns are \['k'\]"):
        kind_of(batch).exchange(batch, "x", 2)


def test_schemas_may_change_and_are_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(small_columns, "_MAX_PLANS", 3)
    splits = SmallSplits()
    for number in range(10):
        for values in ([1, 2], ["a", "b"], [1.5, 2.5]):
            batch = pa.record_batch({f"k{number}": values})
            parts = splits.split(batch, f"k{number}", 2)
            expected = Kind.exchange(kind_of(batch), batch, f"k{number}", 2)
            assert parts == (expected if IS_COMPILED else None)
        assert len(splits._plans) <= 3


def test_memory_lives_as_long_as_what_refers_to_it_and_no_longer():
    """Columns outlive their batch, in any thread."""
    gc.collect()
    before = pa.total_allocated_bytes()
    kept = []
    for _ in range(200):
        batch = pa.record_batch(columns(30))
        parts = kind_of(batch).exchange(batch, "int64", 3)
        kept.append((parts[0].column(0), parts[1].slice(1), parts[2].column("text")))
        kept.append(batch.column("text"))
    del batch, parts
    for own in kept[::2]:
        for each in own:
            each.validate(full=True)
    del own, each
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert pa.total_allocated_bytes() <= before


def test_memory_is_given_back():
    batch = pa.record_batch({"k": np.arange(200), "v": ["x" * 100] * 200})
    kind = kind_of(batch)

    def resident_bytes():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for _ in range(100):
        kind.exchange(batch, "k", 2)
    before = resident_bytes()
    for _ in range(5_000):
        kind.exchange(batch, "k", 2)
    assert resident_bytes() - before < 30 << 20  # each took 20 KiB and more
