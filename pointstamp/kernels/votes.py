"""What most neighbours say: the commonest label, and the core number that they support."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.jit import kernel
from pointstamp.kernels.lists import Ints, Numbers
from pointstamp.kernels.worklist import after, enqueue, fill

Bools = npt.NDArray[np.bool_]


def _common_labels_plain(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    back_begins: Ints,
    back_ends: Ints,
    back_others: Numbers,
    labels: Ints,
) -> Ints:
    common = labels[: len(begins)].copy()
    for row in range(len(begins)):
        near = others[begins[row] : ends[row]], back_others[back_begins[row] : back_ends[row]]
        votes = Counter(labels[np.concatenate(near)].tolist())
        if votes:
            common[row] = min(votes, key=lambda label: (-votes[label], label))
    return common


@kernel(plain=_common_labels_plain)
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
    returns int64[n]; a row's own label where both lists are empty. Twin `_common_labels_plain`.
    """
    longest = 0
    for row in range(len(begins)):
        n_near = ends[row] - begins[row] + back_ends[row] - back_begins[row]
        longest = max(longest, n_near)
    near = np.empty(longest, np.int64)
    common = np.empty(len(begins), np.int64)
    for row in range(len(begins)):
        n_near = 0
        for j in range(begins[row], ends[row]):
            near[n_near] = labels[others[j]]
            n_near += 1
        for j in range(back_begins[row], back_ends[row]):
            near[n_near] = labels[back_others[j]]
            n_near += 1
        near[:n_near].sort()
        common[row] = labels[row]
        most = 0
        run = 0
        for i in range(n_near):
            run = run + 1 if i > 0 and near[i] == near[i - 1] else 1
            if run > most:
                most = run
                common[row] = near[i]
    return common


def _lower_cores_plain(
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


@kernel(plain=_lower_cores_plain)
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
    returns int32, the rows with lower numbers, sorted. Twin `_lower_cores_plain`.
    """
    n = len(begins)
    most = 0
    for row in range(n):
        most = max(most, cores[row])
    tally = np.zeros(most + 1, np.int64)
    is_changed = np.zeros(n, np.bool_)
    first, last = 0, fill(queue, queued, fresh)
    while first != last:
        row = queue[first]
        first = after(first, len(queue))
        queued[row] = False
        before = cores[row]
        tally[: before + 1] = 0
        for j in range(begins[row], ends[row]):
            tally[min(cores[others[j]], before)] += 1
        core = before
        n_supporting = tally[core]
        while n_supporting < core:
            core -= 1
            n_supporting += tally[core]
        if core == before:
            continue
        cores[row] = core
        is_changed[row] = True
        for j in range(push_begins[row], push_ends[row]):
            head = push_others[j]
            # Only the numbers that this row supported, and does not any more.
            if core < cores[head] <= before:
                last = enqueue(queue, queued, last, head)
    return np.flatnonzero(is_changed).astype(np.int32)
