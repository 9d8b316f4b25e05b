"""Batches split by numbers: to which place or worker each record goes, or at which time.

A place that does not exist is an error. The number of a worker is taken modulo the
number of workers, as in timely dataflow, so that a program need not know how many there are.
"""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Iterator
from functools import partial
from operator import index
from typing import Any

import numpy as np

from pointstamp.containers.convert import integer_values
from pointstamp.containers.key_hashes import split_by_number
from pointstamp.containers.kind import Ints
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


def split_by_column(batch: Any, route: Any, n_places: int, operator: str) -> list[Any]:
    """The records for each place, `route` being a column's name or an expression.

    Raises
    ------
    RouteError
        With the first record for which there is no place; and as `Kind.integers`.
    """
    kind = kind_of(batch)
    places = kind.integers(batch, route, operator)
    outside = np.flatnonzero((places < 0) | (places >= n_places))
    if len(outside):
        first = int(outside[0])
        place(int(places[first]), n_places, f"{operator}: record {first} of {len(places)}")
    return kind.split(batch, places.astype(np.uint64), n_places)


def split_by_worker(batch: Any, to: Any, peers: int, operator: str) -> list[Any]:
    """The records for each of `peers` workers, of which `to` gives the numbers.

    Records in the order of their workers are not copied: the parts are views of `batch`.

    Parameters
    ----------
    to : as for `Exchange`
        Numbers are taken modulo `peers`.

    Raises
    ------
    RouteError
        With the first record that has a negative number, or none.

    >>> split_by_worker(["a", "bb", "ccc"], len, 2, "an example")
    [['bb'], ['a', 'ccc']]
    """
    if type(batch) is list and callable(to):
        return split_by_number(batch, to, peers, partial(_number, operator))
    kind = kind_of(batch)
    workers = _workers_of(kind.column(batch, to, operator), peers, kind, batch, operator)
    if peers == 1:
        return [batch]
    if (workers[1:] < workers[:-1]).any():
        return kind.split(batch, workers.astype(np.uint64), peers)
    bounds = np.searchsorted(workers, np.arange(peers + 1)).tolist()
    return [
        batch if stop - start == len(workers) else kind.slice(batch, start, stop)
        for start, stop in itertools.pairwise(bounds)
    ]


def _workers_of(values: Any, peers: int, kind: Any, batch: Any, operator: str) -> Ints:
    """The values modulo `peers`, int64[n]."""
    if isinstance(values, list):
        chosen = zip(values, kind.records(batch), strict=True)
        return np.fromiter(
            (_number(operator, value, record) % peers for value, record in chosen),
            np.int64,
            len(values),
        )
    numbers = integer_values(values, "the number of the worker", operator)
    if not len(numbers):
        return numbers
    if numbers.min() < 0:
        first = int(np.flatnonzero(numbers < 0)[0])
        record = next(kind.records(kind.slice(batch, first, first + 1)))
        _number(operator, int(numbers[first]), record)
    return numbers if numbers.max() < peers else numbers % peers


def _number(operator: str, value: Any, record: Any) -> int:
    try:
        number = index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise RouteError(
            f"{operator}: the record {reprlib.repr(record)} is to go to worker {value!r} "
            f"({type(value).__name__}); give an integer of 0 or more, which is taken modulo the "
            "number of workers"
        )
    return number


def split_by_value(batch: Any, values: Ints) -> Iterator[tuple[int, Any]]:
    """Each distinct value, least first, and its records, in their order.

    Cost: one sort of the values, and one gather per column unless all are the same.
    """
    ordered = np.sort(values)
    if ordered[0] == ordered[-1]:
        yield int(ordered[0]), batch
        return
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    numbers = np.searchsorted(distinct, values).astype(np.uint64)
    parts = kind_of(batch).split(batch, numbers, len(distinct))
    yield from zip(distinct.tolist(), parts, strict=True)
