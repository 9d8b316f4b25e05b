"""What a container is, said once for every form that a batch of records takes.

A container is a plain value (a list, an Arrow record batch); what can be done with it
is said by its *kind*, one stateless object per Python type, looked up by that type. So a
list stays a list for the user, and a new form of batch is one registration away.
Operators ask the kind and do not distinguish containers.

A kind of one's own derives from `Kind` and defines `length`, `records`, `slice` and
`concat`; the rest follows from those, a record at a time. What matters for speed it
defines, too: `take`, `column`, `hashes`, `split`, `encode` and `decode`.

Laws, for every kind `k` and containers `a`, `b` of it:

- `k.length(a)` does not change between send and receive, and
  `k.length(k.concat([a, b])) == k.length(a) + k.length(b)`;
- `k.concat([k.slice(a, 0, i), k.slice(a, i, n)])` has the records of `a`;
- `k.take(a, places)` has the record `places[i]` of `a` at `i`;
- `k.filter(a, c, o)` has the records of `a` for which `c` is true, in the order of `a`, and
  `k.filter(a, c, o, keep=False)` the others;
- `k.column(a, c, o)` has a value for each record, and `k.integers`, `k.flags` and `k.keys`
  have those values as integers, booleans, and Python values that are equal if the keys are;
- `k.column(k.with_columns(a, {n: values}), n, o)` has `values`;
- `k.group(a, key, o)` gives distinct keys, in the order of their first records, and with
  each its records, in the order of `a`: together the records of `a`;
- `k.split(a, numbers, n)` gives `n` containers, together the records of `a`, in which
  records of equal number are together and in the order of `a`;
- `k.exchange(a, key, n)` gives what `k.split(a, k.hashes(a, key), n)` gives, in one call;
- `k.decode(k.encode(a))` has the records of `a`.

A container is not changed once it was sent: threads pass it on by reference.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pointstamp.containers.convert import boolean_values, integer_values
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.keys import canonical_key, hash_keys
from pointstamp.errors import ColumnError, ContainerError

C = TypeVar("C")

Buffer = bytes | bytearray | memoryview
Key = Callable[[Any], Any] | str | Sequence[str] | None

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_N_SAMPLES = 16


class Kind(Generic[C]):
    """The operations on one form of container."""

    name: str
    """Short and unique; the codec writes it in front of the bytes."""

    has_columns = False
    """Whether records consist of columns that have names; else they are Python values."""

    # What a kind must define.

    def length(self, batch: C) -> int:
        """How many records `batch` holds."""
        raise NotImplementedError(f"the kind {self.name!r} does not define length()")

    def records(self, batch: C) -> Iterator[Any]:
        """The records one by one: items of rows, tuples of columns."""
        raise NotImplementedError(f"the kind {self.name!r} does not define records()")

    def slice(self, batch: C, start: int, stop: int) -> C:
        """Records `start` up to, not with, `stop`; without a copy where it can be."""
        raise NotImplementedError(f"the kind {self.name!r} does not define slice()")

    def concat(self, batches: Sequence[C]) -> C:
        """One container with the records of all of `batches` (at least one), in order."""
        raise NotImplementedError(f"the kind {self.name!r} does not define concat()")

    # Sizes and columns.

    def n_bytes(self, batch: C) -> int:
        """About how many bytes `batch` holds (for sizing, not accounting)."""
        n_records = self.length(batch)
        sample = self.slice(batch, 0, min(n_records, _N_SAMPLES))
        n_sampled = max(1, self.length(sample))
        return n_records * sum(memoryview(b).nbytes for b in self.encode(sample)) // n_sampled

    def schema(self, batch: C) -> Any:
        """What batches must have in common to be put together; None if nothing."""
        return None

    def names(self, batch: C) -> Sequence[str]:
        """The names of the columns, in order; of a container without columns none."""
        return ()

    def column(self, batch: C, chosen: Any, operator: str) -> Any:
        """One value for each record: a column, an expression, or what a function gives.

        Parameters
        ----------
        chosen : str, callable or pyarrow.compute.Expression
            A function is of one record. Kinds of columns call it with the whole batch.
        operator : str
            What asks, for the message of an error.

        Returns
        -------
        A list, a NumPy array or an Arrow array.

        Raises
        ------
        ColumnError
            If there is no such column.
        ContainerError
            For an expression on what is no record batch.
        """
        if is_expression(chosen):
            raise ContainerError(
                f"the expression {chosen} needs Arrow record batches; this stream carries "
                f"{type(batch).__name__}: name a column instead"
            )
        if callable(chosen):
            return list(map(chosen, self.records(batch)))
        raise ColumnError(
            f"{operator} is given the column {chosen!r}, and the stream carries {self.name}, "
            f"which have the columns {list(self.names(batch))}: give a function of a record"
        )

    def integers(self, batch: C, chosen: Any, operator: str) -> Ints:
        """The values of `column` as int64[n].

        Raises
        ------
        SchemaError
            If they are no integers below 2^63, or some are null.
        """
        return integer_values(self.column(batch, chosen, operator), str(chosen), operator)

    def flags(self, batch: C, chosen: Any, operator: str) -> npt.NDArray[np.bool_]:
        """The values of `column` as bool[n]; null is False.

        Raises
        ------
        SchemaError
            If they are no booleans.
        """
        return boolean_values(self.column(batch, chosen, operator), str(chosen), operator)

    def with_columns(self, batch: C, more: Mapping[str, Any]) -> C:
        """`batch` with more columns at the end.

        Raises
        ------
        ColumnError
            If a column of that name is there already, or there are no columns.
        """
        raise ColumnError(
            f"cannot add the columns {list(more)} to a batch of {self.name}, which has none"
        )

    def to_arrow(self, batch: C) -> Any:
        """The records as a `pyarrow.RecordBatch`.

        Raises
        ------
        ContainerError
            If the container has no columns.
        """
        raise ContainerError(
            f"Arrow record batches are needed, and these are batches of {self.name} "
            f"({type(batch).__name__}): make columns of them with map_batches"
        )

    def paired(self, left: C, right: C, key: Sequence[str], suffix: str) -> Any:
        """The records of `left` and of `right` side by side, for a join.

        Here rows that are pairs; of columns those of the left, then those of the right but
        for `key`, with `suffix` where the left has a column of that name.
        """
        return list(zip(self.records(left), self.records(right), strict=True))

    # Some of the records.

    def take(self, batch: C, places: Ints) -> C:
        """The records at `places`, int64[m], in that order, with repetitions."""
        if not len(places):
            return self.slice(batch, 0, 0)
        bounds = np.flatnonzero(np.diff(places, prepend=places[0] - 2, append=-2) != 1).tolist()
        parts = [
            self.slice(batch, int(places[start]), int(places[stop - 1]) + 1)
            for start, stop in itertools.pairwise(bounds)
        ]
        return parts[0] if len(parts) == 1 else self.concat(parts)

    def filter(self, batch: C, chosen: Any, operator: str, *, keep: bool = True) -> C:
        """The records for which `chosen` is true, or, not `keep`, the others (null is not true)."""
        return self.take(batch, np.flatnonzero(self.flags(batch, chosen, operator) == keep))

    # Keys.

    def keys(self, batch: C, key: Key, operator: str) -> list[Any]:
        """The key of each record as a Python value; None as a key is the record itself."""
        if key is None:
            return list(map(canonical_key, self.records(batch)))
        if callable(key) or isinstance(key, str):
            return [canonical_key(v) for v in _listed(self.column(batch, key, operator))]
        columns = [_listed(self.column(batch, name, operator)) for name in key]
        return [canonical_key(values) for values in zip(*columns, strict=True)]

    def keyed(self, batch: C, key: Key, operator: str) -> Iterator[tuple[Any, Any]]:
        """Each record with its key, for what folds one record after the other."""
        return zip(self.keys(batch, key, operator), self.records(batch), strict=True)

    def group(self, batch: C, key: Key, operator: str) -> Iterator[tuple[Any, C]]:
        """Each distinct key, and its records."""
        places: dict[Any, list[int]] = {}
        for place, of in enumerate(self.keys(batch, key, operator)):
            places.setdefault(of, []).append(place)
        for of, at in places.items():
            yield of, self.take(batch, np.array(at, np.int64))

    def hashes(self, batch: C, key: Key) -> Hashes:
        """The stable hash of each record's key, uint64[length]."""
        return hash_keys(self.keys(batch, key, "exchange"))

    def split(self, batch: C, numbers: Hashes, n_parts: int) -> list[C]:
        """The records for each of `n_parts`, by `number % n_parts`; may be empty."""
        if n_parts == 1:
            return [batch]
        part_of = numbers % np.uint64(n_parts)
        return [self.take(batch, np.flatnonzero(part_of == part)) for part in range(n_parts)]

    def exchange(self, batch: C, key: Key, peers: int) -> list[C]:
        """The records for each of `peers` workers, by the hash of their key."""
        return self.split(batch, self.hashes(batch, key), peers)

    # Bytes.

    def encode(self, batch: C) -> list[Buffer]:
        """The batch as buffers; here one pickle."""
        return [pickle.dumps(batch, protocol=5)]

    def decode(self, buffers: Sequence[Buffer]) -> C:
        """The batch that `encode` made `buffers` of."""
        batch: C = pickle.loads(buffers[0])
        return batch


def _listed(values: Any) -> list[Any]:
    """Values as Python's own: of an Arrow array, of a NumPy array, or of a list."""
    for convert in ("to_pylist", "tolist"):
        if hasattr(values, convert):
            listed: list[Any] = getattr(values, convert)()
            return listed
    return list(values)
