"""A flow of files into files, killed by SIGKILL at random and begun again until it ends.

    python killed_flow.py FOLDER SEED N_KILLS [BUG]

Lives are forked, so that importing is paid for once: nothing has a thread before. A life dies at
a moment by the clock, or at one of the points where it reads, writes, prepares or commits. What is
in the output folder at the end is written as JSON: per word the running counts, sorted.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.formats.file_sink import FileSink
from pointstamp.operators import partitioned_source, sink_writing

N_FILES = 4
N_LINES = 60
SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])


class Lines:
    """A source of the user's: lines of files, a few at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def partitions(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir())

    def open(self, partition: str, position: int | None) -> Iterator[tuple[list[str], int]]:
        with (self._folder / partition).open("rb") as file:
            file.seek(position or 0)
            while lines := file.readlines(16):
                time.sleep(0.001)
                point()
                yield [line.decode().rstrip() for line in lines], file.tell()


left = [-1]
"""How many points are passed until this life dies; never, if negative."""


def point() -> None:
    """Where a life may die."""
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def counted(before: Any) -> Any:
    """A method with a point before it and behind."""

    def method(*args: Any, **named: Any) -> Any:
        point()
        result = before(*args, **named)
        point()
        return result

    return method


def plant(bug: str) -> None:
    """Have the library do what it must not."""
    if bug == "early position":
        original = partitioned_source._Partition.next

        def next_early(self: Any) -> Any:
            before = self.position
            item = original(self)
            return None if item is None else (item[0], before)

        partitioned_source._Partition.next = next_early  # type: ignore[method-assign]
    elif bug == "late position":

        class Late(Lines):
            def open(self, partition: str, position: int | None) -> Iterator[Any]:
                held = None
                for item in super().open(partition, position):
                    if held is not None:
                        yield held[0], item[1]
                    held = item
                if held is not None:
                    yield held

        globals()["Lines"] = Late
    elif bug == "commit before snapshot":
        make = sink_writing._Transactions.__init__

        def init(self: Any, *args: Any) -> None:
            make(self, *args)
            self._commits_later = False

        sink_writing._Transactions.__init__ = init  # type: ignore[method-assign]
    else:
        raise ValueError(bug)


def live(folder: Path, workers: int) -> None:
    """One life of the program, to its end if nothing kills it."""

    def words(scope: Any) -> None:
        lines = scope.source(Lines(folder / "in"))
        counts = lines.map(lambda word: (word, 1)).state_machine(
            lambda word, one, n: (n + one, [(word, n + one)]), default=0
        )
        counts.sink(FileSink(folder / "out", format="arrow", schema=SCHEMA))

    ps.run(words, workers, threads=True, checkpoint=folder / "checkpoint", epoch_s=0.004)


def main(folder: Path, seed: int, n_kills: int, bug: str | None) -> None:
    """Kill lives, let the last one live, and write what came out."""
    draw = random.Random(seed)
    (folder / "in").mkdir()
    for file in range(N_FILES):
        lines = [f"{file}-{draw.randrange(5)}\n" for _ in range(N_LINES)]
        (folder / "in" / f"{file}.txt").write_text("".join(lines))
    for kind, method in (
        (FileSink, "commit"),
        (FileSink, "abort"),
        (sink_writing._Transactions, "_end_complete"),
        (Checkpoint, "commit_manifest"),
    ):
        setattr(kind, method, counted(getattr(kind, method)))
    if bug is not None:
        plant(bug)
    n_killed = n_lives = 0
    while True:
        n_lives += 1
        by_clock = draw.random() < 0.4
        seconds, n_points = draw.uniform(0.01, 0.08), draw.randrange(3, 60)
        workers = draw.randint(1, 3)
        is_last = n_killed >= n_kills
        pid = os.fork()
        if not pid:
            status = 1
            try:
                left[0] = -1 if by_clock or is_last else n_points
                live(folder, workers)
                status = 0
            except Exception:  # noqa: BLE001  (it ends with it)
                traceback.print_exc()
            finally:
                os._exit(status)
        if by_clock and not is_last:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status not in (0, -signal.SIGKILL):
            raise SystemExit(f"life {n_lives} failed")
        if status == 0:
            break
        n_killed += 1
    found = [
        [record["word"], record["n"]]
        for path in sorted((folder / "out").glob("part-*"))
        for record in pa.ipc.open_file(path).read_all().to_pylist()
    ]
    json.dump({"n_killed": n_killed, "found": sorted(found)}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *(sys.argv[4:] or [None]))
