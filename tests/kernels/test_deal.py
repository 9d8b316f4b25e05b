"""Columns dealt to workers: stable, complete, and equal to the twins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.deal import (
    MAX_DEALT,
    SPARE,
    deal,
    deal_words,
    peers_of_hashes,
    peers_of_ints,
    peers_of_words,
)
from pointstamp.kernels.hashing import combine_all, hash_ints, hash_words

words_ = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**32 - 1, 2**63, 2**64 - 1]))
peers_ = st.sampled_from([1, 2, 3, 4, 5, 7, 8, MAX_DEALT])
# Beyond a chunk of the loops, which begin anew after 2,048.
columns_ = st.one_of(
    st.lists(words_, max_size=60).map(lambda words: np.array(words, np.uint64)),
    st.tuples(st.integers(0, 2**32), st.integers(2_040, 4_200)).map(
        lambda drawn: np.random.default_rng(drawn[0]).integers(0, 2**64, drawn[1], np.uint64)
    ),
)


@given(columns_, peers_)
def test_each_value_goes_where_its_hash_says_in_order(words, peers):
    near, starts = peers_of_words(words, peers)
    hashes = hash_ints(words)
    assert near.tolist() == (hashes % np.uint64(peers)).tolist()
    assert starts.tolist() == [0, *np.cumsum(np.bincount(near, minlength=peers)).tolist()]
    parts = deal(words, (near, starts))
    assert [part.tolist() for part in parts] == [
        words[near == peer].tolist() for peer in range(peers)
    ]


@given(columns_, peers_, st.sampled_from(["u1", "u2", "u4", "u8"]))
def test_the_kernels_and_their_twins_agree(unit, words, peers, dtype):
    assert hash_words(words).tolist() == hash_words.plain(words).tolist()
    assert combine_all(words, words).tolist() == combine_all.plain(words, words).tolist()
    for kernel in (peers_of_words, peers_of_hashes):
        for ours, theirs in zip(kernel(words, peers), kernel.plain(words, peers), strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.tolist() == theirs.tolist()
    values = words.astype(dtype)
    dealing = peers_of_hashes(words, peers)
    ours, theirs = deal_words(values, *dealing), deal_words.plain(values, *dealing)
    assert ours.dtype == theirs.dtype
    assert len(ours) == len(theirs)
    for peer, (start, stop) in enumerate(itertools.pairwise(dealing[1].tolist())):
        part = slice(start + SPARE * peer, stop + SPARE * peer)
        assert ours[part].tolist() == theirs[part].tolist()


@pytest.mark.parametrize("dtype", ["i1", "f4", "f8", "?", "M8[s]", "c16", "U3", "S5", "O"])
def test_values_of_any_type_are_dealt(dtype):
    values = np.arange(7)[::-1].astype("i8").astype(dtype)
    dealing = peers_of_ints(np.arange(14, dtype=np.int32)[::2], 3)
    parts = deal(values, dealing)
    assert [part.dtype for part in parts] == [values.dtype] * 3
    assert [part.tolist() for part in parts] == [
        values[dealing[0] == peer].tolist() for peer in range(3)
    ]
