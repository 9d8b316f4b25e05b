"""What most neighbours say: the commonest label, and the core number that they support."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.lists import Ints, Numbers

Bools = npt.NDArray[np.bool_]


@kernel("graph_loops")
def common_labels(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    back_begins: Ints,
    back_ends: Ints,
    back_others: Numbers,
    labels: Ints,
) -> Ints:
    """The commonest label in two lists of each row; the least of those that are as common.

    begins, ends : int64[n] · others : int32[m], places; the same for the second lists
    labels : int64[p], p >= n
    returns int64[n]; a row's own label where both lists are empty.
    """
    common = labels[: len(begins)].copy()
    for row in range(len(begins)):
        near = others[begins[row] : ends[row]], back_others[back_begins[row] : back_ends[row]]
        votes = Counter(labels[np.concatenate(near)].tolist())
        if votes:
            common[row] = min(votes, key=lambda label: (-votes[label], label))
    return common


@kernel("graph_loops")
def lower_cores(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    push_begins: Ints,
    push_ends: Ints,
    push_others: Numbers,
    cores: Ints,
    fresh: Numbers,
    queue: Numbers,
    queued: Bools,
) -> Numbers:
    """Lower core numbers that neighbours do not support, until all are supported here.

    A number k is supported by k neighbours with at least that number.

    begins, ends : int64[n] · others : int32[m], the neighbours of each row, distinct
    push_... : over places, the rows that have each place as a neighbour
    cores : int64[p], changed for rows; at most the number of a row's neighbours
    fresh : int32[k], distinct rows to look at
    queue : int32[n + 1], any content · queued : bool[n], all false, and so again afterwards
    returns int32, the rows with lower numbers, sorted.
    """
    waiting = deque(fresh.tolist())
    changed = set()
    while waiting:
        row = waiting.popleft()
        near = np.sort(cores[others[begins[row] : ends[row]]])[::-1]
        support = int((near >= np.arange(1, len(near) + 1)).sum())
        if support < cores[row]:
            cores[row] = support
            changed.add(row)
            waiting.extend(push_others[push_begins[row] : push_ends[row]].tolist())
    return np.array(sorted(changed), np.int32)
