"""The sweep of the dictionary: frees the entries that nothing names, and has numbers used again.

A sweep begins when there are half as many entries again as the last one left, and some more. It
*marks* what is named and then frees the rest, both by pieces that go with what comes, so that
nothing waits for the whole of it, and that it is over before there are twice as many.

Theory of operation: snapshot at the beginning. At that moment each holder says in which arrays
the numbers are that it keeps; nothing may be on its way between holders then. What is named later
is named in one of those arrays, which do not change, or its number was asked for
meanwhile, which marks it. So whatever holders do while it goes on, what has no mark at the
end is named nowhere.

A number that is overlooked would in time be that of another text. So what holds numbers has to be
known: each worker of this process is taken to hold some, until a `TextHolder` answers for it, and
a holder that cannot say what it holds has no sweep begin. A number that was freed is used again
after the next sweep at the earliest; what asks for its text until then fails, by name.

Source: marking with a snapshot at the beginning is Yuasa's "Real-time garbage collection on
general-purpose machines"; there a barrier is in what overwrites, here arrays do not change.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from pointstamp.containers.dictionary import TEXTS, Dictionary
from pointstamp.containers.text_order import TEXT_ORDER, TextOrder
from pointstamp.containers.text_users import n_users
from pointstamp.errors import InternalError

Held = tuple[npt.NDArray[np.int64], tuple[int, ...]]
"""Rows that do not change any more, and which of their words are numbers of texts."""

SPARE = 65_536
"""So many entries more than twice those in use may be there when a sweep is over."""

PIECE = 32_768
"""A piece marks so many words, which takes about 50 us, or frees what takes as long."""

FREE_COST = 64
"""To free an entry takes as long as to mark so many words."""

LOOK_COST = 4
"""The same of seeing that there is none to be freed."""

CLEAR_COST = 16
"""The same of leaving an entry out of a table that is not needed any more."""


class TextResult(Protocol):
    """Rows that were handed out."""

    def held_texts(self) -> Iterable[Held]:
        """All that it holds."""


class TextHolder(Protocol):
    """What holds numbers of texts, and can say which."""

    called: str
    """What it is, for messages."""

    runs_code: bool
    """Whether code of a program may run where it is asked: then it is asked before those are held
    still of which none does, as that code may wait for them."""

    def never_says(self) -> str:
        """Why it can never say what it holds; empty if it can. At any moment, on any thread."""

    def holds_still(self) -> bool:
        """Keep other threads from changing it, if none is at it now; whether none is."""

    def goes_on(self) -> None:
        """Let them change it again."""

    def refuses_sweep(self) -> str:
        """Why it cannot say now what it holds; empty if it can."""

    def held_texts(self) -> Iterable[Held]:
        """All that it holds, where it does not refuse."""


@dataclass(frozen=True)
class TextStats:
    """Of the dictionary of texts of this process, which all views in it share."""

    entries: int
    """How many texts there are, and other values of records."""
    used: int
    """So many of them the last sweep left."""
    sweeps: int
    """How many sweeps there have been."""
    refused: str
    """Why no sweep has begun when it was time for one; empty if none was refused since."""


class TextSweeps:
    """When the entries of a dictionary are swept, and what holds some.

    Attributes
    ----------
    spare : int
        See `SPARE`.
    piece : int
        See `PIECE`.
    order : TextOrder
        Where texts have labels.
    reuses : bool
        Whether numbers that were freed are used again. If not, what is overlooked is always seen.
    """

    def __init__(self, dictionary: Dictionary, order: TextOrder) -> None:
        self.spare, self.piece, self.reuses = SPARE, PIECE, True
        self._dictionary = dictionary
        self.order = order
        # What a view does at the beginning of a sweep may be a program's, and come back here.
        self._lock = threading.RLock()
        # Apart, as what a program's code waits for in there may give or read values.
        self._uses_lock = threading.RLock()
        self._is_at_it = False
        self._holders: weakref.WeakValueDictionary[int, TextHolder] = weakref.WeakValueDictionary()
        self._results: weakref.WeakValueDictionary[int, TextResult] = weakref.WeakValueDictionary()
        self._numbers = count()
        self._n_uses = 0
        self._work: Iterator[int] | None = None
        self._last: list[int] = []
        """The numbers that the last sweep freed."""
        self._used = 0
        self._n_sweeps = 0
        self._per_new = 0.0
        """How many words to mark, or what takes as long, for each value that is entered."""
        self._n_before = 0
        """How many values had been entered at the last piece."""
        self._refused = ""
        self.is_refused_for_good = False
        """Whether the last sweep that was due was refused by what never says what it holds."""

    # What holds numbers.

    def add_holder(self, holder: TextHolder) -> None:
        """Have sweeps ask a holder, as long as it lives."""
        self._holders[next(self._numbers)] = holder

    def remove_holder(self, holder: TextHolder) -> None:
        """It holds nothing any more."""
        for reference in self._holders.valuerefs():
            if reference() is holder:
                del self._holders[reference.key]

    def add_result(self, result: TextResult) -> None:
        """The same of rows that were handed out."""
        self._results[next(self._numbers)] = result

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Have no sweep begin in a block, in which numbers are in no holder."""
        with self._uses_lock:
            self._n_uses += 1
        try:
            yield
        finally:
            with self._uses_lock:
                self._n_uses -= 1

    def stats(self) -> TextStats:
        """As of now."""
        return TextStats(len(self._dictionary), self._used, self._n_sweeps, self._refused)

    # Sweeping.

    @property
    def is_awake(self) -> bool:
        """Whether there may be something to do although no value came since the last piece.

        With less than none to spare a sweep begins whenever it may.
        """
        return self._work is not None or self.spare < 0

    @property
    def is_under_way(self) -> bool:
        """Whether a sweep has begun, and is not over."""
        return self._work is not None

    @property
    def is_due(self) -> bool:
        """Whether there is something to do: a sweep goes on, or one should begin."""
        return self._work is not None or (2 * len(self._dictionary) > 3 * self._used + self.spare)

    def advance(self) -> None:
        """Do a piece, if one is due: larger if many entries came since the last; by any thread.

        Between uses of what is known to hold numbers: what it does itself is not on its way then.
        """
        if not self.is_due or not self._lock.acquire(blocking=False):
            return  # or another thread is at it
        if self._is_at_it:
            self._lock.release()
            return
        self._is_at_it = True
        try:
            n_entered = self._dictionary.n_entered
            if self._work is None:
                if not self._begin():
                    return
                self._n_before = n_entered
            n_new, self._n_before = n_entered - self._n_before, n_entered
            self._spend(self.piece + int(n_new * self._per_new))
        finally:
            self._is_at_it = False
            self._lock.release()

    def advance_alone(self) -> None:
        """The same where there is nothing that would do it, as in a client of a service."""
        if not self._holders:
            self.advance()

    def finish(self) -> None:
        """Do all that is left of a sweep that has begun."""
        with self._lock:
            while self._work is not None:
                self._spend(self.piece)

    def _spend(self, fuel: int) -> None:
        assert self._work is not None
        try:
            for cost in self._work:
                fuel -= cost
                if fuel <= 0:
                    return
        except BaseException:
            self._work = None
            self._dictionary.end_marking()
            raise
        self._work = None

    def _begin(self) -> bool:
        """Begin a sweep, if nothing refuses; whether it has begun."""
        with ExitStack() as still:
            holders = self._listed()
            self._refused = self._why_not(holders, still)
            if self._refused:
                return False
            still.enter_context(self._uses_lock)
            # First, so that what is asked for from here on is marked, also by other threads. What
            # one of them has asked for before is on its way, or in its holder by now.
            marks = self._dictionary.begin_marking()
            held: list[Held] = []
            has_begun = False
            try:
                if self._are_all(holders) and not self._n_uses:
                    for holder in [*holders, *_alive(self._results)]:
                        held += holder.held_texts()
                    # Once more: a worker that is new by now may have taken in what was on its way
                    # to it, before that was looked for there.
                    has_begun = self._are_all(holders)
            finally:
                if not has_begun:
                    self._dictionary.end_marking()
        if not has_begun:
            self._refused = "values are given or read elsewhere, or a view or a worker is new"
            return False
        self._work = self._pieces(marks, held)
        return True

    def _are_all(self, holders: list[TextHolder]) -> bool:
        """Whether nothing holds numbers but these."""
        return not n_users() and {*map(id, self._listed())} <= {*map(id, holders)}

    def _listed(self) -> list[TextHolder]:
        """What holds numbers; that comes first of which code may run when it is asked."""
        return sorted(_alive(self._holders), key=lambda holder: not holder.runs_code)

    def _why_not(self, holders: list[TextHolder], still: ExitStack) -> str:
        """Why no sweep can begin; if one can, all holders are kept as they are by `still`."""
        self.is_refused_for_good = False
        if n := n_users():
            return (
                f"{n} workers in this process have no collections, and do not say which texts they "
                "hold"
            )
        for holder in holders:
            if why_not := holder.never_says():
                self.is_refused_for_good = True
                return why_not
        if self._n_uses:
            return "values are given or read elsewhere"
        for holder in holders:
            if not holder.holds_still():
                return f"{holder.called} is at work"
            still.callback(holder.goes_on)
            if why_not := holder.refuses_sweep():
                return why_not
        return ""

    def _pieces(self, marks: npt.NDArray[np.bool_], held: list[Held]) -> Iterator[int]:
        """Mark and free by pieces; what each has cost, in words marked."""
        # So many values may come until it is over; a third of them while it marks.
        room = max((max(self._used, len(self._dictionary) // 2) + self.spare) // 2, 1)
        n_words = sum(len(rows) * len(places) for rows, places in held)
        self._per_new = 3 * (n_words + len(marks)) / room
        while held:
            rows, places = held.pop()
            for begin in range(0, len(rows) if places else 0, self.piece):
                for place in places:
                    self._mark(marks, rows[begin : begin + self.piece, place])
                    yield min(self.piece, len(rows) - begin)
        dead = self._dictionary.unmarked()
        yield len(marks)
        n_dead = max(len(self._dictionary) - int(np.count_nonzero(marks)), 0)
        self._per_new = 1.5 * (FREE_COST * n_dead + LOOK_COST * len(dead)) / room
        freed: list[int] = []
        n_at_once = max(self.piece // FREE_COST, 1)
        for begin in range(0, len(dead), n_at_once):
            # What was values goes when no lock is held: it may be of a class that does something.
            some = dead[begin : begin + n_at_once].tolist()
            numbers, _ = self.order.free(some)
            freed += numbers
            # Of many numbers there may be no entry, since an earlier sweep.
            yield FREE_COST * len(numbers) + LOOK_COST * len(some)
        tables = self._dictionary.end_marking()
        self._n_sweeps += 1
        self._used = len(self._dictionary)
        if self.reuses:
            self._dictionary.reuse(self._last)
            self._last = freed
        for table in tables:
            # To drop a large one at once would take as long as to fill it.
            while table:
                n = min(len(table), max(self.piece // CLEAR_COST, 1))
                for _ in range(n):
                    table.popitem()
                yield CLEAR_COST * n

    def _mark(self, marks: npt.NDArray[np.bool_], numbers: npt.NDArray[np.int64]) -> None:
        try:
            marks[numbers] = True
        except IndexError:
            raise InternalError(
                f"a sweep of texts has found the number {int(numbers.max())} where there are "
                f"{len(marks)}"
            ) from None


Kept = TypeVar("Kept")


def _alive(kept: weakref.WeakValueDictionary[int, Kept]) -> list[Kept]:
    """The values that there are; others threads may add some meanwhile."""
    return [value for reference in kept.valuerefs() if (value := reference()) is not None]


SWEEPS = TextSweeps(TEXTS, TEXT_ORDER)
"""Of the dictionary of this process."""
