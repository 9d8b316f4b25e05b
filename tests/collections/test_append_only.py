"""Inputs of which nothing is deleted: what they refuse, and what is kept of them."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.collections.aggregate import SummedState, state_of
from pointstamp.collections.schema import schema_of
from pointstamp.collections.seen_records import SeenRecords
from pointstamp.errors import DataError
from tests.collections.appending import SCHEMA, check_insertions, insertions
from tests.collections.programs import Program, programs
from tests.collections.test_durable import check_restart
from tests.conftest import examples


def test_a_deletion_is_refused_at_the_input_and_nothing_taken_in() -> None:
    view = ps.View(lambda scope, t: t, t=ps.AppendInput(SCHEMA))
    said = r"the input 't' is append-only, and is given the diff -1 of the row \(1, None, 'x'\)"
    with pytest.raises(DataError, match=said):
        view.update("t", [((2, 2, "y"), +1), ((1, None, "x"), -1)])
    with pytest.raises(DataError, match=said):
        view.delete("t", [(1, None, "x")])
    view.delete("t", [])
    view.update("t", [((2, 2, "y"), +2), ((3, 3, "z"), 0)])
    assert view.advance() == [((2, 2, "y"), 2)]


def test_an_input_of_a_dataflow_refuses_as_one_of_a_view_does() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            input_, t = scope.new_collection("a long", append_only=True, name="bids")
            t.distinct().inspect(lambda *update: seen.append(update))
        input_.insert([(1,), (1,)])
        with pytest.raises(DataError, match="'bids' is append-only"):
            input_.delete([(1,)])
        input_.advance_to(1)
        input_.insert([(1,), (2,)])
        input_.close()
        worker.run()
        return seen

    assert ps.execute(main) == [[((1,), 0, 1), ((2,), 1, 1)]]


def test_it_is_known_of_what_is_made_without_deletions() -> None:
    def build(scope: Any, a: Any, b: Any, c: Any) -> Any:
        v = col("v").fill_null(0)
        of_a = [
            *(a.select("k"), a.with_columns(v=v), a.filter(v > 1), a.drop("v"), a.distinct()),
            *(a.rename({"k": "n"}), a.map(lambda row: row, SCHEMA), a.consolidate()),
            *(a.concat(b), a.join(b, on="k"), a.join(b, on="k", how="semi"), a.inspect(print)),
        ]
        assert all(made.append_only for made in of_a)
        of_others = [
            *(c, a.negate(), a.concat(c), a.join(c, on="k"), c.join(a, on="k")),
            *(a.join(b, on="k", how="anti"), a.join(b, on="k", how="full"), a.subtract(b)),
            *(a.group_by("k").count(), a.threshold(lambda n: n), a.group_by("k").top_k(1, "v")),
            a.select(r=ps.rank().over("k", order_by="v")),
        ]
        assert not any(made.append_only for made in of_others)
        return a

    ps.View(build, a=ps.AppendInput(SCHEMA), b=ps.AppendInput(SCHEMA), c=SCHEMA).close()


def test_of_least_and_greatest_values_none_but_the_answers_are_kept() -> None:
    schema = schema_of("k long, v long")
    bound = [ps.min("v").bind(schema, "least"), ps.max("v").bind(schema, "most")]
    kept, all_kept = (state_of(1, bound, "Aggregate", append_only) for append_only in (True, False))
    assert isinstance(kept, SummedState)
    assert isinstance(all_kept, SummedState)
    rng = random.Random(7)
    for _ in range(200):
        rows = [[rng.randrange(10), *[rng.randrange(10**9)] * 2, 1] for _ in range(20)]
        words = np.array(rows, np.int64)
        found = [Counter(map(tuple, s.take_in([words]).tolist())) for s in (kept, all_kept)]
        assert found[0] == found[1]
    sizes = [[len(part.rows) for part in s.contents(())] for s in (kept, all_kept)]
    assert sizes[0] == [10]
    assert sum(sizes[1]) > 7_000


def test_of_distinct_records_none_is_counted() -> None:
    state = state_of(2, (), "Distinct", append_only=True)
    assert isinstance(state, SeenRecords)
    rows = np.array([[n % 7, n % 3, 1 + n] for n in range(1_000)])
    assert len(state.take_in([rows[:500], rows[500:]])) == len(state) == 21


@settings(max_examples=examples(80))
@given(insertions, st.sampled_from([1, 2]), st.sampled_from([1, 3]), st.integers(0, 1 << 20))
def test_the_same_is_computed_as_of_other_inputs(
    epochs: Any, workers: int, at_a_time: int, seed: int
) -> None:
    check_insertions(epochs, workers, at_a_time, seed)


class Kept(Program):
    """Distinct records, and the least and greatest values, of an input without deletions."""

    def build(self, inputs: Any) -> Any:
        (given,) = inputs
        t = ps.Collection(given.stream, given.schema, append_only=True)
        values = t.group_by("k").agg(v=ps.min("v"), most=ps.max("v"))
        values = values.select(
            "k", v="most", t=ps.lit("x"), d=ps.lit(Decimal("0.00")).cast("decimal(9,2)"), f=_NONE
        )
        return t.distinct().concat(values)

    def compute(self, inputs: Any) -> Any:
        (given,) = inputs
        found = Counter(dict.fromkeys(given, 1))
        for k in {row[0] for row in given}:
            of_group = [row[1] for row in given if row[0] == k and row[1] is not None]
            found[k, max(of_group, default=None), "x", Decimal("0.00"), None] += 1
        return found


_NONE = ps.lit(None).cast("double")


@settings(max_examples=examples(20))
@given(programs(max_steps=1), st.sampled_from([1, 2]), st.integers(0, 9))
def test_it_goes_on_from_a_snapshot(program: Program, after: int, cut: int) -> None:
    insertions = [[[(row, n) for row, n in epoch[0] if n > 0]] for epoch in program.epochs]
    check_restart(Kept(1, program.steps, insertions), 2, after, cut, 1)
