"""A hash join by hand: an operator with two inputs that asks each what the other brought.

Records of equal key meet on one worker, where each is kept and asks for those of the
other input. So pairs leave as soon as both of their records have come, and nobody waits
for a side to be complete. What is kept is forgotten when the other input has ended. All records
here are of one time; `Stream.join` does this for any times, and for rows and columns, and
runs here as well, to compare.

    python examples/hash_join.py [RECORDS [KEYS [WORKERS]]]
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable
from time import monotonic
from typing import TypeAlias

import pointstamp as ps

Pair: TypeAlias = tuple[int, str]
Match: TypeAlias = tuple[Pair, Pair]
Logic = Callable[[ps.Input, ps.Input, ps.Output], None]


def key_of(record: Pair) -> int:
    return record[0]


def hash_join(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
    capability.drop()
    kept: list[dict[int, list[Pair]]] = [defaultdict(list), defaultdict(list)]

    def logic(left: ps.Input, right: ps.Input, output: ps.Output) -> None:
        for side, input, other in ((0, left, right), (1, right, left)):
            for time, batch in input:
                with output.session(time) as session:
                    for record in batch:
                        found = kept[1 - side].get(record[0], ())
                        session.give_many((r, record) if side else (record, r) for r in found)
                        if not other.frontier.is_empty():
                            kept[side][record[0]].append(record)
        for side, other in ((0, right), (1, left)):
            if other.frontier.is_empty():
                kept[side].clear()

    return logic


def records(side: str, n_records: int, n_keys: int) -> list[Pair]:
    draw = random.Random(side)
    return [(draw.randrange(n_keys), f"{side}{i}") for i in range(n_records)]


def join(
    worker: ps.Worker, n_records: int, n_keys: int, by_hand: bool
) -> tuple[float, list[Match]]:
    """Seconds, and the pairs found here."""
    matches: list[Match] = []
    mine = [records(side, n_records, n_keys)[worker.index :: worker.peers] for side in "ab"]
    with worker.dataflow("warm up") as scope:  # the first exchange loads compiled kernels
        scope.to_stream(mine[0]).exchange(key_of)
    worker.run()
    began = monotonic()
    with worker.dataflow("join") as scope:
        left, right = map(scope.to_stream, mine)
        if by_hand:
            pact = ps.Exchange(key_of)
            joined = left.binary_frontier(right, pact, pact, "HashJoin", hash_join)
        else:
            joined = left.join(right, key_of)
        joined.inspect_batch(lambda epoch, batch: matches.extend(batch))
    worker.run()
    return monotonic() - began, matches


def main(n_records: int = 50_000, n_keys: int = 10_000, workers: int = 2) -> None:
    for name, by_hand in (("by hand", True), ("Stream.join", False)):
        parts = ps.execute(join, n_records, n_keys, by_hand, workers=workers)
        n_matches = sum(len(matches) for _, matches in parts)
        slowest = max(seconds for seconds, _ in parts)
        print(f"{name}: {n_matches} pairs of 2 x {n_records} records in {slowest:.2f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
