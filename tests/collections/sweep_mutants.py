"""Planted bugs in sweeps of texts, such as holders forgotten, found by programs that sweep."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.loops import loop_programs
from tests.collections.programs import programs
from tests.collections.sweeping import PIECES, check_alone, check_bystanders, check_swept


@from_seed(31)
@without_shrinking
@given(programs(), st.sampled_from(PIECES), st.booleans())
def by_sweeps(program: Any, piece: int, reuses: bool) -> None:
    """Programs of views that sweep after each epoch."""
    check_swept(program, piece, reuses)


@cache
def by_sweeps_of(*last: str) -> Any:
    """The same, of programs whose last step is one of some."""

    @from_seed(32)
    @without_shrinking
    @given(programs(last, max_steps=2), st.sampled_from(PIECES), st.booleans())
    def hunt(program: Any, piece: int, reuses: bool) -> None:
        check_swept(program, piece, reuses)

    return hunt


@from_seed(33)
@without_shrinking
@given(loop_programs(1), st.sampled_from(PIECES), st.booleans())
def by_swept_loops(program: Any, piece: int, reuses: bool) -> None:
    """The same with a loop."""
    check_swept(program, piece, reuses)


@cache
def by_alone(name: str) -> Callable[[], None]:
    """A program in which one operator alone keeps texts."""

    def hunt() -> None:
        check_alone(name)

    return hunt


def by_bystanders() -> None:
    """Two views, and what was handed out."""
    check_bystanders()


SWEEP_MUTANTS = [
    *_of(
        "containers.dictionary",
        by_sweeps,
        [
            (
                "An entry is freed that was asked for while the sweep went on.",
                "self._marks[number] = True",
                "self._marks[number] = False",
                10,
            ),
        ],
    ),
    *_of(
        "containers.dictionary",
        by_sweeps_of("filter", "computed"),
        [
            (
                "Constants of expressions are freed.",
                "pins.add(number)",
                "pins.discard(number)",
                4,
            ),
        ],
    ),
    *_of(
        "containers.text_sweep",
        by_bystanders,
        [
            (
                "Results that were handed out are forgotten.",
                "for holder in [*holders, *_alive(self._results)]:",
                "for holder in holders:",
            ),
            (
                "Only the oldest view is asked.",
                "for holder in [*holders, *_alive(self._results)]:",
                "for holder in [*holders[:1], *_alive(self._results)]:",
            ),
        ],
    ),
    *_of(
        "collections.view",
        by_bystanders,
        [
            (
                "What a result keeps is forgotten.",
                "(*self._new, *self._kept.rows)",
                "self._new",
            ),
        ],
    ),
    *_of(
        "collections.arrange",
        by_alone("joined"),
        [
            (
                "An entry is freed while a batch names it.",
                "[(rows, texts) for _, rows in spine.listed()]",
                "[(rows, texts) for _, rows in spine.listed()[1:]]",
            ),
        ],
    ),
    *_of(
        "collections.aggregate",
        by_alone("sums"),
        [
            (
                "Keys of sums are forgotten.",
                "for rows in (self._sums.dump(), *batches)]",
                "for rows in batches]",
            ),
        ],
    ),
    *_of(
        "collections.ordered",
        by_alone("least"),
        [
            (
                "Values in order are forgotten.",
                "return self._order.held_texts(self._kept.rows, key_texts)",
                "return self._order.held_texts([], key_texts)",
            ),
        ],
    ),
    *_of(
        "collections.accumulators",
        by_alone("different"),
        [
            (
                "Values that are counted are forgotten.",
                "return [(self._values.records(), texts)]",
                "return [(self._values.records(), texts[:0])]",
            ),
        ],
    ),
    *_of(
        "collections.collected",
        by_alone("collected"),
        [
            (
                "Values of lists are forgotten.",
                "return [(rows, texts) for rows in self._kept.rows]",
                "return [(rows, texts[:0]) for rows in self._kept.rows]",
            ),
        ],
    ),
    *_of(
        "collections.counted",
        by_alone("counted"),
        [
            (
                "Records that are counted are forgotten.",
                "holds_texts(lambda: [(state.records(), texts)])",
                "holds_texts(lambda: [(state.records(), texts[:0])])",
            ),
        ],
    ),
    *_of(
        "collections.reduce",
        by_alone("loop"),
        [
            (
                "Histories of groups are forgotten.",
                "for rows in history.rows()]",
                "for rows in history.rows()[1:]]",
            ),
        ],
    ),
]
