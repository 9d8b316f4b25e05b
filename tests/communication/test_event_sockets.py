"""Captured streams over sockets: n parts to m workers, closing, losing, and strangers."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.communication import event_sockets
from pointstamp.communication.blocking_stream import BlockingStream
from pointstamp.communication.tls import Certificates
from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    PeerLostError,
    RendezvousError,
    UsageError,
    WorkerError,
)
from pointstamp.testing import collect
from tests.free_ports import free_port

SECRET = b"sixteen bytes or more"

SOON_S = 60.0
"""How long what should happen at once may take on a busy machine."""


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


@pytest.fixture
def listen() -> Iterator[ps.Accept]:
    with ps.Accept(secret=SECRET) as listener:
        yield listener


def dial(listener: ps.Accept, secret: bytes = SECRET) -> ps.Connect:
    return ps.Connect(*listener.address, secret=secret, timeout_s=SOON_S)


def capture(to: Any, batches: list[Any], workers: int = 1) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.capture(to[worker.index] if isinstance(to, list) else to)
        for epoch, batch in enumerate(batches):
            input.send_batch(batch)
            input.advance_to(epoch + 1)
            worker.step()

    ps.execute(main, workers=workers, threads=True)


@pytest.mark.parametrize("capturing", [1, 2, 4])
@pytest.mark.parametrize("replaying", [1, 2, 4])
def test_n_workers_capture_and_m_workers_replay(
    pool: ThreadPoolExecutor, capturing: int, replaying: int
) -> None:
    listeners = [ps.Accept(secret=SECRET) for _ in range(replaying)]
    ends: list[Any] = [dial(listeners[part % replaying]) for part in range(capturing)]
    done = pool.submit(capture, ends, [["a"], ["b", "c"]], capturing)

    def build(scope: Any) -> Any:
        mine = range(scope.index, capturing, replaying)
        return scope.replay([listeners[scope.index] for _ in mine])

    found = collect(build, replaying)
    done.result(timeout=SOON_S)
    for listener in listeners:
        listener.close()
    assert found == [(0, "a")] * capturing + [(1, x) for x in "bc" for _ in range(capturing)]


def test_the_end_that_listens_can_be_the_one_that_captures(
    pool: ThreadPoolExecutor, listen: ps.Accept
) -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, 2]})
    done = pool.submit(capture, listen, [batch, batch])
    found = collect(lambda scope: scope.replay([dial(listen)]))
    done.result(timeout=SOON_S)
    assert found == [(0, (1,)), (0, (2,)), (1, (1,)), (1, (2,))]


def test_who_dials_may_come_first(pool: ThreadPoolExecutor) -> None:
    address = ("127.0.0.1", free_port())
    initiated = threading.Event()

    class Late(ps.Connect):
        def connect(self, is_wanted: Any) -> BlockingStream:
            initiated.set()
            return super().connect(is_wanted)

    done = pool.submit(capture, Late(*address, secret=SECRET), [["a"]])
    assert initiated.wait(SOON_S)
    with ps.Accept(*address, secret=SECRET) as listener:
        assert collect(lambda scope: scope.replay([listener])) == [(0, "a")]
    done.result(timeout=SOON_S)


def test_batches_come_while_the_capture_goes_on(
    pool: ThreadPoolExecutor, listen: ps.Accept
) -> None:
    arrived = threading.Semaphore(0)

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.capture(dial(listen))
        for epoch in range(3):
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step()
            assert arrived.acquire(timeout=SOON_S)

    done = pool.submit(ps.execute, main)
    collect(lambda scope: scope.replay([listen]).inspect(lambda x: arrived.release()))
    done.result(timeout=SOON_S)


def test_both_ends_may_belong_to_one_worker(listen: ps.Accept) -> None:
    """More than there is room for between a thread and its worker, and in the kernel."""
    batch = pa.RecordBatch.from_pydict({"x": pa.array(range(20_000), pa.int64())})

    def main(worker: Any) -> int:
        totals = [0]
        with worker.dataflow("from") as scope:
            scope.batches_to_stream([batch] * 200).capture(listen)
        with worker.dataflow("to") as scope:
            stream = scope.replay([dial(listen)])
            stream.inspect_batch(lambda t, b: totals.append(totals.pop() + b.num_rows))
        worker.run()
        return totals[0]

    assert ps.execute(main) == [4_000_000]


# What goes wrong.


def test_a_capture_whose_worker_fails_is_lost_for_the_replay(
    pool: ThreadPoolExecutor, listen: ps.Accept, first_cause: Any
) -> None:
    arrived = threading.Event()

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.capture(dial(listen))
        input.send("a")
        input.advance_to(1)
        worker.step()
        assert arrived.wait(SOON_S)
        raise RuntimeError("on purpose")

    done = pool.submit(ps.execute, main)
    with pytest.raises(WorkerError, match=r"Replay.*was lost before its end") as raised:
        collect(lambda scope: scope.replay([listen]).inspect(lambda x: arrived.set()))
    assert isinstance(first_cause(raised.value), PeerLostError)
    with pytest.raises(WorkerError, match="on purpose"):
        done.result(timeout=SOON_S)


def test_a_replay_whose_worker_fails_is_lost_for_the_capture(
    pool: ThreadPoolExecutor, listen: ps.Accept, first_cause: Any
) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.capture(dial(listen))
        input.send("a")
        while True:
            worker.step_or_park()  # until the operator says that its connection is lost

    done = pool.submit(ps.execute, main)
    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        collect(lambda scope: scope.replay([listen]).map(lambda x: 1 // 0))
    with pytest.raises(WorkerError, match=r"Capture.*was lost") as raised:
        done.result(timeout=SOON_S)
    assert isinstance(first_cause(raised.value), PeerLostError)


def test_nobody_comes(first_cause: Any) -> None:
    with ps.Accept(secret=SECRET, timeout_s=0.3) as listener:
        with pytest.raises(WorkerError, match=r"nothing connected to 127\.0\.0\.1:\d+ in 0.3 s"):
            collect(lambda scope: scope.replay([listener]))
        address = listener.address
    with pytest.raises(WorkerError, match=r"nothing answered at 127\.0\.0\.1") as raised:
        capture(ps.Connect(*address, secret=SECRET, timeout_s=0.3), [["a"]])
    assert isinstance(first_cause(raised.value), RendezvousError)


def test_a_worker_that_fails_does_not_wait_for_an_end_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SOON_S)

        def end() -> ps.Connect:
            return ps.Connect(*silent.getsockname(), secret=SECRET, timeout_s=10 * SOON_S)

        def main(worker: Any) -> None:
            with worker.dataflow() as scope:
                scope.to_stream([1]).capture(end())
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(1)  # it waits for our proof now
                raise RuntimeError("on purpose")

        def other(worker: Any) -> None:
            with worker.dataflow() as scope:
                scope.replay([end()])
            raise RuntimeError("on purpose")

        for run in (main, other):
            begin = time.monotonic()
            with pytest.raises(WorkerError, match="on purpose"):
                ps.execute(run)
            assert time.monotonic() - begin < SOON_S


def test_who_does_not_know_the_secret_is_turned_away_and_others_are_not(
    pool: ThreadPoolExecutor, listen: ps.Accept, first_cause: Any
) -> None:
    replayed = pool.submit(collect, lambda scope: scope.replay([listen]))
    with pytest.raises(WorkerError, match="does not know the secret") as raised:
        capture(dial(listen, secret=b"another secret of some length"), [["x"]])
    assert isinstance(first_cause(raised.value), AuthenticationError)
    with socket.create_connection(listen.address) as stranger:
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
    capture(dial(listen), [["a"]])
    assert replayed.result(timeout=SOON_S) == [(0, "a")]


def test_two_ends_that_both_capture_are_told(pool: ThreadPoolExecutor, listen: ps.Accept) -> None:
    done = pool.submit(capture, dial(listen), [["a"]])
    with pytest.raises(WorkerError, match=r"both ends of the connection at .* would capture"):
        capture(listen, [["a"]])
    with pytest.raises(WorkerError, match="both ends"):
        done.result(timeout=SOON_S)


def test_a_secret_that_is_too_short_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="at least 16 bytes"):
        ps.Accept(secret=b"short")
    with pytest.raises(UsageError, match="at least 16 bytes"):
        ps.Connect("127.0.0.1", 1, secret=b"short")


def test_a_place_where_somebody_listens_already_is_an_error(listen: ps.Accept) -> None:
    with pytest.raises(CommunicationError, match="cannot listen at"):
        ps.Accept(*listen.address, secret=SECRET)


def test_idle_strangers_keep_no_replay_waiting(
    pool: ThreadPoolExecutor, listen: ps.Accept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, they would have five seconds each."""
    monkeypatch.setattr(event_sockets, "_MAX_CANDIDATES", 20)
    with contextlib.ExitStack() as stack:
        for _ in range(40):  # more than are read at a time
            stack.enter_context(socket.create_connection(listen.address))
        replayed = pool.submit(collect, lambda scope: scope.replay([listen]))
        capture(dial(listen), [["a"]])
        assert replayed.result(timeout=SOON_S) == [(0, "a")]


# With certificates.


@pytest.fixture
def encrypted(certificates: Certificates) -> Iterator[ps.Accept]:
    with ps.Accept(secret=SECRET, certificates=certificates) as listener:
        yield listener


def dial_with(listener: ps.Accept, certificates: Certificates | None) -> ps.Connect:
    return ps.Connect(*listener.address, secret=SECRET, timeout_s=SOON_S, certificates=certificates)


@pytest.mark.parametrize("captures", ["dials", "listens"])
def test_with_certificates_the_same_records_arrive(
    pool: ThreadPoolExecutor, encrypted: ps.Accept, certificates: Certificates, captures: str
) -> None:
    batch = pa.RecordBatch.from_pydict({"x": pa.array(range(50_000), pa.int64())})
    ends = dial_with(encrypted, certificates), encrypted
    one, other = ends if captures == "dials" else reversed(ends)
    done = pool.submit(capture, one, [batch] * 20)
    found = collect(lambda scope: scope.replay([other]))
    done.result(timeout=SOON_S)
    assert found == [(epoch, (x,)) for epoch in range(20) for x in range(50_000)]


def test_with_certificates_several_parts_arrive_at_one_end(
    pool: ThreadPoolExecutor, encrypted: ps.Accept, certificates: Certificates
) -> None:
    ends = [dial_with(encrypted, certificates) for _ in range(3)]
    done = pool.submit(capture, ends, [["a"], ["b"]], 3)
    found = collect(lambda scope: scope.replay([encrypted] * 3))
    done.result(timeout=SOON_S)
    assert found == [(0, "a")] * 3 + [(1, "b")] * 3


@pytest.mark.parametrize("has_other", [False, True], ids=["plain", "of another authority"])
def test_with_certificates_who_has_none_of_them_is_refused(
    pool: ThreadPoolExecutor,
    encrypted: ps.Accept,
    certificates: Certificates,
    request: pytest.FixtureRequest,
    has_other: bool,
    first_cause: Any,
) -> None:
    """Though it knows the secret; and those that have one are served."""
    other = request.getfixturevalue("other_certificates") if has_other else None
    replayed = pool.submit(collect, lambda scope: scope.replay([encrypted]))
    with pytest.raises(WorkerError) as raised:
        capture(dial_with(encrypted, other), [["x"]])
    assert isinstance(first_cause(raised.value), AuthenticationError | PeerLostError)
    capture(dial_with(encrypted, certificates), [["a"]])
    assert replayed.result(timeout=SOON_S) == [(0, "a")]
    assert "a connection was refused" in encrypted._admission.refused


@pytest.mark.parametrize("has_other", [False, True], ids=["plain", "of another authority"])
def test_with_certificates_an_end_that_has_none_of_them_is_not_dialled(
    pool: ThreadPoolExecutor,
    certificates: Certificates,
    request: pytest.FixtureRequest,
    has_other: bool,
    first_cause: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = request.getfixturevalue("other_certificates") if has_other else None
    late_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late_s[0], sleep=time.sleep)
    monkeypatch.setattr(event_sockets, "time", clock)
    with ps.Accept(secret=SECRET, timeout_s=SOON_S, certificates=other) as listener:
        replayed = pool.submit(collect, lambda scope: scope.replay([listener]))
        with pytest.raises(WorkerError, match="do not agree on certificates") as raised:
            capture(dial_with(listener, certificates), [["x"]])
        assert isinstance(first_cause(raised.value), AuthenticationError)
        until = time.monotonic() + SOON_S
        while not listener._admission.refused:
            assert time.monotonic() < until
            time.sleep(0.01)
        late_s[0] = 2 * SOON_S  # which it would wait for others
        with pytest.raises(WorkerError, match="a connection was refused"):
            replayed.result(timeout=SOON_S)


def test_with_certificates_what_travels_is_encrypted(
    pool: ThreadPoolExecutor, encrypted: ps.Accept, certificates: Certificates
) -> None:
    seen = bytearray()

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                seen.extend(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def relay() -> None:
        client, _ = between.accept()
        with client, socket.create_connection(encrypted.address) as behind:
            back = pool.submit(carry, behind, client)
            carry(client, behind)
            back.result()

    with socket.create_server(("127.0.0.1", 0)) as between:
        carried = pool.submit(relay)
        end = ps.Connect(*between.getsockname(), secret=SECRET, certificates=certificates)
        done = pool.submit(capture, end, [["a word that no other may read"] * 100])
        found = collect(lambda scope: scope.replay([encrypted]))
        done.result(timeout=SOON_S)
        carried.result(timeout=SOON_S)
    assert found == [(0, "a word that no other may read")] * 100
    assert len(seen) > 100
    assert b"no other" not in seen
    assert b"PtStamp" not in seen


def test_with_certificates_idle_strangers_keep_no_replay_waiting(
    pool: ThreadPoolExecutor,
    encrypted: ps.Accept,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_sockets, "_MAX_CANDIDATES", 20)
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection(encrypted.address))
        replayed = pool.submit(collect, lambda scope: scope.replay([encrypted]))
        capture(dial_with(encrypted, certificates), [["a"]])
        assert replayed.result(timeout=SOON_S) == [(0, "a")]


def test_with_certificates_a_replay_that_fails_is_lost_for_the_capture(
    pool: ThreadPoolExecutor, encrypted: ps.Accept, certificates: Certificates, first_cause: Any
) -> None:
    """One thread writes, and another one waits for the answer, on one encrypted connection."""

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.capture(dial_with(encrypted, certificates))
        input.send("a")
        while True:
            worker.step_or_park()

    done = pool.submit(ps.execute, main)
    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        collect(lambda scope: scope.replay([encrypted]).map(lambda x: 1 // 0))
    with pytest.raises(WorkerError, match=r"Capture.*was lost") as raised:
        done.result(timeout=SOON_S)
    assert isinstance(first_cause(raised.value), PeerLostError)
