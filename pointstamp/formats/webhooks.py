"""A source of webhooks: a small server of HTTP that takes what others send.

What was sent cannot be asked for again, so there are no positions, and a sender that has its
answer does not send once more. That is the weakest of all sources: to have each call count
once, let a queue that lasts take them, and read that.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from pointstamp.errors import SourceError, UsageError
from pointstamp.formats.connector_arguments import check_count, check_text

REQUEST_S = 10.0
"""How long a sender may take for a request."""

_BLOCK_BYTES = 1 << 16

N_DIGITS = 18
"""Of a length that some machine may have."""


class WebhookCall(NamedTuple):
    """A request that was sent to a `WebhookSource`.

    Attributes
    ----------
    path : str
        Of the address, with its query.
    body : bytes
    headers : tuple of (str, str)
        Names are in lower case.
    """

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...]


class WebhookSource:
    """Accepts POST and PUT requests on a port of this machine, as `WebhookCall`; a `Source`.

    Parameters
    ----------
    port : int
    host : str
        The address to listen at; one beyond this machine has to be said, and is not encrypted.
    max_waiting : int
        How many calls may wait to be taken; more are answered by 503, for the sender to try again.
    max_body_bytes : int
        A longer body is answered by 413.

    Raises
    ------
    SourceError
        While it runs, if the port cannot be listened at.

    Notes
    -----
    Guarantees: at most once. A call is answered by 202 when it is in memory: those that a program
    has not worked off when it is killed, since the last snapshot, are lost, and what is sent
    while it is down is refused. There are no positions. It does not end. Worker 0 listens. Calls
    are not authenticated: signatures, which many senders have in a header, are for the
    dataflow to check, and it has the body as it came.

    Examples
    --------
    >>> WebhookSource(8080)
    WebhookSource(8080, '127.0.0.1')
    """

    poll_s = 0.01

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        *,
        max_waiting: int = 10_000,
        max_body_bytes: int = 1 << 20,
    ) -> None:
        if type(port) is not int or not 0 < port < 1 << 16:
            raise UsageError(f"a port is an integer from 1 to 65535; found {port!r}")
        check_text("host", host, "'127.0.0.1'")
        check_count("max_waiting", max_waiting)
        check_count("max_body_bytes", max_body_bytes)
        self._port = port
        self._host = host
        self._max_waiting = max_waiting
        self._max_body_bytes = max_body_bytes

    def partitions(self) -> Sequence[str]:
        """The address."""
        return [f"{self._host}:{self._port}"]

    def open(
        self, partition: str, position: None
    ) -> Iterator[tuple[list[WebhookCall], None] | None]:
        """What is sent from now on; see `Source`."""
        calls: queue.Queue[WebhookCall] = queue.Queue(self._max_waiting)
        with self._listening(calls):
            while True:
                found: list[WebhookCall] = []
                with contextlib.suppress(queue.Empty):
                    while len(found) < self._max_waiting:
                        found.append(calls.get_nowait())
                yield (found, None) if found else None

    @contextlib.contextmanager
    def _listening(self, calls: queue.Queue[WebhookCall]) -> Iterator[None]:
        try:
            server = _WebhookServer((self._host, self._port), calls, self._max_body_bytes)
        except OSError as error:
            raise SourceError(
                f"{self._host}:{self._port}: cannot be listened at: {error.strerror}"
            ) from error
        thread = threading.Thread(
            target=server.serve_forever, args=(0.05,), name="pointstamp-webhooks", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def __repr__(self) -> str:
        return f"WebhookSource({self._port}, {self._host!r})"


class _WebhookServer(ThreadingHTTPServer):
    """Takes calls, each on a thread of its own."""

    def __init__(
        self, address: tuple[str, int], calls: queue.Queue[WebhookCall], max_body_bytes: int
    ) -> None:
        super().__init__(address, _WebhookHandler)
        self.calls = calls
        self.max_body_bytes = max_body_bytes

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing of a sender that has gone: standard error is the program's."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _WebhookHandler(BaseHTTPRequestHandler):
    """Answers one sender."""

    server: _WebhookServer
    timeout = REQUEST_S

    def do_POST(self) -> None:
        """Take a call."""
        lengths = set(self.headers.get_all("Content-Length", []))
        length = lengths.pop() if len(lengths) == 1 else ""
        # What comes in chunks is not as long as a length beside them says.
        is_chunked = "Transfer-Encoding" in self.headers
        if is_chunked or not length.isascii() or not length.isdigit():
            self._answer(HTTPStatus.LENGTH_REQUIRED)
            self._discard()
            return
        # Python makes no integers of thousands of digits.
        if len(length) > N_DIGITS or int(length) > self.server.max_body_bytes:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            self._discard()
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return  # the sender has gone
        headers = tuple((name.lower(), value) for name, value in self.headers.items())
        try:
            self.server.calls.put_nowait(WebhookCall(self.path, body, headers))
        except queue.Full:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self._answer(HTTPStatus.ACCEPTED)

    do_PUT = do_POST  # noqa: N815  (the name is the method's)

    def _answer(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.end_headers()

    def _discard(self) -> None:
        """Take the rest of a request that is refused, for as long as a request may take.

        Of a connection that is closed before it is taken a sender may not get the answer.
        """
        deadline = time.monotonic() + REQUEST_S
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while time.monotonic() < deadline and self.connection.recv(_BLOCK_BYTES):
                pass

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: standard error is the program's."""
