"""Words counted while lines come and go: what changes is which counts hold.

A line comes at its epoch and goes some epochs later; then its words go, too. A count that was 2
and is 3 now is the row ("be", 2) taken back and the row ("be", 3) in its place, and a word whose
changes cancel has none. What is added up of all changes is the counts at that epoch.

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


def words_of(row: tuple[str]) -> list[tuple[str]]:
    return [(word,) for word in row[0].split()]


def updates(lines: list[str], window: int) -> Iterator[list[tuple[tuple[str], int]]]:
    """For each epoch the line that comes, and the one that came `window` epochs ago and goes."""
    for epoch in range(len(lines) + window):
        come = lines[epoch : epoch + 1]
        gone = [lines[epoch - window]] if epoch >= window else []
        yield [((line,), +1) for line in come] + [((line,), -1) for line in gone]


def count(worker: ps.Worker, lines: list[str], window: int) -> list[tuple[int, Change]]:
    changes: list[tuple[int, Change]] = []
    with worker.dataflow("words") as scope:
        input, collection = scope.new_collection("line string", name="lines")
        counts = collection.flat_map(words_of, "word string").group_by("word").count()
        counts.inspect(lambda row, epoch, diff: changes.append((epoch, (row, diff))))
    for epoch, changed in enumerate(updates(lines, window)):
        if epoch % worker.peers == worker.index:
            input.update(changed)
        input.advance_to(epoch + 1)
        worker.step()
    input.close()
    worker.run()
    return changes


def main(file: str | None = None, window: int | str = 2, workers: int | str = 2) -> None:
    lines = (TEXT if file is None else Path(file).read_text()).splitlines()
    parts = ps.execute(count, lines, int(window), workers=int(workers))
    for epoch, ((word, n), diff) in sorted(entry for part in parts for entry in part):
        print(f"{epoch} {diff:+} {word} {n}")


if __name__ == "__main__":
    main(*sys.argv[1:])
