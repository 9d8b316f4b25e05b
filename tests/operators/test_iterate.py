"""Loops with a condition: all rounds, all workers, and what they report and warn of."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import BuildError, FeedbackError, LoopWarning, WorkerError
from pointstamp.operators.iterate import Round
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle, collect
from tests.conftest import shared_out
from tests.simulation.moments import EventProcessing, Moment

NUMBERS = [1, 6, 7, 27, 40, 97]


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


# What the body does, on rows and on columns: halve what is at least a bound.


def halve_rows(batch: list[int]) -> list[int]:
    return [x // 2 if x >= 5 else x for x in batch]


def halve_arrays(batch: Arrays) -> Arrays:
    return Arrays(x=np.where(batch["x"] >= 5, batch["x"] // 2, batch["x"]))


def halve_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    x = batch.column("x")
    return pa.record_batch({"x": pc.if_else(pc.greater_equal(x, 5), pc.divide(x, 2), x)})


FORMS = {
    "rows": (lambda xs: [*xs], None, halve_rows, sum),
    "arrays": (
        lambda xs: Arrays(x=np.array(xs, np.int64)),
        "x",
        halve_arrays,
        lambda batch: int(batch["x"].sum()),
    ),
    "columns": (
        lambda xs: pa.record_batch({"x": pa.array(xs, pa.int64())}),
        "x",
        halve_columns,
        lambda batch: pc.sum(batch.column("x")).as_py(),
    ),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Any:
    return FORMS[request.param]


def numbers(scope: Any, form: Any, values: list[int] = NUMBERS) -> Any:
    """All numbers, on worker 0."""
    return scope.batches_to_stream([form[0](values)] if scope.index == 0 else [])


def halving(form: Any) -> Any:
    """The body."""
    return lambda stream: stream.exchange(form[1]).map_batches(form[2])


def plain(found: list[tuple[Any, Any]]) -> list[tuple[Any, int]]:
    """With the number for a record of one column."""
    return [(time, x[0] if isinstance(x, tuple) else int(x)) for time, x in found]


def halved(values: list[int], rounds: int) -> list[int]:
    """The oracle: so many rounds by a loop."""
    for _ in range(rounds):
        values = halve_rows(values)
    return sorted(values)


def test_without_a_condition_it_goes_on_until_nothing_changes(workers: int, form: Any) -> None:
    def build(scope: Any) -> Any:
        return numbers(scope, form).iterate(halving(form))

    # 97 takes longest: 48, 24, 12, 6, 3.
    assert plain(collect(build, workers)) == [(0, x) for x in halved(NUMBERS, 5)]


def test_a_condition_on_records_has_to_hold_for_all(workers: int, form: Any) -> None:
    """Those that are small in round 1 already go on until the last one is."""
    condition = pc.field("x") < 30 if form[2] is halve_columns else _below_30

    def build(scope: Any) -> Any:
        return numbers(scope, form).iterate(halving(form), until=condition)

    # In round 0 40 and 97 are not below 30; in round 1, 48 is not; in round 2 all are.
    assert plain(collect(build, workers)) == [(0, x) for x in halved(NUMBERS, 2)]


def _below_30(record: Any) -> bool:
    return bool((record[0] if isinstance(record, tuple) else record) < 30)


def test_a_condition_on_what_is_measured_is_of_all_workers(workers: int, form: Any) -> None:
    """The sums are 178, then 1+3+3+13+20+48 = 88, then 1+3+3+6+10+24 = 47."""

    def build(scope: Any) -> Any:
        return numbers(scope, form).iterate(
            halving(form), measure=form[3], until=lambda total: total < 50
        )

    assert plain(collect(build, workers)) == [(0, x) for x in halved(NUMBERS, 2)]


def test_values_are_put_together_as_one_says(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream(NUMBERS if scope.index == 0 else []).exchange()
        return stream.iterate(
            lambda s: s.map_batches(halve_rows),
            measure=max,
            combine=max,
            until=lambda greatest: greatest < 20,
        )

    assert [x for _, x in collect(build, workers)] == halved(NUMBERS, 3)  # 97: 48, 24, 12


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_at_the_limit_what_there_is_leaves(workers: int, limit: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream(NUMBERS if scope.index == 0 else [])
        return stream.iterate(lambda s: s.exchange().map_batches(halve_rows), limit=limit)

    assert [x for _, x in collect(build, workers)] == halved(NUMBERS, limit)


def test_a_condition_that_holds_at_first_applies_no_body(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([1, 2] if scope.index == 0 else [])
        return stream.iterate(lambda s: s.map(_never), until=lambda x: x < 3)

    assert collect(build, workers) == [(0, 1), (0, 2)]


def _never(x: Any) -> Any:
    raise AssertionError("the body is not to run")


def test_it_ends_when_nothing_goes_round(workers: int) -> None:
    rounds: list[Round] = []

    def build(scope: Any) -> Any:
        stream = scope.to_stream([1, 2, 5] if scope.index == 0 else []).exchange()
        return stream.iterate(
            lambda s: s.exchange().flat_map(lambda x: [x - 1] if x else []),
            until=lambda x: False,
            report=rounds.append if scope.index == 0 else None,
        )

    assert collect(build, workers) == []
    assert [round.n_records for round in rounds] == [3, 3, 2, 1, 1, 1, 0]
    assert [round.is_last for round in rounds] == [False] * 6 + [True]


def test_without_records_there_is_no_round(workers: int) -> None:
    rounds: list[Round] = []

    def build(scope: Any) -> Any:
        return scope.to_stream([]).iterate(lambda s: s, report=rounds.append)

    assert collect(build, workers) == []
    assert rounds == []


def test_records_that_change_places_are_unchanged(workers: int) -> None:
    """Two records that become each other are, together, what they were."""

    def build(scope: Any) -> Any:
        stream = scope.to_stream([0, 1, 1, 0] if scope.index == 0 else [])
        return stream.iterate(lambda s: s.exchange().map(lambda x: 1 - x))

    assert collect(build, workers) == [(0, 0), (0, 0), (0, 1), (0, 1)]


def test_the_same_records_more_often_are_changed(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([7] if scope.index == 0 else [])
        return stream.iterate(lambda s: s.flat_map(lambda x: [x, x]), limit=3)

    assert collect(build, workers) == [(0, 7)] * 8


def test_a_report_is_of_all_workers_and_on_each(workers: int) -> None:
    def main(worker: Any) -> list[Round]:
        rounds: list[Round] = []
        with worker.dataflow() as scope:
            stream = scope.to_stream([worker.index + 1] if worker.index < 2 else [])
            stream.iterate(
                lambda s: s.exchange().map(lambda x: 2 * x),
                measure=sum,
                until=lambda total: total > 10,
                report=rounds.append,
            )
        return rounds

    n = min(workers, 2)
    total = n * (n + 1) // 2  # 1, or 1 + 2
    sums = [total << round for round in range(5) if round == 0 or total << (round - 1) <= 10]
    expected = [
        Round(0, round, n, value, round == len(sums) - 1) for round, value in enumerate(sums)
    ]
    assert ps.execute(main, workers=workers, threads=True) == [expected] * workers


def test_each_epoch_has_rounds_of_its_own(workers: int) -> None:
    """A long loop does not hold up the one after it, and neither is counted to the other."""
    starts = {0: [40, 3], 1: [5], 2: [97, 6, 7]}

    def main(worker: Any) -> Any:
        out: list[Any] = []
        rounds: list[Round] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            result = stream.iterate(
                lambda s: s.exchange().map_batches(halve_rows), report=rounds.append
            )
            probe = result.inspect_batch(lambda t, batch: out.extend((t, x) for x in batch)).probe()
        for epoch, values in starts.items():
            for value in values if worker.index == 0 else []:
                input.send(value)
            input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))
        return out, rounds

    found = ps.execute(main, workers=workers, threads=True)
    expected = [(epoch, x) for epoch in starts for x in halved(starts[epoch], 9)]
    assert sorted(x for out, _ in found for x in out) == expected
    last = {round.time: round.round for round in found[0][1] if round.is_last}
    # 40: 20, 10, 5, 2 and the same again; 5: 2 and again; 97: 48, 24, 12, 6, 3 and again.
    assert last == {0: 5, 1: 2, 2: 6}


def watched(main: Any, workers: int, seed: int) -> list[Any]:
    """Under the oracle: safe, live, and nothing left."""
    with Oracle() as oracle:
        simulation = Simulation(workers, Schedule(seed), observe=oracle.observe)
        results = simulation.run(main)
        oracle.check_end(simulation)
    return results


@pytest.mark.parametrize("seed", shared_out(3, range(12)))
def test_workers_agree_on_any_schedule(workers: int, seed: int) -> None:
    """Each stops in the same round, though their own records are done at different ones."""

    def main(worker: Any) -> Any:
        out: list[Any] = []
        rounds: list[Round] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.iterate(
                lambda s: s.exchange().map(lambda x: max(x - 3, 0)),
                until=lambda x: x < 4,
                report=rounds.append,
            ).inspect_batch(lambda time, batch: out.extend((time, x) for x in batch))
        for epoch in range(2):
            for x in range(worker.index, 20, worker.peers):
                input.send(x)
            input.advance_to(epoch + 1)
        return out, rounds

    found = watched(main, workers, seed)
    # 19 is below 4 after six rounds.
    expected = [(epoch, max(x - 18, 0)) for epoch in range(2) for x in range(20)]
    assert sorted(x for out, _ in found for x in out) == sorted(expected)
    assert all(sorted(rounds) == sorted(found[0][1]) for _, rounds in found)


@pytest.mark.parametrize("seed", shared_out(3, range(12)))
def test_workers_agree_on_sums_that_depend_on_their_order(seed: int) -> None:
    """1e16 + 1 - 1e16 is 0 or 1 as one adds up: not the same in each run, but on all workers."""

    def main(worker: Any) -> Any:
        rounds: list[Round] = []
        out: list[Any] = []
        with worker.dataflow() as scope:
            stream = scope.to_stream([[1e16, 1.0, -1e16, 0.5][worker.index]])
            stream.iterate(
                lambda s: s.exchange().map(lambda x: x),
                measure=sum,
                until=lambda total: total == 1.5,
                limit=6,
                report=rounds.append,
            ).inspect(out.append)
        return rounds, out

    found = watched(main, 4, seed)
    assert all(rounds == found[0][0] for rounds, _ in found)
    assert Counter(x for _, out in found for x in out) == Counter([1e16, 1.0, -1e16, 0.5])


def test_loops_in_loops(workers: int) -> None:
    """Each outer round ends its inner loop: to 1 by halving, then up by as much again."""

    def build(scope: Any) -> Any:
        def outer(s: Any) -> Any:
            halves = s.iterate(lambda t: t.exchange().map(lambda x: (x[0], max(x[1] // 2, 1))))
            return halves.map(lambda x: (x[0] + 1, 10 * x[1] + x[0]))

        stream = scope.to_stream([(0, 9), (0, 4)] if scope.index == 0 else [])
        return stream.iterate(outer, until=lambda x: x[0] == 3)

    # Halved to 1 each time; then 10, 11, and at last 12.
    assert collect(build, workers) == [(0, (3, 12)), (0, (3, 12))]


def test_times_around_it_may_be_of_the_users(workers: int) -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow(timestamp=EventProcessing()) as scope:
            input, stream = scope.new_input()
            stream.iterate(lambda s: s.exchange().map_batches(halve_rows)).inspect_batch(
                lambda time, batch: out.extend((time.event, time.processing, x) for x in batch)
            )
        for time, x in ((Moment(0, 0), 97), (Moment(0, 2), 5), (Moment(3, 2), 40)):
            input.advance_to(time)
            if worker.index == 0:
                input.send(x)
        return out

    found = [x for out in watched(main, workers, 3) for x in out]
    assert sorted(found) == [(0, 0, 3), (0, 2, 2), (3, 2, 2)]


# Loops that run too long.


def test_a_loop_far_beyond_what_is_expected_warns_each_time_that_it_doubles() -> None:
    def build(scope: Any) -> Any:
        return scope.to_stream([0]).iterate(
            lambda s: s.map(lambda x: x + 1), until=lambda x: x == 50, expect=5, name="Counting"
        )

    with pytest.warns(LoopWarning) as caught:
        assert collect(build) == [(0, 50)]
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 3
    for message, far in zip(messages, (10, 20, 40), strict=True):
        assert f"after {far}," in message
    assert "scope 'Counting' in scope 'Dataflow'" in messages[0]
    assert "5 times" in messages[0]


def test_a_loop_within_twice_what_is_expected_does_not_warn(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([0] if scope.index == 0 else [])
        return stream.iterate(lambda s: s.map(lambda x: x + 1), until=lambda x: x == 10, expect=5)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert collect(build, workers) == [(0, 10)]


def test_a_feedback_may_expect_too() -> None:
    def build(scope: Any) -> Any:
        loop, again = scope.feedback(2, name="Back", expect=3)
        result = scope.to_stream([0]).concat(again)
        loop.connect(result.filter(lambda x: x < 8).map(lambda x: x + 1))
        return result

    # Times go up to 16; more than 6 is far beyond 3, and so is more than 12.
    with pytest.warns(LoopWarning, match="feedback 'Back' of scope 'Dataflow' was") as caught:
        assert len(collect(build)) == 9
    assert len(caught) == 2


@pytest.mark.parametrize("expect", [0, -1])
def test_what_is_expected_is_at_least_one_round(expect: int) -> None:
    error = build_error(lambda scope: scope.to_stream([1]).iterate(lambda s: s, expect=expect))
    assert isinstance(error, FeedbackError)
    assert f"cannot expect {expect} rounds" in str(error)


# Misuse.


def build_error(build: Any) -> BaseException:
    """What building on one worker raises."""
    with pytest.raises(WorkerError) as caught:
        collect(build)
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limit": -1}, "limit of -1"),
        ({"until": 3}, "until=3"),
        ({"measure": sum}, "until=None"),
        ({"measure": sum, "until": 7}, "until=7"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_when_it_is_built(options: Any, words: str) -> None:
    error = build_error(
        lambda scope: scope.to_stream([1]).iterate(lambda s: s, name="Mine", **options)
    )
    assert isinstance(error, BuildError)
    assert "loop 'Mine'" in str(error)
    assert words in str(error)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda stream, outside: None, "it gave None"),
        (lambda stream, outside: outside, "one of scope 'Dataflow'"),
    ],
)
def test_a_body_that_gives_something_else_is_refused(body: Any, words: str) -> None:
    def build(scope: Any) -> Any:
        start = scope.to_stream([1])
        return start.iterate(lambda stream: body(stream, start), name="Mine")

    error = build_error(build)
    assert isinstance(error, BuildError)
    assert "the body of loop 'Mine'" in str(error)
    assert words in str(error)


def test_a_condition_that_fails_is_blamed_with_its_time(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream(["a"] if scope.index == 0 else [])
        return stream.iterate(lambda s: s.map(lambda x: x), until=lambda x: x < 1)

    with pytest.raises(WorkerError) as caught:
        collect(build, workers)
    assert caught.value.operator == "Measure"
    assert "operator 'Measure' failed at time (0, 0)" in str(caught.value)
