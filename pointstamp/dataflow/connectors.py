"""What a source and a sink are: protocols for what users write to bring data in and out.

A source has *partitions*, each read in order from a *position*. What was read up to a position is
never read again from there, so a position in a snapshot is all that a program needs to go on
where it was. A sink is written to; a *transactional* sink keeps what it is given out of sight
until it is committed, in the two phases of a distributed transaction: `prepare` when an epoch is
complete, and `commit` when a snapshot counts that has what was prepared.

Contract
--------
- `partitions()` gives names that stay: a name stands for the same records next time.
- `open(partition, position)` reads what comes after `position`, and nothing of what comes before;
  `None` is the beginning. Read twice from one position, a partition gives the same records in the
  same order, though batches may have other borders.
- A position is a plain value that can be pickled, and does not change when it was given out.
- `prepare` returns when what was written outlasts the process; `commit` of the same tokens, once
  more or by another process, changes nothing more; `abort` removes what other runs have prepared.

`pointstamp.testing.check_source` and `check_sink` look whether a source or a sink keeps it.
Nothing here knows what is read, or written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Source(Protocol):
    r"""A source of partitions that can be resumed at positions; for `scope.source`.

    May have these attributes, too:

    - `discover_s`, a number: new partitions may turn up, and are looked for every so many
      seconds. Such a source does not end.
    - `start_of_new`: the position from which such partitions are read (None).
    - `poll_s`, a number: how many seconds to wait where a reader had nothing (0.05).
    - `at_once`, a number: how many partitions a worker reads at the same time (all).
    - `ends_for_good`, whether a program that begins again need not look for more behind the end of
      a partition (it does).
    - `check_end(partition, position)`, of a source that has this: raises if there is more behind
      the end of a partition, which would not be read.
    - `positions_of`, a text: in what its positions are. A program that begins again with a source
      of another text is refused; without it, partitions of the same names go on.
    - `sizes()`: how much there is in each partition, by its name, for what shows how far a run is:
      integers of any unit that is the same for all.
    - `schema_advice`, a text: what to do about batches whose types differ, for the error.
    - `would_read(sink)`, of a source that has this: whether it would read what a sink writes. A
      program that has both is refused.
    - `n_before(partition, position)`: how much of that comes before a position; the position itself
      if it has none, for positions that are integers.

    Examples
    --------
    A source in ten lines: the lines of the files of a folder. A position is where in the file the
    next line begins.

    >>> import os, tempfile
    >>> import pointstamp as ps
    >>> class Lines:
    ...     def __init__(self, folder):
    ...         self.folder = folder
    ...     def partitions(self):
    ...         return sorted(os.listdir(self.folder))
    ...     def open(self, partition, position):
    ...         at = position or 0
    ...         with open(os.path.join(self.folder, partition), "rb") as file:
    ...             file.seek(at)
    ...             while lines := file.readlines(1 << 16):
    ...                 at += sum(map(len, lines))
    ...                 yield [line.decode().rstrip() for line in lines], at
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, "a.txt"), "w") as file:
    ...         _ = file.write("one\ntwo\n")
    ...     ps.testing.check_source(Lines(folder))
    ...     ps.testing.collect(lambda scope: scope.source(Lines(folder)))
    [(0, 'one'), (0, 'two')]
    """

    def partitions(self) -> Sequence[str]:
        """The names of the partitions; the same on all workers, unless it has `discover_s`."""

    def open(self, partition: str, position: Any) -> Iterator[tuple[Any, Any] | None]:
        """What comes after `position`: pairs of a batch and the position after it.

        A batch is a list of records, or another container. None in place of a pair says that
        there is nothing at hand now, but may be later. An end is the end of the partition, as
        long as the program runs. A generator is closed when the dataflow ends earlier.
        """


@dataclass(frozen=True)
class SinkContext:
    """The context of a sink's writer: its worker, run and snapshots.

    Attributes
    ----------
    index, peers : int
        The worker's number, and how many there are.
    run : str
        A name of this run of the program, the same on all workers, and another one each time.
    is_new : bool
        Whether the program begins from the start, and not with a snapshot.
    commits_later : bool
        Whether what is prepared is committed when a snapshot counts that has it. What a sink
        refuses after that is refused each time the program begins again.
    """

    index: int = 0
    peers: int = 1
    run: str = "run"
    is_new: bool = True
    commits_later: bool = True


class SinkWriter(Protocol):
    """What one worker writes to a sink with.

    It may have `flush()`, called when an epoch is complete, before a snapshot has it.
    """

    def write(self, batch: Any) -> None:
        """Take a batch."""

    def close(self) -> None:
        """The dataflow has ended, however it did."""


class Sink(Protocol):
    """A destination that writers write to; for `stream.sink`.

    Guarantees: at least once. What was written after the last snapshot is written again after a
    crash.

    Examples
    --------
    >>> import pointstamp as ps
    >>> class Printed:
    ...     def open(self, context):
    ...         return self
    ...     def write(self, batch):
    ...         print(batch)
    ...     def close(self):
    ...         print("end")
    >>> def main(worker):
    ...     with worker.dataflow() as scope:
    ...         scope.to_stream([1, 2]).sink(Printed())
    >>> ps.execute(main)
    [1, 2]
    end
    [None]
    """

    def open(self, context: SinkContext) -> SinkWriter:
        """The writer of one worker."""


class TransactionalWriter(SinkWriter, Protocol):
    """A writer whose output is seen when it is committed, and not before."""

    def prepare(self, epoch: int) -> Any:
        """Have what was written since the last call outlast this process, unseen.

        Returns
        -------
        object
            A token by which any process can commit it: a plain value that can be pickled; None
            if nothing was written.
        """


@runtime_checkable
class TransactionalSink(Protocol):
    """A sink with two-phase commit: output becomes visible on commit; for `stream.sink`.

    Guarantees: exactly once, in a run with a checkpoint. An epoch's output is prepared with its
    snapshot, which has the tokens, and committed when that counts. A program that begins with a
    snapshot first commits what the snapshot has, and has everything else removed.
    """

    def open(self, context: SinkContext) -> TransactionalWriter:
        """The writer of one worker."""

    def commit(self, tokens: Sequence[Any]) -> None:
        """Have what was prepared under these be seen; nothing more if it was already."""

    def abort(self, run: str) -> None:
        """Remove what runs other than `run` have prepared or begun, and not committed."""
