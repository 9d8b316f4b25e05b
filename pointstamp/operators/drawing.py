"""The drawing of a scope: what was built, as a picture or as text.

What draws is in a layer below (`observability.dataflow_drawing`), which is found by its name when
a drawing is wanted: so it is imported by no other program.
"""

from __future__ import annotations

from collections.abc import Container
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.structure_values import operator_values, place_in, stream_values

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream  # noqa: F401  (of the base class)


class DrawingMethods(ScopeCore["Stream[Any]"]):
    """What is drawn of what was built. Methods of `Scope`."""

    def drawing(self) -> Any:
        """A `DataflowDrawing` of what was built so far: an SVG picture, or Mermaid text.

        A notebook shows a scope by it. It is a plain value, that can be returned by `main`.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow("words") as scope:
        ...         scope.to_stream(["a", "b"]).exchange().count()
        ...     return scope.drawing()
        >>> (drawing,) = ps.execute(main)
        >>> drawing
        DataflowDrawing('words': 3 operators, 2 streams)
        >>> print(drawing.mermaid())
        flowchart LR
          subgraph n0["words"]
            n0_1["ToStream"]
            n0_2["Exchange"]
            n0_3["Count"]
          end
          n0_1 ==> n0_2
          n0_2 --> n0_3
        """
        draw = import_module("pointstamp.observability.dataflow_drawing").DataflowDrawing
        return draw(self.name, structure_of_scope(self))

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """What a notebook shows: see `drawing`."""
        bundle: dict[str, str] = self.drawing()._repr_mimebundle_(include, exclude)
        return bundle


def structure_of_scope(scope: Any) -> dict[str, Any]:
    """Operators and streams of a scope and those in it, as `runtime.watched_structure` has them.

    That reads what a worker has installed; this a scope, also while it is built, and when its
    dataflow is complete.
    """
    address = str(scope.number)
    operators = [operator_values(address, "", scope.name, "dataflow")]
    streams: list[dict[str, Any]] = []
    work = [(address, scope)]
    for around, each in work:  # which grows meanwhile
        inner = {child.node: child for child in each.scopes}
        for node, name in enumerate(each._names[1:], start=1):
            place = place_in(around, node)
            kind = "scope" if node in inner else "operator"
            child = each._children.get(node)
            operators.append(
                operator_values(
                    place,
                    around,
                    name,
                    kind,
                    role=getattr(child, "role", "") or "",
                    inputs=getattr(child, "inputs", 0),
                    outputs=getattr(child, "outputs", 0),
                )
            )
            if node in inner:
                work.append((place, inner[node]))
        for number, (edge, pact) in enumerate(zip(each._edges, each._pacts, strict=True)):
            streams.append(stream_values(around, number, edge, pact))
    return {"operators": operators, "streams": streams}
