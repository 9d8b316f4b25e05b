"""Planted bugs in sweeps of texts of threads, such as messages between them that are forgotten."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.collections import thread_sweeping as checks
from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.programs import programs
from tests.collections.sweeping import PIECES
from tests.collections.worker_sweeping import check_views_inside_of_steps

STEPS = st.lists(st.integers(0, 40), min_size=1, max_size=6)


@from_seed(44)
@without_shrinking
@given(
    programs(), STEPS, st.sampled_from(PIECES), st.booleans(), st.integers(2, 3), st.integers(0, 99)
)
def by_swept_simulations(
    program: Any, steps: Any, piece: int, reuses: bool, workers: int, seed: int
) -> None:
    """Programs of workers that take turns, each of which sweeps after its steps."""
    checks.check_swept_simulation(program, steps, piece, reuses, workers, seed)


THREAD_SWEEP_MUTANTS = [
    *_of(
        "communication.threads",
        checks.check_between_threads,
        [
            (
                "What is on its way between threads is forgotten.",
                "for each in inbox.copy()]",
                "for each in list(inbox)[:0]]",
            ),
        ],
    ),
    *_of(
        "communication.threads",
        checks.check_early_messages,
        [
            (
                "What is on its way to a thread that has not begun is forgotten.",
                "for inbox in self._group.inboxes for each in",
                "for inbox in [self._inbox] for each in",
            ),
            (
                "What came to a thread for a dataflow that it has not built is forgotten.",
                "+ self._mailbox.early()",
                "+ self._mailbox.early()[:0]",
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_early_messages,
        [
            (
                "What is for a dataflow that is not built is taken for an order.",
                "if channel not in others:",
                "if channel in readers:",
            ),
        ],
    ),
    *_of(
        "containers.text_sweep",
        checks.check_worker_that_begins_meanwhile,
        [
            (
                "A thread that has begun since a sweep looked for threads is forgotten.",
                "has_begun = self._are_all(holders)",
                "has_begun = True",
            ),
        ],
    ),
    *_of(
        "communication.simulated",
        by_swept_simulations,
        [
            (
                "What is on its way in a simulation is forgotten.",
                "found += [(channel, batch) for _, batch in waiting]",
                "found += [(channel, batch) for _, batch in waiting][:0]",
                1,
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_step_on_another_thread,
        [
            (
                "A sweep begins in the midst of a step on another thread.",
                "is_still = self._is_held = self._safepoint.hold()",
                "is_still = True",
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_building_on_another_thread,
        [
            (
                "A sweep begins while another thread builds a dataflow, and waits there.",
                "if is_still and worker._is_building:",
                "if not worker:",
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_simulations_are_swept,
        [
            (
                "Workers that wait for their turn are taken to be at work.",
                'getattr(worker.communicator, "is_suspended", False)',
                "False",
                1,
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        check_views_inside_of_steps,
        [
            (
                "A worker in the midst of a step is taken to wait for its turn.",
                'getattr(worker.communicator, "is_suspended", False)',
                "worker._is_stepping",
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_threads_are_swept,
        [
            (
                "Threads do not wait for each other.",
                "has_begun = self._safepoint.meet(self._advance)",
                "has_begun = False",
                1,
            ),
        ],
    ),
    *_of(
        "runtime.safepoints",
        checks.check_held_worker_waits,
        [
            (
                "A worker leaves its safepoint while it is held.",
                """        try:
            self._lock.acquire()
        except""",
                """        try:
            self._lock.acquire(timeout=0.001)
        except""",
            ),
        ],
    ),
    *_of(
        "runtime.safepoints",
        checks.check_waits_in_vain_are_few,
        [
            (
                "Waits in vain take all of a worker's time.",
                "now_s + (SHARE - 1) * (now_s - began_s)",
                "now_s",
            ),
            (
                "A worker of long steps waits no longer than others.",
                "min(max(took_s / SHARE, LEAST_S), MOST_S)",
                "max(LEAST_S, 0 * took_s)",
            ),
        ],
    ),
    *_of(
        "runtime.safepoints",
        checks.check_joins_what_has_begun,
        [
            (
                "A worker that has just waited joins no other one.",
                "return LEAST_S if now_s < self._rendezvous.begun_s + LEAST_S else 0.0",
                "return 0.0",
            ),
        ],
    ),
]
