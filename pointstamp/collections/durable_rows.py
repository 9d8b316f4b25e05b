"""Rows in snapshots: what operators of collections keep from one epoch to the next.

An operator keeps rows of words in forms of its own: batches in a spine, sums in a table, words
that are in order in this process alone. For a snapshot it gives them as rows that begin with the
words of a key, by which they are in bins and belong to workers; texts are stored as texts, as
their numbers differ between processes. When a program begins with a snapshot, an operator is
given those of the worker that it then is, and makes its own form of them.

All that is kept follows from updates. So a snapshot has everything, or it names the one before,
and has the updates that came since (`checkpoint/keyed_updates.py`): an operator says each time
what comes. Of what is a sum of updates they are stored by the same name, and what is restored is
their sum; where something else is made of them, they are stored as `AGAIN`, and taken in again.

By D2 nothing up to the snapshot's epoch waits, and the alignment holds later epochs back: so a
row needs no epoch. Of a time in a loop only the rounds are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.checkpoint.deltas import AGAIN as AGAIN
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.kernels.consolidation import consolidate_all

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates
    from pointstamp.dataflow.scope_core import ScopeCore

NO_TEXTS: tuple[int, ...] = ()


@dataclass(frozen=True)
class StoredPart:
    """Some of the rows that an operator keeps.

    Attributes
    ----------
    name : str or int
        Which they are, for the operator.
    rows : int64[n, w + 1]
        Words, those of a key first, and diffs.
    texts : tuple of int
        Which of the words are numbers of texts.
    """

    name: Any
    rows: Rows
    texts: tuple[int, ...] = NO_TEXTS


@dataclass(frozen=True)
class StoredForm:
    """The form in which rows are stored, where they are kept in another one.

    Attributes
    ----------
    encode, decode : callable
        From the stored form to that which is kept, and back.
    texts : tuple of int
        Which words of the stored form are numbers of texts.
    """

    encode: Callable[[Rows], Rows]
    decode: Callable[[Rows], Rows]
    texts: tuple[int, ...]


def stored_parts(
    name: str, batches: Iterable[Rows], texts: tuple[int, ...], form: StoredForm | None
) -> list[StoredPart]:
    """Batches of rows as they are stored: in another form, or as they are kept.

    texts : which words of what is kept are numbers of texts
    """
    if form is None:
        return [StoredPart(name, rows, texts) for rows in batches]
    return [StoredPart(name, form.decode(rows), form.texts) for rows in batches]


AsStored = Callable[[Any, Rows], StoredPart]
"""Makes of a name and rows, as they are kept, what is stored of them."""


def as_stored(texts: tuple[int, ...], form: StoredForm | None = None) -> AsStored:
    """For rows that are stored as `stored_parts` has them."""
    return lambda name, rows: stored_parts(name, [rows], texts, form)[0]


def restored_rows(
    info: OperatorInfo,
    n_key: int,
    kept: Callable[[], Iterable[StoredPart]],
    stored: AsStored | None,
    n_kept: Callable[[], int] | None = None,
    what: str = "",
) -> tuple[dict[Any, Rows], KeyedUpdates | None]:
    """Have rows in snapshots; those of the snapshot that is begun with, consolidated, by name.

    To be called in `build`.

    Parameters
    ----------
    n_key : int
        By so many words at the beginning of a row the operator's inputs are exchanged.
    kept : callable
        Gives what is kept now, for a snapshot of everything.
    stored, n_kept : callable
        See `KeyedUpdates`.
    what : str
        What the rows are of: workers that keep others, and a snapshot with others, are refused.

    Returns
    -------
    rows : dict
    log : KeyedUpdates, optional
        Is to be given all rows that change what is kept; None where nothing is stored.
    """
    info.states.kept_rows = what
    if info.states.durable_state is None:
        info.keeps_nothing()
        return {}, None
    # Here and not above: few dataflows are durable.
    from pointstamp.checkpoint.keyed_state import by_key
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates

    found: dict[Any, list[Rows]] = {}

    def everything() -> Iterable[tuple[Any, Updates]]:
        for part in kept():
            if len(part.rows):
                yield part.name, _updates(part)

    def take_in(name: Any, batch: Updates) -> None:
        found.setdefault(name, []).append(batch.rows)

    changed = None if stored is None else (lambda name, rows: _updates(stored(name, rows)))
    table = KeyedUpdates(everything, take_in, by_key(FirstWords(n_key)), changed, n_kept)
    table.kind = f"rows by {n_key} words{': ' * bool(what)}{what}"
    info.states.keep("rows", table)
    if stored is not None:
        as_kept = stored

        def logged() -> list[tuple[Rows, tuple[int, ...]]]:
            parts = (as_kept(name, rows) for name, rows in table.rows())
            return [(part.rows, part.texts) for part in parts]

        info.states.logs_texts(logged)
    # Batches that were kept apart may cancel.
    all_rows = {name: consolidate_all(parts) for name, parts in found.items()}
    return {name: rows for name, rows in all_rows.items() if len(rows)}, table


def _updates(part: StoredPart) -> Updates:
    return Updates(np.ascontiguousarray(part.rows), part.texts)


def is_restored(info: OperatorInfo) -> bool:
    """Whether the operator is in the snapshot that its dataflow begins with; not so if it is new.

    To be asked when it has said what it keeps.
    """
    return info.states.is_restored


def first_time(scope: ScopeCore[Any], info: OperatorInfo) -> Any:
    """The least time at which something may be sent: those of a snapshot are over."""
    state = info.states.durable_state
    if state is None or not state.is_restored:
        return scope.timestamp.minimum
    return scope.epochs().first(state.first_epoch)


def last_epoch(info: OperatorInfo) -> int:
    """That of the snapshot which the dataflow begins with."""
    assert info.states.durable_state is not None
    return info.states.durable_state.first_epoch - 1
