"""Small batches as blocks: split and put together as NumPy does it, in any stride."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.blocks import (
    HEAD,
    MAX_COLUMNS,
    MAX_RECORDS,
    OTHER,
    REAL,
    SIGNED,
    UNSIGNED,
    pack_columns,
    padded,
    split_columns,
)
from pointstamp.kernels.hashing import combine_columns, hash_column

KINDS = {"i": SIGNED, "u": UNSIGNED, "f": REAL}
DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
OTHERS = ["?", "S3", "U2", "c16", "M8[s]", "m8[us]", "f2", ">i4"]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e18, 1.5e19, 1e30]


@st.composite
def columns(draw, n, dtypes=(*DTYPES, *OTHERS)):
    """One column of `n` values, which may lie apart from each other, or backwards."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    stride = draw(st.sampled_from([1, 1, 2, -1, 3]))
    if dtype.kind == "f" and dtype.itemsize > 2:
        values = np.array(draw(st.lists(st.sampled_from(FLOATS), min_size=n, max_size=n)), dtype)
    else:
        octets = draw(st.binary(min_size=n * dtype.itemsize, max_size=n * dtype.itemsize))
        if dtype.kind == "U":
            octets = bytes(len(octets))
        values = np.frombuffer(octets, dtype) if n else np.empty(0, dtype)
    apart = np.zeros(n * abs(stride), dtype)[::stride]
    apart[:] = values
    return apart


def described(given_columns):
    """The kinds and the widths."""
    kinds = bytes(
        KINDS.get(c.dtype.kind, OTHER)
        if c.dtype.isnative and (c.dtype.kind != "f" or c.itemsize > 2)
        else OTHER
        for c in given_columns
    )
    return kinds, bytes(c.itemsize for c in given_columns)


def read(block, dtypes):
    """The columns of a block, worked out from what is said of it."""
    n = int.from_bytes(block[:8], "little")
    assert block[8:HEAD] == bytes(8)
    found = []
    at = HEAD
    for dtype in dtypes:
        size = n * dtype.itemsize
        found.append(block[at : at + size])
        assert block[at + size : at + padded(size)] == bytes(padded(size) - size)
        at += padded(size)
    assert at == len(block)
    return found


@st.composite
def batches(draw, min_n=0):
    n = draw(st.integers(min_n, 20))
    return [draw(columns(n, DTYPES)), *draw(st.lists(columns(n), max_size=4))]


@given(batches(), st.integers(1, 9), st.data())
def test_each_part_has_its_records_in_order_and_the_twin_agrees(batch, n_parts, data):
    kinds, widths = described(batch)
    hashed = [k for k, kind in enumerate(kinds) if kind != OTHER]
    keys = data.draw(st.lists(st.sampled_from(hashed), min_size=1, max_size=3))
    found = split_columns(batch, kinds, widths, bytes(keys), n_parts)
    assert found == split_columns.plain(batch, kinds, widths, bytes(keys), n_parts)
    hashes = combine_columns([hash_column(batch[k]) for k in keys])
    assert len(found) == n_parts
    for part, block in enumerate(found):
        chosen = hashes % np.uint64(n_parts) == part
        expected = [column[chosen].tobytes() for column in batch]
        assert read(block, [column.dtype for column in batch]) == expected
    # A block is a batch, too.
    block = pack_columns([batch], widths)
    assert split_columns(block, kinds, widths, bytes(keys), n_parts) == found
    assert split_columns.plain(block, kinds, widths, bytes(keys), n_parts) == found


@given(batches(), st.lists(st.integers(0, 20), min_size=1, max_size=4), st.data())
def test_what_is_put_together_has_all_records_in_order(batch, cuts, data):
    _, widths = described(batch)
    bounds = [0, *sorted(min(cut, len(batch[0])) for cut in cuts), len(batch[0])]
    parts = [[column[start:stop] for column in batch] for start, stop in itertools.pairwise(bounds)]
    sources = [pack_columns([part], widths) if data.draw(st.booleans()) else part for part in parts]
    block = pack_columns(sources, widths)
    assert block == pack_columns.plain(sources, widths) == pack_columns([batch], widths)
    expected = [column.tobytes() for column in batch]
    assert read(block, [column.dtype for column in batch]) == expected


def test_of_no_key_all_records_are_in_the_first_part_of_one():
    batch = [np.arange(5)]
    (block,) = split_columns(batch, bytes([SIGNED]), b"\x08", b"\x00", 1)
    assert block == pack_columns([batch], b"\x08")


@pytest.mark.parametrize(
    ("source", "widths"),
    [
        ([], b""),
        ([np.arange(3)], b"\x04"),
        ([np.arange(3), np.arange(4)], b"\x08\x08"),
        ([np.arange(3)], b"\x08\x08"),
        ([np.zeros((3, 1), np.int64)], b"\x08"),
        (b"", b"\x08"),
        (bytes(HEAD - 1), b"\x08"),
        ((3).to_bytes(HEAD, "little") + bytes(16), b"\x08"),
        ((3).to_bytes(HEAD, "little") + bytes(48), b"\x08"),
        ((1 << 62).to_bytes(HEAD, "little"), b"\x08"),
        (b"\xff" * HEAD, b"\x08"),
    ],
)
def test_what_is_no_such_batch_is_refused(source, widths):
    kinds = bytes([SIGNED]) * len(widths)
    for split in (split_columns, split_columns.plain):
        with pytest.raises(ValueError):
            split(source, kinds, widths, b"\x00", 2)
    for pack in (pack_columns, pack_columns.plain):
        with pytest.raises(ValueError):
            pack([source], widths)


def test_there_are_limits():
    many = [np.arange(MAX_RECORDS + 1)]
    wide = [np.arange(3)] * (MAX_COLUMNS + 1)
    for split in (split_columns, split_columns.plain):
        with pytest.raises(ValueError, match="not split so"):
            split(many, bytes([SIGNED]), b"\x08", b"\x00", 2)
        with pytest.raises(ValueError, match="not split so"):
            split(wide, bytes([SIGNED]) * len(wide), b"\x08" * len(wide), b"\x00", 2)
        with pytest.raises(ValueError, match="not split so"):
            split([np.arange(3)], bytes([SIGNED]), b"\x08", b"\x00", 0)
        with pytest.raises(ValueError, match="kinds"):
            split([np.arange(3)], b"", b"\x08", b"\x00", 2)
        with pytest.raises(IndexError):
            split([np.arange(3)], bytes([SIGNED]), b"\x08", b"\x07", 2)
    for pack in (pack_columns, pack_columns.plain):
        with pytest.raises(ValueError, match="not packed so"):
            pack([wide], b"\x08" * len(wide))
        assert pack([many], b"\x08") == pack_columns.plain([many], b"\x08")
