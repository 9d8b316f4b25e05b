"""What is read of arrays without NumPy is what NumPy says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers.array_fields import are_of, n_values, of_integers, read_only
from pointstamp.containers.arrays import Arrays
from pointstamp.containers.layouts import layout_of
from pointstamp.containers.registry import kind_of

OTHER = np.zeros(3)
EDGES = [0, -1, 2**61, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, True, 1.5, None, "a"]


@given(st.lists(st.sampled_from(EDGES) | st.integers(), max_size=6))
def test_a_column_of_a_list_is_what_numpy_makes_of_it(values: list[Any]) -> None:
    expected = np.asarray(values)
    found = of_integers(values)
    if found is not None:
        assert (found.dtype, found.tolist()) == (expected.dtype, values)
    column = Arrays(a=values)["a"]
    assert (column.dtype, column.tolist()) == (expected.dtype, expected.tolist())
    values.append(7)
    assert len(column) == len(expected)  # the list is the caller's


@pytest.mark.parametrize(
    "array",
    [np.arange(6), np.arange(6)[::-2], np.zeros(0, "M8[us]"), np.zeros((2, 3)), np.array(7)],
    ids=["whole", "strided", "empty", "two dimensions", "none"],
)
def test_fields_are_what_numpy_says(array: Any) -> None:
    assert n_values(array) == (len(array) if array.ndim == 1 else -1)
    assert are_of({"a": array, "b": OTHER}, ("a", "b"), (array.dtype, OTHER.dtype))
    assert not are_of({"a": array, "b": OTHER}, ("a", "b"), (array.dtype, np.dtype("f2")))
    assert not are_of({"a": array, "b": OTHER}, ("b", "a"), (array.dtype, OTHER.dtype))
    assert not are_of({"a": array}, ("a", "b"), (array.dtype, OTHER.dtype))
    view = read_only(array)
    assert (view.flags.writeable, array.flags.writeable) == (False, True)
    assert np.shares_memory(view, array) == (array.size > 0)
    assert read_only(view) is view


def test_columns_of_equal_names_and_types_have_one_layout_however_many_there_are() -> None:
    stamp = np.array(["2020-01-01"], "M8[us]")
    first = {
        n: layout_of({f"{n}".join("ab"): np.arange(2), "t": stamp}) for n in range(20)
    }  # whose names and dtypes are objects of their own
    for n, layout in first.items():
        again = {f"{n}".join("ab"): np.arange(3), "t": stamp.astype("M8[us]")}
        assert layout_of(again) is layout
        assert layout_of({**again, "t": np.arange(3.0)}) is not layout
        assert layout_of(dict(reversed(again.items()))) is not layout
    assert kind_of(Arrays(a=[1])).schema(Arrays(a=[1])) is Arrays(a=[2, 3]).layout().schema
