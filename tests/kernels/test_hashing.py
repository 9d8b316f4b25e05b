"""Hashes are pinned, agree between forms, and kernels agree with their twins."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from pointstamp.errors import KeyHashError
from pointstamp.kernels import hashing

INT_DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"]


def reference_mix(word: int) -> int:
    """The published finalizer, written down again."""
    z = (word + 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def reference_text(data: bytes) -> int:
    hash = int.from_bytes(b"text", "big") + len(data)
    padded = data + bytes(-len(data) % 8)
    for (word,) in struct.iter_unpack("<Q", padded):
        hash = reference_mix((hash * 0xD6E8FEB86659FD93 + word) % 2**64)
    return reference_mix(hash)


def packed(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, texts)])
    return offsets, np.frombuffer(b"".join(texts), np.uint8)


def test_the_mix_gives_the_published_outputs_of_splitmix64():
    gamma = 0x9E3779B97F4A7C15
    outputs = [hashing.mix(1234567 + k * gamma) for k in range(3)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_hashes_never_change():
    """Data at rest may be placed by them: these numbers are for ever."""
    assert hashing.mix(0) == 0xE220A8397B1DCDAF
    assert hashing.mix(-1) == reference_mix(2**64 - 1) == hashing.hash_ints(np.array([-1]))[0]
    assert reference_mix(int.from_bytes(b"null", "big")) == hashing.NULL_HASH
    assert reference_mix(int.from_bytes(b"empty", "big")) == hashing.EMPTY_HASH
    assert hashing.hash_text(b"") == reference_mix(0x74657874)
    half = struct.unpack("<Q", struct.pack("<d", 0.5))[0]
    assert hashing.hash_float(0.5) == reference_mix(half)


@given(st.binary(max_size=40))
def test_text_hashes_as_written_down(data):
    assert hashing.hash_text(data) == reference_text(data)


@pytest.mark.parametrize("dtype", INT_DTYPES)
def test_five_hashes_alike_in_every_width(dtype):
    assert hashing.hash_ints(np.array([5], dtype)).tolist() == [hashing.mix(5)]


@given(nps.arrays(np.uint64, st.integers(0, 50)))
def test_words_agree_with_the_twin_and_one_by_one(words):
    compiled = hashing.hash_words(hashing.contiguous(words))
    assert compiled.tolist() == hashing.hash_words.plain(words).tolist()
    assert compiled.tolist() == [reference_mix(word) for word in words.tolist()]


edge_floats = st.sampled_from(
    [0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**63, -(2.0**63), 2.0**64, 1e300, 0.5, -3.0]
)


@given(st.lists(st.floats() | edge_floats))
def test_floats_agree_with_the_twin_and_one_by_one(floats):
    values = hashing.contiguous(np.array(floats, np.float64))
    assert hashing.float_words(values).tolist() == hashing.float_words.plain(values).tolist()
    assert hashing.hash_floats(values).tolist() == [hashing.hash_float(v) for v in floats]


def test_zeros_are_one_and_nans_are_one():
    other_nan = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    nan, same, zero, negative = hashing.hash_floats(np.array([*other_nan, 0.0, -0.0]))
    assert nan == same == hashing.hash_float(math.nan)
    assert zero == negative == hashing.mix(0)


@given(st.integers(-(2**53), 2**53))
def test_a_whole_float_hashes_like_the_integer(n):
    assert hashing.hash_floats(np.array([float(n)]))[0] == hashing.hash_ints(np.array([n]))[0]


def test_narrow_floats_hash_by_value():
    for dtype in (np.float16, np.float32):
        assert hashing.hash_floats(np.array([0.5], dtype))[0] == hashing.hash_float(0.5)


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_bytes_agree_with_the_twin_and_one_by_one(texts):
    offsets, data = packed(texts)
    compiled = hashing.hash_bytes(offsets, data)
    plain = hashing.hash_spans.plain(offsets[:-1], offsets[1:], data)
    assert compiled.tolist() == plain.tolist() == [reference_text(text) for text in texts]


def test_texts_of_all_lengths_side_by_side_hash_one_by_one(unit):
    """Short ones are hashed some hundreds at a time, and long ones and the last by themselves."""
    rng = np.random.default_rng(5)
    for longest in (8, 16, 40):
        texts = [rng.bytes(n) for n in rng.integers(0, longest + 1, 700)]
        offsets, data = packed(texts)
        expected = [reference_text(text) for text in texts]
        assert hashing.hash_bytes(offsets, data).tolist() == expected


def test_short_texts_of_a_length_have_hashes_of_their_own():
    """By which `number_texts` tells them apart."""
    every = np.arange(2**16, dtype=np.uint64)
    for size in (2, 5, 8):
        words = every << np.uint64(8 * size - 16)
        data = words[:, None].view(np.uint8)[:, :size].reshape(-1).copy()
        hashes = hashing.hash_bytes(size * np.arange(2**16 + 1), data)
        assert len(np.unique(hashes)) == 2**16


def test_offsets_of_both_widths_give_the_same():
    offsets, data = packed([b"a", b"", b"longer than eight"])
    narrow = hashing.hash_bytes(offsets.astype(np.int32), data)
    assert narrow.tolist() == hashing.hash_bytes(offsets.astype(np.int64), data).tolist()


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))))
def test_combining_agrees_with_the_twin_and_one_by_one(pairs):
    first, more = (
        (np.array(part, np.uint64) for part in zip(*pairs, strict=True))
        if pairs
        else (
            np.empty(0, np.uint64),
            np.empty(0, np.uint64),
        )
    )
    compiled = hashing.combine_columns([first, more])
    assert compiled.tolist() == hashing.combine_all.plain(first, more).tolist()
    assert compiled.tolist() == [hashing.combine(a, b) for a, b in pairs]


def test_the_order_of_parts_counts():
    assert hashing.combine(1, 2) != hashing.combine(2, 1)


def test_a_moment_hashes_alike_in_every_unit():
    moment = np.datetime64("2015-09-12T00:46:58", "s")
    hashes = {
        int(hashing.hash_times(np.array([moment], f"M8[{unit}]"))[0])
        for unit in ("s", "ms", "us", "ns")
    }
    assert len(hashes) == 1
    assert hashing.hash_times(np.array(["NaT"], "M8[s]"))[0] == hashing.NULL_HASH


def test_strided_and_byte_swapped_columns_hash_by_value():
    strided = np.arange(10)[::2]
    assert hashing.hash_column(strided).tolist() == [hashing.mix(n) for n in (0, 2, 4, 6, 8)]
    assert hashing.hash_column(np.array([0.5], ">f8"))[0] == hashing.hash_float(0.5)


def test_few_keys_spread_evenly():
    """Consecutive integers, the usual keys, over any number of workers."""
    for peers in (2, 3, 7, 8):
        counts = np.bincount(hashing.hash_ints(np.arange(10_000)) % np.uint64(peers))
        assert counts.min() > 0.9 * 10_000 / peers


def test_a_dtype_without_a_stable_hash_is_refused():
    with pytest.raises(KeyHashError, match="complex128"):
        hashing.hash_column(np.array([1j]))
