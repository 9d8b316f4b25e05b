"""A table of few keys, of which every worker is given all when a program starts again.

Tables of keyed state go back by the hash of their keys, since that is where records of a key
come. What a source or a sink keeps belongs to no key: positions go to the worker that reads the
partition now, and with another number of workers, or of partitions, that is another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pointstamp.checkpoint.keyed_state import KeyedRows


class SharedRows(KeyedRows):
    """A dictionary that each worker has a part of, and gets all of; see `KeyedRows`.

    A worker takes out what is not its own before the first snapshot: what two workers hand out
    under one key is of either.

    >>> parts = SharedRows(), SharedRows()
    >>> parts[0]["a"], parts[1]["b"] = 1, 2
    >>> stored = [c.batch for part in parts for c in part.take_delta().changes.values()]
    >>> again = SharedRows()
    >>> again.load(stored, 0, 2)
    >>> sorted(again.items())
    [('a', 1), ('b', 2)]
    """

    kind = "shared keys and values"
    is_shared = True

    def load(self, batches: Iterable[Any], index: int, peers: int) -> None:
        """See `Table`; takes in the keys of all workers."""
        super().load(batches, 0, 1)
        # What was this worker's may be another's now: the next delta is of every bin.
        self.begin_anew()
