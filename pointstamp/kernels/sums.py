"""Sums over lists of places, each in the order of its list."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.jit import kernel
from pointstamp.kernels.lists import Ints, Numbers, positions

Floats = npt.NDArray[np.float64]


def _sum_lists_plain(begins: Ints, ends: Ints, others: Numbers, values: Floats) -> Floats:
    # bincount adds one after the other, as the loop does; reduceat would add in pairs.
    lists = np.repeat(np.arange(len(begins)), ends - begins)
    addends = values[others[positions(begins, ends)]]
    return np.bincount(lists, addends, minlength=len(begins)).astype(np.float64)


@kernel(plain=_sum_lists_plain)
def sum_lists(begins: Ints, ends: Ints, others: Numbers, values: Floats) -> Floats:
    """The sum of `values[others[begins[i]:ends[i]]]` for each i.

    begins, ends : int64[n] · others : int32[m] · values : float64[p]
    returns float64[n]. The order of adding is that of the lists, so that equal lists
    have equal sums. Twin `_sum_lists_plain`.
    """
    sums = np.zeros(len(begins))
    for i in range(len(begins)):
        total = 0.0
        for j in range(begins[i], ends[i]):
            total += values[others[j]]
        sums[i] = total
    return sums
