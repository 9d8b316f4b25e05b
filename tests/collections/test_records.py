"""Collections without a schema: values of Python as records, functions as keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.containers.dictionary import TEXTS, Dictionary
from pointstamp.errors import BuildError, DataError, OperatorError, SchemaError
from tests.collections.record_programs import (
    RecordProgram,
    check_records,
    check_records_in_view,
    record_programs,
)
from tests.conftest import examples, once_from


@settings(max_examples=examples(200))
@given(record_programs())
def test_a_view_of_records_is_what_recomputing_gives(program: RecordProgram) -> None:
    check_records_in_view(program)


@settings(max_examples=examples(150))
@given(
    record_programs(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 7]), st.integers(0, 1 << 20)
)
def test_records_on_workers_are_what_recomputing_gives(
    program: RecordProgram, workers: int, at_a_time: int, seed: int
) -> None:
    check_records(program, workers, at_a_time, seed)


def test_equal_values_are_one_record_as_in_a_set() -> None:
    view = ps.View(lambda scope, t: t.distinct(), t=None)
    view.insert("t", [("equal", 1), ("equal", 1.0), ("equal", True)])
    assert view.advance() == [(("equal", 1), 1)]
    view.delete("t", [("equal", True)] * 2)
    assert view.advance() == []
    view.delete("t", [("equal", 1.0)])
    assert view.advance() == [(("equal", 1), -1)]
    view.insert("t", ["1", b"1", (1,), 1])
    assert len(view.advance()) == 4
    nans = [float("nan"), (float("nan"), 1), float("nan"), (float("nan"), 1), -0.0, 0]
    view.insert("t", nans)
    assert len(view.advance()) == 3
    view.delete("t", [float("nan"), math.nan, 0.0, 0])
    assert len(view.advance()) == 2


class Edge(NamedTuple):
    source: str
    target: str


def test_a_named_tuple_that_was_seen_as_a_tuple_has_its_names() -> None:
    def view_of(scope: Any, edges: Any) -> Any:
        turned = edges.map(lambda edge: (edge.target, edge.source))
        return turned.join(edges, on=lambda edge: edge[0])

    view = ps.View(view_of, edges=None)
    view.insert("edges", [Edge("named", "turned")])
    assert view.advance() == []
    view.insert("edges", [Edge("turned", "named")])  # which is a tuple already
    assert view.advance() == [
        (((s, t), (s, t)), 1) for s, t in (("named", "turned"), ("turned", "named"))
    ]
    # While a sweep goes on, or what is asked for is pinned, it is looked up another way.
    with TEXTS.pinning():
        assert type(TEXTS.value(TEXTS.number_of(("a", "pin")))) is tuple
        number = TEXTS.number_of(Edge("a", "pin"))
        assert TEXTS.value(number) is TEXTS.value(TEXTS.number_of(("a", "pin")))
        assert TEXTS.value(number).source == "a"


class Weighed(NamedTuple):
    name: str
    weight: float


@dataclass(frozen=True)
class Measured:
    name: str
    weight: float


@pytest.mark.parametrize("kind", [Weighed, Measured])
def test_records_with_a_nan_in_them_are_equal_and_keep_their_names(kind: Any) -> None:
    view = ps.View(lambda scope, t: t.distinct().map(lambda one: one.name), t=None)
    view.insert("t", [kind("a", float("nan")), kind("a", float("nan")), kind("b", 1.0)])
    assert view.advance() == [("a", 1), ("b", 1)]
    view.delete("t", [kind("a", float("nan"))])
    assert view.advance() == []
    view.delete("t", [kind("a", float("nan"))])
    assert view.advance() == [("a", -1)]


def test_records_of_a_class_that_cannot_be_imported_reach_other_workers() -> None:
    @dataclass(frozen=True)
    class Place:
        number: int

    def main(worker: Any) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            (one, left), (two, right) = scope.new_collection(), scope.new_collection()
            pairs = left.join(right, on=lambda place: place.number)
            pairs.inspect(lambda pair, time, diff: found.append((pair[0].number, diff)))
        one.insert([Place(number) for number in range(8)])
        two.insert([Place(number) for number in range(4)])
        one.close()
        two.close()
        worker.run()
        return found

    parts = ps.execute(main, workers=2)
    # A share of each worker, of each of the two.
    assert sorted(pair for part in parts for pair in part) == [(n, 4) for n in range(4)]


def test_a_function_that_yields_gives_several_records() -> None:
    def letters(word: str) -> Any:
        yield from word

    view = ps.View(lambda scope, words: words.flat_map(letters), words=None)
    view.insert("words", ["to", "do"])
    assert sorted(view.advance()) == [("d", 1), ("o", 2), ("t", 1)]


def test_changes_of_records_that_have_no_order_are_in_some() -> None:
    view = ps.View(lambda scope, t: t, t=None)
    view.insert("t", ["a", 2, None, (1, None), 1])
    in_order = [None, 1, 2, "a", (1, None)]  # by the names of their types
    assert [record for record, _ in view.advance()] == in_order
    assert view.snapshot() == in_order
    with pytest.raises(SchemaError, match=r"no columns for Arrow, .* map\(function, schema\)"):
        view.snapshot().to_arrow()


def test_columns_are_made_of_records() -> None:
    def build(scope: Any, sales: Any) -> Any:
        rows = sales.map(lambda sale: (sale.shop, sale.cents), "shop string, cents long")
        return rows.group_by("shop").agg(cents=ps.sum("cents"))

    view = ps.View(build, sales=None)
    view.insert("sales", [Sale("Rome", 3), Sale("Oslo", 4), Sale("Rome", 5)])
    assert view.advance() == [(("Oslo", 4), 1), (("Rome", 8), 1)]
    with pytest.raises(DataError, match=r"record 0 .* no hash that is the same on every worker"):
        view.insert("sales", [object()])
    with pytest.raises(DataError, match=r"record 1 .* unhashable type: 'list'"):
        view.insert("sales", [("Rome", 3), [1]])
    with pytest.raises(DataError, match=r"diff of record 0 for the input 'sales' is no integer"):
        view.update("sales", [("Rome", 1.5)])


@dataclass(frozen=True)
class Sale:
    shop: str
    cents: int


def totals(worker: ps.Worker) -> list[Any]:
    seen: list[Any] = []
    with worker.dataflow() as scope:
        sales, records = scope.new_collection(None)
        by_shop = records.group_by(lambda sale: sale.shop)
        found = by_shop.agg(cents=lambda group: sum(sale.cents for sale in group))
        found.join(records, left_on=lambda pair: pair[0], right_on=lambda sale: sale.shop).inspect(
            lambda record, time, diff: seen.append((record, time, diff))
        )
    for number in range(worker.index, 8, worker.peers):
        sales.insert([Sale("Rome" if number % 2 else "Oslo", number)])
    sales.advance_to(1)
    if worker.index == 0:
        sales.delete([Sale("Rome", 1)])
    sales.close()
    worker.run()
    return seen


@pytest.mark.parametrize("processes", once_from(2, [1, 2]))
def test_records_of_classes_go_between_processes(processes: int) -> None:
    options: dict[str, Any] = {"threads": True} if processes == 1 else {}
    found: dict[Any, int] = {}
    for part in ps.execute(totals, workers=2, **options):
        for record, _, diff in part:
            found[record] = found.get(record, 0) + diff
    rome = {((("Rome", 15)), Sale("Rome", n)): 1 for n in (3, 5, 7)}
    oslo = {((("Oslo", 12)), Sale("Oslo", n)): 1 for n in (0, 2, 4, 6)}
    assert {record: n for record, n in found.items() if n} == rome | oslo


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t: t.select("a"), "select is for collections with a schema, .* use map"),
        (lambda t: t.window(ps.Tumbling(3), time="a"), r"window .* map\(function, schema\) before"),
        (lambda t: t.agg(n=ps.count()), "agg is for collections with a schema"),
        (lambda t: t.arrange("a"), "arrange is for"),
        (lambda t: t.filter("a"), "'Filter' is given .*, and needs functions"),
        (lambda t: t.group_by("a"), "group_by is given .*, and needs functions of a record"),
        (lambda t: t.group_by(len).agg(n=ps.count()), "an aggregate is a function of the list"),
        (lambda t: t.group_by(len).agg(), "agg is given no function"),
        (lambda t: t.group_by(len).top_k(0, by=len), "should be given 1 or more"),
        (lambda t: t.group_by(len).top_k(1, by="a"), "needs a function"),
        (lambda t: t.join(t), "needs on=, or both"),
        (lambda t: t.join(t, on=len, how="cross"), "a cross join has no key"),
        (lambda t: t.join(t.map(len, "n long"), on=len), "joins collections without a schema"),
    ],
)
def test_what_needs_columns_is_refused_by_name(build: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        ps.View(lambda scope, t: build(t), t=None)


def test_records_and_columns_do_not_concat() -> None:
    with pytest.raises(SchemaError, match="their columns should have the same names"):
        ps.View(lambda scope, t, u: t.concat(u), t=None, u="a long")


def test_a_service_and_a_durable_dataflow_refuse_them(tmp_path: Any) -> None:
    with pytest.raises(SchemaError, match="and 't' is given None"):
        ps.serve(lambda scope, t: t, 1, collections={"t": None}, threads=True)
    with pytest.raises(SchemaError, match="no columns for Arrow, services"):
        ps.serve(
            lambda scope, t: scope.new_collection(None)[1],
            1,
            collections={"t": "a long"},
            threads=True,
        )


def test_variables_need_no_schema() -> None:
    def evens(scope: Any, edges: Any, seeds: Any) -> Any:
        with scope.iterative() as inner:
            even, odd = inner.variable(), inner.variable()

            def step(found: Any) -> Any:
                pairs = found.join(edges, left_on=lambda node: node, right_on=lambda e: e[0])
                return pairs.map(lambda pair: pair[1][1])

            odd.set(step(even).distinct())
            even.set(step(odd).concat(seeds).distinct())
            assert isinstance(even, ps.RecordCollection)
            return even.leave()

    view = ps.View(evens, edges=None, seeds=None)
    view.insert("edges", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
    view.insert("seeds", ["a"])
    assert view.advance() == [("a", 1), ("c", 1), ("e", 1)]
    view.delete("edges", [("b", "c")])
    assert view.advance() == [("c", -1), ("e", -1)]
    view.close()


def test_a_variable_of_records_is_not_set_to_columns_nor_the_other_way() -> None:
    def build(scope: Any, t: Any, columns: bool) -> Any:
        with scope.iterative() as inner:
            variable = inner.variable("a long" if columns else None)
            variable.set(t)
            return variable.leave()

    for schema, columns in (("a long", False), (None, True)):
        with pytest.raises(SchemaError, match="the columns should be the same"):
            ps.View(partial(build, columns=columns), t=schema)


def test_a_variable_of_records_is_refused_in_a_durable_dataflow(tmp_path: Any) -> None:
    def run(worker: ps.Worker) -> None:
        with worker.dataflow("it", durable=Durable(Checkpoint(tmp_path))) as scope:
            scope.new_collection("a long")
            with (
                scope.iterative() as inner,
                pytest.raises(
                    BuildError, match="variable 'Found' is a collection without a schema, and the"
                ),
            ):
                inner.variable(name="Found")

    ps.simulate(run, workers=1, seed=1)


def test_functions_that_fail_name_the_group() -> None:
    view = ps.View(lambda scope, t: t.group_by(str.upper).agg(x=lambda found: found[1]), t=None)
    view.insert("t", ["a", "A", "b"])
    with pytest.raises(OperatorError, match="the group of the key 'B': IndexError: list index"):
        view.advance()


def test_an_input_of_records_may_be_append_only() -> None:
    view = ps.View(lambda scope, t: t.distinct(), t=ps.AppendInput(None))
    view.insert("t", ["appended", "appended"])
    assert view.advance() == [("appended", 1)]
    said = "is append-only, and is given the diff -1 of the row 'appended'"
    with pytest.raises(DataError, match=said):
        view.delete("t", ["appended"])


def test_values_and_texts_have_numbers_of_their_own() -> None:
    dictionary = Dictionary()
    assert dictionary.numbers(["a", b"a", 1, True, (), b"", math.nan, float("nan")]) == [
        *(1, 2, 3, 3, 4, 0, 5, 5)
    ]
    assert dictionary.values([1, 2, 3]) == ["a", b"a", 1]


@pytest.mark.parametrize("schema", ["n long", None])
def test_flat_map_says_what_its_function_gave_in_place_of_records(schema: Any) -> None:
    def build(scope: Any, numbers: Any) -> Any:
        return numbers.flat_map(lambda record: None, *([schema] if schema else []))

    view = ps.View(build, numbers=schema)
    view.insert("numbers", [(7,)])
    with pytest.raises(OperatorError, match=r"is to give an iterable.*gave None for \(7,\)"):
        view.advance()
