"""Changes of counts of several workers, added up before they go on.

Where each worker sends its changes to every other, a round of w workers takes w² messages.
Instead one worker of each machine, its *accumulator*, adds up what the workers of the machine
report, sends the sum to the accumulators of the other machines, and hands on to the workers
of its own what all others have reported. This is what one scope's instance there adds up.

Why it is safe
--------------
An instance is safe as long as it knows, of each worker, all that this worker reported up to
some moment, however different the moments are (see `subgraph`). Sums keep that: a batch goes
into a sum whole; it goes in after those that the same worker sent before, as it comes by a
link that keeps its order; and sums go out and come in by such links, too. So what a sum adds
to what was known before are, of each worker, the next so many of its batches. In which order
the batches of *different* workers go into a sum is of no account, since a sum has none, and
what cancels in it was never seen by the receiver in either half.

A worker's own changes count with it at once, as they do without an accumulator. The sum that
comes back has them as well: it says how many of the worker's batches are in it, and those are
taken off. They are not taken off before, as then there were as many sums as workers.

When a sum goes on
------------------
Eagerly, always. On demand, when it may advance a frontier, by rules for the three ways:

1. From a worker to its accumulator: as from a worker to its peers, see `subgraph`.
2. To the other machines: when it takes away a pointstamp that nothing else covers there. A
   capability that another worker of this machine still holds at the very same place and time
   covers it: it does not go without being reported here, and the sum goes then.
3. To the workers of this machine: when it takes away a pointstamp and the accumulator, which
   knows all that it could hand on, no longer expects its time there.

None of these makes all wait for each other. Take the earliest pointstamp (by time, then by
place along the streams) that anything is held back at. Before it, all know the same, so that
nothing covers it; so all workers have reported theirs to the accumulators (1). A machine that
has kept its sum has a worker with a capability there (2), and that one is free to go on.
If there is none, all accumulators know the same, and find that the time is over (3).

Nor is a worker kept waiting by what cancels in a sum: by a message, say, that it has reported
as sent, and another as consumed. If it waits for a time that its accumulator does not, then
it has reported something there, by letting go of something earlier that the accumulator does
not expect any more, either. What has cancelled that in the sum has an earlier cause in the
same sum, and so on; the first in that line has not cancelled, and the sum goes by rule 3.

Source: Naiad (SOSP 2013), section 3.3, whose local and global accumulators these are. Safety of
sums of this kind: Abadi, McSherry, Murray and Rodeheffer, Formal analysis of a distributed
algorithm for tracking progress (FORTE 2013).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pointstamp.progress.change_batch import ChangeBatch

Updates = list[tuple[tuple[int, Any], int]]
"""((location, time), change): what instances of a scope send each other."""


class Accumulation:
    """The sums of one scope on the accumulator of a machine.

    Parameters
    ----------
    held : iterable of ((location, time), count)
        The capabilities that the workers of this machine begin with.
    is_source, crosses : sequence of bool
        Per location, whether it is a source, where only the worker that has something can let
        go of it; and whether it is of the world outside the scope.
    tracker : Tracker
        Of the accumulator's own instance; it is asked what `is_covered` and `is_expected`.
    hand_on : callable
        `hand_on(updates, merged)` takes what the workers of this machine are to hear, and by
        worker how many batches of its own are in it.
    send_out : callable
        Takes what the other machines are to hear.

    Examples
    --------
    Of two workers one lets go of a capability, and the sum is kept; then the other does.

    >>> handed, sent = [], []
    >>> class Nothing:
    ...     is_covered = is_expected = staticmethod(lambda location, time: False)
    >>> place = (0, 5)
    >>> sums = Accumulation(
    ...     [(place, 2)], [True], [False], Nothing(),
    ...     lambda updates, merged: handed.append((updates, merged)), sent.append,
    ... )
    >>> sums.add([(place, -1)], worker=1)
    >>> sums.release()
    >>> handed, sent
    ([([((0, 5), -1)], {1: 1})], [])
    >>> sums.add([(place, -1)])
    >>> sums.release()
    >>> sent
    [[((0, 5), -2)]]
    """

    def __init__(
        self,
        held: Iterable[tuple[tuple[int, Any], int]],
        is_source: Sequence[bool],
        crosses: Sequence[bool],
        tracker: Any,
        hand_on: Callable[[Updates, dict[int, int]], None],
        send_out: Callable[[Updates], None],
    ) -> None:
        self._held: dict[tuple[int, Any], int] = dict(held)
        self._is_source = is_source
        self._crosses = crosses
        self._tracker = tracker
        self._hand_on = hand_on
        self._send_out = send_out
        self._to_workers: ChangeBatch = ChangeBatch()
        self._to_machines: ChangeBatch = ChangeBatch()
        self._merged: dict[int, int] = {}
        """By worker of this machine: how many batches of its own are in what waits for it."""

    def __bool__(self) -> bool:
        """Whether anything waits, of what has not cancelled."""
        return bool(self._to_workers) or bool(self._to_machines)

    def add(self, updates: Updates, worker: int | None = None) -> None:
        """Add a batch of this machine: of `worker`, or of the accumulator itself."""
        if worker is not None:
            self._merged[worker] = self._merged.get(worker, 0) + 1
        self._to_machines.extend(updates)
        held = self._held
        for place, change in updates:
            if self._is_source[place[0]]:
                count = held.get(place, 0) + change
                if count:
                    held[place] = count
                else:
                    held.pop(place, None)
        self.add_from_outside(updates)

    def add_from_outside(self, updates: Updates) -> None:
        """Add the sum of another machine, which is for the workers of this one only."""
        self._to_workers.extend(updates)

    def release(self, *, at_once: bool = False) -> None:
        """Let go of the sums that another needs; `at_once`: of all that there is."""
        if self._to_machines and (at_once or self._is_needed_elsewhere()):
            self._send_out(self._to_machines.drain())
        if self._to_workers and (at_once or self._is_needed_here()):
            merged, self._merged = self._merged, {}
            self._hand_on(self._to_workers.drain(), merged)

    def _is_needed_elsewhere(self) -> bool:
        held = self._held
        for place, change in self._to_machines:
            location, time = place
            if self._crosses[location]:
                return True
            if (
                change < 0
                and held.get(place, 0) <= 0
                and not self._tracker.is_covered(location, time)
            ):
                return True
        return False

    def _is_needed_here(self) -> bool:
        for (location, time), change in self._to_workers:
            if self._crosses[location] or (
                change < 0 and not self._tracker.is_expected(location, time)
            ):
                return True
        return False
