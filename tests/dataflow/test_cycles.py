"""Loops that are refused when they are built: the error names the way around, in all scopes."""

from __future__ import annotations

from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import CycleError, FeedbackError, WorkerError
from pointstamp.progress.timestamp import Both
from pointstamp.testing import collect
from tests.simulation.subsets import Join, Subsets


def build_error(build: Any) -> BaseException:
    """What building on one worker raises."""
    with pytest.raises(WorkerError) as caught:
        collect(build)
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


def still(scope: Any, middle: Any) -> Any:
    """A loop that does not advance, around what `middle` makes."""
    loop, again = scope.feedback(0, name="Around")
    result = middle(again.map(lambda x: x))
    loop.connect(result)
    return result


def nested(stream: Any, name: str, middle: Any) -> Any:
    """`middle` in a scope of its own, beside a loop there that does advance."""
    with stream.scope.iterative(name=name) as inner:
        loop, again = inner.feedback(1, name=f"in {name}")
        result = middle(stream.enter(inner).concat(again))
        loop.connect(result)
        return result.leave()


def test_the_path_is_named_from_operator_to_operator() -> None:
    error = build_error(lambda scope: still(scope, lambda s: s.filter(bool)))
    assert isinstance(error, CycleError)
    assert (
        "a loop of scope 'Dataflow' does not advance time: 'Around' [1] -> 'Map' [2] -> "
        "'Filter' [3] -> 'Around' [1]; " in str(error)
    )


def test_through_a_scope_the_path_is_named_inside() -> None:
    """The shortest way through: not around the loop that is in there."""

    def build(scope: Any) -> Any:
        return still(scope, lambda s: nested(s, "Box", lambda t: t.exchange().filter(bool)))

    error = build_error(build)
    assert isinstance(error, CycleError)
    assert (
        "'Around' [1] -> 'Map' [2] -> 'Box' [3] (inside 'Concatenate' [2] -> 'Exchange' [3] -> "
        "'Filter' [4]) -> 'Around' [1]; " in str(error)
    )


def test_through_scopes_in_scopes_too() -> None:
    def build(scope: Any) -> Any:
        return still(
            scope,
            lambda s: nested(s, "Outer", lambda t: nested(t, "Inner", lambda u: u.exchange())),
        )

    error = build_error(build)
    assert isinstance(error, CycleError)
    assert (
        "'Outer' [3] (inside 'Concatenate' [2] -> 'Inner' [3] (inside 'Concatenate' [2] -> "
        "'Exchange' [3])) -> 'Around' [1]; " in str(error)
    )


def test_a_scope_that_is_passed_at_once_has_nothing_inside() -> None:
    def build(scope: Any) -> Any:
        def through(stream: Any) -> Any:
            with scope.region("Door") as door:
                return stream.enter(door).leave()

        return still(scope, through)

    assert "'Map' [2] -> 'Door' [3] -> 'Around' [1]; " in str(build_error(build))


def test_a_loop_in_a_nested_scope_is_named_with_its_scope() -> None:
    def build(scope: Any) -> Any:
        with scope.iterative(name="Box") as inner:
            return still(inner, lambda s: s.exchange()).leave()

    error = build_error(build)
    assert isinstance(error, CycleError)
    assert "a loop of scope 'Box' does not advance time: 'Around' [1] -> " in str(error)


def test_a_loop_advances_if_what_is_inside_a_scope_does() -> None:
    """Outside, too: an operator in there takes records to a later epoch."""

    def build(scope: Any) -> Any:
        def later(stream: Any) -> Any:
            with scope.iterative(name="Later") as inner:
                builder = inner.operator("Next epoch")
                builder.new_input(stream.enter(inner), ps.Pipeline())
                summary = Both(ps.Int.summary(1), ps.Int.summary(0))
                result = builder.new_output(initial=False, summaries=[summary])
                builder.build(lambda capabilities, info: lambda inputs, outputs: None)
                return result.leave()

        return still(scope, later)

    assert collect(build) == []


@pytest.mark.parametrize("barred", [0b000, 0b001])
def test_a_way_that_some_times_never_pass_advances_if_those_that_do_get_later(
    barred: int,
) -> None:
    """Adding a member is an advance only for times that lack it, and the others must not pass."""

    def main(worker: Any) -> None:
        with worker.dataflow(timestamp=Subsets()) as scope:
            loop, again = scope.feedback(Join(0b001, barred), name="Add 0")
            loop.connect(again.map(lambda x: x))

    if barred:
        ps.execute(main)
        return
    with pytest.raises(WorkerError) as caught:
        ps.execute(main)
    assert isinstance(caught.value.__cause__, CycleError)
    assert "'Add 0' [1] -> 'Map' [2] -> 'Add 0' [1]" in str(caught.value)


def test_a_feedback_left_open_is_named_with_all_scopes_around_it() -> None:
    def build(scope: Any) -> Any:
        with scope.iterative(name="Outer") as outer, outer.iterative(name="Inner") as inner:
            return inner.feedback(1, name="Open")[1].leave().leave()

    error = build_error(build)
    assert isinstance(error, FeedbackError)
    where = "feedback 'Open' of scope 'Inner' in scope 'Outer' in scope 'Dataflow'"
    assert f"{where} was never connected" in str(error)
