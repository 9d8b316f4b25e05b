"""Kill -9 while streams of Spark go into a service and come out of it: nothing is lost or twice."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from pointstamp.checkpoint import Checkpoint
from pointstamp.errors import WorkerError
from tests.service.deaths import come_through
from tests.service.lives import Life
from tests.service.oracle import pairs_of, steps_of, totals_of
from tests.spark.killed_streams import live

pytestmark = pytest.mark.spark

PROGRAM = "tests.spark.killed_streams"

MOMENTS = {
    "before staging": {"worker/stage/before": 4, "attempt/before": 4},
    "between staging and commit": {"worker/stage/after": 4, "leader/commit/before": 3},
    "between commit and durability": {"record/before": 3, "record/half": 3, "record/synced": 3},
    "between durability and the commit log of Spark": {
        "record/after": 3,
        "leader/write/after": 3,
        "leader/commit/after": 3,
    },
    "in a snapshot": {"part/half": 3, "part/after": 3, "outputs/half": 2, "outputs/after": 2},
    "in a manifest": {"manifest/before": 2, "manifest/half": 2, "manifest/after": 2},
    "in a prune": {"pruned/before": 1, "delete/before": 3, "delete/after": 3},
    "between reading and discarding": {"leader/discard/before": 2, "leader/discard/after": 2},
    "while beginning again": {"leader/replay/after": 1, "worker/begin/after": 1},
}
"""As for services without Spark, at the points that are in its tasks."""

VICTIMS = ("group", "all", "worker")
"""The driver is the program and its Java, as one group; all are that and the Python workers."""


def planned(seed: int, n_kills: int) -> list[Life]:
    rolled = random.Random(seed)
    moments: list[str] = []
    while len(moments) < n_kills:
        moments += rolled.sample(list(MOMENTS), len(MOMENTS))
    lives = []
    for number, moment in enumerate(moments[:n_kills]):
        where, most = rolled.choice(list(MOMENTS[moment].items()))
        n_workers, who = rolled.choice((1, 2)), rolled.choice((*VICTIMS, "worker"))
        nth, is_still = rolled.randint(1, most), rolled.random() < 0.5
        lives.append(Life(number, "", n_workers, where, who, 0, nth, is_still, every=2))
    return [*lives, Life(n_kills, "", 2, every=2)]


def check(folder: Path) -> int:
    """What came out, in life after life, against the oracle; of how many epochs."""
    last = json.loads((folder / "last").read_text())
    n_epochs = last["n_epochs"]
    totals = sorted(total for epoch in totals_of(n_epochs) for total in epoch)
    pairs = sorted((at, *pair) for at, of in enumerate(pairs_of(n_epochs)) for pair in of)
    expected = {"totals": totals, "pairs": pairs, "steps": steps_of(n_epochs)}
    assert last == {"n_epochs": n_epochs, **json.loads(json.dumps(expected))}
    return n_epochs


@pytest.mark.xdist_group("spark")
def test_a_batch_that_spark_repeats_after_a_worker_was_killed_comes_out_once(
    spark: Any, tmp_path: Path
) -> None:
    """It was committed, as the second after a batch of rates, and Spark was not told of that."""
    me = os.getpid()
    with pytest.raises(WorkerError, match="was killed"):
        live(spark, Life(0, str(tmp_path), 1, "leader/commit/after", "worker", 0, 2, driver=me))
    assert not list((tmp_path / "in" / "commits").glob("[0-9]*"))
    assert Checkpoint(tmp_path / "checkpoint").reached("facts") == 1
    live(spark, Life(1, str(tmp_path), 1))
    # Files come until the worker is lost: on a slow machine some more.
    assert check(tmp_path) >= 3


@pytest.mark.soak
@pytest.mark.xdist_group("own spark")
@pytest.mark.parametrize("seed", range(200, 204))
def test_many_kills_under_streams_lose_nothing_and_repeat_nothing(
    tmp_path: Path, seed: int
) -> None:
    """What was done is on standard output."""
    come_through(PROGRAM, tmp_path, planned(seed, 5), MOMENTS, check, "killed on Spark")
