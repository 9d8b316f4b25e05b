"""What an operator's ports have to do with each other, and operators that ask to go on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import BuildError, CapabilityError, CycleError, WorkerError
from pointstamp.testing import collect
from tests.dataflow.carried import RUNS, Run, over_runs, settle


def two_by_two(scope: Any, streams: Any, *, inputs_last: bool) -> list[Any]:
    """An operator that sends its first input to its first output, its second to its second."""
    builder = scope.operator("Two by two")
    if inputs_last:
        results = [builder.new_output(initial=False) for _ in range(2)]
        builder.new_input(streams[0], ps.Exchange(), summaries=[0, None])
        builder.new_input(streams[1], ps.Exchange(), summaries=[None, 3])
    else:
        for stream in streams:
            builder.new_input(stream, ps.Exchange())
        results = [
            builder.new_output(initial=False, summaries=[0, None]),
            builder.new_output(initial=False, summaries=[None, 3]),
        ]

    def make_logic(capabilities: Any, info: Any) -> Any:
        assert capabilities == []

        def logic(inputs: Any, outputs: Any) -> None:
            for port in range(2):
                for time, batch in inputs[port]:
                    with time.retain(port) as cap, outputs[port].session(cap) as session:
                        session.give_batch(batch)

        return logic

    builder.build(make_logic)
    return results


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([None, None, {}, "each"])), max_size=12))
def test_ports_have_the_ways_that_were_said_and_else_all(ports: list[tuple[bool, Any]]) -> None:
    """Ports in any order; of each is said nothing, that it has no way, or one to each so far."""
    expected: set[tuple[int, int]] = set()

    def main(worker: Any) -> list[dict[int, Any]]:
        with worker.dataflow() as scope:
            stream = scope.to_stream([])
            builder = scope.operator("Any")
            counts = [0, 0]
            for is_input, said in ports:
                own, others = counts[not is_input], counts[is_input]
                ways = [0] * others if said == "each" else said
                if is_input:
                    builder.new_input(stream, ps.Pipeline(), summaries=ways)
                else:
                    builder.new_output(summaries=ways, initial=False)
                if said != {}:
                    expected.update((own, i) if is_input else (i, own) for i in range(others))
                counts[not is_input] += 1
            builder.build(lambda capabilities, info: lambda inputs, outputs: None)
        (drawn,) = [each for each in scope.subgraph.topology.nodes if each.name == "Any"]
        return drawn.summaries

    (found,) = ps.execute(main)
    assert {(input_, output) for input_, row in enumerate(found) for output in row} == expected
    assert all([*paths] == [ps.Int.identity] for row in found for paths in row.values())


@pytest.mark.parametrize("inputs_last", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_port_that_is_not_connected_holds_nothing_back(workers: int, inputs_last: bool) -> None:
    def main(worker: Any) -> list[Any]:
        with worker.dataflow() as scope:
            first, one = scope.new_input("first")
            second, two = scope.new_input("second")
            results = two_by_two(scope, [one, two], inputs_last=inputs_last)
            probes = [stream.probe() for stream in results]
        seen = []
        second.advance_to(4)
        worker.step_while(lambda: probes[1].less_than(7))
        seen.append([probe.elements for probe in probes])  # 4 leads to 7; the first is at 0
        first.close()
        worker.step_while(lambda: not probes[0].done)
        seen.append([probe.elements for probe in probes])
        second.close()
        worker.step_while(lambda: not probes[1].done)
        return seen

    expected = [[[0], [7]], [[], [7]]]
    assert ps.execute(main, workers=workers, threads=True) == [expected] * workers


@pytest.mark.parametrize("inputs_last", [False, True])
@over_runs
def test_what_ports_are_connected_by_is_what_arrives(run: Run, inputs_last: bool) -> None:
    def build(scope: Any) -> Any:
        numbers = scope.to_stream(range(scope.index, 10, scope.peers))
        first, second = two_by_two(scope, [numbers, numbers], inputs_last=inputs_last)
        return first.concat(second.map(str))

    found = run(build)
    assert sorted(x for time, x in found if time == 0) == list(range(10))
    assert sorted(int(x) for time, x in found if time == 3) == list(range(10))
    assert len(found) == 20


def test_a_loop_through_ports_that_are_not_connected_is_none() -> None:
    """The second output goes round to the first input, from which there is no way to it."""

    def build(scope: Any, *, connected: bool) -> Any:
        loop, again = scope.feedback(0)
        builder = scope.operator("Around")
        builder.new_input(again, ps.Pipeline())
        builder.new_input(scope.to_stream([1, 2]), ps.Pipeline())
        result = builder.new_output(initial=False)
        round_ = builder.new_output(initial=False, summaries=[0 if connected else None, 0])

        def make_logic(capabilities: Any, info: Any) -> Any:
            def logic(inputs: Any, outputs: Any) -> None:
                for input, output in zip(inputs, outputs, strict=True):
                    for time, batch in input:
                        with time.retain(output.capabilities.output) as cap:
                            output.session(cap).give_batch(batch)

            return logic

        builder.build(make_logic)
        loop.connect(round_)
        return result

    assert collect(lambda scope: build(scope, connected=False)) == [(0, 1), (0, 2)]
    with pytest.raises(WorkerError) as caught:
        collect(lambda scope: build(scope, connected=True))
    assert isinstance(caught.value.__cause__, CycleError)


def test_a_capability_for_a_port_that_is_not_connected_is_refused() -> None:
    def build(scope: Any) -> Any:
        builder = scope.operator("Apart")
        builder.new_input(scope.to_stream([1]), ps.Pipeline())
        result = builder.new_output(initial=False, summaries=[None])

        def make_logic(capabilities: Any, info: Any) -> Any:
            def logic(inputs: Any, outputs: Any) -> None:
                for time, _ in inputs[0]:
                    time.retain()

            return logic

        builder.build(make_logic)
        return result

    with pytest.raises(WorkerError) as caught:
        collect(build)
    assert isinstance(caught.value.__cause__, CapabilityError)
    assert "'Apart' does not lead to output 0" in str(caught.value)


def test_several_paths_lead_to_the_times_of_each() -> None:
    """One way is a round later, the other an epoch; both are allowed and nothing before."""

    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        refused: list[Any] = []
        with worker.dataflow(timestamp=ps.Product(ps.Int, ps.Int)) as scope:
            input, stream = scope.new_input()
            builder = scope.operator("Fork")
            builder.new_input(stream, ps.Pipeline())
            result = builder.new_output(initial=False, summaries=[[(0, 1), (1, 0)]])

            def make_logic(capabilities: Any, info: Any) -> Any:
                def logic(inputs: Any, outputs: Any) -> None:
                    for time, batch in inputs[0]:
                        outer, inner = time.time
                        for later in ((outer, inner + 1), (outer + 1, inner)):
                            with time.delayed(later) as cap, outputs[0].session(cap) as session:
                                session.give_batch(batch)
                        try:
                            time.delayed(time.time)
                        except CapabilityError as error:
                            refused.append(str(error))

                return logic

            builder.build(make_logic)
            result.inspect_batch(lambda time, batch: out.append((time, batch)))
            probe = result.probe()
        seen = [sorted(probe.elements)]
        input.send("x")
        settle(worker)
        seen.append(sorted(probe.elements))
        input.close()
        settle(worker)
        assert len(refused) == 1
        return [*seen, sorted(out), probe.elements]

    ((first, second, out, last),) = ps.execute(main)
    assert second == [(0, 1), (1, 0)]
    assert first in ([(0, 0)], [(0, 1), (1, 0)])  # before it is told
    assert out == [((0, 1), ["x"]), ((1, 0), ["x"])]
    assert last == []


def test_summaries_that_do_not_fit_the_ports_are_named() -> None:
    def too_many(scope: Any) -> Any:
        return scope.operator("Crooked").new_output(summaries=[0])

    def too_few(scope: Any) -> Any:
        builder = scope.operator("Crooked")
        builder.new_output()
        return builder.new_input(scope.to_stream([]), ps.Pipeline(), summaries=[])

    def nowhere(scope: Any) -> Any:
        builder = scope.operator("Crooked")
        builder.new_output()
        return builder.connect(0, 0, 1)

    for build, words in (
        (too_many, "output 0 of operator 'Crooked' has one summary for each port so far"),
        (too_few, "input 0 of operator 'Crooked' has one summary for each port so far"),
        (nowhere, "numbered from 0; inputs: 0, outputs: 1"),
    ):
        with pytest.raises(WorkerError) as caught:
            collect(build)
        assert isinstance(caught.value.__cause__, BuildError)
        assert "'Crooked'" in str(caught.value)
        assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["unary", "unary_frontier", "unary_notify", "builder"])
@over_runs
def test_logic_that_returns_true_is_called_again_until_it_does_not(run: Run, kind: str) -> None:
    """It counts down from what it received, one number per call, while others go on too."""

    def state_of(capability: Any, info: Any) -> Any:
        capability.drop()
        left: dict[Any, list[int]] = {}

        def logic(input: Any, output: Any, *notificator: Any) -> bool:
            for time, batch in input:
                left.setdefault(time.retain(), []).extend(batch)
            for cap in list(left):
                numbers = left[cap]
                with output.session(cap) as session:
                    session.give(numbers[-1])
                numbers[-1] -= 1
                if not numbers[-1]:
                    numbers.pop()
                if not numbers:
                    del left[cap]
                    cap.drop()
            return bool(left)

        return logic

    def build(scope: Any) -> Any:
        stream = scope.to_stream([3, 50] if scope.index == 0 else [2])
        if kind != "builder":
            return getattr(stream, kind)(ps.Pipeline(), "Count down", state_of)
        builder = scope.operator("Count down")
        builder.new_input(stream, ps.Pipeline())
        result = builder.new_output()

        def make_logic(capabilities: Any, info: Any) -> Any:
            logic = state_of(capabilities.pop(), info)
            return lambda inputs, outputs: logic(inputs[0], outputs[0])

        builder.build(make_logic)
        return result

    peers = {**dict.fromkeys(RUNS, 3), "1 workers": 1, "2 workers": 2, "4 workers": 4}
    (name,) = [name for name, other in RUNS.items() if other is run]
    expected = [*range(1, 4), *range(1, 51)] + [1, 2] * (peers[name] - 1)
    assert run(build) == sorted((0, n) for n in expected)


def test_an_operator_that_goes_on_does_not_keep_others_from_their_turn() -> None:
    def main(worker: Any) -> list[Any]:
        turns: list[str] = []

        def build(capability: Any, info: Any) -> Any:
            def logic(input: Any, output: Any) -> bool:
                for _ in input:
                    pass
                turns.append("long")
                if len(turns) > 10:
                    capability.drop()
                return capability.live

            return logic

        with worker.dataflow() as scope:
            scope.to_stream([1]).unary(ps.Pipeline(), "Long", build)
            input, stream = scope.new_input()
            stream.inspect(turns.append)
        worker.step()
        input.send("short")
        settle(worker)
        return turns

    (turns,) = ps.execute(main)
    assert turns.count("long") >= 10
    assert "short" in turns[:6]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_an_empty_stream_is_complete_from_the_start(workers: int) -> None:
    def main(worker: Any) -> list[Any]:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = scope.empty().probe()
            both = scope.empty().concat(stream).probe()
        worker.step_while(lambda: not probe.done)
        seen = [probe.elements, both.elements]
        input.close()
        return seen

    assert ps.execute(main, workers=workers, threads=True) == [[[], [0]]] * workers
    assert collect(lambda scope: scope.empty().count(), workers) == []


@over_runs
def test_concatenate_gives_what_each_of_many_has(run: Run) -> None:
    def build(scope: Any) -> Any:
        mine = range(scope.index, 12, scope.peers)
        return scope.concatenate([scope.to_stream([(i, x) for x in mine]) for i in range(4)])

    assert run(build) == [(0, (i, x)) for i in range(4) for x in range(12)]


@pytest.mark.parametrize("change", [list.clear, list.reverse, lambda batch: batch.append(3)])
def test_a_batch_that_one_operator_changes_is_what_it_was_for_the_next(change: Any) -> None:
    """Of another length it held back its time for ever: another number was counted as taken."""

    def main(worker: ps.Worker) -> list[int]:
        seen: list[int] = []
        with worker.dataflow() as scope:
            numbers = scope.to_stream([1, 2])
            numbers.map_batches(lambda batch: change(batch) or [])
            numbers.inspect(seen.append)
        worker.run()
        return seen

    assert ps.simulate(main, workers=1) == [[1, 2]]


@pytest.mark.parametrize("change", [list.clear, list.reverse, lambda batch: batch.append(3)])
def test_a_batch_that_one_worker_changes_is_what_it_was_for_the_next(change: Any) -> None:
    """Threads were given one list."""

    def main(worker: ps.Worker) -> list[int]:
        seen: list[int] = []

        def note(time: int, batch: list[int]) -> None:
            seen.extend(batch)
            change(batch)

        with worker.dataflow() as scope:
            scope.to_stream([1, 2] if worker.index == 0 else []).broadcast().inspect_batch(note)
        worker.run()
        return seen

    assert ps.execute(main, workers=3, threads=True) == [[1, 2]] * 3


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (lambda builder, stream, make: builder.build(make), "is built a second time"),
        (lambda builder, stream, _: builder.new_input(stream, ps.Pipeline()), "is given an input"),
        (lambda builder, stream, _: builder.new_output(), "is given an output"),
        (lambda builder, stream, _: builder.connect(0, 0, None), "has a way said"),
    ],
)
def test_nothing_is_said_of_an_operator_after_build(late: Any, said: str) -> None:
    def build(scope: Any) -> Any:
        builder, numbers = scope.operator("Late"), scope.to_stream([1])
        builder.new_input(numbers, ps.Pipeline())
        result = builder.new_output()
        builder.build(make_sink)
        with pytest.raises(BuildError, match=f"'Late' {said} after build"):
            late(builder, numbers, make_sink)
        return result

    assert collect(build) == []


def make_sink(capabilities: Any, info: Any) -> Any:
    """Logic that reads all and sends nothing."""
    capabilities.clear()

    def logic(inputs: Any, outputs: Any) -> None:
        for input_ in inputs:
            for _ in input_:
                pass

    return logic


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda builder: builder.new_output(summaries=0), "are a list.*found 0"),
        (lambda builder: builder.new_output(summaries={None}), "are a list.*found {None}"),
        (lambda builder: builder.new_output(summaries=iter([1])), "are a list.*found <list_it"),
        (lambda builder: builder.new_output(summaries="1"), "are a list.*found '1'"),
        (lambda builder: builder.new_output(summaries=[]), "of which there are 1; found 0"),
        (lambda builder: builder.new_output(summaries={"a": 1}), "input 'a' to output 0 .* inputs"),
        (lambda builder: builder.new_output(summaries={0.0: 1}), "from input 0.0 to output 0"),
        (lambda builder: builder.connect(0, 0), "from input 0 to output 0 .* outputs: 0"),
        (lambda builder: builder.connect(0, -1), "from input 0 to output -1"),
        (lambda builder: builder.build(None), "is built with None: build.. takes a function"),
    ],
)
def test_what_is_no_summary_port_or_code_is_refused(build: Any, message: str) -> None:
    def main(scope: Any) -> Any:
        builder, numbers = scope.operator("Odd"), scope.to_stream([1])
        builder.new_input(numbers, ps.Pipeline())
        with pytest.raises(BuildError, match=f"(?=.*'Odd').*{message}"):
            build(builder)
        return numbers

    with pytest.raises(WorkerError, match=r"'Odd' .* was begun and not finished.* by build"):
        collect(main)
