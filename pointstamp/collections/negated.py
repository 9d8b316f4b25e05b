"""Updates with their diffs negated: deletions of what was inserted, and the other way round."""

from __future__ import annotations

from pointstamp.containers.updates import Rows
from pointstamp.errors import DataError

_LEAST_DIFF = -(1 << 63)


def negated(rows: Rows) -> Rows:
    """The same rows with their diffs, which are their last words, negated; int64[n, w + 1].

    Raises
    ------
    DataError
        If a diff is the least of 64 bits, whose opposite is beyond them.
    """
    rows = rows.copy()
    rows[:, -1] *= -1
    if (rows[:, -1] == _LEAST_DIFF).any():
        raise DataError(f"a diff of {_LEAST_DIFF} has no opposite of 64 bits")
    return rows
