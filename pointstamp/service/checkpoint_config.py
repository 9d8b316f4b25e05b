"""What a service keeps, and where: its log of inputs, snapshots, and output that is not discarded.

A snapshot has the state of operators, not what they have put out; so what the outputs hold
of the epochs up to it is kept beside it, as attempts in the checkpoint's log that belong to
the epoch after: there they are removed with the log, when no snapshot needs them any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any
from uuid import uuid4

import pyarrow as pa

from pointstamp.checkpoint.checkpoint import Checkpoint
from pointstamp.checkpoint.claims import CheckpointClaim
from pointstamp.checkpoint.durable import Durable
from pointstamp.checkpoint.input_log import BEFORE_ALL, UNRECORDED
from pointstamp.checkpoint.staged import Staged
from pointstamp.errors import CheckpointStructureError, CorruptCheckpointError, UsageError
from pointstamp.service.spec import ServiceSpec

OUTPUT = "output: "
"""What the name begins with by which the checkpoint knows an output."""

COLLECTIONS = "collections: epochs"
"""The input whose log has the commits of all collections: one record is an epoch of them."""

_EPOCH = "pointstamp: epoch"
"""The column that says of which epoch a stored record is."""


@dataclass(frozen=True)
class CheckpointConfig(Durable):
    """A checkpoint, and the snapshot that a service begins with; the same on all workers.

    Attributes
    ----------
    every : int or None
        How many epochs there are from one snapshot to the next; None makes none.
    claim : CheckpointClaim or None
        By which this service alone commits to a folder of this machine.
    """

    every: int | None = None
    claim: CheckpointClaim | None = None

    def shared_claim(self) -> AbstractContextManager[None]:
        """Hold the claim, in a worker, for as long as that may commit."""
        return nullcontext() if self.claim is None else self.claim.shared()

    def check_claim(self) -> None:
        """Raise `CheckpointError` if the folder is gone, or another program has it."""
        if self.claim is not None:
            self.claim.check()

    def outputs(self, output: str) -> list[Staged]:
        """What was stored of an output beside the snapshot."""
        return [Staged.from_json(record) for record in self._meta("outputs").get(output, ())]

    def discarded(self, output: str) -> int:
        """The last epoch of an output that was discarded when the snapshot was made."""
        return int(self._meta("discarded").get(output, -1))

    def feeds(self) -> dict[str, tuple[int, int]]:
        """By feed of collections: its last batch when the snapshot was made, and its epoch."""
        return {name: (batch, epoch) for name, (batch, epoch) in self._meta("feeds").items()}

    def commits(self) -> dict[str, int]:
        """By the names of the last commits to collections, oldest first: their epochs."""
        return dict(sorted(self._meta("commits").items(), key=itemgetter(1)))

    def times(self) -> dict[int, int]:
        """By epoch of collections that was not discarded then: when it was committed, in us."""
        return {int(epoch): time_us for epoch, time_us in self._meta("times").items()}

    def queries(self) -> dict[str, tuple[int, str | None]]:
        """By input of records: its last epoch that had some, and of which query they were."""
        if self.manifest is not None and "queries" not in self.manifest.meta:
            # Of a former version.
            return dict.fromkeys(self._meta("reached"), (BEFORE_ALL, UNRECORDED))
        return {name: (epoch, query) for name, (epoch, query) in self._meta("queries").items()}

    def _meta(self, what: str) -> dict[str, Any]:
        """What `meta` gave beside the snapshot; nothing without one."""
        return {} if self.manifest is None else dict(self.manifest.meta.get(what, {}))

    @staticmethod
    def meta(
        spec: ServiceSpec,
        outputs: Sequence[Mapping[str, Any]],
        discarded: Mapping[str, int],
        positions: Mapping[str, int | None],
        feeds: Mapping[str, tuple[int, int]],
        commits: Mapping[str, int],
        times: Mapping[int, int],
        queries: Mapping[str, tuple[int, str | None]],
    ) -> dict[str, Any]:
        """What a snapshot says beside the state; `outputs` is what `store` gave, by worker."""
        return {
            "outputs": {name: [stored[name] for stored in outputs] for name in discarded},
            "discarded": dict(discarded),
            "columns": {
                "input": {name: _columns(schema) for name, schema in spec.inputs.items()},
                "output": {name: _columns(schema) for name, schema in spec.outputs.items()},
            },
            "feeds": dict(feeds),
            "commits": dict(commits),
            "times": {str(epoch): time_us for epoch, time_us in times.items()},
            "queries": dict(queries),
            "reached": {name: at for name, at in positions.items() if at is not None},
        }

    def store(
        self, output: str, epoch: int, worker: int, pairs: Iterable[tuple[int, pa.RecordBatch]]
    ) -> dict[str, Any]:
        """Write what a worker has of an output up to the epoch of a snapshot.

        Under a name of its own: a former life may have come as far, with less or otherwise
        divided, and what it wrote, and never committed, would be taken for ours.
        """
        batches = [
            batch.append_column(_EPOCH, pa.array([of] * batch.num_rows, pa.int64()))
            for of, batch in pairs
        ]
        attempt = f"worker {worker}, {uuid4().hex[:12]}"
        return self.checkpoint.stage(OUTPUT + output, epoch + 1, attempt, batches).to_json()

    def load(self, kept: Staged) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(epoch, batch) of what was stored."""
        for batch in self.checkpoint.read(kept):
            epochs = batch.column(_EPOCH)
            # Each batch was of one epoch when it was stored.
            yield epochs[0].as_py(), batch.drop_columns([_EPOCH])

    def check(self, spec: ServiceSpec) -> None:
        """Raise `CheckpointStructureError` unless what is kept fits the service.

        An input may not be gone, nor an output of which records are kept, nor have other columns;
        and a collection may not be a new output behind a snapshot.
        """
        known = {name for name in self.checkpoint.inputs() if not name.startswith(OUTPUT)}
        known.discard(COLLECTIONS)
        gone = ", ".join(map(repr, sorted(known - set(spec.inputs))))
        if gone:
            raise CheckpointStructureError(
                f"{self.checkpoint} has records of input {gone}, which this service has not: its "
                f"inputs are {', '.join(map(repr, spec.inputs))}; serve the dataflow that they "
                "were sent to, or with another folder"
            )
        before = self._meta("columns")
        of_collections = self._staged_of_collections()
        for name, schema in spec.inputs.items():
            staged = of_collections.get(name, [])
            self._check_kind(name, name in spec.collections, bool(staged))
            logged = self._logged(name, staged)
            had = before.get("input", {}).get(name) if logged is None else _columns(logged)
            self._compare("input", name, had, schema)
        for name in self._meta("outputs"):
            if not any(kept.rows for kept in self.outputs(name)):
                continue
            if name in spec.outputs:
                had = before.get("output", {}).get(name)
                self._compare("output", name, had, spec.outputs[name])
            elif name not in self.allow_missing:
                raise CheckpointStructureError(
                    f"{self.checkpoint} has records of output {name!r}, which this service has "
                    f"not: its outputs are {', '.join(map(repr, spec.outputs))}. If they are not "
                    f"needed any more, say so: allow_missing=[{name!r}]"
                )

        outputs = before.get("output", spec.maintained)
        new = [name for name in spec.maintained if name not in {*outputs, *self.allow_new}]
        if new:
            raise CheckpointStructureError(
                f"the snapshot of epoch {self.epoch} in {self.checkpoint} has no records of "
                f"{', '.join(map(repr, new))}, which would begin without those of before: its "
                f"outputs are {', '.join(map(repr, outputs)) or 'none'}. If that is wanted, say "
                f"so: allow_new={new}; or serve with another folder"
            )

    def _check_kind(self, name: str, is_collection: bool, was_collection: bool) -> None:
        """Raise if an input was a stream and is a collection now, or the reverse."""
        was_stream = self.checkpoint.reached(name) > 0
        if (is_collection and was_stream) or (not is_collection and was_collection):
            was, now = ("stream", "collection") if was_stream else ("collection", "stream")
            raise CheckpointStructureError(
                f"input {name!r} was a {was} when {self.checkpoint} was written, and is a {now} "
                "now: give it another name, or serve with another folder"
            )

    def _staged_of_collections(self) -> dict[str, list[Staged]]:
        """What the log has of collections, by input."""
        found: dict[str, list[Staged]] = {}
        for record in self.checkpoint.records(COLLECTIONS, self.epoch):
            for one in record.attempts:
                found.setdefault(one.input, []).append(one)
        return found

    def reached(self, input: str, log: str | None = None) -> int:
        """The epoch that an input is at by its log, which may not end before the snapshot.

        log : the input whose log has its commits, if that is another
        """
        reached = self.checkpoint.reached(input if log is None else log)
        noted = self._meta("reached").get(input, 0)
        if reached < noted:
            raise CorruptCheckpointError(
                f"{self.checkpoint}: the log of input {input!r} ends before epoch {reached}, and "
                f"the snapshot of epoch {self.epoch} says that the input was at epoch {noted}: "
                "commit records at the end were lost; restore the folder from a copy"
            )
        return reached

    def _logged(self, input: str, of_collection: list[Staged]) -> pa.Schema | None:
        """The schema of what was committed for an input first; None if nothing is there.

        of_collection : what the log of collections has of it
        """
        committed = self.checkpoint.committed(input, self.epoch)
        of_stream = (kept for _, attempts in committed for kept in attempts)
        stored = (kept for kept in chain(of_stream, of_collection) if kept.rows)
        return next((next(self.checkpoint.read(kept)).schema for kept in stored), None)

    def _compare(self, what: str, name: str, before: list[str] | None, schema: pa.Schema) -> None:
        now = _columns(schema)
        if before is not None and before != now:
            raise CheckpointStructureError(
                f"{what} {name!r} had columns {', '.join(before)} when {self.checkpoint} was "
                f"written, and has {', '.join(now)} now: serve with those, or with another folder"
            )


def checkpoint_of(place: Any) -> Checkpoint | None:
    """The checkpoint at a path, a URI or that is given; None for None."""
    return place if place is None or isinstance(place, Checkpoint) else Checkpoint(place)


def checkpoint_config(
    checkpoint: Checkpoint | None,
    every: int | None,
    allow_missing: Collection[str],
    allow_new: Collection[str],
    claim: CheckpointClaim | None,
) -> CheckpointConfig | None:
    """What a checkpoint has at this moment, to begin with; None without one.

    Raises `UsageError` if the options do not fit together, or what is there.
    """
    if claim is not None:
        claim.check()  # not of nothing, when workers are started again
    if checkpoint is None:
        if every is not None:
            raise UsageError("snapshot_every= needs a checkpoint= to put snapshots into")
        return None
    if every is not None and (type(every) is not int or every < 1):
        raise UsageError(f"snapshot_every= is a number of epochs, at least 1, and not {every!r}")
    for option, names in (("allow_missing", allow_missing), ("allow_new", allow_new)):
        if isinstance(names, str):
            raise UsageError(f"{option}= is a list of names, such as [{names!r}], and not a text")
    manifest = checkpoint.latest()
    if manifest is not None and every is None:
        raise UsageError(
            f"{checkpoint} has a snapshot, of epoch {manifest.epoch}, and the log of inputs may be "
            "pruned up to it: begin with that, by snapshot_every="
        )
    return CheckpointConfig(
        checkpoint, manifest, tuple(allow_missing), tuple(allow_new), every, claim
    )


def _columns(schema: pa.Schema) -> list[str]:
    return [f"{field.name}: {field.type}" for field in schema]
