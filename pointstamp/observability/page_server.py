"""The server of the live page: a few files and five questions, read-only, for those with a token.

Structure, figures and explanations are JSON; timelines and series are Arrow IPC streams, of which a
browser asks for what ended since the last one.

It listens on loopback unless another address is given, and answers `GET` alone. The first request
has the token in its address, `/?token=...`; the page gets it as a cookie, which its own requests
bring. Browsers give no cookies to a frame in a page of another name, such as a cell of a notebook:
asked for by its whole address the page may be framed, and its own requests bring the token, too.
Where it listens on loopback the name in `Host` has to be one of loopback, so that no page of
another name that leads here can ask.
"""

from __future__ import annotations

import hmac
import json
import math
import re
import secrets
import socket
import sys
import threading
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import parse_qs, quote, urlsplit

from pointstamp.errors import CommunicationError, PointstampError, UsageError
from pointstamp.observability.page_columns import TABLES, without_tables

PAGE = Path(__file__).parent / "page"
LOOPBACK = ("127.0.0.1", "localhost", "::1")

FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/columns.js": ("columns.js", "text/javascript; charset=utf-8"),
    "/graph.js": ("graph.js", "text/javascript; charset=utf-8"),
    "/panels.js": ("panels.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/vendor/elk-api.js": ("vendor/elk-api.js", "text/javascript; charset=utf-8"),
    "/vendor/elk-worker.min.js": ("vendor/elk-worker.min.js", "text/javascript; charset=utf-8"),
    "/vendor/uPlot.iife.min.js": ("vendor/uPlot.iife.min.js", "text/javascript; charset=utf-8"),
    "/vendor/Arrow.es2015.min.js": ("vendor/Arrow.es2015.min.js", "text/javascript; charset=utf-8"),
    "/vendor/uPlot.min.css": ("vendor/uPlot.min.css", "text/css; charset=utf-8"),
}
"""What there is, by its path: nothing else of the disk can be asked for."""

ARROW = "application/vnd.apache.arrow.stream"

POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"
"""Nothing is loaded from elsewhere, nor sent there."""
UNFRAMED = "; frame-ancestors 'none'"

MIN_TOKEN = 16
NEVER_S = 1e6


class PageSource(Protocol):
    """What the page shows: a running program, or the log of one."""

    def structure(self) -> dict[str, Any]:
        """Operators and streams; see `runtime.watched_structure`."""

    def view(self) -> dict[str, Any]:
        """All that is drawn beside and on the graph, as of now."""

    def explain(self, address: str) -> dict[str, Any]:
        """What holds back the operator of that address."""


class PageServer:
    """Serves the page of one program from a thread of its own, from its making to `close`.

    Parameters
    ----------
    source : PageSource
    host : str
        The address to listen at.
    port : int
        0 for a free one.
    token : str, optional
        What a browser has to know; a new one if not given.

    Raises
    ------
    UsageError
        If the token is shorter than 16 characters.
    CommunicationError
        If it cannot listen there.
    """

    def __init__(
        self, source: PageSource, host: str = "127.0.0.1", port: int = 0, token: str | None = None
    ) -> None:
        if token is not None and (not isinstance(token, str) or len(token) < MIN_TOKEN):
            raise UsageError(f"a token has at least {MIN_TOKEN} characters; found one of another")
        if not isinstance(host, str) or type(port) is not int:
            raise UsageError(
                f"a page is served at a host, a text, and a port, an integer; found {host!r} and "
                f"{port!r}"
            )
        self.token = secrets.token_urlsafe(24) if token is None else token
        self.host = host
        self.is_closed = False
        make = _Server6 if ":" in host else _Server
        try:
            self._server = make((host, port), _Request)
        except (OSError, OverflowError) as error:
            raise CommunicationError(
                f"the page cannot be served at {host}, port {port}: {error}; name another one"
            ) from error
        self._server.source, self._server.token = source, self.token
        self._server.is_local = host in LOOPBACK
        # It sleeps until something connects, and does not look each half second whether it is to
        # end, as is the default: a page that nothing looks at costs nothing.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(NEVER_S,), name="pointstamp-page", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What to open in a browser; it has the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/?token={quote(self.token)}"

    def close(self) -> None:
        """Serve no more; its thread has ended when this returns. Again does nothing."""
        if self.is_closed:
            return
        self.is_closed = True
        ending = threading.Thread(target=self._server.shutdown)
        ending.start()
        while ending.is_alive():  # what connects has it look whether it is to end
            with suppress(OSError):
                socket.create_connection((self.host, self.port), 1.0).close()
            ending.join(0.05)
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    source: PageSource
    token: str
    is_local: bool

    @property
    def cookie(self) -> str:
        """The name of its cookie: browsers have those of all ports of a host together."""
        return f"pointstamp-{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone away is no error; others are printed, as by default."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Request(BaseHTTPRequestHandler):
    """One connection of a browser."""

    server: _Server
    server_version = "pointstamp"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Answer a file, or a question."""
        asked = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(asked.query).items()}
        if self.server.is_local and not self._is_host_of_loopback():
            self._answer(403, b"this page is served to this machine alone\n")
            return
        if not self._has_token(query):
            self._answer(
                401, b"open the page by its whole address, with the token that was printed\n"
            )
            return
        source = self.server.source
        questions = {
            "structure": source.structure,
            "view": lambda: without_tables(source.view()),
            "explain": lambda: source.explain(query.get("operator", "")),
        }
        directory, _, what = asked.path.rpartition("/")
        if directory == "/api" and what in questions:
            self._answer_question(questions[what])
        elif directory == "/api" and what in TABLES:
            self._answer_table(what, query.get("since", "-inf"))
        elif asked.path in FILES:
            name, kind = FILES[asked.path]
            body = (PAGE / name).read_bytes()
            if asked.path == "/" and "token" in query:
                body = _with_token(body, query["token"])
            self._answer(200, body, kind, may_be_framed="token" in query)
        else:
            self._answer(404, b"there is no such page\n")

    def _answer_question(self, question: Any) -> None:
        try:
            found, status = question(), 200
        except PointstampError as error:
            found, status = {"error": str(error)}, 503
        body = json.dumps(found, separators=(",", ":")).encode()
        self._answer(status, body, "application/json")

    def _answer_table(self, name: str, since: str) -> None:
        # Here and not above: it brings Arrow, which is for programs that something looks at.
        from pointstamp.formats.arrow_stream_file import to_stream

        try:
            since_s = float(since)
        except ValueError:
            since_s = math.nan
        if math.isnan(since_s):
            self._answer(400, b"since is a moment, in seconds\n")
            return
        try:
            view = self.server.source.view()
        except PointstampError as error:
            self._answer(503, str(error).encode())
            return
        self._answer(200, to_stream(TABLES[name](view, since_s)), ARROW)

    def _answer(
        self,
        status: int,
        body: bytes,
        kind: str = "text/plain; charset=utf-8",
        *,
        may_be_framed: bool = False,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        # A page elsewhere that frames this one has the token, or it would get no answer.
        policy = POLICY if may_be_framed else POLICY + UNFRAMED
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if status == 200:
            self.send_header(
                "Set-Cookie",
                f"{self.server.cookie}={quote(self.server.token)}; HttpOnly; SameSite=Strict",
            )
        self.end_headers()
        self.wfile.write(body)

    def _has_token(self, query: dict[str, str]) -> bool:
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            cookie = None
        given = query.get("token") or ("" if cookie is None else cookie.value)
        expected = {self.server.token, quote(self.server.token)}
        return any(hmac.compare_digest(given.encode(), each.encode()) for each in expected)

    def _is_host_of_loopback(self) -> bool:
        host = self.headers.get("Host", "")
        name = host.rpartition("]")[0].lstrip("[") if "[" in host else host.partition(":")[0]
        return name in LOOPBACK

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed for a request."""


def _with_token(page: bytes, token: str) -> bytes:
    """The page, whose own files are asked for with the token."""
    return re.sub(
        rb'(src|href)="([a-zA-Z][^":]*)"',
        lambda found: b'%s="%s?token=%s"' % (found[1], found[2], quote(token).encode()),
        page,
    )
