"""Inputs of which nothing is deleted: what they refuse, and what is kept of them."""

from __future__ import annotations

import random
from collections import Counter
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
from tests.collections.running import run_epochs
from tests.conftest import examples

SCHEMA = "k long, v long?, t string"


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


def test_of_least_and_greatest_values_a_few_for_each_group_are_kept() -> None:
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
    assert all_kept.n_values > 7_000
    assert kept.n_values < 100


def test_of_distinct_records_none_is_counted() -> None:
    state = state_of(2, (), "Distinct", append_only=True)
    assert isinstance(state, SeenRecords)
    rows = np.array([[n % 7, n % 3, 1 + n] for n in range(1_000)])
    assert len(state.take_in([rows[:500], rows[500:]])) == len(state) == 21


row = st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(-2, 2)), st.sampled_from("ab"))
epochs = st.lists(
    st.tuples(*[st.lists(st.tuples(row, st.integers(1, 3)), max_size=5)] * 2),
    min_size=1,
    max_size=5,
)


def _main(worker: ps.Worker, epochs: Any, at_a_time: int) -> list[Any]:
    """Of what is append-only and of what is not the same is computed."""

    def build(inputs: Any) -> Any:
        quick = [ps.Collection(one.stream, one.schema, append_only=True) for one in inputs]
        results = []
        for mine, plain in zip(_of(quick), _of(list(inputs)), strict=True):
            results.append(mine.concat(plain.negate()).consolidate())
        return results[0].select("t").concat(results[1].select("t"))

    return run_epochs(worker, [SCHEMA] * 2, build, epochs, at_a_time)


def _of(inputs: list[Any]) -> list[Any]:
    a, b = inputs
    joined = a.concat(b).filter(col("k") > 0).join(b.drop("v"), on="k")
    groups = joined.group_by("t").agg(low=ps.min("v"), most=ps.max("k"), first=ps.min("t_right"))
    every = a.agg(low=ps.min("v"), most=ps.max("k"))
    every = every.with_columns(t=ps.lit("all"), first=ps.lit(None).cast("string"))
    lowest = joined.group_by("t").agg(low=ps.min("v"), most=ps.max("k"), n=ps.count())
    counted = lowest.select("t", "low", "most", first=ps.lit(None).cast("string"))
    return [groups.concat(every, counted), a.distinct().concat(a.concat(b).distinct())]


def check(epochs: Any, workers: int, at_a_time: int, seed: int) -> None:
    parts = ps.simulate(_main, epochs, at_a_time, workers=workers, seed=seed)
    assert [update for part in parts for update in part] == []


@settings(max_examples=examples(150))
@given(epochs, st.sampled_from([1, 2]), st.sampled_from([1, 3]), st.integers(0, 1 << 20))
def test_the_same_is_computed_as_of_other_inputs(
    epochs: Any, workers: int, at_a_time: int, seed: int
) -> None:
    check(epochs, workers, at_a_time, seed)
