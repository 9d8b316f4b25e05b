"""The log of inputs: what was staged for an epoch, and which of it was committed.

Several writers may stage the same data, each under an attempt of its own: tasks are retried,
and run twice to be quicker. What counts is what the commit record of an epoch names. The record
is written last, once, and whole; before it nothing was committed, and after it nothing
changes any more.

    log/<input>/<epoch>/attempt-<attempt>.arrow
    log/<input>/<epoch>/committed.json
    log/pruned.json         up to which epoch there was a log: what is older is in a snapshot;
                            how far each input had gone on, and its last record of those

The records of an input are a chain: each names its input, its epoch and its number, and the
epoch and checksum of the record before it. So a record that is lost, or lies where it does not
belong, is found when the log is read. Only the loss of the last one cannot be seen here; a
snapshot knows how far inputs had come, and a client which epochs were acknowledged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from pointstamp.checkpoint import arrow_files
from pointstamp.checkpoint.arrow_files import EncodedBatches, Stored
from pointstamp.checkpoint.checksummed import checksum, checksummed, verified
from pointstamp.checkpoint.objects import TEMPORARY, Objects
from pointstamp.errors import (
    CheckpointError,
    CorruptCheckpointError,
    SchemaError,
    UsageError,
)

VERSION = 1

BEFORE_ALL = -1
"""The epoch before the first."""

_ROOT = "log"
_PRUNED = f"{_ROOT}/pruned.json"
_COMMITTED = "committed.json"


@dataclass(frozen=True)
class Staged:
    """What one attempt has staged; small, and sent to the one that commits.

    Attributes
    ----------
    input, epoch, attempt
        Of what.
    name : str
        Of the object that has it, below the checkpoint's folder.
    rows : int
        How many records it has.
    n_bytes, checksum
        What the object has to be.
    """

    input: str
    epoch: int
    attempt: str
    name: str
    rows: int
    n_bytes: int
    checksum: str

    @property
    def stored(self) -> Stored:
        """The object."""
        return Stored(self.name, self.n_bytes, self.checksum)

    def to_json(self) -> dict[str, Any]:
        """As plain values, for a message."""
        return dict(vars(self))

    @staticmethod
    def from_json(record: dict[str, Any]) -> Staged:
        """Of what `to_json` gave."""
        return Staged(**record)


@dataclass(frozen=True)
class RecordLink:
    """A place in the chain of an input's commit records."""

    number: int
    epoch: int
    checksum: str

    def to_json(self) -> dict[str, Any]:
        """For a record."""
        return dict(vars(self))


BEFORE_FIRST = RecordLink(-1, BEFORE_ALL, "")
"""What the first record of an input follows."""


@dataclass(frozen=True)
class CommitRecord:
    """What was committed for an input at an epoch, and the epoch that the input went on to."""

    input: str
    epoch: int
    until: int
    attempts: tuple[Staged, ...]
    number: int
    previous: RecordLink
    commit: str = ""
    """A name by which a commit that is repeated is known, where it has one."""
    batch: int | None = None
    """With it, the name is that of a feed, and this is the number of its batch."""
    time_us: int | None = None
    """When it was committed, in microseconds since 1970; None where that is not recorded."""

    def to_bytes(self) -> tuple[bytes, RecordLink]:
        """As it is stored, and what the next record says of it."""
        body = {
            "input": self.input,
            "epoch": self.epoch,
            "until": self.until,
            "attempts": [attempt.to_json() for attempt in self.attempts],
            "number": self.number,
            "previous": self.previous.to_json(),
            "commit": self.commit,
            "batch": self.batch,
            "time_us": self.time_us,
        }
        data = checksummed(VERSION, body)
        return data, RecordLink(self.number, self.epoch, checksum([data]))

    @staticmethod
    def from_bytes(data: bytes, place: str) -> tuple[CommitRecord, RecordLink]:
        """What `to_bytes` gave, checked; and what the next record says of it."""
        body = verified(data, place, VERSION)
        try:
            record = CommitRecord(
                body["input"],
                body["epoch"],
                body["until"],
                tuple(Staged.from_json(attempt) for attempt in body["attempts"]),
                body["number"],
                RecordLink(**body["previous"]),
                body.get("commit", ""),
                body.get("batch"),
                body.get("time_us"),
            )
        except (KeyError, TypeError) as error:
            raise CorruptCheckpointError(f"{place}: is no commit record: {error!r}") from error
        return record, RecordLink(record.number, record.epoch, checksum([data]))


class InputLog:
    """The log below a root."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._last: dict[str, tuple[int, RecordLink]] = {}
        """By input, how far it went on, and its last record, as far as that was looked for."""

    def __reduce__(self) -> Any:
        return InputLog, (self._objects,)  # what is known of the last records is of one process

    def stage(
        self, input: str, epoch: int, attempt: object, batches: Iterable[pa.RecordBatch]
    ) -> Staged:
        """See `Checkpoint.stage`."""
        name = f"{_folder(input, epoch)}/attempt-{_safe(str(attempt))}.arrow"
        if self._objects.size(name) is not None:
            data = self._objects.get(name)  # of the same attempt, that was repeated
            rows = sum(batch.num_rows for batch in arrow_files.decoded(data, name))
            what = arrow_files.stored(name, data)
        else:
            # Those that are given one after the other, and not again, are put together.
            made = EncodedBatches(batches if isinstance(batches, Sequence) else list(batches))
            try:
                what = arrow_files.put(self._objects, name, made)
            except BaseException as error:
                # A store may have the part that was made before it failed.
                with contextlib.suppress(CheckpointError):
                    self._objects.delete(name)
                if not isinstance(error, pa.ArrowInvalid):
                    raise
                raise SchemaError(
                    f"batches that are staged for input {input!r} must be of one schema: {error}"
                ) from error
            rows = made.n_rows
        return Staged(input, epoch, str(attempt), name, rows, what.n_bytes, what.checksum)

    def commit(
        self,
        input: str,
        epoch: int,
        attempts: Iterable[Staged],
        until: int | None = None,
        commit: str = "",
        batch: int | None = None,
        time_us: int | None = None,
    ) -> bool:
        """See `Checkpoint.commit`."""
        chosen = tuple(attempts)
        name = f"{_folder(input, epoch)}/{_COMMITTED}"
        if epoch <= self.pruned():
            return False
        # Left out until the new record is there: what fails half-way may have written it.
        known = self._last.pop(input, None)
        if self._objects.size(name) is not None:
            return False
        reached, last = known or self._found_last(input)
        if epoch < reached:
            return False
        for attempt in chosen:
            if not commit and (attempt.input, attempt.epoch) != (input, epoch):
                raise UsageError(
                    f"{attempt.name} was staged for input {attempt.input!r} at {attempt.epoch}, "
                    f"and cannot be committed for input {input!r} at {epoch}"
                )
            arrow_files.check_size(self._objects, attempt.stored)
        goes_on = epoch + 1 if until is None else until
        number = last.number + 1
        record = CommitRecord(input, epoch, goes_on, chosen, number, last, commit, batch, time_us)
        data, link = record.to_bytes()
        is_written = self._objects.create(name, [data])
        if is_written:
            self._last[input] = goes_on, link
        return is_written

    def abort(self, input: str, epoch: int, staged: Iterable[Staged]) -> None:
        """See `Checkpoint.abort`."""
        kept = {attempt.name for attempt in self._attempts(input, epoch) or ()}
        for attempt in staged:
            if attempt.name not in kept:
                self._objects.delete(attempt.name)

    def abort_all(self, input: str, epoch: int) -> None:
        """Remove all that was staged for an epoch, unless something of it was committed."""
        folder = _folder(input, epoch)
        if self._objects.size(f"{folder}/{_COMMITTED}") is None:
            for file in self._objects.files(folder):
                self._objects.delete(f"{folder}/{file}")
            self._objects.delete_folder(folder)

    def committed(self, input: str, after: int) -> Iterator[tuple[int, list[Staged]]]:
        """See `Checkpoint.committed`."""
        return ((record.epoch, list(record.attempts)) for record in self.records(input, after))

    def records(self, input: str, after: int) -> Iterator[CommitRecord]:
        """See `Checkpoint.records`."""
        pruned = self._what_was_pruned()
        last = _link_of(pruned, input)
        for epoch in self._epochs(input):
            if epoch <= pruned["epoch"] or not self._is_committed(input, epoch):
                continue
            record, link = self._record(input, epoch)
            self._check_follows(record, last)
            last = link
            if epoch > after:
                yield record

    def _check_follows(self, record: CommitRecord, last: RecordLink) -> None:
        """Raise unless the record is the next one of its input."""
        if record.previous == last and record.number == last.number + 1:
            return
        place = f"{self._objects}/{_folder(record.input, record.epoch)}/{_COMMITTED}"
        expected, found = record.previous, last
        before = "the beginning" if found == BEFORE_FIRST else f"that of epoch {found.epoch}"
        if expected.epoch != found.epoch:
            lacking = (
                f"that of epoch {expected.epoch}, number {expected.number}"
                if expected != BEFORE_FIRST
                else "no other"
            )
            raise CorruptCheckpointError(
                f"{place}: the commit record of epoch {record.epoch} of input {record.input!r}, "
                f"number {record.number}, follows {lacking}; found before it is {before}: records "
                "were lost or moved, or two programs have used the folder; restore it from a copy"
            )
        raise CorruptCheckpointError(
            f"{place}: the commit record of epoch {record.epoch} of input {record.input!r} does "
            f"not follow the one of epoch {found.epoch} that is there, which is another than was "
            "written; restore the folder from a copy"
        )

    def reached(self, input: str) -> int:
        """See `Checkpoint.reached`."""
        return self._found_last(input)[0]

    def read(self, staged: Staged) -> Iterator[pa.RecordBatch]:
        """See `Checkpoint.read`."""
        data = arrow_files.checked(self._objects, staged.stored)
        yield from arrow_files.decoded(data, staged.name)

    def inputs(self) -> list[str]:
        """The inputs that there is something of."""
        return [unquote(name) for name in self._objects.folders(_ROOT)]

    def pruned(self) -> int:
        """The last epoch that was pruned; `BEFORE_ALL` if none was."""
        return int(self._what_was_pruned()["epoch"])

    def _what_was_pruned(self) -> Mapping[str, Any]:
        if self._objects.size(_PRUNED) is None:
            return {"epoch": BEFORE_ALL, "inputs": {}}
        place = f"{self._objects}/{_PRUNED}"
        return verified(self._objects.get(_PRUNED).to_pybytes(), place, VERSION)

    def prune(self, upto: int) -> None:
        """Remove the log up to an epoch, and later attempts that were not committed.

        That it was is noted first: else an interruption, and then a repeated commit of an
        old epoch, would have it staged anew. So is how far inputs went on, which may be
        further than where the log ends: the last commit of one may be among what goes.
        """
        pruned = self._what_was_pruned()
        if upto > pruned["epoch"]:
            inputs = {
                input: {"reached": reached, "last": link.to_json()}
                for input in sorted({*self.inputs(), *pruned["inputs"]})
                for reached, link in [self._found_last(input, upto)]
            }
            self._objects.put(_PRUNED, [checksummed(VERSION, {"epoch": upto, "inputs": inputs})])
        elsewhere = self._named_elsewhere(upto)
        for input in self.inputs():
            for epoch in self._epochs(input):
                folder = _folder(input, epoch)
                attempts = self._attempts(input, epoch) if epoch > upto else ()
                if attempts is None:
                    continue  # not committed: it may be about to be
                kept = {attempt.name for attempt in attempts} | (
                    {f"{folder}/{_COMMITTED}"} if epoch > upto else set()
                )
                for file in self._objects.files(folder):
                    # A repeat of an epoch that is committed may be on its way; one that was
                    # interrupted goes with its epoch.
                    is_written = epoch > upto and file.startswith(TEMPORARY)
                    name = f"{folder}/{file}"
                    if name not in kept and name not in elsewhere and not is_written:
                        self._objects.delete(f"{folder}/{file}")
                self._objects.delete_folder(folder)

    def _named_elsewhere(self, upto: int) -> set[str]:
        """What records behind `upto` name that was staged for other inputs, or earlier epochs."""
        return {
            attempt.name
            for input in self.inputs()
            for epoch in self._epochs(input)
            if epoch > upto
            for attempt in self._attempts(input, epoch) or ()
            if (attempt.input, attempt.epoch) != (input, epoch)
        }

    def _found_last(self, input: str, upto: int | None = None) -> tuple[int, RecordLink]:
        """How far an input went on, and its last record; of the epochs up to `upto`."""
        pruned = self._what_was_pruned()
        for epoch in reversed(self._epochs(input)):
            if (upto is None or epoch <= upto) and self._is_committed(input, epoch):
                record, link = self._record(input, epoch)
                return record.until, link
        reached = pruned["inputs"].get(input, {}).get("reached", BEFORE_ALL + 1)
        return int(reached), _link_of(pruned, input)

    def _attempts(self, input: str, epoch: int) -> tuple[Staged, ...] | None:
        """What was committed; None if nothing was yet."""
        if not self._is_committed(input, epoch):
            return None
        return self._record(input, epoch)[0].attempts

    def _is_committed(self, input: str, epoch: int) -> bool:
        return self._objects.size(f"{_folder(input, epoch)}/{_COMMITTED}") is not None

    def _record(self, input: str, epoch: int) -> tuple[CommitRecord, RecordLink]:
        """The commit record of an epoch, which has to be the one that was written there."""
        name = f"{_folder(input, epoch)}/{_COMMITTED}"
        place = f"{self._objects}/{name}"
        record, link = CommitRecord.from_bytes(self._objects.get(name).to_pybytes(), place)
        if (record.input, record.epoch) != (input, epoch):
            raise CorruptCheckpointError(
                f"{place}: is the commit record of epoch {record.epoch} of input "
                f"{record.input!r}, and lies where that of epoch {epoch} of input {input!r} "
                "should be: it was moved or copied; restore the folder from a copy"
            )
        return record, link

    def _epochs(self, input: str) -> list[int]:
        found = self._objects.folders(f"{_ROOT}/{_safe(input)}")
        return sorted(int(name) for name in found if name.isdigit())


def _link_of(pruned: Mapping[str, Any], input: str) -> RecordLink:
    """The last record of an input that was pruned."""
    noted = pruned["inputs"].get(input)
    return BEFORE_FIRST if noted is None else RecordLink(**noted["last"])


def epoch_name(epoch: int) -> str:
    """An epoch as a name, in the order of epochs.

    Raises
    ------
    UsageError
        If it is no epoch.
    """
    if type(epoch) is not int or epoch < 0:
        raise UsageError(f"an epoch is an integer of at least 0; found {epoch!r}")
    return f"{epoch:020}"


def _folder(input: str, epoch: int) -> str:
    return f"{_ROOT}/{_safe(input)}/{epoch_name(epoch)}"


def _safe(text: str) -> str:
    """`text` as one part of a name, whatever is in it."""
    if not text:
        raise UsageError("an input, or an attempt, of a checkpoint needs a name that is not empty")
    return quote(text, safe="").replace(".", "%2E")
