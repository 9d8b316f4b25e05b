"""Snapshots of services with inputs of which no output and no state knows how far they are."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import pointstamp as ps

ROWS = {"v": pa.int64()}


def unread(scope, x, y):
    return {"o": x}


def inspected(scope, x, y):
    y.inspect_batch(lambda time, batch: None)
    return {"o": x}


def sent_on(scope, x, y):
    y.exchange(key="v").map_batches(lambda batch: batch).inspect_batch(lambda time, batch: None)
    return {"o": x}


def drained(scope, x, y):
    y.sink(ps.Pipeline(), "Drain", lambda input: [None for _ in input])
    return {"o": x}


def within(scope, x, y):
    with scope.region("Aside") as inner:
        y.enter(inner).inspect_batch(lambda time, batch: None)
    return {"o": x}


def serve(build, folder, workers):
    return ps.serve(
        build,
        workers,
        threads=True,
        inputs={"x": ROWS, "y": ROWS},
        outputs={"o": ROWS},
        checkpoint=folder,
        snapshot_every=1,
    )


def committed_up_to(service, epoch):
    """Wait for a snapshot of that epoch or a later one."""
    wait = threading.Event()
    while service.snapshot()["committed"] < epoch:
        wait.wait(0.005)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("build", [unread, inspected, sent_on, drained, within])
def test_a_snapshot_waits_for_inputs_that_lead_to_no_output(tmp_path, build, workers):
    with serve(build, tmp_path, workers) as service:
        x, y = service.input("x"), service.input("y")
        for epoch in range(4):
            x.send([{"v": epoch}])
            x.advance_to(epoch + 1)
        threading.Event().wait(0.3)  # the time of many snapshots, if they are made
        assert service.snapshot()["committed"] == -1
        y.send([{"v": 1}])
        y.advance_to(1)
        committed_up_to(service, 0)
        service.abort()
    with serve(build, tmp_path, workers) as service:
        x, y = service.input("x"), service.input("y")
        assert (x.time, y.time) == (4, 1)
        y.advance_to(6)
        x.advance_to(6)
        committed_up_to(service, 4)
        y.send([{"v": 2}])
        y.advance_to(7)
        service.abort()
    with serve(build, tmp_path, workers) as service:
        assert (service.input("x").time, service.input("y").time) == (6, 7)
