"""How workers that something else starts meet, and what becomes of the first that fails."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, replace

import pytest

from pointstamp.communication.authentication import new_secret
from pointstamp.communication.control import ControlClient, WorkerConfig
from pointstamp.communication.failure import dump, failure, load
from pointstamp.communication.job_control import FailureReport, JobControl, JoinMesh, LeaveMesh
from pointstamp.errors import PeerFailedError, PeerLostError, StoppedError
from tests.waiting import wait_for

SECRET = new_secret()
SOON_S = 60.0


@pytest.fixture
def job():
    control = JobControl(SECRET)
    yield control
    control.close()


@contextlib.contextmanager
def workers(job, n, group="job"):
    config = WorkerConfig(job.server.address, SECRET, group)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(ControlClient.connect(config, i)) for i in range(n)]
        wait_for(lambda: len(job.server.connections(group)) == n)
        yield clients


def join(client, n, attempt=1):
    return client.request(JoinMesh(attempt, n, ("host", 5000 + client.worker)))


def failed(client, error):
    return client.request(FailureReport(dump(failure(client.worker, error, 0.0))))


def test_workers_get_the_addresses_of_all_by_index(job):
    with workers(job, 3) as clients, workers(job, 2, "another") as others:
        answers = [join(client, 3) for client in reversed(clients)]
        elsewhere = [join(client, 2) for client in others]
        expected = [("host", 5000), ("host", 5001), ("host", 5002)]
        assert [answer.result(SOON_S) for answer in answers] == [expected] * 3
        assert [answer.result(SOON_S) for answer in elsewhere] == [expected[:2]] * 2


def test_what_joins_again_takes_the_place_of_what_ended(job):
    with workers(job, 1) as [first]:
        early = join(first, 2)
        assert not early.done()
    with workers(job, 2) as clients:
        second = join(clients[1], 2)
        with pytest.raises(Exception):  # noqa: B017 (of whatever kind: it must not come)
            second.result(0.1)
        assert join(clients[0], 2).result(SOON_S) == second.result(SOON_S)


def test_one_that_leaves_is_not_counted_unless_all_rely_on_it(job):
    with workers(job, 2) as clients:
        join(clients[0], 2)
        assert clients[0].ask(LeaveMesh(1), SOON_S) is None
        late = join(clients[1], 2)
        again = join(clients[0], 2)
        expected = [("host", 5000), ("host", 5001)]
        assert again.result(SOON_S) == late.result(SOON_S) == expected
        assert clients[0].ask(LeaveMesh(1), SOON_S) == expected


def test_all_that_fail_get_the_first_cause(job):
    with workers(job, 3) as clients:
        because = failed(clients[0], PeerFailedError("worker 2 failed", 2))
        assert not because.done()
        cause = failed(clients[2], ValueError("seven"))
        for answer in (because, cause, failed(clients[1], PeerLostError("lost", 2))):
            found = load(answer.result(SOON_S))
            assert (found.worker, str(found.cause)) == (2, "seven")
        found = job.first_cause("job")
        assert (found.worker, found.what) == (2, "failed: ValueError: seven")
        assert job.first_cause("another") is None


def test_one_that_is_lost_is_the_cause_of_what_others_report(job):
    with workers(job, 2) as clients:
        because = failed(clients[0], PeerLostError("worker 0 lost worker 1", 1))
        clients[1].stream.shutdown(socket.SHUT_RDWR)
        assert load(because.result(SOON_S)).worker == 1
        assert "was killed" in job.first_cause("job").what


def test_failures_are_ordered_by_arrival_and_not_by_the_clocks_of_machines(job):
    with workers(job, 2) as clients:
        for client, at in zip(clients, (1e9, 0.0), strict=True):
            found = replace(failure(client.worker, ValueError(f"{client.worker}"), at), at=at)
            client.ask(FailureReport(dump(found)), SOON_S)
        assert job.first_cause("job").worker == 0


def test_the_next_attempt_forgets_why_the_last_one_failed(job):
    with workers(job, 1) as [client]:
        failed(client, ValueError("once")).result(SOON_S)
        join(client, 1, attempt=2).result(SOON_S)
        assert job.first_cause("job") is None


def test_ending_with_a_goodbye_is_no_failure(job):
    with workers(job, 2):
        pass
    wait_for(lambda: not job.server.connections("job"))
    assert job.first_cause("job") is None


@dataclass(frozen=True)
class Ping:
    """A message of the job's own."""

    n: int


def test_who_starts_a_job_has_its_own_messages_and_its_first_cause_at_once(job):
    found = []
    with workers(job, 2) as clients, workers(job, 1, "another") as [stranger]:
        with job.watching("job", {Ping: lambda _, ping: ping.n + 1}, found.append):
            assert clients[1].ask(Ping(3), SOON_S) == 4
            with pytest.raises(StoppedError, match="the job has ended"):
                stranger.ask(Ping(3), SOON_S)
            failed(stranger, ValueError("of another")).result(SOON_S)
            failed(clients[0], PeerLostError("worker 1 is gone", 1))
            clients[0].ask(LeaveMesh(1), SOON_S)
            assert found == []  # it follows from another failure
            failed(clients[1], ValueError("seven")).result(SOON_S)
            assert [each.worker for each in found] == [1]
        with pytest.raises(StoppedError, match="the job has ended"):
            clients[0].ask(Ping(3), SOON_S)
