"""Random temporal filters and upserts, and what they should give: recomputed at each epoch.

They are short programs of their own, as their inputs are others than those of `programs.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col

Row = tuple[Any, ...]
Multiset = Counter[Row]

STAYS = "k long, a long?, b long?"
ORDERS = "k long, t string?, v long"


def shown(rows: Multiset) -> Multiset:
    """Without the records that are there no times."""
    return Counter({row: n for row, n in rows.items() if n})


def accumulated(updates: list[tuple[Row, int, int]], n_epochs: int) -> list[Multiset]:
    """The collection at each epoch, of updates (row, epoch, diff)."""
    found = []
    for epoch in range(n_epochs):
        now: Multiset = Counter()
        for row, time, diff in updates:
            if time <= epoch:
                now[row] += diff
        found.append(shown(now))
    return found


@dataclass(frozen=True)
class Stays:
    """Epochs of changes and of a clock, and the form of a filter of them."""

    is_canonical: ClassVar = (True,)
    """Whether no row of a result has two updates of one time, which would be sent for nothing."""

    form: int
    """0: both ends; 1: without an end; 2: without a start; 3: an expression as the end."""
    by_epoch: bool
    counts: bool
    """Whether a count of each k is kept of what is there."""
    epochs: list[tuple[list[tuple[Row, int]], int]]

    @property
    def n_epochs(self) -> int:
        """With those at which nothing comes, as the epochs go on."""
        return len(self.epochs) + 8

    def build(self, stays: Any, clock: Any) -> Any:
        """With the operators."""
        start = None if self.form == 2 else "a"
        end = (col("b"), None, "b", col("a") + 2)[self.form]
        found = stays.temporal_filter(start, end, clock=None if self.by_epoch else clock)
        return found.group_by("k").agg(n=ps.count()) if self.counts else found

    def made(self, scope: Any) -> tuple[list[Any], list[Any]]:
        """The inputs, and what is compared."""
        input_, collection = scope.new_collection(STAYS)
        now, clock = scope.new_clock("long")
        return [input_, now], [self.build(collection, clock)]

    def send(self, inputs: list[Any], epoch: int, index: int, peers: int) -> None:
        """The share of a worker; they set the clock in turns, and when it moves only."""
        changes, move = self.epochs[epoch]
        inputs[0].update(changes[index::peers])
        if move and index == epoch % peers:
            inputs[1].set(sum(move for _, move in self.epochs[: epoch + 1]))

    def expected(self) -> list[list[Multiset]]:
        """In plain Python, at each epoch."""
        there: Multiset = Counter()
        now: int | None = None
        found = []
        for epoch in range(self.n_epochs):
            changes, move = self.epochs[epoch] if epoch < len(self.epochs) else ([], 0)
            for row, diff in changes:
                there[row] += diff
            now = epoch if self.by_epoch else (now or 0) + move if move or now is not None else None
            rows = Counter({row: n for row, n in there.items() if self._is_there(row, now)})
            if self.counts:
                counts: Multiset = Counter()
                for (k, _, _), n in rows.items():
                    counts[k,] += n
                rows = Counter({(k, n): 1 for (k,), n in counts.items() if n})
            found.append(shown(rows))
        return [found]

    def _is_there(self, row: Row, now: int | None) -> bool:
        _, a, b = row
        sides: list[int | None] = []
        if self.form != 2:
            sides.append(a)
        if self.form == 3:
            b = None if a is None else a + 2
        if self.form != 1:
            sides.append(b)
        if now is None or None in sides:
            return False
        return (self.form == 2 or a <= now) and (self.form == 1 or now < b)


@st.composite
def stays(draw: Any) -> Stays:
    """Insertions, deletions of what was inserted, and a clock that jumps."""
    points = st.one_of(st.none(), st.integers(-2, 10))
    rows = st.tuples(st.integers(0, 2), points, points)
    known: list[Row] = []
    epochs = []
    for _ in range(draw(st.integers(1, 6))):
        added = draw(st.lists(st.tuples(rows, st.sampled_from([1, 1, 2])), max_size=5))
        gone = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
        for row in gone:
            known.remove(row)
        known += [row for row, n in added for _ in range(n)]
        epochs.append(([*added, *((row, -1) for row in gone)], draw(st.sampled_from([0, 1, 2, 5]))))
    return Stays(draw(st.integers(0, 3)), draw(st.booleans()), draw(st.booleans()), epochs)


@dataclass(frozen=True)
class ProgramRun:
    """A program on a worker, from the epochs behind those of the snapshot that it begins with.

    A program makes its inputs and what is compared of them in a scope, and sends an epoch.
    """

    program: Any
    at_a_time: int
    """So many epochs are sent before anything is worked off."""
    durable: Any = None
    cut: int | None = None
    """Of which epoch to make a snapshot."""

    def __call__(self, worker: ps.Worker) -> tuple[list[list[tuple[Row, int, int]]], Any]:
        """Of each result the updates that this worker sees; its part of the snapshot."""
        program = self.program
        seen: list[list[tuple[Row, int, int]]] = []
        with worker.dataflow("program", durable=self.durable) as scope:
            inputs, results = program.made(scope)
            probes = [_watched(result, seen) for result in results]
        is_cut = self.cut is not None
        snapshot = worker.snapshot(self.cut, background=False) if is_cut else None
        first = 0 if self.durable is None else self.durable.epoch + 1
        for epoch in range(first, len(program.epochs)):
            program.send(inputs, epoch, worker.index, worker.peers)
            for input_ in inputs:
                input_.advance_to(epoch + 1)
            if epoch % self.at_a_time == self.at_a_time - 1:
                worker.step_while(lambda until=epoch + 1: any(p.less_than(until) for p in probes))
        for input_ in inputs:
            input_.close()
        worker.run()
        return seen, None if snapshot is None else snapshot.part


def _watched(result: Any, seen: list[list[tuple[Row, int, int]]]) -> Any:
    """A probe of a result whose updates are noted."""
    updates: list[tuple[Row, int, int]] = []
    seen.append(updates)
    result.inspect(lambda row, time, diff: updates.append((row, time, diff)))
    return result.probe()


def check_program(program: Any, workers: int, at_a_time: int, seed: int) -> None:
    """The updates of all workers add up to what recomputing gives, at each epoch."""
    parts = ps.simulate(ProgramRun(program, at_a_time), workers=workers, seed=seed)
    for number, expected in enumerate(program.expected()):
        found = [update for seen, _ in parts for update in seen[number]]
        assert accumulated(found, len(expected)) == expected
        if program.is_canonical[number]:
            assert len({(row, time) for row, time, _ in found}) == len(found)


@dataclass(frozen=True)
class Orders:
    """Epochs of upserts: (key, row or None, place); whether places decide.

    As messages of Debezium they say what was there before, but where a key of 0 is upserted.
    """

    is_canonical: ClassVar = (True,)

    in_places: bool
    by_messages: bool
    epochs: list[list[tuple[int, Row | None, int]]]

    def in_order(self, events: list[tuple[int, Row | None, int]]) -> list[Any]:
        """The events of an epoch in the order in which they count."""
        return sorted(events, key=lambda event: event[2]) if self.in_places else events

    def messages(self) -> list[list[tuple[int, Any]]]:
        """Of each epoch the messages of Debezium, with their keys, in the order of coming."""
        names = [column.split()[0] for column in ORDERS.split(",")]
        known: dict[int, Row | None] = {}
        found = []
        for events in self.epochs:
            made = {}
            for event in self.in_order(events):
                key, *rows, place = event[0], known.get(event[0]), event[1], event[2]
                before, after = (row and dict(zip(names, row, strict=True)) for row in rows)
                known[key] = event[1]
                if after is not None:
                    said = before if key else None
                    made[place] = {"op": "u", "before": said, "after": after, "place": place}
                elif before is not None:
                    made[place] = {"op": "d", "before": before, "after": None, "place": place}
            found.append([(event[0], made[event[2]]) for event in events if event[2] in made])
        return found

    def made(self, scope: Any) -> tuple[list[Any], list[Any]]:
        """The input, and what is compared."""
        input_, stream = scope.new_input()
        make = scope.from_debezium if self.by_messages else scope.from_upserts
        place = "place" if self.by_messages else 2
        sequence = (lambda record: record[place]) if self.in_places else None
        return [input_], [make(stream, ORDERS, "k", sequence=sequence)]

    def send(self, inputs: list[Any], epoch: int, index: int, peers: int) -> None:
        """The share of a worker.

        Without places all events of a key come from one, as their order is that of coming.
        """
        plain = [(event[0], event) for event in self.epochs[epoch]]
        events = self.messages()[epoch] if self.by_messages else plain
        for number, (key, event) in enumerate(events):
            if (number if self.in_places else key) % peers == index:
                inputs[0].send(event)

    def expected(self) -> list[list[Multiset]]:
        """In plain Python, at each epoch."""
        records: dict[int, Row] = {}
        found = []
        for events in self.epochs:
            for key, row, _ in self.in_order(events):
                records.pop(key, None)
                if row is not None:
                    records[key] = row
            found.append(Counter(records.values()))
        return [found]


@st.composite
def orders(draw: Any) -> Orders:
    """Few keys, so that an epoch has several of one; places of one epoch differ."""
    epochs = []
    for _ in range(draw(st.integers(1, 6))):
        events = []
        for place in draw(st.permutations(range(draw(st.integers(0, 6))))):
            key = draw(st.integers(0, 3))
            text = draw(st.sampled_from([None, "", "a", "b"]))
            row = draw(st.sampled_from([None, (key, text, 1), (key, text, 2)]))
            events.append((key, row, place))
        epochs.append(events)
    return Orders(draw(st.booleans()), draw(st.booleans()), epochs)
