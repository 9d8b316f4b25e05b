"""In what order to bind the vertices of a motif, and what constrains each.

A worst-case optimal join binds one vertex after the other, and each new vertex
must satisfy all its edges to those already bound at once. The order does not
change the bound on the work, but the work: here each step prefers the vertex
with most edges to bound ones, so that intersections come before expansions, and
out-neighbours to in-neighbours, because an index that no step asks for is not
built.

Pure: numbers in, numbers out; nothing here knows a graph or an operator.

Source: H. Q. Ngo, E. Porat, C. Re, A. Rudra, "Worst-case optimal join
algorithms", PODS 2012; the steps are those of `dogsdogsdogs` in
differential-dataflow.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pointstamp.errors import InternalError

Edge = tuple[int, int]

Direction = Literal["forward", "reverse"]
"""Which index: `forward` has the out-neighbours of a vertex, `reverse` its in-neighbours."""


@dataclass(frozen=True, order=True)
class Constraint:
    """The new vertex is a neighbour of vertex `key`, in this direction."""

    key: int
    direction: Direction


@dataclass(frozen=True)
class Filter:
    """A condition on bound vertices: `source` to `target` is an edge, or is not."""

    source: int
    target: int
    absent: bool


@dataclass(frozen=True)
class PlanStep:
    """Bind `vertex`: propose it from one constraint, validate it with the others.

    `filters` are the conditions that can be tested once it is bound: an edge from
    it to itself, and edges that must be absent.
    """

    vertex: int
    constraints: tuple[Constraint, ...]
    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Bind `first`, all keys of the `seed` index, and then take `steps` in order."""

    first: int
    seed: Direction
    first_filters: tuple[Filter, ...]
    steps: tuple[PlanStep, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The vertices as they are bound."""
        return (self.first, *(step.vertex for step in self.steps))

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The indexes that some step or filter asks for."""
        asked: set[Direction] = {self.seed}
        asked.update(c.direction for step in self.steps for c in step.constraints)
        if self.first_filters or any(step.filters for step in self.steps):
            asked.add("forward")
        return tuple(sorted(asked))

    def needed_after(self, n_steps: int, outputs: Sequence[int]) -> tuple[int, ...]:
        """The bound vertices that are asked for after `n_steps` steps, in the order of binding.

        They are the `outputs`, and what later steps look up; all others can be let go of.
        """
        asked = set(outputs)
        for step in self.steps[n_steps:]:
            asked.update(c.key for c in step.constraints)
            asked.update(v for f in step.filters for v in (f.source, f.target))
        return tuple(v for v in self.order[: n_steps + 1] if v in asked)


def make_plan(n_vertices: int, edges: Sequence[Edge], absent: Sequence[Edge] = ()) -> Plan:
    """Choose an order for the vertices 0 to `n_vertices - 1` of a connected motif.

    Every vertex is tried as the first one, the rest is greedy; the order with
    most constraints earliest wins, then the one with fewer reverse look-ups, then
    the one that starts at the smaller number. Cost: n^2 * edges, for n <= 8.

    >>> plan = make_plan(3, [(0, 1), (1, 2), (0, 2)])
    >>> plan.order
    (0, 1, 2)
    >>> plan.steps[1].constraints
    (Constraint(key=0, direction='forward'), Constraint(key=1, direction='forward'))
    """
    return _planned(n_vertices, tuple(edges), tuple(absent))


@functools.lru_cache(maxsize=256)
def _planned(n_vertices: int, edges: tuple[Edge, ...], absent: tuple[Edge, ...]) -> Plan:
    """The same motif is asked for again and again, as by each dataflow that counts triangles."""
    orders = [_greedy_order(first, n_vertices, edges) for first in range(n_vertices)]
    best = min(orders, key=lambda order: _cost(order, edges))
    steps = tuple(
        PlanStep(v, _constraints(v, best[:i], edges), _filters(v, best[:i], edges, absent))
        for i, v in enumerate(best)
    )
    # The first vertex must have the edge that the first step follows, so only such keys are tried.
    seed = steps[1].constraints[0].direction
    return Plan(best[0], seed, steps[0].filters, steps[1:])


def _greedy_order(first: int, n_vertices: int, edges: Sequence[Edge]) -> tuple[int, ...]:
    order = [first]
    while len(order) < n_vertices:
        rest = [v for v in range(n_vertices) if v not in order]
        order.append(min(rest, key=lambda v: (*_weight(_constraints(v, order, edges)), v)))
        if not _constraints(order[-1], order[:-1], edges):
            raise InternalError(f"a plan was asked for a motif that is not connected: {edges}")
    return tuple(order)


def _cost(order: tuple[int, ...], edges: Sequence[Edge]) -> tuple[object, ...]:
    weights = [_weight(_constraints(v, order[:i], edges)) for i, v in enumerate(order)]
    return ([w[0] for w in weights], sum(w[1] for w in weights), order)


def _weight(constraints: tuple[Constraint, ...]) -> tuple[int, int]:
    """Smaller is better: many constraints, then few of them in reverse."""
    return (-len(constraints), sum(c.direction == "reverse" for c in constraints))


def _constraints(v: int, bound: Sequence[int], edges: Sequence[Edge]) -> tuple[Constraint, ...]:
    """In the order in which their keys were bound, forward before reverse."""
    forward = [Constraint(s, "forward") for s, t in edges if t == v and s in bound]
    reverse = [Constraint(t, "reverse") for s, t in edges if s == v and t in bound]
    return tuple(sorted(forward + reverse, key=lambda c: (bound.index(c.key), c.direction)))


def _filters(
    v: int, bound: Sequence[int], edges: Sequence[Edge], absent: Sequence[Edge]
) -> tuple[Filter, ...]:
    known = (*bound, v)
    loops = [Filter(v, v, False) for s, t in edges if s == t == v]
    ready = [Filter(s, t, True) for s, t in absent if s in known and t in known and v in (s, t)]
    return (*loops, *ready)
