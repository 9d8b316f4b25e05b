"""The page in a real browser: what is drawn, what a click shows, and that it needs no network."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import pointstamp as ps
from pointstamp.observability.live_view import LiveView
from pointstamp.observability.log_view import LogView
from pointstamp.observability.page_server import PageServer
from pointstamp.runtime.watched_program import ReadWorkers, read_program
from tests.observability.browser import Browser, needs_browser

pytestmark = [needs_browser, pytest.mark.once, pytest.mark.xdist_group("browser")]

READY = "document.body?.dataset.ready"
HOSTILE = "<img src=x onerror=alert(1)>"


def loop(worker: ps.Worker, go_on: Callable[[int], bool], pause_s: float = 0.0) -> None:
    """Epochs of records that go round a loop, as long as it is to go on."""
    worker.environment.lines = {}
    with worker.dataflow("halving") as scope:
        input, stream = scope.new_input("numbers")
        with scope.iterative(name="Halve") as inner:
            closing, cycle = inner.feedback(1)
            numbers = stream.enter(inner).concat(cycle).exchange(lambda x: x)
            done, rest = numbers.branch(lambda x: x > 0)
            closing.connect(rest.map(lambda x: x // 2, name=HOSTILE))
            out = done.leave()
        probe = out.probe(name="halved")
    epoch = 0
    while go_on(epoch):
        for x in range(20):
            input.send(x)
        epoch += 1
        input.advance_to(epoch)
        worker.step_while(lambda epoch=epoch: probe.less_than(epoch))
        time.sleep(pause_s)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    yield started
    started.begin_anew()


def test_a_log_is_drawn_with_all_that_it_has(tmp_path: Path, browser: Browser) -> None:
    folder = tmp_path / "run.log"
    ps.execute(loop, lambda n: n < 5, workers=2, threads=True, log=ps.Log(folder))
    view = LogView(folder)
    operators, streams = view.structure()["operators"], view.structure()["streams"]
    with PageServer(view) as server:
        browser.open(server.url)
        browser.wait(READY)
        drawn = browser.texts("#drawing g[data-operator] > text:first-of-type")
        kinds = [each for each in operators if each["kind"] == "operator"]
        assert len(drawn) == len(kinds)
        assert {"numbers", "halved", "Feedback", HOSTILE[:25] + "…"} <= set(drawn)
        assert browser.value("document.querySelectorAll('rect.scope').length") == 2
        assert browser.value("document.querySelectorAll('path.stream').length") == len(streams)
        # What closes the loop is drawn back, and nothing else is.
        back = browser.value(
            "[...document.querySelectorAll('path.back')].map(each => each.dataset.stream)"
        )
        (feedback,) = [e["address"] for e in operators if e["name"] == "Feedback"]
        assert back == [each["stream"] for each in streams if each["target"] == feedback]
        # Each box lies in that of its scope.
        assert browser.value(
            """[...document.querySelectorAll('g[data-operator]')].every(each => {
                const inner = each.getBBox(), depth = each.dataset.operator.split("/").length;
                return [...document.querySelectorAll('rect.scope')].filter(scope => {
                    const box = scope.getBBox();
                    return box.x <= inner.x && inner.x + inner.width <= box.x + box.width &&
                        box.y <= inner.y && inner.y + inner.height <= box.y + box.height;
                }).length === depth - 1; })"""
        )
        counts = browser.texts("#drawing text.count")
        assert len(counts) == len(streams)
        assert "200" in counts  # records of five epochs, of two workers, into the loop
        assert "slowest epoch" in browser.texts("#critical p")[0]
        (epochs,) = browser.texts("[data-figure=epochs]")
        assert epochs.startswith("6 ")
        assert browser.value("document.querySelectorAll('#latencies canvas').length") == 1
        assert "5 rounds" in browser.texts("#loops p")[0]
        assert timeline_is_painted(browser)
        # In the dark texts are light, on the page and in its canvases, and boxes are dark.
        of_body = "Object.values((({color, backgroundColor}) => [color, backgroundColor])"
        of_body += "(getComputedStyle(document.body)))"
        light_text, light_page = map(lightness, browser.value(of_body))
        assert light_page - light_text > 0.6
        browser.darken()
        dark_text, dark_page = map(lightness, browser.value(of_body))
        assert dark_text - dark_page > 0.6
        boxes = "[...document.querySelectorAll('rect.operator')]"
        fills = browser.value(f"{boxes}.map(each => getComputedStyle(each).fill)")
        assert all(lightness(fill) < 0.6 for fill in fills)
        await_(lambda: timeline_is_painted(browser), browser)
        browser.click("#zoom-critical")
        assert browser.value("panels.timeline.range !== null")
        assert browser.value("typeof window.alert") == "function"
        # On a phone nothing is wider than the page.
        browser.resize(400, 800)
        browser.wait("document.documentElement.scrollWidth <= 400")
        width = browser.value("graph.box[2]")
        browser.pinch("#drawing", 3.0)
        assert browser.value("graph.box[2]") == pytest.approx(width / 3)
        # As when the program is gone; a connection that is open would be answered still.
        browser.value("void (window.fetch = () => Promise.reject(new TypeError('refused')))")
        browser.value("void select(Object.keys(view.operators)[0])")
        browser.wait("document.getElementById('details').textContent.includes('served any more')")
        assert browser.errors == []


def lightness(colour: str) -> float:
    """Of a colour as a browser says it: rgb(1, 2, 3) or color(srgb 0.1 0.2 0.3)."""
    numbers = [float(each) for each in re.findall(r"[\d.]+", colour)][:3]
    r, g, b = numbers if "srgb" in colour else (each / 255 for each in numbers)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def timeline_is_painted(browser: Browser) -> bool:
    """Whether the longest piece of each worker has its colour in the picture."""
    found: bool = browser.value(
        """(() => { const timeline = panels.timeline, { canvas } = timeline;
        const ratio = window.devicePixelRatio, [from, to] = timeline.shown();
        const of = (context, x, y) => [...context.getImageData(x * ratio, y * ratio, 1, 1).data];
        return timeline.data.rows.every((row, i) => {
            const longer = (a, b) => b[1] - b[0] > a[1] - a[0] ? b : a;
            const [began, ended, what] = row.segments.reduce(longer);
            const x = 70 + (canvas.clientWidth - 70) * ((began + ended) / 2 - from) / (to - from);
            const sample = document.createElement("canvas").getContext("2d");
            sample.fillStyle = timeline.colour(what);
            sample.fillRect(0, 0, 9, 9);
            const drawn = of(canvas.getContext("2d"), x, 26 * i + 6);
            return String(drawn) === String(of(sample, 2, 2)); }); })()"""
    )  # fmt: skip
    return found


class Running:
    """A program on threads, with its page, for as long as the block lasts."""

    def __init__(self, main: Callable[..., Any], workers: int, *args: Any) -> None:
        self.is_over = threading.Event()
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(main, workers, args))
        self.server = PageServer(LiveView(read_program, "a test"))

    def _run(self, main: Callable[..., Any], workers: int, args: tuple[Any, ...]) -> None:
        try:
            ps.execute(
                main, lambda n: not self.is_over.is_set(), *args, workers=workers, threads=True
            )
        except BaseException as error:  # noqa: BLE001  (raised at the end of the block)
            self._errors.append(error)

    def end(self) -> None:
        self.is_over.set()
        self._thread.join()
        if self._errors:
            raise self._errors[0]

    def __enter__(self) -> Running:
        self._thread.start()
        ends = time.monotonic() + 60
        while not any(
            worker["operators"]
            for answer in read_program(ReadWorkers("structure"))
            for worker in answer["workers"]
        ):
            assert time.monotonic() < ends
            time.sleep(0.01)
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()
        self.server.close()


def test_a_running_program_is_live_and_a_click_explains(browser: Browser) -> None:
    with Running(loop, 2, 0.002) as running:
        browser.open(running.server.url)
        browser.wait(READY)
        assert browser.texts("#status") == ["live"]
        first = browser.wait("Object.values(view.streams).some(each => each.rate > 0) && view.at")
        assert browser.wait(f"view.at > {first}")
        probe = browser.value(
            "graph.structure.operators.find(each => each.name === 'halved').address"
        )
        browser.click(f"g[data-operator='{probe}']")
        # The loop runs on: until something was caught on its way.
        path = browser.wait("[...document.querySelectorAll('rect.lit')].length > 1")
        assert path
        assert browser.wait("document.querySelectorAll('path.stream.lit').length")
        details = browser.wait("document.getElementById('details').textContent")
        assert "halved" in details
        assert "worker" in details
        assert f"{Path(__file__).name}:" in details
        for mode in ("waiting", "share", "held"):
            browser.click(f"input[value={mode}]")
            assert browser.value("graph.mode") == mode
        # The input holds a capability, and the probe never does.
        fills = "[...document.querySelectorAll('rect.operator')].map(each => each.style.fill)"
        browser.wait(f"new Set({fills}).size > 1")
        assert timeline_is_painted(browser)
        assert "worker" in browser.texts("#workers th")[0]
        running.end()
        browser.wait("document.getElementById('status').className === 'over'")
        assert "has ended" in browser.texts("#status")[0]
        # What is drawn stays.
        assert browser.value("document.querySelectorAll('g[data-operator]').length") == 7
        assert browser.errors == []


def test_a_thousand_operators_are_drawn(browser: Browser) -> None:
    def main(worker: ps.Worker, go_on: Callable[[int], bool]) -> None:
        with worker.dataflow("large") as scope:
            input, stream = scope.new_input("numbers")
            ends = []
            for _ in range(20):
                with scope.scoped(ps.Product(ps.Int, ps.Int)) as inner:
                    each = stream.enter(inner)
                    for _ in range(49):
                        each = each.map(abs)
                    ends.append(each.leave())
            probe = ends[0].concat(*ends[1:]).probe()
        epoch = 0
        while go_on(epoch):
            epoch += 1
            input.send(epoch)
            input.advance_to(epoch)
            worker.step_while(lambda epoch=epoch: probe.less_than(epoch))
            time.sleep(0.05)

    with Running(main, 1) as running:
        browser.open(running.server.url)
        browser.wait(READY)
        n_boxes = browser.value("document.querySelectorAll('g[data-operator]').length")
        assert n_boxes >= 980
        assert browser.value("Object.keys(view.operators).length") >= n_boxes
        assert int(browser.value("document.body.dataset.layoutMs")) < 30_000
        assert browser.errors == []


def test_without_the_token_there_is_no_page(browser: Browser) -> None:
    with PageServer(LiveView(lambda request: [], "a test")) as server:
        browser.open(server.url.partition("?")[0])
        assert "with the token" in browser.wait("document.body?.textContent")
        browser.open(server.url)
        said = browser.wait("document.body?.dataset.failed")
        assert "no worker of the program answers" in said


def slow(worker: ps.Worker, go_on: Callable[[int], bool]) -> None:
    """Epochs that wait for an operator of worker 1."""
    with worker.dataflow("slow") as scope:
        input, stream = scope.new_input("numbers")
        probe = (
            stream.exchange(to=lambda x: 1)
            .map(lambda x: time.sleep(0.15), name="Sleepy")
            .exchange(to=lambda x: 0)
            .probe()
        )
    epoch = 0
    while go_on(epoch):
        if worker.index == 0:
            input.send(epoch)
        epoch += 1
        input.advance_to(epoch)
        worker.step_while(lambda epoch=epoch: probe.less_than(epoch))


def test_a_running_program_has_the_critical_path_of_its_slowest_epoch(browser: Browser) -> None:
    with Running(slow, 2) as running:
        browser.open(running.server.url)
        browser.wait(READY)
        browser.wait("view.critical && view.critical.sums[0].name === 'Sleepy'")
        browser.wait("document.querySelectorAll('#critical table').length === 1")
        said = " ".join(browser.texts("#critical"))
        assert "Critical path of the slowest epoch" in said
        assert "Sleepy" in said
        assert "Estimated" in said
        browser.click("#zoom-critical")
        shown = browser.value("panels.timeline.shown()[1] - panels.timeline.shown()[0]")
        assert shown < 10
        # Only what is new is asked for, and the pieces that are kept follow each other.
        browser.wait(
            """performance.getEntriesByType("resource").some(
                each => /timeline\\?since=[0-9]/.test(each.name))"""
        )
        # An answer is shown a moment after it is there.
        browser.wait("panels.timeline.data.rows.some(row => row.segments.length > 1)")
        for row in browser.value("panels.timeline.data.rows"):
            moments = [moment for segment in row["segments"] for moment in segment[:2]]
            assert moments == sorted(moments)
            assert all(began < ended for began, ended, _ in row["segments"])
        # The slowest may be another one later, and the timeline shows that.
        at = browser.value("view.at")
        browser.wait(f"view.at > {at + 1}")
        within = "(([a, b]) => a < view.critical.from && view.critical.to < b)"
        assert browser.value(f"{within}(panels.timeline.shown())")
        assert browser.errors == []


def stuck(worker: ps.Worker, go_on: Callable[[int], bool]) -> None:
    """The input of worker 1 stays at epoch 0, for which the probes of both wait."""
    worker.environment.lines = {}
    with worker.dataflow("stuck") as scope:
        input, stream = scope.new_input("orders")
        probe = stream.exchange().map(abs, name="Absolute").probe(name="counted")
    if worker.index == 0:
        input.send(1)
        input.advance_to(7)
    while go_on(0) and probe.less_than(7):
        worker.step()
        time.sleep(0.005)


def test_a_program_that_is_stuck_shows_what_holds_it(browser: Browser) -> None:
    program = Path(__file__).read_text().splitlines()
    (line,) = (n for n, said in enumerate(program, 1) if said.endswith('input("orders")'))
    with Running(stuck, 2) as running:
        browser.open(running.server.url + "#mode=held")
        browser.wait(READY)
        address = "graph.structure.operators.find(each => each.name === '%s').address"
        probe, holder = (browser.value(address % name) for name in ("counted", "orders"))
        browser.click(f"g[data-operator='{probe}']")
        lit = (
            "[...document.querySelectorAll('rect.lit')].map(e => e.parentElement.dataset.operator)"
        )
        browser.wait(f"{lit}.length === 4")  # the holder, and all on the way to what waits
        said = browser.texts(".holder")
        assert any(
            "worker 1" in each and "'orders'" in each and f"{Path(__file__).name}:{line}" in each
            for each in said
        ), said
        # What holds the earliest time has the full colour; what waits for it has none.
        fills = browser.value(
            "Object.fromEntries([...document.querySelectorAll('g[data-operator]')].map(each =>"
            "[each.dataset.operator, getComputedStyle(each.querySelector('rect')).fill]))"
        )
        assert fills[holder] != fills[probe]
        assert "holds 0" in browser.texts(f"g[data-operator='{holder}'] text.small")[0]
        assert browser.errors == []


@contextmanager
def notebook(page: str) -> Iterator[str]:
    """A page of another name than the live page has: browsers give frames in it no cookies."""

    class Page(BaseHTTPRequestHandler):
        timeout = 0.5  # browsers open connections that they may need, and leave them alone

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<link rel="icon" href="data:,">{page}'.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False

    with Server(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://localhost:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def await_(condition: Callable[[], Any], browser: Browser) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, browser.errors
        browser.value("1")  # takes in errors
        time.sleep(0.05)


def test_the_page_may_be_in_a_cell_of_a_notebook(tmp_path: Path, browser: Browser) -> None:
    folder = tmp_path / "run.log"
    ps.execute(loop, lambda n: n < 5, log=ps.Log(folder))
    view = LogView(folder)
    asked: list[str] = []
    ask = view.view

    def asked_view() -> dict[str, Any]:
        asked.append("view")
        return ask()

    view.view = asked_view  # type: ignore[method-assign]
    with PageServer(view) as server:
        bare = server.url.partition("?")[0]
        browser.open(server.url)
        browser.wait(READY)  # so that the browser has the cookie
        asked.clear()
        frame = '<iframe src="%s" width="1200" height="900"></iframe>'
        with notebook(frame % server.url) as url:
            browser.open(url)
            # By the last of what it is made of, and by the two that it asks for as Arrow.
            await_(lambda: len(asked) == 3, browser)
            assert browser.errors == []
        with notebook(frame % bare) as url:
            asked.clear()
            browser.open(url)
            await_(lambda: browser.errors, browser)
            assert "401" in browser.errors[0] or "frame" in browser.errors[0].lower()
            assert asked == []


def test_the_drawing_of_a_notebook_is_a_picture_to_a_browser(
    tmp_path: Path, browser: Browser
) -> None:
    def main(worker: ps.Worker) -> str:
        with worker.dataflow("drawn") as scope, scope.iterative(name="Rounds") as inner:
            closing, cycle = inner.feedback(1, limit=3)
            numbers = scope.to_stream([1]).enter(inner).concat(cycle)
            closing.connect(numbers.map(lambda x: x, name=HOSTILE))
        picture: str = scope.drawing().svg()
        return picture

    (picture,) = ps.execute(main)
    browser.open("data:image/svg+xml," + quote(picture))
    browser.wait("document.querySelectorAll('rect').length == 6")
    # The texts are where they are said to be: in their boxes.
    inside = browser.value(
        """[...document.querySelectorAll("text[text-anchor]")].map((text) => {
        const box = text.previousElementSibling.getBoundingClientRect();
        const said = text.getBoundingClientRect();
        return box.left <= said.left && said.right <= box.right && box.top <= said.top &&
        said.bottom <= box.bottom; })"""
    )
    assert inside == [True] * 4
    assert browser.errors == []
