"""Server-sent events and webhooks, with servers of the standard library."""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import PositionError, SourceError, UsageError, WorkerError
from pointstamp.formats.http_events import EventParser, ServerSentEventSource, _EventFeed
from pointstamp.formats.webhooks import WebhookSource
from pointstamp.testing import check_source
from tests.free_ports import free_port

N_EVENTS = 12
N_EACH = 4
"""How many events a connection has, before it ends."""


class Events(BaseHTTPRequestHandler):
    """Some events by connection; `Last-Event-ID` says where to begin. At the end, no content."""

    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        self.seen.append(dict(self.headers))
        first = int(self.headers.get("Last-Event-ID", "-1")) + 1
        if self.path == "/text":
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
        elif self.path == "/busy" and len(self.seen) < 5:
            self.send_response([503, 500, 429, 408][len(self.seen) - 1])
            self.send_header("Retry-After", "0")
            self.end_headers()
        elif self.path == "/compressed":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
        elif self.path == "/gone":
            self.send_error(410)
        elif first >= N_EVENTS and self.path != "/open":
            self.send_response(204)
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"retry: 1\n\n")
            for n in range(first, min(N_EVENTS, first + N_EACH)):
                kind = b"event: even\n" if n % 2 == 0 else b""
                self.wfile.write(b"id: %d\n%sdata: value %d\n\n" % (n, kind, n))
            if self.path == "/open":
                self.server.gate.wait(30)  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def events() -> Iterator[str]:
    Events.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Events)
    server.gate = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.gate.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def read(source: ServerSentEventSource, position: str | None = None) -> list[Any]:
    [url] = source.partitions()
    return [event for item in source.open(url, position) if item for event in item[0]]


def test_events_are_read_over_connections_that_end_and_from_every_position(events: str) -> None:
    source = ServerSentEventSource(f"{events}/all?x=1", headers={"Authorization": "Bearer abc"})
    found = read(source)
    assert found[:2] == [("value 0", "even", "0"), ("value 1", "message", "1")]
    assert [event.id for event in found] == [str(n) for n in range(N_EVENTS)]
    assert [seen.get("Last-Event-ID") for seen in Events.seen] == [None, "3", "7", "11"]
    assert {seen["Authorization"] for seen in Events.seen} == {"Bearer abc"}
    assert [event.id for event in read(source, "9")] == ["10", "11"]
    check_source(source)


def test_a_dataflow_ends_with_the_stream_of_events(events: str) -> None:
    source = ServerSentEventSource(f"{events}/all")
    found = ps.testing.collect(lambda scope: scope.source(source).map(lambda event: event.data))
    assert found == [(0, f"value {n}") for n in sorted(range(N_EVENTS), key=str)]


def test_a_stream_that_stays_open_is_closed_by_the_reader(events: str) -> None:
    source = ServerSentEventSource(f"{events}/open")
    reader = source.open(source.partitions()[0], None)
    found: list[Any] = []
    while len(found) < N_EACH:
        found += (next(reader) or ([],))[0]
    assert next(reader) is None
    reader.close()  # type: ignore[attr-defined]
    names = {thread.name for thread in threading.enumerate()}
    assert "pointstamp-server-sent-events" not in names


def test_a_server_that_is_busy_is_asked_again(events: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("pointstamp.formats.http_events.RETRY_S", 0.001)
    assert len(read(ServerSentEventSource(f"{events}/busy"))) == N_EVENTS
    assert len(Events.seen) > 5


def test_a_server_that_is_busy_says_how_long() -> None:
    Events.seen = []

    class Busy(Events):
        def do_GET(self) -> None:
            self.send_response(429)
            self.send_header("Retry-After", "3600")
            self.end_headers()
            self.seen.append({})

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        feed = _EventFeed(f"http://127.0.0.1:{server.server_port}", {}, "")
        waits: list[float] = []
        wait = feed._stop.wait

        def noted(seconds: float) -> bool:
            waits.append(seconds)
            feed._stop.set()
            return wait(0)

        feed._stop.wait = noted  # type: ignore[method-assign, assignment]
        feed._thread.join()
        feed.close()
        server.shutdown()
        thread.join()
    assert waits == [3600]


def test_what_gives_no_events_is_said(events: str) -> None:
    with pytest.raises(SourceError, match="/gone: the server answers with 410 Gone"):
        read(ServerSentEventSource(f"{events}/gone"))
    with pytest.raises(SourceError, match=r"/compressed: the server compresses events \(gzip\)"):
        read(ServerSentEventSource(f"{events}/compressed"))
    with pytest.raises(SourceError, match=r"/text: has text/plain, and no events"):
        read(ServerSentEventSource(f"{events}/text"))
    with pytest.raises(SourceError, match=r"http://127\.0\.0\.1:1: cannot be connected to"):
        read(ServerSentEventSource("http://127.0.0.1:1"))
    with pytest.raises(PositionError, match="the id of an event, a text; found 3"):
        read(ServerSentEventSource(events), 3)  # type: ignore[arg-type]
    wrong = ["ftp://x", "http://", "http://x:y", "x", "", 5, None]
    for url in wrong:
        with pytest.raises(UsageError, match="is no address of HTTP"):
            ServerSentEventSource(url)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"see urllib\.parse\.quote"):
        ServerSentEventSource("http://x/two words")
    with pytest.raises(UsageError, match=r"no password here, .*\(x\)"):
        ServerSentEventSource("http://me:secret@x/")
    for headers in (5, {"a": 5}, {5: "a"}, {"a": "b\nc: d"}):
        with pytest.raises(UsageError, match=r"headers are .*; found"):
            ServerSentEventSource("http://x", headers=headers)  # type: ignore[arg-type]


STREAM = (
    "\ufeff: comment\r\nid: 1\r\ndata:  two spaces\r\ndata\r\ndata: ü\r\n\r\n"
    "event: only a type\n\n"
    "id: a\0b\ndata: no id\rretry: 10\rretry: x\nunknown: x\n\n"
    "id\ndata: id is empty\n\ndata: never complete"
).encode()
EXPECTED = [
    (" two spaces\n\nü", "message", "1"),
    ("no id", "message", "1"),
    ("id is empty", "message", ""),
]


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7, 1000])
def test_a_stream_is_parsed_however_it_is_cut(n_bytes: int) -> None:
    parser = EventParser()
    pieces = [STREAM[n : n + n_bytes] for n in range(0, len(STREAM), n_bytes)]
    assert [event for piece in pieces for event in parser.events(piece)] == EXPECTED
    assert parser.retry_s == 0.01


def test_a_server_may_say_any_time_to_wait() -> None:
    parser = EventParser()
    assert list(parser.events(b"retry: " + b"9" * 5000 + b"\n")) == []
    assert parser.retry_s == threading.TIMEOUT_MAX


def test_pieces_of_a_long_line_are_put_together_once() -> None:
    parser = EventParser()
    for _ in range(1000):
        assert list(parser.events(b"data: ")) == []
    assert len(parser._rest) == 1000
    [event] = parser.events(b"x\n\n")
    assert event.data.endswith("data: x")
    assert parser._rest == [""]


def call(port: int, method: str, path: str, body: bytes | None, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        return connection.getresponse().status


def test_what_is_sent_to_a_webhook_is_taken_and_too_much_is_refused(
    capfd: pytest.CaptureFixture[str],
) -> None:
    port = free_port()
    source = WebhookSource(port, max_waiting=2, max_body_bytes=10)
    [name] = source.partitions()
    reader: Any = source.open(name, None)
    assert next(reader) is None  # it listens from now on
    assert call(port, "POST", "/orders?x=1", b"one", Signature="abc") == 202
    assert call(port, "PUT", "/orders", b"") == 202
    assert call(port, "POST", "/orders", b"more") == 503
    assert call(port, "POST", "/orders", b"12345678901") == 413
    assert call(port, "POST", "/orders", bytes(20_000_000)) == 413  # while it is sent
    assert call(port, "GET", "/orders", None) == 501
    chunked = {"Content-Length": "5", "Transfer-Encoding": "chunked"}
    assert call(port, "POST", "/orders", b"3\r\nabc\r\n0\r\n\r\n", **chunked) == 411
    assert call(port, "POST", "/orders", b"", **{"Content-Length": "9" * 5000}) == 413
    with socket.create_connection(("127.0.0.1", port)) as sender:
        sender.sendall(b"POST /orders HTTP/1.1\r\nContent-Length: 9\r\n\r\n1")
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    calls, position = next(reader)
    assert position is None
    assert [(each.path, each.body) for each in calls] == [("/orders?x=1", b"one"), ("/orders", b"")]
    assert dict(calls[0].headers)["signature"] == "abc"
    other: Any = WebhookSource(port).open(name, None)
    with pytest.raises(SourceError, match=rf"127\.0\.0\.1:{port}: cannot be listened at"):
        next(other)
    reader.close()
    with pytest.raises(ConnectionRefusedError):
        call(port, "POST", "/", b"")
    assert capfd.readouterr().err == ""  # it is the program's


def test_a_dataflow_of_webhooks_runs_until_it_is_ended() -> None:
    port = free_port()

    def send() -> None:
        for n in range(3):
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    call(port, "POST", "/", str(n).encode())
                    break

    seen: list[int] = []

    def end(body: bytes) -> None:
        seen.append(int(body))
        if len(seen) == 3:
            raise StopIteration  # it does not end by itself

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.source(WebhookSource(port)).map(lambda call: call.body).inspect(end)

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(WorkerError, match="StopIteration"):
        ps.execute(main)
    sender.join()
    assert seen == [0, 1, 2]


def test_what_is_no_webhook_is_said() -> None:
    with pytest.raises(UsageError, match="a port is an integer from 1 to 65535; found 0"):
        WebhookSource(0)
    with pytest.raises(UsageError, match=r"host is a text, such as '127\.0\.0\.1'; found 5"):
        WebhookSource(8080, 5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_waiting is an integer of at least 1; found 0"):
        WebhookSource(8080, max_waiting=0)
