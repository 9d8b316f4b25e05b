"""Draws the pictures of docs/frontiers.md, of what its programs find out.

    python docs/draw_frontiers.py            writes the pictures
    python docs/draw_frontiers.py --check    ends with 1 if one there is another

The programs are the blocks of the page that a comment marks; what they return is drawn.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pointstamp as ps

DOCS = Path(__file__).resolve().parent
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1c2733; text-anchor: middle }
  .small { font-size: 12px; fill: #566573 }
  .page { fill: #ffffff }
  .grid { stroke: #d5dee6; stroke-width: 1 }
  .open { fill: #dbe8f3 }
  .left { stroke: #c0632b; fill: none; stroke-width: 2 }
  .right { stroke: #6a8f3c; fill: none; stroke-width: 2 }
  .frontier { stroke: #2c5f8a; fill: none; stroke-width: 3.5 }
  .element { fill: #2c5f8a }
  .begin { text-anchor: start }
"""


def found(mark: str, function: str) -> list[Any]:
    """What a program of the page returns on one worker."""
    page = (DOCS / "frontiers.md").read_text()
    block = re.search(rf"<!-- {mark} -->\n\n```python\n(.*?)```", page, re.DOTALL)
    assert block is not None, mark
    names: dict[str, Any] = {}
    exec(re.split(r"\n\n\n(?:print|for)", block[1])[0], names)
    (seen,) = ps.execute(names[function])
    return list(seen)


def svg(width: int, height: int, label: str, parts: Iterable[str]) -> str:
    """A picture of so many units, as a file."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{label}">',
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def small(x: int, y: int, text: object) -> str:
    """A small text in the middle of a place."""
    return f'<text class="small" x="{x}" y="{y}">{text}</text>'


def of_two() -> str:
    """The epochs of two inputs, and the frontier behind both, as steps."""
    seen = [(0, 0, 0), *found("two inputs", "two_inputs")]
    across, up, left, bottom = 92, 34, 70, 230
    top = max(max(row) for row in seen)

    def place(step: float, epoch: int) -> str:
        return f"{left + across * step:g} {bottom - up * epoch:g}"

    def line(column: int) -> str:
        points = [
            f"{place(n, row[column])} L {place(n + 1, row[column])}" for n, row in enumerate(seen)
        ]
        return "M " + " L ".join(points)

    def parts() -> Iterator[str]:
        area = f"{line(2)} L {place(len(seen), top)} L {place(0, top)} z"
        yield f'<path class="open" d="{area}"/>'
        for epoch in range(top + 1):
            yield f'<path class="grid" d="M {place(0, epoch)} L {place(len(seen), epoch)}"/>'
            yield small(left - 16, bottom - up * epoch + 4, epoch)
        # What lies on one line is drawn beside each other.
        for column, (name, shift) in enumerate([("left", -4), ("right", 4), ("frontier", 0)]):
            yield f'<path class="{name}" transform="translate(0 {shift})" d="{line(column)}"/>'
        for n, row in enumerate(seen):
            moved = "begin" if not n else ("left" if row[0] != seen[n - 1][0] else "right")
            to = "" if not n else f" to {row[0] if moved == 'left' else row[1]}"
            yield small(left + across * n + across // 2, bottom + 24, f"{moved}{to}")
        yield f'<text x="{left + across * 2}" y="{bottom - up * top + 22}">may still come</text>'
        yield f'<text x="{left + across * 5}" y="{bottom - up * 1 + 4}">complete</text>'
        for n, (name, of) in enumerate(
            [
                ("left", "input left"),
                ("right", "input right"),
                ("frontier", "frontier at the probe"),
            ]
        ):
            x = left + 170 * n
            yield f'<path class="{name}" d="M {x} 22 L {x + 26} 22"/>'
            yield f'<text x="{x + 34}" y="27" class="begin">{of}</text>'

    return svg(left + across * len(seen) + 30, bottom + 44, "Two inputs and a frontier", parts())


def of_a_loop() -> str:
    """The last frontier in the loop, on a grid of epochs and rounds."""
    frontier = found("a loop", "countdowns")[-1]
    cell, left, top = 44, 60, 50
    epochs, rounds = max(e for e, _ in frontier) + 2, max(r for _, r in frontier) + 3
    bottom = top + cell * epochs

    def corner(epoch: int, round_: int) -> tuple[int, int]:
        return left + cell * round_, bottom - cell * (epoch + 1)

    def parts() -> Iterator[str]:
        for epoch in range(epochs):
            for round_ in range(rounds):
                x, y = corner(epoch, round_)
                open_ = any(e <= epoch and r <= round_ for e, r in frontier)
                fill = 'class="open"' if open_ else 'fill="#ffffff"'
                where = f'x="{x}" y="{y}" width="{cell}" height="{cell}"'
                yield f'<rect {fill} stroke="#d5dee6" {where}/>'
        for epoch in range(epochs):
            yield small(left - 16, corner(epoch, 0)[1] + 27, epoch)
        for round_ in range(rounds):
            yield small(corner(0, round_)[0] + cell // 2, bottom + 20, round_)
        for epoch, round_ in frontier:
            x, y = corner(epoch, round_)
            yield f'<circle class="element" cx="{x + cell // 2}" cy="{y + cell // 2}" r="8"/>'
        yield f'<text x="{left + cell * rounds // 2}" y="{bottom + 40}">round</text>'
        yield f'<text x="{left - 24}" y="{top - 10}">epoch</text>'
        yield f'<circle class="element" cx="{left + 60}" cy="{top - 22}" r="8"/>'
        yield f'<text x="{left + 76}" y="{top - 17}" class="begin">the frontier</text>'
        yield f'<rect class="open" x="{left + 170}" y="{top - 31}" width="18" height="18"/>'
        yield f'<text x="{left + 196}" y="{top - 17}" class="begin">may still come</text>'

    return svg(max(left + cell * rounds + 30, 380), bottom + 54, "A frontier in a loop", parts())


PICTURES: dict[str, Callable[[], str]] = {
    "frontier_of_two.svg": of_two,
    "frontier_of_a_loop.svg": of_a_loop,
}


def main() -> int:
    """Write or check the pictures; the exit status."""
    drawn = {DOCS / name: draw() for name, draw in PICTURES.items()}
    if "--check" in sys.argv:
        return int(any(text != path.read_text() for path, text in drawn.items()))
    for path, text in drawn.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
