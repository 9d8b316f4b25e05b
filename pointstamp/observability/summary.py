"""Sums of a log: what each operator, channel and worker did, and how long it took.

An operator's *self time* is that of its activations without those of what is inside it:
for a scope what remains is the tracking of progress. What a worker was doing, between
its first event and its last, is four things that add up: operators, scopes, parks, and
the rest, which is the program's own code, communication, and the telling itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.observability.event_types import CROSSINGS
from pointstamp.observability.path import Critical, Epoch, critical_path, epochs
from pointstamp.observability.reading import LoggedRun, WorkerEvents

Moments = npt.NDArray[np.int64]


@dataclass
class OperatorSum:
    """What an operator did, over all workers. Times are in the unit of the log."""

    operator: int
    kind: str
    name: str
    address: str
    activations: int = 0
    self_time: int = 0
    share: float = 0.0
    """Of the self times of all."""

    @property
    def title(self) -> str:
        """The name, and what it is of if it is of no operator."""
        return self.name if self.kind == "operator" else f"{self.name} ({self.kind})"


@dataclass
class ChannelSum:
    """What went through a channel, over all workers."""

    channel: int
    source: str
    target: str
    pact: str
    batches: int = 0
    records: int = 0
    to_others: int = 0
    """Records that were sent to another worker than the sender."""
    received: int = 0
    """Records that operators took."""

    @property
    def title(self) -> str:
        """Where it leads."""
        return f"{self.source} -> {self.target}"

    @property
    def not_taken(self) -> int:
        """Records that were sent, and that no operator took."""
        return self.records - self.received


@dataclass
class WorkerSum:
    """What a worker did with its time."""

    worker: int
    elapsed: int = 0
    operators: int = 0
    scopes: int = 0
    parked: int = 0
    parks: int = 0
    progress_sent: int = 0
    progress_received: int = 0
    updates_sent: int = 0

    @property
    def rest(self) -> int:
        """What is none of the others."""
        return max(0, self.elapsed - self.operators - self.scopes - self.parked)

    @property
    def idle_share(self) -> float:
        """How much of the time it was parked."""
        return self.parked / self.elapsed if self.elapsed else 0.0


@dataclass
class RunSummary:
    """All sums of a log."""

    unit: str
    operators: list[OperatorSum]
    channels: list[ChannelSum]
    workers: list[WorkerSum]
    epochs: list[Epoch] = field(default_factory=list)
    critical: Critical | None = None
    texts: list[tuple[int, str]] = field(default_factory=list)
    """(worker, text), in the order of their moments."""
    missing: list[str] = field(default_factory=list)


def summarize(run: LoggedRun, epoch: str | None = None) -> RunSummary:
    """Summarize a log, with the critical path of one epoch, by default the slowest.

    Raises
    ------
    UsageError
        If there is no such epoch.
    """
    operators = _operators(run)
    channels = _channels(run, operators)
    workers = []
    for events in run.workers:
        workers.append(_worker(events, operators))
        _add_traffic(events, channels)
    total = sum(each.self_time for each in operators.values())
    for each in operators.values():
        each.share = each.self_time / total if total else 0.0
    found = epochs(run)
    return RunSummary(
        run.unit,
        sorted(operators.values(), key=lambda each: -each.self_time),
        [channels[number] for number in sorted(channels)],
        workers,
        found,
        critical_path(run, found, epoch),
        _texts(run),
        run.missing,
    )


def self_times(at: Moments, began: Moments) -> Moments:
    """How long each activation took without those inside it, [n]; they nest, or are apart."""
    times: Moments = at - began
    result = times.copy()
    around: list[int] = []
    for i in np.lexsort((-at, began)).tolist():
        while around and at[around[-1]] <= began[i]:
            around.pop()
        if around:
            result[around[-1]] -= times[i]
        around.append(i)
    return result


def _operators(run: LoggedRun) -> dict[int, OperatorSum]:
    found: dict[int, OperatorSum] = {}
    for events in run.workers:
        table = events["operators"]
        for i, number in enumerate(_ints(table["operator"])):
            if number not in found:
                found[number] = OperatorSum(
                    number, table["kind"][i], table["name"][i], table["address"][i]
                )
    return found


def _channels(run: LoggedRun, operators: dict[int, OperatorSum]) -> dict[int, ChannelSum]:
    def name(number: int) -> str:
        return operators[number].name if number in operators else "?"

    found: dict[int, ChannelSum] = {}
    for events in run.workers:
        table = events["channels"]
        for i, number in enumerate(_ints(table["channel"])):
            if number not in found and table["pact"][i] not in CROSSINGS:
                source, target = int(table["source"][i]), int(table["target"][i])
                found[number] = ChannelSum(number, name(source), name(target), table["pact"][i])
    return found


def _worker(events: WorkerEvents, operators: dict[int, OperatorSum]) -> WorkerSum:
    first, last = events.span or (0, 0)
    found = WorkerSum(events.index, elapsed=last - first)
    schedules, parks, progress = events["schedules"], events["parks"], events["progress"]
    own = self_times(_array(schedules["at"]), _array(schedules["began"]))
    for number, time in zip(_ints(schedules["operator"]), own.tolist(), strict=True):
        operator = operators.get(number)
        if operator is None:  # of a log that lost its beginning
            operator = operators[number] = OperatorSum(number, "operator", "?", "?")
        operator.activations += 1
        operator.self_time += time
        if operator.kind == "operator":
            found.operators += time
        else:
            found.scopes += time
    found.parks = len(parks["at"])
    found.parked = int((_array(parks["at"]) - _array(parks["began"])).sum())
    is_send = _array(progress["is_send"]).astype(np.bool_)
    found.progress_sent = int(is_send.sum())
    found.progress_received = int((~is_send).sum())
    found.updates_sent = int(_array(progress["updates"])[is_send].sum())
    return found


def _add_traffic(events: WorkerEvents, channels: dict[int, ChannelSum]) -> None:
    table = events["messages"]
    numbers, is_send = _array(table["channel"]), _array(table["is_send"]).astype(np.bool_)
    records = _array(table["records"])
    is_away = is_send & (_array(table["source"]) != _array(table["target"]))
    for number in np.unique(numbers).tolist():
        channel = channels.get(number)
        if channel is None:
            channel = channels[number] = ChannelSum(number, "?", "?", "?")
        here = numbers == number
        channel.batches += int((here & is_send).sum())
        channel.records += int(records[here & is_send].sum())
        channel.to_others += int(records[here & is_away].sum())
        channel.received += int(records[here & ~is_send].sum())


def _texts(run: LoggedRun) -> list[tuple[int, str]]:
    table = [
        (int(at), events.index, text)
        for events in run.workers
        for at, text in zip(events["texts"]["at"], events["texts"]["text"], strict=True)
    ]
    return [(worker, text) for _, worker, text in sorted(table)]


def _array(column: Any) -> npt.NDArray[Any]:
    return np.asarray(column)


def _ints(column: Any) -> list[int]:
    numbers: list[int] = _array(column).tolist()
    return numbers
