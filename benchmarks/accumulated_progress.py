"""Progress from each worker to each, and added up by machine: on many machines, by a model.

The workers are real ones, in one thread, and what they send is what they would send anywhere.
What is modelled is how long it takes: a worker is busy for each step, each message and each
change of a count; a message is under way for a while, and between machines its bytes pass one
after the other through the sender's card. `COSTS` says what is assumed. Nothing is lost, no
worker is slower than others, and a receiver's card is never full, so this is the time of the
protocol at its best, flat and added up.

    python -m benchmarks.accumulated_progress            prints the table of docs/clusters.md
    python -m benchmarks.accumulated_progress 128 8      one line of it, and how long that took
"""

from __future__ import annotations

import heapq
import sys
from collections import deque
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import peaks
from pointstamp.communication.communicator import Message
from pointstamp.communication.mailbox import ChannelEnd, Mailbox
from pointstamp.containers.codec import encode

FLAT = "all-to-all"
LAYOUTS = {
    "tiny": ((4, 2),),
    "small": ((16, 1), (16, 4)),
    "full": (
        *((16, machines) for machines in (1, 4, 8)),
        *((128, machines) for machines in (1, 8, 32)),
        *((1024, machines) for machines in (1, 16, 64)),
    ),
}
"""(workers, machines)."""

PROGRESS = 1
"""The channel that is modelled; on the other workers agree on what they build."""

FIRST = 2
"""The rounds before belong to the start."""


@dataclass(frozen=True)
class Costs:
    """What is assumed, in seconds and bytes."""

    step: float = 3e-6
    """A worker's step, without what follows."""
    change: float = 0.3e-6
    """To count one change of a count."""
    here: float = 0.7e-6
    """To send a message within a machine, and again to take it: a record in shared memory."""
    there: float = 3e-6
    """The same between machines: a share of a call of the system, and of an interrupt."""
    latency_here: float = 1e-6
    latency_there: float = 30e-6
    """From one machine's card to a process of another, by TCP within a data centre."""
    bytes_per_s: float = 1.25e9
    """Through a machine's card: 10 Gb/s."""
    header: int = 80
    """Bytes of a frame and of the packet around it."""


COSTS = Costs()


class Round(NamedTuple):
    """What a round of a barrier takes."""

    messages: float
    between: float
    """Of these, messages between machines."""
    n_bytes: float
    """Between machines."""
    seconds: float


class Model:
    """Workers on machines, and the time at each."""

    def __init__(self, workers: int, machines: int, costs: Costs = COSTS) -> None:
        self.costs = costs
        self.machines = [worker * machines // workers for worker in range(workers)]
        self.now = [0.0] * workers
        """By worker: until when it is busy."""
        self.n_messages = self.n_between = self.n_bytes = 0
        self.communicators = [_Modelled(self, index) for index in range(workers)]
        self._card = [0.0] * machines
        self._agenda: list[tuple[float, int]] = []
        self._next: list[float | None] = [None] * workers
        """When a worker steps next; None if nothing is there for it."""
        self._sized: tuple[Any, int] = (None, 0)

    def run(self, workers: list[ps.Worker]) -> None:
        """Step each worker when there is something for it, until nothing is anywhere."""
        for index in range(len(workers)):
            self.wake(index, 0.0)
        while self._agenda:
            at, index = heapq.heappop(self._agenda)
            if self._next[index] != at:
                continue  # another entry was earlier
            self._next[index] = None
            worker = workers[index]
            self.now[index] = at + self.costs.step
            worker.step()
            arrivals = self.communicators[index].under_way
            if worker.has_work:
                self.wake(index, self.now[index])
            elif arrivals:
                self.wake(index, arrivals[0][0])

    def wake(self, index: int, at: float) -> None:
        """Have a worker step, not before it is free and not after what is due already."""
        at = max(at, self.now[index])
        due = self._next[index]
        if due is None or at < due:
            self._next[index] = at
            heapq.heappush(self._agenda, (at, index))

    def send(self, sender: int, receiver: int, tag: Any, batch: Any) -> None:
        """A message of progress leaves."""
        costs, machine = self.costs, self.machines[sender]
        self.n_messages += 1
        if machine == self.machines[receiver]:
            self.now[sender] += costs.here
            arrives = self.now[sender] + costs.latency_here
        else:
            self.now[sender] += costs.there
            n_bytes = self._size(batch, tag)
            self.n_between += 1
            self.n_bytes += n_bytes
            sent = max(self._card[machine], self.now[sender]) + n_bytes / costs.bytes_per_s
            self._card[machine] = sent
            arrives = sent + costs.latency_there
        heapq.heappush(
            self.communicators[receiver].under_way, (arrives, self.n_messages, sender, tag, batch)
        )
        self.wake(receiver, arrives)

    def _size(self, batch: Any, tag: Any) -> int:
        if self._sized[0] is not batch:  # the same one goes to many
            n_bytes = sum(memoryview(piece).nbytes for piece in encode(batch, tag))
            self._sized = (batch, n_bytes + self.costs.header)
        return self._sized[1]


class _Modelled:
    """A communicator of which the channel of progress takes time, and the others none."""

    def __init__(self, model: Model, index: int) -> None:
        self.index = index
        self.peers = len(model.machines)
        self.machines = model.machines
        self.under_way: list[tuple[float, int, int, Any, Any]] = []
        """By when they arrive: (when, number, sender, tag, batch)."""
        self._model = model
        self._mailbox = Mailbox()

    def channel(self) -> ChannelEnd:
        return self._mailbox.make(self.peers, self._carry)

    def _carry(self, channel: int, peer: int, tag: Any, batch: Any) -> None:
        if channel == PROGRESS:
            self._model.send(self.index, peer, tag, batch)
        else:
            there = self._model.communicators[peer]
            there._mailbox.put(channel, Message(self.index, tag, batch))
            self._model.wake(peer, 0.0)

    def receive(self) -> list[int]:
        model, costs = self._model, self._model.costs
        began = model.now[self.index]
        while self.under_way and self.under_way[0][0] <= began:
            _, _, sender, tag, batch = heapq.heappop(self.under_way)
            is_here = self.machines[sender] == self.machines[self.index]
            took = costs.here if is_here else costs.there
            model.now[self.index] += took + costs.change * len(batch)
            self._mailbox.put(PROGRESS, Message(sender, tag, batch))
        return self._mailbox.touched_channels()

    def flush(self) -> None:
        pass

    def unpark(self) -> None:
        self._model.wake(self.index, 0.0)


def barrier_round(
    workers: int, machines: int, *, accumulate: bool, rounds: int, costs: Costs = COSTS
) -> Round:
    """What a round of a barrier takes, of so many that follow each other."""
    model = Model(workers, machines, costs)
    marks: deque[Round] = deque()

    def build(index: int) -> Any:
        def make(capability: ps.Capability, info: Any) -> Any:
            def logic(input: Any, output: Any, notificator: Any) -> None:
                for cap in notificator:
                    if index == 0 and cap.time in (FIRST, FIRST + rounds):
                        counts = (model.n_messages, model.n_between, model.n_bytes)
                        marks.append(Round(*counts, model.now[0]))
                    if cap.time < FIRST + rounds:
                        notificator.notify_at(cap.delayed(cap.time + 1))

            return logic

        return make

    made = [ps.Worker(each, accumulate=accumulate) for each in model.communicators]  # type: ignore[arg-type]
    for index, worker in enumerate(made):
        with worker.dataflow("barrier") as scope:
            loop, stream = scope.feedback(1)
            loop.connect(stream.unary_notify(ps.Pipeline(), "Barrier", build(index), initial=[0]))
    model.run(made)
    first, last = marks
    return Round(*((after - before) / rounds for before, after in zip(first, last, strict=True)))


def n_rounds(workers: int) -> int:
    """Enough to be past the start; fewer where each is a million messages."""
    return 2 if workers > 500 else 10


def measured(workers: int, machines: int, accumulate: bool) -> Measure:
    """The modelled time of a round; it is the same each time."""

    def measure(effort: Effort) -> Reading:
        found = barrier_round(workers, machines, accumulate=accumulate, rounds=n_rounds(workers))
        return Reading([found.seconds], peaks(), details=found._asdict())

    return measure


def cases(size: Size) -> list[Case]:
    """Flat and added up, on the same machines."""
    return [
        Case(
            who,
            measured(workers, machines, accumulate),
            at={"workers": workers, "machines": machines},
            samples=1,
        )
        for workers, machines in LAYOUTS[size]
        for who, accumulate in ((OURS, True), (FLAT, False))
    ]


BENCHMARK = Benchmark(
    name="accumulated_progress",
    title="A round of a barrier on many machines, by a model of latencies",
    about="Progress accumulated per machine, compared with all-to-all.",
    quantity=Quantity("modelled us per round", 1e6),
    cases=cases,
    baselines=(FLAT,),
    when_named=True,
)


HEAD = (
    "| workers | machines | messages: all-to-all | accumulated | between machines: all-to-all "
    "| accumulated | KB between machines: all-to-all | accumulated | us per round: all-to-all "
    "| accumulated |\n|---|---|---|---|---|---|---|---|---|---|"
)


def line(workers: int, machines: int) -> str:
    """A line of the table."""
    both = [
        barrier_round(workers, machines, accumulate=accumulate, rounds=n_rounds(workers))
        for accumulate in (False, True)
    ]
    pairs = [
        (
            f"{r.messages:,.0f}",
            f"{r.between:,.0f}",
            f"{r.n_bytes / 1e3:,.1f}",
            f"{r.seconds * 1e6:,.0f}",
        )
        for r in both
    ]
    cells = [f"{workers:,}", str(machines)]
    for flat, added in zip(*pairs, strict=True):
        cells += [flat, added]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> None:
    """Print the table, or the line that is asked for."""
    layouts = LAYOUTS["full"]
    if arguments:
        layouts = (tuple(map(int, arguments)),)  # type: ignore[assignment]
    print(HEAD)
    for workers, machines in layouts:
        began = perf_counter()
        print(line(workers, machines), flush=True)
        print(f"{perf_counter() - began:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
