"""The HTTP endpoint of a program: `/metrics`, `/health` and `/ready`.

A thread of the process that started the workers answers, with a thread for each connection while it
lasts. Nothing is kept between scrapes, and the workers are asked by none but them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as openmetrics

from pointstamp import __version__
from pointstamp.errors import UsageError
from pointstamp.metrics.endpoint import MetricsEndpoint
from pointstamp.metrics.program import ProgramSample, SampledProgram
from pointstamp.metrics.prometheus_text import PrometheusSample

LOGGER = logging.getLogger("pointstamp.metrics")

ANSWER_S = 2.0
"""How long workers may take to answer a scrape."""

LOOK_S = 0.05
"""How often the thread looks whether it is to end."""

CONNECTION_S = 10.0
"""How long a connection may take to send its request, and to take the answer."""

Answer = tuple[HTTPStatus, str, bytes]
"""(status, type, body)."""


class MetricsServer:
    """Serves the metrics of a program until it is closed.

    Parameters
    ----------
    endpoint : MetricsEndpoint
        Where.
    program : SampledProgram
        Of what.

    Raises
    ------
    UsageError
        If it cannot listen there.
    """

    def __init__(self, endpoint: MetricsEndpoint, program: SampledProgram) -> None:
        try:
            self._server = _HttpServer(endpoint, program)
        except OSError as error:
            raise UsageError(
                f"metrics cannot be served at {endpoint.host}, port {endpoint.port}: "
                f"{error.strerror or error}; port 0 takes a free one"
            ) from error
        host, port = self._server.server_address[:2]
        self.url = f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}"
        """Where it is."""
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="pointstamp-metrics", daemon=True)
        self._thread.start()
        LOGGER.info("metrics are served at %s/metrics", self.url)
        if endpoint.announce is not None:
            endpoint.announce(self.url)

    def close(self) -> None:
        """Serve nothing more; no thread and no socket is left when it returns."""
        self.abandon()
        self._thread.join()

    def abandon(self) -> None:
        """The same, a moment after it returns; takes no lock, so the collector may call it."""
        self._is_closing = True

    def _run(self) -> None:
        with self._server as server:  # which waits for its threads at the end
            server.timeout = LOOK_S
            while not self._is_closing:
                server.handle_request()
            server.close_connections()


class _HttpServer(ThreadingHTTPServer):
    """A thread for each connection, which `server_close` waits for."""

    daemon_threads = False
    block_on_close = True
    allow_reuse_address = True

    def __init__(self, endpoint: MetricsEndpoint, program: SampledProgram) -> None:
        if ":" in endpoint.host:
            self.address_family = socket.AF_INET6
        self.program = program
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((endpoint.host, endpoint.port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking for the name of this machine, which may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """End those that are open: what they wait for comes no more."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was broken off is no error of this program's."""
        LOGGER.debug("a connection to the metrics has ended", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: _HttpServer
    timeout = CONNECTION_S
    server_version = f"pointstamp/{__version__}"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer."""
        path = self.path.partition("?")[0].rstrip("/") or "/"
        answer = self._answers.get(path)
        if answer is None:
            known = ", ".join(self._answers)
            self._send(HTTPStatus.NOT_FOUND, "text/plain", f"there are {known}\n".encode())
            return
        try:
            said = answer(self, self.server.program.sample(self._answer_s()))
        except Exception as error:
            LOGGER.exception("%s cannot be answered", path)
            text = f"{path} cannot be answered: {type(error).__name__}: {error}\n"
            said = HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", text.encode()
        self._send(*said)

    do_HEAD = do_GET  # noqa: N815  (likewise)

    def _answer_s(self) -> float:
        """How long workers may take: Prometheus says how long it waits for all of it."""
        try:
            waits_s = float(self.headers.get("X-Prometheus-Scrape-Timeout-Seconds", "inf"))
        except ValueError:
            return ANSWER_S
        return min(ANSWER_S, max(waits_s / 2, LOOK_S))

    def _metrics(self, sample: ProgramSample) -> Answer:
        families: Any = PrometheusSample(sample, __version__)
        accept = self.headers.get("Accept", "")
        if "text/plain" in accept and "openmetrics" not in accept:
            body = exposition.generate_latest(families)
            return HTTPStatus.OK, exposition.CONTENT_TYPE_LATEST, body
        body = openmetrics.generate_latest(families)  # type: ignore[no-untyped-call]  # its own
        return HTTPStatus.OK, openmetrics.CONTENT_TYPE_LATEST, body

    def _health(self, sample: ProgramSample) -> Answer:
        return self._state(sample, is_so=sample.is_healthy)

    def _ready(self, sample: ProgramSample) -> Answer:
        return self._state(sample, is_so=sample.is_ready)

    def _state(self, sample: ProgramSample, *, is_so: bool) -> Answer:
        said = {
            "state": sample.state.state,
            "ready": sample.is_ready,
            "workers": sample.n_workers,
            "answering": [worker.index for worker in sample.workers],
            "dataflows_built": [worker.index for worker in sample.workers if worker.is_ready],
        }
        if sample.state.restarts is not None:
            said["restarts"] = sample.state.restarts
        if sample.state.error:
            said["error"] = sample.state.error
        status = HTTPStatus.OK if is_so else HTTPStatus.SERVICE_UNAVAILABLE
        return status, "application/json", json.dumps(said).encode() + b"\n"

    _answers: ClassVar[dict[str, Callable[[_Handler, ProgramSample], Answer]]] = {
        "/metrics": _metrics,
        "/health": _health,
        "/ready": _ready,
    }

    def _send(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are of interest for debugging alone."""
        LOGGER.debug("%s " + format, self.address_string(), *args)
