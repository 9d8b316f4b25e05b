"""Runs of a durable dataflow that end at some moment, and are begun again by others.

What a run gives is kept by epoch, as by whoever reads complete epochs only: an epoch counts
when the run was seen to complete it. A run that begins with a snapshot gives everything
after it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable, Manifest
from pointstamp.containers import kind_of
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream

Build = Callable[[Scope, dict[str, Stream[Any]]], Stream[Any]]
"""Makes of a stream for each input what comes out."""

Epochs = Sequence[Mapping[str, Any]]
"""By epoch, the batches (or a list of records) of each input, all of them."""


@dataclass
class Ran:
    """What the workers of a run gave."""

    records: dict[int, list[Any]] = field(default_factory=dict)
    manifest: Manifest | None = None

    def upto(self, epoch: int) -> dict[int, list[Any]]:
        return {time: self.records[time] for time in sorted(self.records) if time <= epoch}


@dataclass(frozen=True)
class Run:
    """A program: `main(worker)` runs the epochs after the snapshot that it begins with."""

    build: Build
    epochs: Epochs
    durable: Durable | None = None
    snapshots: frozenset[int] = frozenset()
    ahead: int = 1
    """How many epochs are sent before one is waited for."""
    lag: int = 0
    """How many epochs the last input is behind the others."""

    def __call__(self, worker: ps.Worker) -> tuple[dict[int, list[Any]], dict[int, Any]]:
        seen: dict[int, list[Any]] = {}

        def note(time: Any, batch: Any) -> None:
            seen.setdefault(time, []).extend(kind_of(batch).records(batch))

        names = list(self.epochs[0])
        with worker.dataflow("program", durable=self.durable) as scope:
            pairs = {name: scope.new_input(name) for name in names}
            streams = {name: stream for name, (_, stream) in pairs.items()}
            probe = self.build(scope, streams).inspect_batch(note).probe()
        inputs = {name: handle for name, (handle, _) in pairs.items()}
        first = 0 if self.durable is None else self.durable.epoch + 1
        written = {
            # Of all at once: they are in time before anything is sent.
            epoch: worker.snapshot(epoch, background=False)
            for epoch in sorted(self.snapshots)
            if epoch >= first
        }
        for epoch in range(first, len(self.epochs) + self.lag):
            for name, handle in inputs.items():
                own = epoch - self.lag if name == names[-1] else epoch
                if first <= own < len(self.epochs):
                    self._send(worker, handle, self.epochs[own][name])
                    handle.advance_to(own + 1)
            worker.step()
            done = epoch + 1 - self.ahead - self.lag
            worker.step_while(lambda: probe.less_than(done))  # noqa: B023
        for handle in inputs.values():
            handle.close()
        worker.run()
        return seen, {epoch: snapshot.part for epoch, snapshot in written.items()}

    @staticmethod
    def _send(worker: ps.Worker, handle: Any, batch: Any) -> None:
        """This worker's share of an epoch's records, as a batch of the same kind."""
        kind = kind_of(batch)
        n = kind.length(batch)
        start, stop = (n * i // worker.peers for i in (worker.index, worker.index + 1))
        if stop > start:
            handle.send_batch(kind.slice(batch, start, stop))


Runner = Callable[[Run], list[Any]]


def in_threads(workers: int) -> Runner:
    return lambda run: ps.execute(run, workers=workers, threads=True)


def in_processes(workers: int, log: ps.Log | None = None) -> Runner:
    return lambda run: ps.execute(run, workers=workers, log=log)


def simulated(workers: int, seed: int) -> Runner:
    return lambda run: ps.simulate(run, workers=workers, seed=seed)


def ran(run: Run, runner: Runner, checkpoint: Checkpoint | None = None) -> Ran:
    """Run to the end, and seal what snapshots were made."""
    result = Ran()
    parts: dict[int, list[Any]] = {}
    for seen, own in runner(run):
        for time, records in seen.items():
            result.records.setdefault(time, []).extend(records)
        for epoch, part in own.items():
            parts.setdefault(epoch, []).append(part)
    for records in result.records.values():
        records.sort(key=repr)
    if checkpoint is not None:
        for epoch, of_epoch in sorted(parts.items()):
            result.manifest = checkpoint.commit_manifest(epoch, of_epoch, {})
    return result


def check_restart(
    build: Build,
    epochs: Epochs,
    checkpoint: Checkpoint,
    *,
    first: Runner,
    then: Runner,
    cut: int,
    ahead: int = 1,
    lag: int = 0,
    earlier: frozenset[int] = frozenset(),
) -> Ran:
    """A run to the end, and one from its snapshot at `cut` on, give what one without gives."""
    expected = ran(Run(build, epochs, ahead=ahead, lag=lag), first)
    whole = ran(
        Run(build, epochs, Durable(checkpoint), frozenset({cut}) | earlier, ahead, lag),
        first,
        checkpoint,
    )
    assert whole.records == expected.records  # the snapshot has changed nothing
    manifest = checkpoint.latest()
    assert manifest is not None
    assert manifest.epoch == cut
    again = ran(Run(build, epochs, Durable(checkpoint, manifest), ahead=ahead, lag=lag), then)
    assert again.records == {t: r for t, r in expected.records.items() if t > cut}
    return whole
