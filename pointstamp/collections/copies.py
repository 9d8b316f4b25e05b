"""Records, each as often as it is there: where an answer is of all copies, such as a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.errors import DataError

MOST_COPIES = (1 << 31) - 1
"""So many elements has a list of Arrow at most; a mistaken diff may ask for far more."""


def copied(rows: npt.NDArray[Any], counts: npt.NDArray[np.int64], what: str) -> npt.NDArray[Any]:
    """The rows, each as often as its count says.

    Parameters
    ----------
    rows : array of n rows
    counts : int64[n], of 0 or more
    what : str
        They are made for, for the message of an error.

    Raises
    ------
    DataError
        If they would be more than `MOST_COPIES`.

    >>> copied(np.array([5, 7]), np.array([2, 1]), "a list").tolist()
    [5, 5, 7]
    """
    check_copies(counts, what)
    return rows.repeat(counts, axis=0)


def check_copies(counts: npt.NDArray[np.int64], what: str) -> None:
    """Raise the same `DataError` where they would be put together elsewhere."""
    if max(counts.max(initial=0), counts.sum()) > MOST_COPIES:
        total = sum(counts.tolist())
        raise DataError(
            f"{what} would have {total} records, as some are there so often; {MOST_COPIES} at most "
            "can be put together"
        )
