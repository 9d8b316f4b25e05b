"""Delta joins, generic joins and motifs of collections that change, beside recomputing."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections.delta_plan import Atom, Extend, LookUp, Weigh, generic_query
from pointstamp.compiled import build_info
from pointstamp.errors import BuildError, ColumnError, OperatorError, PatternError, SchemaError
from tests.collections.delta_joins import (
    check_delta,
    check_generic,
    check_motifs,
    natural_join,
    random_epochs,
    spines,
)
from tests.collections.test_durable import WORKERS, check_restart
from tests.conftest import examples
from tests.slowness import slowdown

TRIANGLE = "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)"


@pytest.mark.parametrize("check", [check_delta, check_generic, check_motifs])
@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 7]))
def test_it_is_what_recomputing_gives(
    check: Callable[[int, int, int], None], seed: int, workers: int, at_a_time: int
) -> None:
    check(seed, workers, at_a_time)


def test_a_delta_join_makes_no_arrangement_that_is_there() -> None:
    def build(scope: Any, **tables: ps.Collection) -> Any:
        by_item = tables["sales"].arrange("item")
        found = ps.delta_join(tables, ["sales.item = items.id", "sales.shop = shops.key"])
        kept.extend([by_item, *(t.arrange(k) for t, k in zip(tables.values(), KEYS, strict=True))])
        assert kept[0] is kept[1]
        return found

    kept: list[ps.ArrangedCollection] = []
    view = ps.View(
        build,
        sales="item long, shop long",
        items="id long, title string",
        shops="key long, city string",
    )
    view.insert("items", [(n, str(n)) for n in range(10)])
    view.insert("shops", [(n, str(n)) for n in range(10)])
    view.insert("sales", [(n % 10, n // 10) for n in range(100)])
    assert len(view.advance()) == 100
    # What is in between, the sales with their items, is nowhere.
    assert [one.n_updates for one in kept] == [100, 100, 10, 10]


KEYS = ["item", "id", "key"]


def test_patterns_of_one_graph_keep_its_edges_by_either_end_and_nothing_else() -> None:
    def build(scope: Any, edges: ps.Collection) -> Any:
        cycles = [[f"v{k} v{(k + 1) % n}" for k in range(n)] for n in (3, 4, 5)]
        return {
            str(n): ps.generic_join({f"E{k}": (edges, names) for k, names in enumerate(cycle)})
            for n, cycle in enumerate(cycles)
        }

    others = spines()
    view = ps.View(build, edges="src long, dst long")
    view.insert("edges", [(n, n + 1) for n in range(20)])
    view.advance()
    assert [spine.n_updates for spine in spines() if spine not in others] == [20, 20]


def test_a_step_of_a_cyclic_join_asks_all_that_say_something() -> None:
    square = [
        Atom("R", ("a", "b")),
        Atom("S", ("b", "c")),
        Atom("T", ("c", "d")),
        Atom("U", ("d", "a")),
    ]
    steps = generic_query(square, 1)
    assert [type(step) for step in steps] == [Extend, Extend]
    assert [len(step.by) for step in steps if isinstance(step, Extend)] == [1, 2]


def test_what_is_bound_is_weighed_and_what_comes_along_is_looked_up() -> None:
    atoms = [Atom("R", ("a", "b")), Atom("S", ("b", "a")), Atom("T", ("b", "p"))]
    assert generic_query(atoms, 0) == [Weigh(1), LookUp(2, ("b",))]


@pytest.mark.skipif(build_info() != "compiled", reason="what stands for the loops reads all")
def test_a_change_of_a_hub_reads_the_short_list_and_not_the_long_one() -> None:
    """Through a hub there are n * n paths of two edges; a join of joins would make n of them."""
    n = 20_000
    view = ps.View(lambda scope, e: ps.motifs(e, TRIANGLE), e="src long, dst long")
    view.insert("e", [(0, n + 1 + k) for k in range(n)] + [(k + 1, 0) for k in range(n)])
    assert view.advance() == []
    took = []
    for insert in (view.insert, view.delete):
        began = time.process_time()
        for k in range(50):
            insert("e", [(k + 1, n + 1 + k)])
            assert view.advance() == [((k + 1, 0, n + 1 + k), 1 if insert == view.insert else -1)]
        took.append(time.process_time() - began)
    assert max(took) < 50 * 2e-3 * slowdown()
    assert view.advance() == []


LONGS = "x long, y long"


def refused(build: Any, match: str, error: type[Exception] = BuildError, **schemas: str) -> None:
    with pytest.raises(error, match=match):
        ps.View(build, **(schemas or {"r": LONGS, "s": "y long, z long"}))


def test_what_does_not_fit_is_refused_when_it_is_built() -> None:
    refused(lambda scope, r, s: ps.delta_join([r], "x"), "two collections or more")
    refused(lambda scope, r, s: ps.delta_join([r, 7], "x"), "'relation 1': 7")
    refused(lambda scope, r, s: ps.delta_join([r, s], []), "one column at least")
    refused(lambda scope, r, s: ps.delta_join([r, s], "x"), "'x'; there are: y", ColumnError)
    refused(
        lambda scope, r, s: ps.delta_join({"r": r, "s": s}, ["r.x = t.y"]),
        r"there are the relations \['r', 's'\]",
    )
    refused(
        lambda scope, r, s: ps.delta_join({"r": r, "s": s}, ["r.x = s.z"]),
        "'s' has a column 'y' as another",
        ColumnError,
    )
    refused(
        lambda scope, r, s: ps.delta_join([r, s], "a"),
        r"\['long', 'string'\]",
        SchemaError,
        r="a long, b long",
        s="a string",
    )
    refused(
        lambda scope, r, s: ps.generic_join({"R": (r, "a b"), "S": (s, "c d")}),
        "'S', which shares no column",
    )
    refused(lambda scope, r, s: ps.generic_join({"R": (r, "a")}), r"variables \['a'\]; each")
    refused(lambda scope, r, s: ps.generic_join({"R": r}), "a collection and the variables")
    refused(lambda scope, r, s: ps.generic_join({}), "needs relations by name")
    refused(lambda scope, r, s: ps.motifs(r, "()-[]->()"), "names no vertex", PatternError)
    refused(
        lambda scope, r, s: ps.motifs(r.select("x"), TRIANGLE), "two columns of one", SchemaError
    )


def test_a_rule_of_a_loop_has_several_relations() -> None:
    def build(scope: Any, up: ps.Collection, flat: ps.Collection, down: ps.Collection) -> Any:
        def same_generation(found: ps.Collection) -> ps.Collection:
            relations = {"up": (up, "a p"), "found": (found, "p q"), "down": (down, "q b")}
            further = ps.generic_join(relations).select(x="a", y="b")
            return further.concat(flat).distinct()

        return flat.iterate(same_generation)

    view = ps.View(build, up=LONGS, flat=LONGS, down=LONGS)
    view.insert("up", [(3, 1), (4, 2), (5, 3), (6, 4)])
    view.insert("down", [(1, 3), (2, 4), (3, 5), (4, 6)])
    view.insert("flat", [(1, 2)])
    assert view.advance() == [((1, 2), 1), ((3, 4), 1), ((5, 6), 1)]
    view.delete("up", [(3, 1)])
    assert view.advance() == [((3, 4), -1), ((5, 6), -1)]


@pytest.mark.parametrize("kind", ["generic", "delta"])
def test_a_deletion_before_its_insertion_takes_no_other_record_away(kind: str) -> None:
    def build(scope: Any, r: ps.Collection, s: ps.Collection, t: ps.Collection) -> ps.Collection:
        if kind == "delta":
            return ps.delta_join({"r": r, "s": s, "t": t}, ["r.b = s.b", "s.c = t.c", "r.a = t.a"])
        return ps.generic_join({"R": (r, "a b x"), "S": (s, "b c"), "T": (t, "a c y")})

    view = ps.View(build, r="a long, b long, x long", s="b long, c long", t="a long, c long, y int")
    view.insert("r", [(1, 2, 7)])
    view.insert("t", [(1, 3, 0)])
    view.delete("r", [(1, 2, 8)])
    assert view.advance() == []
    view.insert("s", [(2, 3)])
    assert view.advance() == [((1, 2, 7, 3, 0), 1), ((1, 2, 8, 3, 0), -1)]
    view.insert("r", [(1, 2, 8)])
    view.advance()
    assert view.snapshot() == [(1, 2, 7, 3, 0)]


def test_a_diff_beyond_64_bits_is_an_error() -> None:
    def build(scope: Any, r: ps.Collection, s: ps.Collection, t: ps.Collection) -> ps.Collection:
        return ps.generic_join({"R": (r, "a b"), "S": (s, "b c"), "T": (t, "a c")})

    view = ps.View(build, r=LONGS, s=LONGS, t=LONGS)
    for name in "rst":
        view.update(name, [((1, 1), 1 << 40)])
    with pytest.raises(OperatorError, match="beyond 64 bits"):
        view.advance()


class Triangles:
    """Triangles of two columns of random updates, and how many begin at each vertex."""

    n_inputs = 1

    def __init__(self, seed: int) -> None:
        ends = [None, 1, 2, 3]
        texts, money = ["a"], [Decimal("1.50")]
        self.epochs = random_epochs(
            random.Random(seed), 6, [[ends[1:], ends, texts, money, [0.5]]], 8
        )

    def build(self, inputs: Any) -> ps.Collection:
        schema = inputs[0].schema
        edges = inputs[0].select(x=schema.names[0], y=schema.names[1])
        found = ps.generic_join({"R": (edges, "a b"), "S": (edges, "b c"), "T": (edges, "a c")})
        return found.group_by("a").count().concat(ps.motifs(edges, TRIANGLE).group_by("a").count())

    def expected(self) -> list[Counter[Any]]:
        came: Counter[Any] = Counter()
        result = []
        for (changes,) in self.epochs:
            for row, diff in changes:
                came[row[:2]] += diff
            edges = Counter({row: n for row, n in came.items() if n})
            once = Counter(dict.fromkeys([row for row in edges if None not in row], 1))
            at_each: Counter[Any] = Counter()
            for of in (edges, once):
                names = [["a", "b"], ["b", "c"], ["a", "c"]]
                found = natural_join([(of, own) for own in names], ["a"])
                at_each.update((vertex, n) for (vertex,), n in found.items() if n)
            result.append(at_each)
        return result


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 1 << 30), WORKERS, WORKERS, st.integers(0, 5), st.sampled_from([1, 7]))
def test_a_join_goes_on_from_a_snapshot(
    seed: int, before: int, after: int, cut: int, at_a_time: int
) -> None:
    check_restart(Triangles(seed), before, after, cut, at_a_time)  # type: ignore[arg-type]  # as one
