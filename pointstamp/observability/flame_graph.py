"""The time of a run as a flame graph: a box for each operator, as wide as the time that it took.

Boxes stand on what they are part of: operators on their scope, scopes on their dataflow, dataflows
on their worker, beside the time that it was parked and the rest, which is the program's own code,
communication, and the log. So widths of the boxes on one add up to its own, but for its own time:
of a scope the tracking of progress. What each box is, and its numbers, are in its title, which is
shown where the mouse is.

Source: Brendan Gregg's flame graphs, with scopes in place of the functions of a stack: an operator
is active inside the activation of its scope, so that both nest alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np

from pointstamp.formats.atomic_file import replacing
from pointstamp.observability.dataflow_drawing import FONT, markup
from pointstamp.observability.reading import LoggedRun, WorkerEvents
from pointstamp.observability.report import duration
from pointstamp.observability.summary import self_times

WIDTH, ROW, MARGIN = 1200.0, 20, 10
LEAST = 0.3
"""How wide a box has to be to be drawn."""
CHARACTER = 6.6
"""About how wide one is."""
PARKED, REST = "parked", "the rest"
GREYS = {PARKED: "#e6e9ec", REST: "#c3ccd4"}


@dataclass
class FlameBox:
    """Something that took time, and its parts.

    Attributes
    ----------
    own, activations : int
        How long it took without its parts, in the unit of the log; how often it was active.
    """

    name: str
    address: str = ""
    own: int = 0
    activations: int = 0
    parts: dict[str, FlameBox] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How long it took with its parts."""
        return self.own + sum(part.total for part in self.parts.values())

    @property
    def count(self) -> int:
        """How many boxes there are, this one among them."""
        return 1 + sum(part.count for part in self.parts.values())

    @property
    def height(self) -> int:
        """How many boxes stand on each other, this one among them."""
        return 1 + max((part.height for part in self.parts.values()), default=0)


def flame_boxes(run: LoggedRun) -> FlameBox:
    """The box of all workers, on which all others stand.

    Of each worker what is beside its dataflows has the keys "parked" and "the rest".
    """
    names: dict[int, tuple[str, str]] = {}
    for worker in run.workers:
        table = worker["operators"]
        for i, number in enumerate(np.asarray(table["operator"]).tolist()):
            names.setdefault(number, (table["address"][i], table["name"][i]))
    name_of = dict(names.values())
    whole = FlameBox("all workers")
    for worker in run.workers:
        if worker.span is not None:
            whole.parts[str(worker.index)] = _of_worker(worker, names, name_of)
    return whole


def _of_worker(
    worker: WorkerEvents, names: dict[int, tuple[str, str]], name_of: dict[str, str]
) -> FlameBox:
    found = FlameBox(f"worker {worker.index}")
    schedules, parks = worker["schedules"], worker["parks"]
    own = self_times(np.asarray(schedules["at"]), np.asarray(schedules["began"]))
    numbers, rows = np.unique(np.asarray(schedules["operator"]), return_inverse=True)
    counts = np.bincount(rows, minlength=len(numbers))
    own_of = np.zeros(len(numbers), np.int64)
    np.add.at(own_of, rows, own)
    for i, number in enumerate(numbers.tolist()):
        # Of a log that lost its beginning no names are known.
        address, _ = names.get(number, (f"? {number}", ""))
        box, steps = found, address.split("/")
        for depth in range(len(steps)):
            step = "/".join(steps[: depth + 1])
            box = box.parts.setdefault(step, FlameBox(name_of.get(step, "?"), step))
        box.own += int(own_of[i])
        box.activations += int(counts[i])
    parked = int((np.asarray(parks["at"]) - np.asarray(parks["began"])).sum())
    first, last = worker.span or (0, 0)
    rest = last - first - parked - found.total
    for name, took in ((PARKED, parked), (REST, rest)):
        if took > 0:
            found.parts[name] = FlameBox(name, own=took)
    return found


def write_flame_graph(run: LoggedRun, path: Path) -> FlameBox:
    """Write the flame graph of a run to a file, as SVG, whole or not at all; the box of all.

    Raises
    ------
    FileFormatError
        If it cannot be written.
    """
    whole = flame_boxes(run)
    with replacing(path) as place:
        place.write_text(flame_graph(whole, run.unit))
    return whole


def flame_graph(whole: FlameBox, unit: str) -> str:
    """The picture of boxes, as SVG.

    Boxes too narrow to be seen are left out. An operator has one colour, by its name, on all
    workers.

    >>> whole = FlameBox("all workers", parts={"0": FlameBox("worker 0", own=3_000_000)})
    >>> flame_graph(whole, "ns").count("<rect")
    2
    """
    height = whole.height * ROW + 2 * MARGIN
    width = round(WIDTH + 2 * MARGIN)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="Flame graph" '
            f'font-family="{FONT}" font-size="12" style="background: #fff">',
            *_drawn(whole, max(1, whole.total), MARGIN, height - MARGIN - ROW, unit),
            "</svg>\n",
        ]
    )


def _drawn(box: FlameBox, whole: int, x: float, y: float, unit: str) -> Iterator[str]:
    """A box and what stands on it; the box of all took `whole`."""
    width = box.total * WIDTH / whole
    if width < LEAST:
        return
    title = f"{box.name} [{box.address}]" if box.address else box.name
    said = f"{title}: {duration(box.total, unit)}, {box.total / whole:.1%}"
    if box.parts and box.own:
        said += f", itself {duration(box.own, unit)}"
    if box.activations:
        said += f", {box.activations:,} activations"
    yield (
        f'<g><title>{markup(said)}</title><rect x="{x:.2f}" y="{y}" width="{width:.2f}" '
        f'height="{ROW - 1}" rx="2" fill="{_colour(box)}" stroke="#fff" stroke-width="0.5"/>'
    )
    most = int((width - 6) / CHARACTER)
    if most > 2:
        name = box.name if len(box.name) <= most else box.name[: most - 1] + "…"
        yield f'<text x="{x + 4:.2f}" y="{y + 14}" fill="#1c2733">{markup(name)}</text>'
    yield "</g>"
    for part in sorted(box.parts.values(), key=_place):
        yield from _drawn(part, whole, x, y - ROW, unit)
        x += part.total * WIDTH / whole


def _place(box: FlameBox) -> tuple[int, int]:
    """Longest first, and behind them the grey ones; workers in their order."""
    if box.name.startswith("worker ") and not box.address:
        return 0, int(box.name.removeprefix("worker "))
    return list(GREYS).index(box.name) + 1 if box.name in GREYS and not box.address else 0, (
        -box.total
    )


def _colour(box: FlameBox) -> str:
    """A warm one by the name; what is no operator, scope or dataflow is grey."""
    if not box.address:
        return GREYS.get(box.name, "#d5dde4")
    number = crc32(box.name.encode(errors="replace"))
    return f"hsl({number % 55}, {65 + number // 55 % 25}%, {62 + number // 1375 % 14}%)"
