"""Every bug that is planted into collections is caught by random programs, within a bound."""

from __future__ import annotations

from typing import Any

import pytest

from pointstamp.compiled import MODULES
from tests.collections.approximate_mutants import (
    APPROXIMATE_MUTANTS,
    by_exact_sums,
    by_lives_of_sums,
    by_rounded_sums,
)
from tests.collections.durable_mutants import (
    DURABLE_MUTANTS,
    by_clocks_again,
    by_restarts,
    by_upserts_again,
)
from tests.collections.hunting import CollectionMutant, by_views, by_workers
from tests.collections.loop_mutants import LOOP_MUTANTS, by_loops, by_merged_times, by_totals
from tests.collections.merge_mutants import MERGE_MUTANTS, by_series, by_spines, by_traces
from tests.collections.mutants import MUTANTS
from tests.collections.ordered_mutants import by_first_of_texts, by_quantiles_of_texts
from tests.collections.piece_mutants import PIECE_MUTANTS, by_skewed_joins, by_skewed_loops
from tests.collections.policy_mutants import (
    POLICY_MUTANTS,
    by_asserting,
    by_failing,
    by_insertions,
)
from tests.collections.record_mutants import RECORD_MUTANTS, by_records, by_records_of_workers
from tests.collections.session_mutants import SESSION_MUTANTS, by_sessions, by_sessions_again
from tests.collections.shared_mutants import (
    SHARED_MUTANTS,
    by_handles,
    by_imports,
    by_joins,
    by_motifs,
)
from tests.collections.snapshot_mutants import (
    SNAPSHOT_MUTANTS,
    by_lives,
    by_lives_of_loops,
    by_tables,
)
from tests.collections.spill_mutants import SPILL_MUTANTS, by_merges
from tests.collections.sweep_mutants import SWEEP_MUTANTS, by_sweeps, by_swept_loops
from tests.collections.temporal_mutants import TEMPORAL_MUTANTS, by_orders, by_stays
from tests.collections.thread_sweep_mutants import THREAD_SWEEP_MUTANTS, by_swept_simulations
from tests.collections.time_mutants import TIME_MUTANTS, by_user_times
from tests.collections.trace_mutants import TRACE_MUTANTS, by_shared_lives
from tests.collections.user_mutants import USER_MUTANTS, by_functions, by_nested
from tests.collections.window_mutants import WINDOW_MUTANTS, by_windows
from tests.collections.worker_sweep_mutants import (
    WORKER_SWEEP_MUTANTS,
    by_constants,
    by_durable_services,
    by_snapshots,
    by_swept_services,
    by_swept_workers,
)

ALL = [
    *MUTANTS,
    *LOOP_MUTANTS,
    *SHARED_MUTANTS,
    *TEMPORAL_MUTANTS,
    *WINDOW_MUTANTS,
    *DURABLE_MUTANTS,
    *SNAPSHOT_MUTANTS,
    *USER_MUTANTS,
    *POLICY_MUTANTS,
    *SPILL_MUTANTS,
    *RECORD_MUTANTS,
    *MERGE_MUTANTS,
    *APPROXIMATE_MUTANTS,
    *TIME_MUTANTS,
    *SWEEP_MUTANTS,
    *SESSION_MUTANTS,
    *WORKER_SWEEP_MUTANTS,
    *THREAD_SWEEP_MUTANTS,
    *TRACE_MUTANTS,
    *PIECE_MUTANTS,
]


OF_SOURCES = {"What is deleted since the last snapshot is forgotten."}
"""Compiled sums keep what is deleted, too, until half of their groups are empty."""


def _marked(mutant: CollectionMutant) -> Any:
    """Of what is compiled there is no text to change, and twins of kernels do not run."""
    module = mutant.planting.module
    is_compiled = module in MODULES or module.startswith("pointstamp.kernels.")
    is_compiled = is_compiled or mutant.what in OF_SOURCES
    marks = [pytest.mark.interpreted] if is_compiled else []
    return pytest.param(mutant, id=mutant.what, marks=marks)


@pytest.mark.parametrize("mutant", [_marked(mutant) for mutant in ALL])
def test_a_planted_bug_is_caught(mutant: CollectionMutant) -> None:
    with mutant.planting.planted(), pytest.raises(BaseException):  # noqa: B017  (of any kind)
        mutant.hunt(*mutant.seed)


HUNTS = [
    *(by_views, by_workers, by_loops, by_joins, by_motifs, by_imports, by_handles),
    *(by_stays, by_orders, by_windows, by_restarts, by_clocks_again, by_upserts_again),
    *(by_functions, by_nested, by_tables, by_lives, by_lives_of_loops),
    *(by_asserting, by_failing, by_insertions),
    *(by_merges, by_records, by_records_of_workers, by_spines, by_series, by_traces),
    *(by_merged_times, by_totals, by_exact_sums, by_rounded_sums, by_lives_of_sums),
    *(by_quantiles_of_texts, by_first_of_texts),
    *(by_user_times, by_sweeps, by_swept_loops, by_sessions, by_sessions_again),
    *(by_skewed_loops, by_skewed_joins),
    *(by_swept_workers, by_constants, by_swept_services, by_snapshots, by_durable_services),
    by_swept_simulations,
    by_shared_lives,
]


@pytest.mark.soak
@pytest.mark.parametrize("hunt", HUNTS)
def test_without_a_bug_nothing_is_found(hunt: object) -> None:
    hunt()  # type: ignore[operator]  # it is a function


def test_there_are_so_many_and_each_says_what_it_is() -> None:
    assert len({(mutant.what, mutant.hunt) for mutant in ALL}) == len(ALL) >= 100
    assert all(mutant.what.endswith(".") for mutant in ALL)
