"""Words counted while lines come and go: what is told is what changes.

Records are pairs of something and a difference, +1 or -1. A line comes at its epoch and
goes some epochs later; then its words go, too. A count that was 2 and is 3 now is told
as ("be", 2) taken back and ("be", 3) in its place, and a word whose changes cancel is
not told of at all. Whoever adds up what was told has the counts at that epoch.

    python examples/wordcount_with_retractions.py [FILE [WINDOW [WORKERS]]]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pointstamp as ps

Change: TypeAlias = tuple[tuple[str, int], int]
"""A word and its count, and whether that holds from now on (+1) or does no more (-1)."""

TEXT = """\
to be or not to be
to die to sleep
to sleep perchance to dream
"""


def recount(word: str, change: int, count: int) -> tuple[int | None, list[Change]]:
    """The new count, or None to forget the word; and what to tell."""
    if change == 0:
        return count or None, []
    gone = [((word, count), -1)] if count else []
    come = [((word, count + change), +1)] if count + change else []
    return count + change or None, gone + come


def updates(lines: list[str], window: int) -> Iterator[list[tuple[str, int]]]:
    """For each epoch the line that comes, and the one that came `window` epochs ago and goes."""
    for epoch in range(len(lines) + window):
        come = lines[epoch : epoch + 1]
        gone = [lines[epoch - window]] if epoch >= window else []
        yield [(line, +1) for line in come] + [(line, -1) for line in gone]


def count(worker: ps.Worker, lines: list[str], window: int) -> list[tuple[int, Change]]:
    told: list[tuple[int, Change]] = []
    with worker.dataflow("words") as scope:
        input, stream = scope.new_input("lines")
        words = stream.flat_map(lambda line: [(word, line[1]) for word in line[0].split()])
        changes = words.aggregate(lambda word, diff, total: total + diff, default=0)
        counts = changes.state_machine(recount, default=0)
        counts.inspect_batch(lambda epoch, batch: told.extend((epoch, c) for c in batch))
    for epoch, batch in enumerate(updates(lines, window)):
        if epoch % worker.peers == worker.index:
            input.send_batch(batch)
        input.advance_to(epoch + 1)
        worker.step()
    input.close()
    worker.run()
    return told


def main(file: str | None = None, window: int | str = 2, workers: int | str = 2) -> None:
    lines = (TEXT if file is None else Path(file).read_text()).splitlines()
    parts = ps.execute(count, lines, int(window), workers=int(workers))
    for epoch, ((word, n), diff) in sorted(entry for part in parts for entry in part):
        print(f"{epoch} {diff:+} {word} {n}")


if __name__ == "__main__":
    main(*sys.argv[1:])
