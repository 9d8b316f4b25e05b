"""What is asked of every vertex: a dataflow over numbered edges, and what its answers become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pointstamp.operators.stream import Stream

ValueKind = Literal["long", "double", "boolean", "id", "only", "doubles", "distances"]
"""What a value is: a number, a vertex, whose id is put back, or a list of numbers. Of a list with
`only` one that is taken; `distances` are one for each landmark, of which a map by their ids is
made."""

ARROW_TYPES: dict[ValueKind, str] = {
    "long": "bigint",
    "double": "double",
    "boolean": "bigint",
    "id": "bigint",
    "only": "array<double>",
    "doubles": "array<double>",
    "distances": "array<bigint>",
}
"""How a schema of Spark says what is in the dataflow's answers."""


@dataclass(frozen=True)
class ValueColumn:
    """A column of answers: what the dataflow calls it, what it becomes, and what it holds."""

    name: str
    becomes: str
    kind: ValueKind


@dataclass(frozen=True)
class VertexQuestion:
    """A dataflow whose answers have a column `vertex` and a value for each, or several.

    Attributes
    ----------
    build : callable
        From streams of edges, with columns `src`, `dst` and, if they are `weighted`, `weight`,
        and of vertices, with a column `vertex`, to that of the answers.
    column : what the answers hold beside the vertex
    more : tuple of ValueColumn
        What they hold beside that.
    weighted : bool
    weight : str, optional
        The column of the edges that has weights; each weighs 1 if there is none.
    signed : bool
        Whether weights may be less than 0.
    landmarks : tuple
        The ids of the landmarks, where values are distances.
    """

    build: Callable[[Stream[Any], Stream[Any]], Stream[Any]]
    column: ValueColumn
    weighted: bool = False
    weight: str | None = None
    landmarks: tuple[Any, ...] = ()
    signed: bool = False
    more: tuple[ValueColumn, ...] = ()

    @property
    def columns(self) -> tuple[ValueColumn, ...]:
        """All that answers hold beside the vertex."""
        return (self.column, *self.more)
