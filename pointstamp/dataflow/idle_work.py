"""Work that can wait until a worker has nothing else to do, such as merging.

A worker that would park does one piece of it and looks again for what is at hand, so a message
waits for one piece at most. When none is left it parks, and takes no time at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

BUDGET = 16_384
"""A piece is of so many rows, which takes about 50 us."""

Work = Callable[[int], bool]
"""Does a piece of work of so many rows at most; whether more of it is left."""


class IdleWork:
    """What can wait, of one worker, in turns.

    fail : takes an error of such work, after which the worker does not go on

    >>> left = 3
    >>> def work(budget):
    ...     global left
    ...     left -= 1
    ...     return left > 0
    >>> idle = IdleWork()
    >>> idle.add(work)
    >>> [idle.run() for _ in range(4)]
    [True, True, True, False]
    """

    __slots__ = ("_fail", "_waiting", "budget")

    def __init__(self, fail: Callable[[BaseException], None] = lambda error: None) -> None:
        self._waiting: deque[Work] = deque()
        self._fail = fail
        self.budget = BUDGET

    def __len__(self) -> int:
        """How many have something left."""
        return len(self._waiting)

    def add(self, work: Work) -> None:
        """Have some work done, piece by piece, until it says that none is left."""
        self._waiting.append(work)

    def run(self) -> bool:
        """Do a piece; whether there was one."""
        if not self._waiting:
            return False
        work = self._waiting.popleft()
        try:
            if work(self.budget):
                self._waiting.append(work)
        except BaseException as error:
            self._fail(error)
            raise
        return True
