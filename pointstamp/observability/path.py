"""The critical path of an epoch: what it was that it had to wait for, from end to end.

Theory of operation
-------------------
An epoch of a dataflow is a time that an input had. It *begins* when the last input lets
go of it, on whichever worker: from then on nothing can be sent at that time from
outside. It *ends* when the last probe, on whichever worker, shows that the time cannot
come any more. Inputs and probes are known by their place: an input has no channel that
leads to it, and holds capabilities; a probe has none that leads away, and shows
frontiers.

The path is found backwards from the end. At an activation of an operator, or at the end
itself, there are two things without which it would not have begun when it did: the
activation before it on the same worker, which kept the worker busy; and the messages
(records or progress, of this dataflow, of other workers) that the worker took since
then. The path goes on to whichever was last: to the end of that activation, or to the
sender at the moment of the sending. It stops at the beginning of the epoch. So its parts
follow each other without a gap, and their times add up to the epoch's.

A part of the kind "worker" is time between two activations in which nothing arrived that
had just been sent: the tracking of progress, the program's own code, or sleep.

Sent and received are matched by counting: channels keep the order of records between two
workers, and may put batches together, so a record that was received as the n-th was sent
as the n-th.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.errors import UsageError
from pointstamp.observability.event_types import NONE
from pointstamp.observability.reading import LoggedRun, WorkerEvents

Moments = npt.NDArray[np.int64]
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Epoch:
    """A time of a dataflow; moments and durations are in the unit of the log."""

    dataflow: str
    number: int
    """Of the dataflow, as an operator."""
    time: str
    began: int
    ended: int
    worker: int
    """On which it ended last."""

    @property
    def latency(self) -> int:
        """From the beginning to the end."""
        return self.ended - self.began


@dataclass(frozen=True)
class PathSegment:
    """A part of a critical path: an activation, a message, or the worker's own."""

    kind: str
    """ "operator", "message", "progress" or "worker"."""
    name: str
    worker: int
    """Where; of a message, its sender."""
    began: int
    ended: int

    @property
    def duration(self) -> int:
        """How long it took."""
        return self.ended - self.began


@dataclass(frozen=True)
class Critical:
    """The critical path of an epoch, from its beginning to its end."""

    epoch: Epoch
    parts: list[PathSegment] = field(default_factory=list)

    def by_name(self) -> list[tuple[str, str, int, int]]:
        """(kind, name, how many parts, their time) of what is alike, longest first."""
        sums: dict[tuple[str, str], list[int]] = {}
        for part in self.parts:
            entry = sums.setdefault((part.kind, part.name), [0, 0])
            entry[0] += 1
            entry[1] += part.duration
        table = [(kind, name, n, time) for (kind, name), (n, time) in sums.items()]
        return sorted(table, key=lambda each: -each[3])


def epochs(run: LoggedRun) -> list[Epoch]:
    """The epochs that have ended, in the order of their ends."""
    names = _names(run)
    dataflow_of = _dataflows(run)
    inputs, probes = epoch_ends(run)
    began = _last_gone(run, "capabilities", inputs, dataflow_of)
    ended = _last_gone(run, "frontiers", probes, dataflow_of)
    found = [
        Epoch(names[dataflow], dataflow, time, began[dataflow, time][0], at, worker)
        for (dataflow, time), (at, worker) in ended.items()
        if (dataflow, time) in began and began[dataflow, time][0] <= at
    ]
    return sorted(found, key=lambda epoch: epoch.ended)


def critical_path(run: LoggedRun, found: list[Epoch], time: str | None = None) -> Critical | None:
    """The critical path of the slowest of the epochs `found`, or of the one of that time.

    Raises
    ------
    UsageError
        If there is none of that time.
    """
    if time is not None:
        some = [epoch for epoch in found if epoch.time == time]
        if not some:
            times = ", ".join(dict.fromkeys(epoch.time for epoch in found[-20:]))
            raise UsageError(
                f"the log has no epoch {time!r} that a probe has seen the end of; the last ones "
                f"are {times or 'none'}"
            )
        found = some
    if not found:
        return None
    epoch = max(found, key=lambda each: each.latency)
    return Critical(epoch, _Walk(run, epoch).parts())


class _Walk:
    """Goes back along the path."""

    def __init__(self, run: LoggedRun, epoch: Epoch) -> None:
        self._epoch = epoch
        self._activities = {events.index: _Activities(events, run) for events in run.workers}
        self._arrivals = _arrivals(run, epoch.number)
        self._parts: list[PathSegment] = []

    def parts(self) -> list[PathSegment]:
        """All, from the beginning to the end."""
        worker, moment = self._epoch.worker, self._epoch.ended
        while moment > self._epoch.began:
            worker, moment = self._back(worker, moment)
        self._parts.reverse()
        return self._parts

    def _back(self, worker: int, moment: int) -> tuple[int, int]:
        """What `moment` on `worker` had to wait for; where it was, and when it was over."""
        activities = self._activities[worker]
        i = activities.before(moment)
        began = moment
        if i >= 0 and activities.ended[i] >= moment:  # in the middle of it, or at its end
            began = int(activities.began[i])
            self._add("operator", activities.name(i), worker, began, moment)
            i -= 1
        # Not later, also in a log that is damaged, or this would go on for ever.
        before = min(int(activities.ended[i]), began) if i >= 0 else _NEVER
        arrival = self._arrivals[worker].last(before, moment, began)
        if arrival is not None and arrival.sent > before:
            self._add(arrival.kind, arrival.name, arrival.sender, arrival.sent, began)
            return arrival.sender, arrival.sent
        self._add("worker", "", worker, before, began)
        return worker, before

    def _add(self, kind: str, name: str, worker: int, began: int, ended: int) -> None:
        began = max(began, self._epoch.began)
        if ended > began:
            self._parts.append(PathSegment(kind, name, worker, began, ended))


class _Activities:
    """The activations of operators on one worker, one after the other."""

    def __init__(self, events: WorkerEvents, run: LoggedRun) -> None:
        table = events["schedules"]
        names, kinds = _names(run), _kinds(run)
        operators = np.asarray(table["operator"])
        is_leaf = np.array([kinds.get(o, "operator") == "operator" for o in operators], np.bool_)
        began = np.asarray(table["began"])[is_leaf]
        order = np.argsort(began, kind="stable")
        self.began: Moments = began[order]
        self.ended: Moments = np.asarray(table["at"])[is_leaf][order]
        self._operators = operators[is_leaf][order]
        self._names = names

    def before(self, moment: int) -> int:
        """The last that began before `moment`, or -1."""
        return int(np.searchsorted(self.began, moment, "left")) - 1

    def name(self, i: int) -> str:
        """Of the operator."""
        return self._names.get(int(self._operators[i]), "?")


@dataclass(frozen=True)
class _Arrival:
    """Something of another worker, which this one has taken."""

    taken: int
    sent: int
    sender: int
    kind: str
    name: str


class _Arrivals:
    """What one worker has taken, in that order."""

    def __init__(self, arrivals: Iterable[_Arrival]) -> None:
        self._all = sorted(arrivals, key=lambda each: each.taken)
        self._taken: Moments = np.array([each.taken for each in self._all], np.int64)

    def last(self, after: int, until: int, before: int) -> _Arrival | None:
        """What was sent last before `before`, of what was taken after `after`, until `until`."""
        first, end = np.searchsorted(self._taken, [after, until], "right").tolist()
        there = [each for each in self._all[first:end] if each.sent < before]
        return max(there, key=lambda each: each.sent, default=None)


def _arrivals(run: LoggedRun, dataflow: int) -> dict[int, _Arrivals]:
    """By worker: what it took of others, of one dataflow."""
    dataflow_of, names = _dataflows(run), _names(run)
    pacts = {}
    for events in run.workers:
        table = events["channels"]
        for i, channel in enumerate(np.asarray(table["channel"]).tolist()):
            target = int(table["target"][i])
            if dataflow_of.get(target) == dataflow:
                pacts[channel] = f"to {names[target]}"
    scopes = {number: names[number] for number, within in dataflow_of.items() if within == dataflow}
    found: dict[int, list[_Arrival]] = {events.index: [] for events in run.workers}
    for kind, what, key, amount, wanted in (
        ("message", "messages", "channel", "records", pacts),
        ("progress", "progress", "scope", "updates", scopes),
    ):
        sent = _cumulated(run, what, key, amount, is_send=True)
        taken = _cumulated(run, what, key, amount, is_send=False)
        for (number, source, target), (moments, counts) in taken.items():
            if source == target or number not in wanted or target not in found:
                continue
            at, sums = sent.get((number, source, target), (moments[:0], counts[:0]))
            which = np.searchsorted(sums, counts, "left")
            found[target].extend(
                _Arrival(moment, int(at[i]), source, kind, wanted[number])
                for moment, i in zip(moments.tolist(), which.tolist(), strict=True)
                if i < len(at)  # else the sender's log is not whole
            )
    return {worker: _Arrivals(arrivals) for worker, arrivals in found.items()}


def sent_and_taken(run: LoggedRun) -> Iterator[tuple[int, int, int, int, int]]:
    """Of each batch that was taken: (channel, sender, moment, receiver, moment).

    Batches may be split and put together on their way: it is the sending of its last record. Of
    what a worker sends to itself, too.
    """
    sent = _cumulated(run, "messages", "channel", "records", is_send=True)
    taken = _cumulated(run, "messages", "channel", "records", is_send=False)
    for (channel, source, target), (moments, counts) in taken.items():
        at, sums = sent.get((channel, source, target), (moments[:0], counts[:0]))
        which = np.searchsorted(sums, counts, "left")
        for moment, i in zip(moments.tolist(), which.tolist(), strict=True):
            if i < len(at):  # else the sender's log is not whole
                yield channel, source, int(at[i]), target, moment


def _cumulated(
    run: LoggedRun, what: str, key: str, amount: str, *, is_send: bool
) -> dict[tuple[int, int, int], tuple[Moments, Moments]]:
    """By (channel or scope, sender, receiver): moments, and how much there was until then."""
    found = {}
    for events in run.workers:
        table = events[what]
        here = np.asarray(table["is_send"]).astype(np.bool_) == is_send
        keys = np.stack([np.asarray(table[name])[here] for name in (key, "source", "target")], 1)
        at, amounts = np.asarray(table["at"])[here], np.asarray(table[amount])[here]
        for each in np.unique(keys, axis=0):
            mine = (keys == each).all(axis=1)
            number, source, target = each.tolist()
            found[number, source, target] = (at[mine], np.cumsum(amounts[mine], dtype=np.int64))
    return found


def _last_gone(
    run: LoggedRun, what: str, operators: set[int], dataflow_of: dict[int, int]
) -> dict[tuple[int, str], tuple[int, int]]:
    """By (dataflow, time): the last moment at which one of `operators` lost it, and the worker."""
    found: dict[tuple[int, str], tuple[int, int]] = {}
    for events in run.workers:
        table = events[what]
        numbers, changes = np.asarray(table["operator"]), np.asarray(table["change"])
        for i in np.flatnonzero((changes < 0) & np.isin(numbers, sorted(operators))).tolist():
            key = (dataflow_of[int(numbers[i])], table["time"][i])
            found[key] = max(found.get(key, (_NEVER, NONE)), (int(table["at"][i]), events.index))
    return found


def epoch_ends(run: LoggedRun) -> tuple[set[int], set[int]]:
    """The operators where dataflows begin, and those where they end: inputs, and probes."""
    sources: set[int] = set()
    targets: set[int] = set()
    holders: set[int] = set()
    watchers: set[int] = set()
    for events in run.workers:
        sources.update(np.asarray(events["channels"]["source"]).tolist())
        targets.update(np.asarray(events["channels"]["target"]).tolist())
        holders.update(np.unique(np.asarray(events["capabilities"]["operator"])).tolist())
        watchers.update(np.unique(np.asarray(events["frontiers"]["operator"])).tolist())
    known = set(_dataflows(run))
    return (holders - targets) & known, (watchers - sources) & known


def _dataflows(run: LoggedRun) -> dict[int, int]:
    """By operator: its dataflow."""
    return {int(k): int(v) for k, v in _recorded(run, "dataflow").items()}


def _names(run: LoggedRun) -> dict[int, str]:
    return _recorded(run, "name")


def _kinds(run: LoggedRun) -> dict[int, str]:
    return _recorded(run, "kind")


def _recorded(run: LoggedRun, column: str) -> dict[int, Any]:
    """By operator: what was recorded of it."""
    return {
        number: value
        for events in run.workers
        for number, value in zip(
            np.asarray(events["operators"]["operator"]).tolist(),
            events["operators"][column],
            strict=True,
        )
    }
