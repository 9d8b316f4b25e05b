"""Records that every worker gets if all of them are small, and that stay where they are if not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Pipeline
from pointstamp.dataflow.stash import Stash
from pointstamp.operators.stream import Stream

SMALL = 128 << 20
"""Tables of so many bytes together, over all workers, are small: each worker may have them all."""


def sizes_of(records: Stream[Any], columns: Sequence[str]) -> Stream[int]:
    """How many bytes some columns of each worker's records have at each time."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        stash: Stash[list[int]] = Stash(info, list)

        def logic(input: Input, output: Output) -> None:
            for time, batch in input:
                stash.at(time).append(batch.select(columns).nbytes)
            for cap, sizes in stash:
                output.session(cap).give(sum(sizes))

        return logic

    return records.unary_frontier(Pipeline(), "Size", build)


def chosen_by_size(
    records: Stream[Any], sizes: Stream[int], choose: Callable[[Any, bool], Any]
) -> Stream[Any]:
    """What `choose` makes of each batch of a time, which is complete then; nothing where None.

    sizes : of all tables that are small or not together
    choose : called with a batch and whether they are small, which all workers agree on
    """

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Input, Output], None]:
        capability.drop()
        stash: Stash[list[Any]] = Stash(info)

        def logic(records: Input, sizes: Input, output: Output) -> None:
            stash.take(records, sizes)
            for cap, (batches, given) in stash:
                small = sum(size for each in given for size in each) <= SMALL
                session = output.session(cap)
                for batch in batches:
                    chosen = choose(batch, small)
                    if chosen is not None:
                        session.give_batch(chosen)

        return logic

    return records.binary_frontier(sizes, Pipeline(), Broadcast(), "Choose by size", build)
