# cython: boundscheck=False, wraparound=False
"""One way of the topology, with what it adds to a time, ready to be taken again and again."""

from __future__ import annotations

from typing import Any

from pointstamp.progress.few_counts import BEYOND
from pointstamp.progress.timestamp import Advance, Both


def _shortened(summary: Any) -> Any:
    """`summary`, or in its place what it adds to a time, if it does nothing else.

    Nearly all are so: an integer; two of them for a pair, with a limit of the second;
    and None for what leaves times as they are.
    """
    # Of a user's own type, `shift` may mean anything.
    shift = summary.shift if type(summary) in (Advance, Both) else None
    if shift in (0, (0, 0, None)):
        return None
    return summary if shift is None else shift


def _shift(summary: Any) -> tuple[int, int, int] | None:
    """What a summary adds to a pair of integers, and below what the second has to stay.

    An integer is the second of a pair. None if the summary does anything else; a summary that
    is None itself adds nothing.
    """
    if summary is None:
        return (0, 0, BEYOND)
    if type(summary) is Advance:
        outer, inner, until = 0, summary.by, summary.limit
    elif type(summary) is Both and summary.shift is not None:
        outer, inner, until = summary.shift
    else:
        return None
    until = BEYOND if until is None else min(until, BEYOND)
    return (outer, inner, until) if max(outer, inner) < BEYOND else None


class Step:
    """A way from one location to another, or to an output.

    >>> from pointstamp.progress.timestamp import Int
    >>> Step(1, Int.summary(2)).arrives(3)
    5
    """

    __slots__ = ("_by", "inner", "is_shift", "outer", "to", "until")

    def __init__(self, to: int, summary: Any) -> None:
        self.to = to
        self._by = _shortened(summary)
        """None: it adds nothing."""
        shift = _shift(summary)
        self.is_shift = shift is not None
        """Whether it only adds numbers: these, and no time arrives at `until` or later."""
        self.outer, self.inner, self.until = (0, 0, 0) if shift is None else shift

    def arrives(self, time: Any) -> Any:
        """The time at the end of the way, or None if it never arrives."""
        by = self._by
        if by is None:
            return time
        if type(by) is int:
            return time + by
        if type(by) is tuple:
            by_outer, by_inner, limit = by
            outer, inner = time
            inner += by_inner
            if limit is not None and inner >= limit:
                return None
            return (outer + by_outer, inner)
        return by.results_in(time)
