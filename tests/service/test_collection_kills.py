"""Kill -9 of services of collections: between and in snapshots, on other numbers of workers.

What came out is what a view gives that nothing has happened to: a join, a top_k and a loop.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.collection_lives import check
from tests.service.deaths import come_through
from tests.service.lives import Life
from tests.service.test_kills import MOMENTS, planned, planned_restarts


def life(number: int, workers: int, where: str | None, who: str = "all", **more: int) -> Life:
    return Life(number, "", workers, where, who, **{"nth": 1, **more})


ENDS: list[tuple[int, str, str, dict[str, int]]] = [
    (1, "record/half", "all", {"nth": 8}),
    (2, "part/synced", "worker", {"index": 1, "nth": 6}),
    (3, "leader/commit/after", "driver", {"nth": 7}),
    (1, "manifest/half", "driver", {"nth": 2}),
    (2, "outputs/after", "peer", {"index": 0, "nth": 5}),
    (2, "leader/replay/after", "all", {}),
    (1, "delete/after", "driver", {"nth": 9}),
]

PLAN = [
    *(life(number, n, where, who, **more) for number, (n, where, who, more) in enumerate(ENDS)),
    life(len(ENDS), 3, None),
]


def kill(folder: Path, lives: list[Life]) -> None:
    come_through("tests.service.collection_lives", folder, lives, MOMENTS, check)


def test_collections_are_what_they_are_without_kills(tmp_path: Path) -> None:
    kill(tmp_path, PLAN)


def test_a_service_of_collections_whose_workers_are_killed_goes_on(tmp_path: Path) -> None:
    ended = Life(0, "", 2, "leader/write/after", "worker", 0, 7, restarts=True)
    again = Life(1, "", 2, "part/after", "peer", 1, 4, restarts=True)
    kill(tmp_path, [ended, again, life(2, 1, None)])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(300, 318))
def test_many_kills_of_collections(tmp_path: Path, seed: int) -> None:
    kill(tmp_path, planned(seed, 10, (1, 2, 3, 4), every=None if seed >= 316 else 3))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(320, 322))
def test_many_restarts_of_collections(tmp_path: Path, seed: int) -> None:
    kill(tmp_path, planned_restarts(seed, 10, (2, 3, 4)))
