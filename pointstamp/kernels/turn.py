"""Edges without directions, turned to lead from the lower to the higher degree.

In one pass over both columns, where NumPy would make nine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.lists import DenseIds, Numbers, find_numbers

Ints = npt.NDArray[np.int64]


def turn(numbering: DenseIds, degrees: Ints, sources: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """The ends of each edge, that of the lower degree first; of equal ones, the lower id.

    numbering : of k vertices · degrees : int64[k], by number; others have a degree of 0
    sources, targets : int64[m] · returns int64[m], int64[m]

    >>> numbering = DenseIds.of(np.array([3, 5]))
    >>> lower, higher = turn(numbering, np.array([9, 2]), np.array([3, 8]), np.array([5, 7]))
    >>> lower.tolist(), higher.tolist()
    ([5, 7], [3, 8])
    """
    table = numbering.ids, numbering.table, numbering.dense
    of_none_first = np.concatenate([_ZERO, degrees])
    return turn_edges(*table, of_none_first, contiguous(sources), contiguous(targets))


_ZERO = np.zeros(1, np.int64)


@kernel("table_loops")
def turn_edges(
    keys: Ints, table: Numbers, dense: bool, degrees: Ints, sources: Ints, targets: Ints
) -> tuple[Ints, Ints]:
    """`turn`, with the table of `build_table(keys)`; the degree of others comes first."""

    def degrees_of(vertices: Ints) -> Ints:
        numbers = find_numbers.plain(keys, table, dense, vertices)  # type: ignore[attr-defined]
        found: Ints = degrees[numbers + 1]
        return found

    ours, theirs = degrees_of(sources), degrees_of(targets)
    turned = (theirs < ours) | ((theirs == ours) & (targets < sources))
    return np.where(turned, targets, sources), np.where(turned, sources, targets)
