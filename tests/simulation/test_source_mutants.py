"""Every bug that is planted into an engine is caught by its random program, within a bound."""

from __future__ import annotations

import os

import pytest

from pointstamp.communication import mesh
from tests.conftest import shared_out
from tests.simulation.engines import control_plane
from tests.simulation.planting import Planting, StalePlanting
from tests.simulation.source_mutants import N_RUNS, SOURCE_MUTANTS, hunt_source

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd_create")

PROGRAMS = {mutant.program.__name__: mutant.program for mutant in SOURCE_MUTANTS}


@pytest.fixture(autouse=True)
def no_lingering(monkeypatch):
    """All ends are in one thread, so that waiting for the others is for nothing."""
    monkeypatch.setattr(mesh, "LINGER_S", 0.0)


@pytest.fixture
def impatient(monkeypatch):
    """Where there is a bug, what does not come will not come."""
    monkeypatch.setattr(control_plane, "PATIENCE_S", 1.0)


@pytest.mark.interpreted
@pytest.mark.parametrize("mutant", SOURCE_MUTANTS, ids=lambda mutant: mutant.what)
@pytest.mark.usefixtures("impatient")
def test_a_bug_planted_in_an_engine_is_caught(mutant, record_property):
    found = hunt_source(mutant)
    assert found is not None, f"{N_RUNS} runs of {mutant.program.__name__} saw nothing"
    n_runs, error = found
    record_property("mutant", (mutant.what, {type(error).__name__: n_runs}))


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_bug_nothing_is_found(name):
    for seed in shared_out(N_RUNS // 4, range(N_RUNS)):
        PROGRAMS[name](seed)


@pytest.mark.soak
@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_bug_nothing_is_found_for_long(name):
    for seed in range(N_RUNS, 100 * N_RUNS):
        PROGRAMS[name](seed)


def test_there_are_ninety_and_each_says_what_it_is():
    assert len({mutant.what for mutant in SOURCE_MUTANTS}) == len(SOURCE_MUTANTS) >= 90
    assert all(mutant.what.endswith(".") and "\n" not in mutant.what for mutant in SOURCE_MUTANTS)


@pytest.mark.interpreted
def test_what_is_planted_is_gone_afterwards():
    from pointstamp.dataflow.notificator import Notificator

    before = Notificator._keep.__code__
    with SOURCE_MUTANTS[0].planting.planted():
        assert Notificator._keep.__code__ is not before
    assert Notificator._keep.__code__ is before


@pytest.mark.interpreted
@pytest.mark.parametrize(("old", "times"), [("is not there", 0), ("self._first", 30)])
def test_a_mutant_that_no_longer_applies_says_so(old, times):
    with (
        pytest.raises(StalePlanting, match=r"pointstamp\.dataflow\.notificator has \d+ times"),
        Planting("pointstamp.dataflow.notificator", old, "").planted(),
    ):
        pass
