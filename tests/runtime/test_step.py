"""What `step` returns, and what a loop over it comes to."""

from __future__ import annotations

from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import InputError, UsageError


def doubled(worker: ps.Worker) -> list[int]:
    """The idiom of timely: step as long as any dataflow is incomplete."""
    out: list[int] = []
    with worker.dataflow() as scope:
        mine = scope.to_stream(range(worker.index, 40, worker.peers))
        mine.exchange(lambda x: x // 3).map(lambda x: 2 * x).exchange(lambda x: x).inspect(
            out.append
        )
    while worker.step():
        pass
    assert not worker.has_dataflows
    return sorted(out)


EXPECTED = [2 * x for x in range(40)]


@pytest.mark.parametrize("seed", range(50))
def test_a_loop_over_step_ends_when_all_is_complete_in_any_schedule(seed: int) -> None:
    parts = ps.simulate(doubled, workers=2, seed=seed)
    assert sorted(x for part in parts for x in part) == EXPECTED


@pytest.mark.parametrize(("workers", "threads"), [(1, False), (2, False), (2, True), (3, True)])
def test_a_loop_over_step_ends_when_all_is_complete(workers: int, threads: bool) -> None:
    parts = ps.execute(doubled, workers=workers, threads=threads)
    assert sorted(x for part in parts for x in part) == EXPECTED


def test_a_dataflow_with_an_open_input_is_incomplete_though_nothing_is_to_be_done() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("open") as scope:
            input, stream = scope.new_input()
            stream.probe()
        steps = [worker.step() for _ in range(5)]
        seen = steps, worker.has_work, worker.installed_dataflows
        input.close()
        while worker.step_or_park():
            pass
        return *seen, worker.installed_dataflows

    assert ps.execute(main) == [([True] * 5, False, ["open"], [])]


def test_on_one_worker_a_step_goes_as_far_as_its_frontiers() -> None:
    def main(worker: ps.Worker) -> Any:
        seen: list[Any] = []
        with worker.dataflow("sums") as scope:
            input, stream = scope.new_input()
            with scope.region() as inner:
                sums = stream.enter(inner).map(lambda x: x + 1).leave()
            probe = sums.inspect(seen.append).probe()
        worker.step()
        for epoch in range(3):
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step()
            seen.append((probe.elements, worker.has_work))
        return seen

    assert ps.execute(main) == [[1, ([1], False), 2, ([2], False), 3, ([3], False)]]


def test_without_a_dataflow_nothing_is_incomplete() -> None:
    def main(worker: ps.Worker) -> Any:
        return worker.step(), worker.has_work, worker.has_dataflows, worker.installed_dataflows

    assert ps.execute(main) == [(False, False, False, [])]


@pytest.mark.parametrize("workers", [1, 2])
def test_run_completes_chosen_dataflows_while_others_go_on(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        log: ps.Sequencer[str] = ps.Sequencer(worker)
        out: list[int] = []
        scopes = []
        for name in ("first", "second"):
            with worker.dataflow(name) as scope:
                scope.to_stream([worker.index]).broadcast().inspect(out.append)
            scopes.append(scope)
        with worker.dataflow("open") as scope:
            scope.new_input("edges")
        worker.run("first", scopes[1])
        log.push("after")
        return sorted(out), worker.installed_dataflows

    everything = sorted([*range(workers)] * 2)
    assert (
        ps.execute(main, workers=workers, threads=True)
        == [(everything, ["Sequencer", "open"])] * workers
    )


def test_run_names_the_open_input_of_what_is_chosen_and_what_is_not_there() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("open") as scope:
            scope.new_input("edges")
        with pytest.raises(InputError, match="input 'edges' of worker 0 is still open"):
            worker.run("open")
        with pytest.raises(UsageError, match=r"cannot run 'other': it is no dataflow of it.*open"):
            worker.run("other")

    ps.execute(main)


def test_a_step_visits_the_dataflows_that_are_active_in_the_order_in_which_they_asked() -> None:
    def main(worker: ps.Worker) -> list[int]:
        seen: list[int] = []
        inputs = []
        for _ in range(4):
            with worker.dataflow() as scope:
                input, stream = scope.new_input()
                stream.inspect(seen.append)
            inputs.append(input)
        while worker.has_work:
            worker.step()
        for number in (2, 0, 3, 1):
            inputs[number].send(number)
        worker.step()
        return seen

    assert ps.execute(main) == [[2, 0, 3, 1]]


def test_step_while_refuses_an_answer_in_place_of_a_question() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.probe()
        answer: Any = probe.less_than(input.time)
        worker.step_while(answer)

    with pytest.raises(ps.errors.WorkerError, match=r"is given False, and needs a function"):
        ps.execute(main)


def test_a_dataflow_without_its_block_says_how_it_is_built() -> None:
    def main(worker: ps.Worker) -> None:
        dataflow: Any = worker.dataflow()
        dataflow.to_stream([1])

    with pytest.raises(ps.errors.WorkerError, match=r"write `with worker.dataflow\(\) as scope:`"):
        ps.execute(main)


@pytest.mark.parametrize("given", ["by position", "by name"])
def test_a_function_in_place_of_the_block_of_a_dataflow_is_refused(given: str) -> None:
    def build(scope: ps.Scope) -> None:
        scope.to_stream([1])

    def main(worker: ps.Worker) -> None:
        function: Any = build
        if given == "by name":
            worker.dataflow(name=function)
        else:
            worker.dataflow(function)

    with pytest.raises(ps.errors.WorkerError, match=r"is given .*build.*, and calls no function"):
        ps.execute(main)
