"""What a benchmark is made of: cases, the quantity they measure, what they are held to.

A case is one contender on one input: it runs in a process of its own and gives a
`Reading`. Cases of one benchmark whose `data` are the same must give the same
answer, so that none is quick by being wrong. Where a contender has only what its
first worker found, that is compared with what ours found there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Size = Literal["tiny", "small", "full"]
SIZES: tuple[Size, ...] = ("tiny", "small", "full")

OURS = "Pointstamp"
RUST = "Rust"

PART = "worker 0"
"""The name in `Reading.details` of what that worker alone has of the answer."""

At = Mapping[str, int | str]
"""Where a case is: how many workers, which graph, which point of a curve."""


@dataclass(frozen=True)
class Quantity:
    """How seconds for an amount of work are told: a time per piece, or pieces per second.

    >>> Quantity("us per round", 1e6).of(seconds=0.5, amount=100_000)
    5.0
    >>> Quantity("M records/s", 1e-6, is_rate=True).of(seconds=0.5, amount=3_000_000)
    6.0
    """

    unit: str
    scale: float = 1.0
    is_rate: bool = False

    def of(self, seconds: float, amount: float) -> float:
        """`seconds` for `amount` pieces of work, in this unit."""
        return self.scale * (amount / seconds if self.is_rate else seconds / amount)


@dataclass
class Reading:
    """What a case gives: seconds of each sample, peak bytes of each process, its answer.

    Where it has several workers, `details[PART]` is what the first of them found.
    """

    seconds: list[float]
    peaks: list[int] = field(default_factory=list)
    answer: Any = None
    details: dict[str, Any] = field(default_factory=dict)


Measure = Callable[["Effort"], Reading]


@dataclass(frozen=True)
class Effort:
    """How often to measure: `samples` times, fewer where one takes long, and once from `once_s` on.

    >>> Effort(5).wanted(0.1), Effort(5).wanted(8.0), Effort(5).wanted(30.0)
    (5, 5, 1)
    >>> Effort(5, patience_s=3.0).wanted(8.0)
    3
    """

    samples: int
    patience_s: float = 20.0
    once_s: float = 20.0

    def wanted(self, first_s: float) -> int:
        """How many samples, now that the first took `first_s` seconds."""
        if first_s > self.once_s:
            return 1
        return min(3, self.samples) if first_s > self.patience_s else self.samples


def with_others(effort: Effort) -> Reading:
    """The `measure` of cases whose benchmark measures all at once, by `together`."""
    raise NotImplementedError("the cases of this benchmark are measured together")


PEER_PATIENCE_S = 3.0
"""Peers that take longer than this are measured three times, not five."""


def _there() -> str:
    return ""


@dataclass(frozen=True)
class Case:
    """One contender on one input.

    Attributes
    ----------
    who : the contender, `OURS` or a baseline's name.
    at : what varies: workers, or the point of a curve.
    measure : does it; called in a process of its own.
    amount : pieces of work in a sample, for `Quantity`.
    data : cases with the same must give the same answer; None if it has none.
    needs : modules that must be importable.
    absent : why it cannot be measured here, or nothing; asked once, before the first case.
    in_turns : whether it takes turns with those of its benchmark that do too, as programs in Rust
        and what of ours does the same always do: for differences that are smaller than a machine's
        from one minute to the next.
    turn_samples : how many samples each of its turns has at least, of what takes milliseconds.
    in_both_modes : measured interpreted as well where the core is compiled.
    session : cases with the same, which follow each other, are measured in one process, as
        what they share takes longer to start than they do. Peaks are then of all so far.
    """

    who: str
    measure: Measure
    amount: float = 1.0
    at: At = field(default_factory=dict)
    data: str | None = None
    needs: tuple[str, ...] = ()
    in_both_modes: bool = False
    samples: int = 5
    note: str = ""
    session: str = ""
    absent: Callable[[], str] = _there
    in_turns: bool = False
    turn_samples: int = 1

    @property
    def key(self) -> str:
        """The case in words, unique within its benchmark.

        >>> Case("Pointstamp", lambda effort: Reading([]), at={"workers": 2}).key
        'Pointstamp, workers 2'
        """
        return ", ".join([self.who, *(f"{name} {value}" for name, value in self.at.items())])

    @property
    def is_ours(self) -> bool:
        """Whether this is Pointstamp."""
        return self.who.startswith(OURS)

    @property
    def is_rust(self) -> bool:
        """Whether this is a program in Rust, which takes turns with ours."""
        return self.who.startswith(RUST)


@dataclass(frozen=True)
class Target:
    """What a case of ours is to reach, in the benchmark's unit."""

    at: At
    value: float
    stretch: float | None = None


@dataclass(frozen=True)
class Ratio:
    """How many times the baseline's time a case of ours may take."""

    at: At
    value: float


@dataclass(frozen=True)
class Benchmark:
    """A claim, and what shows whether it holds.

    Attributes
    ----------
    cases : called with the size; small sizes are for trying and for tests.
    baselines : who ours is compared with; the first that has a fitting case.
    floors : those among the others who do less than we do, and so are no rivals.
    axis : for a curve: the entry of `at` along which it is drawn.
    draws_memory : whether the curve is of peak memory.
    growth : targets for a point of the curve in terms of its first point.
    prepare : makes the input files in a folder, in a process of its own, so that
        their making does not count as anybody's memory.
    input_bytes : the size of the input at the point `at`, for memory in terms of it.
    memory : how many times the input's size the peak of a worker may be.
    counted : what the answer is the number of, which is told per second and core as well.
    together : measures all cases at once, and gives their readings by key.
    when_named : takes so long that it is done only when it is named.
    tells_p99 : whether a sample is one of many, of which the 99th percentile is told.
    on_all_cores : those among the others who use all cores there are, and do not say so.
    """

    name: str
    title: str
    about: str
    quantity: Quantity
    cases: Callable[[Size], Sequence[Case]]
    baselines: tuple[str, ...] = ()
    floors: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    axis: str | None = None
    draws_memory: bool = False
    growth: tuple[Target, ...] = ()
    prepare: Callable[[Size], None] | None = None
    input_bytes: Callable[[Size, At], int] | None = None
    memory: tuple[Ratio, ...] = ()
    counted: str = ""
    on_all_cores: tuple[str, ...] = ()
    tells_p99: bool = False
    together: Callable[[Size], Mapping[str, Reading]] | None = None
    when_named: bool = False
