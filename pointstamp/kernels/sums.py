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
def sum_weighted_lists(starts: Ints, others: Numbers, weights: Floats, values: Floats) -> Floats:
    """The sum of `values[others[j]] * weights[j]` over each list, in its order.

    starts : int64[n + 1], where each list begins, and the last one ends
    others : int32[m] · weights : float64[m] · values : float64[p] · returns float64[n]

    >>> starts, others, values = np.array([0, 2, 2]), np.array([1, 0], np.int32), np.ones(2)
    >>> sum_weighted_lists(starts, others, np.array([0.5, 2.0]), values).tolist()
    [2.5, 0.0]
    """
    n = len(starts) - 1
    lists = np.repeat(np.arange(n), np.diff(starts))
    return np.bincount(lists, values[others] * weights, minlength=n).astype(np.float64)


@kernel("graph_loops")
def set_values(slots: Numbers, values: Floats, first: int, places: Floats) -> int:
    """Put each value in the place of its slot; how many slots are below 0, whose values are not.

    slots : int32[m] · values : float64[m] · first : the place of slot 0
    places : float64[p], changed
    """
    here = slots >= 0
    places[slots[here] + np.int64(first)] = values[here]
    return len(slots) - int(here.sum())
