"""The endpoint itself: what it is asked for, what it refuses, and that nothing of it is left."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

import pointstamp as ps
from pointstamp.errors import MissingExtraError, UsageError
from pointstamp.formats import extras
from pointstamp.metrics import server as metrics_server
from pointstamp.metrics.endpoint import MetricsEndpoint, endpoint_of
from pointstamp.metrics.program import MeteredProgram, ProgramSample
from pointstamp.metrics.server import LOOK_S, MetricsServer
from tests.metrics.scraping import get, scrape


@pytest.fixture
def server() -> Any:
    served = MetricsServer(MetricsEndpoint(), MeteredProgram("none", 1))
    yield served
    served.close()


def test_it_listens_on_the_loopback_alone(server: MetricsServer) -> None:
    assert urlsplit(server.url).hostname == "127.0.0.1"


def test_prometheus_older_format_is_there_for_what_asks_for_it(server: MetricsServer) -> None:
    status, content_type, text = get(f"{server.url}/metrics", "text/plain;version=0.0.4")
    assert status == 200
    assert content_type.startswith("text/plain")
    names = {family.name for family in text_string_to_metric_families(text)}
    assert "pointstamp_workers" in names


def test_a_program_without_workers_yet_can_be_scraped(server: MetricsServer) -> None:
    found = scrape(server.url)
    assert (found.sum("workers"), found.sum("workers_answering")) == (1, 0)


def test_a_scrape_that_waits_less_gets_what_there_is_in_time() -> None:
    waits: list[float] = []

    class Program(MeteredProgram):
        def sample(self, timeout_s: float) -> ProgramSample:
            waits.append(timeout_s)
            return super().sample(timeout_s)

    served = MetricsServer(MetricsEndpoint(), Program("none", 1))
    for said in ("1", "60", "soon", "-1"):
        request = Request(f"{served.url}/metrics")
        request.add_header("X-Prometheus-Scrape-Timeout-Seconds", said)
        with urlopen(request) as answer:
            assert answer.status == 200
    served.close()
    assert waits == [0.5, metrics_server.ANSWER_S, metrics_server.ANSWER_S, LOOK_S]


def test_other_paths_and_methods_are_refused(server: MetricsServer) -> None:
    status, _, text = get(f"{server.url}/")
    assert (status, text) == (404, "there are /metrics, /health, /ready\n")
    place = urlsplit(server.url).netloc
    for method, expected in (("HEAD", 200), ("POST", 501)):
        connection = http.client.HTTPConnection(place, timeout=60)
        connection.request(method, "/health")
        answer = connection.getresponse()
        assert answer.status == expected
        answer.read()
        connection.close()


def test_what_cannot_be_read_is_said_and_the_next_request_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Program(MeteredProgram):
        asked = 0

        def sample(self, timeout_s: float) -> ProgramSample:
            Program.asked += 1
            if Program.asked == 1:
                raise ValueError("a count of no kind")
            return super().sample(timeout_s)

    served = MetricsServer(MetricsEndpoint(), Program("none", 1))
    status, _, text = get(f"{served.url}/metrics")
    assert (status, text) == (500, "/metrics cannot be answered: ValueError: a count of no kind\n")
    assert "a count of no kind" in caplog.text
    assert get(f"{served.url}/health")[0] == 200
    served.close()


def test_a_client_that_says_nothing_holds_up_neither_others_nor_the_end() -> None:
    served = MetricsServer(MetricsEndpoint(), MeteredProgram("none", 1))
    place = urlsplit(served.url)
    with socket.create_connection((place.hostname, place.port)) as silent:
        silent.sendall(b"GET /met")
        assert get(f"{served.url}/health")[0] == 200
        served.close()
        assert silent.recv(10) == b""
    assert not [t for t in threading.enumerate() if t.name == "pointstamp-metrics"]


def test_a_port_that_is_taken_is_an_error_that_names_it(server: MetricsServer) -> None:
    port = urlsplit(server.url).port
    with pytest.raises(UsageError, match=f"cannot be served at 127.0.0.1, port {port}"):
        ps.execute(lambda worker: None, metrics=port)


@pytest.mark.parametrize("place", [-1, 65536, True, 1.5, "here", "host:", ":80", "80:x", ["80"]])
def test_what_is_no_place_is_refused_before_a_worker_starts(place: Any) -> None:
    with pytest.raises(UsageError, match="metrics"):
        ps.execute(lambda worker: pytest.fail("it ran"), metrics=place)


def test_places(monkeypatch: pytest.MonkeyPatch) -> None:
    assert endpoint_of("[::1]:80") == MetricsEndpoint(80, "::1")
    assert endpoint_of("80") == MetricsEndpoint(80)
    given = MetricsEndpoint(0, "0.0.0.0")
    assert endpoint_of(given) is given
    schemas = {"a": {"x": "int64"}}
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert endpoint_of(None) is None
    with pytest.raises(MissingExtraError, match=r"pip install 'pointstamp\[metrics\]'"):
        ps.serve(lambda scope, a: a, inputs=schemas, outputs=schemas, metrics=0)
    with pytest.raises(MissingExtraError):
        ps.execute(lambda worker: None, metrics=0)


@pytest.mark.new_interpreters
def test_what_has_no_metrics_imports_nothing_of_them() -> None:
    program = (
        "import sys, pointstamp as ps\n"
        "ps.execute(lambda worker: None)\n"
        "found = [m for m in sys.modules if m.startswith(('prometheus', 'http.server',"
        " 'pointstamp.metrics.'))]\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
