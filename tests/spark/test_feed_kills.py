"""Kill -9 of a service that follows change data feeds: of its workers, and of Spark's driver."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.service.deaths import come_through
from tests.service.lives import Life
from tests.spark.killed_feeds import check

pytestmark = pytest.mark.spark

PROGRAM = "tests.spark.killed_feeds"

MOMENTS = {
    "before staging": {"worker/stage/before": 5},
    "between staging and commit": {"worker/stage/after": 5, "leader/commit/before": 5},
    "between commit and durability": {"record/before": 5, "record/half": 5, "record/synced": 5},
    "between durability and the commit log of Spark": {
        "record/after": 5,
        "leader/write/after": 5,
        "leader/commit/after": 5,
    },
    "in a snapshot": {"part/half": 3, "manifest/half": 2, "manifest/after": 2},
    "while beginning again": {"leader/replay/after": 1},
}


def planned(seed: int, n_kills: int) -> list[Life]:
    rolled = random.Random(seed)
    moments = [*MOMENTS] * (1 + n_kills // len(MOMENTS))
    rolled.shuffle(moments)
    lives = []
    for number, moment in enumerate(moments[:n_kills]):
        where, most = rolled.choice(list(MOMENTS[moment].items()))
        who = rolled.choice(("group", "group", "all", "worker"))
        lives.append(
            Life(number, "", rolled.choice((1, 2)), where, who, 0, rolled.randint(1, most), every=3)
        )
    return [*lives, Life(n_kills, "", 2, every=3)]


@pytest.mark.soak
@pytest.mark.xdist_group("own spark")
@pytest.mark.parametrize("seed", range(400, 403))
def test_many_kills_under_feeds_lose_nothing_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    """What was done is on standard output."""
    come_through(PROGRAM, tmp_path, planned(seed, 5), MOMENTS, check, "killed under feeds")
