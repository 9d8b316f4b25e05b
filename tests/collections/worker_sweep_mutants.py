"""Planted bugs in sweeps of texts by workers and services, such as what is under way forgotten."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.collections import worker_sweeping as checks
from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.programs import programs
from tests.collections.sweeping import PIECES

STEPS = st.lists(st.integers(0, 40), min_size=1, max_size=6)


@from_seed(41)
@without_shrinking
@given(programs(), STEPS, st.sampled_from(PIECES), st.booleans())
def by_swept_workers(program: Any, steps: Any, piece: int, reuses: bool) -> None:
    """Programs of a worker that sweeps after each step."""
    checks.check_swept_worker(program, steps, piece, reuses)


@from_seed(42)
@without_shrinking
@given(programs(("filter", "computed"), max_steps=2), STEPS, st.sampled_from(PIECES))
def by_constants(program: Any, steps: Any, piece: int) -> None:
    """The same, of programs whose last step may have constants."""
    checks.check_swept_worker(program, steps, piece, False)


@from_seed(43)
@without_shrinking
@given(programs(max_steps=2), st.booleans())
def by_swept_services(program: Any, reuses: bool) -> None:
    """Programs of a service, which adds up what it has given."""
    checks.check_swept_service(program, reuses)


def _in_folder(check: Callable[[Path], None]) -> Callable[[], None]:
    def hunt() -> None:
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder))

    return hunt


by_snapshots = _in_folder(checks.check_snapshots)
by_durable_services = _in_folder(checks.check_durable_service)

WORKER_SWEEP_MUTANTS = [
    *_of(
        "dataflow.texts_held",
        by_swept_workers,
        [
            (
                "What waits for a time is forgotten.",
                "found += rows_in(waiting(), name)",
                "found += rows_in(waiting()[:0], name)",
            ),
            (
                "What operators of a worker keep is forgotten.",
                "found += holding()",
                "found += holding()[:0]",
                2,
            ),
        ],
    ),
    *_of(
        "dataflow.texts_held",
        by_constants,
        [
            (
                "Constants of a worker's expressions are forgotten.",
                "[rows_of(self.constants), *self.under_way()]",
                "[*self.under_way()]",
            ),
        ],
    ),
    *_of(
        "dataflow.texts_held",
        checks.check_under_way,
        [
            (
                "What is in front of an operator is forgotten.",
                "rows_in(input_.held(), operator.name)",
                "rows_in([], operator.name)",
            ),
        ],
    ),
    *_of(
        "dataflow.texts_held",
        checks.check_views_beside,
        [
            (
                "What was given to an input is forgotten.",
                "rows_in(output.held(), operator.name)",
                "rows_in([], operator.name)",
            ),
        ],
    ),
    *_of(
        "dataflow.texts_under_way",
        checks.check_rows_without_schema,
        [
            (
                "Rows that do not say what they are have no texts.",
                "yield _possible(item)",
                "yield _possible(item[:0])",
            ),
            (
                "What cannot be a number is taken for one.",
                "(words > 0) & (words < TEXTS.n_numbers)",
                "words < TEXTS.n_numbers",
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_traces_are_let_go,
        [
            (
                "What a handle reads is forgotten when its dataflow has ended.",
                "self._held += [held, *held.outliving]",
                "self._held += [held]",
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_traces_of_a_worker_that_has_ended,
        [
            (
                "A trace is read whose texts are gone.",
                "held.is_over = True",
                "held.is_over = False",
            ),
        ],
    ),
    *_of(
        "collections.view",
        checks.check_traces_of_a_view,
        [
            (
                "A view sweeps what a trace of it has.",
                "self._texts_held.can_be_outlived = False",
                "self._texts_held.can_be_outlived = True",
            ),
        ],
    ),
    *_of(
        "containers.dictionary",
        checks.check_equal_pins,
        [
            (
                "A block that ends takes away what another one has asked for.",
                "[others for others in self._pins if others is not pins]",
                "[others for others in self._pins if others != pins]",
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_steps_while_rows_are_given,
        [
            (
                "A sweep begins while a program gives rows.",
                "if any(held.n_given for held in self._held):",
                "if not self._held:",
            ),
        ],
    ),
    *_of(
        "runtime.worker_texts",
        checks.check_views_inside_of_steps,
        [
            (
                "A sweep begins inside of a step.",
                "is_between = not worker._is_stepping",
                "is_between = True",
            ),
        ],
    ),
    *_of(
        "dataflow.channels",
        by_snapshots,
        [
            (
                "What is held back for a snapshot is forgotten.",
                "found += [batch for _, batch in self._aligner.all()]",
                "found += [batch for _, batch in self._aligner.all()][:0]",
            ),
        ],
    ),
    *_of(
        "collections.durable_rows",
        by_durable_services,
        [
            (
                "What is deleted since the last snapshot is forgotten.",
                "return [(part.rows, part.texts) for part in parts]",
                "return [(part.rows, part.texts[:0]) for part in parts]",
            ),
        ],
    ),
    *_of(
        "service.worker_buffers",
        checks.check_added_up,
        [
            (
                "What a service has added up is forgotten.",
                "[(rows, self._schema.texts) for rows in self._added.rows]",
                "[(rows, ()) for rows in self._added.rows]",
            ),
        ],
    ),
    *_of(
        "service.collection_handles",
        checks.check_service_that_is_given_rows,
        [
            (
                "A sweep begins while a service is given rows.",
                """        with SWEEPS.held_back():
            self._send(self.schema.to_updates(rows, 1, self._where))""",
                """        with self.feeds._lock:
            pass
        self._send(self.schema.to_updates(rows, 1, self._where))""",
            ),
        ],
    ),
]
