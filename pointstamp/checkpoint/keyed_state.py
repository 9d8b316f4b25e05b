"""Tables of keyed state: what an operator keeps from one epoch to the next.

A table is changed by its operator, hands out what has changed for a snapshot, and is filled from
what was stored when a program starts again, with the keys that the worker then has.

Contract
--------
- `take_delta` gives every change since the last one, or since it was loaded, and all of the table
  the first time after `begin_anew`. What it gives is not changed afterwards.
- `load`, on a table that is empty, of what the cuts of any number of workers have given, in
  order, makes it what theirs were together, without the keys of other workers.

Arrow is imported by the first delta or load, and not before.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pointstamp.checkpoint.bins import bins_of, is_for
from pointstamp.checkpoint.deltas import BinDelta, TableDelta
from pointstamp.containers import decode, encode, hash_key, hash_keys, kind_of
from pointstamp.containers.keys import canonical_key
from pointstamp.containers.kind import Key
from pointstamp.containers.rows import dump
from pointstamp.errors import SerializationError
from pointstamp.kernels.hashing import Hashes

MOST_MORE = 2
"""A bin is handed out whole again when what was added to it is more than one part in so many."""


class Table(Protocol):
    """What operators keep; see the contract above."""

    kind: str

    def take_delta(self) -> TableDelta:
        """What has changed."""

    def load(self, batches: Iterable[Any], index: int, peers: int) -> None:
        """Take in stored batches, of which keys of other workers are left out."""

    def begin_anew(self) -> None:
        """Have the next delta be of everything."""


class KeyedRows(dict[Any, Any]):
    """A dictionary whose changes are known: keys and values of Python.

    A value that is changed in place has to be put again: `table[key] = value`. Keys are
    those that can be exchanged by (see `hash_key`), and values can be pickled.

    Parameters
    ----------
    route : callable, optional
        The key by which the operator's records are exchanged, of a key of the table, where
        these are not the same.

    Notes
    -----
    A write costs a note of its key. A delta pickles the keys and values that have changed
    since the last one; now and then, all of them: so what is stored is at most about one and
    a half times what is kept.

    >>> table = KeyedRows()
    >>> table["a"] = 1
    >>> copy = KeyedRows()
    >>> copy.load([change.batch for change in table.take_delta().changes.values()], 0, 1)
    >>> copy
    {'a': 1}
    >>> table.take_delta().changes
    {}
    """

    kind = "keys and values"

    def __init__(self, route: Callable[[Any], Any] | None = None) -> None:
        super().__init__()
        self._route = route
        self._changed: set[Any] = set()
        self._n_more = 0
        """How many were handed out since the table was whole."""
        self._is_anew = True

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._changed.add(key)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._changed.add(key)

    def pop(self, key: Any, *default: Any) -> Any:
        """As a dictionary's."""
        if key in self:
            self._changed.add(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[Any, Any]:
        """As a dictionary's."""
        key, value = super().popitem()
        self._changed.add(key)
        return key, value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As a dictionary's; the value that is given out counts as changed."""
        self._changed.add(key)
        return super().setdefault(key, default)

    def update(self, *others: Any, **named: Any) -> None:
        """As a dictionary's."""
        for key, value in dict(*others, **named).items():
            self[key] = value

    def __ior__(self, other: Any) -> KeyedRows:  # type: ignore[misc]  # as `dict`
        self.update(other)
        return self

    def clear(self) -> None:
        """As a dictionary's."""
        self._changed.update(self)
        super().clear()

    def begin_anew(self) -> None:
        """See `Table`."""
        self._is_anew = True

    def take_delta(self) -> TableDelta:
        """See `Table`."""
        n_more = self._n_more + len(self._changed)
        if self._is_anew or n_more * MOST_MORE > len(self):
            delta = TableDelta(self.kind, self._of(list(self), is_whole=True), is_whole=True)
            n_more = 0
        else:
            delta = TableDelta(self.kind, self._of(list(self._changed), is_whole=False))
        self._changed = set()
        self._n_more = n_more
        self._is_anew = False
        return delta

    def _of(self, keys: list[Any], *, is_whole: bool) -> dict[int, BinDelta]:
        """By bin, these keys and their values, or that they have none any more."""
        changes = {}
        for bin, places in _by_bin(self._hashes(keys)):
            own = [keys[place] for place in places.tolist()]
            values = [_dumped(key, self[key]) if key in self else None for key in own]
            batch = _rows([_dumped(key, key) for key in own], values)
            changes[bin] = BinDelta(batch, is_whole)
        return changes

    def load(self, batches: Iterable[Any], index: int, peers: int) -> None:
        """See `Table`."""
        n_stored = 0
        for batch in batches:
            # Each NaN that was stored is an object of its own, and operators look for one of all.
            keys = [canonical_key(pickle.loads(key)) for key in batch.column(0).to_pylist()]
            ours = is_for(self._hashes(keys), index, peers).tolist()
            n_stored += sum(ours)
            for key, value, is_ours in zip(keys, batch.column(1).to_pylist(), ours, strict=True):
                if not is_ours:
                    continue
                if value is None:
                    super().pop(key, None)
                else:
                    super().__setitem__(key, pickle.loads(value))
        self._n_more = n_stored - len(self)
        self._is_anew = False

    def _hashes(self, keys: list[Any]) -> Hashes:
        return hash_keys(keys if self._route is None else list(map(self._route, keys)))

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


Tagged = Iterable[tuple[Any, Any]]
"""(tag, batch): containers, and something small that says what they are of."""

TaggedHashes = Callable[[Any, Any], Hashes]
"""Of a tag and a batch, the stable hash of the key of each record."""


class KeyedBatches:
    """Batches that an operator keeps in whatever form it likes.

    Parameters
    ----------
    everything : callable
        Gives all that is kept, as (tag, batch), in the order in which `take_in` wants it.
    take_in : callable
        Is called with each (tag, batch) that was stored.
    hashes : callable
        Of a tag and a batch, the stable hash of the key of each record, uint64[n]: those that
        the batch was exchanged by.
    grows_only : bool
        Whether nothing is ever taken away but all at once, and what comes is given to `add`:
        then a delta is of what was added.
    what : str
        What the batches are of, where that is known: a snapshot of others is refused.

    Notes
    -----
    A delta costs a pass over what it gives: everything, unless the table grows only.
    """

    def __init__(
        self,
        everything: Callable[[], Tagged],
        take_in: Callable[[Any, Any], None],
        hashes: TaggedHashes,
        *,
        grows_only: bool = False,
        what: str = "",
    ) -> None:
        self.kind = f"batches: {what}" if what else "batches"
        self._everything = everything
        self._take_in = take_in
        self._hashes = hashes
        self._grows_only = grows_only
        self._added: list[tuple[Any, Any]] = []
        self._is_anew = True

    def add(self, tag: Any, batch: Any) -> None:
        """Say that `batch` is kept from now on, if the table grows only."""
        if not self._is_anew:
            self._added.append((tag, batch))

    def clear(self) -> None:
        """Say that all was let go."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """See `Table`."""
        self._is_anew = True
        self._added = []

    def take_delta(self) -> TableDelta:
        """See `Table`."""
        is_whole = self._is_anew or not self._grows_only
        parts = self._everything() if is_whole else self._added
        binned = in_bins(parts, self._hashes)
        changes = {bin: BinDelta(batch, is_whole) for bin, batch in binned.items()}
        self._added = []
        self._is_anew = False
        return TableDelta(self.kind, changes, is_whole)

    def load(self, batches: Iterable[Any], index: int, peers: int) -> None:
        """See `Table`."""
        for stored in batches:
            for tag, batch, _ in of_worker(stored, self._hashes, index, peers):
                self._take_in(tag, batch)
        self._added = []
        self._is_anew = False


def in_bins(parts: Tagged, hashes: TaggedHashes) -> dict[int, Any]:
    """What there is for each bin, as an Arrow batch of messages; see `of_worker`."""
    found: dict[int, list[bytes]] = {}
    for tag, batch in parts:
        for bin, places in _by_bin(hashes(tag, batch)):
            kind = kind_of(batch)
            is_whole = len(places) == kind.length(batch)
            part = batch if is_whole else kind.take(batch, places)
            found.setdefault(bin, []).append(b"".join(encode(part, tag)))
    return {bin: messages(of_bin) for bin, of_bin in found.items()}


def of_worker(
    stored: Any, hashes: TaggedHashes, index: int, peers: int
) -> Iterator[tuple[Any, Any, set[int]]]:
    """(tag, batch, bins) of a batch of messages: what is for worker `index` of `peers`."""
    for message in stored.column(0):
        tag, batch = decode([message.as_buffer()])
        of_each = hashes(tag, batch)
        ours = np.flatnonzero(is_for(of_each, index, peers))
        if len(ours):
            if len(ours) < len(of_each):
                batch = kind_of(batch).take(batch, ours)
            yield tag, batch, set(bins_of(of_each[ours]).tolist())


def by_tag(tag: Any, batch: Any) -> Hashes:
    """For batches that belong together as a whole: the hash of the tag, for each record."""
    return np.full(kind_of(batch).length(batch), hash_key(tag), np.uint64)


def by_key(key: Key) -> TaggedHashes:
    """The hashes that an exchange by `key` goes by."""
    return lambda tag, batch: kind_of(batch).hashes(batch, key)


def names_in(key: Any) -> str:
    """The columns that are a key, or a time; "" where it is none, or a function.

    >>> names_in("k"), names_in(["k", "v"]), names_in(len)
    ('k', 'k, v', '')
    """
    names = [key] if isinstance(key, str) else key
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return ""
    return ", ".join(names)


def _by_bin(hashes: Hashes) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Each bin that there is, and the places of what is in it."""
    bins = bins_of(hashes)
    if not len(bins):
        return
    if (bins == bins[0]).all():
        # As those of a session are, of which there may be very many.
        yield int(bins[0]), np.arange(len(bins))
        return
    order = np.argsort(bins, kind="stable")
    bins = bins[order]
    cuts = np.flatnonzero(bins[1:] != bins[:-1]) + 1
    for first, after in pairwise([0, *cuts.tolist(), len(bins)]):
        yield int(bins[first]), order[first:after]


def _dumped(key: Any, value: Any) -> bytes:
    try:
        return dump(value)
    except Exception as error:  # pickling runs code of the value's class: anything may come
        raise SerializationError(
            f"what is kept under the key {key!r} cannot be pickled: {type(value).__name__}: "
            f"{error!r}; keep plain data, and what belongs to this process elsewhere"
        ) from error


def _rows(keys: list[bytes], values: list[bytes | None]) -> Any:
    import pyarrow as pa

    columns = [pa.array(keys, pa.large_binary()), pa.array(values, pa.large_binary())]
    return pa.RecordBatch.from_arrays(columns, names=["key", "value"])


def messages(encoded: Iterable[bytes]) -> Any:
    """An Arrow batch of them."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array(encoded, pa.large_binary())], names=["message"])
