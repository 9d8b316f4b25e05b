"""The rows in what is under way between operators, and which of their words are numbers of texts.

A batch of updates says itself which. What operators of collections hand each other beside are
arrays of rows that do not: of these each word is taken for a number that could be one, as a
conservative collector of garbage does. At worst a text stays for one sweep more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.updates import Updates

_PLAIN = (int, float, str, bytes, bool, type(None))


class NotInMemory(Exception):
    """What is under way is not here, or of a kind that is not known."""


def rows_in(items: Iterable[Any], where: str) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """(rows, places) of what is in batches, and in lists of them.

    Raises
    ------
    NotInMemory
        If one of them is something else.

    >>> (rows, places), = rows_in([Updates(np.array([[7, 1]]), (0,)), [5, None]], "Map")
    >>> rows.tolist(), places
    ([[7, 1]], (0,))
    """
    for item in items:
        if isinstance(item, Updates):
            if item.texts:
                yield item.rows, item.texts
        elif isinstance(item, np.ndarray):
            yield _possible(item)
        elif isinstance(item, (list, tuple)):
            yield from rows_in(item, where)
        elif hasattr(item, "held_batches"):
            yield from rows_in(item.held_batches(), where)
        elif not isinstance(item, _PLAIN):
            raise NotInMemory(
                f"operator {where!r} has {type(item).__name__} waiting, which is not looked through"
            )


def rows_of(numbers: Iterable[int]) -> tuple[npt.NDArray[np.int64], tuple[int, ...]]:
    """Numbers as rows.

    >>> rows_of({3})
    (array([[3]]), (0,))
    """
    return np.array([*numbers], np.int64)[:, None], (0,)


def _possible(rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], tuple[int, ...]]:
    words = rows.reshape(-1)
    return words[(words > 0) & (words < TEXTS.n_numbers)][:, None], (0,)
