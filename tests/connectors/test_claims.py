"""One program at a time commits to a checkpoint: by a lock, or by a term in an object store."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable, claims
from pointstamp.errors import CheckpointInUseError, WorkerError
from pointstamp.runtime import run_flow
from pointstamp.runtime.run_flow import Flow
from tests.checkpoint.bucket import Bucket


class Held:
    """A source that has nothing more until a gate opens."""

    poll_s = 0.001

    def __init__(self) -> None:
        self.is_read = threading.Event()
        self.gate = threading.Event()

    def partitions(self) -> list[str]:
        return ["a"]

    def open(self, partition: str, position: Any) -> Iterator[Any]:
        yield [1], 1
        self.is_read.set()
        while not self.gate.is_set():
            yield None


def in_a_thread(checkpoint: Any, source: Held, failed: list[BaseException]) -> threading.Thread:
    """A program on a checkpoint."""

    def run() -> None:
        try:
            ps.run(
                lambda scope: scope.source(source),
                threads=True,
                checkpoint=checkpoint,
                epoch_s=0.001,
            )
        except BaseException as error:  # noqa: BLE001  (it is looked at)
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert source.is_read.wait(30)
    return thread


def test_a_second_program_is_refused_and_the_first_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE_S", 0.1)
    source, failed = Held(), []  # type: ignore[var-annotated]
    thread = in_a_thread(tmp_path, source, failed)
    with pytest.raises(CheckpointInUseError, match=r"this program .* already \(process \d+ on "):
        ps.run(lambda scope: scope.source(Held()), threads=True, checkpoint=tmp_path)
    source.gate.set()
    thread.join()
    assert failed == []
    after = Held()
    after.gate.set()
    ps.run(lambda scope: scope.source(after), threads=True, checkpoint=tmp_path)


def test_workers_that_outlive_their_program_keep_the_next_one_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE_S", 0.1)
    checkpoint = Checkpoint(tmp_path)
    refused: list[str] = []

    class Asking(Held):
        def open(self, partition: str, position: Any) -> Iterator[Any]:
            with pytest.raises(CheckpointInUseError) as error, checkpoint.claimed():
                pass
            refused.append(str(error.value))
            yield [1], 1

    with checkpoint.claimed() as claim:
        pass  # the program has ended here, and its workers go on:
    flow = Flow(
        lambda scope: scope.source(Asking()), Durable(checkpoint), 0.001, "run", pickle_of(claim)
    )
    ps.simulate(run_flow.work, flow, workers=2)
    assert len(refused) == 1
    with checkpoint.claimed():
        pass


def pickle_of(claim: Any) -> Any:
    """As a worker has it."""
    return pickle.loads(pickle.dumps(claim))


def test_in_an_object_store_the_program_that_came_first_is_refused() -> None:
    checkpoint = Checkpoint("root", fs.PyFileSystem(Bucket()))
    first, failed = Held(), []  # type: ignore[var-annotated]
    thread = in_a_thread(checkpoint, first, failed)
    second = Held()
    second.gate.set()
    ps.run(lambda scope: scope.source(second), threads=True, checkpoint=checkpoint)
    thread.join(30)
    assert not thread.is_alive()
    [error] = failed
    assert isinstance(error, WorkerError)
    assert isinstance(error.__cause__, CheckpointInUseError)
    assert "another program has begun to commit to it" in str(error)
