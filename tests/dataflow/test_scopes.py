"""Scopes, loops and regions, over 1, 2 and 4 workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import (
    BuildError,
    CycleError,
    FeedbackError,
    TimestampError,
    WorkerError,
)
from pointstamp.progress.timestamp import Advance, Both, Timestamp
from pointstamp.testing import collect


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def collatz_lengths(upto: int) -> dict[int, int]:
    """The oracle: the same by a loop."""
    lengths = {}
    for n in range(1, upto):
        x, steps = n, 0
        while x != 1:
            x, steps = (x // 2 if x % 2 == 0 else 3 * x + 1), steps + 1
        lengths[n] = steps
    return lengths


def test_a_loop_in_its_own_scope(workers: int) -> None:
    def build(scope: Any) -> Any:
        start = [(n, n, 0) for n in range(1, 60)] if scope.index == 0 else []
        numbers = scope.to_stream(start)
        with scope.iterative() as inner:
            loop, cycle = inner.feedback(1)
            both = numbers.enter(inner).concat(cycle).exchange(lambda x: x[0])
            done, rest = both.branch(lambda x: x[1] != 1)
            loop.connect(
                rest.map(lambda x: (x[0], x[1] // 2 if x[1] % 2 == 0 else 3 * x[1] + 1, x[2] + 1))
            )
            return done.leave().map(lambda x: (x[0], x[2]))

    assert dict(record for _, record in collect(build, workers)) == collatz_lengths(60)


def test_times_inside_are_pairs_and_leave_as_epochs(workers: int) -> None:
    inside: list[Any] = []

    def main(worker: Any) -> list[Any]:
        outside: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            with scope.iterative() as inner:
                loop, again = inner.feedback(1, limit=3)
                both = stream.enter(inner).concat(again)
                both.inspect_batch(lambda time, batch: inside.append(time))
                loop.connect(both)
                both.leave().inspect_batch(lambda time, batch: outside.append(time))
        for epoch in range(2):
            if worker.index == 0:
                input.send("x")
            input.advance_to(epoch + 1)
        return outside

    found = ps.execute(main, workers=workers, threads=True)[0]
    assert sorted(found) == [0, 0, 0, 1, 1, 1]
    assert sorted(inside) == [(e, r) for e in range(2) for r in range(3)]


def test_loops_three_deep(workers: int) -> None:
    """Each level counts its own rounds: 2 x 3 x 2 arrivals in the innermost scope."""

    def level(scope: Any, stream: Any, limits: list[int]) -> Any:
        if not limits:
            return stream.map(lambda x: x + 1)
        with scope.iterative() as inner:
            loop, again = inner.feedback(1, limit=limits[0])
            body = level(inner, stream.enter(inner).concat(again), limits[1:])
            loop.connect(body)
            return body.leave()

    def build(scope: Any) -> Any:
        return level(scope, scope.to_stream([0] if scope.index == 0 else []), [2, 3, 2])

    # By hand: a body of r rounds gives a record per round from each that enters it.
    def expected(x: int, limits: list[int]) -> list[int]:
        if not limits:
            return [x + 1]
        out: list[int] = []
        entering = [x]
        for _ in range(limits[0]):
            entering = [y for z in entering for y in expected(z, limits[1:])]
            out.extend(entering)
        return out

    assert [r for _, r in collect(build, workers)] == sorted(expected(0, [2, 3, 2]))


def test_an_outer_loop_around_an_inner_one(workers: int) -> None:
    """The inner scope's output leads, outside, back to its own input."""

    def build(scope: Any) -> Any:
        start = scope.to_stream([0] if scope.index == 0 else [])
        with scope.iterative(name="outer") as outer:
            outer_loop, outer_again = outer.feedback(1, limit=4)
            both = start.enter(outer).concat(outer_again)
            with outer.iterative(name="inner") as inner:
                loop, again = inner.feedback(1)
                body = both.enter(inner).concat(again).exchange().map(lambda x: x + 1)
                done, more = body.branch(lambda x: x % 10 != 0)
                loop.connect(more)
                result = done.leave()
            outer_loop.connect(result)
            return result.leave()

    assert [r for _, r in collect(build, workers)] == [10, 20, 30, 40]


def test_a_region_is_a_box_with_the_same_times(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream(range(4) if scope.index == 0 else [])
        with scope.region("box") as box:
            return stream.enter(box).exchange().map(lambda x: x * 10).leave()

    assert collect(build, workers) == [(0, 0), (0, 10), (0, 20), (0, 30)]


def test_a_stream_that_enters_and_leaves_at_once(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([1] if scope.index == 0 else [])
        with scope.iterative() as inner:
            return stream.enter(inner).leave()

    assert collect(build, workers) == [(0, 1)]


def test_a_scope_without_outputs_is_not_complete_while_it_works(workers: int) -> None:
    """Nothing shows outside that records are still going around inside."""
    seen: list[int] = []

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream([0] if worker.index == 0 else [])
            with scope.iterative() as inner:
                loop, again = inner.feedback(1, limit=50)
                both = stream.enter(inner).concat(again).exchange().inspect(seen.append)
                loop.connect(both.map(lambda x: x + 1))
        worker.run()

    ps.execute(main, workers=workers, threads=True)
    assert sorted(seen) == list(range(50))


def test_notifications_in_a_loop_come_round_by_round(workers: int) -> None:
    """Breadth-first levels: each round is complete before it is answered."""
    edges = {0: [1, 2], 1: [3], 2: [3], 3: [4], 4: []}

    def build(scope: Any) -> Any:
        start = scope.to_stream([0] if scope.index == 0 else [])
        with scope.iterative() as inner:
            loop, again = inner.feedback(1)

            def make(capability: Any, info: Any) -> Any:
                seen: set[int] = set()
                arrived: dict[Any, set[int]] = {}

                def logic(input: Any, output: Any, notificator: Any) -> None:
                    for time, batch in input:
                        arrived.setdefault(time.time, set()).update(batch)
                        notificator.notify_at(time.retain())
                    for cap in notificator:
                        new = arrived.pop(cap.time) - seen
                        seen.update(new)
                        with output.session(cap) as session:
                            session.give_many((v, cap.time[1]) for v in new)

                return logic

            both = start.enter(inner).concat(again)
            levels = both.unary_notify(ps.Exchange(), "Levels", make)
            loop.connect(levels.flat_map(lambda pair: edges[pair[0]]))
            return levels.leave()

    assert dict(r for _, r in collect(build, workers)) == {0: 0, 1: 1, 2: 1, 3: 2, 4: 3}


@dataclass(frozen=True)
class EventTime(Timestamp):
    """Pairs (event time, processing time) with a partial order, as a user would write it."""

    name = "EventTime"
    minimum = (0, 0)

    @property
    def identity(self) -> Any:
        return Both(Advance(0), Advance(0))

    def less_equal(self, a: Any, b: Any) -> bool:
        return bool(a[0] <= b[0] and a[1] <= b[1])

    def check(self, time: Any) -> Any:
        if isinstance(time, tuple) and len(time) == 2:
            return time
        raise TimestampError(f"an EventTime is a pair; found {time!r}")

    def summary(self, value: Any) -> Any:
        return value if isinstance(value, Both) else Both(Advance(value[0]), Advance(value[1]))


def test_a_dataflow_with_times_of_the_users(workers: int) -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow(timestamp=EventTime()) as scope:
            input, stream = scope.new_input()
            loop, again = scope.feedback((0, 1), name="retry")
            both = stream.concat(again)
            loop.connect(both.filter(lambda x: x > 0).map(lambda x: x - 1))
            both.exchange().count().inspect_batch(lambda time, batch: out.append((time, batch)))
        if worker.index == 0:
            input.send(2)
        input.advance_to((1, 0))
        if worker.index == 0:
            input.send(1)
        return out

    found = [x for part in ps.execute(main, workers=workers, threads=True) for x in part]
    assert sorted(found) == [((0, 0), [1]), ((0, 1), [1]), ((0, 2), [1]), ((1, 0), [1]),
                             ((1, 1), [1])]  # fmt: skip


def build_error(build: Any) -> BaseException:
    """What building on one worker raises."""
    with pytest.raises(WorkerError) as caught:
        collect(build)
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


def test_a_loop_that_does_not_advance_is_refused_with_its_path() -> None:
    def build(scope: Any) -> Any:
        loop, again = scope.feedback(0, name="Still")
        stream = again.map(lambda x: x)
        loop.connect(stream)
        return stream

    error = build_error(build)
    assert isinstance(error, CycleError)
    assert "'Still'" in str(error)
    assert "'Map'" in str(error)


def test_a_loop_through_a_nested_scope_must_advance_too() -> None:
    """A round of the inner scope does not count outside."""

    def build(scope: Any) -> Any:
        loop, again = scope.feedback(0, name="Around")
        with scope.iterative(name="Nested") as inner:
            inner_loop, inner_again = inner.feedback(1)
            both = again.enter(inner).concat(inner_again)
            inner_loop.connect(both)
            result = both.leave()
        loop.connect(result)
        return result

    error = build_error(build)
    assert isinstance(error, CycleError)
    assert "'Nested'" in str(error)


def test_a_feedback_must_be_connected_once() -> None:
    def never(scope: Any) -> Any:
        return scope.feedback(1, name="Open")[1]

    def twice(scope: Any) -> Any:
        loop, stream = scope.feedback(1, name="Double")
        loop.connect(stream)
        loop.connect(stream)

    for build, word in ((never, "'Open'"), (twice, "'Double'")):
        error = build_error(build)
        assert isinstance(error, FeedbackError)
        assert word in str(error)


def test_streams_stay_in_their_scopes() -> None:
    def without_enter(scope: Any) -> Any:
        with scope.iterative() as inner:
            return scope.to_stream([1]).concat(inner.to_stream([2]))

    def without_leave(scope: Any) -> Any:
        with scope.iterative() as inner:
            stream = scope.to_stream([1]).enter(inner)
        return stream.map(lambda x: x)

    def two_at_once(scope: Any) -> Any:
        with scope.iterative() as inner, inner.iterative() as innermost:
            return scope.to_stream([1]).enter(innermost)

    def leave_the_dataflow(scope: Any) -> Any:
        return scope.to_stream([1]).leave()

    for build in (without_enter, without_leave, two_at_once, leave_the_dataflow):
        assert isinstance(build_error(build), BuildError)


def test_a_scope_whose_times_do_not_fit_is_refused() -> None:
    error = build_error(lambda scope: scope.scoped(ps.Product(ps.Unit, ps.Int)))
    assert isinstance(error, BuildError)
    assert "do not refine" in str(error)


def test_what_is_no_type_of_times_is_refused() -> None:
    for times in (int, ps.Product, "Int", None):
        error = build_error(lambda scope, times=times: scope.scoped(times))
        assert isinstance(error, BuildError)
        assert f"cannot have times of {times!r}, which is no type of times" in str(error)


def test_a_limit_needs_times_that_have_one() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow(timestamp=ps.Unit) as scope:
            scope.feedback((), limit=3)

    with pytest.raises(WorkerError) as caught:
        ps.execute(main)
    assert isinstance(caught.value.__cause__, TimestampError)
