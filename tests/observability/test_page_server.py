"""The page is read-only, for those with a token, on this machine, and loads from nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from pointstamp.errors import CommunicationError, UsageError
from pointstamp.observability.page_server import FILES, PAGE, PageServer
from pointstamp.observability.remote_view import RemoteView

TOKEN = "a token of the test's own"


class Fixed:
    """A source that says what it was asked."""

    def structure(self) -> dict[str, Any]:
        return {"operators": [], "streams": []}

    def view(self) -> dict[str, Any]:
        raise CommunicationError("no worker answers")

    def explain(self, address: str) -> dict[str, Any]:
        return {"operator": address, "workers": []}


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(Fixed(), token=TOKEN) as server:
        yield server


def answer(
    server: PageServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        found = connection.getresponse()
        return found.status, found.read(), dict(found.getheaders())
    finally:
        connection.close()


def path_of(server: PageServer, path: str = "/") -> str:
    return path + "?" + server.url.partition("?")[2]


QUESTIONS = [f"/api/{what}" for what in ("structure", "view", "timeline", "series", "explain")]


@pytest.mark.parametrize("path", [*FILES, *QUESTIONS, "/x"])
def test_nothing_is_answered_without_the_token(server: PageServer, path: str) -> None:
    for given in ("", "?token=", "?token=another token of this"):
        status, body, headers = answer(server, path + given.replace(" ", "%20"))
        assert status == 401
        assert b"token" in body
        assert "Set-Cookie" not in headers


def test_the_page_gets_a_cookie_that_its_own_requests_bring(server: PageServer) -> None:
    status, body, headers = answer(server, path_of(server))
    assert status == 200
    assert b"<svg" in body
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]
    cookie = headers["Set-Cookie"].partition(";")[0]
    for path in FILES:
        assert answer(server, path, Cookie=cookie)[0] == 200
    status, body, _ = answer(server, "/api/explain?operator=0/1", Cookie=cookie)
    assert json.loads(body)["operator"] == "0/1"


def test_it_may_be_framed_by_what_knows_the_token_alone(server: PageServer) -> None:
    _, body, headers = answer(server, path_of(server))
    assert "frame-ancestors" not in headers["Content-Security-Policy"]
    cookie = headers["Set-Cookie"].partition(";")[0]
    query = path_of(server).partition("?")[2]
    # Its files are asked for with the token, as a frame brings no cookie.
    for path in re.findall(rb'(?:src|href)="([a-zA-Z][^":]+)"', body):
        assert path.decode().endswith(f"?{query}")
        assert answer(server, f"/{path.decode()}")[0] == 200
    _, body, headers = answer(server, "/", Cookie=cookie)
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert query.encode() not in body


def test_two_pages_of_a_machine_do_not_take_each_others_cookies(server: PageServer) -> None:
    with PageServer(Fixed()) as other:
        names = {
            answer(each, path_of(each))[2]["Set-Cookie"].partition("=")[0]
            for each in (server, other)
        }
        assert len(names) == 2
        assert other.token != server.token


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_sent(server: PageServer, method: str) -> None:
    assert answer(server, path_of(server), method)[0] == 501


def test_a_page_of_another_name_that_leads_here_is_refused(server: PageServer) -> None:
    assert answer(server, path_of(server), Host="evil.example:80")[0] == 403
    assert answer(server, path_of(server), Host=f"localhost:{server.port}")[0] == 200


@pytest.mark.parametrize(
    "path", ["/../page_server.py", "/vendor/../index.html", "/vendor/README.md"]
)
def test_no_other_file_can_be_asked_for(server: PageServer, path: str) -> None:
    assert answer(server, path_of(server, path))[0] == 404


def test_an_error_of_the_program_is_said_to_the_page(server: PageServer) -> None:
    status, body, _ = answer(server, path_of(server, "/api/view"))
    assert (status, json.loads(body)) == (503, {"error": "no worker answers"})


class Drawn(Fixed):
    """A source with a timeline of two workers, one of which did nothing."""

    VIEW: ClassVar[dict[str, Any]] = {
        "at": 3.0,
        "timeline": {
            "to": 3.0,
            "rows": [
                {"worker": 0, "segments": [[0.0, 1.0, "0/1"], [1.0, 2.5, "parked"]]},
                {"worker": 1, "segments": []},
            ],
        },
        "series": {"t": [1.0, 2.0], "records": [10.0, 0.5], "epochs": [0.0, 1.0]},
    }

    def view(self) -> dict[str, Any]:
        return self.VIEW


def test_timelines_and_series_are_arrow_and_what_is_new_since() -> None:
    with PageServer(Drawn(), token=TOKEN) as server:
        status, body, headers = answer(server, path_of(server, "/api/timeline"))
        assert (status, headers["Content-Type"]) == (200, "application/vnd.apache.arrow.stream")
        assert rows_of(body) == [
            {"worker": 0, "began": 0.0, "ended": 1.0, "what": "0/1"},
            {"worker": 0, "began": 1.0, "ended": 2.5, "what": "parked"},
        ]
        _, body, _ = answer(server, path_of(server, "/api/timeline") + "&since=1.0")
        assert [row["what"] for row in rows_of(body)] == ["parked"]
        _, body, _ = answer(server, path_of(server, "/api/series") + "&since=1.0")
        assert rows_of(body) == [{"t": 2.0, "records": 0.5, "epochs": 1.0}]
        _, body, _ = answer(server, path_of(server, "/api/series") + "&since=2.0")
        assert rows_of(body) == []
        for given in ("soon", "nan"):
            status, body, _ = answer(server, path_of(server, "/api/series") + f"&since={given}")
            assert (status, body) == (400, b"since is a moment, in seconds\n")
        figures = json.loads(answer(server, path_of(server, "/api/view"))[1])
        assert figures == {"at": 3.0, "timeline": {"to": 3.0, "workers": [0, 1]}}
        assert RemoteView(server.url).view() == Drawn.VIEW
    with PageServer(Fixed(), token=TOKEN) as server:
        assert answer(server, path_of(server, "/api/series"))[:2] == (503, b"no worker answers")


def rows_of(body: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.ipc.open_stream(body).read_all().to_pylist()
    return found


def test_a_page_elsewhere_is_shown_by_its_address(server: PageServer) -> None:
    remote = RemoteView(server.url)
    assert remote.explain("0/7")["operator"] == "0/7"
    with pytest.raises(CommunicationError, match="no worker answers"):
        remote.view()
    with pytest.raises(CommunicationError, match="401"):
        RemoteView(server.url.partition("?")[0] + "?token=not-this-one-at-all")
    with pytest.raises(UsageError, match="has no token"):
        RemoteView(server.url.partition("?")[0])


def test_bad_places_and_tokens_are_refused(server: PageServer) -> None:
    for host, port in ((None, 0), ("127.0.0.1", "x")):
        with pytest.raises(UsageError, match=f"a text, and a port, an integer; found {host!r} and"):
            PageServer(Fixed(), host, port)  # type: ignore[arg-type]  # as is to be seen
    with pytest.raises(UsageError, match="at least 16"):
        PageServer(Fixed(), token="short")
    with pytest.raises(CommunicationError, match=f"port {server.port}"):
        PageServer(Fixed(), port=server.port)


def test_the_page_needs_no_network() -> None:
    for name, _ in FILES.values():
        text = (PAGE / name).read_text()
        if "vendor" in name:
            continue
        loaded = re.findall(r"""(?:src|href)="([^"]+)"|(?:fetch|ask)\([`"]([^`"]+)""", text)
        assert all("//" not in each for pair in loaded for each in pair), name
        assert re.findall(r"https?://[^\s\"']+", text) in ([], ["http://www.w3.org/2000/svg"])


def test_what_others_made_is_named_with_its_licence_and_small() -> None:
    vendor = PAGE / "vendor"
    readme = (vendor / "README.md").read_text()
    names = {each.name for each in vendor.iterdir()} - {"README.md"}
    assert {name for name in names if name in readme} | {"uPlot-LICENSE"} >= names
    assert sum(each.stat().st_size for each in vendor.iterdir()) < 2_000_000
