"""The log of inputs: what was staged for an epoch, and which of it was committed.

Several may stage the same data, each under an attempt of its own: tasks are retried, and
run twice to be quicker. What counts is what the commit record of an epoch names. The record
is written last, once, and whole; before it nothing was committed, and after it nothing
changes any more.

    log/<input>/<epoch>/attempt-<attempt>.arrow
    log/<input>/<epoch>/committed.json
    log/pruned.json         up to which epoch there was a log: what is older is in a snapshot;
                            and how far each input had gone on
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from pointstamp.checkpoint import arrow_files
from pointstamp.checkpoint.arrow_files import Stored
from pointstamp.checkpoint.checksummed import seal, unseal
from pointstamp.checkpoint.objects import TEMPORARY, Objects
from pointstamp.errors import SchemaError, UsageError

VERSION = 2
VERSIONS = (1, 2)
"""Records of the log are alike in both."""

BEFORE_ALL = -1
"""The epoch before the first."""

_ROOT = "log"
_PRUNED = f"{_ROOT}/pruned.json"
_COMMITTED = "committed.json"


@dataclass(frozen=True)
class Staged:
    """What one attempt has staged; small, and to be sent to whoever commits.

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


class Log:
    """The log below a root."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def stage(
        self, input: str, epoch: int, attempt: object, batches: Iterable[pa.RecordBatch]
    ) -> Staged:
        """See `Checkpoint.stage`."""
        name = f"{_folder(input, epoch)}/attempt-{_safe(str(attempt))}.arrow"
        if self._objects.size(name) is not None:
            data = self._objects.get(name)  # of the same attempt, that was repeated
            rows = sum(batch.num_rows for batch in arrow_files.decoded(data, name))
        else:
            try:
                data, rows = arrow_files.encoded(batches)
            except pa.ArrowInvalid as error:
                raise SchemaError(
                    f"batches that are staged for input {input!r} must be of one schema: {error}"
                ) from error
            self._objects.put(name, [memoryview(data)])
        what = arrow_files.stored(name, data)
        return Staged(input, epoch, str(attempt), name, rows, what.n_bytes, what.checksum)

    def commit(
        self, input: str, epoch: int, winners: Iterable[Staged], until: int | None = None
    ) -> bool:
        """See `Checkpoint.commit`."""
        chosen = list(winners)
        record = f"{_folder(input, epoch)}/{_COMMITTED}"
        if epoch <= self.pruned() or self._objects.size(record) is not None:
            return False
        for winner in chosen:
            if (winner.input, winner.epoch) != (input, epoch):
                raise UsageError(
                    f"{winner.name} was staged for input {winner.input!r} at {winner.epoch}, and "
                    f"cannot be committed for input {input!r} at {epoch}"
                )
            arrow_files.check_size(self._objects, winner.stored)
        body: dict[str, Any] = {"winners": [winner.to_json() for winner in chosen]}
        if until is not None:
            body["until"] = until
        return self._objects.create(record, [seal(VERSION, body)])

    def abort(self, input: str, epoch: int, staged: Iterable[Staged]) -> None:
        """See `Checkpoint.abort`."""
        kept = {winner.name for winner in self._winners(input, epoch) or ()}
        for attempt in staged:
            if attempt.name not in kept:
                self._objects.delete(attempt.name)

    def committed(self, input: str, after: int) -> Iterator[tuple[int, list[Staged]]]:
        """See `Checkpoint.committed`."""
        for epoch in self._epochs(input):
            if epoch > after:
                winners = self._winners(input, epoch)
                if winners is not None:
                    yield epoch, winners

    def reached(self, input: str) -> int:
        """See `Checkpoint.reached`."""
        for epoch in reversed(self._epochs(input)):
            body = self._committed(input, epoch)
            if body is not None:
                return int(body.get("until", epoch + 1))
        return int(self._what_was_pruned().get("reached", {}).get(input, BEFORE_ALL + 1))

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

    def _what_was_pruned(self) -> dict[str, Any]:
        if self._objects.size(_PRUNED) is None:
            return {"epoch": BEFORE_ALL}
        return self._record(_PRUNED)[1]

    def prune(self, upto: int) -> None:
        """Forget the log up to an epoch, and later attempts that lost.

        That it was is noted first: else an interruption, and then a repeated commit of an
        old epoch, would have it staged anew. So is how far inputs went on, which may be
        further than where the log ends: the last commit of one may be among what goes.
        """
        if upto > self.pruned():
            known = {*self.inputs(), *self._what_was_pruned().get("reached", ())}
            reached = {input: self.reached(input) for input in sorted(known)}
            self._objects.put(_PRUNED, [seal(VERSION, {"epoch": upto, "reached": reached})])
        for input in self.inputs():
            for epoch in self._epochs(input):
                folder = _folder(input, epoch)
                winners = self._winners(input, epoch) if epoch > upto else []
                if winners is None:
                    continue  # not committed: somebody may be about to
                kept = {winner.name for winner in winners} | (
                    {f"{folder}/{_COMMITTED}"} if epoch > upto else set()
                )
                for file in self._objects.files(folder):
                    # A repeat of an epoch that is committed may be on its way; one that was
                    # interrupted goes with its epoch.
                    is_written = epoch > upto and file.startswith(TEMPORARY)
                    if f"{folder}/{file}" not in kept and not is_written:
                        self._objects.delete(f"{folder}/{file}")
                self._objects.delete_folder(folder)

    def _winners(self, input: str, epoch: int) -> list[Staged] | None:
        """What was committed; None if nothing was yet."""
        body = self._committed(input, epoch)
        return None if body is None else [Staged.from_json(winner) for winner in body["winners"]]

    def _committed(self, input: str, epoch: int) -> dict[str, Any] | None:
        """What the commit record of an epoch says; None if there is none yet."""
        name = f"{_folder(input, epoch)}/{_COMMITTED}"
        return None if self._objects.size(name) is None else self._record(name)[1]

    def _record(self, name: str) -> tuple[int, dict[str, Any]]:
        return unseal(self._objects.get(name).to_pybytes(), f"{self._objects}/{name}", VERSIONS)

    def _epochs(self, input: str) -> list[int]:
        found = self._objects.folders(f"{_ROOT}/{_safe(input)}")
        return sorted(int(name) for name in found if name.isdigit())


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
