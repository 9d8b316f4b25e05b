"""What is asserted of collections: when it fails, and what the error has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.errors import BuildError, OperatorError, SchemaError
from tests.collections.asserting import Changes, check_asserting, pairs_of_collections
from tests.conftest import examples


def test_what_is_there_is_named_with_its_epoch_and_how_often() -> None:
    def build(scope: Any, t: Any) -> Any:
        return t.filter(col("b") < 0).assert_empty("b is not below 0")

    view = ps.View(build, t="a string, b long")
    view.insert("t", [("x", 1)])
    view.advance()
    view.insert("t", [("y", -1), ("z", -2), ("z", -2)])
    said = r"b is not below 0: at epoch 1 there should be no record, and there is .*'z', -2\) 2 t"
    with pytest.raises(OperatorError, match=said):
        view.advance()


def test_many_records_are_not_all_shown() -> None:
    view = ps.View(lambda scope, t: t.assert_empty("none"), t="a long")
    view.insert("t", [(a,) for a in range(100)])
    with pytest.raises(OperatorError, match=r"there is \(0,\), .*\(4,\) and 95 more"):
        view.advance()


def test_nothing_fails_while_the_time_goes_on() -> None:
    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            input_, t = scope.new_collection("a long")
            probe = t.assert_empty("none").probe()
        input_.insert([(1,)])
        for _ in range(20):
            worker.step()
        input_.delete([(1,)])
        input_.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        input_.close()
        worker.run()
        return 1

    assert ps.execute(main) == [1]


def test_both_sides_of_a_difference_are_shown() -> None:
    def build(scope: Any, one: Any, two: Any) -> Any:
        return one.assert_equal(two, message="sales and their copy").count()

    view = ps.View(build, one="a long, b long?", two="b long?, a long")
    view.insert("one", [(1, 7), (2, None)])
    view.insert("two", [(7, 1), (None, 2)])
    assert view.advance() == [((2,), 1)]
    view.insert("one", [(3, 1)])
    view.insert("two", [(None, 4), (None, 4)])
    said = (
        r"sales and their copy: at epoch 1 there are records here and not in the other one: "
        r"\(3, 1\); in the other one and not here: \(4, None\) 2 times"
    )
    with pytest.raises(OperatorError, match=said):
        view.advance()


def test_rounds_of_a_loop_are_held_to_it_and_a_view_waits_for_them() -> None:
    def build(scope: Any, edges: Any, roots: Any) -> Any:
        def step(found: Any) -> Any:
            further = found.join(edges, left_on="node", right_on="src").select(node="dst")
            found = further.concat(roots).distinct()
            found.filter(col("node") > 5).assert_empty("no node beyond 5 is reached")
            return found

        return roots.iterate(step)

    view = ps.View(build, edges="src long, dst long", roots="node long")
    view.insert("roots", [(1,)])
    view.insert("edges", [(1, 2), (2, 3), (4, 9)])
    assert view.advance() == [((1,), 1), ((2,), 1), ((3,), 1)]
    view.insert("edges", [(3, 4)])
    with pytest.raises(OperatorError, match=r"beyond 5 is reached: at time \(1, 3\).*\(9,\)"):
        view.advance()


def test_what_it_is_given_is_checked() -> None:
    def wrong_message(scope: Any, t: Any) -> Any:
        return t.assert_empty(7)

    def no_collection(scope: Any, t: Any) -> Any:
        return t.assert_equal([(1,)])

    def other_columns(scope: Any, t: Any) -> Any:
        return t.assert_equal(t.rename({"a": "b"}))

    with pytest.raises(BuildError, match="the message 7, which is no text"):
        ps.View(wrong_message, t="a long")
    with pytest.raises(BuildError, match="which is no collection"):
        ps.View(no_collection, t="a long")
    with pytest.raises(SchemaError, match=r"'AssertEqual'.*should have the same names"):
        ps.View(other_columns, t="a long")


@settings(max_examples=examples(120))
@given(
    pairs_of_collections(),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 3]),
    st.integers(0, 1 << 20),
)
def test_it_fails_at_the_first_epoch_that_differs_and_at_no_other(
    sides: list[list[Changes]], workers: int, at_a_time: int, seed: int
) -> None:
    check_asserting(sides, workers, at_a_time, seed)
