"""What is asked with: whole numbers, shares and names, refused before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from pointstamp.errors import ColumnError, SchemaError, UsageError


def whole_number(value: Any, name: str, least: int | None = 0) -> int:
    """An integer of at least `least`, of Python's type.

    Raises
    ------
    UsageError
        If it is none, or less. True and False are none.

    >>> whole_number(3, "max_iter")
    3
    """
    bound = "" if least is None else f" of {least} or more"
    refused = UsageError(f"{name} is an integer{bound}, not {value!r}")
    if isinstance(value, bool):
        raise refused
    try:
        found = index(value)
    except TypeError:
        raise refused from None
    if least is not None and found < least:
        raise refused
    return found


def is_number(value: Any) -> bool:
    """Whether it is one of Python's or of NumPy's; what is true or false is none."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def share(value: Any, name: str) -> float:
    """A number from 0 to 1; a `UsageError` if it is none.

    >>> share(0.5, "a probability")
    0.5
    """
    if not is_number(value) or not 0 <= value <= 1:
        raise UsageError(f"{name} is a number from 0 to 1, not {value!r}")
    return float(value)


def seed_of(value: Any) -> int:
    """A seed, any integer, as one of 64 bits; a `UsageError` if it is none.

    >>> seed_of(42), seed_of(2**64 + 42)
    (42, 42)
    """
    return (whole_number(value, "a seed", None) + 2**63) % 2**64 - 2**63


RESERVED = "_pointstamp_"
"""How the columns begin that are beside attributes while an answer is made."""


def check_edge_column(name: str, of_edges: Sequence[str], what: str) -> None:
    """Refuse a column of the edges that is not there, with a `ColumnError`.

    what : is in it, such as weights
    """
    if name not in of_edges:
        raise ColumnError(
            f"edges have no column {name!r} of {what}, only {', '.join(map(repr, of_edges))}"
        )


def check_columns(names: Sequence[str], needed: Sequence[str], what: str) -> None:
    """Refuse vertices or edges without the columns that they need, and names that they cannot have.

    Raises
    ------
    ColumnError
        If a column is not there.
    SchemaError
        If two columns have one name, or one has a name that is reserved.
    """
    missing = [name for name in needed if name not in names]
    if missing:
        raise ColumnError(
            f"{what} need the columns {', '.join(map(repr, needed))}; there are "
            f"{', '.join(map(repr, names))}"
        )
    if repeated := repeated_names(names):
        raise SchemaError(
            f"{what} have more than one column {repeated[0]!r}: give each its own name"
        )
    reserved = [name for name in names if name.startswith(RESERVED)]
    if reserved:
        raise SchemaError(
            f"{what} have a column {reserved[0]!r}: names that begin with {RESERVED!r} are "
            "reserved, so give it another one"
        )


def repeated_names(names: Sequence[str]) -> list[str]:
    """Those that are there more than once.

    >>> repeated_names(["a", "b", "a"])
    ['a']
    """
    return [name for name, times in Counter(names).items() if times > 1]


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse names of columns that repeat, or are that of the ids.

    Raises
    ------
    SchemaError
        If one is.
    """
    if repeated := repeated_names(names):
        raise SchemaError(
            f"{what} have a name twice, {repeated[0]!r}: say 'sum(msg) as total', for one"
        )
    if "id" in names:
        raise SchemaError(f"{what} cannot be called 'id', which is the column of the ids")
