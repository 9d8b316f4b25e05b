"""Sums over lists of places, each in the order of its list; and values put in their places."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.lists import Ints, Numbers, positions

Floats = npt.NDArray[np.float64]


@kernel("graph_loops")
def sum_lists(begins: Ints, ends: Ints, others: Numbers, values: Floats) -> Floats:
    """The sum of `values[others[begins[i]:ends[i]]]` for each i.

    begins, ends : int64[n] · others : int32[m] · values : float64[p]
    returns float64[n]. The order of adding is that of the lists, so that equal lists
    have equal sums.
    """
    lists = np.repeat(np.arange(len(begins)), ends - begins)
    addends = values[others[positions(begins, ends)]]
    return np.bincount(lists, addends, minlength=len(begins)).astype(np.float64)


@kernel("graph_loops")
def set_values(slots: Numbers, values: Floats, first: int, places: Floats) -> int:
    """Put each value in the place of its slot; how many slots are below 0, whose values are not.

    slots : int32[m] · values : float64[m] · first : the place of slot 0
    places : float64[p], changed
    """
    here = slots >= 0
    places[slots[here] + np.int64(first)] = values[here]
    return len(slots) - int(here.sum())
