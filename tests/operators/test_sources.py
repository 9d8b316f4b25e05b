"""Sources with code of one's own, inputs open at many times, shared and controlled ones."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import BuildError, CapabilityError, InputError, WorkerError
from pointstamp.testing import collect


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def as_rows(values: list[int]) -> Any:
    return values


def as_columns(values: list[int]) -> Any:
    return pa.RecordBatch.from_pydict({"x": pa.array(values, pa.int64())})


def as_arrays(values: list[int]) -> Any:
    return Arrays(x=np.array(values, dtype=np.int64))


CONTAINERS = [pytest.param(make, id=make.__name__) for make in (as_rows, as_columns, as_arrays)]


def plain(records: Any) -> list[Any]:
    return [record[0] if isinstance(record, tuple) else record for record in records]


def records_of(batch: Any) -> list[Any]:
    return plain(ps.containers.kind_of(batch).records(batch))


# A source with code of one's own.


@pytest.mark.parametrize("make", CONTAINERS)
def test_a_source_sends_what_its_logic_gives_until_it_lets_go(make: Any, workers: int) -> None:
    def build(capability: Any, info: Any) -> Any:
        def logic(output: Any) -> bool:
            with output.session(capability) as session:
                session.give_batch(make([10 * capability.time + info.index]))
            capability.downgrade(capability.time + 1)
            if capability.time == 3:
                capability.drop()
            return bool(capability.live)

        return logic

    found = collect(lambda scope: scope.source(build), workers)
    times = [time for time, _ in found]
    assert times == sorted([0, 1, 2] * workers)
    assert plain(record for _, record in found) == sorted(
        10 * time + index for time in range(3) for index in range(workers)
    )


def test_a_source_runs_only_when_it_is_asked_to() -> None:
    def main(worker: Any) -> list[int]:
        calls: list[int] = []
        kept: dict[str, Any] = {}

        def build(capability: Any, info: Any) -> Any:
            kept.update(capability=capability, activate=info.activate)
            return lambda output: calls.append(len(calls))

        with worker.dataflow() as scope:
            scope.source(build)
        while worker.has_work:
            worker.step()
        counts = [len(calls)]
        for _ in range(5):
            worker.step()
        counts.append(len(calls))
        kept["activate"]()
        worker.step()
        counts.append(len(calls))
        kept.pop("capability").drop()
        return counts

    assert ps.execute(main) == [[1, 1, 2]]


# An input that is open at many times.


def many_times(worker: Any, make: Any, seed: int) -> list[tuple[int, list[int]]]:
    """Sends at times in random order, and checks that none is passed that it holds."""
    found = []
    with worker.dataflow() as scope:
        (input, first), stream = scope.unordered_input()
        key = "x" if make is not as_rows else None
        probe = (
            stream.exchange(key)
            .inspect_batch(lambda time, batch: found.append((time, records_of(batch))))
            .probe()
        )
    open_ = {time: first.delayed(time) for time in range(12)}
    first.drop()
    order = list(open_)
    random.Random(f"{seed} {worker.index}").shuffle(order)
    for time in order:
        assert all(probe.less_equal(other) for other in open_)
        with open_.pop(time) as capability:
            session = input.session(capability)
            session.give_batch(make([100 * time + worker.index]))
            worker.step()
            session.give_batch(make([100 * time + 50 + worker.index]))
        worker.step()
    worker.step_while(lambda: not probe.done)
    return found


def check_many_times(results: list[list[tuple[int, list[int]]]]) -> None:
    n = len(results)
    found = [(time, x) for result in results for time, batch in result for x in batch]
    assert sorted(found) == sorted(
        (time, 100 * time + 50 * half + index)
        for time in range(12)
        for half in range(2)
        for index in range(n)
    )


@pytest.mark.parametrize("make", CONTAINERS)
def test_an_unordered_input_is_open_at_many_times(make: Any, workers: int) -> None:
    check_many_times(ps.execute(many_times, make, 1, workers=workers, threads=True))


@pytest.mark.parametrize("seed", range(10))
def test_an_unordered_input_holds_back_exactly_its_capabilities(seed: int) -> None:
    check_many_times(ps.simulate(many_times, as_rows, seed, workers=1 + seed % 4, seed=seed))


def test_an_unordered_input_sends_with_its_own_live_capabilities_only() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            (one, cap), _ = scope.unordered_input("one")
            (two, other), _ = scope.unordered_input("two")
        with pytest.raises(CapabilityError, match="with a capability for output 0 of operator 'o"):
            two.send(cap, 1)
        with pytest.raises(CapabilityError, match="is not at or after 3"):
            cap.delayed(3).delayed(2)
        session = one.session(cap)
        cap.drop()
        other.drop()
        with pytest.raises(CapabilityError, match="it was dropped"):
            session.give(1)
        with pytest.raises(CapabilityError, match="it was dropped"):
            one.send(cap, 1)

    ps.execute(main)


def test_capabilities_that_main_forgot_are_let_go_when_it_returns() -> None:
    def main(worker: Any) -> int:
        with worker.dataflow() as scope:
            (input, capability), stream = scope.unordered_input()
            stream.probe()
        input.send(capability, 1)
        return 7

    assert ps.execute(main, workers=2, threads=True) == [7, 7]


def test_an_operator_may_answer_through_an_unordered_input() -> None:
    """The capability is dropped in the middle of `run`, by whoever knows that it is the last."""

    def main(worker: Any) -> list[int]:
        seen: list[int] = []
        kept: list[Any] = []

        def answer(x: int) -> None:
            seen.append(x)
            if x < 5:
                kept[0].send(kept[1], x + 1)
            else:
                kept[1].drop()

        with worker.dataflow() as scope:
            (input, capability), answers = scope.unordered_input()
            kept.extend([input, capability])
            scope.to_stream([0]).concat(answers).inspect(answer)
        worker.run()
        return seen

    assert ps.execute(main) == [[0, 1, 2, 3, 4, 5]]


# A sink.


@pytest.mark.parametrize("make", CONTAINERS)
def test_a_sink_sees_all_records_and_then_the_end(make: Any, workers: int) -> None:
    def main(worker: Any) -> list[Any]:
        seen: list[Any] = []

        def logic(input: Any) -> None:
            for time, batch in input:
                assert input.frontier.less_equal(time.time)
                seen.extend((time.time, x) for x in records_of(batch))
            if input.frontier.is_empty():
                seen.append("end")

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            key = "x" if make is not as_rows else None
            stream.sink(ps.Exchange(key), "Sink", logic)
        for time in range(3):
            input.send_batch(make([10 * time + worker.index]))
            input.advance_to(time + 1)
        input.close()
        worker.run()
        assert seen.pop() == "end"
        assert "end" not in seen
        return seen

    found = ps.execute(main, workers=workers, threads=True)
    assert sorted(item for seen in found for item in seen) == [
        (time, 10 * time + index) for time in range(3) for index in range(workers)
    ]


def test_an_error_in_a_sink_names_it_and_the_time() -> None:
    def main(worker: Any) -> None:
        def logic(input: Any) -> None:
            for _, batch in input:
                raise KeyError(batch[0])

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.sink(ps.Pipeline(), "Broken", logic)
        input.advance_to(4)
        input.send("seven")
        input.close()
        worker.run()

    with pytest.raises(WorkerError, match="operator 'Broken' failed at time 4: KeyError"):
        ps.execute(main)


def test_what_makes_the_logic_of_a_sink_is_refused_in_place_of_it() -> None:
    def run(logic: Any) -> None:
        def main(worker: Any) -> None:
            with worker.dataflow() as scope:
                scope.to_stream([1]).sink(ps.Pipeline(), "Made", logic)
            worker.run()

        ps.execute(main)

    with pytest.raises(WorkerError, match=r"'Made' is given .*takes the logic itself"):
        run(lambda info: lambda input: None)  # its records were never read, and nothing ended
    with pytest.raises(WorkerError, match=r"'Made' calls its function with \(input\)"):
        run(lambda capability, info: lambda input: None)


# Sources that read on only as fast as the computation keeps up.


def read_ahead(worker: Any, make: Any, ahead: int, n_times: int) -> tuple[list[int], int]:
    """What came, and how many times were incomplete at most when something was sent."""
    found, most = [], 0
    probe = ps.Probe()

    def note(time: int, batch: Any) -> None:
        nonlocal most
        most = max(most, sum(probe.less_equal(earlier) for earlier in range(time + 1)))
        found.extend(records_of(batch))

    with worker.dataflow() as scope:
        batches = ((2 * time, make([time])) for time in range(n_times))
        numbers = scope.flow_controlled(batches, probe, ahead).inspect_batch(note)
        numbers.exchange("x" if make is not as_rows else None).count().probe_with(probe)
    worker.run()
    return found, most


@pytest.mark.parametrize("make", CONTAINERS)
@pytest.mark.parametrize("ahead", [1, 2, 7])
def test_a_controlled_source_runs_so_far_ahead_and_no_further(
    make: Any, ahead: int, workers: int
) -> None:
    for found, most in ps.execute(read_ahead, make, ahead, 20, workers=workers, threads=True):
        assert found == list(range(20))
        assert most <= ahead


@pytest.mark.parametrize("seed", range(10))
def test_a_controlled_source_keeps_its_bound_whatever_the_order(seed: int) -> None:
    workers, ahead = 1 + seed % 4, 1 + seed % 5
    for found, most in ps.simulate(read_ahead, as_rows, ahead, 12, workers=workers, seed=seed):
        assert found == list(range(12))
        assert most <= ahead


def held_source(worker: Any, source: Any) -> list[list[int]]:
    """What `source(scope, probe)` sends while all is held at time 0, and after that."""
    sent: list[int] = []
    kept: list[Any] = []
    probe = ps.Probe()

    def build(capability: Any, info: Any) -> Any:
        kept.append(capability)

        def logic(input: Any, output: Any) -> None:
            for _, batch in input:
                sent.extend(batch)

        return logic

    with worker.dataflow() as scope:
        source(scope, probe).unary(ps.Pipeline(), "Slow", build).probe_with(probe)
    parts = []
    for _ in range(2):
        while worker.has_work:
            worker.step()
        parts.append(list(sent))
        for capability in kept:
            capability.downgrade(2)
    for capability in kept:
        capability.drop()
    worker.run()
    return [*parts, sent]


def test_a_controlled_source_does_not_run_while_it_waits() -> None:
    """`step` says that there is nothing to do, and the source has sent what it may."""

    def source(scope: Any, probe: Any) -> Any:
        return scope.flow_controlled(((time, [time]) for time in range(9)), probe, ahead=3)

    assert ps.execute(held_source, source) == [[[0, 1, 2], [0, 1, 2, 3, 4], list(range(9))]]


def test_an_iterator_source_is_not_asked_before_its_target_is_reached() -> None:
    asked: list[int] = []

    def source(scope: Any, probe: Any) -> Any:
        def read(time: int) -> Any:
            asked.append(time)
            if time == 4:
                return None
            return ps.Reading([(time, [time])], target=time, lower_bound=time + 1)

        return scope.iterator_source(read, probe)

    # It sends 0; at 1 it may read (nothing has to be complete); then 1 has to be reached.
    assert ps.execute(held_source, source) == [[[0, 1], [0, 1, 2, 3], [0, 1, 2, 3]]]
    assert asked == [0, 1, 2, 3, 4]


def test_an_iterator_source_has_times_of_any_type(workers: int) -> None:
    def main(worker: Any) -> list[Any]:
        found: list[Any] = []
        probe = ps.Probe()
        with worker.dataflow(timestamp=ps.Product(ps.Int, ps.Int)) as scope:
            readings = iter([(0, 0), (0, 2), (1, 2), (3, 2)])

            def read(time: Any) -> Any:
                for at in readings:
                    return ps.Reading([(at, [at])], target=time)
                return None

            stream = scope.iterator_source(read, probe)
            stream.inspect(found.append).exchange(lambda x: x[0]).probe_with(probe)
        worker.run()
        return found

    for found in ps.execute(main, workers=workers, threads=True):
        assert found == [(0, 0), (0, 2), (1, 2), (3, 2)]


def test_a_source_cannot_go_back() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.flow_controlled([(3, ["a"]), (2, ["b"])], ps.Probe())
        worker.run()

    with pytest.raises(WorkerError, match="cannot downgrade its capability from 3 to 2"):
        ps.execute(main)


@pytest.mark.parametrize(
    ("timestamp", "ahead", "words"),
    [(ps.Product(ps.Int, ps.Int), 1, "iterator_source"), (ps.Int, 0, "would never send")],
)
def test_a_bound_that_means_nothing_is_refused(timestamp: Any, ahead: int, words: str) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow(timestamp=timestamp) as scope:
            scope.flow_controlled([], ps.Probe(), ahead)

    with pytest.raises(WorkerError, match=words) as caught:
        ps.execute(main)
    assert isinstance(caught.value.__cause__, BuildError)


# An input that feeds several dataflows.


def shared(worker: Any, make: Any) -> list[list[tuple[int, int]]]:
    """Three dataflows on one input; the last begins at time 2."""
    found: list[list[tuple[int, int]]] = [[], [], []]
    input = ps.SharedInput()
    probe = ps.Probe()

    def build(number: int) -> None:
        def note(time: int, batch: Any) -> None:
            found[number].extend((time, x) for x in records_of(batch))

        with worker.dataflow(f"flow {number}") as scope:
            key = "x" if make is not as_rows else None
            input.to_stream(scope).exchange(key).inspect_batch(note).probe_with(probe)

    build(0)
    build(1)
    for time in range(4):
        if time == 2:
            build(2)
        input.send_batch(make([10 * time + worker.index]))
        input.advance_to(time + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    input.close()
    worker.run()
    assert probe.done
    return found


def check_shared(results: list[list[list[tuple[int, int]]]]) -> None:
    n = len(results)
    for number, first in enumerate((0, 0, 2)):
        found = sorted(item for result in results for item in result[number])
        assert found == [(t, 10 * t + index) for t in range(first, 4) for index in range(n)]


@pytest.mark.parametrize("make", CONTAINERS)
def test_an_input_feeds_several_dataflows(make: Any, workers: int) -> None:
    check_shared(ps.execute(shared, make, workers=workers, threads=True))


@pytest.mark.parametrize("seed", range(10))
def test_an_input_feeds_several_dataflows_whatever_the_order(seed: int) -> None:
    check_shared(ps.simulate(shared, as_rows, workers=1 + seed % 4, seed=seed))


def test_a_shared_input_says_what_is_wrong() -> None:
    def main(worker: Any) -> None:
        input = ps.SharedInput(name="numbers")
        input.send("to nobody")
        with worker.dataflow() as scope:
            input.to_stream(scope)
        with (
            pytest.raises(BuildError, match=r"has times of .*make an input for each type"),
            worker.dataflow(timestamp=ps.Product(ps.Int, ps.Int)) as scope,
        ):
            input.to_stream(scope)
        input.advance_to(3)
        with pytest.raises(InputError, match="'numbers' is at 3 and cannot go back to 2"):
            input.advance_to(2)
        with pytest.raises(InputError, match="still open, at 3"):
            worker.run()
        input.close()
        input.close()
        with pytest.raises(InputError, match="is closed and cannot send"):
            input.send(1)
        worker.run()

    ps.execute(main)


def test_a_dataflow_whose_making_failed_hears_nothing_of_a_shared_input() -> None:
    def main(worker: Any) -> list[int]:
        seen: list[int] = []
        input = ps.SharedInput()
        with contextlib.suppress(KeyError), worker.dataflow() as scope:
            input.to_stream(scope).inspect(seen.append)
            raise KeyError
        with worker.dataflow() as scope:
            input.to_stream(scope).inspect(seen.append)
        input.send(1)
        input.close()
        worker.run()
        return seen

    assert ps.execute(main) == [[1]]
