"""A checkpoint behind S3's protocol: moto's server, and a link that is slow, cut or gone."""

from __future__ import annotations

import logging
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pointstamp.checkpoint import BinDelta, Checkpoint, TableDelta
from pointstamp.checkpoint.objects import objects_at
from pointstamp.errors import (
    CheckpointError,
    CorruptCheckpointError,
    TruncatedCheckpointError,
)
from tests.checkpoint import s3
from tests.checkpoint.doubtful_lives import N_EPOCHS, Client, Life, begin, numbers, values
from tests.checkpoint.s3 import Request, Store, by_chance, passing
from tests.checkpoint.s3_service import feed, found, serve, serve_by_processes, sums

if find_spec("moto") is None:  # to import it takes a second, in each process that finds tests
    pytest.skip("moto's server stands for S3", allow_module_level=True)

# It takes seconds to start, so that one is enough.
pytestmark = pytest.mark.xdist_group("s3")

NETWORK = ("NETWORK_CONNECTION", "SLOW_DOWN", "AWS Error", "bytes came of")


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with s3.moto_server() as port:
        # What Arrow's client opens once, and keeps.
        first = Store(port, "bucket-first")
        first.write("x", b"x")
        assert first.read("x") == b"x"
        first.close()
        yield port


@pytest.fixture
def store(server: int, request: pytest.FixtureRequest) -> Iterator[Store]:
    made = Store(server, f"bucket-{random.randrange(1 << 48):x}")
    try:
        yield made
    finally:
        made.close()


def is_fault(error: str) -> bool:
    return any(name in error for name in NETWORK)


def test_a_uri_is_all_it_takes_and_a_commit_is_few_requests(store: Store) -> None:
    checkpoint = Checkpoint(store.uri)
    for epoch in range(3):
        staged = checkpoint.stage("a", epoch, "one", [numbers(epoch)])
        store.link.seen.clear()
        assert checkpoint.commit("a", epoch, [staged])
    # What is staged is looked for, what was pruned, and who has begun since.
    assert {kind: n for (kind, _), n in store.link.seen.items()} == {"head": 1, "put": 1, "list": 2}
    found = [(e, values(checkpoint, s)) for e, s in Checkpoint(store.uri).committed("a", -1)]
    assert found == [(0, [0]), (1, [1]), (2, [2])]
    assert all(name.startswith(("log/", "terms/")) for name in store.names())  # and no folders


def test_snapshots_are_kept_found_and_pruned(store: Store) -> None:
    checkpoint = Checkpoint(store.uri)
    part = None
    for epoch in range(4):
        checkpoint.commit("a", epoch, [checkpoint.stage("a", epoch, "one", [numbers(epoch)])])
        table = TableDelta("sums", {0: BinDelta(numbers(epoch), True)})
        part = checkpoint.write_part(epoch, 0, {("s/Sum", "sum"): table}, part)
        checkpoint.commit_manifest(epoch, [part], {})
    checkpoint.prune(2)
    manifest = Checkpoint(store.uri).latest()
    assert manifest is not None
    assert manifest.epoch == 3
    epochs = {name.split("/")[-2] for name in store.names() if name.startswith(("log/a", "snap"))}
    assert epochs == {f"{epoch:020}" for epoch in (2, 3)}
    assert Checkpoint(store.uri).reached("a") == 4


@pytest.mark.parametrize("fault", ["503", "reset", "torn", "no answer", "late"])
def test_a_commit_that_the_store_does_not_answer_is_an_error_and_may_be_repeated(
    store: Store, fault: str
) -> None:
    checkpoint = Checkpoint(store.root, store.filesystem(attempts=1))
    checkpoint.begin()
    staged = checkpoint.stage("a", 0, "one", [numbers(1)])
    store.link.plan = lambda request: fault if request.kind == "put" else "pass"
    with pytest.raises(CheckpointError, match=r"committed-.*cannot be read or written: .*AWS Err"):
        checkpoint.commit("a", 0, [staged])
    store.link.plan = passing
    more = checkpoint.stage("a", 0, "two", [numbers(2)])
    assert checkpoint.commit("a", 0, [staged, more])
    store.link.release()
    for reader in (checkpoint, Checkpoint(store.uri)):
        ((_, found),) = reader.committed("a", -1)
        assert values(reader, found) == [1, 2]


def test_arrow_tries_again_what_a_busy_store_refuses(store: Store) -> None:
    """So of a fault now and then a program sees nothing."""
    checkpoint = Checkpoint(store.root, store.filesystem(attempts=3))
    refused: set[tuple[str, str]] = set()

    def once(request: Any) -> str:
        key = request.method, request.path.split("?")[0]
        if key in refused:
            return "pass"
        refused.add(key)
        return "503"

    store.link.plan = once
    assert checkpoint.commit("a", 0, [checkpoint.stage("a", 0, "one", [numbers(1)])])
    assert len(refused) > 4


def test_an_object_of_many_parts_is_there_when_all_of_it_is(store: Store) -> None:
    objects = objects_at(store.root, store.filesystem(attempts=1))
    data = random.Random(5).randbytes(11 << 20)
    for kind in ("part", "complete parts"):
        store.link.plan = lambda request: "torn" if request.kind == kind else "pass"  # noqa: B023
        with pytest.raises(CheckpointError, match="AWS Error"):
            objects.put("large", [data])
        assert store.names() == []
    store.link.plan = passing
    objects.put("large", [data])
    assert objects.get("large").to_pybytes() == data
    store.link.plan = lambda request: "half answer" if request.kind == "get" else "pass"
    with pytest.raises(CheckpointError) as caught:
        objects.get("large")
    assert type(caught.value) is CheckpointError  # nothing is damaged


def test_half_an_object_is_never_taken_for_all_of_it(store: Store) -> None:
    """A store that keeps what was torn on its way, as S3 does not."""
    checkpoint = Checkpoint(store.root, store.filesystem(attempts=1))
    checkpoint.begin()
    store.link.plan = lambda request: "torn object" if request.kind == "put" else "pass"
    staged = checkpoint.stage("a", 0, "one", [numbers(1)])
    with pytest.raises(TruncatedCheckpointError, match=f"and {staged.n_bytes} were written"):
        checkpoint.commit("a", 0, [staged])
    store.link.plan = passing
    whole = checkpoint.stage("a", 0, "two", [numbers(1)])
    store.link.plan = lambda request: "torn object" if "committed" in request.path else "pass"
    checkpoint.commit("a", 0, [whole])
    with pytest.raises(TruncatedCheckpointError, match="in the middle of a record"):
        list(Checkpoint(store.uri).committed("a", -1))


def test_damage_is_named(store: Store) -> None:
    checkpoint = Checkpoint(store.uri)
    for epoch in range(3):
        checkpoint.commit("a", epoch, [checkpoint.stage("a", epoch, "one", [numbers(epoch)])])
    record = next(name for name in store.names() if f"a/{1:020}/committed" in name)
    data = store.read(record)
    store.write(record, data.replace(b"attempts", b"attemptz"))
    with pytest.raises(CorruptCheckpointError, match=f"{record}: its checksum"):
        list(Checkpoint(store.uri).committed("a", -1))
    store.remove(record)
    with pytest.raises(CorruptCheckpointError, match=r"epoch 2 of input 'a'.* that of epoch 1"):
        list(Checkpoint(store.uri).committed("a", -1))


def test_a_bucket_that_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(CheckpointError, match="no-such-bucket/log"):
        Checkpoint("no-such-bucket", store.filesystem(attempts=1)).stage("a", 0, "x", [numbers(1)])


def come_through(store: Store, seed: int, share: float, n_epochs: int = N_EPOCHS) -> None:
    """Lives behind a link with faults, of which some end when it has gone; see `doubtful_lives`."""
    client, rolled = Client(seed), random.Random(f"s3 {seed}")
    life: Life | None = None
    while len(client.acknowledged) < n_epochs:
        store.link.plan = by_chance(rolled.randrange(1 << 30), share)
        former = life
        checkpoint = Checkpoint(store.root, store.filesystem(attempts=rolled.choice([1, 2])))
        life = begin(checkpoint, client, is_fault)
        ends = rolled.randrange(2, 5)
        for epoch in range(len(client.acknowledged), n_epochs)[:ends]:
            if former is not None and rolled.random() < 0.3:
                former.commit_late(epoch)
            life.commit(epoch)
            if rolled.random() < 0.3:
                life.snapshot(epoch)
        if rolled.random() < 0.5:
            store.link.release()
    store.link.release()
    store.link.plan = passing
    begin(Checkpoint(store.uri), client, lambda error: False)


def test_nothing_is_lost_or_doubled_behind_a_faulty_link(store: Store) -> None:
    come_through(store, 1, 0.08, n_epochs=4)
    assert {what for _, what in store.link.seen} - {"pass"}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 42))
def test_nothing_is_lost_or_doubled_behind_faulty_links(store: Store, seed: int) -> None:
    come_through(store, seed, (0.04, 0.08, 0.15)[seed % 3])


# Services.


def test_a_store_that_is_gone_for_a_while_stops_commits_and_not_the_service(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = Checkpoint(store.root, store.filesystem(attempts=1))
    with serve(checkpoint) as service:
        feed(service, 2)
        service.await_snapshot(1)
        n = service.input("n")
        n.send([{"k": 0, "v": 2}])
        store.link.is_down = True
        for _ in range(2):
            with pytest.raises(CheckpointError, match="AWS Error"):
                n.advance_to(3)
        assert found(service, 1) == sums(1)
        store.link.is_down = False
        n.advance_to(3)
        with caplog.at_level(logging.WARNING, "pointstamp.service"):
            # Of the next snapshot nothing can be written, and of the log everything.
            store.link.plan = lambda r: "reset" if "/snapshots/" in r.path else "pass"
            feed(service, 6)
            assert found(service, 5) == sums(5)
            await_given_up(caplog)
        store.link.plan = passing
        # The next is planned when the one before is removed, and made when inputs come there.
        last = 6
        while not service.await_snapshot(6, 0.1):
            last += 1
            assert last < 200
            feed(service, last)
        service.abort()
    with serve(checkpoint, workers=3) as again:
        assert again.input("n").time == last
        assert found(again, last - 1) == sums(last - 1)


def test_workers_that_are_processes_are_killed_at_their_requests_and_the_service_goes_on(
    store: Store, tmp_path: Path
) -> None:
    """One at a part of a snapshot, half of which is on its way, and the first one at a commit.

    The commit is in the store, and its answer is lost: it is repeated, and counts once.
    """
    killed: list[str] = []
    victims: list[str] = []

    def plan(request: Request) -> str:
        part = re.search(r"/snapshots/0*(\d+)/0*(\d+)-", request.path)
        if request.kind == "put" and part and int(part[1]) >= 3 and not victims:
            victims.append(part[2])
            return "torn"
        if request.kind == "put" and "/committed-" in request.path and len(killed) == 1:
            victims.append("0")
            return "no answer"
        return "pass"

    def kill() -> None:
        os.kill(int((tmp_path / f"pid-{victims[-1]}").read_text()), signal.SIGKILL)
        killed.append(victims[-1])

    store.link.at_fault = kill
    with serve_by_processes(store.uri, tmp_path) as service:
        store.link.plan = plan
        last = 0
        while len(killed) < 2:
            last += 1  # a snapshot is made when the one before is there
            assert last < 200
            feed(service, last)
        feed(service, last + 2)
        assert found(service, last + 1) == sums(last + 1)
        service.abort()
    assert {"torn", "no answer"} <= {what for _, what in store.link.seen}
    store.link.plan = passing
    with serve(store.uri, workers=3) as again:
        assert again.input("n").time == last + 2
        assert found(again, last + 1) == sums(last + 1)


def await_given_up(caplog: pytest.LogCaptureFixture) -> None:
    """A snapshot, which the service says on a thread of its own."""
    until = time.monotonic() + 60
    while not any("is given up" in record.getMessage() for record in caplog.records):
        assert time.monotonic() < until
        time.sleep(0.01)


def come_through_kills(store: Store, seed: int, n_kills: int, share: float = 0.0) -> None:
    """A program that is killed at a request, before or after the store has it; again and again."""
    rolled = random.Random(f"kills {seed}")
    upto, acknowledged = 4 * (n_kills + 1), []
    for life in range(n_kills + 1):
        command = ["-m", "tests.checkpoint.s3_service", store.uri, str(rolled.randint(1, 3))]
        n_left = rolled.randrange(20, 150) if life < n_kills else None
        faults, is_after = by_chance(seed + life, share), rolled.random() < 0.5
        running = subprocess.Popen(
            [sys.executable, *command, str(upto)], stdout=subprocess.PIPE, text=True
        )

        def plan(request: Request) -> str:
            nonlocal n_left
            if n_left is not None:
                n_left -= 1
                if n_left <= 0:
                    running.send_signal(signal.SIGKILL)  # noqa: B023
                    return "pass" if is_after else "reset"  # noqa: B023
            return faults(request)  # noqa: B023

        store.link.plan = plan
        said, _ = running.communicate(timeout=300)
        assert running.returncode in ((0, -signal.SIGKILL) if life < n_kills else (0,))
        acknowledged += [int(line) for line in said.splitlines()]
        store.link.release()
    # Each once; what was committed and not acknowledged when a life ended is in between.
    assert acknowledged == sorted(set(acknowledged))
    store.link.plan = passing
    with serve(store.uri) as service:
        assert service.input("n").time == upto
        assert found(service, upto - 1) == sums(upto - 1)


def test_a_service_that_is_killed_at_a_request_goes_on(store: Store) -> None:
    come_through_kills(store, 3, 1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_service_that_is_killed_at_many_requests_goes_on(store: Store, seed: int) -> None:
    come_through_kills(store, seed, 4, 0.03)
