"""Programs over collections of which nothing is deleted, computed with and without knowing it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from tests.collections.running import run_epochs

SCHEMA = "k long, v long?, t string"

_rows = st.tuples(
    st.integers(0, 2), st.one_of(st.none(), st.integers(-2, 2)), st.sampled_from("ab")
)
insertions = st.lists(
    st.tuples(*[st.lists(st.tuples(_rows, st.integers(1, 3)), max_size=5)] * 2),
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


def check_insertions(epochs: Any, workers: int, at_a_time: int, seed: int) -> None:
    parts = ps.simulate(_main, epochs, at_a_time, workers=workers, seed=seed)
    assert [update for part in parts for update in part] == []
