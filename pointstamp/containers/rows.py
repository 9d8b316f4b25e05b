"""Rows: a list of Python records, the container of programs that map one by one.

Knows nothing of what a record is. Sizes are estimates from a few records, since
asking every object for its size costs more than sending it.
"""

from __future__ import annotations

import pickle
import reprlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations
import numpy as np
import numpy.typing as npt

from pointstamp.containers.expressions import is_expression
from pointstamp.containers.key_hashes import is_its_own_key, is_plain, split_by_hash
from pointstamp.containers.keys import check_rows_key, hash_keys, hashable_key
from pointstamp.containers.kind import Buffer, Key, Kind
from pointstamp.errors import ContainerError, SerializationError

if TYPE_CHECKING:
    from pointstamp.kernels.permute import Places

_DIGIT, _WORD = 2**30, 2**60
_TUPLE, _FLOAT, _SMALL_INT, _INT = map(sys.getsizeof, ((), 0.0, 1, _DIGIT))


class RowsKind(Kind[list[Any]]):
    """What can be done with a list of records."""

    name = "rows"

    def called(self) -> str:
        """Rows."""
        return "rows"

    def length(self, batch: list[Any]) -> int:
        """How many records."""
        return len(batch)

    def n_bytes(self, batch: list[Any]) -> int:
        """About how many bytes the records hold, from a sample, one level deep."""
        return n_bytes_of_rows(batch)

    def schema(self, batch: list[Any]) -> None:
        """Nothing: a list takes any record."""

    def records(self, batch: list[Any]) -> Iterator[Any]:
        """The records themselves."""
        return iter(batch)

    def slice(self, batch: list[Any], start: int, stop: int) -> list[Any]:
        """A new list of some records."""
        return batch[start:stop]

    def concat(self, batches: Sequence[list[Any]]) -> list[Any]:
        """One list of several."""
        return [record for batch in batches for record in batch]

    def column(self, batch: list[Any], chosen: Any, operator: str) -> list[Any]:
        """What a function gives for each record."""
        if is_expression(chosen):
            raise ContainerError(
                f"the expression {chosen} needs Arrow record batches; this stream carries "
                f"{self.called()}: give a function of one record instead"
            )
        check_rows_key(chosen, batch[0] if batch else None, operator)
        return list(map(chosen, batch))

    def units(self, batch: list[Any]) -> list[Any]:
        """The list itself."""
        return batch

    def listed(self, batch: list[Any], operator: str) -> list[Any]:
        """The list itself."""
        return batch

    def unseen(self, batch: list[Any], seen: set[Any]) -> list[Any] | None:
        """One look at each record."""
        n_seen = len(seen)
        new = []
        for record in batch:
            seen.add(found_key(record))
            if len(seen) > n_seen:
                n_seen += 1
                new.append(record)
        return new or None

    def by_times(self, kept: list[Any]) -> list[Any]:
        """Of pairs of time and record the records, sorted by the times."""
        return [record for _, record in sorted(kept, key=_first)]

    def kept_apart(self, parts: Sequence[list[Any]]) -> Sequence[list[Any]]:
        """One list of lists."""
        return [list(parts)]

    def take(self, batch: list[Any], places: Places) -> list[Any]:
        """The records at some places."""
        return [batch[place] for place in places.tolist()]

    def filter(
        self, batch: list[Any], chosen: Any, operator: str, *, keep: bool = True
    ) -> list[Any]:
        """The records for which a function is true, or not."""
        if not callable(chosen) or is_expression(chosen):
            self.column(batch, chosen, operator)
        return [record for record in batch if bool(chosen(record)) is keep]

    def keyed(self, batch: list[Any], key: Key, operator: str) -> Iterator[tuple[Any, Any]]:
        """Each record with its key."""
        check_rows_key(key, batch[0] if batch else None)
        if key is None:
            return ((found_key(record), record) for record in batch)
        return ((found_key(key(record)), record) for record in batch)  # type: ignore[operator]

    def to_fold(self, batch: list[Any], key: Key, operator: str) -> tuple[list[Any], Key]:
        """The list itself."""
        check_rows_key(key, batch[0] if batch else None)
        return batch, key

    def group(self, batch: list[Any], key: Key, operator: str) -> Iterator[tuple[Any, list[Any]]]:
        """One look at each record."""
        check_rows_key(key, batch[0] if batch else None)
        return iter(_groups(batch, key).items())

    def hashes(self, batch: list[Any], key: Key) -> npt.NDArray[np.uint64]:
        """Hashes of the records, or of what the function `key` makes of each."""
        if not callable(key):
            check_rows_key(key, batch[0] if batch else None)
            return hash_keys(batch)
        return hash_keys(list(map(key, batch)))

    def exchange(self, batch: list[Any], key: Key, peers: int) -> list[list[Any]]:
        """A list for each worker; one look at each record where this is compiled."""
        if peers == 1:
            return [batch]
        if is_plain():
            return self.split(batch, self.hashes(batch, key), peers)
        if not callable(key):
            check_rows_key(key, batch[0] if batch else None)
        return split_by_hash(batch, key, peers)

    def split(
        self, batch: list[Any], numbers: npt.NDArray[np.uint64], n_parts: int
    ) -> list[list[Any]]:
        """A list for each part."""
        if n_parts == 1:
            return [batch]
        parts: list[list[Any]] = [[] for _ in range(n_parts)]
        gives = [part.append for part in parts]
        for record, to in zip(batch, (numbers % np.uint64(n_parts)).tolist(), strict=True):
            gives[to](record)
        return parts

    def encode(self, batch: list[Any]) -> list[Buffer]:
        """One pickle of the whole list."""
        return [dump_records(batch)]

    def decode(self, buffers: Sequence[Buffer]) -> list[Any]:
        """The list that was pickled."""
        batch: list[Any] = pickle.loads(buffers[0])
        return batch


def found_key(key: Any) -> Any:
    """`hashable_key`, which those of the usual types do not need: most keys, one of each record."""
    return key if is_its_own_key(key) else hashable_key(key)


def _groups(batch: list[Any], key: Any) -> dict[Any, list[Any]]:
    """The records of each key."""
    groups: dict[Any, list[Any]] = {}
    for record in batch:
        of = found_key(record if key is None else key(record))
        group = groups.get(of)
        if group is None:
            groups[of] = [record]
        else:
            group.append(record)
    return groups


def dump(value: Any) -> bytes:
    """The bytes of any value: by pickle, or by cloudpickle where pickle cannot.

    Cloudpickle takes functions and classes along that cannot be imported, and is
    several times slower, which is why it comes second.
    """
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:  # noqa: BLE001 - pickling runs code of the value's class: anything may come
        data: bytes = cloudpickle.dumps(value, protocol=5)
        return data


def dump_records(batch: Sequence[Any]) -> bytes:
    """The bytes of a list of records.

    Raises
    ------
    SerializationError
        With the index and the repr of the first record that cannot be pickled.
    """
    try:
        return dump(batch)
    except Exception as error:  # noqa: BLE001 - as in `dump`
        index, record, cause = _first_failure(dump, batch, error)
        raise SerializationError(
            f"record {index} of a batch of {len(batch)} cannot be pickled: "
            f"{reprlib.repr(record)} of type {type(record).__name__}: {cause!r}; send plain data, "
            "and keep what belongs to this process (locks, files, connections) out of records"
        ) from cause


def _first_failure(
    attempt: Callable[[Any], object], batch: Sequence[Any], error: Exception
) -> tuple[int | str, Any, Exception]:
    for index, record in enumerate(batch):
        try:
            attempt(record)
        except Exception as cause:  # noqa: BLE001 - as in `dump`
            return index, record, cause
    return "unknown", batch, error


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def n_bytes_of_rows(batch: list[Any]) -> int:
    """About how many bytes some records hold, from a sample, one level deep.

    >>> n_bytes_of_rows([]), n_bytes_of_rows([1.0] * 100) == 100 * (8 + sys.getsizeof(1.0))
    (0, True)
    """
    n = len(batch)
    if not n:
        return 0
    # Numbers of C: of few records it takes longer to look at each than to send them.
    return n * (8 + _mean_n_bytes(batch, max(1, n // (16 if n >= 64 else 4))))


def _mean_n_bytes(batch: list[Any], step: int) -> int:
    """Of every `step`th record, of which there is one at least."""
    size, n_sampled = 0, 0
    for place in range(0, len(batch), step):
        size += _n_bytes_of(batch[place])
        n_sampled += 1
    return size // n_sampled


def _n_bytes_of(record: Any) -> int:
    if type(record) is tuple:
        size = _TUPLE + 8 * len(record)
        for item in record:
            size += _n_bytes_alone(item)
        return size
    size = _n_bytes_alone(record)
    if isinstance(record, (tuple, list)):
        size += sum(map(_n_bytes_alone, record))
    elif isinstance(record, dict):
        size += sum(map(_n_bytes_alone, record.values()))
    return size


def _n_bytes_alone(record: Any) -> int:
    """As `sys.getsizeof` has it, which for numbers takes longer than all else here."""
    kind = type(record)
    if kind is float:
        return _FLOAT
    if kind is int:
        # Compiled, a conversion that fails, and no comparison of objects.
        try:
            small = record
            if -_DIGIT < small < _DIGIT:
                return _SMALL_INT
            if -_WORD < small < _WORD:
                return _INT
        except OverflowError:
            pass
    return sys.getsizeof(record)
