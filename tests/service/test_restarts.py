"""A service that outlives its workers: killed, or failing, they are started again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.errors import StoppedError, UsageError, WorkerError
from pointstamp.service.coordinator import Coordinator
from pointstamp.service.flight_server import _is_free
from pointstamp.service.protocol import AwaitEpoch, GetPosition
from pointstamp.service.supervisor import Supervisor
from pointstamp.service.worker_pools import Termination
from tests.service.direct import workers_of
from tests.slowness import slowdown

WORD = {"word": pa.string()}
COUNT = {"word": pa.string(), "n": pa.int64()}
QUICK = ps.RestartPolicy(attempts=3, within_s=60.0, delay_s=0.0)


def rows(batch):
    return [(word, 1) for word in batch["word"].to_pylist()]


def counts(batch):
    return pa.RecordBatch.from_pylist([{"word": w, "n": n} for w, n in batch], pa.schema(COUNT))


def total(key, value, state):
    return state + value, [(key, state + value)]


class Build:
    """Running counts; what is sent as "fail" or "die" ends a worker, as often as is said."""

    def __init__(self, folder, times=0):
        self.folder, self.times = str(folder), times

    def __call__(self, scope, words, others):
        (Path(self.folder) / f"pid-{scope.index}").write_text(str(os.getpid()))
        seen = words.concat(others).exchange("word").map_batches(self.look).map_batches(rows)
        return seen.state_machine(total, default=0).map_batches(counts)

    def look(self, batch):
        for word in batch["word"].to_pylist():
            if word in ("die", "fail") and self.is_due():
                if word == "die":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ValueError("the very cause")
        return batch

    def is_due(self):
        path = Path(self.folder) / "times"
        n = len(path.read_text()) if path.exists() else 0
        if n < self.times:
            path.write_text("x" * (n + 1))
        return n < self.times


def serve(folder, build, workers=2, restart=QUICK, threads=False, checkpoint=True, every=None):
    return ps.serve(
        build,
        workers,
        inputs={"words": WORD, "others": WORD},
        outputs={"counts": COUNT},
        threads=threads,
        checkpoint=folder / "checkpoint" if checkpoint else None,
        snapshot_every=every,
        restart=restart,
    )


def send(service, epoch, *words):
    service.input("words").send([{"word": word} for word in words])
    service.input("words").advance_to(epoch + 1)


def found(service, upto, after=None):
    pairs = service.output("counts").read(upto, after=after)
    return sorted((epoch, row["word"], row["n"]) for epoch, b in pairs for row in b.to_pylist())


def killed(folder, index):
    """Kill a worker: the one that is there, or that is just being started in the place of one."""
    until = time.monotonic() + 60
    while True:
        try:
            os.kill(int((folder / f"pid-{index}").read_text()), signal.SIGKILL)
        except (ProcessLookupError, ValueError):  # that of before, or not written yet
            assert time.monotonic() < until
            time.sleep(0.01)
        else:
            return


@pytest.mark.parametrize("every", [None, 2])
def test_a_service_goes_on_when_a_worker_is_killed(tmp_path, every):
    with serve(tmp_path, Build(tmp_path), every=every) as service:
        endpoints = service.endpoints
        service.input("others").send([{"word": "b"}])
        service.input("others").close()
        seen, expected = Counter("b"), [(0, "b", 1)]
        for epoch in range(12):
            if epoch in (4, 8):
                killed(tmp_path, epoch // 4 - 1)  # the one, and then the other
            send(service, epoch, "a", "c")
            seen.update("ac")
            expected += [(epoch, word, seen[word]) for word in "ac"]
            if epoch % 3 == 2:
                assert found(service, epoch) == sorted(expected)
                assert not service.probe.less_equal(epoch)
            if epoch == 5:
                service.output("counts").discard(2)
                expected = [row for row in expected if row[0] > 2]
        assert service.input("others").time is None
        assert service.status().discarded == {"counts": 2}
        assert service.input("words").time == 12
        assert service.endpoints == endpoints  # so that other programs find them
    assert found(service, 11) == sorted(expected)


def test_what_was_sent_before_a_worker_is_killed_is_committed_after(tmp_path):
    with serve(tmp_path, Build(tmp_path)) as service:
        service.input("others").close()
        service.input("words").send(pa.table({"word": ["a"] * 9000}))
        killed(tmp_path, 1)
        service.input("words").send([{"word": "b"}])
        killed(tmp_path, 0)
        service.input("words").advance_to(1)
        result = found(service, 0)
        assert len(result) == 9001
        assert max(result) == (0, "b", 1)
    assert len(list(Checkpoint(tmp_path / "checkpoint").committed("words", -1))) == 1


def test_a_commit_whose_answer_is_lost_has_happened_once(tmp_path, monkeypatch):
    """The leader is lost between writing its decision and answering."""
    commit, n_commits = Coordinator.commit, 0

    def lost(self, request):
        nonlocal n_commits
        answer = commit(self, request)
        n_commits += 1
        if n_commits in (2, 3):
            self.worker.fail(RuntimeError("lost"))
            raise StoppedError("worker 0 of the service has ended")
        return answer

    monkeypatch.setattr(Coordinator, "commit", lost)
    policy = ps.RestartPolicy(attempts=5, delay_s=0.0)
    with serve(tmp_path, Build(tmp_path), threads=True, restart=policy) as service:
        service.input("others").close()
        send(service, 0, "a")  # its answer is lost
        service.input("words").send([{"word": "a"}])
        service.input("words").close()  # and that
        assert service.input("words").time is None
        assert found(service, 1) == [(0, "a", 1), (1, "a", 2)]
    assert n_commits > 3


@pytest.mark.parametrize("word", ["die", "fail"])
@pytest.mark.parametrize("threads", [False, True])
def test_workers_that_fail_now_and_then_are_started_again(tmp_path, word, threads):
    if threads and word == "die":
        pytest.skip("a thread cannot be killed")
    with serve(tmp_path, Build(tmp_path, times=2), threads=threads, every=1) as service:
        service.input("others").close()
        send(service, 0, "a")
        send(service, 1, "a", word)
        send(service, 2, "a")
        assert found(service, 2) == sorted([(0, "a", 1), (1, "a", 2), (1, word, 1), (2, "a", 3)])


def test_waiting_threads_go_on_waiting(tmp_path):
    with serve(tmp_path, Build(tmp_path)) as service:
        results = []

        def wait(epoch):
            service.probe.wait(epoch)
            results.append(epoch)

        waiting = [threading.Thread(target=wait, args=(epoch,)) for epoch in range(3)]
        for thread in waiting:
            thread.start()
        killed(tmp_path, 1)
        assert not service.wait(AwaitEpoch(0), 0.0)
        service.input("others").close()
        for epoch in range(3):
            send(service, epoch, "a")
        for thread in waiting:
            thread.join(120)
        assert sorted(results) == [0, 1, 2]


@pytest.mark.parametrize("threads", [False, True])
def test_the_end_of_the_policy_gives_the_first_cause(tmp_path, threads):
    policy = ps.RestartPolicy(attempts=2, within_s=60.0, delay_s=0.0)
    service = serve(tmp_path, Build(tmp_path, times=99), restart=policy, threads=threads)
    service.input("others").close()
    send(service, 0, "fail")
    with pytest.raises(WorkerError, match="the very cause") as caught:
        service.probe.wait(0)
    assert "started again 2 times within 60 s" in "".join(caught.value.__notes__)
    assert len((tmp_path / "times").read_text()) == 3
    with pytest.raises(WorkerError, match="the very cause"):
        service.stop()


def test_workers_that_a_damaged_checkpoint_has_ended_are_not_started_again(tmp_path, caplog):
    service = serve(tmp_path, Build(tmp_path))
    send(service, 0, "a")
    send(service, 1, "b")
    service.stop()
    file, *_ = tmp_path.glob("**/log/words/*1/attempt-*")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(WorkerError, match=rf"{file.name}: has \d+ bytes, and \d+ were written"):
        serve(tmp_path, Build(tmp_path)).probe.wait(1)
    assert "starts them again" not in caplog.text


def test_without_a_checkpoint_or_a_policy_a_lost_worker_ends_the_service(tmp_path):
    for options in ({"checkpoint": False}, {"restart": None}):
        service = serve(tmp_path, Build(tmp_path), **options)
        killed(tmp_path, 1)
        began = time.monotonic()
        with pytest.raises(WorkerError, match="SIGKILL"):
            service.probe.wait(0)
        assert time.monotonic() - began < 10 * slowdown()
        service.abort()


def test_an_abort_ends_a_service_that_is_starting_again(tmp_path):
    policy = ps.RestartPolicy(delay_s=60.0)
    service = serve(tmp_path, Build(tmp_path), restart=policy)
    killed(tmp_path, 0)
    service.status()  # the first restart does not wait
    killed(tmp_path, 0)
    refused = []

    def ask():
        try:
            service.probe.wait(0)
        except StoppedError as error:
            refused.append(str(error))

    waiting = threading.Thread(target=ask)
    waiting.start()
    time.sleep(0.5)  # it is waited for most likely, or will be
    began = time.monotonic()
    service.abort()
    waiting.join(60)
    assert refused == ["the service was aborted"]
    assert time.monotonic() - began < 10 * slowdown()  # of the minute that it would wait


def test_an_input_that_another_client_has_closed_is_open_again(tmp_path):
    """That it was closed is not kept, so what was complete by that is not waited for."""
    number = {"n": pa.int64()}
    with ps.serve(
        lambda scope, n: n,
        threads=True,
        inputs={"n": number},
        outputs={"n": number},
        checkpoint=tmp_path,
        restart=QUICK,
    ) as service:
        (leader,) = workers_of(service)
        assert leader.commit("n", 0, [], None)
        service.output("n").probe.wait(100)
        service.output("n").discard(50)
        leader.worker.fail(RuntimeError("lost"))
        until = time.monotonic() + 60
        while service.ask(GetPosition("n"), until=until) is None:  # it is not lost yet
            assert time.monotonic() < until


class Pool:
    """Workers that are lost as soon as they are asked; what became of them."""

    def __init__(self):
        self.termination, self.workers, self.called = Termination(), [self], []

    def start(self):
        self.called.append("start")

    def ask(self, request):
        raise StoppedError("lost")

    def abort(self):
        self.called.append("abort")

    def join(self, timeout_s):
        return True


@pytest.mark.parametrize("is_aborted", [False, True])
def test_workers_of_the_last_restart_are_ended_and_none_begin_after_an_abort(is_aborted):
    pools = []

    def make_pool(former):
        if pools and is_aborted:
            supervisor.abort()  # before it knows of this pool
        pools.append(Pool())
        return pools[-1]

    supervisor = Supervisor(make_pool, ps.RestartPolicy(attempts=1))
    supervisor.start()
    pools[0].termination.end(WorkerError("lost"))
    supervisor._thread.join(60)
    assert supervisor.join(0)
    assert pools[1].called == ([] if is_aborted else ["start", "abort"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"attempts": 0}, "attempts= of a RestartPolicy is a number of at least 1, and not 0"),
        ({"delay_s": -1}, "delay_s= of a RestartPolicy is a number of seconds, and not -1"),
        ({"within_s": "x"}, "within_s= of a RestartPolicy is a number of seconds, and not 'x'"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(options, said):
    with pytest.raises(UsageError, match=said):
        ps.RestartPolicy(**options)


def test_what_is_no_policy_is_refused(tmp_path):
    with pytest.raises(UsageError, match="restart= is a RestartPolicy, or None for never, and not"):
        serve(tmp_path, Build(tmp_path), restart=3)


def test_a_port_at_which_another_server_listens_is_not_shared():
    server = fl.FlightServerBase("grpc://127.0.0.1:0")
    try:
        assert not _is_free("127.0.0.1", server.port)
    finally:
        server.shutdown()
    assert _is_free("127.0.0.1", server.port)
