"""The workers of one machine learn each other's ports, in whatever order they come."""

from __future__ import annotations

import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.communication.authentication import new_secret
from pointstamp.errors import RendezvousError
from pointstamp.spark import gathering
from pointstamp.spark.gathering import gather_ports
from pointstamp.spark.task import rendezvous

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are of Linux")


@given(order=st.integers(1, 5).flatmap(lambda n: st.permutations(range(n))))
def test_all_learn_all_ports_in_any_order_of_coming(order):
    secret, peers = new_secret(), len(order)
    with ThreadPoolExecutor(peers) as pool:
        found = [pool.submit(gather_ports, i, 5000 + i, peers, secret, 7) for i in order]
        expected = [5000 + i for i in range(peers)]
        assert all(future.result(20) == expected for future in found)


def test_stages_and_jobs_do_not_meet():
    jobs = [(secret, stage) for secret in (new_secret(), new_secret()) for stage in (1, 2)]
    with ThreadPoolExecutor(2 * len(jobs)) as pool:
        found = [
            [pool.submit(gather_ports, i, 100 * n + i, 2, *job) for i in range(2)]
            for n, job in enumerate(jobs)
        ]
        for n, futures in enumerate(found):
            assert [future.result(20) for future in futures] == [[100 * n, 100 * n + 1]] * 2


def test_who_does_not_come_is_named():
    with pytest.raises(RendezvousError, match=r"in vain for worker 1, 2 to say"):
        gather_ports(0, 5000, 3, new_secret(), 1, timeout_s=0.05)
    with pytest.raises(RendezvousError, match=r"asked by worker 2\) does not say"):
        gather_ports(2, 5002, 3, new_secret(), 1, timeout_s=0.05)


def test_processes_of_other_users_are_not_listened_to(monkeypatch):
    monkeypatch.setattr(gathering.os, "geteuid", lambda: -1)
    secret = new_secret()
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(gather_ports, i, 5000 + i, 2, secret, 1, 0.2) for i in range(2)]
        for future in found:
            with pytest.raises(RendezvousError):
                future.result(20)


def test_a_worker_that_dies_after_its_report_may_be_replaced():
    secret, came, names = new_secret(), threading.Event(), []

    class Spied(socket.socket):
        def bind(self, name):
            super().bind(name)
            names.append(name)
            came.set()

    with ThreadPoolExecutor(3) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering.socket, "socket", Spied)
        first = pool.submit(gather_ports, 0, 5000, 3, secret, 1)
        assert came.wait(20)
        with socket.socket(socket.AF_UNIX) as dying:  # it connects, and says half of it
            while True:
                try:
                    dying.connect(names[0])
                    break
                except ConnectionRefusedError:
                    continue
            dying.sendall(b"\1\0\0")
        others = [pool.submit(gather_ports, i, 5000 + i, 3, secret, 1) for i in (1, 2)]
        assert all(f.result(20) == [5000, 5001, 5002] for f in (first, *others))


class Task:
    """What Spark gives a task of a barrier stage on one machine, but for the slow `allGather`."""

    def __init__(self, index, peers):
        self.index, self.peers = index, peers

    def partitionId(self):  # noqa: N802 (Spark names it)
        return self.index

    def stageId(self):  # noqa: N802 (Spark names it)
        return 3

    def getTaskInfos(self):  # noqa: N802 (Spark names it)
        return [type("Info", (), {"address": "127.0.0.1:4040"})] * self.peers

    def allGather(self, message):  # noqa: N802 (Spark names it)
        raise AssertionError("on one machine Spark is not asked")


def test_workers_of_one_machine_meet_without_spark():
    secret = new_secret()
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(rendezvous, Task(i, 3), secret) for i in range(3)]
        communicators = [future.result(20) for future in found]
    assert [c.index for c in communicators] == [0, 1, 2]
    closing = [threading.Thread(target=c.close) for c in communicators]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join(20)
