"""Operators that run for long: what they and others have sent does not wait for their end."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import pytest

import pointstamp as ps
from tests.runtime.test_tcp_workers import meeting

N_BEFORE, N_TOGETHER = 60, 10
PATIENCE_S = 20.0


def meet(folder: Path, epoch: int, index: int, peers: int) -> None:
    """Wait until all workers are in an epoch, those of other processes too."""
    (folder / f"{epoch} {index}").touch()
    until = time.monotonic() + PATIENCE_S
    while not all((folder / f"{epoch} {peer}").exists() for peer in range(peers)):
        assert time.monotonic() < until, "no other worker is at work"
        time.sleep(1e-4)


def epochs(worker: ps.Worker, folder: Path) -> bool:
    """One worker sends a record to each; at first and at last that takes until all work on one."""

    def work(record: tuple[int, int]) -> int:
        epoch, index = record
        if 0 < epoch < N_BEFORE:
            time.sleep(1e-3)
        else:
            meet(folder, epoch, index, worker.peers)
        return index

    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(to=lambda record: record[1]).map(work).probe()
    for epoch in range(N_BEFORE + N_TOGETHER):
        if worker.index == 0:
            for index in range(worker.peers):
                input.send((epoch, index))
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    return True


@pytest.mark.once
@pytest.mark.parametrize("workers", [2, 3])
def test_what_others_are_sent_does_not_wait_for_the_next_operator(
    workers: int, tmp_path: Path
) -> None:
    assert all(ps.execute(epochs, tmp_path, workers=workers))


def test_nor_does_it_where_workers_are_connected_by_tcp(tmp_path: Path) -> None:
    assert meeting(functools.partial(epochs, folder=tmp_path), 2) == [True, True]
