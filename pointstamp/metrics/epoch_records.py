"""Epochs that are complete, as a worker has seen them: what spans of a trace are made of.

Only workers of a program with `telemetry=` record them. An epoch begins with the first record that
an input of the worker sends at it, and ends when a probe of the worker shows that it cannot come
any more. Both are moments that are counted anyway; what is added is one look at each batch that an
input sends.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pointstamp.containers.registry import n_records
from pointstamp.dataflow.channels import Pusher
from pointstamp.metrics.meters import EpochMeter, LeftEpoch
from pointstamp.metrics.samples import EndedEpoch

MOST_RECORDED = 65_536
"""So many epochs are kept until they are asked for; of more, the eldest are lost."""


@dataclass(frozen=True)
class EpochPlace:
    """Where epochs end: a probe, and its dataflow."""

    dataflow: str
    probe: str
    place: str


class EpochRecorder:
    """The epochs of one worker that are complete, until they are asked for.

    >>> recorder = EpochRecorder()
    >>> left = LeftEpoch(8, 20, 7, 10, 3, False)
    >>> recorder.note(EpochPlace("sums", "End", "0/2"), left, 30)
    >>> [(each.epoch, each.records, each.ended_ns - each.began_ns) for each in recorder.after(0)]
    [(7, 3, 20)]
    >>> recorder.after(1)
    []
    """

    def __init__(self) -> None:
        self.identity = uuid4().hex
        """Of this worker, and of no other, in this process or elsewhere."""
        self.known = 0
        """The last that was asked for."""
        self._n_ended = 0
        self._ended: deque[EndedEpoch] = deque(maxlen=MOST_RECORDED)
        self._since_1970_ns = time.time_ns() - time.perf_counter_ns()

    def note(self, where: EpochPlace, left: LeftEpoch, now: int) -> None:
        """An epoch is complete."""
        if left.is_end and not left.records:
            return  # the inputs were closed, and had sent nothing since the epoch before
        self._n_ended += 1
        since = self._since_1970_ns
        self._ended.append(
            EndedEpoch(
                self._n_ended,
                where.dataflow,
                where.probe,
                where.place,
                left.epoch,
                since + left.began_ns,
                since + left.left_ns,
                since + now,
                left.records,
            )
        )

    def after(self, number: int) -> list[EndedEpoch]:
        """Those after this one. Any thread may ask: a copy is made at once."""
        self.known = number
        return [each for each in list(self._ended) if each.number > number]


class EpochPusher(Pusher):
    """Notes what an input sends, at which epoch; beside what takes it on."""

    __slots__ = ("_epochs",)

    def __init__(self, epochs: EpochMeter) -> None:
        self._epochs = epochs

    def push(self, time: Any, batch: Any) -> None:
        """See `Pusher`."""
        if type(time) is int:
            self._epochs.note_sent(time, n_records(batch))
