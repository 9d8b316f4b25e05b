"""Draws docs/collatz.svg: the dataflow of the README's program.

    python docs/draw_dataflow.py            writes the picture
    python docs/draw_dataflow.py --check    ends with 1 if the one there is another

What is drawn is what `scope.structure()` says was built, so the picture cannot
show an operator or a stream that is not there, or leave one out: whatever has no
place below is an error. Places are chosen by hand; it is one picture.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pointstamp as ps

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "collatz.svg"

BOX = (112, 44)
PLACES = {
    "ToStream": (76, 110),
    "Concatenate": (270, 110),
    "Exchange": (456, 110),
    "Branch": (612, 110),
    "Map": (612, 210),
    "Feedback": (270, 210),
    "Inspect": (854, 110),
}
"""The middle of each operator's box; every name is there once."""

INNER = (190, 34, 734, 262)
"""The edges of the inner scope: left, top, right, bottom."""

# What people want to know of each operator, beside its name.
REMARKS = {
    "ToStream": "(n, n, 0)",
    "Exchange": "by n",
    "Branch": "is it 1?",
    "Map": "halve, or 3 x + 1",
    "Feedback": "round + 1",
    "Inspect": "(steps, n)",
}
LABELS = {("Branch", 0): "done", ("Branch", 1): "rest"}
"""What flows from an operator's output."""

SIZE = (930, 300)
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1c2733; text-anchor: middle }
  .small { font-size: 12px; fill: #566573 }
  .box { fill: #ffffff; stroke: #2c5f8a; stroke-width: 1.5 }
  .scope { fill: #eef4f9; stroke: #9db8cc; stroke-width: 1.5; stroke-dasharray: 5 4 }
  .stream { fill: none; stroke: #2c5f8a; stroke-width: 1.5; marker-end: url(#tip) }
  .page { fill: #ffffff }
"""


def readme_program() -> str:
    """The first Python block of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found.group(1)


class Recording:
    """A worker that remembers what was built on it."""

    def __init__(self, worker: ps.Worker) -> None:
        self._worker = worker
        self.index, self.peers, self.run = worker.index, worker.peers, worker.run
        self.lines: list[str] = []

    @contextmanager
    def dataflow(self) -> Iterator[ps.Scope]:
        """Build, and remember."""
        with self._worker.dataflow() as scope:
            yield scope
        self.lines = scope.structure()


def structure() -> list[str]:
    """What the program builds, a line for each part."""
    program: dict[str, Any] = {}
    exec(readme_program().partition("\nprint(")[0], program)

    def main(worker: ps.Worker) -> list[str]:
        recording = Recording(worker)
        program["collatz"](recording, 10)
        return recording.lines

    (lines,) = ps.execute(main)
    return lines


@dataclass(frozen=True)
class Flow:
    """A stream, from an output of one operator to another operator; `how` it gets there."""

    source: str
    output: int
    target: str
    how: str


OPERATOR = re.compile(r"operator '(\w+)' \[\d+\] of scope .*")
STREAM = re.compile(
    r"stream from (?:output (\d) of '(\w+)' \[\d+\]|port \d) "
    r"to (?:input \d of '(\w+)' \[\d+\]|port \d) of scope .*: (\w+)"
)
LOOP = "Iterative"


class Built:
    """What a program builds, of one scope in another: its operators, and what flows where."""

    def __init__(self, lines: list[str]) -> None:
        names = [found[1] for line in lines if (found := OPERATOR.fullmatch(line))]
        self.operators = [name for name in names if name != LOOP]
        """The names of all operators that are no scopes."""
        self._streams = [found for line in lines if (found := STREAM.fullmatch(line))]

    def flows(self) -> Iterator[Flow]:
        """All streams; those across the border of the inner scope in one piece."""
        across = {found[4]: found for found in self._streams if found[4] in ("enter", "leave")}
        for found in self._streams:
            if found in across.values():
                continue
            border = {None: "enter", LOOP: "leave"}.get(found[2])
            begin = across[border] if border else found
            yield Flow(begin[2], int(begin[1]), found[3], border or found[4])


def box(name: str) -> str:
    """An operator."""
    (x, y), (width, height) = PLACES[name], BOX
    remark = REMARKS.get(name, "")
    parts = [
        f'<rect class="box" x="{x - width // 2}" y="{y - height // 2}" '
        f'width="{width}" height="{height}" rx="7"/>',
        f'<text x="{x}" y="{y + (-2 if remark else 5)}">{escape(name)}</text>',
    ]
    if remark:
        parts.append(f'<text class="small" x="{x}" y="{y + 14}">{escape(remark)}</text>')
    return "\n".join(parts)


def arrow(flow: Flow) -> str:
    """A stream, with what is to be said of it."""
    (x1, y1), (x2, y2) = PLACES[flow.source], PLACES[flow.target]
    width, height = BOX[0] // 2, BOX[1] // 2
    if y1 == y2:
        toward = 1 if x2 > x1 else -1
        x1, x2 = x1 + toward * width, x2 - toward * (width + 6)
    else:
        toward = 1 if y2 > y1 else -1
        y1, y2 = y1 + toward * height, y2 - toward * (height + 6)
    parts = [f'<path class="stream" d="M {x1} {y1} L {x2} {y2}"/>']
    if label := LABELS.get((flow.source, flow.output)):
        x = (x1 + min(x2, INNER[2])) // 2 if y1 == y2 else x1 + 20
        y = y1 - 7 if y1 == y2 else (y1 + y2) // 2 + 4
        parts.append(f'<text class="small" x="{x}" y="{y}">{label}</text>')
    if flow.how in ("enter", "leave"):
        x = (x1 + INNER[0]) // 2 - 2 if flow.how == "enter" else (INNER[2] + x2) // 2 + 3
        parts.append(f'<text class="small" x="{x}" y="{y1 - 7}">{flow.how}</text>')
    if flow.how == "exchange":
        middle = (x1 + x2) // 2 + 2
        parts.append(f'<text class="small" x="{middle}" y="{y1 - 7}">to workers</text>')
    return "\n".join(parts)


def picture() -> str:
    """The whole of it, as SVG."""
    built = Built(structure())
    left, top, right, bottom = INNER
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE[0]} {SIZE[1]}" '
            f'width="{SIZE[0]}" height="{SIZE[1]}" role="img" '
            'aria-label="The dataflow of the Collatz program">',
            f"<style>{STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="5" refY="5" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M 0 1 L 9 5 L 0 9 z" fill="#2c5f8a"/>'
            "</marker></defs>",
            f'<rect class="page" width="{SIZE[0]}" height="{SIZE[1]}"/>',
            f'<rect class="scope" x="{left}" y="{top}" width="{right - left}" '
            f'height="{bottom - top}" rx="12"/>',
            f'<text class="small" x="{(left + right) // 2}" y="{top + 20}">'
            "a scope of its own: times are (epoch, round)</text>",
            *map(arrow, built.flows()),
            *map(box, built.operators),
            f'<text class="small" x="{SIZE[0] // 2}" y="288">'
            "every worker runs all of it, on its share of the numbers</text>",
            "</svg>\n",
        ]
    )


def main() -> int:
    """Write or check the picture; the exit status."""
    drawn = picture()
    if "--check" in sys.argv:
        return int(drawn != PICTURE.read_text())
    PICTURE.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
