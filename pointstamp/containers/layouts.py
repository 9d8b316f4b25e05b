"""What batches of NumPy columns have in common: names and types, and where they lie in a block.

There is one layout for all batches of the same names and types, so that two batches of a
stream are compared by identity, and what follows from their types is found out once.

Knows nothing of batches.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.array_fields import are_of
from pointstamp.containers.keys import column_names
from pointstamp.errors import SchemaError
from pointstamp.kernels.blocks import HEAD, MAX_COLUMNS, OTHER, REAL, SIGNED, UNSIGNED

Array = npt.NDArray[Any]

_MOST = 1 << 10
"""How many layouts, and keys of one, are kept."""

_FEW = 8
"""How many layouts are looked through one by one."""

_KINDS = {"i": SIGNED, "u": UNSIGNED, "f": REAL}


class ArraysLayout:
    """Names and dtypes of the columns of a batch; see `layout_of`."""

    __slots__ = (
        "_header",
        "_keys",
        "_places",
        "dtypes",
        "is_flat",
        "kinds",
        "names",
        "record_bytes",
        "schema",
        "widths",
    )

    def __init__(self, names: tuple[str, ...], dtypes: tuple[np.dtype[Any], ...]) -> None:
        self.names = names
        self.dtypes = dtypes
        self.schema = tuple(zip(names, dtypes, strict=True))
        self.record_bytes = sum(dtype.itemsize for dtype in dtypes)
        self.is_flat = 0 < len(names) <= MAX_COLUMNS and all(
            0 < dtype.itemsize < 256 and not dtype.hasobject for dtype in dtypes
        )
        """Whether batches of it can be blocks."""
        self.widths = bytes(d.itemsize for d in dtypes) if self.is_flat else b""
        self.kinds = bytes(map(_kind_of, dtypes))
        self._places = {name: place for place, name in enumerate(names)}
        self._keys: dict[Any, bytes | None] = {}
        self._header: bytes | None = None

    def place_of(self, name: Any) -> int:
        """The number of a column; -1 if there is none of that name."""
        return self._places.get(name, -1)

    def starts_in(self, n_records: int) -> list[int]:
        """Where each column begins in a block of so many records.

        >>> layout_of({"a": np.arange(3), "b": np.arange(3)}).starts_in(3)
        [16, 48]
        """
        starts = []
        at = HEAD
        for i in range(len(self.widths)):
            starts.append(at)
            at += n_records * self.widths[i] + 15 & -16
        return starts

    def keys_of(self, key: Any) -> bytes | None:
        """The numbers of the columns of a key; None if records are not split by it in blocks.

        Raises
        ------
        ColumnError
            If there is no such column.
        """
        if type(key) is list:
            key = tuple(key)
        # What else there is, is refused or evaluated where large batches are split.
        if not self.is_flat or not (key is None or type(key) is str or type(key) is tuple):
            return None
        if key in self._keys:
            return self._keys[key]
        if len(self._keys) >= _MOST:
            self._keys.clear()
        named = column_names(key, list(self.names), "a batch of NumPy arrays")
        places = bytes(map(self.place_of, named))
        is_hashed = OTHER not in map(self.kinds.__getitem__, places)
        found = self._keys[key] = places if places and is_hashed else None
        return found

    def header(self) -> bytes:
        """Names and dtypes as bytes, of which `layout_from` makes the layout again."""
        if self._header is None:
            named = tuple(map(_without_objects, self.schema))
            self._header = pickle.dumps(named, protocol=5)
        return self._header


def check_alike(layouts: Sequence[ArraysLayout]) -> None:
    """Refuse batches that cannot be put together without a loss.

    Widths of one kind may differ, and texts may be of any form.

    Raises
    ------
    SchemaError
        If some have other columns, or columns of other kinds of values.

    >>> check_alike([layout_of({"a": np.arange(3)}), layout_of({"a": np.arange(3, dtype="i2")})])
    """
    first = layouts[0]
    for other in layouts[1:]:
        if other is not first and not _are_alike(first, other):
            schemas = [dict(layout.schema) for layout in (first, other)]
            raise SchemaError(
                f"batches cannot be put together: {schemas[0]} and {schemas[1]}; cast them to one "
                "schema before they are sent"
            )


def _are_alike(one: ArraysLayout, other: ArraysLayout) -> bool:
    theirs = dict(other.schema)
    return set(one.names) == set(theirs) and all(
        _keep_values(dtype, theirs[name]) for name, dtype in one.schema
    )


def _keep_values(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether what NumPy promotes both to has the values of both.

    To integers with a sign and without one, for one, it gives floats, and to numbers and texts
    texts. Python objects say all but times in nanoseconds, which would be integers, and structs.
    """
    kinds = {one.kind, other.kind}
    are_objects = "O" in kinds and kinds.isdisjoint("mMV")
    return len(kinds) == 1 or kinds == {"U", "T"} or are_objects


_layouts: dict[Any, ArraysLayout] = {}
_from_headers: dict[bytes, ArraysLayout] = {}
_latest: list[ArraysLayout] = []
"""A few that were found lately, as most that are asked for are: others are found by a tuple."""


def layout_of(columns: dict[str, Array]) -> ArraysLayout:
    """The layout of columns of these names and dtypes; the same for equal ones.

    >>> layout_of({"a": np.arange(3)}) is layout_of({"a": np.arange(5)})
    True
    """
    for known in _latest:
        # Names that stand in a program are one object, and so are NumPy's own dtypes.
        if are_of(columns, known.names, known.dtypes):
            return known
    return _look_up(columns)


def _look_up(columns: dict[str, Array]) -> ArraysLayout:
    global _latest
    named: list[Any] = []
    for name, column in columns.items():
        named.append(name)
        named.append(column.dtype)
    found = _layout(tuple(named))
    # Another list: a thread may be looking through this one.
    _latest = [found, *[known for known in _latest if known is not found][: _FEW - 1]]
    return found


def layout_from(header: bytes) -> ArraysLayout:
    """The layout that `header` is of."""
    found = _from_headers.get(header)
    if found is None:
        if len(_from_headers) >= _MOST:
            _from_headers.clear()
        named = []
        for name, dtype in pickle.loads(header):
            named += [name, np.dtype(object) if dtype is None else dtype]
        found = _from_headers[header] = _layout(tuple(named))
    return found


def _layout(named: tuple[Any, ...]) -> ArraysLayout:
    found = _layouts.get(named)
    if found is None:
        if len(_layouts) >= _MOST:
            _layouts.clear()
        found = _layouts[named] = ArraysLayout(named[::2], named[1::2])
    return found


def _without_objects(named: tuple[str, np.dtype[Any]]) -> tuple[str, np.dtype[Any] | None]:
    """A column's name and dtype; None for Python objects, which travel otherwise."""
    return named[0], None if named[1].hasobject else named[1]


def _kind_of(dtype: np.dtype[Any]) -> int:
    """What the values are, of those whose hash loops over records know."""
    kind = _KINDS.get(dtype.kind, OTHER)
    least = 4 if kind == REAL else 1
    return kind if dtype.isnative and least <= dtype.itemsize <= 8 else OTHER
