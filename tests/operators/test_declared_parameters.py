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
