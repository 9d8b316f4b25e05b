"""Equal keys hash alike: between types, between rows and columns, between processes."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import os
import subprocess
import sys
import uuid
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers.columns import hash_arrow
from pointstamp.containers.keys import hash_key, hash_keys
from pointstamp.errors import KeyHashError
from pointstamp.kernels.hashing import NULL_HASH, mix


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int
    y: int
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass
class Thawed:
    x: int


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


UTC = datetime.UTC
NOON = datetime.datetime(2015, 9, 12, 12, 0, 0, 25)
IN_TOKYO = datetime.timezone(datetime.timedelta(hours=9))

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.binary(max_size=12)
    | st.decimals(allow_nan=False, places=3)
    | st.fractions(max_denominator=8)
    | st.datetimes()
    | st.dates()
    | st.uuids()
)
keys = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)


@pytest.mark.parametrize(
    "alike",
    [
        [1, 1.0, True, decimal.Decimal("1.00"), fractions.Fraction(1), np.int8(1), Level.LOW, (1,)],
        [0, 0.0, -0.0, False, np.float32(0)],
        [0.5, decimal.Decimal("0.50"), fractions.Fraction(1, 2), np.float16(0.5)],
        [2**63, 2.0**63, np.uint64(2**63), np.float64(2**63)],
        [2**70, 2.0**70, decimal.Decimal(2**70)],
        [decimal.Decimal("0.1"), fractions.Fraction(1, 10)],
        [math.nan, np.float32("nan"), -math.nan],
        ["red", Colour.RED, np.str_("red")],
        [(1, 2), Point(1, 2), Frozen(1, 2, "a"), Frozen(1, 2, "b")],
        [NOON, np.datetime64(NOON), np.datetime64(NOON, "ns")],
        [
            datetime.datetime(2020, 1, 1, 9, tzinfo=IN_TOKYO),
            datetime.datetime(2020, 1, 1, 0, tzinfo=UTC),
        ],
        [datetime.date(2020, 1, 1), *(np.datetime64("2020-01-01", unit) for unit in "DM")],
        [datetime.timedelta(seconds=2), np.timedelta64(2, "s")],
        [frozenset({1, 2, 3}), frozenset({3, 2, 1})],
    ],
    ids=lambda alike: repr(alike[0]),
)
def test_equal_keys_hash_alike(alike):
    hashes = {hash_key(key) for key in alike}
    assert len(hashes) == 1, dict(zip(map(repr, alike), map(hash_key, alike), strict=True))


def test_different_keys_differ():
    different = [0, 1, -1, 0.5, "", "a", "aa", (), (1, 2), (2, 1), (1, (2, 1)), None, NOON, 2**70]
    assert len({hash_key(key) for key in different}) == len(different)


@given(st.lists(keys, max_size=40))
def test_hashing_many_is_hashing_each(many):
    assert hash_keys(many).tolist() == [hash_key(key) for key in many]


@pytest.mark.parametrize(
    "of_one_type",
    [
        st.integers(-(2**63), 2**63 - 1),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.text(max_size=12),
        st.text(st.characters(codec="ascii"), max_size=12),
        st.binary(max_size=12),
        st.tuples(st.integers(-9, 9), st.text(max_size=3)),
        st.builds(Point, st.integers(-9, 9), st.integers(-9, 9)),
        st.integers(-9, 9).map(np.int32),
        st.datetimes().map(lambda moment: np.datetime64(moment, "us")),
        st.sampled_from(["D", "s", "us", "ns"]).map(lambda unit: np.datetime64("2020-01-01", unit)),
        st.just(()),
    ],
    ids=repr,
)
def test_hashing_many_of_one_type_is_hashing_each(of_one_type):
    @given(st.lists(of_one_type, min_size=13, max_size=20))
    def check(many):
        assert hash_keys(many).tolist() == [hash_key(key) for key in many]

    check()


def test_unpaired_surrogates_hash_too():
    assert hash_keys(["\ud800"] * 20).tolist() == [hash_key("\ud800")] * 20


def test_hashes_are_the_same_in_every_process():
    code = (
        "from pointstamp.containers.keys import hash_key;"
        "print(hash_key(('a', 1, None, 0.5, frozenset('abc'))))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {b"%d\n" % hash_key(("a", 1, None, 0.5, frozenset("abc")))}


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ([1, 2], "tuple"),
        ({"a": 1}, "tuple"),
        ({1, 2}, "tuple"),
        (Thawed(1), "frozen=True"),
        (object(), "frozen dataclasses"),
        (1j, "numbers"),
        (np.arange(2), "tuple"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_key_without_a_stable_hash_is_refused_with_advice(key, advice):
    with pytest.raises(KeyHashError, match=advice) as caught:
        hash_key((1, key))
    assert type(key).__name__ in str(caught.value)


ARROW_TYPES = [
    (pa.int8(), [1, None, -1]),
    (pa.uint64(), [1, None, 2**64 - 1]),
    (pa.float32(), [0.5, None, 3.0, math.nan]),
    (pa.bool_(), [True, None, False]),
    (pa.string(), ["a", None, "", "mehr als acht Bytes é"]),
    (pa.large_string(), ["a", None, "xyz"]),
    (pa.string_view(), ["a", None, "long enough to lie outside of the view"]),
    (pa.binary(), [b"a", None, b""]),
    (pa.binary(2), [b"ab", None, b"cd"]),
    (pa.uuid(), [uuid.UUID(int=7).bytes, None, uuid.UUID(int=8).bytes]),
    (pa.date32(), [datetime.date(2020, 1, 1), None, datetime.date(1960, 1, 1)]),
    (pa.date64(), [datetime.date(2020, 1, 1), None, datetime.date(1960, 1, 1)]),
    (pa.timestamp("s"), [datetime.datetime(2020, 1, 1), None]),
    (pa.timestamp("us"), [NOON, None]),
    (pa.timestamp("ns"), [NOON, None]),
    (pa.timestamp("ms", "Asia/Tokyo"), [datetime.datetime(2020, 1, 1, tzinfo=UTC), None]),
    (pa.time32("s"), [datetime.time(1, 2, 3), None]),
    (pa.time64("us"), [datetime.time(1, 2, 3, 4), None]),
    (pa.duration("ms"), [datetime.timedelta(seconds=1), None]),
    (pa.decimal128(10, 2), [decimal.Decimal("1.00"), None, decimal.Decimal("0.10")]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b", "a"]),
    (pa.list_(pa.int32()), [[1, 2], None, []]),
    (pa.struct({"x": pa.int32(), "y": pa.string()}), [{"x": 1, "y": "a"}, None]),
    (pa.null(), [None, None]),
]


def as_python_key(value):
    if isinstance(value, dict):
        return tuple(map(as_python_key, value.values()))
    return tuple(map(as_python_key, value)) if isinstance(value, list) else value


@pytest.mark.parametrize(("kind", "values"), ARROW_TYPES, ids=lambda part: str(part)[:30])
def test_a_column_hashes_like_its_values_whole_and_sliced(kind, values):
    column = pa.array(values, kind)
    expected = [hash_key(as_python_key(value)) for value in values]
    assert hash_arrow(column).tolist() == expected
    assert hash_arrow(column.slice(1)).tolist() == expected[1:]
    assert hash_arrow(column.slice(0, 0)).tolist() == []


def test_nulls_hash_like_none_and_unlike_zero():
    assert hash_arrow(pa.array([None, 0], pa.int64())).tolist() == [NULL_HASH, mix(0)]
    assert hash_key(None) == NULL_HASH


def test_a_map_column_is_refused():
    column = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))
    with pytest.raises(KeyHashError, match="map"):
        hash_arrow(column)
