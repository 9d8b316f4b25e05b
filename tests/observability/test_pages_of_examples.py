"""The page draws every example program as it was built, in a browser; as `pages_of_examples.txt`.

    python -m tests.observability.test_pages_of_examples      writes that file, to be looked at

Each program runs as it stands, but on threads. Its dataflows are those that its log has; of a
service, those that its workers say. The programs that need Spark have their page in
`tests/spark/test_live_page.py`.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import pointstamp as ps
from pointstamp.observability.live_view import LiveView
from pointstamp.observability.log_view import LogView
from pointstamp.observability.page_server import PageServer
from pointstamp.runtime.watched_program import read_program
from pointstamp.runtime.watched_structure import structure_of
from tests.observability.browser import Browser, needs_browser
from tests.test_examples import EXAMPLES, SAID

pytestmark = [needs_browser, pytest.mark.once]

PICTURES = Path(__file__).with_name("pages_of_examples.txt")

GRAPH = "1\t2\n2\t3\n1\t3\n1\t4\n"
WITHOUT = {"import_graph.py", "triangles_on_spark.py", "stream_on_spark.py"}
"""That make no dataflow, or one on Spark."""

DRAWN = """(async () => {
await graph.show(%s);
const boxes = [...document.querySelectorAll("g[data-operator]")].map((each) =>
  [each, each.getBBox()]);
for (const [one, a] of boxes) for (const [other, b] of boxes) {
  if (one !== other && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height &&
      b.y < a.y + a.height) return [`${one.dataset.operator} covers ${other.dataset.operator}`];
}
const ends = new Map(graph.structure.streams.map((each) => [each.stream, each]));
const frames = [...document.querySelectorAll("rect.scope")].map((each) => each.textContent);
const streams = [...document.querySelectorAll("path.stream")].map((each) => {
  const { source, target } = ends.get(each.dataset.stream);
  return `${source} -> ${target}${each.classList.contains("exchange") ? ", exchanged" : ""}` +
    `${each.classList.contains("back") ? ", drawn back" : ""}`; });
return [...frames, ...boxes.map(([each]) =>
  `${each.dataset.operator} ${each.querySelector("text").textContent}`), ...streams.sort()];
})()"""
"""What the picture of a structure has: frames, boxes, streams; none of its boxes covers another."""


@contextmanager
def taking(folder: Path) -> Iterator[list[Any]]:
    """The structures of the programs that run in this block, on threads."""
    found: list[Any] = []
    execute, serve = ps.execute, ps.serve

    def logging(main: Any, *args: Any, **options: Any) -> Any:
        log = folder / str(len(found))
        results = execute(main, *args, **{**options, "threads": True, "log": ps.Log(log)})
        found.append(LogView(log).structure())
        return results

    def serving(*args: Any, **options: Any) -> Any:
        service = serve(*args, **{**options, "threads": True})
        found.append(LiveView(read_program, "an example").structure())
        return service

    class Viewing(ps.View):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            found.append(structure_of(self._worker))

    with patch.multiple(ps, execute=logging, serve=serving, View=Viewing):
        yield found


def structures(name: str, folder: Path) -> list[Any]:
    """Of the dataflows of an example, in the order in which they are there."""
    args, _ = SAID.get(name, ((), ""))
    if name == "growing_triangles.py":
        (folder / "edges.tsv").write_text(GRAPH)
        args = (str(folder / "edges.tsv"), "1", "1")
    with taking(folder) as found, patch.object(sys, "argv", [name, *args]):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return found


def pictures(browser: Browser, folder: Path) -> Iterator[str]:
    """What the pages of all examples have, a line for each part of a picture."""
    for path in sorted(EXAMPLES.glob("*.py")):
        if path.name in WITHOUT:
            continue
        yield path.name
        of_example = folder / path.stem
        of_example.mkdir()
        drawn = [
            tuple(browser.value(DRAWN % json.dumps(structure)))
            for structure in structures(path.name, of_example)
        ]
        for picture in dict.fromkeys(drawn):  # a service that begins again is drawn as before
            yield from (f"  {line}" for line in picture)
    assert browser.errors == []


@contextmanager
def page(folder: Path) -> Iterator[Browser]:
    """A browser with a page, to be given other structures."""

    def first(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).probe()

    ps.execute(first, log=ps.Log(folder / "first"))
    with PageServer(LogView(folder / "first")) as server, Browser(folder) as browser:
        browser.open(server.url)
        browser.wait("document.body?.dataset.ready")
        yield browser


def test_the_picture_of_every_example_is_what_was_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with page(tmp_path) as browser:
        drawn = list(pictures(browser, tmp_path))
    assert drawn == PICTURES.read_text().splitlines()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, page(Path(made)) as shown:
        PICTURES.write_text("\n".join(pictures(shown, Path(made))) + "\n")
