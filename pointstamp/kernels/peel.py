"""Peeling: taking away what has too few neighbours left, and what follows from it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.lists import Ints, Numbers

Bools = npt.NDArray[np.bool_]


@kernel("graph_loops")
def peel(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    back_begins: Ints,
    back_ends: Ints,
    back_others: Numbers,
    counts: Ints,
    back_counts: Ints,
    is_open: Bools,
    fresh: Numbers,
) -> Numbers:
    """Close the open rows into which, or out of which, no edges of what is open are left.

    begins, ends : int64[p] · others : int32[m], the heads of the edges from each place
    back_... : the same of the edges turned round
    counts, back_counts : int64[n], changed, how many edges from, and to, what is open
    is_open : bool[p], changed for rows
    fresh : int32[k], places closed before, whose edges are still counted
    returns int32, the rows closed now, sorted.
    """
    closed = []
    waiting = fresh.tolist()
    while waiting:
        place = waiting.pop()
        ways = (
            (others[begins[place] : ends[place]], counts),
            (back_others[back_begins[place] : back_ends[place]], back_counts),
        )
        for heads, left in ways:
            for head in heads.tolist():
                left[head] -= 1
                if left[head] == 0 and is_open[head]:
                    is_open[head] = False
                    closed.append(head)
                    waiting.append(head)
    return np.array(sorted(closed), np.int32)


@kernel("graph_loops")
def peel_in_turn(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    back_begins: Ints,
    back_ends: Ints,
    back_others: Numbers,
) -> Ints:
    """Take rows away in their order, each with all that then has no edge in, or none out.

    begins, ends : int64[n] · others : int32[m], the heads of the edges from each row
    back_... : the same of the edges turned round
    returns int64[n], at whose turn each is taken away: its own, or that of a row before it
    without which it is on no cycle; -1 before the first turn.
    """
    n = len(begins)
    lasts = np.full(n, n)
    ways = (
        (begins, ends, others, back_ends - back_begins),
        (back_begins, back_ends, back_others, ends - begins),
    )
    for turn in range(-1, n):
        if turn < 0:
            waiting = np.flatnonzero((ways[0][3] == 0) | (ways[1][3] == 0)).tolist()
        else:
            waiting = [turn] if lasts[turn] == n else []
        lasts[waiting] = turn
        while waiting:
            place = waiting.pop()
            for first, last, lists, left in ways:
                for head in lists[first[place] : last[place]].tolist():
                    left[head] -= 1
                    if left[head] == 0 and lasts[head] == n:
                        lasts[head] = turn
                        waiting.append(head)
    return lasts
