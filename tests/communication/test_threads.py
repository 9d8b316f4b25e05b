"""Threads: results, failures, and a thread that is busy when another fails."""

from __future__ import annotations

import _thread
import threading
import time

import pytest

from pointstamp.communication import launch
from pointstamp.communication.launch import run_single, run_target, run_threads
from pointstamp.communication.single import SingleCommunicator
from pointstamp.communication.threads import communicators
from pointstamp.errors import PeerFailedError, WorkerError


def test_batches_are_passed_by_reference():
    zero, one = communicators(2)
    batch = [1, 2]
    zero.channel().send(1, None, batch)
    channel = one.channel()
    one.receive()
    assert channel.pull().batch is batch


@pytest.mark.parametrize("run", [run_threads, lambda target, workers: run_single(target)])
@pytest.mark.parametrize("error", [LookupError("boom"), SystemExit(3)])
def test_an_exception_is_the_cause_itself(run, error):
    def target(communicator):
        raise error

    with pytest.raises(WorkerError) as caught:
        run(target, 1)
    assert caught.value.__cause__ is error
    assert caught.value.worker == 0
    assert "test_threads.py" in caught.value.original


def test_the_first_cause_is_reported_and_not_its_consequences():
    def target(communicator):
        if communicator.index == 2:
            raise LookupError("boom")
        while True:
            communicator.park()

    with pytest.raises(WorkerError, match="worker 2 failed: LookupError: boom"):
        run_threads(target, 3)


def test_a_thread_that_is_busy_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(launch, "STOP_S", 0.05)
    release, stopped = threading.Event(), []

    def target(communicator):
        if communicator.index == 1:
            raise LookupError("boom")
        release.wait()
        try:
            communicator.receive()
        except PeerFailedError as error:
            stopped.append(error.peer)
            raise

    with pytest.raises(WorkerError, match="boom"):
        run_threads(target, 2)
    assert stopped == []
    [busy] = [thread for thread in threading.enumerate() if thread.name == "pointstamp-worker-0"]
    release.set()
    busy.join()
    assert stopped == [1]


def test_an_interrupt_stops_the_threads():
    def target(communicator):
        if communicator.index == 1:
            _thread.interrupt_main()
        while True:
            communicator.park()

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_threads(target, 2)
    assert time.monotonic() - began < 60  # and not for ever


def test_an_interrupt_of_a_lone_worker_is_not_its_failure():
    def target(communicator):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_single(target)


def test_attend_closes_after_a_result_and_aborts_after_an_error():
    done = []

    class Noted(SingleCommunicator):
        def close(self):
            done.append("close")

        def abort(self, cause=None):
            done.append(repr(cause))

    def fail(communicator):
        raise LookupError("boom")

    assert run_target(Noted(), lambda communicator: communicator.peers) == 1
    with pytest.raises(LookupError):
        run_target(Noted(), fail)
    assert done == ["close", "LookupError('boom')"]
