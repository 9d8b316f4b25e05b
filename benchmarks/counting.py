"""Counting per key, as `words` and `integers` do it: a dataflow of two operators.

The first counts what its worker has, in large pieces; the second gets the counts of
its keys from all workers and adds them up when no more can come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pointstamp as ps

PIECE_RECORDS = 1 << 20

Count = Callable[[list[Any]], Any]
"""From batches to one batch of keys and their counts."""


def counted(stream: Any, key: str, count: Count, add_up: Count) -> Any:
    """The count of each key, at the worker of the key, when all is there."""
    partial = stream.unary_frontier(ps.Pipeline(), "Count", _by_pieces(count, PIECE_RECORDS))
    return partial.unary_frontier(ps.Exchange(key), "AddUp", _by_pieces(add_up, None))


def _by_pieces(function: Count, piece_records: int | None) -> Any:
    """An operator that applies `function` to pieces of a time, or to the whole of it."""

    def build(capability: ps.Capability, info: Any) -> Any:
        held: dict[Any, list[Any]] = {}

        def logic(input: Any, output: Any) -> None:
            for time, batch in input:
                held.setdefault(time.retain(), []).append(batch)
            for cap, batches in list(held.items()):
                complete = not input.frontier.less_equal(cap.time)
                if complete or (piece_records and sum(map(len, batches)) >= piece_records):
                    with output.session(cap) as session:
                        session.give_batch(function(held.pop(cap)))
                    cap.drop()

        return logic

    return build
