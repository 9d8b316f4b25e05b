"""Hashes of rows' keys: those of the plain functions, and without Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import hash_key, hash_keys, kind_of
from pointstamp.containers.key_hashes import split_by_hash, stable_hash
from pointstamp.kernels.hashing import combine, hash_float, hash_text, mix

words = st.integers(-(2**63), 2**64 - 1)


@given(words)
def test_integers_are_mixed(number: int) -> None:
    assert stable_hash(number) == mix(number)


@given(st.text(max_size=40))
def test_texts_hash_like_their_octets(text: str) -> None:
    octets = text.encode("utf-8", "surrogatepass")
    assert stable_hash(text) == stable_hash(octets) == hash_text(octets)


@given(words, st.text(max_size=9), st.floats())
def test_tuples_combine_their_parts(number: int, text: str, value: float) -> None:
    parts = [mix(number), hash_text(text.encode("utf-8", "surrogatepass")), hash_float(value)]
    assert stable_hash((number, text, value)) == combine(combine(parts[0], parts[1]), parts[2])


keys = st.one_of(
    st.integers(),
    st.text(max_size=9),
    st.floats(),
    st.booleans(),
    st.none(),
    st.binary(max_size=9),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.tuples(st.integers(), st.text(max_size=3)),
    st.sampled_from([np.int8(-3), np.uint64(2**64 - 1), np.float32(0.5), np.bool_(True), ()]),
)


@given(st.lists(keys, max_size=30) | st.sampled_from(["a", 1, 0.5, 2**70]).map(lambda k: [k] * 20))
def test_many_keys_hash_like_each(several: list[Any]) -> None:
    assert hash_keys(several).tolist() == [hash_key(key) for key in several]


@given(st.lists(st.tuples(st.integers(0, 9), st.text(max_size=2)), max_size=30), st.integers(1, 4))
def test_an_exchange_in_one_call_splits_by_the_hashes(records: list[Any], peers: int) -> None:
    kind = kind_of(records)
    for key in (None, lambda record: record[0]):
        expected = kind.split(records, kind.hashes(records, key), peers)
        assert kind.exchange(records, key, peers) == expected
        assert split_by_hash(records, key, peers) == expected
