"""The snapshots that this process has committed, for metrics and the log: when, and how large.

A snapshot begins where its workers are asked for it, and is there when its manifest is: what asks
and what commits are different layers, so it is noted here. By checkpoint, whatever object it is.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass
from time import monotonic

LOGGER = logging.getLogger("pointstamp.checkpoint")

MOST_BEGUN = 64
"""So many snapshots are on their way at most: what is never committed is forgotten."""

MOST_RECENT = 64
"""So many of the last snapshots are kept, of all checkpoints together."""


@dataclass(frozen=True)
class CommittedSnapshot:
    """The last snapshot of a checkpoint.

    Attributes
    ----------
    epoch : int
        Of which.
    number : int
        How many this process has committed, with this one.
    at_s : float
        When, by the monotonic clock.
    n_bytes : int
        What was written for it.
    seconds : float
        From when its workers were asked for it.
    """

    epoch: int
    number: int
    at_s: float
    n_bytes: int
    seconds: float


_begun: dict[tuple[str, int], float] = {}
_committed: dict[str, CommittedSnapshot] = {}
_recent: deque[tuple[str, CommittedSnapshot]] = deque(maxlen=MOST_RECENT)


def note_begun(place: str, epoch: int) -> None:
    """A snapshot is asked for; again does nothing."""
    _begun.setdefault((place, epoch), monotonic())
    while len(_begun) > MOST_BEGUN:
        _begun.pop(next(iter(_begun)), None)


def note_committed(place: str, epoch: int, n_bytes: int, began_s: float) -> None:
    """A snapshot is there; `began_s` is when at the latest it was begun."""
    before, now = _committed.get(place), monotonic()
    seconds = now - _begun.pop((place, epoch), began_s)
    number = 1 if before is None else before.number + 1
    snapshot = CommittedSnapshot(epoch, number, now, n_bytes, seconds)
    _committed[place] = snapshot
    _recent.append((place, snapshot))
    LOGGER.info(
        "snapshot of epoch %d is committed to %s: %d bytes in %.3f s",
        *(epoch, place, n_bytes, seconds),
        extra={"epoch": epoch, "checkpoint": place, "n_bytes": n_bytes, "seconds": seconds},
    )


def committed() -> dict[str, CommittedSnapshot]:
    """By checkpoint: the last that this process has committed.

    >>> note_begun("somewhere", 7)
    >>> note_committed("somewhere", 7, 100, monotonic())
    >>> committed()["somewhere"].n_bytes, committed()["somewhere"].number
    (100, 1)
    >>> _ = _committed.pop("somewhere"), _recent.pop()
    """
    return dict(_committed)


def recent() -> list[tuple[str, CommittedSnapshot]]:
    """(checkpoint, snapshot) of the last that this process has committed, in their order."""
    return list(_recent)
