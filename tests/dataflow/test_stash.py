"""What has come of each time, until that is complete."""

from __future__ import annotations

from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import CapabilityError, WorkerError
from pointstamp.testing import collect


def totals(make: Any = list, **options: Any) -> Any:
    """Sends the sum of each time's numbers, and how many times are held then."""

    def build(capability: Any, info: Any) -> Any:
        stash: Any = ps.Stash(info, make, **options)

        def logic(input: Any, output: Any) -> None:
            for time, batch in input:
                stash.add(time, batch)
            for cap, batches in stash:
                output.session(cap).give(sum(map(sum, batches)))

        return logic

    return build


@pytest.mark.parametrize("seed", range(5))
def test_each_time_is_given_out_once_when_it_is_complete(seed: int) -> None:
    def build(scope: Any) -> Any:
        numbers = scope.to_stream(range(30)).delay(lambda x, time: x % 7)
        return numbers.unary_frontier(ps.Exchange(lambda x: 0), "Totals", totals())

    expected = [(t, 3 * sum(x for x in range(30) if x % 7 == t)) for t in range(7)]
    assert collect(build, workers=3, seed=seed) == expected


def test_times_in_a_partial_order_do_not_wait_for_each_other() -> None:
    def main(worker: ps.Worker) -> Any:
        seen: list[Any] = []
        with worker.dataflow(timestamp=ps.Product(ps.Int, ps.Int)) as scope:
            (input, least), stream = scope.unordered_input()
            made = stream.unary_frontier(ps.Pipeline(), "Totals", totals())
            made.inspect_time(lambda time, total: seen.append((time, total)))
        with least:
            left, right = least.delayed((0, 1)), least.delayed((1, 0))
        input.send(left, 1)
        input.send(right, 2)
        right.drop()
        worker.step_while(lambda: not seen)
        now = list(seen)
        left.drop()
        worker.run()
        return now, seen

    [(now, seen)] = ps.execute(main)
    assert now == [((1, 0), 2)]
    assert seen == [((1, 0), 2), ((0, 1), 1)]


def test_what_is_given_out_early_may_come_again() -> None:
    def main(worker: ps.Worker) -> Any:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            made = stream.unary_frontier(ps.Pipeline(), "Totals", totals(early=True))
            made.inspect_time(lambda time, total: seen.append((time, total)))
        for number in (1, 2):
            input.send(number)
            for _ in range(5):
                worker.step()
        return seen

    assert ps.execute(main) == [[(0, 1), (0, 2)]]


def test_a_value_for_a_later_time_waits_for_that() -> None:
    def build(capability: Any, info: Any) -> Any:
        stash: Any = ps.Stash(info)

        def logic(input: Any, output: Any) -> None:
            for time, batch in input:
                for x in batch:
                    stash.add(time, x, time.time + x)
            for cap, numbers in stash:
                output.session(cap).give(numbers)

        return logic

    def later(scope: Any) -> Any:
        return scope.to_stream([5, 3, 5]).unary_frontier(ps.Pipeline(), "Later", build)

    assert collect(later) == [(3, [3]), (5, [5, 5])]


def test_capabilities_of_several_outputs_are_held_and_dropped() -> None:
    def make_logic(capabilities: Any, info: Any) -> Any:
        stash: Any = ps.Stash(info, n_outputs=2)

        def logic(inputs: Any, outputs: Any) -> None:
            for time, batch in inputs[0]:
                stash.add(time, batch)
            for rights, batches in stash.by_output():
                for output, right in zip(outputs, rights, strict=True):
                    output.session(right).give(len(batches[0]))

        return logic

    def build(scope: Any) -> Any:
        builder = scope.operator("Twice")
        builder.new_input(scope.to_stream("abc"), ps.Pipeline())
        left, right = builder.new_output(initial=False), builder.new_output(initial=False)
        builder.build(make_logic)
        return left.concat(right)

    assert collect(build) == [(0, 3), (0, 3)]


def test_an_error_is_of_the_time_that_was_given_out() -> None:
    def build(capability: Any, info: Any) -> Any:
        stash: Any = ps.Stash(info)

        def logic(input: Any, output: Any) -> None:
            for time, batch in input:
                stash.add(time, batch)
            for cap, _ in stash:
                if cap.time == 2:
                    raise ValueError("no")

        return logic

    def failing(scope: Any) -> Any:
        late = scope.to_stream(range(4)).delay(lambda x, time: x)
        return late.unary_frontier(ps.Pipeline(), "Failing", build)

    with pytest.raises(WorkerError, match="operator 'Failing' failed at time 2: ValueError"):
        collect(failing)


def test_an_earlier_time_is_refused() -> None:
    def build(capability: Any, info: Any) -> Any:
        stash: Any = ps.Stash(info)

        def logic(input: Any, output: Any) -> None:
            for time, batch in input:
                stash.add(time, batch, time.time - 1)

        return logic

    def earlier(scope: Any) -> Any:
        later = scope.to_stream([1]).delay(lambda x, time: 3)
        return later.unary_frontier(ps.Pipeline(), "Earlier", build)

    with pytest.raises(WorkerError) as caught:
        collect(earlier)
    assert isinstance(caught.value.__cause__, CapabilityError)
