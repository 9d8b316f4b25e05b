"""Many ports: what it costs to build an operator, or a region, of up to 10,000 of them.

The shapes of timely's test `shape_scaling`: one stream is parted into many, and each goes through
one operator by a port of its own, or into one region and out of it. In the operator the way from
an input leads to one output alone, or to all of them: a million ways for a thousand ports.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, on_workers

PORTS = {"tiny": (1, 10), "small": (100, 1_000), "full": (100, 1_000, 10_000)}


def operator(worker: ps.Worker, n_ports: int, *, crossed: bool) -> Run:
    """Build it, and send one record through each port; the sum of what arrives."""
    return _sending(worker, n_ports, lambda scope, parts: _through(scope, parts, crossed=crossed))


def region(worker: ps.Worker, n_ports: int) -> Run:
    """Build it, and send one record into it and out of it on each way."""

    def through(scope: Any, parts: list[Any]) -> list[Any]:
        with scope.region() as inner:
            return [part.enter(inner).leave() for part in parts]

    return _sending(worker, n_ports, through)


def _sending(worker: ps.Worker, n_ports: int, through: Any) -> Run:
    def run() -> int:
        with worker.dataflow("ports") as scope:
            stream = scope.to_stream(range(n_ports))
            parts = stream.partition(n_ports, lambda number: number)
            ends = through(scope, parts)
            arrived: list[int] = []
            ends[0].concat(*ends[1:]).inspect(arrived.append).probe()
        worker.run()
        return sum(arrived)

    return run


def _through(scope: Any, parts: list[Any], *, crossed: bool) -> list[Any]:
    """One operator that hands on what comes at a port by the output of that number."""
    builder = scope.operator("Ports")
    streams = []
    for port, part in enumerate(parts):
        if crossed:
            streams.append(builder.new_output(initial=False))
            builder.new_input(part, ps.Pipeline())
        else:
            streams.append(builder.new_output(initial=False, summaries={}))
            builder.new_input(part, ps.Pipeline(), summaries={})
            builder.connect(port, port)

    def make_logic(capabilities: Any, info: Any) -> Any:
        def logic(inputs: Any, outputs: Any) -> None:
            for input, output in zip(inputs, outputs, strict=True):
                for time, batch in input:
                    output.session(time).give_batch(batch)

        return logic

    builder.build(make_logic)
    return streams


def cases(size: Size) -> list[Case]:
    """The operator with a way for each port, with all ways, and the region."""
    shapes = {
        "operator": partial(operator, crossed=False),
        "operator, all ways": partial(operator, crossed=True),
        "region": region,
    }
    return [
        Case(
            OURS,
            on_workers(shapes[shape], n_ports, workers=1, total=sum),
            1,
            {"ports": n_ports, "shape": shape},
            data=f"{n_ports} ports",
            in_both_modes=shape == "operator",
        )
        for n_ports in PORTS[size]
        for shape in shapes
    ]


BENCHMARK = Benchmark(
    name="many_ports",
    title="An operator and a region of 100 to 10,000 ports",
    about="From an empty worker: build, send one record through each port, complete.",
    quantity=Quantity("ms", 1e3),
    cases=cases,
    axis="ports",
)
