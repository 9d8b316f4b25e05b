"""A source of server-sent events: goes on after the last event, as the protocol has it.

A thread reads the response and parses it, as a read blocks; the reader takes what is at hand. When
a connection ends, the next one asks for what comes after the last event, by `Last-Event-ID`; and
so does a program that begins with a snapshot, in which that is the position.

Source: the section on server-sent events of the HTML standard (WHATWG), for the parsing of streams
and the reconnection.
"""

from __future__ import annotations

import codecs
import contextlib
import http.client
import io
import queue
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pointstamp.errors import PositionError, SourceError, UsageError
from pointstamp.formats.connector_arguments import headers_of

CONNECT_S = 30.0
CLOSE_S = 1.0
RETRY_S = 3.0
"""How long to wait before a connection is made again, until a server says how long."""

N_WAITING = 10_000
"""How many events may wait to be taken, before no more are read."""

_BUSY = (http.HTTPStatus.REQUEST_TIMEOUT, http.HTTPStatus.TOO_MANY_REQUESTS)
"""What a server that is busy answers with, beside its errors (5xx)."""

_BLOCK_BYTES = 1 << 16
_TICK_S = 0.1


class ServerSentEvent(NamedTuple):
    """A server-sent event, as read by `ServerSentEventSource`.

    Attributes
    ----------
    data : str
    event : str
        Its type; "message" where the server says none.
    id : str
        Of the last event that had one; empty before that.
    """

    data: str
    event: str
    id: str


class ServerSentEventSource:
    """Reads server-sent events from a URL, as `ServerSentEvent`; a `Source`.

    Parameters
    ----------
    url : str
        "http://..." or "https://...". It is the one partition.
    headers : mapping of str to str, optional
        To be sent with each request, such as `{"Authorization": "Bearer ..."}`.

    Raises
    ------
    SourceError
        While it runs, if the first connection cannot be made, or if the server answers with
        something else than events: an error of the client's (4xx), another type, compressed ones.

    Notes
    -----
    Guarantees: those of the server. If it gives each event an id, and sends what comes after the
    one that it is asked for (`Last-Event-ID`), each event comes once. Of a server that gives no ids
    what it sends between two connections is lost. A connection that ends, or a server that
    is busy (5xx, 408, 429), is tried again for ever, after as long as the server has said
    (`retry`; `Retry-After`, in seconds).
    With status 204 a server ends the stream for good.

    Examples
    --------
    >>> ServerSentEventSource("http://localhost:8000/prices")
    ServerSentEventSource('http://localhost:8000/prices')
    """

    poll_s = 0.01

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None) -> None:
        self._url = _address_of(url)
        self._headers = headers_of(headers)

    def partitions(self) -> Sequence[str]:
        """The address."""
        return [self._url]

    def open(
        self, partition: str, position: str | None
    ) -> Iterator[tuple[list[ServerSentEvent], str | None] | None]:
        """The events after the one of an id; see `Source`."""
        if position is not None and type(position) is not str:
            raise PositionError(f"a position is the id of an event, a text; found {position!r}")
        feed = _EventFeed(self._url, self._headers, position or "")
        try:
            while True:
                events, is_end = feed.take()
                if events:
                    position = events[-1].id or None
                    yield events, position
                if is_end:
                    return
                if not events:
                    yield None
        finally:
            feed.close()

    def __repr__(self) -> str:
        return f"ServerSentEventSource({self._url!r})"


def _address_of(url: str) -> str:
    """An address of HTTP, as it is given.

    Raises
    ------
    UsageError
        If it is none.

    >>> _address_of("http://localhost:8000/prices")
    'http://localhost:8000/prices'
    """
    wrong = f"{url!r} is no address of HTTP: give 'http://...' or 'https://...'"
    if not isinstance(url, str):
        raise UsageError(wrong)
    try:
        parts = urlsplit(url)
        _ = parts.port  # which is looked at when it is asked for
    except ValueError as error:
        raise UsageError(f"{wrong} ({error})") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(wrong)
    if not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(
            f"{url!r} has characters that an address writes as %20, for one: see urllib.parse.quote"
        )
    if "@" in parts.netloc:
        raise UsageError(
            f"an address has no password here, as it names the partition ({parts.hostname}): give "
            "headers={'Authorization': 'Basic ...'}"
        )
    return url


def _seconds_of(retry_after: str | None) -> float:
    """How long a server says to wait; 0 if it does not, or names a date.

    >>> _seconds_of("120"), _seconds_of("Fri, 31 Dec 1999 23:59:59 GMT"), _seconds_of(None)
    (120.0, 0.0, 0.0)
    """
    is_number = retry_after is not None and retry_after.isascii() and retry_after.isdigit()
    return min(float(retry_after or 0), threading.TIMEOUT_MAX) if is_number else 0.0


class EventParser:
    r"""Makes events of the bytes of a stream, however it is cut.

    >>> parser = EventParser()
    >>> [*parser.events(b"id: 1\ndata: a\nda"), *parser.events(b"ta: b\r\n\r\n: comment\n\n")]
    [ServerSentEvent(data='a\nb', event='message', id='1')]
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        """Of the last event that was complete."""
        self.retry_s: float | None = None
        """How long the server has clients wait, if it says so."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._rest: list[str] = []
        """Pieces of a line that does not end yet: put together once, however long it is."""
        self._data: list[str] = []
        self._type = ""
        self._id = last_id

    def events(self, data: bytes) -> Iterator[ServerSentEvent]:
        """Those that are complete with more bytes."""
        text = self._decoder.decode(data)
        if "\n" not in text:
            self._rest.append(text)
            return
        *lines, rest = "".join([*self._rest, text]).split("\n")
        self._rest = [rest]
        for line in lines:
            if line:
                self._take_field(*line.partition(":"))
                continue
            self.last_id = self._id
            if self._data:
                yield ServerSentEvent("\n".join(self._data), self._type or "message", self._id)
            self._data, self._type = [], ""

    def _take_field(self, name: str, colon: str, value: str) -> None:
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_s = min(float(value) / 1000, threading.TIMEOUT_MAX)


class _EventFeed:
    """Reads on a thread of its own, again and again, until the stream ends for good."""

    def __init__(self, url: str, headers: Mapping[str, str], last_id: str) -> None:
        self._url = url
        self._headers = headers
        self._last_id = last_id
        self._retry_s = RETRY_S
        self._busy_s = 0.0
        """How long a server that is busy has this one wait, beyond that."""
        self._has_connected = False
        self._events: queue.Queue[ServerSentEvent] = queue.Queue(N_WAITING)
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(
            target=self._run, name="pointstamp-server-sent-events", daemon=True
        )
        self._thread.start()

    def take(self) -> tuple[list[ServerSentEvent], bool]:
        """The events at hand, and whether there will be no more."""
        is_over = not self._thread.is_alive()  # before: what it has put is all there then
        found: list[ServerSentEvent] = []
        with contextlib.suppress(queue.Empty):
            while len(found) < N_WAITING:
                found.append(self._events.get_nowait())
        if is_over and not found and self._error is not None:
            raise self._error
        return found, is_over and not found

    def close(self) -> None:
        """Read no more."""
        self._stop.set()
        # A read that waits ends with its socket.
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    if self._read():
                        return
                except (OSError, http.client.HTTPException) as error:
                    if not self._has_connected:
                        raise SourceError(
                            f"{self._url}: cannot be connected to: {error!r}"
                        ) from error
                self._stop.wait(max(self._retry_s, self._busy_s))
        except Exception as error:  # noqa: BLE001  (it is raised where events are taken)
            self._error = error

    def _read(self) -> bool:
        """One connection, to its end; whether that is the end of the stream."""
        parts = urlsplit(self._url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else None
        connection = (kind or http.client.HTTPConnection)(
            parts.hostname or "", parts.port, timeout=CONNECT_S
        )
        with contextlib.closing(connection):
            connection.connect()
            # Kept, as a connection forgets it where the response is to end with it.
            self._socket = connection.sock
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            headers = {"Accept": "text/event-stream", "Cache-Control": "no-store", **self._headers}
            if self._last_id:
                headers["Last-Event-ID"] = self._last_id.encode().decode("latin-1")
            path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
            connection.request("GET", path, headers=headers)
            with connection.getresponse() as response:
                if response.status == http.HTTPStatus.NO_CONTENT:
                    return True
                is_error = response.status >= http.HTTPStatus.INTERNAL_SERVER_ERROR
                is_busy = is_error or response.status in _BUSY
                self._busy_s = _seconds_of(response.headers.get("Retry-After")) if is_busy else 0.0
                if is_busy:
                    return False
                self._check(response)
                self._has_connected = True
                self._socket.settimeout(None)  # between two events any time may pass
                if not self._stop.is_set():
                    self._read_events(response)
        return False

    def _check(self, response: Any) -> None:
        content = response.headers.get_content_type()
        if response.status != http.HTTPStatus.OK:
            where = response.headers.get("Location")
            said = f"{response.status} {response.reason}" + (f" to {where}" if where else "")
            raise SourceError(f"{self._url}: the server answers with {said}")
        if content != "text/event-stream":
            raise SourceError(f"{self._url}: has {content}, and no events (text/event-stream)")
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise SourceError(
                f"{self._url}: the server compresses events ({encoding}), which was not asked for: "
                "have it send them as they are"
            )

    def _read_events(self, response: Any) -> None:
        parser = EventParser(self._last_id)
        while data := response.read1(_BLOCK_BYTES):
            for event in parser.events(data):
                self._put(event)
            self._last_id = parser.last_id
            self._retry_s = self._retry_s if parser.retry_s is None else parser.retry_s
            if self._stop.is_set():
                return

    def _put(self, event: ServerSentEvent) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(queue.Full):
                self._events.put(event, timeout=_TICK_S)
                return
