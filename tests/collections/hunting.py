"""What a planted bug in collections is, and the random programs that hunt for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any

import numpy as np
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

import pointstamp as ps
from tests.collections.checks import check_view, check_workers
from tests.collections.programs import programs
from tests.simulation.planting import Planting

N_PROGRAMS = 1_000
"""How many random programs a mutant may survive at most."""

without_shrinking = settings(
    max_examples=N_PROGRAMS,
    phases=[Phase.generate],
    database=None,
    deadline=None,
)


def from_seed(first: int) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Has a hunt draw its programs from a seed: this one, or another that it is called with."""

    def decorated(test: Callable[[], None]) -> Callable[..., None]:
        @wraps(test)
        def hunt(start: int = first) -> None:
            seed(start)(test)()

        return hunt

    return decorated


@from_seed(1)
@without_shrinking
@given(programs())
def by_views(program: object) -> None:
    """Programs of one worker, an epoch after the other."""
    check_view(program)  # type: ignore[arg-type]  # it is drawn as one


@cache
def by_views_of(*last: str) -> Callable[..., None]:
    """The same, of programs whose last step is one of some."""

    @from_seed(3)
    @without_shrinking
    @given(programs(last, max_steps=3))
    def hunt(program: object) -> None:
        check_view(program)  # type: ignore[arg-type]  # as above

    return hunt


@from_seed(4)
@without_shrinking
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2)), max_size=4),
        min_size=1,
        max_size=3,
    )
)
def by_thresholds(epochs: list[list[tuple[int, int]]]) -> None:
    """Records of which copies may be deleted before they come, at most twice each."""
    view = ps.View(
        lambda scope, t: t.threshold(lambda counts: np.minimum(counts, 2)), t="record long"
    )
    counts: Counter[Any] = Counter()
    found: Counter[Any] = Counter()
    for changes in epochs:
        view.update("t", [((record,), diff) for record, diff in changes])
        for record, diff in changes:
            counts[(record,)] += diff
        for row, diff in view.advance():
            found[row] += diff
        expected = {row: min(n, 2) for row, n in counts.items() if n > 0}
        assert {row: n for row, n in found.items() if n} == expected
    view.close()


@from_seed(2)
@without_shrinking
@given(programs(), st.sampled_from([1, 2]), st.sampled_from([2, 7]), st.integers(0, 1 << 20))
def by_workers(program: object, workers: int, at_a_time: int, schedule: int) -> None:
    """Programs of several epochs under way."""
    check_workers(program, workers, at_a_time, schedule)  # type: ignore[arg-type]  # as above


@dataclass(frozen=True)
class CollectionMutant:
    """A planted bug: what it is, what finds it, and where it is."""

    what: str
    hunt: Callable[..., None]
    planting: Planting
    seed: tuple[int, ...] = ()
    """From which the hunt finds it after few programs, if it needs many from its own."""


def planted_in(
    module: str,
    hunt: Callable[..., None],
    changes: Sequence[tuple[str, str, str] | tuple[str, str, str, int]],
) -> list[CollectionMutant]:
    return [
        CollectionMutant(what, hunt, Planting(f"pointstamp.{module}", old, new), tuple(seed))
        for what, old, new, *seed in changes
    ]
