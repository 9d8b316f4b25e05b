"""An S3 server, and what is between it and those who ask: slow, overloaded, cut, gone.

The server is moto's, in a thread. Between it and Arrow's client is a proxy that takes one request
of a connection, whole, and does with it what a plan says:

    pass            give it to the server, and the answer back
    slow            the same, after a while
    503             answer SlowDown, without the server
    reset           end the connection, without the server
    torn            read half of what is sent, and end the connection: the server has nothing
    no answer       give it to the server, and end the connection
    half answer     give it to the server, and half of the answer back
    late            end the connection; the server has it when `release` is called

What is torn on its way is not given to the server: a store does not make an object of it, as S3
compares its length and its checksum. `torn object` does it nevertheless, to see that it is found.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import os
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from pyarrow import fs

BUCKET = "bucket"
SLOW_S = 0.05

FAULTS = ("slow", "503", "reset", "torn", "no answer", "half answer", "late")

_SLOW_DOWN = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s"
)
_SLOW_DOWN_BODY = b"<Error><Code>SlowDown</Code><Message>Please reduce your rate</Message></Error>"


@dataclass(frozen=True)
class Request:
    """What a client asks for."""

    method: str
    path: str
    head: bytes
    body: bytes

    @property
    def kind(self) -> str:
        """What it is in S3."""
        if self.method == "GET" and "list-type" in self.path:
            return "list"
        if self.method == "POST" and "uploads" in self.path:
            return "begin parts"
        if self.method == "PUT" and "partNumber" in self.path:
            return "part"
        if self.method == "POST" and "uploadId" in self.path:
            return "complete parts"
        return {"PUT": "put", "HEAD": "head", "GET": "get"}.get(self.method, "delete")


Plan = Callable[[Request], str]


def passing(request: Request) -> str:
    """Of no fault."""
    return "pass"


def by_chance(seed: int, share: float, faults: tuple[str, ...] = FAULTS) -> Plan:
    """A fault of a share of the requests."""
    rolled = random.Random(f"faults {seed}")

    def plan(request: Request) -> str:
        return rolled.choice(faults) if rolled.random() < share else "pass"

    return plan


class FaultyLink:
    """The proxy, at a port of its own."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.settimeout(0.1)
        self.port = self._listener.getsockname()[1]
        self.plan: Plan = passing
        self.at_fault: Callable[[], object] = lambda: None
        """Called when half of a request is there, or all of it and no answer is given."""
        self.is_down = False
        """Whether it ends all connections at once."""
        self.seen: Counter[tuple[str, str]] = Counter()
        """By kind of request and what was done with it, how often."""
        self.late: list[Request] = []
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._accepting = threading.Thread(target=self._accept, name="link")
        self._accepting.start()

    def release(self) -> int:
        """Have the server get what is late; how many requests that were."""
        released, self.late = self.late, []
        for request in released:
            self._asked(request)
        return len(released)

    def close(self) -> None:
        self._is_closed = True
        self._accepting.join()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            if self.is_down:
                _reset(connection)
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), name="link's")
            self._threads = [one for one in self._threads if one.is_alive()]
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(20)
            head = _read_head(connection)
            if not head:
                return
            method, path = head.split(b"\r\n")[0].decode().split(" ")[:2]
            what = self.plan(Request(method, path, head, b""))
            if what == "torn" and method in ("PUT", "POST"):
                _continue(connection, head)
                connection.recv(200)
                self.at_fault()
                self._note(Request(method, path, head, b""), what)
                _reset(connection)
                return
            request = Request(method, path, head, _read_body(connection, head))
            if what == "torn":
                what = "reset"
            if what == "late" and method not in ("PUT", "POST", "DELETE"):
                what = "reset"
            self._note(request, what)
            self._do(what, request, connection)

    def _note(self, request: Request, what: str) -> None:
        self.seen[request.kind, what] += 1

    def _do(self, what: str, request: Request, connection: socket.socket) -> None:
        if what == "503":
            connection.sendall(_SLOW_DOWN % (len(_SLOW_DOWN_BODY), _SLOW_DOWN_BODY))
            return
        if what == "slow":
            time.sleep(SLOW_S)
        if what in ("reset", "late"):
            if what == "late":
                self.late.append(request)
            _reset(connection)
            return
        if what == "torn object":
            request = Request(*_halved(request))
        answer = self._asked(request)
        if what == "no answer":
            self.at_fault()
            _reset(connection)
        elif what == "half answer":
            connection.sendall(answer[: len(answer) // 2])
            _reset(connection)
        else:
            connection.sendall(answer)

    def _asked(self, request: Request) -> bytes:
        """The server's answer, by its length.

        At the end of the connection it is complete, too, and that comes 10 ms later: the server
        first looks whether something is left to read.
        """
        with socket.create_connection(("127.0.0.1", self._server_port), timeout=20) as server:
            lines = request.head.split(b"\r\n")
            kept = [
                line
                for line in lines
                if not line.lower().startswith((b"expect:", b"connection:", b"transfer-encoding:"))
            ]
            if b"transfer-encoding: chunked" in request.head.lower():
                kept.insert(1, b"Content-Length: %d" % len(request.body))
            kept.insert(1, b"Connection: close")
            server.sendall(b"\r\n".join(kept) + request.body)
            head = _read_head(server)
            with server.makefile("rb") as file:
                return head + file.read(_length_of_body(request, head))


def _length_of_body(request: Request, head: bytes) -> int:
    """How much is behind the head of an answer; -1 is what comes to the end."""
    if request.method == "HEAD":
        return 0
    lengths = [
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    return lengths[0] if lengths else -1


def _reset(connection: socket.socket) -> None:
    """End it in a way that the other side notices at once."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _read_head(connection: socket.socket) -> bytes:
    """All up to an empty line, and nothing of what is behind it.

    Looked at before it is taken: byte by byte it takes hundreds of calls, at each of which the
    threads of the server want the interpreter.
    """
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        seen = connection.recv(1 << 16, socket.MSG_PEEK)
        if not seen:
            return b""
        end = (head + seen).find(b"\r\n\r\n")
        head += connection.recv(len(seen) if end < 0 else end + 4 - len(head))
    return head


def _continue(connection: socket.socket, head: bytes) -> None:
    if b"100-continue" in head.lower():
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def _read_body(connection: socket.socket, head: bytes) -> bytes:
    """All of it, without the chunks that it is sent in."""
    _continue(connection, head)
    with connection.makefile("rb") as file:
        headers = head.lower().split(b"\r\n")
        lengths = [line.split(b":")[1] for line in headers if line.startswith(b"content-length:")]
        if lengths:
            return _exactly(file, int(lengths[0]))
        body = b""
        if b"transfer-encoding: chunked" in headers:
            while n_bytes := int(_line(file).split(b";")[0], 16):
                body += _exactly(file, n_bytes)
                _line(file)
            _line(file)
        return body


def _exactly(file: BinaryIO, n_bytes: int) -> bytes:
    found = file.read(n_bytes)
    if len(found) < n_bytes:
        raise ConnectionError("the client ended in the middle of a request")
    return found


def _line(file: BinaryIO) -> bytes:
    """One that may be cut off is none: a program is killed while it sends others."""
    line = file.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("the client ended in the middle of a request")
    return line


def _halved(request: Request) -> tuple[str, str, bytes, bytes]:
    """The request to write half of the object, which a server that checks nothing takes."""
    body = request.body
    if b"aws-chunked" in request.head:
        size, _, rest = body.partition(b"\r\n")
        body = rest[: int(size.split(b";")[0], 16)]
    dropped = (b"content-encoding:", b"transfer-encoding:", b"content-length:", b"x-amz-")
    lines = request.head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(dropped)]
    body = body[: len(body) // 2]
    head = b"\r\n".join([*kept, b"Content-Length: %d" % len(body)]) + b"\r\n\r\n"
    return request.method, request.path, head, body


class Store:
    """A bucket of its own, behind a link of its own."""

    def __init__(self, server_port: int, name: str) -> None:
        self.link = FaultyLink(server_port)
        self.name = name
        self._server_port = server_port
        self._direct = self.filesystem(port=server_port, attempts=5)
        _asked(server_port, "PUT", f"/{name}")

    def filesystem(self, attempts: int = 2, port: int | None = None, **options: Any) -> Any:
        """Arrow's client, which tries a request so often."""
        return fs.S3FileSystem(
            access_key="test",
            secret_key="test",
            region="us-east-1",
            scheme="http",
            endpoint_override=f"127.0.0.1:{port or self.link.port}",
            allow_delayed_open=True,
            request_timeout=20,  # of a machine with much else to do
            connect_timeout=20,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=attempts),
            **options,
        )

    @property
    def root(self) -> str:
        return f"{self.name}/checkpoint"

    @property
    def uri(self) -> str:
        """As a user gives it."""
        endpoint = f"127.0.0.1%3A{self.link.port}"
        query = f"scheme=http&endpoint_override={endpoint}&region=us-east-1"
        return f"s3://test:test@{self.root}?{query}"

    # What is there, by a way without faults.

    def names(self) -> list[str]:
        selector = fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        infos = self._direct.get_file_info(selector)
        start = len(self.root) + 1
        return sorted(info.path[start:] for info in infos if info.type == fs.FileType.File)

    def read(self, name: str) -> bytes:
        with self._direct.open_input_file(f"{self.root}/{name}") as file:
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        with self._direct.open_output_stream(f"{self.root}/{name}", compression=None) as file:
            file.write(data)

    def remove(self, name: str) -> None:
        self._direct.delete_file(f"{self.root}/{name}")

    def close(self) -> None:
        self.link.close()


def _asked(port: int, method: str, path: str) -> None:
    """Ask the server with patience."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path)
        assert connection.getresponse().status == 200


@contextlib.contextmanager
def moto_server() -> Iterator[int]:
    """The server, which has all of its objects in memory; its port."""
    os.environ.setdefault("MOTO_S3_DEFAULT_KEY_BUFFER_SIZE", str(1 << 30))  # else in open files
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        _asked(port, "GET", "/")  # it imports S3 when it is first asked
        yield port
    finally:
        server.stop()
