"""Kill -9 at every moment of a service's life, of each of its processes: nothing lost or twice.

`lives` is what is killed. Here are the plans, of which each is random and follows from a seed,
and the oracle, which computes what comes out from what is sent, and knows nothing else.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.service.deaths import come_through
from tests.service.lives import Life
from tests.service.oracle import pairs_of, steps_of, totals_of

MOMENTS = {
    "before staging": {"client/stage/before": 12, "worker/stage/before": 12},
    "while staging": {
        "attempt/before": 12,
        "attempt/half": 12,
        "attempt/synced": 12,
        "attempt/after": 12,
    },
    "between staging and commit": {
        "worker/stage/after": 12,
        "client/stage/after": 12,
        "leader/commit/before": 12,
    },
    "between commit and durability": {"record/before": 12, "record/half": 12, "record/synced": 12},
    "between durability and answer": {
        "record/after": 12,
        "leader/write/after": 12,
        "leader/commit/after": 12,
        "client/commit/after": 12,
    },
    "in a snapshot": {
        "part/before": 8,
        "part/half": 8,
        "part/synced": 8,
        "part/after": 8,
        "outputs/before": 8,
        "outputs/half": 8,
        "outputs/synced": 8,
        "outputs/after": 8,
        "worker/parts/after": 3,
    },
    "in a manifest": {
        "manifest/before": 3,
        "manifest/half": 3,
        "manifest/synced": 3,
        "manifest/after": 3,
    },
    "in a prune": {
        "pruned/before": 2,
        "pruned/half": 2,
        "pruned/synced": 2,
        "pruned/after": 2,
        "delete/before": 20,
        "delete/after": 20,
        "leader/prune/after": 3,
    },
    "between reading and discarding": {
        "client/store/before": 8,
        "client/store/after": 8,
        "leader/discard/before": 4,
        "leader/discard/after": 4,
    },
    "while beginning again": {
        "client/latest/after": 1,
        "leader/replay/before": 1,
        "leader/replay/after": 1,
        "worker/begin/after": 1,
    },
    "at any time": {"any": 1},
}
"""The points of each moment, and up to the how many-th time it is chosen there."""

OF_SNAPSHOTS = ("in a snapshot", "in a manifest", "in a prune")

OF_ANY_WORKER = ("worker/", "attempt/", "part/", "outputs/")

VICTIMS = ("driver", "worker", "peer", "all")

ANY_S = 3.0


def planned(seed: int, n_kills: int, workers: tuple[int, ...], every: int | None = 3) -> list[Life]:
    """Lives that are killed, at all moments in turn, and one that is not."""
    rolled = random.Random(seed)
    possible = [moment for moment in MOMENTS if every is not None or moment not in OF_SNAPSHOTS]
    moments: list[str] = []
    while len(moments) < n_kills:
        moments += rolled.sample(possible, len(possible))
    lives = []
    for number, moment in enumerate(moments[:n_kills]):
        n_workers = rolled.choice(workers)
        where, most = rolled.choice(list(MOMENTS[moment].items()))
        index = rolled.randrange(n_workers) if where.startswith(OF_ANY_WORKER) else 0
        # A worker that is alone is a thread of the driver; and at first there is none.
        has_workers = n_workers > 1 and where != "client/latest/after"
        who = rolled.choice(VICTIMS if has_workers else ("driver", "all"))
        lives.append(
            Life(
                number,
                "",
                n_workers,
                where,
                who,
                index,
                rolled.randint(1, most),
                rolled.random() < 0.5,
                rolled.uniform(0.0, ANY_S),
                every,
            )
        )
    return [*lives, Life(n_kills, "", rolled.choice(workers), every=every)]


def planned_restarts(seed: int, n_kills: int, workers: tuple[int, ...]) -> list[Life]:
    """Lives of a service that goes on when a worker is killed, at a point or at any time."""
    rolled = random.Random(seed)
    points = [
        (where, most)
        for moment, of in MOMENTS.items()
        if moment != "while beginning again"
        for where, most in of.items()
        if not where.startswith("client/")
    ]
    lives = []
    for number, (where, most) in enumerate(rolled.sample(points, n_kills)):
        n_workers = rolled.choice(workers)
        index = rolled.randrange(n_workers) if where.startswith(OF_ANY_WORKER) else 0
        life = Life(
            number,
            "",
            n_workers,
            where,
            rolled.choice(("worker", "peer")),
            index,
            rolled.randint(1, most),
            rolled.random() < 0.5,
            rolled.uniform(0.0, ANY_S),
            3,
            True,
        )
        lives.append(life)
    return [*lives, Life(n_kills, "", 2)]


RESTARTS = planned_restarts(5, 4, (2, 3))


def test_a_service_whose_workers_are_killed_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    kill(tmp_path, RESTARTS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200, 206))
def test_a_service_whose_workers_are_killed_at_many_moments_goes_on(
    tmp_path: Path, seed: int
) -> None:
    kill(tmp_path, planned_restarts(seed, 10, (2, 3, 4)))


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def check(folder: Path) -> int:
    """What was read, by life after life, against the oracle; of how many epochs."""
    last = json.loads((folder / "last").read_text())
    n_epochs = last["n_epochs"]
    for name, expected in (("totals", totals_of(n_epochs)), ("pairs", pairs_of(n_epochs))):
        stored = {
            int(path.name): json.loads(path.read_text()) for path in (folder / name).iterdir()
        }
        assert stored == dict(enumerate(as_json(expected))), name
    assert last["steps"] == as_json(steps_of(n_epochs))
    return n_epochs


def kill(folder: Path, lives: list[Life]) -> None:
    """A plan from its beginning to its end; what was done in it is on standard output."""
    come_through("tests.service.lives", folder, lives, MOMENTS, check)


FEW = (1, 1, 2, 2, 3)
"""How many workers, where it matters what their processes cost."""

PLANS = [planned(74, 9, FEW), planned(65, 8, FEW), planned(15, 3, FEW, every=None)]
"""Of those that are at every moment, and of everybody, these have few processes."""


@pytest.mark.parametrize("lives", PLANS, ids=["one", "two", "without snapshots"])
def test_whoever_is_killed_and_whenever_nothing_is_lost_and_nothing_comes_twice(
    tmp_path: Path, lives: list[Life]
) -> None:
    kill(tmp_path, lives)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 118))
def test_many_kills_lose_nothing_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    kill(tmp_path, planned(seed, 10, (1, 2, 3, 4), every=None if seed >= 116 else 3))


def test_the_kills_of_every_run_are_at_every_moment_and_of_everybody() -> None:
    lives = [life for plan in PLANS for life in plan if life.where is not None]
    points = {life.where for life in lives}
    assert all(points & set(of) for of in MOMENTS.values())
    assert {life.who for life in lives} == set(VICTIMS)
    assert {life.workers for life in lives} == {1, 2, 3}
    assert len(lives) == 20
