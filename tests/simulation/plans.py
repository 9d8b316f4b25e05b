"""Random dataflows as values: what is connected, what operators do, what is sent.

`random_plan` draws a plan from a source of random numbers. Hypothesis has one
(`hypothesis.strategies.randoms()`), with which a plan that fails shrinks. Nothing
here runs anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pointstamp.progress.operate import Interest

Record = tuple[int, int]
"""A number, and how many lives are left: what goes around a loop must end."""

PACTS = ("pipeline", "exchange", "exchange", "broadcast")
"""As often as they are to be drawn."""

N_GROUPS = 4
"""Of how many groups of records sums are made."""

MANY = ("", "", "", "", "", "", "", "", "batches", "times")
"""Of what there are tens in a plan: most are small, as what is large takes long."""

LIBRARY = {
    "delay": (1, 1),
    "delay batch": (1, 1),
    "partition": (1, 2),
    "branch when": (1, 2),
    "aggregate": (1, 1),
    "accumulate": (1, 1),
    "state machine": (1, 1),
    "join": (2, 1),
    "window": (1, 1),
}
"""Operators of the library: of how many streams they make how many. See `library`."""


@dataclass(frozen=True)
class OperatorPlan:
    """An operator with behaviour of its own, or (`style`) one of the library's kinds."""

    name: str
    style: str
    """"free", "notify", "total" (sums by group of what a time had), or "concat"."""
    inputs: tuple[int, ...]
    """Streams of the scope, by number."""
    pacts: tuple[str, ...]
    interest: Interest
    initial: tuple[bool, ...]
    """Per output, whether it starts with a capability."""
    summaries: tuple[tuple[int | None, ...], ...]
    """Per output and input: how time advances; None where there is no way."""
    start: tuple[int, int, int]
    """What is done with an initial capability: how many times it is kept and then
    downgraded, for how many activations each, and records sent each time."""
    habits: tuple[int, int, int, int, int]
    """How likely a record is passed on, held, delayed, held after it, or lost."""


@dataclass(frozen=True)
class ProbePlan:
    """A probe on a stream."""

    stream: int


@dataclass(frozen=True)
class LibraryPlan:
    """An operator of the library, with what stands around it to keep records in bounds."""

    kind: str
    """A key of `LIBRARY`."""
    streams: tuple[int, ...]


@dataclass(frozen=True)
class IteratePlan:
    """A loop of its own, with a condition."""

    name: str
    stream: int
    until: str
    """"unchanged", "every" (record has few lives), or "measure" (of a sum of numbers)."""
    limit: int | None


@dataclass(frozen=True)
class ScopePlan:
    """A scope; its streams are numbered: entered, fed back, then the parts' outputs."""

    name: str
    kind: str
    """A key of `SCOPES`."""
    enters: tuple[int, ...]
    """Streams of the scope around it; for the outermost, numbers of inputs."""
    loops: tuple[tuple[int, int | None, int], ...]
    """Summary, limit, and the stream that is fed back."""
    parts: tuple[Any, ...]
    leaves: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """A random dataflow, and what is sent into it."""

    seed: int
    """What the operators draw from."""
    timestamp: str
    steady: bool
    eager: bool
    """Whether progress is sent at once, rather than on demand."""
    n_dataflows: int
    """How many times it is built and fed, one after the other and all at once."""
    root: ScopePlan
    epochs: tuple[tuple[tuple[Record, ...], int, int, bool], ...]
    """Records sent, how far time is advanced then, steps done, whether to wait for a probe."""
    copies: int = 1
    """How many times each record is sent, in a batch of its own."""
    requests: int = 1
    """How many times a notification is asked for where it is asked for."""
    again: int = 0
    """How many complete times each notified operator asks for once more, which is late, each
    with a later one that is not complete."""


def random_plan(rng: Random, *, steady: bool = False, size: int = 5, depth: int = 3) -> Plan:
    """Draw a plan.

    Parameters
    ----------
    rng : random.Random
        Where from; `hypothesis.strategies.randoms()` gives one that shrinks.
    steady : bool
        Whether what comes out must not depend on workers and schedule.
    size : int
        How many parts a scope has at most.
    depth : int
        How many scopes are nested at most.
    """
    timestamp = rng.choice(["Int", "Int", "Product", "EventProcessing", "Subsets"])
    knotted = rng.random() < 0.5
    # Open inputs cover much else, so often there is none.
    n_inputs = rng.choice([0, 0, 1]) if knotted else rng.choice([0, 1, 1, 2])
    drawing = _Drawing(rng, steady, rng.choice([1, 2, 3]) if knotted else size, knotted)
    depth = rng.choice([2, 2, 3, 4]) if knotted else depth
    root = drawing.scope("root", tuple(range(n_inputs)), depth)
    n_epochs = rng.randint(1, 4)
    epochs = tuple(
        (
            tuple((rng.randrange(1000), rng.randint(1, 5)) for _ in range(rng.randint(0, 4))),
            rng.randrange(4),
            rng.randrange(4),
            timestamp == "Int" and rng.random() < 0.3,
        )
        for _ in range(n_epochs)
    )
    seed, eager, n_dataflows = rng.randrange(1 << 16), rng.random() < 0.2, rng.choice([1] * 5 + [2])
    plan = Plan(seed, timestamp, steady, eager, n_dataflows, root, epochs)
    plan = replace(plan, requests=rng.choice([1, 1, 2, 30]), again=rng.choice([0, 0, 1, 3]))
    many = rng.choice(MANY)
    if many == "batches":
        return replace(plan, copies=rng.randint(10, 40), epochs=epochs[:2])
    if many == "times":
        return replace(plan, epochs=tuple(_many_times(rng)))
    return plan


def _many_times(rng: Random) -> Iterator[tuple[tuple[Record, ...], int, int, bool]]:
    """Tens of times that are outstanding at once: sent before the first step is made."""
    for _ in range(rng.randint(30, 70)):
        yield ((rng.randrange(1000), 1),) * rng.randint(0, 2), rng.choice([1, 2, 2, 3]), 0, False


@dataclass
class _Drawing:
    rng: Random
    steady: bool
    size: int
    knotted: bool
    """Whether to prefer what is rare by chance: loops that lead through scopes in scopes."""
    n_operators: int = 0

    def scope(self, kind: str, enters: tuple[int, ...], depth: int) -> ScopePlan:
        rng = self.rng
        n_loops = max(rng.choice([0, 1, 1, 2]) - (depth == 1), int(self.knotted and depth > 1))
        n_streams = len(enters) + n_loops
        looping = range(len(enters), n_streams)
        from_scopes: list[int] = []
        parts: list[Any] = []
        for _ in range(rng.randint(1, self.size)):
            drawn = 0.0 if self.knotted and not parts else rng.random()
            if drawn < 0.25 and depth > 1 and n_streams:
                part: Any = self.inner_scope(n_streams, looping, depth)
                from_scopes.extend(range(n_streams, n_streams + len(part.leaves)))
                n_streams += len(part.leaves)
            elif 0 < drawn < 0.35 and n_streams:
                part = ProbePlan(rng.randrange(n_streams))
            elif 0.35 < drawn < 0.42 and n_streams:
                part = self.iteration(n_streams)
                n_streams += 1
            elif 0.42 < drawn < 0.55 and n_streams:
                part = self.library(n_streams)
                n_streams += LIBRARY[part.kind][1]
            elif drawn > 0.85 and n_streams:
                detour, part = self.detour(n_streams)
                parts.append(detour)
                n_streams += 2
            else:
                part = self.operator(n_streams)
                n_streams += len(part.initial)
            parts.append(part)
        loops = tuple(
            (rng.randint(1, 2), rng.choice([None, None, 4]), self.pick(n_streams, from_scopes))
            for _ in range(n_loops)
        )
        n_leaves = rng.randint(1, 2) if kind != "root" else 0
        outputs = range(len(enters) + n_loops, n_streams)
        leaves = tuple(self.pick(n_streams, outputs) for _ in range(n_leaves))
        return ScopePlan(f"{kind} {depth}", kind, enters, loops, tuple(parts), leaves)

    def pick(self, n_streams: int, preferred: Sequence[int]) -> int:
        """A stream; often a preferred one."""
        if preferred and self.rng.random() < (0.9 if self.knotted else 0.4):
            return self.rng.choice(preferred)
        return self.rng.randrange(n_streams)

    def inner_scope(self, n_streams: int, looping: Sequence[int], depth: int) -> ScopePlan:
        rng = self.rng
        kinds = ["region", "iterative", "iterative", "iterative over moments"]
        kind = rng.choice([*kinds, "iterative over subsets"])
        enters = tuple(self.pick(n_streams, looping) for _ in range(rng.randint(1, 2)))
        return self.scope(kind, enters, depth - 1)

    def iteration(self, n_streams: int) -> IteratePlan:
        rng = self.rng
        self.n_operators += 1
        until = rng.choice(["unchanged", "every", "measure"])
        name = f"iterate {self.n_operators}"
        return IteratePlan(name, rng.randrange(n_streams), until, rng.choice([None, 2]))

    def library(self, n_streams: int) -> LibraryPlan:
        kind = self.rng.choice(list(LIBRARY))
        n_inputs, _ = LIBRARY[kind]
        return LibraryPlan(kind, tuple(self.rng.randrange(n_streams) for _ in range(n_inputs)))

    def detour(self, n_streams: int) -> tuple[OperatorPlan, OperatorPlan]:
        """Two ways from a stream to another: past an operator that takes it later, and straight."""
        start = self.rng.randrange(n_streams)
        later = replace(
            self.operator(n_streams),
            name=f"free {self.n_operators}",
            style="free",
            inputs=(start,),
            pacts=(self.rng.choice(PACTS),),
            initial=(False,),
            summaries=((1,),),
        )
        ways = self.rng.choice([(start, n_streams), (n_streams, start)])
        joined = replace(
            later,
            name=f"concat {self.n_operators}",
            style="concat",
            inputs=ways,
            pacts=("pipeline",) * 2,
            summaries=((0, 0),),
        )
        return later, joined

    def operator(self, n_streams: int) -> OperatorPlan:
        rng = self.rng
        self.n_operators += 1
        styles = ["free", "free", "free", "notify", "total", "concat"]
        style = rng.choice(styles) if n_streams else "free"
        n_inputs = min(rng.choice([1, 1, 2, 2, 3]), n_streams) if n_streams else 0
        if style in ("notify", "total"):
            n_inputs = min(n_inputs, 2)
        n_outputs = rng.choice([1, 1, 2]) if style == "free" else 1
        forced = {"concat": ("pipeline",), "total": ("grouped",)}
        pacts = forced.get(style, PACTS)
        return OperatorPlan(
            f"{style} {self.n_operators}",
            style,
            tuple(rng.randrange(n_streams) for _ in range(n_inputs)),
            tuple(rng.choice(pacts) for _ in range(n_inputs)),
            rng.choice([Interest.NEVER, Interest.IF_CAPABILITY, Interest.ALWAYS]),
            tuple(style == "free" and rng.random() < 0.5 for _ in range(n_outputs)),
            tuple(tuple(self.summary(style) for _ in range(n_inputs)) for _ in range(n_outputs)),
            (rng.randrange(5), rng.choice([0, 0, 1, 3]), rng.randrange(3)),
            tuple(rng.randint(0, 3) for _ in range(5)),  # type: ignore[arg-type]  # five they are
        )

    def summary(self, style: str) -> int | None:
        return self.rng.choice([0, 0, 0, 0, 1, None]) if style == "free" else 0
