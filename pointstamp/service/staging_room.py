"""Waiting until a service has room: what was sent, and has not entered the dataflow, is little.

A program that sends more than is worked off waits here, where it has said how much may wait
elsewhere. What waits is known at the workers, each of which says when it has become less.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from pointstamp.errors import StagingError
from pointstamp.service import protocol
from pointstamp.service.protocol import TICK_S


@dataclass(frozen=True)
class StagingRoom:
    """The room of some inputs of a service together, whichever clients send to them.

    Attributes
    ----------
    ask : callable
        `ask(request, worker)`: the answer of a worker.
    inputs : sequence of str
    where : str
        What they are, for errors.
    """

    ask: Callable[[protocol.AwaitStaged, int], int]
    inputs: Sequence[str]
    where: str

    def wait(
        self,
        n_bytes: int,
        limit: int,
        workers: int,
        timeout_s: float | None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        """Wait until `n_bytes` more make no more than `limit`.

        Raises `StagingError` if that is not so in time. `check` is called whenever it is not so
        yet; it raises where it never will be.
        """
        until = math.inf if timeout_s is None else time.monotonic() + timeout_s
        places = [(input, worker) for input in self.inputs for worker in range(workers)]
        while True:
            check()
            staged = [self.ask(protocol.AwaitStaged(input), worker) for input, worker in places]
            if n_bytes + sum(staged) <= limit:
                return
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise StagingError(
                    f"{n_bytes} bytes do not fit into max_staged_bytes={limit} of {self.where} "
                    f"after {timeout_s:g} s: {sum(staged)} that were sent wait for their epoch to "
                    "end, or for operators that are slow; wait longer, or allow more"
                )
            most = staged.index(max(staged))
            input, worker = places[most]
            self.ask(protocol.AwaitStaged(input, staged[most], min(TICK_S, left_s)), worker)

    def never(self, n_bytes: int, limit: int, why: str) -> NoReturn:
        """Raise `StagingError`: waiting would not end."""
        raise StagingError(
            f"{n_bytes} bytes do not fit into max_staged_bytes={limit} of {self.where}: {why}"
        )
