"""What the instances of an operator compare between workers while they run.

The structure of a dataflow is compared when it is built. What is seen only in the records, as the
types of keys, is compared here: an instance that sees something new publishes it to those of the
other workers. It needs no records and no progress, and costs nothing while nothing is new.

Rules
-----
1. Instances of one number belong together: operators are built in the same order everywhere.
2. What comes for an instance that is not built yet waits for it.
3. A worker may have completed a dataflow when something of it comes from another one. So an
   instance that has ended compares on, until `N_ENDED` others have ended after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

Publish = Callable[[Any], None]
Receive = Callable[[Any], None]

N_ENDED = 256


class Comparisons:
    """The instances on one worker that compare something.

    Parameters
    ----------
    send : callable
        Sends (number, value) to all other workers, where their `receive` is given both.
    """

    def __init__(self, send: Callable[[int, Any], None] = lambda number, value: None) -> None:
        self._send = send
        self._n_made = 0
        self._receivers: dict[int, Receive] = {}
        self._early: dict[int, list[Any]] = {}
        """By number, of what is not built here yet."""
        self._ended: deque[int] = deque()

    def __len__(self) -> int:
        """How many compare."""
        return len(self._receivers)

    def add(self, receive: Receive) -> tuple[Publish, Callable[[], None]]:
        """The next instance: `receive` is given what others publish, and may raise.

        Returns
        -------
        publish : callable
            Gives a value, of a tuple, numbers and texts, to the others.
        end : callable
            To be called when its dataflow ends.
        """
        number = self._n_made
        self._n_made += 1
        self._receivers[number] = receive
        for value in self._early.pop(number, ()):
            receive(value)
        return partial(self._send, number), partial(self._end, number)

    def receive(self, number: int, value: Any) -> None:
        """Take what an instance on another worker has published."""
        if number >= self._n_made:
            self._early.setdefault(number, []).append(value)
        elif number in self._receivers:
            self._receivers[number](value)

    def _end(self, number: int) -> None:
        self._ended.append(number)
        if len(self._ended) > N_ENDED:
            del self._receivers[self._ended.popleft()]
