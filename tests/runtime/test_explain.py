"""`probe.explain`, on every carrier: the one who holds a time back is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import UsageError
from pointstamp.progress.explanation import HolderKind

CARRIERS = [
    pytest.param({"workers": 1}, id="one"),
    pytest.param({"workers": 2, "threads": True}, id="threads"),
    pytest.param({"workers": 2}, id="processes", marks=pytest.mark.once),
    pytest.param({"workers": 4, "threads": True}, id="four threads"),
]


def meet(worker: Any) -> None:
    with worker.dataflow("meet") as scope:
        input, stream = scope.new_input()
        probe = stream.probe()
    input.close()
    worker.step_while(lambda: not probe.done)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_input_that_was_not_advanced_is_named(carrier: Any) -> None:
    def main(worker: Any) -> list[str]:
        with worker.dataflow("hello") as scope:
            input, stream = scope.new_input("edges")
            probe = stream.exchange().probe()
        input.advance_to(5 if worker.index else 3)
        worker.step_while(lambda: probe.less_than(3))
        meet(worker)
        found = probe.explain(4)
        assert all(h.what is HolderKind.INPUT and h.operator == "'edges' [1]" for h in found)
        assert all(h.path == ("'edges' [1]", "'Exchange' [2]", "'Probe' [3]") for h in found)
        assert probe.explain(2) == []
        meet(worker)
        return [h.holder for h in found if h.time == 3]

    told = ps.execute(main, **carrier)
    others = {1: [], 2: [["worker 0"]], 4: [["another worker"]] * 3}[carrier["workers"]]
    assert told == [["this worker (0)"], *others]


def test_a_capability_that_is_kept_is_named_with_its_operator() -> None:
    kept: list[Any] = []

    def main(worker: Any) -> list[str]:
        def build(capability: Any, info: Any) -> Any:
            kept.append(capability.delayed(2))
            return lambda input, output: None

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.unary(ps.Pipeline(), "Keeper", build).probe()
        input.close()
        for _ in range(3):
            worker.step()
        told = [str(holder) for holder in probe.explain()]
        kept.clear()
        return told

    assert ps.execute(main) == [
        [
            "this worker (0) holds a capability at 2 for output 0 of 'Keeper' [2]: 2 at "
            "'Probe' [3], by 'Keeper' [2] -> 'Probe' [3]"
        ]
    ]


def test_records_that_an_operator_leaves_in_its_queue_are_named() -> None:
    def main(worker: Any) -> list[Any]:
        is_open = []

        def build(capability: Any, info: Any) -> Any:
            capability.drop()

            def logic(input: Any, output: Any) -> None:
                while is_open and input.next() is not None:
                    pass

            return logic

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.unary(ps.Pipeline(), "Lazy", build).probe()
            handle = input
        handle.send("x")
        handle.send("y")
        handle.close()
        worker.step()
        worker.step()
        (holder,) = probe.explain(0)
        is_open.append(True)
        subgraph = worker._subgraphs[0]
        for child in range(1, 1 + len(subgraph.children)):
            subgraph.activate(child)
        return [holder.what, holder.operator, holder.port, holder.count, holder.is_here]

    assert ps.execute(main) == [[HolderKind.RECORDS, "'Lazy' [2]", 0, 2, True]]


def test_a_scope_is_opened_up_down_to_the_operator() -> None:
    kept: list[Any] = []

    def main(worker: Any) -> Any:
        def build(capability: Any, info: Any) -> Any:
            kept.append(capability.delayed((1, 7)))
            return lambda input, output: None

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            with scope.iterative() as inner:
                deep = stream.enter(inner).unary(ps.Pipeline(), "Deep", build)
                inside = deep.probe()
                out = deep.leave()
            probe = out.probe()
        input.close()
        for _ in range(5):
            worker.step()
        (holder,) = probe.explain(1)
        (same,) = inside.explain((1, 9))
        kept.clear()
        return holder.operator, holder.time, holder.arrives, holder.path, same.arrives

    assert ps.execute(main) == [
        (
            "'Iterative/Deep' [2, 1]",
            (1, 7),
            1,
            ("'Iterative/Deep' [2, 1]", "'Probe' [3]"),
            (1, 7),
        )
    ]


def test_whoever_forgot_to_step_is_told_so() -> None:
    def main(worker: Any) -> Any:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.probe()
            scope.batches_to_stream([[1]] * 4)  # while it goes on, frontiers wait for a step
        worker.step()
        input.advance_to(1)
        (holder,) = probe.explain(0)
        worker.step()
        (told,) = probe.explain(0) or [None]
        worker.step()
        return holder.what, told.what, probe.explain(0), [h.time for h in probe.explain()]

    assert ps.execute(main) == [(HolderKind.UNREPORTED, HolderKind.NOT_YET_SEEN, [], [1])]


def test_a_peer_that_has_not_built_the_dataflow_is_named() -> None:
    def main(worker: Any) -> Any:
        if worker.index == 1:
            meet_later(worker)
            return None
        with worker.dataflow("first") as scope:
            probe = scope.to_stream([1]).probe()
        found = probe.explain(0)
        meet_later(worker, built=True)
        return [str(h) for h in found if h.what is HolderKind.UNBUILT]

    def meet_later(worker: Any, built: bool = False) -> None:
        if not built:
            with worker.dataflow("first") as scope:
                scope.to_stream([1]).probe()

    told, _ = ps.simulate(main, workers=2, seed=1)
    assert told in (["worker 1 has not built dataflow 'first' yet"], [])


def test_asking_while_building_is_refused() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream([1]).probe()
            with pytest.raises(UsageError, match="being built"):
                probe.explain(0)

    ps.execute(main)


def test_when_all_is_complete_there_is_nobody() -> None:
    def main(worker: Any) -> Any:
        with worker.dataflow() as scope:
            probe = scope.to_stream([1]).probe()
        worker.run()
        return probe.explain(), probe.explain(7), worker.explain()

    assert ps.execute(main) == [([], [], [])]


@pytest.mark.parametrize("seed", range(8))
def test_whenever_a_time_may_come_there_is_somebody(seed: int) -> None:
    """And the other way round: an explanation is never of a time that cannot come."""

    def main(worker: Any) -> int:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            with scope.iterative() as inner:
                loop, again = inner.feedback(1, limit=3)
                body = stream.enter(inner).concat(again).exchange()
                loop.connect(body.map(lambda x: x + 1))
                out = body.leave()
            probe = out.count().probe()
        asked = 0
        for epoch in range(3):
            input.send(epoch)
            input.advance_to(epoch + 1)
            while probe.less_than(epoch + 1):
                if asked % 5 == 0:
                    assert probe.explain(epoch)
                asked += 1
                worker.step_or_park()
            assert probe.explain(epoch) == []
        return asked

    assert min(ps.simulate(main, workers=3, seed=seed)) > 0


@pytest.mark.parametrize("is_logged", [False, True])
def test_the_path_goes_into_scopes_with_a_log_and_without(is_logged: bool, tmp_path: Path) -> None:
    def main(worker: Any) -> tuple[str, ...]:
        with worker.dataflow() as scope:
            input, stream = scope.new_input("edges")
            with scope.region("inner") as inner:
                within = inner.enter(stream).map(lambda x: x, name="Same")
                probe = inner.leave(within).probe()
        worker.step()
        (holder,) = probe.explain(0)
        input.close()
        path: tuple[str, ...] = holder.path
        return path

    log = ps.Log(tmp_path / "run.log") if is_logged else None
    assert ps.execute(main, log=log) == [("'edges' [1]", "'inner/Same' [2, 1]", "'Probe' [3]")]
