"""Places for the boxes of a dataflow: layers from left to right, scopes as frames around theirs.

A picture has to be there without a browser, and without a layout engine, which the live page has
in JavaScript. A dataflow is a simple case of what such engines solve. An operator is made after
the streams that it reads, so its number is higher than theirs, and only what closes a loop leads
to a lower one: the order of a drawing is known, and no cycle has to be searched for.

Each scope is laid out for itself, the innermost first, and is a box of fixed size then. Operators
are in the layer after the last of those that they read; those of a layer are ordered by where
their neighbours are (barycentres), and moved up and down to be level with them.

Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System
Structures" (1981), for the steps. The heights are least squares under an order, by pooling
adjacent violators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

LEFT, TOP, BOTTOM = 24.0, 32.0, 16.0
"""Between a frame and what is in it; on the right as on the left."""
BETWEEN_LAYERS, BETWEEN_ROWS = 44.0, 18.0
OPERATOR_HEIGHT = 34.0
LANE = 12.0
"""Between the lines that lead back, below all boxes of a scope."""
N_SWEEPS = 8
MOST_LETTERS = 26

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """Where a box is: its upper left corner, and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Line:
    """The points that a stream is drawn through, from its source; back if it closes a loop."""

    points: tuple[Point, ...]
    is_back: bool


@dataclass
class DrawingLayout:
    """Places of all parts of a dataflow, by address and by stream."""

    width: float = 0.0
    height: float = 0.0
    boxes: dict[str, Box] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)


def short(name: str) -> str:
    """A name as it is in a box.

    >>> short("a name that is too long for a box")
    'a name that is too long f…'
    """
    return name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "…"


def layout(structure: dict[str, Any]) -> DrawingLayout:
    """Where to draw the parts of a structure; see `runtime.watched_structure`.

    The first operator is the outermost scope, and all others are in it.
    """
    root = structure["operators"][0]["address"]
    children: dict[str, list[dict[str, Any]]] = {}
    for each in structure["operators"][1:]:
        children.setdefault(each["parent"], []).append(each)
    streams: dict[str, list[dict[str, Any]]] = {}
    for each in structure["streams"]:
        streams.setdefault(each["scope"], []).append(each)
    scopes = {
        each["address"]: each for each in structure["operators"] if each["kind"] != "operator"
    }
    placed: dict[str, _ScopeLayout] = {}
    # Addresses of what is within are longer: the innermost come first.
    for address in sorted(scopes, key=lambda each: -each.count("/")):
        placed[address] = _ScopeLayout(
            scopes[address], children.get(address, []), streams.get(address, []), placed
        )
        placed[address].run()
    found = DrawingLayout(placed[root].width, placed[root].height)
    found.boxes[root] = Box(0.0, 0.0, found.width, found.height)
    work = [(root, 0.0, 0.0)]
    for address, left, top in work:  # which grows meanwhile
        scope = placed[address]
        for inner, box in scope.boxes().items():
            x, y = left + box.x, top + box.y
            found.boxes[inner] = Box(x, y, box.width, box.height)
            if inner in placed:
                work.append((inner, x, y))
        for stream, line in scope.lines().items():
            points = tuple((left + x, top + y) for x, y in line.points)
            found.lines[stream] = Line(points, line.is_back)
    return found


@dataclass
class _Node:
    """What has a place in a layer: an operator, a scope, a port of the border, part of a stream."""

    key: str
    width: float = 0.0
    height: float = 0.0
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    layer_ends: tuple[float, float] = (0.0, 0.0)
    """Where its layer begins and ends."""
    arriving: dict[int, float] = field(default_factory=dict)
    """By port: how far below the top its streams arrive; in the middle of others."""
    leaving: dict[int, float] = field(default_factory=dict)


@dataclass
class _Edge:
    """A piece of a stream between two layers, or one that leads back."""

    source: _Node
    source_port: int
    target: _Node
    target_port: int

    @property
    def begin(self) -> float:
        """How far below the top of its source it begins."""
        return self.source.leaving.get(self.source_port, self.source.height / 2)

    @property
    def end(self) -> float:
        """Likewise where it ends."""
        return self.target.arriving.get(self.target_port, self.target.height / 2)


class _ScopeLayout:
    """The layout of one scope; places are from its upper left corner."""

    def __init__(
        self,
        scope: dict[str, Any],
        children: Sequence[dict[str, Any]],
        streams: Sequence[dict[str, Any]],
        placed: dict[str, _ScopeLayout],
    ) -> None:
        self.address = scope["address"]
        self.width = self.height = 0.0
        self._least_width = 6.5 * len(short(scope["name"])) + LEFT
        self._nodes: dict[str, _Node] = {}
        self._children = [each["address"] for each in children]
        self._pieces: dict[str, list[_Edge]] = {}
        """By stream: what it is drawn of, from left to right."""
        self._back: dict[str, _Edge] = {}
        self._layers: list[list[_Node]] = []
        for each in children:
            self._nodes[each["address"]] = _node_of(each, placed.get(each["address"]))
        self._edges: dict[str, _Edge] = {}
        for stream in streams:
            self._add(stream)

    def _add(self, stream: dict[str, Any]) -> None:
        source = self._end("in", stream["source"], stream["source_port"])
        target = self._end("out", stream["target"], stream["target_port"])
        edge = _Edge(source, stream["source_port"], target, stream["target_port"])
        is_inside = source.key in self._children and target.key in self._children
        if is_inside and _number(target.key) <= _number(source.key):
            self._back[stream["stream"]] = edge
        else:
            self._edges[stream["stream"]] = edge

    def _end(self, side: str, address: str, port: int) -> _Node:
        """What a stream begins or ends at: an operator, or a port of the border."""
        key = f"{side} {port}" if address == self.address else address
        return self._nodes.setdefault(key, _Node(key))

    def ports(self, side: str) -> dict[int, float]:
        """How far below the top streams cross the border, by port."""
        return {
            int(key.removeprefix(f"{side} ")): node.y
            for key, node in self._nodes.items()
            if key.startswith(f"{side} ")
        }

    def run(self) -> None:
        """Find a place for everything."""
        self._choose_layers()
        self._cut_edges()
        self._order()
        self._level()
        self._pull_up()
        self._finish()

    def _choose_layers(self) -> None:
        has_ports = any(key.startswith("in ") for key in self._nodes)
        inner = [self._nodes[key] for key in self._children]
        before: dict[str, list[_Node]] = {}
        after: dict[str, list[_Node]] = {}
        for edge in self._edges.values():
            before.setdefault(edge.target.key, []).append(edge.source)
            after.setdefault(edge.source.key, []).append(edge.target)
        for node in inner:  # by their numbers, so after those that they read
            layers = [each.layer + 1 for each in before.get(node.key, ())]
            node.layer = max(layers, default=int(has_ports))
        last = max((node.layer for node in inner), default=0)
        for key, node in self._nodes.items():
            if key.startswith("out "):
                node.layer = last + 1
        for node in inner:
            if node.key not in before and node.key in after:
                # What reads nothing is next to what reads it.
                node.layer = max(node.layer, min(each.layer for each in after[node.key]) - 1)

    def _cut_edges(self) -> None:
        """Have each piece of a stream lead to the next layer, through places that are kept free."""
        n_layers = max((node.layer for node in self._nodes.values()), default=0) + 1
        self._layers = [[] for _ in range(n_layers)]
        for node in self._nodes.values():
            self._layers[node.layer].append(node)
        for stream, edge in self._edges.items():
            pieces, source, port = [], edge.source, edge.source_port
            for layer in range(edge.source.layer + 1, edge.target.layer):
                kept_free = _Node(f"{stream} {layer}", height=2.0, layer=layer)
                self._layers[layer].append(kept_free)
                pieces.append(_Edge(source, port, kept_free, 0))
                source, port = kept_free, 0
            pieces.append(_Edge(source, port, edge.target, edge.target_port))
            self._pieces[stream] = pieces

    def _neighbours(self) -> tuple[dict[str, list[_Edge]], dict[str, list[_Edge]]]:
        before: dict[str, list[_Edge]] = {}
        after: dict[str, list[_Edge]] = {}
        for pieces in self._pieces.values():
            for edge in pieces:
                before.setdefault(edge.target.key, []).append(edge)
                after.setdefault(edge.source.key, []).append(edge)
        return before, after

    def _order(self) -> None:
        before, after = self._neighbours()
        for sweep in range(N_SWEEPS):
            is_forward = sweep % 2 == 0
            places = {n.key: float(i) for layer in self._layers for i, n in enumerate(layer)}
            for layer in self._layers if is_forward else reversed(self._layers):
                wanted: dict[str, float] = {}
                for node in layer:
                    if is_forward:
                        others = [
                            places[e.source.key] + e.begin / (e.source.height + 1)
                            for e in before.get(node.key, ())
                        ]
                    else:
                        others = [
                            places[e.target.key] + e.end / (e.target.height + 1)
                            for e in after.get(node.key, ())
                        ]
                    found = sum(others) / len(others) if others else places[node.key]
                    wanted[node.key] = found
                layer.sort(key=lambda node: wanted[node.key])
                places.update({node.key: float(i) for i, node in enumerate(layer)})

    def _level(self) -> None:
        before, after = self._neighbours()
        for layer in self._layers:
            y = 0.0
            for node in layer:
                node.y = y
                y += node.height + BETWEEN_ROWS
        for sweep in range(N_SWEEPS):
            is_forward = sweep % 2 == 0
            for layer in self._layers if is_forward else reversed(self._layers):
                wanted = []
                for node in layer:
                    if is_forward:
                        levels = [e.source.y + e.begin - e.end for e in before.get(node.key, ())]
                    else:
                        levels = [e.target.y + e.end - e.begin for e in after.get(node.key, ())]
                    wanted.append(sum(levels) / len(levels) if levels else node.y)
                gaps = [node.height + BETWEEN_ROWS for node in layer[:-1]]
                for node, y in zip(layer, in_order(wanted, gaps), strict=True):
                    node.y = y

    def _pull_up(self) -> None:
        """Move parts that no stream joins up to those above: nothing else holds them."""
        part_of = {node.key: {node.key} for layer in self._layers for node in layer}
        joined = [edge for pieces in self._pieces.values() for edge in pieces]
        for edge in [*joined, *self._back.values()]:
            one, other = part_of[edge.source.key], part_of[edge.target.key]
            if one is not other:
                one |= other
                part_of.update(dict.fromkeys(other, one))
        nodes = {node.key: node for layer in self._layers for node in layer}
        top = min((node.y for node in nodes.values()), default=0.0)
        parts = {id(part): part for part in part_of.values()}.values()
        for part in sorted(parts, key=lambda part: min(nodes[key].y for key in part)):
            rooms = []
            for layer in self._layers:
                before: _Node | None = None
                for node in layer:
                    if node.key in part and (before is None or before.key not in part):
                        free = top if before is None else before.y + before.height + BETWEEN_ROWS
                        rooms.append(node.y - free)
                    before = node
            for key in part:
                nodes[key].y -= min(rooms)

    def _finish(self) -> None:
        nodes = [node for layer in self._layers for node in layer]
        top = min((node.y for node in nodes), default=0.0)
        for node in nodes:
            node.y += TOP - top
        lowest = max((node.y + node.height for node in nodes), default=TOP)
        self.height = lowest + LANE * len(self._back) + BOTTOM
        x = LEFT
        for number, layer in enumerate(self._layers):
            if all(node.key.startswith(("in ", "out ")) for node in layer):
                # Ports are on the frame: on the left before all layers, on the right after them.
                for node in layer:
                    node.x = 0.0 if number == 0 else x - BETWEEN_LAYERS + LEFT
                continue
            width = max(node.width for node in layer)
            for node in layer:
                node.layer_ends = x, x + width
                if node.key in self._children:
                    node.x = x + (width - node.width) / 2
                else:
                    node.x, node.width = x, width  # straight through the layer
            x += width + BETWEEN_LAYERS
        self.width = max(x - BETWEEN_LAYERS + LEFT, self._least_width)
        for node in nodes:
            if node.key.startswith(("in ", "out ")):
                node.x, node.width = 0.0 if node.key.startswith("in ") else self.width, 0.0
                node.layer_ends = node.x, node.x

    def boxes(self) -> dict[str, Box]:
        """The places of its operators and scopes."""
        found = {}
        for key in self._children:
            node = self._nodes[key]
            found[key] = Box(node.x, node.y, node.width, node.height)
        return found

    def lines(self) -> dict[str, Line]:
        """The ways of its streams."""
        found = {}
        for stream, pieces in self._pieces.items():
            points: list[Point] = []
            for edge in pieces:
                source, target = edge.source, edge.target
                level, other = source.y + edge.begin, target.y + edge.end
                # It turns between the layers: in them it would cross what is above or below.
                points.append((source.x + source.width, level))
                points.append((source.layer_ends[1], level))
                points.append((target.layer_ends[0], other))
                points.append((target.x, other))
            found[stream] = Line(tuple(points), is_back=False)
        bottom = self.height - BOTTOM - LANE * len(self._back)
        for lane, (stream, edge) in enumerate(self._back.items(), start=1):
            begin = edge.source.x + edge.source.width, edge.source.y + edge.begin
            end = edge.target.x, edge.target.y + edge.end
            y, aside = bottom + LANE * lane, LEFT / 2
            corners = (
                (begin[0] + aside, begin[1]),
                (begin[0] + aside, y),
                (end[0] - aside, y),
                (end[0] - aside, end[1]),
            )
            found[stream] = Line((begin, *corners, end), is_back=True)
        return found


def _node_of(each: dict[str, Any], inner: _ScopeLayout | None) -> _Node:
    """The box of an operator, or of a scope that is laid out already."""
    name = short(each["name"])
    if inner is None:
        node = _Node(each["address"], max(72.0, 7.2 * len(name) + 16.0), OPERATOR_HEIGHT)
        node.arriving = _spread(each["inputs"], node.height)
        node.leaving = _spread(each["outputs"], node.height)
        return node
    return _Node(
        each["address"],
        inner.width,
        inner.height,
        arriving=inner.ports("in"),
        leaving=inner.ports("out"),
    )


def _spread(n_ports: int, height: float) -> dict[int, float]:
    return {port: height * (port + 1) / (n_ports + 1) for port in range(n_ports)}


def _number(address: str) -> int:
    """The number of an operator in its scope."""
    return int(address.rpartition("/")[2])


def in_order(wanted: Sequence[float], gaps: Sequence[float]) -> Iterable[float]:
    """Values near those that are wanted, each at least a gap after the one before.

    Parameters
    ----------
    wanted : sequence of float, [n]
    gaps : sequence of float, [n - 1]

    Returns
    -------
    iterable of float, [n]
        Those with the least sum of squares of how far they are off.

    >>> list(in_order([0.0, 0.0], [10.0]))
    [-5.0, 5.0]
    """
    starts = list(accumulate(gaps, initial=0.0))[: len(wanted)]  # of nothing there are none
    # Without the gaps they need only not decrease: neighbours that do share their mean.
    blocks: list[tuple[float, int]] = []
    for place, start in zip(wanted, starts, strict=True):
        value, n = place - start, 1
        while blocks and blocks[-1][0] > value:
            before, n_before = blocks.pop()
            value = (before * n_before + value * n) / (n_before + n)
            n += n_before
        blocks.append((value, n))
    levels = [value for value, n in blocks for _ in range(n)]
    return [level + start for level, start in zip(levels, starts, strict=True)]
