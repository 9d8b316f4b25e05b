"""A log as a timeline: what each worker did in each part of the run, one beside the other.

The run, from the first event of any worker to the last, is cut into slots that are as long as
each other. In a slot a worker was in an operator, in a scope (which is the tracking of
progress), parked, or at the rest: the program's own code, communication, logging. Of nested
activations the innermost counts. Workers that wait for each other show as parks side by side
with another's operators; a part that does not get shorter with more workers, as the same
operator at work for as long on each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pointstamp.observability.reading import LoggedRun, WorkerEvents

if TYPE_CHECKING:
    from pointstamp.observability.summary import OperatorSum

Moments = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.float64]

OTHER, SCOPES, PARKED, REST, AWAY = "o", "+", ".", "-", " "
"""The marks of operators without a letter, of scopes, parks, the rest, and no event yet or more."""


@dataclass(frozen=True)
class TimelineRow:
    """A worker's part of a timeline.

    Attributes
    ----------
    worker : int
    shares : dict of list of float
        By mark, how much of each slot it takes, from 0 to 1; without those that take nothing.
    marks : str
        For each slot the mark that takes most of it.
    """

    worker: int
    shares: dict[str, list[float]]
    marks: str


@dataclass(frozen=True)
class Timeline:
    """Rows of slots.

    Attributes
    ----------
    began : int
        The moment of the first event.
    slot : float
        How long a slot is, in the unit of the log.
    letters : dict of str
        By letter, the name of an operator.
    rows : list of TimelineRow
    """

    began: int
    slot: float
    letters: dict[str, str]
    rows: list[TimelineRow]


def timeline(run: LoggedRun, operators: Sequence[OperatorSum], slots: int) -> Timeline | None:
    """The timeline of a log, or None if it has no events.

    Parameters
    ----------
    run : LoggedRun
    operators : sequence of OperatorSum
        Those that took longest first: the first of them get letters.
    slots : int
        At least 1.
    """
    spans = [events.span for events in run.workers if events.span is not None]
    if not spans:
        return None
    began, ended = min(span[0] for span in spans), max(span[1] for span in spans)
    edges = np.linspace(began, max(ended, began + 1), slots + 1)
    chosen = [each for each in operators if each.kind == "operator" and each.self_time]
    letter_of = {
        each.operator: letter for letter, each in zip(ascii_uppercase, chosen, strict=False)
    }
    marks = {each.operator: OTHER if each.kind == "operator" else SCOPES for each in operators}
    rows = [_row(events, edges, {**marks, **letter_of}) for events in run.workers]
    letters = {letter_of[each.operator]: each.name for each in chosen[: len(letter_of)]}
    return Timeline(began, float(edges[1] - edges[0]), letters, rows)


def _row(events: WorkerEvents, edges: Lengths, marks: dict[int, str]) -> TimelineRow:
    slot = float(edges[1] - edges[0])
    began, ended, operators = innermost(
        np.asarray(events["schedules"]["began"], np.int64),
        np.asarray(events["schedules"]["at"], np.int64),
        np.asarray(events["schedules"]["operator"], np.int64),
    )
    mark_of = np.array([marks.get(number, OTHER) for number in operators.tolist()], "U1")
    times = {
        mark: _in_slots(began[mark_of == mark], ended[mark_of == mark], edges)
        for mark in sorted(set(mark_of.tolist()))
    }
    parks = events["parks"]
    times[PARKED] = _in_slots(np.asarray(parks["began"]), np.asarray(parks["at"]), edges)
    first, last = events.span or (0, 0)
    here = _in_slots(np.array([first]), np.array([last]), edges)
    times[REST] = np.maximum(here - sum(times.values()), 0)
    times[AWAY] = np.maximum(slot - here, 0)
    names = list(times)
    largest = np.argmax([times[name] for name in names], axis=0)
    return TimelineRow(
        events.index,
        {
            name: np.round(time / slot, 4).tolist()
            for name, time in times.items()
            if name != AWAY and time.any()
        },
        "".join(names[i] for i in largest.tolist()),
    )


def innermost(
    began: Moments, ended: Moments, operators: Moments
) -> tuple[Moments, Moments, Moments]:
    """Cut activations that nest, or are apart, into pieces in each of which one is innermost.

    Examples
    --------
    A scope from 0 to 10 in which an operator was active from 3 to 5:

    >>> of = lambda *numbers: np.array(numbers, np.int64)
    >>> [each.tolist() for each in innermost(of(0, 3), of(10, 5), of(7, 8))]
    [[0, 3, 5], [3, 5, 10], [7, 8, 7]]
    """
    pieces: list[tuple[int, int, int]] = []
    around: list[tuple[int, int]] = []
    at = int(np.iinfo(np.int64).min)
    """Up to where it is known which is innermost."""

    def close(until: int) -> None:
        nonlocal at
        while around and around[-1][0] <= until:
            end, operator = around.pop()
            if end > at:
                pieces.append((at, end, operator))
                at = end

    order = np.lexsort((-ended, began))
    for start, end, operator in zip(
        began[order].tolist(), ended[order].tolist(), operators[order].tolist(), strict=True
    ):
        close(start)
        if around and start > at:
            pieces.append((at, start, around[-1][1]))
        at = max(at, start)
        around.append((end, operator))
    close(np.iinfo(np.int64).max)
    columns = np.array(pieces, np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


def _in_slots(began: Moments, ended: Moments, edges: Lengths) -> Lengths:
    """How much of each slot is in the pieces, which are in order and apart, [n slots]."""
    if not len(began):
        return np.zeros(len(edges) - 1)
    # How much lies before a moment is linear between the beginnings and ends. Moments count
    # from the first edge: in nanoseconds since 1970 they are more than a float has digits for.
    first = int(edges[0])
    lengths = np.cumsum(ended - began)
    moments = np.stack([began - first, ended - first], axis=1).ravel()
    before = np.stack([lengths - (ended - began), lengths], axis=1).ravel()
    inside: Lengths = np.diff(np.interp(edges - first, moments, before))
    return inside
