"""Planted bugs in temporal filters and upserts, one line each, as those in `mutants.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.temporal_programs import check_program, orders, stays


@from_seed(4)
@without_shrinking
@given(stays(), st.sampled_from([1, 2]), st.sampled_from([1, 7]), st.integers(0, 1 << 20))
def by_stays(program: object, workers: int, at_a_time: int, schedule: int) -> None:
    """Temporal filters."""
    check_program(program, workers, at_a_time, schedule)


@from_seed(5)
@without_shrinking
@given(orders(), st.sampled_from([1, 2]), st.sampled_from([1, 7]), st.integers(0, 1 << 20))
def by_orders(program: object, workers: int, at_a_time: int, schedule: int) -> None:
    """Upserts."""
    check_program(program, workers, at_a_time, schedule)


TEMPORAL_MUTANTS = [
    *_of(
        "collections.clocked",
        by_stays,
        [
            (
                "A temporal filter is an epoch late.",
                "stash.at(held, following)",
                "stash.at(held, following + 1)",
            ),
            (
                "A temporal filter is behind its clock.",
                "parts = engine.move(now)",
                "parts = engine.move(now - 1)",
            ),
            (
                "The clock is what the first worker set.",
                "now = max(words, default=None)",
                "now = min(words, default=None) if len(words) > 1 else None",
            ),
            (
                "An epoch at which nothing comes is not looked at.",
                "if following is not None:",
                "if False:",
            ),
        ],
    ),
    *_of(
        "collections.temporal",
        by_stays,
        [
            (
                "A record that enters is not entered to leave.",
                "self._leaving.add(timed[:, 1:])",
                "pass",
            ),
            (
                "A record that the clock has jumped over enters.",
                "self._enter(came[came[:, 1] > now] if self._leaves else came)",
                "self._enter(came)",
            ),
            (
                "A record whose end has passed enters when it comes.",
                "kept &= ends > self.now",
                "pass",
            ),
            (
                "A record comes after its start alone.",
                "is_later = timed[:, 0] > self.now",
                "is_later = timed[:, 0] >= self.now",
            ),
            (
                "A null is a start or an end.",
                "are_there = there if are_there is None else are_there & there",
                "are_there = None",
            ),
            (
                "A record leaves by coming again.",
                "changes.append(negated(left[:, 1:]))",
                "changes.append(left[:, 1:])",
            ),
        ],
    ),
    *_of(
        "collections.upserts",
        by_orders,
        [
            (
                "The first upsert of an epoch wins.",
                "ends[:-1] = numbers[1:] != numbers[:-1]",
                "ends[1:] = numbers[1:] != numbers[:-1]",
            ),
            (
                "Upserts are not brought in the order of their places.",
                "np.lexsort((events[:, form.n_key], numbers))",
                "np.lexsort((numbers,))",
            ),
            (
                "The record before does not go.",
                "gone = before[differs & (before[:, 0] != 0), 1:]",
                "gone = before[:0, 1:]",
            ),
            (
                "A key without a record has had one of zeros.",
                "gone = before[differs & (before[:, 0] != 0), 1:]",
                "gone = before[differs, 1:]",
            ),
            (
                "What an event says was before is compared with what was before the epoch.",
                "known[follows] = after[follows - 1]",
                "pass",
            ),
            (
                "What an event says was before is its own record.",
                "known[follows] = after[follows - 1]",
                "known[follows] = after[follows]",
            ),
            (
                "Upserts go to any worker.",
                "pacts = [Exchange(FirstWords(form.n_key))]",
                "pacts = [Exchange(FirstWords(form.width - 1))]",
            ),
        ],
    ),
]
