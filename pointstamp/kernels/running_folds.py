"""Totals so far: for each record what its group's total is with it, in the order of the records.

Groups are numbers, as `group_tables` gives them to keys. Each kernel changes the totals and
writes what they became, so that the next records go on from there.

Source: a window function over all rows up to the current one, as in SQL:2003.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.key_tables import Ints, Rows

Floats = npt.NDArray[np.float64]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@kernel("table_loops")
def count_so_far(groups: Rows, totals: Ints, found: Ints) -> None:
    """How many records of its group there are up to each.

    groups : int32[r], places of `totals` · totals : int64[m], changed · found : int64[r], written
    """
    for record, group in enumerate(groups.tolist()):
        totals[group] += 1
        found[record] = totals[group]


@kernel("table_loops")
def add_ints_so_far(groups: Rows, values: Ints, totals: Ints, found: Ints) -> int:
    """The same of sums; the first record whose sum is beyond 64 bits, or -1.

    values : int64[r]
    """
    for record, (group, value) in enumerate(zip(groups.tolist(), values.tolist(), strict=True)):
        total = int(totals[group]) + value
        if not _LEAST <= total <= _MOST:
            return record
        totals[group] = found[record] = total
    return -1


@kernel("table_loops")
def add_floats_so_far(groups: Rows, values: Floats, totals: Floats, found: Floats) -> None:
    """The same of float64."""
    for record, (group, value) in enumerate(zip(groups.tolist(), values.tolist(), strict=True)):
        totals[group] += value
        found[record] = totals[group]


@kernel("table_loops")
def lower_ints_so_far(groups: Rows, values: Ints, totals: Ints, found: Ints) -> None:
    """The same of the least values, int64."""
    for record, (group, value) in enumerate(zip(groups.tolist(), values.tolist(), strict=True)):
        totals[group] = found[record] = min(int(totals[group]), value)


@kernel("table_loops")
def raise_ints_so_far(groups: Rows, values: Ints, totals: Ints, found: Ints) -> None:
    """The same of the greatest."""
    for record, (group, value) in enumerate(zip(groups.tolist(), values.tolist(), strict=True)):
        totals[group] = found[record] = max(int(totals[group]), value)


@kernel("table_loops")
def lower_floats_so_far(groups: Rows, values: Floats, totals: Floats, found: Floats) -> None:
    """The same of the least values, float64; NaN is passed over."""
    for record, (group, value) in enumerate(zip(groups.tolist(), values.tolist(), strict=True)):
        totals[group] = found[record] = np.fmin(totals[group], value)


@kernel("table_loops")
def raise_floats_so_far(groups: Rows, values: Floats, totals: Floats, found: Floats) -> None:
    """The same of the greatest."""
    for record, (group, value) in enumerate(zip(groups.tolist(), values.tolist(), strict=True)):
        totals[group] = found[record] = np.fmax(totals[group], value)
