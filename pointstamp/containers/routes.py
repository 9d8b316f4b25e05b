"""Routes: numbers that say to which of several places a record, or a whole batch, goes.

A number for which there is no place is an error. It is not wrapped around: a key
is hashed for that.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pointstamp.containers.integers import integers_of
from pointstamp.containers.registry import kind_of
from pointstamp.errors import RouteError


def place(route: Any, n_places: int, what: str) -> int:
    """`route` as a number at least 0 and below `n_places`.

    Parameters
    ----------
    what : str
        What was routed, for the message of an error.

    Raises
    ------
    RouteError
        If it is no such number.

    >>> place(1, 2, "an example")
    1
    """
    try:
        number = index(route)
    except TypeError:
        number = -1
    if not 0 <= number < n_places:
        raise RouteError(
            f"{what} was routed to {route!r} ({type(route).__name__}); the places are the integers "
            f"0 to {n_places - 1}"
        )
    return number


def split_by_column(batch: Any, route: Any, n_places: int, who: str) -> list[Any]:
    """The records for each place, `route` being a column's name or an expression.

    Raises
    ------
    RouteError
        With the first record for which there is no place; and as `integers_of`.
    """
    places = integers_of(batch, route, who)
    outside = np.flatnonzero((places < 0) | (places >= n_places))
    if len(outside):
        first = int(outside[0])
        place(int(places[first]), n_places, f"{who}: record {first} of {len(places)}")
    return kind_of(batch).split(batch, places.astype(np.uint64), n_places)
