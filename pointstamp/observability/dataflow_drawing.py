"""The drawing of a dataflow: as SVG, with the look of the live page, and as Mermaid's text.

It is made of what was built, so it cannot show an operator that is not there, or leave one out. A
picture has all that it needs in attributes: a style sheet in it would be one of the whole notebook.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from html import escape
from typing import Any

from pointstamp.observability.layered_layout import Box, DrawingLayout, Line, layout, short
from pointstamp.observability.page_view import leads_back

INK, SOFT, BLUE, LINE_COLOUR, BACK = "#1c2733", "#566573", "#2c5f8a", "#7f9cb3", "#b5651d"
EDGES = {"input": "#b07d2b", "probe": "#5f9e6e"}
"""By role: the colour of a box's edge."""
FONT = "system-ui, &quot;DejaVu Sans&quot;, sans-serif"
MARGIN = 8

NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no picture may have, not even escaped."""

STAYS = ("pipeline", "enter", "leave")
"""How streams are called whose records stay on their worker."""


class DataflowDrawing:
    """A drawing of a dataflow, or of one of its scopes: `scope.drawing()`.

    A notebook shows it as a picture. It is a plain value, that can be pickled.

    Parameters
    ----------
    name : str
        What it is called.
    structure : dict
        Its operators, the outermost scope first, and streams, as the live page has them.
    """

    def __init__(self, name: str, structure: dict[str, Any]) -> None:
        self.name = name
        self._operators: list[dict[str, Any]] = structure["operators"]
        self._streams: list[dict[str, Any]] = structure["streams"]

    def svg(self) -> str:
        """The picture: scopes as frames, and dashed what closes a loop.

        A thick line is a stream whose records go to other workers. A box whose edge is brown is
        an input, and green a probe.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow("words") as scope:
        ...         scope.to_stream(["a", "b"]).exchange()
        ...     return scope.drawing().svg()
        >>> (picture,) = ps.execute(main)
        >>> picture.count("<rect"), picture.count("<path")  # two boxes in a frame; a stream
        (3, 1)
        """
        places = layout({"operators": self._operators, "streams": self._streams})
        width, height = (round(each + 2 * MARGIN) for each in (places.width, places.height))
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="{-MARGIN} {-MARGIN} {width} {height}" role="img" '
                f'style="max-width: 100%; height: auto; background: #fff" '
                f'aria-label="{markup(repr(self))}">',
                *_tips(),
                *(part for each in self._operators for part in _box(each, places)),
                *(part for each in self._streams for part in self._line(each, places)),
                "</svg>\n",
            ]
        )

    def mermaid(self) -> str:
        """The same as text, of which Mermaid makes a picture: in Markdown, for one.

        Streams lead through the borders of scopes, which Mermaid does not have. Thick arrows are
        streams to other workers, dotted ones close a loop.
        """
        lines = ["flowchart LR"]
        self._write_scope(lines, self._operators[0], "  ")
        names = {each["address"]: _mermaid_id(each["address"]) for each in self._operators}
        lines += [
            f"  {names[source]} {arrow} {names[target]}" for source, arrow, target in self._arrows()
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        n_scopes = sum(each["kind"] == "scope" for each in self._operators)
        n_operators = sum(each["kind"] == "operator" for each in self._operators)
        counted = [(n_operators, "operator"), (len(self._streams), "stream"), (n_scopes, "scope")]
        said = ", ".join(
            f"{n} {what}{'s' * (n != 1)}" for n, what in counted if n or what != "scope"
        )
        return f"DataflowDrawing({self.name!r}: {said})"

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """What a notebook shows: the richest of these that it can.

        Mermaid's text is none of them: JupyterLab would draw that one, from top to bottom and in
        colours of its own.
        """
        bundle = {"image/svg+xml": self.svg(), "text/plain": repr(self)}
        return {
            kind: text
            for kind, text in bundle.items()
            if (not include or kind in include) and not (exclude and kind in exclude)
        }

    def _line(self, stream: dict[str, Any], places: DrawingLayout) -> Iterator[str]:
        line = places.lines[stream["stream"]]
        colour = BACK if line.is_back else LINE_COLOUR
        width = 1.2 if stream["pact"].partition(" ")[0] in STAYS else 2.4
        dashes = ' stroke-dasharray="6 3"' if line.is_back else ""
        # What ends at a border goes on behind it.
        tip = "" if stream["target"] == stream["scope"] else f" marker-end='url(#{_tip(line)})'"
        yield (
            f'<path d="{_path(line)}" fill="none" stroke="{colour}" stroke-width="{width}"'
            f"{dashes}{tip}><title>{markup(stream['pact'])}</title></path>"
        )

    # Mermaid.

    def _write_scope(self, lines: list[str], scope: dict[str, Any], indent: str) -> None:
        lines.append(
            f'{indent}subgraph {_mermaid_id(scope["address"])}["{_quoted(scope["name"])}"]'
        )
        for each in self._operators[1:]:
            if each["parent"] != scope["address"]:
                continue
            if each["kind"] == "scope":
                self._write_scope(lines, each, indent + "  ")
            else:
                name = f'["{_quoted(each["name"])}"]'
                lines.append(f"{indent}  {_mermaid_id(each['address'])}{name}")
        lines.append(f"{indent}end")

    def _arrows(self) -> Iterator[tuple[str, str, str]]:
        """(from, how, to) of streams, those through borders in one piece."""
        scopes = {each["address"] for each in self._operators if each["kind"] != "operator"}
        onward: dict[tuple[str, int, bool], list[dict[str, Any]]] = {}
        """By scope, port, and whether it is seen from within: the streams that begin there."""
        for each in self._streams:
            if each["source"] in scopes:
                key = each["source"], each["source_port"], each["source"] == each["scope"]
                onward.setdefault(key, []).append(each)
        for first in self._streams:
            if first["source"] in scopes:
                continue
            work = [(first, first["pact"].partition(" ")[0] not in STAYS)]
            for each, is_spread in work:  # which grows meanwhile
                if each["target"] not in scopes:
                    is_back = first is each and leads_back(first)
                    arrow = "-.->" if is_back else "==>" if is_spread else "-->"
                    yield first["source"], arrow, each["target"]
                    continue
                # From outside it goes on within, and the other way round.
                is_within = each["target"] != each["scope"]
                key = each["target"], each["target_port"], is_within
                for next_ in onward.get(key, ()):
                    spread = is_spread or next_["pact"].partition(" ")[0] not in STAYS
                    work.append((next_, spread))


def markup(text: str) -> str:
    """A text as it stands in a picture, whatever is in it.

    >>> markup("a < b"), markup("a" + chr(27))
    ('a &lt; b', 'a�')
    """
    return escape(NO_XML.sub("\ufffd", text))


def _tips() -> Iterator[str]:
    yield "<defs>"
    for name, colour in (("tip", LINE_COLOUR), ("tip-back", BACK)):
        yield (
            f'<marker id="pointstamp-{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" '
            'markerHeight="9" orient="auto" markerUnits="userSpaceOnUse">'
            f'<polygon points="0,1 9,5 0,9" fill="{colour}"/></marker>'
        )
    yield "</defs>"


def _tip(line: Line) -> str:
    return "pointstamp-tip-back" if line.is_back else "pointstamp-tip"


def _box(each: dict[str, Any], places: DrawingLayout) -> Iterator[str]:
    """An operator, or the frame of a scope."""
    box: Box = places.boxes[each["address"]]
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    name = markup(short(each["name"]))
    title = f"<title>{markup(each['name'])}</title>"
    if each["kind"] == "operator":
        edge, width = EDGES.get(each["role"], BLUE), 2 if each["role"] in EDGES else 1.2
        yield (
            f'<rect {place} rx="6" fill="#fff" stroke="{edge}" stroke-width="{width}">{title}'
            "</rect>"
        )
        yield (
            f'<text x="{box.x + box.width / 2:.1f}" y="{box.y + box.height / 2 + 4:.1f}" '
            f'text-anchor="middle" font-family="{FONT}" font-size="12" fill="{INK}">{name}</text>'
        )
        return
    look = (
        'fill="#fbfcfd" stroke="#c8d3dc"'
        if each["kind"] == "dataflow"
        else 'fill="#eef4f9" stroke="#9db8cc" stroke-dasharray="5 4"'
    )
    yield f'<rect {place} rx="9" {look}>{title}</rect>'
    yield (
        f'<text x="{box.x + 10:.1f}" y="{box.y + 18:.1f}" font-family="{FONT}" font-size="11" '
        f'fill="{SOFT}">{name}</text>'
    )


def _path(line: Line) -> str:
    """Curves from layer to layer; straight where it is level, and on the way back."""
    (x, y), *rest = line.points
    said = [f"M {x:.1f} {y:.1f}"]
    for to_x, to_y in rest:
        if (x, y) == (to_x, to_y):
            continue
        if line.is_back or y == to_y:
            said.append(f"L {to_x:.1f} {to_y:.1f}")
        else:
            middle = (x + to_x) / 2
            said.append(f"C {middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return " ".join(said)


def _mermaid_id(address: str) -> str:
    return "n" + address.replace("/", "_")


def _quoted(name: str) -> str:
    """A name as Mermaid takes it in quotes."""
    return name.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
