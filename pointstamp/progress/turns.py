# cython: boundscheck=False, wraparound=False
"""Whose turn it is next, of the children of a scope."""

from __future__ import annotations

from heapq import heappop, heappush

_NONE_LATER: list[int] = []
"""Stays empty, and is that of all scopes in which no two have waited."""


class Turns:
    """Children that wait for their turn, the least first.

    Mostly it is one, which is kept aside: a heap that is filled and emptied each time gives
    its memory back and asks for it again.

    >>> turns = Turns()
    >>> turns.add(2), turns.add(1), turns.add(3)
    (None, None, None)
    >>> turns.take(), turns.take(), turns.take(), turns.take()
    (1, 2, 3, 0)
    """

    __slots__ = ("_first", "_later", "_n_later")

    def __init__(self) -> None:
        self._first = 0
        """The least; 0, which is the world outside, if there is none."""
        self._later = _NONE_LATER
        self._n_later = 0
        """How many: to know that there is none, the list need not be looked at."""

    def add(self, child: int) -> None:
        """Have `child`, which is not there yet, wait."""
        first = self._first
        if not first:
            self._first = child
            return
        if self._later is _NONE_LATER:
            self._later = []
        self._first = min(child, first)
        heappush(self._later, max(child, first))
        self._n_later += 1

    def take(self) -> int:
        """Take the least; 0 if there is none."""
        first = self._first
        self._first = 0
        if self._n_later:
            self._first = heappop(self._later)
            self._n_later -= 1
        return first

    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._first
