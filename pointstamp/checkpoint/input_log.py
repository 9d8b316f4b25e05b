"""The log of inputs: what was staged for an epoch, and which of it was committed.

Several writers may stage the same data, each under an attempt of its own: tasks are retried,
and run twice to be quicker. What counts is what the commit record of an epoch names. The record
is written last, once, and whole; before it nothing was committed, and after it nothing
changes any more.

    log/<input>/<epoch>/attempt-<attempt>.arrow
    log/<input>/<epoch>/committed.json      in an object store, committed-<term>.json
    log/pruned.json         up to which epoch there was a log: what is older is in a snapshot;
                            how far each input had gone on, and its last record of those;
                            in an object store, pruned-<epoch>.json

The records of an input are a chain: each names its input, its epoch and its number, and the
epoch and checksum of the record before it. So a record that is lost, or lies where it does not
belong, is found when the log is read. Only the loss of the last one cannot be seen here; a
snapshot knows how far inputs had come, and a client which epochs were acknowledged.

In an object store a record whose write has failed may be there, or come later. What is written in
its place is of a later term, and follows the same record as it does; which chain counts is said
in `terms.py`. What is beside it is of earlier terms: no writer has had the answer that it is
there, and none has begun with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from pointstamp.checkpoint import arrow_files
from pointstamp.checkpoint.arrow_files import EncodedBatches
from pointstamp.checkpoint.checksummed import checksum, checksummed, verified
from pointstamp.checkpoint.objects import TEMPORARY, Objects
from pointstamp.checkpoint.staged import Staged
from pointstamp.checkpoint.terms import BEFORE_TERMS, Term, Terms
from pointstamp.errors import (
    CorruptCheckpointError,
    SchemaError,
    TruncatedCheckpointError,
    UsageError,
)

VERSION = 1

UNRECORDED = ""
"""The query of a record that does not say whether it is of one, as those of former versions."""

BEFORE_ALL = -1
"""The epoch before the first."""

_ROOT = "log"
_PRUNED = "pruned"
_COMMITTED = "committed"
_JSON = ".json"


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
    query: str | None = None
    """The id of the query whose batch it is; None if it is of none."""

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
            "query": self.query,
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
                body.get("query", UNRECORDED),
            )
        except (KeyError, TypeError) as error:
            raise CorruptCheckpointError(f"{place}: is no commit record: {error!r}") from error
        return record, RecordLink(record.number, record.epoch, checksum([data]))


@dataclass(frozen=True)
class _Found:
    """A commit record that is there, by its name."""

    epoch: int
    term: Term
    name: str


class InputLog:
    """The log below a root."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._last: dict[str, tuple[int, RecordLink]] = {}
        """By input, how far it went on, and its last record, as far as that was looked for.

        In an object store, from the first term on: what else is there has come late."""
        self._terms = None if objects.fails_cleanly else Terms(objects)
        self._doubtful: set[str] = set()
        """What records name that may be there though their write has failed."""
        self._is_begun = False
        """Whether what the log has was looked for behind a term."""

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
            except pa.ArrowInvalid as error:
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
        query: str | None = None,
    ) -> bool:
        """See `Checkpoint.commit`."""
        chosen = tuple(attempts)
        if epoch <= self.pruned():
            return False
        if self._terms is None and self._is_committed(input, epoch):
            return False
        reached, last = self._known(input, epoch)
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
        named = commit, batch, time_us, query
        record = CommitRecord(input, epoch, goes_on, chosen, number, last, *named)
        data, link = record.to_bytes()
        is_written = self._write(record, data)
        if is_written:
            self._last[input] = goes_on, link
        return is_written

    def _known(self, input: str, epoch: int) -> tuple[int, RecordLink]:
        """How far an input went on, and its last record, for a commit at `epoch`."""
        if self._terms is None:
            # Left out until the new record is there: what fails half-way may have written it.
            return self._last.pop(input, None) or self._found_last(input)
        if self._terms.now is None:
            known = self._last.get(input) or self._found_last(input)
            if epoch < known[0]:
                return known  # no reason for a term
            if self._is_begun:
                self._terms.claim(takes_over=False)
            else:
                self.begin()
        return self._last.setdefault(input, (BEFORE_ALL + 1, BEFORE_FIRST))

    def begin(self) -> None:
        """See `Checkpoint.begin`."""
        if self._terms is None:
            return
        self._is_begun = False
        self._last.clear()
        self._terms.claim(takes_over=True)
        try:
            pruned = self._what_was_pruned()
            inputs = sorted({*self.inputs(), *pruned["inputs"]})
            last = {input: self._found_last(input) for input in inputs}
            self._terms.note(
                {
                    input: {"reached": reached, "last": link.to_json()}
                    for input, (reached, link) in last.items()
                }
            )
        except BaseException:
            self._terms.drop()
            raise
        self._last.update(last)
        self._is_begun = True

    def _write(self, record: CommitRecord, data: bytes) -> bool:
        """Have the record be there; False if another one is."""
        folder = _folder(record.input, record.epoch)
        if self._terms is None:
            return self._objects.create(f"{folder}/{_COMMITTED}{_JSON}", [data])
        try:
            self._objects.put(f"{folder}/{_COMMITTED}-{self._terms.now}{_JSON}", [data])
            self._terms.check()
        except BaseException:
            self._terms.drop()
            self._doubtful.update(attempt.name for attempt in record.attempts)
            raise
        return True

    def abort(self, input: str, epoch: int, staged: Iterable[Staged]) -> None:
        """See `Checkpoint.abort`."""
        kept = self._doubtful | {attempt.name for attempt in self._attempts(input, epoch) or ()}
        for attempt in staged:
            if attempt.name not in kept:
                self._objects.delete(attempt.name)

    def abort_all(self, input: str, epoch: int) -> None:
        """Remove all that was staged for an epoch, unless something of it was committed."""
        folder = _folder(input, epoch)
        if not self._is_committed(input, epoch):
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
        for found, record, link in self._chain(input, pruned):
            self._check_follows(record, last, found.name)
            last = link
            if record.epoch > after:
                yield record

    def _chain(
        self, input: str, pruned: Mapping[str, Any]
    ) -> Iterator[tuple[_Found, CommitRecord, RecordLink]]:
        """The records that count, in order; where one is lost, those behind it."""
        # Asked before the list is: what is committed meanwhile need not be in that.
        known = self._last.get(input, (0, BEFORE_FIRST))[1] if self._is_begun else None
        found = [one for one in self._found(input) if one.epoch > pruned["epoch"]]
        noted = None if self._terms is None else self._terms.noted()
        if noted is None:
            return ((one, *self._record(input, one)) for one in found)
        read = [(one, *self._record(input, one)) for one in found]
        last = self._last_of(input, read, *noted) if known is None else known
        by_link = {link: each for each in read for link in each[2:]}
        chain = []
        while last in by_link:
            chain.append(by_link[last])
            last = chain[-1][1].previous
        if not chain and last.epoch > pruned["epoch"]:
            raise CorruptCheckpointError(
                f"{self._objects}: the commit record of epoch {last.epoch} of input {input!r}, "
                f"number {last.number}, is not there, and was the last when term {noted[0]} began; "
                "restore the folder from a copy"
            )
        return reversed(chain)

    def _last_of(
        self,
        input: str,
        read: Iterable[tuple[_Found, CommitRecord, RecordLink]],
        begun: Term,
        noted: Mapping[str, Any],
    ) -> RecordLink:
        """The last record that counts, of those that are there or were when a term began."""
        since = [each for each in read if each[0].term >= begun]
        if since:
            return max(since, key=lambda each: (each[0].term, each[1].number))[2]
        return RecordLink(**noted[input]["last"]) if input in noted else BEFORE_FIRST

    def _check_follows(self, record: CommitRecord, last: RecordLink, name: str) -> None:
        """Raise unless the record is the next one of its input."""
        if record.previous == last and record.number == last.number + 1:
            return
        place = f"{self._objects}/{name}"
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
        return (self._last.get(input) or self._found_last(input))[0]

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
        while (name := self._note_of_pruning()) is not None:
            try:
                note = self._objects.get(name).to_pybytes()
            except TruncatedCheckpointError:
                if self._note_of_pruning() == name:
                    raise
                continue  # it was pruned meanwhile, and the note of that is there instead
            return verified(note, f"{self._objects}/{name}", VERSION)
        return {"epoch": BEFORE_ALL, "inputs": {}}

    def _note_of_pruning(self, upto: int | None = None) -> str | None:
        """The name of the last one, if there is one; or of that which says `upto`."""
        if self._terms is None:
            name = f"{_ROOT}/{_PRUNED}{_JSON}"
            return name if upto is not None or self._objects.size(name) is not None else None
        if upto is not None:
            # In an object store what is written over another may arrive before it.
            return f"{_ROOT}/{_PRUNED}-{epoch_name(upto)}{_JSON}"
        notes = [name for name in self._objects.files(_ROOT) if name.startswith(_PRUNED)]
        return f"{_ROOT}/{max(notes)}" if notes else None

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
            former, name = self._note_of_pruning(), self._note_of_pruning(upto)
            assert name is not None
            self._objects.put(name, [checksummed(VERSION, {"epoch": upto, "inputs": inputs})])
            if former is not None and former != name:
                self._objects.delete(former)
        counted = {
            input: {
                found.epoch: (found.name, record.attempts)
                for found, record, _ in self._chain(input, {"epoch": upto, "inputs": {}})
            }
            for input in self.inputs()
        }
        elsewhere = {
            attempt.name
            for input, of_input in counted.items()
            for epoch, (_, attempts) in of_input.items()
            for attempt in attempts
            if (attempt.input, attempt.epoch) != (input, epoch)
        }
        for input, of_input in counted.items():
            for epoch in self._epochs(input):
                folder = _folder(input, epoch)
                if epoch > upto and epoch not in of_input:
                    continue  # not committed: it may be about to be
                record, attempts = of_input.get(epoch, ("", ()))
                kept = {record, *elsewhere, *(attempt.name for attempt in attempts)}
                for file in self._objects.files(folder):
                    # A repeat of an epoch that is committed may be on its way; one that was
                    # interrupted goes with its epoch.
                    is_written = epoch > upto and file.startswith(TEMPORARY)
                    if f"{folder}/{file}" not in kept and not is_written:
                        self._objects.delete(f"{folder}/{file}")
                self._objects.delete_folder(folder)

    def _found_last(self, input: str, upto: int | None = None) -> tuple[int, RecordLink]:
        """How far an input went on, and its last record; of the epochs up to `upto`."""
        pruned = self._what_was_pruned()
        if self._terms is None:
            for epoch in reversed(self._epochs(input)):
                if (upto is None or epoch <= upto) and self._is_committed(input, epoch):
                    record, link = self._record(input, self._only(input, epoch))
                    return record.until, link
        else:
            for found, record, link in reversed(list(self._chain(input, pruned))):
                if upto is None or found.epoch <= upto:
                    return record.until, link
        reached = pruned["inputs"].get(input, {}).get("reached", BEFORE_ALL + 1)
        return int(reached), _link_of(pruned, input)

    def _attempts(self, input: str, epoch: int) -> tuple[Staged, ...] | None:
        """What was committed; None if nothing was yet."""
        if self._terms is None:
            if not self._is_committed(input, epoch):
                return None
            return self._record(input, self._only(input, epoch))[0].attempts
        chain = self._chain(input, self._what_was_pruned())
        return next((record.attempts for _, record, _ in chain if record.epoch == epoch), None)

    def _is_committed(self, input: str, epoch: int) -> bool:
        """Whether there is a record, of whatever term."""
        if self._terms is None:
            return self._objects.size(self._only(input, epoch).name) is not None
        files = self._objects.files(_folder(input, epoch))
        return any(_term_of(file) is not None for file in files)

    def _only(self, input: str, epoch: int) -> _Found:
        """The record of an epoch, where it has one name."""
        name = f"{_folder(input, epoch)}/{_COMMITTED}{_JSON}"
        return _Found(epoch, BEFORE_TERMS, name)

    def _found(self, input: str) -> Iterator[_Found]:
        """The records that are there, by epoch."""
        if self._terms is None:
            for epoch in self._epochs(input):
                if self._is_committed(input, epoch):
                    yield self._only(input, epoch)
            return
        folder = f"{_ROOT}/{_safe(input)}"
        for name in self._objects.files_below(folder):
            epoch_text, _, file = name.partition("/")
            term = _term_of(file)
            if term is not None and epoch_text.isdigit():
                yield _Found(int(epoch_text), term, f"{folder}/{name}")

    def _record(self, input: str, found: _Found) -> tuple[CommitRecord, RecordLink]:
        """The commit record of an epoch, which has to be the one that was written there."""
        place = f"{self._objects}/{found.name}"
        data = self._objects.get(found.name).to_pybytes()
        record, link = CommitRecord.from_bytes(data, place)
        if (record.input, record.epoch) != (input, found.epoch):
            raise CorruptCheckpointError(
                f"{place}: is the commit record of epoch {record.epoch} of input "
                f"{record.input!r}, and lies where that of epoch {found.epoch} of input {input!r} "
                "should be: it was moved or copied; restore the folder from a copy"
            )
        return record, link

    def _epochs(self, input: str) -> list[int]:
        found = self._objects.folders(f"{_ROOT}/{_safe(input)}")
        return sorted(int(name) for name in found if name.isdigit())


def _term_of(file: str) -> Term | None:
    """That of the commit record whose name this is; None if it is no record's."""
    if not (file.startswith(_COMMITTED) and file.endswith(_JSON)):
        return None
    text = file.removeprefix(_COMMITTED).removesuffix(_JSON)
    return Term.of(text.removeprefix("-")) if text else BEFORE_TERMS


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
