"""Terms: what names the commit records of one writer in a store where a failed write may happen.

A write to an object store that fails may have happened: its answer was lost. Worse, it may happen
later, when a request that was given up on is worked off. So two things never have one name:

- A writer claims a *term* before it reads the log to go on with it, and has the term in the names
  of its records. When a write fails, what is written next is of another term: what arrives late
  arrives under a name of its own, beside the record that counts.
- What it has found it notes: a record of a former life that arrives later does not count, as
  this life has begun without it; one that was found stays, whatever else arrives.
- Each record names the one before it. So the chain that ends in the last record of the latest
  term counts, or where the note says, if there is none since (`input_log.py`).
- A record counts for its writer when no later term was claimed by another one by the time it is
  there: else that one may have read the log without it.

That takes of a store that an object is written whole or not at all, and that what reads or lists
after a write has ended sees it. Nothing is renamed, and nothing created under a condition.

    terms/<number>-<life>               claimed by a life: one program's opening of the checkpoint
    terms/<number>-<life>.found.json    what that has begun with: the last record of each input

Source: fencing by a number that grows, as Chubby's sequencers have it (Burrows, 2006).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pointstamp.checkpoint.checksummed import checksummed, verified
from pointstamp.checkpoint.objects import Objects
from pointstamp.errors import CheckpointInUseError

VERSION = 1
_ROOT = "terms"
_FOUND = ".found.json"


@dataclass(frozen=True, order=True)
class Term:
    """A claim of the right to write; the later one is greater."""

    number: int
    life: str

    def __str__(self) -> str:
        return f"{self.number:020}-{self.life}"

    @staticmethod
    def of(text: str) -> Term | None:
        """What `str` gave; None for anything else."""
        number, dash, life = text.partition("-")
        return Term(int(number), life) if dash and number.isdigit() and life.isalnum() else None


BEFORE_TERMS = Term(-1, "")
"""That of records whose names have none: of versions that knew no terms."""


class Terms:
    """The terms of one life."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._life = uuid4().hex[:12]
        self._now: Term | None = None
        self._last_number = -1
        """Of this life's last claim, whether it is known to have been made or not."""

    @property
    def now(self) -> Term | None:
        """The one that what is written next has; None if one is to be claimed."""
        return self._now

    def claim(self, *, takes_over: bool) -> Term:
        """Claim a term: what is written by earlier lives from now on counts for none of them.

        takes_over : whether it may be that another life has claimed one since this life's last
        """
        before = self._claimed()
        if not takes_over:
            self._check_not_superseded(before)
        # A claim of a former life may arrive later, and is no reason to end this one: a number
        # near the time is beyond that of a life which has ended. Nothing else depends on clocks.
        number = 1 + max([term.number for term in before], default=-1)
        self._last_number = max(number, self._last_number + 1, time.time_ns() // 1_000)
        claimed = Term(self._last_number, self._life)
        self._objects.put(f"{_ROOT}/{claimed}", [f"{claimed}\n".encode()])
        for term in before:
            if term < claimed:
                self._objects.delete(f"{_ROOT}/{term}")
        self._now = claimed
        return claimed

    def note(self, found: Mapping[str, Any]) -> None:
        """Keep what the log had when the term was claimed."""
        name = f"{_ROOT}/{self._now}{_FOUND}"
        self._objects.put(name, [checksummed(VERSION, found)])
        for former in self._notes():
            if self._now is not None and former < self._now:
                self._objects.delete(f"{_ROOT}/{former}{_FOUND}")

    def noted(self) -> tuple[Term, Mapping[str, Any]] | None:
        """The last term of which it is noted what was found, and that."""
        notes = self._notes()
        if not notes:
            return None
        name = f"{_ROOT}/{max(notes)}{_FOUND}"
        place = f"{self._objects}/{name}"
        return max(notes), verified(self._objects.get(name).to_pybytes(), place, VERSION)

    def _notes(self) -> list[Term]:
        files = self._objects.files(_ROOT)
        found = (Term.of(file.removesuffix(_FOUND)) for file in files if file.endswith(_FOUND))
        return [term for term in found if term is not None]

    def drop(self) -> None:
        """Have the next record be of another term: one of this may still be on its way."""
        self._now = None

    def check(self) -> None:
        """Raise `CheckpointError` if another life has claimed a term since this has its own."""
        self._check_not_superseded(self._claimed())

    def _check_not_superseded(self, claimed: list[Term]) -> None:
        mine = Term(self._last_number, self._life) if self._now is None else self._now
        later = [term for term in claimed if term.life != self._life and term > mine]
        if later:
            raise CheckpointInUseError(
                f"{self._objects}: another program has begun to commit to it, with term "
                f"{max(later)}, and this one had {mine}: only one may, so end this one, or that, "
                "and begin again"
            )

    def _claimed(self) -> list[Term]:
        found = (Term.of(name) for name in self._objects.files(_ROOT))
        return [term for term in found if term is not None]
