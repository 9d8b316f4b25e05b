"""Every bug that is planted into collections is caught by random programs, within a bound."""

from __future__ import annotations

import pytest

from tests.collections.hunting import CollectionMutant, by_views, by_workers
from tests.collections.loop_mutants import LOOP_MUTANTS, by_loops
from tests.collections.mutants import MUTANTS

ALL = [*MUTANTS, *LOOP_MUTANTS]


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.what)
def test_a_planted_bug_is_caught(mutant: CollectionMutant) -> None:
    with mutant.planting.planted(), pytest.raises(BaseException):  # noqa: B017  (of any kind)
        mutant.hunt()


@pytest.mark.soak
@pytest.mark.parametrize("hunt", [by_views, by_workers, by_loops])
def test_without_a_bug_nothing_is_found(hunt: object) -> None:
    hunt()  # type: ignore[operator]  # it is a function


def test_there_are_so_many_and_each_says_what_it_is() -> None:
    assert len({(mutant.what, mutant.hunt) for mutant in ALL}) == len(ALL) >= 80
    assert all(mutant.what.endswith(".") for mutant in ALL)
