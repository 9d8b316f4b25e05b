"""Columns in another order, as the kernel and as its plain twin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.permute import gather, gather_texts, gather_words

DTYPES = ["i1", "u2", "i4", "f4", "i8", "u8", "f8", "?", "M8[s]", "m8[ns]", "c16", "U3", "S5", "O"]


@pytest.mark.parametrize("dtype", DTYPES)
@given(order=st.lists(st.integers(0, 6)))
def test_it_is_what_indexing_gives(dtype: str, order: list[int]) -> None:
    values = np.array([0, 1, 0, 3, 4, 5, 6]).astype("i8").astype(dtype)
    found = gather(values, np.array(order, np.int64))
    assert found.dtype == values.dtype
    assert found.tolist() == values[order].tolist()


def test_values_that_are_not_next_to_each_other_are_gathered_too() -> None:
    values = np.arange(10)[::3]
    assert gather(values, np.array([3, 0, 1])).tolist() == [9, 0, 3]


def test_of_nothing_there_is_nothing() -> None:
    assert gather(np.empty(0), np.empty(0, np.int64)).tolist() == []


@given(st.lists(st.integers(0, 255), min_size=1), st.data())
def test_the_kernel_and_its_twin_agree(values: list[int], data: st.DataObject) -> None:
    column = np.array(values, np.uint8)
    order = np.array(data.draw(st.lists(st.integers(0, len(values) - 1))), np.int64)
    assert gather_words(column, order).tolist() == gather_words.plain(column, order).tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(st.lists(st.binary(max_size=40), min_size=1), st.integers(0, 3), st.data())
def test_texts_are_gathered(
    dtype: type[np.signedinteger], texts: list[bytes], shift: int, drawn: st.DataObject
) -> None:
    """From anywhere in their bytes, and also where these end."""
    order = np.array(drawn.draw(st.lists(st.integers(0, len(texts) - 1))), np.int64)
    bounds = np.cumsum([shift, *map(len, texts)], dtype=dtype)
    data = np.frombuffer(b"x" * shift + b"".join(texts), np.uint8)
    for gathered in (gather_texts, gather_texts.plain):
        ends, found = gathered(bounds, data, order)
        assert ends.dtype == dtype
        found = bytes(found)
        pairs = itertools.pairwise(ends.tolist())
        assert [found[begin:end] for begin, end in pairs] == [texts[i] for i in order]
        assert len(found) == ends[-1]
