"""Collections at times of a user's own lattice give what recomputing gives at each time."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import BuildError, TimestampError, WorkerError
from tests.collections.checks import PIECES, in_pieces
from tests.collections.lattice_programs import STEPS
from tests.conftest import examples
from tests.simulation.subsets import MEMBERS, Subsets

N_VERSIONS = 3

Time = tuple[int, int]
Update = tuple[int, int, Time, int]
"""Key, value, when, and how often."""


@dataclass(frozen=True)
class Regions(Subsets):
    """Sets of regions, by inclusion, of which each is a word: whether it is in the set."""

    name = "Regions"
    n_words = len(MEMBERS)

    def encode(self, time: int) -> tuple[int, ...]:
        return tuple(time >> member & 1 for member in MEMBERS)

    def decode(self, words: tuple[int, ...]) -> int:
        return sum(word << member for member, word in enumerate(words))


VERSIONS = ps.Product(ps.Int, Regions())
TIMES = list(itertools.product(range(N_VERSIONS), range(1 << len(MEMBERS))))


def is_before(one: Time, other: Time) -> bool:
    return one[0] <= other[0] and one[1] & other[1] == one[1]


def made(step: str, updates: list[Update], later: list[Update], looped: bool) -> Any:
    """The program: each update is at its own time."""

    def main(worker: ps.Worker) -> list[tuple[Any, Time, int]]:
        seen: list[tuple[Any, Time, int]] = []
        with worker.dataflow(timestamp=VERSIONS) as scope:
            collections = []
            for given_ in (updates, later):
                stream = scope.to_stream(given_[worker.index :: worker.peers])
                moved = stream.delay(lambda update, time: update[2])
                pairs = moved.map(lambda update: (update[0], update[1], update[3]))
                collections.append(pairs.as_collection("k long, v long", diff="n"))
            one, two = collections
            result = STEPS[step][0](one, two)
            if looped:
                result = result.select("k", "v").iterate(
                    lambda found: found.with_columns(v=ps.when(col_v > 2).then(2).otherwise(col_v))
                )
            result.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        worker.run()
        return seen

    return main


col_v = ps.col("v")


def accumulated(updates: Any, at: Time) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row, time, diff in updates:
        if is_before(time, at):
            found[row] += diff
    return Counter({row: n for row, n in found.items() if n})


def check(
    step: str, updates: list[Update], later: list[Update], looped: bool, workers: int, seed: int
) -> None:
    with in_pieces(PIECES[seed % len(PIECES)]):
        parts = ps.simulate(made(step, updates, later, looped), workers=workers, seed=seed)
    seen = [update for part in parts for update in part]
    for at in TIMES:
        one, two = (
            accumulated((((k, v), time, n) for k, v, time, n in given_), at)
            for given_ in (updates, later)
        )
        expected = STEPS[step][1](one, two)
        if looped:
            capped: Counter[Any] = Counter()
            for (k, v), n in expected.items():
                capped[k, min(v, 2)] += n
            expected = capped
        assert accumulated(seen, at) == Counter({r: n for r, n in expected.items() if n}), at


TIME = st.sampled_from(TIMES)


@st.composite
def updates_drawn(draw: Any) -> list[Update]:
    """Insertions, and deletions at later times of what was inserted."""
    found: list[Update] = []
    for _ in range(draw(st.integers(0, 6))):
        k, v, time = draw(st.integers(0, 1)), draw(st.integers(0, 4)), draw(TIME)
        found.append((k, v, time, 1))
        if draw(st.booleans()):
            end = draw(TIME)
            found.append((k, v, (max(time[0], end[0]), time[1] | end[1]), -1))
    return found


CASES = sorted({*STEPS} - {"numbered"})


@settings(max_examples=examples(150))
@given(
    st.sampled_from(CASES),
    updates_drawn(),
    updates_drawn(),
    st.booleans(),
    st.sampled_from([1, 2]),
    st.integers(0, 1 << 16),
)
def test_at_each_time_there_is_what_recomputing_gives(
    step: str,
    updates: list[Update],
    later: list[Update],
    looped: bool,
    workers: int,
    seed: int,
) -> None:
    check(step, updates, later, looped, workers, seed)


def test_a_type_whose_times_are_no_words_is_refused_by_name() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow(timestamp=ps.Product(ps.Int, Subsets())) as scope:
            _, collection = scope.new_collection("k long")
            with pytest.raises(BuildError, match="Subsets has no n_words, encode, decode"):
                collection.distinct()
            scope.timestamp.check((0, 0))

    with pytest.raises(WorkerError, match="still open"):
        ps.simulate(lambda worker: (main(worker), worker.run()), workers=1, seed=1)


@dataclass(frozen=True)
class Misencoded(Regions):
    """It forgets a word."""

    name = "Misencoded"

    def encode(self, time: int) -> tuple[int, ...]:
        return super().encode(time)[1:]


def test_words_that_are_none_are_an_error_with_the_time() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow(timestamp=Misencoded()) as scope:
            pairs = scope.to_stream([(1, 1)]).as_collection("k long", diff="n")
            pairs.distinct().probe()
        worker.run()

    with pytest.raises((WorkerError, TimestampError), match="Misencoded encodes the time 0 as"):
        ps.simulate(main, workers=1, seed=1)
