# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""What may still arrive where, from counts of what is outstanding.

The tracker of a scope is given how the counts of pointstamps change: records in
flight at targets, capabilities held at sources. From these it maintains, for
every location, the *implied* times: the minimal times that something outstanding
could still produce there. What changes in that is passed on along the steps of
the topology and nowhere else, so a change costs what it changes.

Rules
-----
1. `update` only notes a change; `propagate` brings everything up to date.
2. Per location there are two counted antichains: of the pointstamps themselves,
   and of the implied times, to which the frontier of the former contributes one
   count and every step from another location contributes its own.
3. Propagation takes the earliest changed time first, and adds up all changes of
   one time at one location before it passes them on. In a loop that lets go of a
   time, the change that removes its next round meets the one that would add it:
   without this order the two would chase each other around the loop for ever.

4. What waits to be passed on is sorted by (time, location), in an array of numbers, without
   an object for each entry: there are seldom more than a handful, and new ones come nearly
   always at the end. The array keeps its places when it is emptied: to let go of them costs
   more than a round of work does.
5. Times that are integers, or pairs of integers, are numbers in here, from `update_number`
   to `moved`: an integer is a pair whose first number is 0. When one
   comes that is too large, all of them become objects, as other times are from the start.
6. An entry is four numbers that follow each other: a location, a time, and its change. Where
   times are objects, they are in a list beside. So a worker of many dataflows, whose trackers have
   left the processor's cache by the next round, waits for few lines of it.

Source: timely-dataflow `progress/reachability.rs` (`Tracker`).
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import Any

from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.few_counts import BEYOND, FewCounts, Others
from pointstamp.progress.step import Step
from pointstamp.progress.topology import Topology


def _grown(numbers: Any) -> Any:
    """A copy of an array of numbers with twice the places."""
    return array("q", [*numbers, *numbers])


_BEYOND = BEYOND  # compiled, a number of C

_PLACES = 4
"""How many entries the arrays have room for at first."""


def _no_entries() -> Any:
    return array("q", bytes(8 * 4 * _PLACES))


_UNUSED = array("q", [0])


class Tracker:
    """Counts pointstamps of one scope and maintains what they imply.

    >>> from pointstamp.progress.antichain import Antichain
    >>> from pointstamp.progress.timestamp import Int, summary_less_equal
    >>> from pointstamp.progress.topology import Edge, Node
    >>> later = [{0: Antichain(summary_less_equal, [Int.summary(1)])}]
    >>> graph = Topology(
    ...     Int,
    ...     [Node("outside", 0, 0, []), Node("a", 0, 1, []), Node("b", 1, 1, later),
    ...      Node("c", 1, 0, [{}])],
    ...     [Edge((1, 0), (2, 0)), Edge((2, 0), (3, 0))],
    ... )
    >>> tracker = Tracker(graph)
    >>> tracker.update(graph.source(1, 0), 5, +1)
    >>> tracker.propagate()
    >>> tracker.frontier(graph.target(3, 0))
    [6]
    """

    __slots__ = (
        "_are_laid_out",
        "_first_shifts",
        "_implications",
        "_inner",
        "_key",
        "_n_inside",
        "_n_noted",
        "_natural",
        "_noted",
        "_noted_times",
        "_others",
        "_outer",
        "_pointstamps",
        "_shifts",
        "_timestamp",
        "_to_outputs",
        "_work",
        "_work_end",
        "_work_first",
        "_work_keys",
        "_work_times",
        "has_numbers",
        "has_pairs",
        "is_delivered",
        "is_inside",
        "moved",
        "moved_times",
        "n_moved",
        "output_changes",
        "steps",
        "topology",
    )

    def __init__(
        self, topology: Topology, to_outputs: list[list[tuple[int, Any]]] | None = None
    ) -> None:
        timestamp = topology.timestamp
        self.topology = topology
        self.steps: list[list[Step] | None] = [None] * len(topology.steps)
        """Per location, where they were needed as objects; see `_steps_of`."""
        self._first_shifts = self._shifts = _UNUSED
        """Per location the number of its first step, and of each step four numbers: where to, what
        it adds to both numbers of a time, and below what the second has to stay."""
        self._are_laid_out = False
        self.is_inside = bytearray(node != 0 for node, _, _ in topology.ports)
        self.is_delivered = bytearray(is_target for _, _, is_target in topology.ports)
        """Per location: whether its frontier is delivered to something."""
        self._timestamp = timestamp
        self._key = timestamp.key
        self._natural = bool(timestamp.natural)
        self.has_pairs = bool(timestamp.pairs)
        """Whether times are pairs of integers."""
        self.has_numbers = self._natural and (self.has_pairs or bool(timestamp.integers))
        """Whether times are numbers in here, until one comes that is too large."""
        n = len(topology.ports)
        self._others = Others()
        make: Any = MutableAntichain
        if self.has_numbers:
            make = partial(FewCounts, others=self._others)
        # Tuples: one object each, where a list is two.
        self._pointstamps: tuple[Any, ...] = tuple([make(timestamp) for _ in range(n)])
        self._implications: tuple[Any, ...] = tuple([make(timestamp) for _ in range(n)])
        self._to_outputs: tuple[list[Step], ...] | None = None
        if to_outputs is not None:
            # Along a chain they are all alike: those of a location are shared with the next one.
            all_steps: list[list[Step]] = []
            before: list[tuple[int, Any]] = []
            steps: list[Step] = []
            for paths in to_outputs:
                if paths != before:
                    steps = [Step(output, summary) for output, summary in paths]
                    before = paths
                all_steps.append(steps)
            self._to_outputs = tuple(all_steps)
        self._outer = 0
        self._inner = 0
        """The time that was read last, as numbers."""
        # Noted changes: the times are numbers or objects.
        self._n_noted = 0
        self._noted = _no_entries()
        self._noted_times: list[Any] = self._no_times()
        # What is to be passed on: from `_work_first` to `_work_end`, sorted by key and place.
        self._work_first = 0
        self._work_end = 0
        self._work = _no_entries()
        self._work_times: list[Any] = self._no_times()
        self._work_keys: list[Any] = self._work_times if self._natural else self._no_times()
        # Changes of frontiers, `n_moved` of them, until they are drained.
        self.n_moved = 0
        self.moved = _no_entries()
        self.moved_times: list[Any] = self._no_times()
        self._n_inside = 0
        self.output_changes = tuple([ChangeBatch() for _ in range(topology.nodes[0].inputs)])
        """Per scope output: changes in what pointstamps inside imply there."""

    def _no_times(self) -> list[Any]:
        """Room for as many times as there are entries at first, where times are objects."""
        return [] if self.has_numbers else [None] * _PLACES

    def follow_outside(self, output: int, input_: int, summary: Any) -> None:
        """Add a path outside, from a scope output to a scope input.

        What is implied at its beginning already (initial capabilities are counted
        before the world outside is known) is passed on along it, too.
        """
        topology = self.topology
        topology.add_outside_step(output, input_, summary)
        self.steps[topology.target(0, output)] = None
        self._are_laid_out = False
        for time in self._implications[topology.target(0, output)].frontier:
            reached = summary.results_in(time)
            if reached is not None:
                self._push_time(topology.source(0, input_), reached, 1)

    def update(self, location: int, time: Any, change: int) -> None:
        """Note that the count of (time, location) changes."""
        if self._reads(time):
            self.update_number(location, self._outer, self._inner, change)
            return
        if self.has_numbers:
            self._make_objects()
        note = self._next_note()
        self._noted[4 * note] = location
        self._noted[4 * note + 3] = change
        self._noted_times[note] = time

    def update_number(self, location: int, outer: int, inner: int, change: int) -> None:
        """Do the same at the time (outer, inner), or `inner`, where this `has_numbers`.

        What one operator sends the next one mostly takes before this is counted: then neither is.
        """
        at = 4 * self._n_noted - 4
        if (
            at >= 0
            and self._noted[at] == location
            and self._noted[at + 2] == inner
            and self._noted[at + 1] == outer
        ):
            self._noted[at + 3] += change
            if not self._noted[at + 3]:
                self._n_noted -= 1
        else:
            at = 4 * self._next_note()
            self._noted[at] = location
            self._noted[at + 1] = outer
            self._noted[at + 2] = inner
            self._noted[at + 3] = change

    def _next_note(self) -> int:
        note = self._n_noted
        if 4 * note == len(self._noted):
            self._noted = _grown(self._noted)
            if not self.has_numbers:
                self._noted_times.extend([None] * note)
        self._n_noted = note + 1
        return note

    def propagate(self) -> None:
        """Bring all implied times up to date with the noted changes."""
        times = self._noted_times
        n_noted = self._n_noted
        if not n_noted and not self._work_end:
            return
        if not self._are_laid_out:
            self._lay_out_shifts()
        # Additions first, so that a capability that moves does not leave a gap
        # for the length of this loop, with a wave of changes that cancel.
        if self.has_numbers:
            for note in range(n_noted):
                if self._noted[4 * note + 3] > 0:
                    self._count_number(note)
            for note in range(n_noted):
                if self._noted[4 * note + 3] < 0:
                    self._count_number(note)
            self._n_noted = 0
            self._spread_numbers()
        else:
            for note in range(n_noted):
                change = self._noted[4 * note + 3]
                if change > 0:
                    self._count(self._noted[4 * note], times[note], change)
            for note in range(n_noted):
                change = self._noted[4 * note + 3]
                if change < 0:
                    self._count(self._noted[4 * note], times[note], change)
            self._n_noted = 0
        self._spread()

    def drain_frontier_changes(self) -> list[tuple[tuple[int, Any], int]]:
        """((target, time), change) of every frontier change since the last call."""
        changes: ChangeBatch = ChangeBatch()
        changes.extend(self._listed(self.moved, self.moved_times, self.n_moved))
        self.forget_frontier_changes()
        return changes.drain()

    def forget_frontier_changes(self) -> None:
        """They were read where they are."""
        self.n_moved = 0

    def frontier(self, location: int) -> list[Any]:
        """The minimal times that may still come at `location`."""
        found: list[Any] = self._implications[location].frontier
        return found

    def pointstamps(self, location: int) -> Any:
        """The counts of what is outstanding at `location` itself."""
        return self._pointstamps[location]

    def is_covered(self, location: int, time: Any) -> bool:
        """Whether pointstamps elsewhere, or earlier ones, keep `time` possible here.

        If so, no frontier can advance by the removal of a pointstamp
        (time, location). Other counts of that same pointstamp do not cover it:
        each holder would wait for the others to let go first.
        """
        if self._reads(time):
            return self._is_number_covered(location, self._outer, self._inner)
        if self.has_numbers:
            self._make_objects()
        implied = self._implications[location]
        if implied.less_than(time):
            return True
        own = 1 if self._pointstamps[location].is_minimal(time) else 0
        return bool(implied.count(time) > own)

    def _is_number_covered(self, location: int, outer: int, inner: int) -> bool:
        few = self._implications[location]
        if few.less_than(outer, inner):
            return True
        count = few.count(outer, inner)
        few = self._pointstamps[location]
        is_minimal = few.count(outer, inner) > 0 and not few.less_than(outer, inner)
        return bool(count > 1 if is_minimal else count > 0)

    def is_expected(self, location: int, time: Any) -> bool:
        """Whether `time`, or an earlier one, may still come at a place."""
        if self._reads(time):
            few = self._implications[location]
            return bool(few.less_equal(self._outer, self._inner))
        if self.has_numbers:
            self._make_objects()
        implied = self._implications[location]
        return bool(implied.less_equal(time))

    def is_idle(self) -> bool:
        """Whether nothing is outstanding inside the scope, after `propagate`.

        Pointstamps of node 0 are the parent's business and do not count.
        """
        return self._n_inside == 0

    def outstanding(self) -> list[tuple[int, Any, int]]:
        """All (location, time, count) that are not zero, with what is only noted so far."""
        found: ChangeBatch = ChangeBatch()
        for location, counts in enumerate(self._pointstamps):
            for time, count in counts:
                found.update((location, time), count)
        found.extend(self._listed(self._noted, self._noted_times, self._n_noted))
        return [(location, time, count) for (location, time), count in found.drain()]

    def _count(self, location: int, time: Any, change: int) -> None:
        counts = self._pointstamps[location]
        is_inside = self.is_inside[location]
        held = counts.n_times()
        has_moved = counts.change(time, change)
        if is_inside:
            self._n_inside += counts.n_times() - held
        if not has_moved:
            return
        for moved in counts.gone:
            self._push(location, moved, -1)
        for moved in counts.came:
            self._push(location, moved, 1)
        if is_inside and self._to_outputs is not None and self._to_outputs[location]:
            self._imply_at_outputs(location, counts)

    def _imply_at_outputs(self, location: int, counts: MutableAntichain) -> None:
        assert self._to_outputs is not None
        for step in self._to_outputs[location]:
            changes = self.output_changes[step.to]
            for moved in counts.gone:
                reached = step.arrives(moved)
                if reached is not None:
                    changes.update(reached, -1)
            for moved in counts.came:
                reached = step.arrives(moved)
                if reached is not None:
                    changes.update(reached, 1)

    def _push_time(self, location: int, time: Any, change: int) -> None:
        """`_push`, or the same of numbers where times are numbers."""
        if self._reads(time):
            self._push_number(location, self._outer, self._inner, change)
            return
        if self.has_numbers:
            self._make_objects()
        self._push(location, time, change)

    def _push(self, location: int, time: Any, change: int) -> None:
        """Have `change` passed on at (time, location), together with others there."""
        keys = self._work_keys
        key = time if self._natural else self._key(time)
        low, high = self._work_first, self._work_end
        middle = high - 1  # the last one first: most new entries are the latest
        while low < high:
            other = keys[middle]
            if other is key or other == key:
                place = self._work[4 * middle]
                if place == location:
                    self._work[4 * middle + 3] += change
                    return
                is_before = place < location
            else:
                is_before = other < key
            if is_before:
                low = middle + 1
            else:
                high = middle
            middle = (low + high) // 2
        low = self._make_room(low)
        self._work_times[low] = time
        if not self._natural:
            keys[low] = key
        self._work[4 * low] = location
        self._work[4 * low + 3] = change

    def _make_room(self, at: int) -> int:
        """A place for an entry before that at `at`, from which those of one side have moved."""
        first, end = self._work_first, self._work_end
        if first > 0 and at - first <= end - at:
            # Where entries were that are done. Mostly there are none to move, or few.
            self._work_first = first - 1
            for to in range(first - 1, at - 1):
                self._move(to + 1, to)
            return at - 1
        if 4 * end == len(self._work):
            self._grow_work()
        self._work_end = end + 1
        for to in range(end, at, -1):
            self._move(to - 1, to)
        return at

    def _move(self, at: int, to: int) -> None:
        for number in range(4):
            self._work[4 * to + number] = self._work[4 * at + number]
        if not self.has_numbers:
            self._work_times[to] = self._work_times[at]
            if not self._natural:
                self._work_keys[to] = self._work_keys[at]

    def _grow_work(self) -> None:
        n = len(self._work) // 4
        self._work = _grown(self._work)
        if self.has_numbers:
            return
        self._work_times.extend([None] * n)
        if not self._natural:
            self._work_keys.extend([None] * n)

    def _spread(self) -> None:
        """Pass on all that is to be passed on, the earliest first."""
        times = self._work_times
        while self._work_first < self._work_end:
            first = self._work_first
            self._work_first = first + 1
            change = self._work[4 * first + 3]
            if not change:
                continue
            location = self._work[4 * first]
            implied = self._implications[location]
            if implied.change(times[first], change):
                for moved in implied.gone:
                    self._pass_on(location, moved, -1)
                for moved in implied.came:
                    self._pass_on(location, moved, 1)
        self._work_first = self._work_end = 0

    def _pass_on(self, location: int, time: Any, change: int) -> None:
        """Note a change of the frontier at a location, and push it along all steps."""
        if self.is_delivered[location]:
            moved = self._next_moved()
            self.moved[4 * moved] = location
            self.moved[4 * moved + 3] = change
            self.moved_times[moved] = time
        steps = self.steps[location]
        if steps is None:
            steps = self._steps_of(location)
        for step in steps:
            reached = step.arrives(time)
            if reached is not None:
                self._push(step.to, reached, change)

    def _next_moved(self) -> int:
        moved = self.n_moved
        if 4 * moved == len(self.moved):
            self.moved = _grown(self.moved)
            if not self.has_numbers:
                self.moved_times.extend([None] * moved)
        self.n_moved = moved + 1
        return moved

    # The same where times are numbers.

    def _lay_out_shifts(self) -> None:
        """Put the numbers of all steps side by side, those of a location in its order.

        Once all are known: there may be as many paths outside as locations.
        """
        self._are_laid_out = True
        known: dict[int, Step] = {}  # of each summary one, which is let go of again
        first, shifts = array("q", [0]), array("q")
        for steps in self.topology.steps:
            for to, summary in steps:
                step = known.get(id(summary))
                if step is None:
                    step = known[id(summary)] = Step(to, summary)
                # No time is below this, of those that are numbers: so it takes the longer way.
                until = step.until if step.is_shift else -2 * BEYOND
                shifts.extend((to, step.outer, step.inner, until))
            first.append(len(shifts) // 4)
        self._first_shifts = first
        self._shifts = shifts if len(shifts) else _UNUSED

    def _steps_of(self, location: int) -> list[Step]:
        """The steps from a location as objects, which are made when they are first needed.

        Where all times are numbers, and all that steps do is add to them, that is never.
        """
        steps = self.steps[location]
        if steps is None:
            steps = [Step(to, summary) for to, summary in self.topology.steps[location]]
            self.steps[location] = steps
        return steps

    def _time(self, outer: int, inner: int) -> Any:
        if self.has_pairs:
            return (outer, inner)
        return inner

    def _reads(self, time: Any) -> bool:
        """Whether times are numbers here, and `time` is no too large one; it is in the two."""
        if not self.has_numbers:
            return False
        try:
            if self.has_pairs:
                self._outer, self._inner = time
            else:
                self._inner = time
        except OverflowError:  # compiled, these are of 64 bits
            return False
        return -_BEYOND < self._outer < _BEYOND and -_BEYOND < self._inner < _BEYOND

    def _count_number(self, note: int) -> None:
        at = 4 * note
        location = self._noted[at]
        outer, inner = self._noted[at + 1], self._noted[at + 2]
        counts = self._pointstamps[location]
        is_inside = self.is_inside[location]
        held = counts.n_times()
        sign = counts.change(outer, inner, self._noted[at + 3])
        if is_inside:
            self._n_inside += counts.n_times() - held
        if not sign:
            return
        self._push_number(location, outer, inner, sign)
        for other in range(self._others.n):
            if counts.many is None:
                outer, inner = self._others.outers[other], self._others.inners[other]
            else:
                outer, inner = self._other(counts, sign, other)
            self._push_number(location, outer, inner, -sign)
        if is_inside and self._to_outputs is not None:
            outputs = self._to_outputs[location]
            if outputs:
                outer, inner = self._noted[at + 1], self._noted[at + 2]
                self._imply_number(outputs, outer, inner, sign)
                for other in range(self._others.n):
                    if counts.many is None:
                        outer, inner = self._others.outers[other], self._others.inners[other]
                    else:
                        outer, inner = self._other(counts, sign, other)
                    self._imply_number(outputs, outer, inner, -sign)

    def _spread_numbers(self) -> None:
        """Pass on all that is to be passed on, the earliest first, while times are numbers."""
        while self._work_first < self._work_end and self.has_numbers:
            first = self._work_first
            self._work_first = first + 1
            change = self._work[4 * first + 3]
            if not change:
                continue
            location = self._work[4 * first]
            outer, inner = self._work[4 * first + 1], self._work[4 * first + 2]
            implied = self._implications[location]
            sign = implied.change(outer, inner, change)
            if sign:
                self._pass_number_on(location, outer, inner, sign)
                for other in range(self._others.n):
                    if implied.many is None:
                        outer, inner = self._others.outers[other], self._others.inners[other]
                    else:
                        outer, inner = self._other(implied, sign, other)
                    self._pass_number_on(location, outer, inner, -sign)
        if self._work_first == self._work_end:
            self._work_first = self._work_end = 0

    def _other(self, counts: FewCounts, sign: int, other: int) -> tuple[int, int]:
        """One of the others that a change has moved, where there are many."""
        assert counts.many is not None
        times = counts.many.gone if sign > 0 else counts.many.came
        time = times[other]
        return time if self.has_pairs else (0, time)

    def _imply_number(self, steps: list[Step], outer: int, inner: int, change: int) -> None:
        for step in steps:
            changes = self.output_changes[step.to]
            if step.is_shift and inner + step.inner < step.until and outer + step.outer < _BEYOND:
                changes.update_number(
                    outer + step.outer, inner + step.inner, self.has_pairs, change
                )
                continue
            reached = step.arrives(self._time(outer, inner))
            if reached is not None:
                changes.update(reached, change)

    def _pass_number_on(self, location: int, outer: int, inner: int, change: int) -> None:
        if self.has_numbers:
            if self.is_delivered[location]:
                at = 4 * self._next_moved()
                self.moved[at] = location
                self.moved[at + 1] = outer
                self.moved[at + 2] = inner
                self.moved[at + 3] = change
            for way in range(self._first_shifts[location], self._first_shifts[location + 1]):
                at = 4 * way
                to_outer = outer + self._shifts[at + 1]
                to_inner = inner + self._shifts[at + 2]
                if to_inner < self._shifts[at + 3] and to_outer < _BEYOND and self.has_numbers:
                    self._push_number(self._shifts[at], to_outer, to_inner, change)
                else:
                    number = way - self._first_shifts[location]
                    self._pass_along(location, number, self._time(outer, inner), change)
        else:
            self._pass_on(location, self._time(outer, inner), change)

    def _pass_along(self, location: int, number: int, time: Any, change: int) -> None:
        """Push a change along one of the steps from a location, which does not only add to it."""
        step = self._steps_of(location)[number]
        reached = step.arrives(time)
        if reached is not None:
            self._push_time(step.to, reached, change)

    def _push_number(self, location: int, outer: int, inner: int, change: int) -> int:
        """As `_push`; returns where the entry is."""
        low, high = self._work_first, self._work_end
        middle = high - 1
        while low < high:
            at = 4 * middle
            other = self._work[at + 1]
            if other == outer:
                other = self._work[at + 2]
                if other == inner:
                    other = self._work[at]
                    if other == location:
                        self._work[at + 3] += change
                        return at
                    is_before = other < location
                else:
                    is_before = other < inner
            else:
                is_before = other < outer
            if is_before:
                low = middle + 1
            else:
                high = middle
            middle = (low + high) // 2
        if low == self._work_first and low > 0:
            low -= 1  # the place of what is being passed on, most often by one way
            self._work_first = low
        elif low == self._work_end and 4 * low < len(self._work):
            self._work_end = low + 1
        else:
            low = self._make_room(low)
        at = 4 * low
        self._work[at] = location
        self._work[at + 1] = outer
        self._work[at + 2] = inner
        self._work[at + 3] = change
        return at

    def _make_objects(self) -> None:
        """Go on with times as objects, one of which is too large to be a number here."""
        self._noted_times.extend(self._times_in(self._noted))
        # Not another list: of natural times it is the one of the keys, too.
        self._work_times.extend(self._times_in(self._work))
        self.moved_times.extend(self._times_in(self.moved))
        self.has_numbers = False
        self._pointstamps = self._counted(self._pointstamps)
        self._implications = self._counted(self._implications)

    def _counted(self, places: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([MutableAntichain(self._timestamp, counts) for counts in places])

    def _listed(self, entries: Any, times: list[Any], n: int) -> list[tuple[tuple[int, Any], int]]:
        """((location, time), change) of the first `n` entries."""
        if self.has_numbers:
            times = self._times_in(entries)
        return [((entries[4 * at], times[at]), entries[4 * at + 3]) for at in range(n)]

    def _times_in(self, entries: Any) -> list[Any]:
        """The times of all entries, also of those that are free."""
        return [self._time(entries[at + 1], entries[at + 2]) for at in range(0, len(entries), 4)]
