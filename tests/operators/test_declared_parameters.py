"""Workers that gave an operator different parameters are told so when it is built, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import StructureError, WorkerError


def late(scope: Any, n: int) -> Any:
    return scope.to_stream([1]).window(ps.Tumbling(10), lateness=n)


def changing(scope: Any) -> Any:
    input, collection = scope.new_collection("a long, b long, c long")
    input.close()
    return collection


def count_by(scope: Any, n: int) -> Any:
    return changing(scope).group_by("ab"[n]).agg(n=ps.count())


def joined_by(scope: Any, n: int) -> Any:
    return changing(scope).join(changing(scope), on="bc"[n])


def numbered_by(scope: Any, n: int) -> Any:
    return changing(scope).with_columns(n=ps.row_number().over("ab"[n], order_by="c"))


def in_loop(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda scope: changing(scope).iterate(step)


def window_function(function: Any) -> Callable[[Any], Any]:
    return lambda scope: changing(scope).with_columns(n=function.over("a", order_by="c"))


def windowed(windows: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda scope: changing(scope).window(windows, **{"time": "c", **options})


OF_COLLECTIONS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("TopK", *(lambda s, k=k: changing(s).group_by("a").top_k(k, by="c") for k in (1, 2))),
    ("TopK", *(in_loop(lambda t, k=k: t.group_by("a").top_k(k, by="c")) for k in (1, 2))),
    (
        "Aggregate",
        *(
            in_loop(lambda t, extreme=extreme: t.group_by("a", "b").agg(c=extreme("c")))
            for extreme in (ps.min, ps.max)
        ),
    ),
    ("Over", *map(window_function, (ps.rank(), ps.row_number()))),
    ("Over", *map(window_function, (ps.lag("b", 1), ps.lag("b", 2)))),
    ("Over", *(window_function(ps.rolling(ps.sum("b"), n)) for n in (2, 3))),
    (
        "Over",
        *(
            in_loop(
                lambda t, function=function: t.select("a", "b", c=function.over("a", order_by="c"))
            )
            for function in (ps.rank(), ps.dense_rank())
        ),
    ),
    ("Window", *(windowed(ps.Tumbling(size)) for size in (10, 11))),
    ("Window", *(windowed(ps.Sliding(10, slide)) for slide in (5, 2))),
    ("Window", *(windowed(ps.Tumbling(10), lateness=late) for late in (0, 1))),
    ("Window", *(windowed(ps.Tumbling(10), time=time) for time in ("b", "c"))),
    ("Window", *(windowed(ps.Sessions(gap), key="a") for gap in (10, 11))),
    ("Window", *(windowed(ps.Sessions(10), key="a", lateness=late) for late in (0, 1))),
    (
        "TemporalFilter",
        *(lambda s, n=n: changing(s).temporal_filter("b", ps.col("c") + n) for n in (0, 1)),
    ),
]


CASES: list[tuple[str, Callable[[Any, int], Any]]] = [
    ("Window", lambda scope, n: scope.to_stream([1]).window(ps.Tumbling(10 + n))),
    ("Window", lambda scope, n: scope.to_stream([1]).window([ps.Tumbling, ps.Sessions][n](10))),
    ("Window", late),
    ("CountWindow", lambda scope, n: scope.to_stream([1]).count_window(ps.Sessions(1 + n))),
    ("Decide", lambda scope, n: scope.to_stream([1]).iterate(lambda again: again, limit=n)),
    ("Batch", lambda scope, n: scope.to_stream([1]).batch(1 + n)),
    ("TopK", lambda scope, n: scope.to_stream([1]).top_k(1 + n)),
    (
        "Join",
        lambda scope, n: scope.to_stream([1]).join(scope.to_stream([1]), how=["left", "full"][n]),
    ),
    ("Aggregate", count_by),
    ("TopKArrange", lambda scope, n: changing(scope).group_by("ab"[n]).top_k(1, by="c")),
    (
        "TopKArrange",
        lambda scope, n: changing(scope).group_by("a").top_k(1, by="c", descending=bool(n)),
    ),
    ("Distinct", lambda scope, n: changing(scope).select("ab"[n]).distinct()),
    ("Arrange", joined_by),
    ("Arrange", numbered_by),
    ("Join", lambda scope, n: scope.to_stream([1]).join(scope.to_stream([1]), retain=bool(n))),
    *((name, lambda scope, n, both=both: both[n](scope)) for name, *both in OF_COLLECTIONS),
]


@pytest.mark.parametrize(
    ("name", "build"), CASES, ids=[f"{i} {case[0]}" for i, case in enumerate(CASES)]
)
def test_parameters_that_differ_are_an_error_that_names_the_operator(
    name: str, build: Any, first_cause: Any
) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            build(scope, worker.index)

    with pytest.raises(WorkerError, match="built different dataflows") as raised:
        ps.simulate(main, workers=2, seed=1)
    assert isinstance(first_cause(raised.value), StructureError)
    assert name in str(raised.value)


def test_equal_parameters_are_no_difference() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            for _, build in CASES:
                build(scope, 1)
        worker.run()

    ps.execute(main, workers=2, threads=True)
