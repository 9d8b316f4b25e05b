"""Joins of two whole batches: inner, outer, semijoin and antijoin.

For joins that can answer only when all records of both sides are there, as those that say what
has no partner. Keys are those of `join_index.py`: a null is none, and a NaN none either, so such
records have no partner.

Where there is no partner, rows have None and columns have nulls. `Arrays` have no nulls, so
outer joins of them are refused.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pointstamp.containers.join_index import (
    SUFFIX,
    are_equal,
    check_comparable,
    differ,
    hashes_with_places,
    key_names,
    key_types,
    paired,
    row_keys,
    rows_of,
)
from pointstamp.containers.keys import check_key
from pointstamp.containers.kind import Kind
from pointstamp.containers.registry import kind_of
from pointstamp.containers.row_lists import joined_rows, rows_with_partners
from pointstamp.errors import BuildError, SchemaError
from pointstamp.kernels.hash_join import add_values, find_values, no_values

How = Literal["inner", "left", "right", "full", "semi", "anti"]
HOWS = ("inner", "left", "right", "full", "semi", "anti")

Ints = npt.NDArray[np.int64]


def check_how(how: Any, operator: str) -> None:
    """Raise unless there is such a join.

    Raises
    ------
    BuildError
    """
    if how not in HOWS:
        raise BuildError(f"operator {operator!r} joins by how={how!r}; there are {list(HOWS)}")


def check_join_keys(keys: tuple[Any, Any], schemas: tuple[Any, Any], operator: str) -> None:
    """Refuse keys of both sides that no records can be joined by, when the dataflow is built.

    Parameters
    ----------
    schemas : tuple of (pyarrow.Schema or None)
        As far as they are known then.

    Raises
    ------
    BuildError
        If one is no key, if they are of unequally many columns, or if one is not of columns that
        its schema has; if `schemas` are none.

    >>> check_join_keys(("a", "b"), (None, None), "Join")
    """
    for key in keys:
        check_key(key, operator)
    sizes = [len(key) if isinstance(key, (list, tuple)) else 1 for key in keys]
    if sizes[0] != sizes[1]:
        raise BuildError(
            f"operator {operator!r} has keys of {sizes[0]} and {sizes[1]} columns, {keys[0]!r} and "
            f"{keys[1]!r}: give as many on both sides"
        )
    is_pair = isinstance(schemas, (tuple, list)) and len(schemas) == 2
    if not is_pair or not all(each is None or hasattr(each, "names") for each in schemas):
        raise BuildError(
            f"operator {operator!r} takes schemas=(left, right), each an Arrow schema or None; "
            f"found {schemas!r}"
        )
    for key, schema, side in zip(keys, schemas, ("left", "right"), strict=True):
        if schema is None or callable(key):
            continue  # a function is a key of rows, which schemas are not asked for
        if key is None or not set(key_names(key)) <= set(schema.names):
            raise BuildError(
                f"operator {operator!r} has the key {key!r}, and schemas= has the columns "
                f"{schema.names} of the {side} stream: name one or several of them as its key"
            )


def check_joinable(left: Any, right: Any, keys: tuple[Any, Any]) -> None:
    """Refuse batches that cannot be joined, whatever their records are.

    Parameters
    ----------
    left, right : container or None
        None: nothing is known of them.

    Raises
    ------
    ColumnError
        If they have columns, and their keys name none.
    SchemaError
        If they are of two kinds, or their keys cannot be compared.
    """
    sides = [(side, key) for side, key in zip((left, right), keys, strict=True) if side is not None]
    if len({kind_of(side) for side, _ in sides}) == 2:
        raise differ(right, left)
    if all(kind_of(side).has_columns for side, _ in sides):
        types = [key_types(side, key_names(key)) for side, key in sides]
        if len(types) == 2:
            check_comparable(types[0], types[1])


def joined(left: Any, right: Any, keys: tuple[Any, Any], how: How, schemas: tuple[Any, Any]) -> Any:
    """The join of two batches of one kind of container.

    Parameters
    ----------
    left, right : container or None
        None: there are no records.
    keys : tuple
        Of the left side and of the right side, as for `Stream.join`.
    schemas : tuple of (pyarrow.Schema or None)
        Of both sides, as far as they are known, for columns of a side without records.

    Returns
    -------
    container or None
        None: there is nothing.

    >>> joined([1, 2], [2, 3], (None, None), "full", (None, None))
    [(1, None), (2, 2), (None, 3)]
    >>> joined([1, 2], [2, 3], (None, None), "anti", (None, None))
    [1]
    """
    if left is None and (right is None or how in ("inner", "left", "semi", "anti")):
        return None
    if right is None and how in ("inner", "right", "semi"):
        return None
    if left is not None and right is not None and type(left) is not type(right):
        raise differ(right, left)
    kind = kind_of(right if left is None else left)
    if not kind.has_columns:
        left, right = ([] if side is None else rows_of(side) for side in (left, right))
        return _rows(left, right, keys, how)
    if right is None and how == "anti":
        return left
    left = _empty(kind, schemas[0], "left", how) if left is None else left
    right = _empty(kind, schemas[1], "right", how) if right is None else right
    return _columns(left, right, (key_names(keys[0]), key_names(keys[1])), how)


def _rows(left: list[Any], right: list[Any], keys: tuple[Any, Any], how: How) -> list[Any]:
    left_keys = row_keys(left, keys[0]) if left else []
    right_keys = row_keys(right, keys[1]) if right else []
    if how == "semi" or how == "anti":
        return rows_with_partners(left, left_keys, right_keys, how == "semi")
    sides = how in ("left", "full"), how in ("right", "full")
    return joined_rows(left, left_keys, right, right_keys, *sides)


def _columns(left: Any, right: Any, keys: tuple[list[str], list[str]], how: How) -> Any:
    kind = kind_of(left)
    n_left, n_right = kind.length(left), kind.length(right)
    lefts, rights = _matches(left, right, keys)
    if how in ("semi", "anti"):
        has = _are_in(lefts, n_left)
        return kind.take(left, np.flatnonzero(has if how == "semi" else ~has))
    if how == "inner":
        return paired(kind.take(left, lefts), kind.take(right, rights), keys[1])
    alone: list[Ints] = [np.empty(0, np.int64), np.empty(0, np.int64)]
    if how in ("left", "full"):
        alone[0] = np.flatnonzero(~_are_in(lefts, n_left))
    if how in ("right", "full"):
        alone[1] = np.flatnonzero(~_are_in(rights, n_right))
    none = [np.full(len(places), -1) for places in alone]
    places = (
        np.concatenate([lefts, alone[0], none[1]]),
        np.concatenate([rights, none[0], alone[1]]),
    )
    return kind.outer_paired(left, right, places, keys, SUFFIX)


def _matches(left: Any, right: Any, keys: tuple[list[str], list[str]]) -> tuple[Ints, Ints]:
    """The places of both records of each pair, both int64[m]."""
    check_comparable(key_types(left, keys[0]), key_types(right, keys[1]))
    left_places, left_hashes = hashes_with_places(left, keys[0])
    right_places, right_hashes = hashes_with_places(right, keys[1])
    if not len(left_places) or not len(right_places):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    index = add_values(no_values(), right_hashes, right_places)
    records, rights = find_values(index, left_hashes)
    lefts, rights = left_places[records], rights.astype(np.int64)
    # Only of the columns of the key, as the others would be copied for nothing.
    kind = kind_of(left)
    own, other = kind.select(left, keys[0]), kind.select(right, keys[1])
    is_pair = are_equal(kind.take(own, lefts), keys[0], kind.take(other, rights), keys[1])
    return (lefts, rights) if is_pair is None else (lefts[is_pair], rights[is_pair])


def _empty(kind: Kind[Any], schema: Any, side: str, how: str) -> Any:
    """A batch without records."""
    if schema is None:
        raise SchemaError(
            f"a {how} join has records without a partner before the {side} stream has had any "
            "batch, so its columns are not known: give schemas=(left, right), Arrow schemas"
        )
    return kind.empty(schema)


def _are_in(places: Ints, n_records: int) -> npt.NDArray[np.bool_]:
    has = np.zeros(n_records, np.bool_)
    has[places] = True
    return has
