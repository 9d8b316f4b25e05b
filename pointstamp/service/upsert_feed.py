"""What a program holds of an input of upserts: rows go in, each in the place of that of its key."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from pointstamp.collections.upserts import EventForm
from pointstamp.containers.text_sweep import SWEEPS
from pointstamp.errors import InputError
from pointstamp.service.event_columns import event_batch

if TYPE_CHECKING:
    from pointstamp.service.collection_handles import CollectionFeeds


class UpsertFeed:
    """An input of a service that is declared as `UpsertInput`; `service.advance()` commits.

    Of what is sent for one key in an epoch, the last counts. Any thread may use it.
    """

    def __init__(self, feeds: CollectionFeeds, name: str, form: EventForm) -> None:
        self.feeds = feeds
        """All of the service."""
        self.name = name
        self.form = form
        self.schema = form.schema
        self._where = f"the input {name!r}"
        self._n_sent = 0
        self._sending = threading.Lock()

    @property
    def time(self) -> int | None:
        """The epoch that `advance` would commit now; None when the collections are closed."""
        return self.feeds.service.position_of(self.name)

    def upsert(self, rows: Any) -> None:
        """Have each row in the place of that of its key.

        Rows are tuples in the order of the columns, dicts, or columns, as those of an input that
        is no upserts.

        Raises
        ------
        DataError
            If one does not fit the schema. None is sent then.
        StoppedError
            If the service has stopped.
        """
        with SWEEPS.held_back():
            updates = self.schema.to_updates(rows, 1, self._where)
            columns = self.schema.to_arrow(updates.rows)
        self._send(columns, is_deleted=False)

    def remove(self, keys: Iterable[Any]) -> None:
        """Have no rows of these keys, each a value, or a tuple; raises as `upsert` does."""
        tuples = [key if isinstance(key, tuple) else (key,) for key in keys]
        with SWEEPS.held_back():
            updates = self.form.key_schema.to_updates(tuples, 1, self._where)
            columns = self.form.key_schema.to_arrow(updates.rows)
        self._send(columns, is_deleted=True)

    def insert(self, rows: Any) -> NoReturn:
        """Raises `InputError`: rows of an input of upserts replace those of their keys."""
        raise InputError(f"{self._where} is of upserts: change it by upsert(rows) and remove(keys)")

    delete = update = insert

    def _send(self, columns: pa.RecordBatch, *, is_deleted: bool) -> None:
        n = columns.num_rows
        if not n:
            return
        with self._sending:
            # Batches of an epoch go to several workers: what comes later has a later place.
            places: pa.Array[Any] = pa.array(np.arange(self._n_sent, self._n_sent + n))
            self._n_sent += n
            self.feeds.hold(self.name, event_batch(self.form, columns, is_deleted, places))

    def __repr__(self) -> str:
        return f"UpsertFeed({self.name!r}, {self.schema}, key={self.form.keys})"
