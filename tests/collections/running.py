"""Collections on a simulated worker, of which each changes its share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pointstamp as ps
from pointstamp.collections import trace, trace_join

Build = Callable[[Sequence[ps.Collection]], ps.Collection]


def run_epochs(
    worker: ps.Worker, schemas: Sequence[str], build: Build, epochs: Sequence[Any], at_a_time: int
) -> list[tuple[Any, Any, int]]:
    """(row, time, diff) of what leaves at this worker.

    epochs : of each and by input, pairs of a row and a diff
    at_a_time : so many epochs are sent before anything is worked off
    """
    seen: list[tuple[Any, Any, int]] = []
    with worker.dataflow() as scope:
        made = [scope.new_collection(schema) for schema in schemas]
        result = build([collection for _, collection in made])
        result.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        probe = result.probe()
    for epoch, changes in enumerate(epochs):
        for (input_, _), pairs in zip(made, changes, strict=True):
            input_.update(pairs[worker.index :: worker.peers])
            input_.advance_to(epoch + 1)
        if epoch % at_a_time == at_a_time - 1:
            worker.step_while(partial(probe.less_than, epoch + 1))
    for input_, _ in made:
        input_.close()
    worker.run()
    return seen


def set_limits_of_loops(small: bool) -> None:
    """Have what keeps or joins updates with times begin early with what it does with many."""
    trace.LET_BE, trace.SMALL = (1, 4) if small else (8, 256)
    trace_join.FEW = 1 if small else 64
