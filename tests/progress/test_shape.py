"""What building costs, by the number of ports, operators and connections: counts of work.

Source: timely-dataflow `tests/shape_scaling.rs`.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.dataflow.operator import Operator
from pointstamp.progress.antichain import Antichain, MutableAntichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.few_counts import FewCounts
from pointstamp.progress.scope_child import ScopeChild


class CallCounts:
    """How many calls of Python functions a block takes."""

    def __enter__(self) -> CallCounts:
        self.n = 0

        def count(frame: Any, event: str, argument: Any) -> None:
            self.n += event == "call"

        sys.setprofile(count)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)


def relay(scope: Any, streams: list[Any]) -> list[Any]:
    """An operator of as many ports as there are streams, each input leading to one output."""
    builder = scope.operator("Relay")
    for stream in streams:
        builder.new_input(stream, ps.Pipeline())
    results = []
    for port in range(len(streams)):
        results.append(builder.new_output(initial=False, summaries={}))
        builder.connect(port, port)

    def build(capabilities: Any, info: Any) -> Any:
        def logic(inputs: Any, outputs: Any) -> None:
            for input, output in zip(inputs, outputs, strict=True):
                for time, batch in input:
                    output.session(time).give_batch(batch)

        return logic

    builder.build(build)
    return results


def dense(scope: Any, streams: list[Any]) -> list[Any]:
    """An operator of as many ports as there are streams, with a way from each to each."""
    builder = scope.operator("Dense")
    for stream in streams:
        builder.new_input(stream, ps.Pipeline())
    results = [builder.new_output(initial=False) for _ in streams]

    def build(capabilities: Any, info: Any) -> Any:
        def logic(inputs: Any, outputs: Any) -> None:
            for port, input in enumerate(inputs):
                for time, batch in input:
                    outputs[-1 - port].session(time).give_batch(batch)

        return logic

    builder.build(build)
    return results


def region(scope: Any, streams: list[Any]) -> list[Any]:
    """A region of as many ports as there are streams, each entering and leaving."""
    with scope.region("box") as box:
        return [stream.enter(box).leave() for stream in streams]


def chain(scope: Any, streams: list[Any]) -> list[Any]:
    """As many operators as there are streams, one after the other."""
    stream = streams[0]
    for _ in streams:
        stream = stream.map(lambda x: x)
    return [stream]


def loop(scope: Any, streams: list[Any]) -> list[Any]:
    """A relay of many ports in a loop, each port with a feedback of its own."""
    loops = [scope.feedback(1, limit=2) for _ in streams]
    inputs = [s.concat(again) for s, (_, again) in zip(streams, loops, strict=True)]
    results = region(scope, inputs)
    for (back, _), result in zip(loops, results, strict=True):
        back.connect(result)
    return results


def work(make: Any, n: int) -> int:
    """Calls that the building of a dataflow with `n` of what `make` makes takes."""

    def main(worker: ps.Worker) -> tuple[int, int]:
        out: list[int] = []
        with CallCounts() as counts, worker.dataflow() as scope:
            source = scope.to_stream([7])
            results = make(scope, [source] * n)
            results[-1].inspect(out.append)
        worker.run()
        return counts.n, len(out)

    ((n_calls, n_out),) = ps.execute(main)
    assert n_out >= 1
    return n_calls


@pytest.mark.interpreted
@pytest.mark.parametrize("make", [relay, dense, region, chain, loop])
def test_building_costs_in_proportion_to_what_is_connected(make: Any) -> None:
    n = 30 if make is loop else 100  # where all come round at once, the tracker sorts them
    small, large = work(make, n), work(make, 10 * n)
    assert large < 11 * small


@pytest.mark.once
@pytest.mark.parametrize("make", [relay, dense, region, chain])
def test_ten_thousand_are_built_and_run(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of antichains there is a number for each port, and not for each pair of them."""
    made = 0
    for kind in (Antichain, MutableAntichain) if make is not chain else ():
        before = kind.__init__

        def count(self: Any, *args: Any, before: Any = before) -> None:
            nonlocal made
            made += 1
            before(self, *args)

        if ps.build_info() != "compiled":
            monkeypatch.setattr(kind, "__init__", count)
    assert work(make, 10_000) > 0
    assert made < 40 * 10_000


@pytest.mark.skipif(ps.build_info() != "compiled", reason="only compiled they are laid out")
def test_what_each_round_looks_at_is_whole_lines_of_the_cache() -> None:
    """Python puts objects of other sizes where their first 64 bytes are on two lines."""
    looked_at = (
        FewCounts(ps.Int),
        ChangeBatch(),
        ScopeChild(0, None),
        Operator("Map", ps.Int, lambda: None, lambda call: None),
    )
    assert {type(each).__name__: sys.getsizeof(each) % 64 for each in looked_at} == {
        "FewCounts": 0,
        "ChangeBatch": 0,
        "ScopeChild": 0,
        "Operator": 0,
    }
