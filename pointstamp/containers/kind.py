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
- `k.paired(a, b, key, s)` has as many records as `a` and `b`, those of equal place together;
- `k.unseen(a, seen)` and `k.passing(a, check, note)` have records of `a`, in the order of `a`;
- `k.decode(k.encode(a))` has the records of `a`.

A container is not changed once it was sent: threads pass it on by reference.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pointstamp.containers.convert import boolean_values, integer_values
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.keys import (
    canonical_key,
    check_rows_key,
    checked_pair,
    hash_keys,
    hashable_key,
)
from pointstamp.errors import ColumnError, ContainerError

if TYPE_CHECKING:
    from pointstamp.kernels.permute import Places

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

    is_internal = False
    """Whether no program has such batches, so that no message advises them."""

    def called(self) -> str:
        """What messages of errors call its batches."""
        return f"batches of {self.name}"

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
                f"{self.called()}: name a column instead"
            )
        if callable(chosen):
            return list(map(chosen, self.records(batch)))
        raise ColumnError(
            f"{operator} is given the column {chosen!r}, and the stream carries {self.called()}, "
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

    def select(self, batch: C, names: Sequence[str]) -> C:
        """`batch` with the columns `names` alone, where that is known to be less."""
        return batch

    def as_columns(self, batch: C, make: Callable[[list[Any]], Any]) -> Any:
        """`batch` if it has columns; else the container that `make` makes of a list of records."""
        return batch if self.has_columns else make(list(self.records(batch)))

    def to_arrow(self, batch: C) -> Any:
        """The records as a `pyarrow.RecordBatch`.

        Raises
        ------
        ContainerError
            If the container has no columns.
        """
        raise ContainerError(
            f"Arrow record batches are needed, and these are {self.called()}: make columns of them "
            "with map_batches"
        )

    def paired(self, left: C, right: C, key: Sequence[str], suffix: str) -> Any:
        """The records of `left` and of `right` side by side, for a join.

        Here rows that are pairs; of columns those of the left, then those of the right but
        for `key`, with `suffix` where the left has a column of that name.
        """
        return list(zip(self.records(left), self.records(right), strict=True))

    def outer_paired(
        self,
        left: C,
        right: C,
        places: tuple[Ints, Ints],
        keys: tuple[Sequence[str], Sequence[str]],
        suffix: str,
    ) -> C:
        """The columns of `paired` of the records at `places` of both sides; -1 is no record.

        The columns of the key are those of either side.

        Raises
        ------
        ContainerError
            If a column cannot have nulls.
        """
        raise self._no_nulls()

    def empty(self, schema: Any) -> C:
        """A batch without records, of a schema, for an outer join.

        Raises
        ------
        ContainerError
            As `outer_paired`.
        """
        raise self._no_nulls()

    def _no_nulls(self) -> ContainerError:
        return ContainerError(
            f"an outer join needs nulls where there is no partner, and {self.called()} have none: "
            "send Arrow record batches"
        )

    # Some of the records.

    def take(self, batch: C, places: Places) -> C:
        """The records at `places`, int32[m] or int64[m], in that order, with repetitions."""
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

    def unseen(self, batch: C, seen: set[Any]) -> C | None:
        """The first of equal records that are not in `seen`, which are put there; None for none.

        seen : set of canonical keys
        """
        places = []
        n_seen = len(seen)
        for place, record in enumerate(self.records(batch)):
            try:
                seen.add(canonical_key(record))
            except TypeError:
                seen.add(canonical_key(_frozen(record)))
            if len(seen) > n_seen:
                n_seen += 1
                places.append(place)
        if not places:
            return None
        if len(places) == self.length(batch):
            return batch
        return self.take(batch, np.array(places, np.int64))

    def plain_columns(self, batch: C) -> dict[str, npt.NDArray[Any]] | None:
        """The columns in their order, each [n] of a dtype of fixed width; None if not all are so.

        A null is of no width. Where it gives columns there is `of_plain`, and each batch has a
        `schema`.
        """
        return None

    def of_plain(self, columns: Mapping[str, npt.NDArray[Any]], like: C) -> C:
        """A batch of the schema of `like`, of what `plain_columns` gave for such batches.

        Raises
        ------
        ContainerError
            If it gives none.
        """
        raise ContainerError(f"batches of {self.name} are not made of columns of fixed width")

    # Code of users: it is called with each record, or where there are columns with a batch.

    def units(self, batch: C) -> list[Any]:
        """What it is called with, one after the other: each record; or the one batch."""
        return [batch] if self.has_columns else list(self.records(batch))

    def listed(self, batch: C, operator: str) -> list[Any]:
        """The records, for code that can be called with nothing else.

        Raises
        ------
        ContainerError
            If they consist of columns.
        """
        if not self.has_columns:
            return list(self.records(batch))
        raise ContainerError(
            f"{operator} takes one record at a time, and this stream carries {self.called()}; use "
            "map_batches, or name a column, or of record batches give an expression, where the "
            "operator takes one"
        )

    def passing(
        self, batch: C, check: Callable[[C], object], note: Callable[[Any, Exception, int], None]
    ) -> C | None:
        """The records on which `check`, of a batch, does not fail; None for none.

        Parameters
        ----------
        note : callable
            Is called with each unit on which it fails, the error, and how many records that is.
            Where a unit is a record, `check` is tried on the batch, and then on each of them.
        """
        n_records = self.length(batch)
        try:
            check(batch)
        except Exception as error:  # noqa: BLE001 - code of the user's
            units = self.units(batch)
            if len(units) == 1:
                note(units[0], error, n_records)
                return None
        else:
            return batch
        places = []
        for place, record in enumerate(units):
            try:
                check(self.slice(batch, place, place + 1))
            except Exception as error:  # noqa: BLE001 - as above
                note(record, error, 1)
            else:
                places.append(place)
        return self.take(batch, np.array(places, np.int64)) if places else None

    def check_chosen(self, batch: C, chosen: Any) -> None:
        """Refuse what names columns where there are none.

        Raises
        ------
        ColumnError
        """
        if not self.has_columns:
            check_rows_key(chosen, next(self.records(batch), None))

    # What operators keep of records, and send.

    def with_times(self, batch: C, times: Ints) -> Any:
        """What is kept of records whose `units` are to be taken in the order of `times`, int64[n].

        Units that are batches have no order; so of columns it is the batch.
        """
        return (
            batch
            if self.has_columns
            else list(zip(times.tolist(), self.records(batch), strict=True))
        )

    def by_times(self, kept: C) -> Any:
        """The records of what `with_times` gave, in the order of their times."""
        return kept

    def labelled(
        self,
        parts: Sequence[C],
        to_rows: Callable[[int, C], Iterable[Any]],
        to_columns: Callable[[C, Ints], Any],
    ) -> Any:
        """One container of all of `parts` (at least one), and of what is to be said of each.

        Parameters
        ----------
        to_rows : callable
            Of the number of a part and the part: the rows to send for it.
        to_columns : callable
            Of a container of all, and for each record the number of its part, int64[n]: the
            container with more columns.
        """
        if not self.has_columns:
            return [row for number, part in enumerate(parts) for row in to_rows(number, part)]
        numbers = np.repeat(np.arange(len(parts)), list(map(self.length, parts)))
        return to_columns(self.concat(parts), numbers)

    def kept_apart(self, parts: Sequence[C]) -> Sequence[Any]:
        """The containers to send for a stream whose records are `parts`; here the parts."""
        return parts

    # Keys.

    def keys(self, batch: C, key: Key, operator: str) -> list[Any]:
        """The key of each record as a Python value; None as a key is the record itself."""
        canonical = canonical_key if self.has_columns else hashable_key
        if key is None:
            return list(map(canonical, self.records(batch)))
        if callable(key) or isinstance(key, str):
            return [canonical(v) for v in _listed(self.column(batch, key, operator))]
        columns = [_listed(self.column(batch, name, operator)) for name in key]
        return [canonical_key(values) for values in zip(*columns, strict=True)]

    def keyed(self, batch: C, key: Key, operator: str) -> Iterator[tuple[Any, Any]]:
        """Each record with its key, for what folds one record after the other."""
        return zip(self.keys(batch, key, operator), self.records(batch), strict=True)

    def keyed_pairs(self, batch: C, operator: str) -> Iterator[tuple[Any, Any]]:
        """Key and value of each record that is a pair of them, for what folds those.

        Raises
        ------
        DataError
            If one is no pair.
        """
        if self.has_columns:
            return self.keyed(batch, None, operator)
        return (checked_pair(record, operator) for record in self.records(batch))

    def to_fold(self, batch: C, key: Key, operator: str) -> tuple[list[Any], Key]:
        """Records as a list, and their key, for a loop that looks at each of them once.

        Where there are columns these are pairs of key and record, and there is no key more.
        """
        if not self.has_columns:
            return list(self.records(batch)), key
        pairs = (
            self.keyed_pairs(batch, operator) if key is None else self.keyed(batch, key, operator)
        )
        return list(pairs), None

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

    def pack_small(self, batch: C) -> tuple[bytes, bytes] | None:
        """A small batch as what it has in common with others, and the rest; None of others.

        What carries small messages keeps both as they are; the first is the same object for
        many batches.
        """
        return None

    def unpack_small(self, header: bytes, block: bytes) -> C:
        """The batch that `pack_small` made these of.

        Raises
        ------
        ContainerError
            If it made none.
        """
        raise ContainerError(f"batches of {self.name} have no form for small messages")


def check_new(more: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse to add a column whose name is among `names`.

    Raises
    ------
    ColumnError
    """
    taken = [name for name in more if name in names]
    if taken:
        raise ColumnError(
            f"cannot add the column {taken[0]!r}: the batch has one of that name; rename it first"
        )


def columns_of_right(
    kind: Kind[Any], left: Any, right: Any, key: Sequence[str], suffix: str
) -> dict[str, Any]:
    """The columns of the right side of a join, but for `key`, by their names in the join.

    Raises
    ------
    ColumnError
        If two columns of the join would have one name.
    """
    names = kind.names(left)
    columns: dict[str, Any] = {}
    for name in kind.names(right):
        if name in key:
            continue
        joined = f"{name}{suffix}" if name in names else name
        if joined in names or joined in columns:
            raise ColumnError(
                f"a join would have two columns {joined!r}, of the left side's {list(names)} and "
                f"the right side's {list(kind.names(right))}: rename one of them first"
            )
        columns[joined] = kind.column(right, name, "a join")
    return columns


def _listed(values: Any) -> list[Any]:
    """Values as Python's own: of an Arrow array, of a NumPy array, or of a list."""
    for convert in ("to_pylist", "tolist"):
        if hasattr(values, convert):
            listed: list[Any] = getattr(values, convert)()
            return listed
    return list(values)


def _frozen(value: Any) -> Any:
    """A record of columns, of which lists and structs cannot be hashed by Python, so that it can.

    >>> _frozen((7, [1, {"x": None}]))
    (7, (1, (('x', None),)))
    """
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
