"""Lives of a service of collections that end by kill -9; see `lives`, which has where they end.

The client feeds two collections, one epoch after the other: what is in an epoch follows from its
number. It begins each life where the collections are by then, so that what it had committed when
it was killed is not sent again. What it reads it stores by epoch, again and again the same.
"""

from __future__ import annotations

import json
import os
import random
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pointstamp as ps
from pointstamp import col
from pointstamp.errors import WorkerError
from pointstamp.service.collection_handles import CollectionFeeds
from pointstamp.service.coordinator import Coordinator
from pointstamp.service.service import Service
from tests.os_processes import running_children
from tests.service import lives
from tests.service.lives import DRIVER, MOST_TICKS, Life, arm, around, has_struck, replaced

SCHEMAS = {"edges": "src long, dst long, label string?", "people": "node long, name string"}

LAG = {"labels": 0, "named": 3}
"""How many epochs a reader is behind with discarding; that of `longest` discards nothing."""

Change = tuple[tuple[Any, ...], int]


def changes_of(epoch: int) -> dict[str, list[Change]]:
    """What is inserted and deleted in an epoch; what is deleted came three epochs before."""

    def edges(at: int) -> list[tuple[Any, ...]]:
        rolled = random.Random(f"edges {at}")
        texts = [None, "a", f"text {at}", "one of those that are longer than others are"]
        return [
            (rolled.randrange(12), rolled.randrange(12), rolled.choice(texts)) for _ in range(3)
        ]

    def people(at: int) -> list[tuple[Any, ...]]:
        rolled = random.Random(f"people {at}")
        return [(rolled.randrange(12), f"name {rolled.randrange(5)}")]

    came = {"edges": edges(epoch), "people": people(epoch)}
    went = {"edges": edges(epoch - 3), "people": people(epoch - 3)} if epoch >= 3 else {}
    return {
        name: [(row, 1) for row in came[name]] + [(row, -1) for row in went.get(name, [])]
        for name in SCHEMAS
    }


def build(scope: Any, edges: Any, people: Any) -> dict[str, Any]:
    """A loop, a join with aggregates of texts, and the first few of each group."""
    both = edges.select("src", "dst").concat(edges.select(src="dst", dst="src"))
    nodes = both.select(node="src", label="src").distinct()

    def propagate(labels: Any) -> Any:
        offers = labels.join(both, left_on="node", right_on="src").select("label", node="dst")
        return offers.concat(nodes).group_by("node").agg(label=ps.min("label"))

    named = edges.join(people, left_on="src", right_on="node", how="left")
    return {
        "labels": nodes.iterate(propagate),
        "named": named.group_by("name").agg(
            n=ps.count(), least=ps.min("label"), texts=ps.count_distinct("label")
        ),
        "longest": edges.filter(col("src") != col("dst"))
        .group_by("dst")
        .top_k(2, ["label", "src"], descending=[True, False]),
    }


@dataclass(frozen=True)
class CollectionBuild:
    """`build` on a worker of a life."""

    life: Life

    def __call__(self, scope: Any, edges: Any, people: Any) -> dict[str, Any]:
        is_worker = threading.current_thread() is not threading.main_thread()
        if is_worker or os.getpid() != self.life.driver:  # else it is tried by the driver
            arm(self.life, scope.index)
        return build(scope, edges, people)


def install() -> None:
    """Wrap what is a point, here and in `lives`."""
    _install()
    around(Service, "stage_at", "client/stage/before", "client/stage/after")
    around(CollectionFeeds, "_commit", None, "client/commit/after")
    around(Coordinator, "commit_epoch", "leader/commit/before", "leader/commit/after")
    around(Coordinator, "_write_epoch", None, "leader/write/after")


_install, lives.install = lives.install, install


def take(service: Service, folder: Path) -> None:
    """Store the changes of complete epochs; what was stored before has to be the same."""
    for name in ("labels", "named", "longest"):
        output = service.output(name)
        after, last = service.discarded_of(name), service.last_complete(name)
        found = dict.fromkeys(range(after + 1, last + 1), "[]")
        for epoch, changes in output.read(last, after=after):
            found[epoch] = json.dumps(changes[:])
        for epoch, text in found.items():
            path = folder / name / str(epoch)
            if path.exists():
                assert path.read_text() == text, (name, epoch)
                continue
            lives.reach("client/store/before")
            replaced(path, text)
            lives.reach("client/store/after")
        if name in LAG and last - LAG[name] > after:
            output.discard(last - LAG[name])


def live(life: Life) -> None:
    """Feed and read until the end comes; without one, for some epochs more, and stop."""
    folder = Path(life.folder)
    with ps.serve(
        CollectionBuild(life),
        life.workers,
        collections=SCHEMAS,
        checkpoint=folder / "checkpoint",
        snapshot_every=life.every,
        restart=ps.RestartPolicy(attempts=2, delay_s=0.0) if life.restarts else None,
    ) as service:
        begun: int | None = None
        for tick in range(MOST_TICKS):
            epoch = service.input("edges").time
            for name, changes in changes_of(epoch).items():
                service.input(name).update(changes)
            assert service.advance() == epoch
            if tick % 2 == 0:
                service.probe.wait(epoch)
                take(service, folder)
            is_last = life.where is None or (life.restarts and has_struck(life))
            begun = epoch if begun is None and is_last else begun
            if begun is not None and epoch >= begun + 6:
                break
        else:
            raise AssertionError(f"it never came to {life}")
        service.probe.wait(epoch)
        take(service, folder)
        snapshots = {
            name: json.dumps(service.output(name).snapshot(epoch)[:])
            for name in ("labels", "named", "longest")
        }
        replaced(folder / "last", json.dumps({"n_epochs": epoch + 1, "snapshots": snapshots}))


def main(folder: str, numbered: str) -> None:
    """Have these lives, one after the other, as far as we live."""
    for name in ("labels", "named", "longest"):
        (Path(folder) / name).mkdir(parents=True, exist_ok=True)
    for told in json.loads(numbered):
        life = Life(**{**told, "folder": folder, "driver": os.getpid()})
        arm(life, DRIVER)
        clock = threading.Thread(target=lives.strike_later, args=(life,), daemon=True)
        if life.where == "any":
            clock.start()
        try:
            live(life)
        except WorkerError as error:
            lives.check_cause(folder, life, error)
        else:
            assert life.where is None or life.restarts, f"it ended by itself: {life}"
        if life.where == "any":
            clock.join()
        assert not running_children(), "a worker is left"


def check(folder: Path) -> int:
    """What was read, life after life, is what a view has without any; of how many epochs."""
    last = json.loads((folder / "last").read_text())
    with ps.View(build, **SCHEMAS) as view:
        for epoch in range(last["n_epochs"]):
            for name, changes in changes_of(epoch).items():
                view.update(name, changes)
            for name, expected in view.advance().items():
                found = (folder / name / str(epoch)).read_text()
                assert found == json.dumps(expected[:]), (name, epoch)
        for name, found in last["snapshots"].items():
            assert found == json.dumps(view.snapshot(name)[:]), name
    return int(last["n_epochs"])
