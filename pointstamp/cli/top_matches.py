"""The first few of many matches, in order of their vertices, and how many there are.

What is shown of a result must not depend on which worker found what when; so it
is the least matches. Each worker keeps its own few and a count, and a record of
each is all that leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.operators.stream import Stream

Ints = npt.NDArray[np.int64]

N_SHOWN = 10


class TopMatches:
    """The least of the records that it was given, as columns of int64.

    >>> top = TopMatches(n_columns=2, n_kept=2)
    >>> top.take([np.array([3, 1, 2, 1]), np.array([0, 5, 7, 4])])
    >>> top.rows.tolist(), top.n_matches
    ([[1, 4], [1, 5]], 4)
    """

    def __init__(self, n_columns: int, n_kept: int = N_SHOWN) -> None:
        self.rows: Ints = np.empty((0, n_columns), np.int64)
        """int64[k, n_columns], k at most `n_kept`, in order."""
        self.n_matches = 0
        self._n_kept = n_kept

    def take(self, columns: list[Ints], stands_for: Ints | None = None) -> None:
        """Take records; each stands for itself, or for so many."""
        self.n_matches += len(columns[0]) if stands_for is None else int(stands_for.sum())
        if len(self.rows) == self._n_kept:
            # Most records are out already by their first column, and never sorted.
            hopeful = columns[0] <= self.rows[-1, 0]
            columns = [column[hopeful] for column in columns]
        rows = np.concatenate([self.rows, np.stack(columns, axis=1)])
        order = np.lexsort(rows.T[::-1])
        self.rows = rows[order[: self._n_kept]]

    def as_batch(self) -> Any:
        """A record batch of the rows, of which the first stands for all others; None if empty."""
        if not self.n_matches:
            return None
        stands_for = np.ones(len(self.rows), np.int64)
        stands_for[0] += self.n_matches - len(self.rows)
        columns = [*map(np.ascontiguousarray, self.rows.T), stands_for]
        return to_arrow(Arrays(dict(zip(top_columns(self.rows.shape[1]), columns, strict=True))))


def top_columns(n_columns: int) -> list[str]:
    """The names of the columns of a batch of top matches; the last is how many each stands for."""
    return [*(f"v{i}" for i in range(n_columns)), "stands_for"]


def top_matches(matches: Stream[Any], n_columns: int) -> Stream[Any]:
    """The least matches of each worker, as a record batch, at the end."""

    def take(top: TopMatches, batch: Any) -> TopMatches:
        top.take([column.to_numpy() for column in batch.columns])
        return top

    tops = matches.accumulate(TopMatches(n_columns), take, name="TopMatches")
    return tops.map_batches(lambda tops: tops[0].as_batch())


def merged_top(batches: Iterable[Any], n_columns: int, n_kept: int = N_SHOWN) -> TopMatches:
    """The least of all matches, from the batches of the workers."""
    whole = TopMatches(n_columns, n_kept)
    for batch in batches:
        *columns, stands_for = (column.to_numpy() for column in batch.columns)
        whole.take(columns, stands_for)
    return whole
