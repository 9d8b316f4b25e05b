"""A service without Spark that runs for ever: totals of sales by shop, kept while sales come in.

Other programs send sales and read totals by HTTP, each request with a token. What was answered
with an epoch is in the checkpoint, so that it outlasts the workers, this program and the machine.
A request that got no answer may have counted.

    POST /sales    [{"shop": 1, "cents": 250}, ...]    {"epoch": 7}
    GET  /totals                                       {"epoch": 7, "totals": [{"shop": 1, ...}]}

What it is to know is in the environment, as containers and systemd have it:

    POINTSTAMP_TOKEN_FILE    a file with the token
    POINTSTAMP_CHECKPOINT    the folder of the checkpoint
    POINTSTAMP_LISTEN        HOST:PORT for these requests; 127.0.0.1:8080 if not given
    POINTSTAMP_METRICS       HOST:PORT for /metrics, /health and /ready; 127.0.0.1:9464
    POINTSTAMP_WORKERS       how many; 2
    POINTSTAMP_MEMORY_LIMIT  of what waits at each, such as 512MB; none

    python examples/deploy/sales.py
"""

from __future__ import annotations

import hmac
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pointstamp as ps
from pointstamp.observability import MetricsEndpoint

SALES = "shop long, cents long"
SNAPSHOT_EVERY = 100
MOST_BYTES = 1 << 20
LOOK_S = 1.0
REQUEST_S = 30.0


def totals(scope: ps.Scope, sales: ps.Collection) -> ps.Collection:
    """How many sales each shop has, and what they add up to."""
    return sales.group_by("shop").agg(sales=ps.count(), cents=ps.sum("cents"))


@dataclass(frozen=True)
class Settings:
    """What the environment says."""

    token: str
    checkpoint: str
    listen: tuple[str, int]
    metrics: MetricsEndpoint
    workers: int
    memory_limit: str | None


def settings(environment: Mapping[str, str]) -> Settings:
    missing = {"POINTSTAMP_TOKEN_FILE", "POINTSTAMP_CHECKPOINT"} - environment.keys()
    if missing:
        sys.exit(f"{' and '.join(sorted(missing))} must be in the environment")
    token = Path(environment["POINTSTAMP_TOKEN_FILE"]).read_text().strip()
    if len(token) < 16:
        sys.exit("the token has to have 16 characters at least")
    metrics_host, metrics_port = place(environment.get("POINTSTAMP_METRICS", "127.0.0.1:9464"))
    return Settings(
        token,
        environment["POINTSTAMP_CHECKPOINT"],
        place(environment.get("POINTSTAMP_LISTEN", "127.0.0.1:8080")),
        MetricsEndpoint(metrics_port, metrics_host, lambda url: say(f"metrics at {url}/metrics")),
        int(environment.get("POINTSTAMP_WORKERS", "2")),
        environment.get("POINTSTAMP_MEMORY_LIMIT"),
    )


def place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


class Front(ThreadingHTTPServer):
    """Takes the requests of other programs, on a thread for each connection."""

    daemon_threads = True

    def __init__(self, service: ps.Service, settings: Settings) -> None:
        self.service = service
        self.authorization = f"Bearer {settings.token}".encode()
        self.writing = threading.Lock()
        super().__init__(settings.listen, Request)

    def take(self, sales: Any) -> int:
        """Commit sales as an epoch of their own: which it is."""
        with self.writing:  # what one request brings is in one epoch, and no other's with it
            self.service.input("sales").insert(sales)
            epoch = self.service.advance()
            if epoch % SNAPSHOT_EVERY == 0:
                # Totals are read as of an epoch: the changes before it are not, so that the workers
                # need not keep them.
                output = self.service.output("result")
                output.probe.wait(epoch)
                output.discard(epoch)
        return epoch

    def totals(self) -> dict[str, Any]:
        """The totals with all sales that were answered with an epoch."""
        with self.writing:
            epoch = (self.service.input("sales").time or 0) - 1
        output = self.service.output("result")
        rows = [] if epoch < 0 else output.snapshot(epoch)
        names = ("shop", "sales", "cents")
        return {"epoch": epoch, "totals": [dict(zip(names, row, strict=True)) for row in rows]}


class Request(BaseHTTPRequestHandler):
    """One request."""

    server: Front
    timeout = REQUEST_S
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        if self.path != "/sales":
            self.answer(HTTPStatus.NOT_FOUND, {"error": "there are POST /sales and GET /totals"})
        elif self.is_allowed():
            self.take_sales()

    def do_GET(self) -> None:
        if self.path != "/totals":
            self.answer(HTTPStatus.NOT_FOUND, {"error": "there are POST /sales and GET /totals"})
        elif self.is_allowed():
            try:
                self.answer(HTTPStatus.OK, self.server.totals())
            except ps.errors.PointstampError as error:
                self.answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})

    def is_allowed(self) -> bool:
        brought = self.headers.get("Authorization", "").encode("latin-1")
        if hmac.compare_digest(brought, self.server.authorization):
            return True
        self.answer(HTTPStatus.UNAUTHORIZED, {"error": "Authorization: Bearer TOKEN is missing"})
        return False

    def take_sales(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self.answer(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                {"error": f"Content-Length has to say how many bytes come, {MOST_BYTES} at most"},
            )
            return
        try:
            sales = json.loads(self.rfile.read(int(length)))
            if not isinstance(sales, list):
                raise TypeError("a list of sales is needed")
            self.answer(HTTPStatus.OK, {"epoch": self.server.take(sales)})
        except (ValueError, TypeError, ps.errors.DataError) as error:
            self.answer(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        except ps.errors.PointstampError as error:
            self.answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})

    def answer(self, status: HTTPStatus, values: Mapping[str, Any]) -> None:
        body = json.dumps(values).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status >= HTTPStatus.BAD_REQUEST:
            # What it has sent may not have been read.
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


def run(service: ps.Service, settings: Settings) -> None:
    """Take requests until this process is to end; raises what the service has ended of."""
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: ending.set())
    with Front(service, settings) as front:
        thread = threading.Thread(target=front.serve_forever, name="requests")
        thread.start()
        try:
            host, port = front.server_address[:2]
            say(f"sales are taken at http://{host!s}:{port}/sales")
            while not ending.wait(LOOK_S):
                service.status()
        finally:
            front.shutdown()
            thread.join()


def main() -> None:
    found = settings(os.environ)
    with ps.serve(
        totals,
        found.workers,
        collections={"sales": SALES},
        checkpoint=found.checkpoint,
        snapshot_every=SNAPSHOT_EVERY,
        memory_limit=found.memory_limit,
        metrics=found.metrics,
    ) as service:
        run(service, found)
    say("all that was taken is complete")


if __name__ == "__main__":
    main()
