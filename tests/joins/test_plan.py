"""Plans: every condition is met once, as early as it can be, and intersections come first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import InternalError
from pointstamp.joins.plan import Constraint, Filter, make_plan

TRIANGLE = [(0, 1), (1, 2), (0, 2)]


def test_a_triangle_needs_the_forward_index_only():
    plan = make_plan(3, TRIANGLE)
    assert plan.order == (0, 1, 2)
    assert plan.seed == "forward"
    assert plan.directions == ("forward",)
    assert plan.steps[0].constraints == (Constraint(0, "forward"),)
    assert plan.steps[1].constraints == (Constraint(0, "forward"), Constraint(1, "forward"))


def test_a_cycle_closes_through_the_reverse_index():
    plan = make_plan(3, [(0, 1), (1, 2), (2, 0)])
    assert plan.order == (0, 1, 2)
    assert plan.steps[1].constraints == (Constraint(0, "reverse"), Constraint(1, "forward"))
    assert plan.directions == ("forward", "reverse")


def test_the_vertex_with_most_constraints_is_next():
    """A triangle with a tail at its first vertex: the triangle first, then the tail."""
    plan = make_plan(4, [(0, 1), (0, 2), (2, 3), (0, 3)])
    assert plan.order[-1] == 1
    assert len(plan.steps[1].constraints) == 2


def test_conditions_are_tested_as_soon_as_their_vertices_are_bound():
    plan = make_plan(3, [(0, 1), (1, 2), (0, 0), (2, 2)], [(1, 0), (2, 1)])
    assert plan.first_filters == (Filter(0, 0, absent=False),)
    assert plan.steps[0].filters == (Filter(1, 0, absent=True),)
    assert plan.steps[1].filters == (Filter(2, 2, absent=False), Filter(2, 1, absent=True))


def test_what_nobody_asks_for_any_more_is_let_go_of():
    plan = make_plan(4, [(0, 1), (1, 2), (2, 3)])
    assert plan.order == (0, 1, 2, 3)
    assert plan.needed_after(1, outputs=()) == (1,)
    assert plan.needed_after(2, outputs=(0,)) == (0, 2)
    assert plan.needed_after(3, outputs=(3, 1)) == (1, 3)


def test_what_is_not_connected_has_no_plan():
    with pytest.raises(InternalError):
        make_plan(4, [(0, 1), (2, 3)])


@st.composite
def shapes(draw):
    n = draw(st.integers(2, 8))
    tree = {(draw(st.integers(0, v - 1)), v) for v in range(1, n)}
    ends = st.integers(0, n - 1)
    pairs = st.sets(st.tuples(ends, ends), max_size=8)
    edges = {p if draw(st.booleans()) else p[::-1] for p in tree} | draw(pairs)
    return n, sorted(edges), sorted(draw(pairs) - edges)


@given(shapes())
def test_every_edge_is_in_exactly_one_place_of_the_plan(shape):
    n, edges, absent = shape
    plan = make_plan(n, edges, absent)
    assert sorted(plan.order) == list(range(n))
    found, filters, bound = [], list(plan.first_filters), {plan.first}
    for step in plan.steps:
        assert step.constraints, "each vertex is next to a bound one"
        for c in step.constraints:
            assert c.key in bound
            assert c.direction in plan.directions
            ends = (c.key, step.vertex)
            found.append(ends if c.direction == "forward" else ends[::-1])
        bound.add(step.vertex)
        for f in step.filters:
            assert {f.source, f.target} <= bound, "a condition is tested on what is bound"
        filters += step.filters
    found += [(f.source, f.target) for f in filters if not f.absent]
    assert sorted(found) == edges
    assert sorted((f.source, f.target) for f in filters if f.absent) == absent
