"""What gives several streams is a tuple, of which a method of streams says to take it apart."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import WorkerError

TEN = ps.Tumbling(10)

MADE: dict[str, Any] = {
    "windows, late": lambda s: s.window(TEN, lambda x: x),
    "windows, late, late_of_other": lambda s: s.join_window(s, TEN, lambda x: x, lambda x: x),
    "windows, late, failed": lambda s: s.count_window(TEN, lambda x: x, on_error="route"),
    "ok, err": lambda s: s.ok_err(ps.Ok),
    "results, failed": lambda s: s.map(str, on_error="route"),
}


@pytest.mark.parametrize("names", MADE)
def test_a_method_of_several_streams_says_to_take_them_apart(names: str) -> None:
    def build(scope: Any) -> Any:
        return MADE[names](scope.to_stream([1])).inspect(print)

    first = names.partition(",")[0]
    said = rf"these are \({names}\), .* `{names} = \.\.\.`, and go on with {first}.inspect$"
    with pytest.raises(WorkerError, match=said):
        ps.testing.collect(build)


@pytest.mark.parametrize(
    ("method", "instead"),
    [("count", "count_window"), ("aggregate", "fold_window"), ("reduce", "reduce_window")],
)
def test_what_is_computed_of_each_window_has_a_method_of_its_own(method: str, instead: str) -> None:
    def build(scope: Any) -> Any:
        records = scope.to_stream(pa.table({"t": [1]}))
        return getattr(records.window(TEN, "t"), method)()

    with pytest.raises(WorkerError, match=f"`windows, late = ...`; .*{instead}"):
        ps.testing.collect(build)


def test_the_other_half_is_the_one_to_go_on_with() -> None:
    def build(scope: Any) -> Any:
        input = scope.new_input()
        input.map(str)

    with pytest.raises(WorkerError, match=r"`input, stream = ...`, and go on with stream.map"):
        ps.testing.collect(build)

    def divide(scope: Any) -> Any:
        return scope.to_stream([1]).branch(bool).map(str)

    with pytest.raises(WorkerError, match=r"go on with where_true.map"):
        ps.testing.collect(divide)


def test_it_is_a_tuple_all_the_same() -> None:
    def build(scope: Any) -> Any:
        pair = scope.to_stream([1, 2]).branch(lambda x: x > 1)
        assert isinstance(pair, tuple)
        assert (len(pair), pair.count(pair[0]), pair.index(pair[1])) == (2, 1, 1)
        assert not hasattr(pair, "_fields")
        where_false, where_true = pair
        return where_false.concat(where_true)

    assert ps.testing.collect(build) == [(0, 1), (0, 2)]
    from pointstamp.dataflow.several_streams import SeveralStreams

    assert pickle.loads(pickle.dumps(SeveralStreams([1, 2], ["a", "b"]))) == (1, 2)
