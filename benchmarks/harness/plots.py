"""One plot for each benchmark: a curve where it has an axis, else bars.

SVG with text as text. Colours are of middling lightness, and what is ink becomes
light by a style sheet where the reader's background is dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.case import Benchmark, Quantity
from benchmarks.harness.results import Results, Row
from benchmarks.harness.text import said, where

INK, INK_ON_DARK = "#1c2733", "#e1e7ed"
LINES, LINES_ON_DARK = "#c9d1d9", "#3d4751"
OURS = {"compiled": "#2f7fd1", "interpreted": "#7fb2e5", None: "#2f7fd1"}
OTHERS, FLOOR = "#d08a3e", "#8d96a0"
SHADES = ("#d08a3e", "#4aa564", "#b06cc4", "#cc5a5a", "#8d96a0", "#a08a2c", "#5aa8a8")

STYLE = f"""<style>
@media (prefers-color-scheme: dark) {{
  [style*="stroke: {INK}"] {{ stroke: {INK_ON_DARK} !important }}
  [style*="fill: {INK}"] {{ fill: {INK_ON_DARK} !important }}
  [style*="stroke: {LINES}"] {{ stroke: {LINES_ON_DARK} !important }}
}}
</style>
"""

SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pointstamp",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": LINES,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def draw(benchmark: Benchmark, results: Results, path: Path) -> Path:
    """Write the plot of a benchmark; its path."""
    import matplotlib as mpl

    mpl.use("svg")
    with mpl.rc_context(SETTINGS):
        figure = _curves(benchmark, results) if benchmark.axis else _bars(benchmark, results)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
        import matplotlib.pyplot as plt

        plt.close(figure)
    svg = text.getvalue()
    opening = re.search(r"<svg[^>]*>", svg)
    assert opening is not None
    at = opening.end()
    drawn = svg[:at] + "\n" + STYLE + svg[at:]
    path.write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n")
    return path


# Curves.


def _curves(benchmark: Benchmark, results: Results) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.6, 4.8), layout="constrained")
    axis = str(benchmark.axis)
    shades = iter(SHADES * 3)
    shade_of: dict[str, str] = {}
    for name, rows in _series(results.rows, axis).items():
        rows.sort(key=lambda row: int(row.at[axis]))
        x = [int(row.at[axis]) for row in rows]
        y, low, high = zip(*(_drawn(row, benchmark) for row in rows), strict=True)
        ours = rows[0].is_ours
        if ours:
            colour, style = OURS[rows[0].mode], _line_of(rows[0])
        else:
            colour = shade_of.setdefault(rows[0].who, next(shades))
            style = {"linestyle": "--", "marker": "s", "markersize": 4}
        axes.plot(x, y, color=colour, label=name, linewidth=2 if ours else 1.4, **style)
        axes.vlines(x, low, high, color=colour)
    _scales(axes, axis, results.rows, benchmark)
    axes.set_xlabel(AXES.get(axis, axis))
    unit = _unit(benchmark.quantity)
    axes.set_ylabel("MiB, the peak of a worker" if benchmark.draws_memory else unit)
    figure.suptitle(benchmark.title, x=0.01, ha="left", fontsize=11)
    axes.grid(True, which="major", linewidth=0.6)
    if len(axes.get_lines()) > 1:
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return figure


def _drawn(row: Row, benchmark: Benchmark) -> tuple[float, float, float]:
    """What a curve is drawn of, and from where to where its samples were."""
    if benchmark.draws_memory:
        peak = max(row.peaks) / 2**20
        return peak, peak, peak
    return row.value(benchmark.quantity), *row.spread(benchmark.quantity)


AXES = {
    "dataflows": "dataflows on the worker",
    "MiB": "MiB that go through",
    "idle": "idle operators",
    "times": "times held",
    "peers": "simulated workers",
    "epoch": "records in an epoch",
    "edges": "edges",
    "scale": "scale (2^scale vertices)",
    "seconds": "seconds since the start",
    "depth": "scopes, each in another",
}


def _series(rows: Sequence[Row], axis: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.seconds and axis in row.at:
            rest = where({name: value for name, value in row.at.items() if name != axis})
            name = ", ".join(part for part in (row.who, rest, row.mode) if part)
            found.setdefault(name, []).append(row)
    return found


def _line_of(row: Row) -> dict[str, Any]:
    """Workers are told apart by how the line is broken, and by its marks."""
    style = {1: ("-", "o"), 2: ("-", "^"), 4: (":", "v")}.get(int(row.at.get("workers", 1)))
    linestyle, marker = style or ("-", "o")
    return {"linestyle": linestyle, "marker": marker, "markersize": 5}


def _scales(axes: Any, axis: str, rows: Sequence[Row], benchmark: Benchmark) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    measured = [row for row in rows if row.seconds and axis in row.at]
    points = sorted({int(row.at[axis]) for row in measured})
    if axis != "scale":
        axes.set_xscale("log")
    axes.set_xticks(points, [f"{point:,}" for point in points])
    axes.xaxis.set_minor_formatter(NullFormatter())
    drawn = [_drawn(row, benchmark) for row in measured]
    values = [value for value, _, _ in drawn]
    if max(values) > 10 * min(values) and not benchmark.draws_memory:
        axes.set_yscale("log")
    else:
        # From nothing on, so that what is flat looks flat.
        axes.set_ylim(0, 1.15 * max(high for _, _, high in drawn))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: said(value)))


# Bars.


def _bars(benchmark: Benchmark, results: Results) -> Any:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullFormatter

    rows = [row for row in results.rows if row.seconds]
    places, y = _places(rows)
    figure, axes = plt.subplots(figsize=(7.6, 1.1 + 0.27 * (y + 1)), layout="constrained")
    # Readers' fonts may be wider than the one that is measured here.
    figure.get_layout_engine().set(w_pad=0.2)
    values = [row.value(benchmark.quantity) for row in rows]
    spread = [row.spread(benchmark.quantity) for row in rows]
    colours = [_colour(row, benchmark) for row in rows]
    is_wide = max(values) > 20 * min(values)
    if is_wide:
        axes.set_xscale("log")
        axes.set_xlim(min(low for low, _ in spread) / 2, 3 * max(high for _, high in spread))
    else:
        axes.set_xlim(0, 1.18 * max(high for _, high in spread))
    axes.barh(places, values, color=colours, height=0.78)
    axes.hlines(places, [low for low, _ in spread], [high for _, high in spread], color=INK)
    for place, value, (_, high) in zip(places, values, spread, strict=True):
        axes.annotate(
            said(value), (max(value, high), place), (4, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(places, [_label(row) for row in rows])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: said(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="y", length=0)
    better = "more" if benchmark.quantity.is_rate else "less"
    scale = ", logarithmic" if is_wide else ""
    axes.set_xlabel(f"{_unit(benchmark.quantity)} ({better} is better{scale})")
    figure.suptitle(benchmark.title, x=0.01, ha="left", fontsize=11)
    axes.grid(True, axis="x", linewidth=0.6)
    return figure


def _places(rows: Sequence[Row]) -> tuple[list[float], float]:
    """Where each bar is; a gap where another input begins, and how far it goes."""
    places: list[float] = []
    y, last = 0.0, None
    for row in rows:
        topic = [value for value in row.at.values() if isinstance(value, str)]
        if last is not None and topic != last:
            y += 0.6
        last = topic
        places.append(y)
        y += 1
    return places, y


def _unit(quantity: Quantity) -> str:
    return re.sub(r"^s\b", "seconds", quantity.unit)


def _label(row: Row) -> str:
    return ", ".join(part for part in (row.who, where(row.at), row.mode) if part)


def _colour(row: Row, benchmark: Benchmark) -> str:
    if row.is_ours:
        return OURS[row.mode]
    return FLOOR if row.who in benchmark.floors else OTHERS
