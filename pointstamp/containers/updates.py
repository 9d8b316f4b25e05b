"""Updates: changes of a collection, each the words of a record and a diff.

One array holds a batch: a row for each update, the words of the record side by side, and the
diff behind them (`kernels/consolidation.py`). So to cut, to put together and to send a batch
is one operation on one piece of memory, however many columns its records have.

What the words mean is known to the schema of a collection; a batch knows only which of them
are numbers of texts, since those differ between processes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.arrays import BLOCK_BYTES
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.kind import Buffer, Hashes, Key, Kind
from pointstamp.containers.registry import register
from pointstamp.containers.rows import dump, dump_records
from pointstamp.errors import ContainerError
from pointstamp.kernels.consolidation import concatenate
from pointstamp.kernels.group_states import hash_words, split_rows
from pointstamp.kernels.permute import Places

Rows = npt.NDArray[np.int64]

_WIDTHS = [width.to_bytes(8, "little") for width in range(64)]
"""What small messages begin with, by how many words an update has."""


class Updates:
    """A batch of updates.

    Parameters
    ----------
    rows : int64[n, w + 1], contiguous
        The `w` words of each record, and its diff.
    texts : tuple of int
        Which of the words are numbers of `dictionary.TEXTS`.

    >>> updates = Updates(np.array([[7, 1], [8, -1]]))
    >>> len(updates), updates
    (2, Updates(2 of 1 words))
    """

    __slots__ = ("rows", "texts")

    def __init__(self, rows: Rows, texts: tuple[int, ...] = ()) -> None:
        self.rows = rows
        self.texts = texts

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Updates({len(self.rows)} of {self.rows.shape[1] - 1} words)"

    def __reduce__(self) -> tuple[Any, ...]:
        return _decoded, (tuple(map(bytes, UpdatesKind().encode(self))),)


class FirstWords:
    """A key for `Exchange`: the first `n` words of a record.

    >>> FirstWords(2)
    FirstWords(2)
    """

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, record: Any) -> Any:
        """Of one record, as a function of records is asked."""
        return record[: self.n]

    def __repr__(self) -> str:
        return f"FirstWords({self.n})"


class ChosenWords:
    """A key for `Exchange`: the words of a record at some places, as `FirstWords` of them.

    >>> ChosenWords((2, 0))
    ChosenWords((2, 0))
    """

    __slots__ = ("places",)

    def __init__(self, places: tuple[int, ...]) -> None:
        self.places = places

    def __call__(self, record: Any) -> Any:
        """Of one record, as a function of records is asked."""
        return tuple(record[place] for place in self.places)

    def __repr__(self) -> str:
        return f"ChosenWords({self.places})"


class UpdatesKind(Kind[Updates]):
    """What can be done with a batch of updates.

    It names no schema for a stream to compare: all batches of one are of the schema of its
    collection, by which its operators were built.
    """

    name = "updates"
    is_internal = True

    def length(self, batch: Updates) -> int:
        """How many updates."""
        return len(batch.rows)

    def n_bytes(self, batch: Updates) -> int:
        """Of the array."""
        return batch.rows.nbytes

    def records(self, batch: Updates) -> Iterator[tuple[int, ...]]:
        """Words and diff of each, as a tuple."""
        return map(tuple, batch.rows.tolist())

    def slice(self, batch: Updates, start: int, stop: int) -> Updates:
        """Some of the rows, not copied."""
        return Updates(batch.rows[start:stop], batch.texts)

    def concat(self, batches: Sequence[Updates]) -> Updates:
        """One array of several."""
        return Updates(concatenate([batch.rows for batch in batches]), batches[0].texts)

    def take(self, batch: Updates, places: Places) -> Updates:
        """The rows at some places."""
        return Updates(batch.rows[places], batch.texts)

    def hashes(self, batch: Updates, key: Key) -> Hashes:
        """Of the first words, or of chosen ones, a text by its bytes.

        Raises
        ------
        ContainerError
            For a key that is neither `FirstWords` nor `ChosenWords`.
        """
        if isinstance(key, ChosenWords):
            chosen = np.ascontiguousarray(batch.rows[:, key.places])
            texts = [at for at, place in enumerate(key.places) if place in batch.texts]
            for at in texts:
                chosen[:, at] = TEXTS.hashes(chosen[:, at])
            return hash_words(chosen, len(key.places))
        if not isinstance(key, FirstWords):
            raise ContainerError(
                f"updates are exchanged by FirstWords(n), and were given the key {key!r}"
            )
        words = batch.rows
        texts = [place for place in batch.texts if place < key.n]
        if texts:
            words = words[:, : key.n].copy()
            for place in texts:
                words[:, place] = TEXTS.hashes(words[:, place])
        return hash_words(words, key.n)

    def split(self, batch: Updates, numbers: Hashes, n_parts: int) -> list[Updates]:
        """By one array of places for each part."""
        if n_parts == 1:
            return [batch]
        part_of = numbers % np.uint64(n_parts)
        return [self.take(batch, np.flatnonzero(part_of == part)) for part in range(n_parts)]

    def exchange(self, batch: Updates, key: Key, peers: int) -> list[Updates]:
        """The updates for each worker; in one loop, where the key has no texts."""
        texts = batch.texts
        if type(key) is not FirstWords or (texts and min(texts) < key.n):
            return super().exchange(batch, key, peers)
        return [Updates(rows, texts) for rows in split_rows(batch.rows, key.n, peers)]

    def pack_small(self, batch: Updates) -> tuple[bytes, bytes] | None:
        """How many words an update has, and the array, if there are no texts."""
        rows = batch.rows
        width = rows.shape[1]
        if batch.texts or width >= len(_WIDTHS) or rows.nbytes > BLOCK_BYTES:
            return None
        return _WIDTHS[width], rows.tobytes()

    def unpack_small(self, header: bytes, block: bytes) -> Updates:
        """Of what `pack_small` made."""
        width = int.from_bytes(header, "little")
        if not width or len(header) != len(_WIDTHS[0]) or len(block) % (8 * width):
            raise ContainerError(
                f"a block of {len(block)} bytes has no whole updates of {width} words"
            )
        return Updates(np.frombuffer(block, np.int64).reshape(-1, width))

    def encode(self, batch: Updates) -> list[Buffer]:
        """The array, and of texts each distinct one, in place of whose number stands its place.

        Raises
        ------
        SerializationError
            With the first value that cannot be pickled.
        """
        rows, entries = batch.rows, []
        if batch.texts:
            rows = rows.copy()
            for place in batch.texts:
                distinct, rows[:, place] = np.unique(rows[:, place], return_inverse=True)
                entries.append(TEXTS.values(distinct.tolist()))
        try:
            head = dump((rows.shape, batch.texts, entries))
        except Exception:
            for values in entries:
                dump_records(values)
            raise
        data: Any = np.ascontiguousarray(rows)
        return [head, memoryview(data).cast("B") if len(rows) else b""]

    def decode(self, buffers: Sequence[Buffer]) -> Updates:
        """The batch, with the numbers of this process."""
        shape, texts, entries = pickle.loads(buffers[0])
        rows = np.frombuffer(buffers[1], np.int64).reshape(shape)
        if texts:
            rows = rows.copy()
            for place, values in zip(texts, entries, strict=True):
                rows[:, place] = np.array(TEXTS.numbers(values), np.int64)[rows[:, place]]
        return Updates(rows, texts)


def _decoded(buffers: Sequence[Buffer]) -> Updates:
    return UpdatesKind().decode(buffers)


register(Updates, UpdatesKind(), is_sized=True)
