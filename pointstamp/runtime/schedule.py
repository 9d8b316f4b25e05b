"""What happens next in a simulation: drawn from a seed, written down, and played again.

A decision is a plain tuple. `("run", w)` lets worker `w` go on until it waits or
begins its next step, `("deliver", s, r, c, n)` lets the first `n` messages of
channel `c` from worker `s` arrive at `r`, `("crash", w)` ends worker `w` at once.

Draws are skewed: each worker and each link has a slowness, for the whole run, and
some are 500 times slower than others. What breaks a protocol is a link that lags
far behind while the rest goes on; with uniform draws that hardly ever happens.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from pointstamp.communication.simulated import SLOWNESS
from pointstamp.communication.waiting_links import Pending, WaitingLinks
from pointstamp.errors import UsageError

Decision = tuple[str | int, ...]

WHOLE_LINK = 0.3
"""How often a link delivers all that waits on it, rather than one message."""

CRASH_WITHIN = (10, 100, 1_000)
"""A crash happens within so many decisions: early ones hit the start, where little is agreed."""

_N_PARTS = {"run": 2, "deliver": 5, "crash": 2}
"""Of a decision, by its kind."""


class Schedule:
    """Draws the decisions of one run, or takes them from a record.

    Parameters
    ----------
    seed : int
        The same seed gives the same decisions, where the workers do the same.
    crash : bool
        Whether some worker is to crash at some moment.
    replay : sequence of decisions
        Made first, before any is drawn.

    Examples
    --------
    >>> Schedule(1, replay=[("run", 0)]).choose([0, 1], [])
    ('run', 0)
    """

    def __init__(self, seed: int, *, crash: bool = False, replay: Sequence[Decision] = ()) -> None:
        if type(seed) is not int:
            raise UsageError(f"a run is drawn from a seed that is an integer, and not {seed!r}")
        self.seed = seed
        self.decisions: list[Decision] = []
        """What was decided, in order."""
        self._rng = random.Random(seed)
        self._replay = _recorded(replay)
        self._weights = _Weights(seed)
        self._crash_at = -1
        if crash:
            self._crash_at = self._rng.randrange(self._rng.choice(CRASH_WITHIN))

    def choose(
        self, runnable: Sequence[int], pending: Sequence[Pending], alive: Sequence[int] = ()
    ) -> Decision:
        """The next decision, given workers that can go on or are alive, and links with messages."""
        n_made = len(self.decisions)
        if n_made < len(self._replay):
            decision = self._check(self._replay[n_made], runnable, pending, alive)
        elif n_made == self._crash_at and alive:
            decision = ("crash", self._rng.choice(alive))
        else:
            decision = self._draw(runnable, pending)
        self.decisions.append(decision)
        return decision

    def _draw(self, runnable: Sequence[int], pending: Sequence[Pending]) -> Decision:
        # Integers, so that sums are the same in any order.
        until = list(accumulate(map(self._weights.__getitem__, runnable)))
        of_workers = until[-1] if until else 0
        if isinstance(pending, WaitingLinks):
            of_links = pending.total_weight
        else:
            until_links = list(accumulate(self.weight_of_link(link[:3]) for link in pending))
            of_links = until_links[-1] if until_links else 0
        at = self._rng.random() * (of_workers + of_links)
        if at < of_workers or not of_links:
            return ("run", runnable[bisect(until, at, 0, len(runnable) - 1)])
        at -= of_workers
        if isinstance(pending, WaitingLinks):
            *link, n_waiting = pending.at_weight(at)
        else:
            *link, n_waiting = pending[bisect(until_links, at, 0, len(pending) - 1)]
        return ("deliver", *link, n_waiting if self._rng.random() < WHOLE_LINK else 1)

    def weight_of_link(self, link: tuple[int, ...]) -> int:
        """How often a link delivers, in proportion: all links of two workers may be slow."""
        return min(self._weights[link[:2]], self._weights[link])

    def _check(
        self,
        decision: Decision,
        runnable: Sequence[int],
        pending: Sequence[Pending],
        alive: Sequence[int],
    ) -> Decision:
        what, *rest = decision
        if what == "deliver":
            fits = any(rest[:3] == [*link[:3]] and rest[3:] <= [link[3]] for link in pending)
        else:
            fits = rest[0] in (alive if what == "crash" else runnable)
        if not fits:
            raise UsageError(
                f"the record of decisions does not fit this run of seed {self.seed}: number "
                f"{len(self.decisions)} is {decision}; workers that can go on are "
                f"{list(runnable)}, and messages wait on {list(pending)}; play a record with the "
                "program and the workers that it is of"
            )
        return tuple(decision)


class _Weights(dict[object, int]):
    """How quick a worker or a link is: drawn when it is first asked for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __missing__(self, thing: object) -> int:
        # By name, so that it does not depend on what was seen before.
        slowness = random.Random(f"{self._seed} {thing}").choice(SLOWNESS)
        self[thing] = weight = max(SLOWNESS) // slowness
        return weight


def _recorded(replay: Any) -> list[Decision]:
    """A record of decisions, where it is one."""
    if not isinstance(replay, (list, tuple)):
        raise _no_record(replay)
    for decision in replay:
        is_decision = isinstance(decision, (list, tuple)) and len(decision) > 1
        if not is_decision or _N_PARTS.get(str(decision[0])) != len(decision):
            raise _no_record(decision)
    return list(replay)


def _no_record(found: Any) -> UsageError:
    return UsageError(
        "a run is played again from a list of decisions, as a Schedule has them: ('run', worker), "
        f"('deliver', sender, receiver, channel, n) or ('crash', worker); found {found!r}"
    )
