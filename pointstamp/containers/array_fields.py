"""The fields of NumPy's arrays, as compiled code reads them: without a call of NumPy.

A batch of ten records is asked for lengths, types and views of its columns several times on its
way, and each call of NumPy takes as long as a hundred values. Extensions that are built with
NumPy's headers read an array's fields where they lie, at places that are part of NumPy's binary
interface and the same in all of its versions. They are declared here once more, so that building
needs no NumPy; and whether they lie there is looked at once, with arrays at hand. If they do not,
or where nothing is compiled, NumPy is asked.

Knows nothing of batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.compiled import build_info

Array = npt.NDArray[Any]

_IS_COMPILED = build_info() == "compiled"

_INTEGER = np.asarray([0]).dtype
"""What NumPy makes of Python's integers."""

_new_array = np.empty


def _are_there() -> bool:
    """Whether compiled code finds the fields of arrays where it looks for them."""
    if not _IS_COMPILED:
        return False
    whole = np.arange(6, dtype=_INTEGER).reshape(3, 2)
    column = whole[:, 1]
    fixed = column.view()
    fixed.setflags(write=False)
    at = column.__array_interface__["data"][0]
    return bool(
        _n_in_c(whole) == -1  # type: ignore[name-defined]  # noqa: F821  (names of the .pxd alone)
        and _n_in_c(column) == 3  # type: ignore[name-defined]  # noqa: F821
        and _data_in_c(column) == at  # type: ignore[name-defined]  # noqa: F821
        and _are_of_in_c({"a": column}, ("a",), (column.dtype,))  # type: ignore[name-defined]  # noqa: F821
        and _is_writeable_in_c(column)  # type: ignore[name-defined]  # noqa: F821
        and not _is_writeable_in_c(fixed)  # type: ignore[name-defined]  # noqa: F821
    )


_READS = _are_there()

_MAKES_INTEGERS = _READS and _INTEGER.itemsize == 8


def n_values(array: Array) -> int:
    """How many values a column has; -1 of what is not one-dimensional.

    >>> n_values(np.arange(3)), n_values(np.zeros((3, 2))), n_values(np.array(7))
    (3, -1, -1)
    """
    if _READS:
        return _n_in_c(array)  # type: ignore[name-defined,no-any-return]  # noqa: F821
    return len(array) if array.ndim == 1 else -1


def are_of(
    columns: dict[str, Array], names: tuple[str, ...], dtypes: tuple[np.dtype[Any], ...]
) -> bool:
    """Whether the names and dtypes of columns are these very objects; equal ones may be others.

    >>> column = np.arange(3)
    >>> are_of({"a": column}, ("a",), (column.dtype,)), are_of({"a": column}, (), ())
    (True, False)
    """
    if _READS:
        return _are_of_in_c(columns, names, dtypes)  # type: ignore[name-defined,no-any-return]  # noqa: F821
    if len(columns) != len(names):
        return False
    for place, name in enumerate(columns):
        if name is not names[place] or columns[name].dtype is not dtypes[place]:
            return False
    return True


def read_only(array: Array) -> Array:
    """A view that is not written to; the array itself if that can not be, either."""
    if _READS:
        if not _is_writeable_in_c(array):  # type: ignore[name-defined]  # noqa: F821
            return array
        view = array.view()
        _forbid_writing_in_c(view)  # type: ignore[name-defined]  # noqa: F821
        return view
    if not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view


def of_integers(values: list[Any]) -> Array | None:
    """What `np.asarray` makes of a list of integers; None of another one, or of large ones.

    >>> found = of_integers([7, 8])
    >>> found is None or found.tolist() == [7, 8], of_integers([7, 8.5]), of_integers([2**70])
    (True, None, None)
    """
    if not _MAKES_INTEGERS or not values or type(values[0]) is not int:
        return None
    array = _new_array(len(values), _INTEGER)
    is_full = _are_put_in_c(values, array)  # type: ignore[name-defined]  # noqa: F821
    return array if is_full else None
