"""Hash index of one side of a join: records by key, looked up by key, a batch at a time.

Columns are found by the stable hashes of their keys, in a `Multimap` of the numbers of
their records. Hashes of one column of integers are as good as the integers; others may
be equal by chance, so the keys of what was found are compared. A null is no key, and a
NaN none either, as in SQL. Rows are found in a dict, by keys as Python compares them, but
that a NaN is no key there either, although it equals itself while it is one object.

How a side is kept, says `kept_records`.

Arrow's own join of two tables takes about as long for integer keys and half as long for
text, but joins whole sides: each batch would pay for all that is kept.

Each record has the time at which it came. The times of the oldest
records are not distinguished any more after `merge_times`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pointstamp.containers.kept_records import KeptRecords
from pointstamp.containers.keys import check_rows_key, hashable_key
from pointstamp.containers.registry import kind_of
from pointstamp.containers.row_lists import keep_rows, matching_rows
from pointstamp.errors import ColumnError, SchemaError
from pointstamp.kernels.hash_join import Multimap, add_values, find_values, no_values
from pointstamp.kernels.hashing import UNITS_OF_DATES
from pointstamp.kernels.permute import Places

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Arrive = Callable[[Any], Hashable]
"""The time of a pair, from that of the record that was kept."""

SUFFIX = "_right"
"""What is put to the name of a column of the right side that the left one has too."""


class JoinIndex(Protocol):
    """Hash index of the records of one side of a join, by key."""

    def add(self, batch: Any, time: Any) -> None:
        """Keep a batch that came at `time`."""

    def pairs(self, batch: Any, arrive: Arrive) -> Iterator[tuple[Any, Any, Any]]:
        """(time, records of `batch`, the kept record of equal key of each), of all pairs."""

    def meet(
        self, batch: Any, time: Any, others: JoinIndex | None, arrive: Arrive
    ) -> Iterator[tuple[Any, Any, Any]]:
        """The `pairs` of a batch with the other side, if there is anything of it; and `add` it."""

    def merge_times(self, is_past: Callable[[Any], bool]) -> None:
        """`arrive` gives for times of which `is_past` is true what it gives for None."""

    def batches(self) -> Iterator[Any]:
        """All that is kept, without the times at which it came."""


def index_for(batch: Any, own_key: Any, other_key: Any) -> JoinIndex:
    """An empty index for batches like this one."""
    make = ColumnsIndex if kind_of(batch).has_columns else RowsIndex
    return make(own_key, other_key)


class RowsIndex:
    """Records that are Python values, by key.

    Parameters
    ----------
    own_key, other_key : callable or None
        The key of a record that is kept, and of one that asks; None: itself.

    >>> kept = RowsIndex(lambda x: x % 10, lambda x: x)
    >>> kept.add([13, 23, 14], time=0)
    >>> list(kept.pairs([3, 5], lambda time: time))
    [(0, [3, 3], [13, 23])]
    """

    def __init__(self, own_key: Any, other_key: Any) -> None:
        self._own_key = own_key
        self._other_key = other_key
        self._lists: dict[Any, list[tuple[Any, Any]]] = {}

    def add(self, batch: Any, time: Any) -> None:
        """Keep records that came at `time`."""
        records = rows_of(batch)
        keep_rows(self._lists, row_keys(records, self._own_key), records, time)

    def pairs(self, batch: Any, arrive: Arrive) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        """Pairs with the records of `batch`."""
        if kind_of(batch).has_columns:
            raise differ(batch, [])
        records = rows_of(batch)
        keys = row_keys(records, self._other_key)
        found = matching_rows(self._lists, keys, records, arrive)
        for at, (own, others) in found.items():
            yield at, own, others

    def meet(
        self, batch: Any, time: Any, others: JoinIndex | None, arrive: Arrive
    ) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        """Pairs with what `others` keeps, and keep the batch."""
        return _met_and_kept(self, batch, time, others, arrive)

    def merge_times(self, is_past: Callable[[Any], bool]) -> None:
        """Nothing: a time beside each row costs the same whatever it is."""

    def batches(self) -> Iterator[list[Any]]:
        """All rows."""
        if self._lists:
            yield [record for of_key in self._lists.values() for _, record in of_key]


class ColumnsIndex:
    """Record batches or Arrays by key.

    Parameters
    ----------
    own_key, other_key : str or sequence of str
        The columns of what is kept, and of what asks.

    >>> from pointstamp.containers import Arrays
    >>> kept = ColumnsIndex("a", "b")
    >>> kept.add(Arrays(a=[1, 2], x=[5, 6]), time=0)
    >>> [(at, own["b"], other["x"]) for at, own, other in kept.pairs(Arrays(b=[2, 3, 2]), str)]
    [('0', array([2, 2]), array([6, 6]))]
    """

    def __init__(self, own_key: Any, other_key: Any) -> None:
        self._own_key = key_names(own_key)
        self._other_key = key_names(other_key)
        self._index: Multimap = no_values()
        self._kept: KeptRecords | None = None
        self._types: list[Any] = []
        """Of the columns of the key, of what is kept."""
        self._other_types: list[Any] = []
        """The same of what asked last, which can be compared with those."""
        self._n = 0
        self._n_past = 0
        self._runs: deque[tuple[int, Any]] = deque()
        """(first record, time) of what came together, of those that are not past."""

    def add(self, batch: Any, time: Any) -> None:
        """Keep a batch that came at `time`."""
        batch, hashes = _keyed(batch, self._own_key)
        if len(hashes):
            self._keep(batch, hashes, time)

    def pairs(self, batch: Any, arrive: Arrive) -> Iterator[tuple[Any, Any, Any]]:
        """Pairs with the records of `batch`."""
        if self._kept is None:
            return
        self._check(batch, self._kept)
        batch, hashes = _keyed(batch, self._other_key)
        yield from self._taken_by_time(batch, find_values(self._index, hashes), arrive)

    def meet(
        self, batch: Any, time: Any, others: JoinIndex | None, arrive: Arrive
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Pairs with what `others` keeps, and keep the batch."""
        if not isinstance(others, ColumnsIndex) or others._kept is None:
            yield from _met_and_kept(self, batch, time, others, arrive)
            return
        others._check(batch, others._kept)
        batch, hashes = _keyed(batch, self._own_key)
        if len(hashes):
            yield from others._taken_by_time(batch, find_values(others._index, hashes), arrive)
            self._keep(batch, hashes, time)

    def merge_times(self, is_past: Callable[[Any], bool]) -> None:
        """Forget the times of the oldest records as far as they are past."""
        while self._runs and is_past(self._runs[0][1]):
            self._runs.popleft()
            self._n_past = self._runs[0][0] if self._runs else self._n

    def batches(self) -> Iterator[Any]:
        """The batches, as they were put together."""
        if self._kept is not None:
            yield from self._kept.batches()

    def _check(self, batch: Any, kept: KeptRecords) -> None:
        """Refuse a batch that cannot be joined with what is kept."""
        if type(batch) is not kept.container:
            raise differ(batch, kept.batches()[0])
        types = key_types(batch, self._other_key)
        if types != self._other_types:
            check_comparable(types, self._types)
            self._other_types = types

    def _keep(self, batch: Any, hashes: Ints, time: Any) -> None:
        if not self._runs or self._runs[-1][1] != time:
            self._runs.append((self._n, time))
        self._index = add_values(self._index, hashes, np.arange(self._n, self._n + len(hashes)))
        self._n += len(hashes)
        if self._kept is None:
            self._kept = KeptRecords(batch)
            self._types = key_types(batch, self._own_key)
        else:
            self._kept.add(batch)

    def _taken_by_time(
        self, batch: Any, found: tuple[Places, Places], arrive: Arrive
    ) -> Iterator[tuple[Any, Any, Any]]:
        """The pairs of records of `batch` with kept ones, by the numbers of both."""
        records, rows = found
        if self._kept is None or not len(rows):
            return
        for at, of in self._by_time(rows, arrive):
            own, other = self._taken(self._kept, batch, records[of], rows[of])
            if kind_of(own).length(own):
                yield at, own, other

    def _by_time(self, rows: Places, arrive: Arrive) -> Iterator[tuple[Any, Any]]:
        """(time, which of `rows` arrive then), together all."""
        begins = np.array([self._n_past, *(begin for begin, _ in self._runs)])
        times = [arrive(time) for time in (None, *(time for _, time in self._runs))]
        if len(set(times)) == 1:
            yield times[0], slice(None)
            return
        # Those before the first run are past; the run of that number has no record.
        runs = np.searchsorted(begins[1:], rows, side="right")
        numbers = {time: number for number, time in enumerate(dict.fromkeys(times))}
        arrivals = np.array([numbers[time] for time in times])[runs]
        present = np.bincount(arrivals, minlength=len(numbers))
        for time, number in numbers.items():
            if present[number] == len(rows):
                yield time, slice(None)
            elif present[number]:
                yield time, np.flatnonzero(arrivals == number)

    def _taken(
        self, kept: KeptRecords, batch: Any, records: Places, rows: Places
    ) -> tuple[Any, Any]:
        """Both sides of the pairs, whose order may change; what only has equal hashes is out."""
        kind = kind_of(batch)
        if len(self._own_key) == 1 and kept.has_plain(self._own_key[0]):
            own = kind.take(batch, records)
            key = _values(own, self._other_key[0])
            if _is_signed(key):
                # Equal hashes are equal keys: what is kept far apart need not be read again.
                return own, kept.take(rows, {self._own_key[0]: np.asarray(key)})[1]
        order, other = kept.take(rows)
        own = kind.take(batch, records if order is None else records[order])
        is_pair = are_equal(own, self._other_key, other, self._own_key)
        if is_pair is not None and not is_pair.all():
            own, other = (kind.take(side, np.flatnonzero(is_pair)) for side in (own, other))
        return own, other


def _met_and_kept(
    index: JoinIndex, batch: Any, time: Any, others: JoinIndex | None, arrive: Arrive
) -> Iterator[tuple[Any, Any, Any]]:
    """`JoinIndex.meet`, one after the other."""
    if others is not None:
        yield from others.pairs(batch, arrive)
    index.add(batch, time)


def paired(left: Any, right: Any, right_key: Any) -> Any:
    """The records of a join, of the two sides of the pairs.

    Rows are pairs; columns are those of the left, then those of the right without its
    key. A name that is taken gets `SUFFIX`.

    >>> from pointstamp.containers import Arrays
    >>> paired(Arrays(k=[1], x=[2]), Arrays(k=[1], x=[3]), "k")
    Arrays(k: int64, x: int64, x_right: int64; 1 records)
    """
    kind = kind_of(left)
    key = key_names(right_key) if kind.has_columns else ()
    return kind.paired(left, right, key, SUFFIX)


def rows_of(batch: Any) -> list[Any]:
    """The records of a container without columns."""
    return batch if type(batch) is list else list(kind_of(batch).records(batch))


def row_keys(batch: list[Any], key: Any) -> list[Any]:
    """The keys of rows; raises if they are names of columns, or cannot be hashed."""
    check_rows_key(key, batch[0])
    keys = batch if key is None else list(map(key, batch))
    try:
        deque(map(hash, keys), 0)
    except TypeError:
        deque(map(hashable_key, keys), 0)  # it says of which that is so
        raise
    return keys


def key_names(key: Any) -> list[str]:
    """The names of the columns of a key; raises if it is none."""
    if key is None or callable(key):
        raise ColumnError(
            f"a join of columns needs the name of the key's column, or of several; found {key!r}"
        )
    return [key] if isinstance(key, str) else list(key)


def differ(batch: Any, kept: Any) -> SchemaError:
    """The error for two kinds of container in one join."""
    return _kinds_differ(kind_of(batch).name, kind_of(kept).name)


def check_one_kind(kind: str, other: str) -> None:
    """Refuse two kinds of container in one join, by their names; raises `SchemaError`."""
    if kind != other:
        raise _kinds_differ(kind, other)


def name_of_rows(batch: Any) -> str:
    """The name of the kind of a batch; that of lists for all of rows, which an index takes."""
    kind = kind_of(batch)
    return kind.name if kind.has_columns else kind_of([]).name


def _kinds_differ(kind: str, other: str) -> SchemaError:
    return SchemaError(
        f"a join needs one kind of container on both sides; one has {kind} and the other {other}"
    )


def hashes_with_places(batch: Any, key: list[str]) -> tuple[Ints, Ints]:
    """The places of the records that have a key, and the hashes of the keys, both int64[n]."""
    hashes = kind_of(batch).hashes(batch, key).view(np.int64)
    places = _places_with_key(batch, key)
    return (np.arange(len(hashes)), hashes) if places is None else (places, hashes[places])


def _keyed(batch: Any, key: list[str]) -> tuple[Any, Ints]:
    """The records that have a key, and the hashes of the keys as int64[n]."""
    kind = kind_of(batch)
    hashes = kind.hashes(batch, key).view(np.int64)
    places = _places_with_key(batch, key)
    return (batch, hashes) if places is None else (kind.take(batch, places), hashes[places])


def _places_with_key(batch: Any, key: list[str]) -> Ints | None:
    """Where no column of the key is null; None: everywhere."""
    kind = kind_of(batch)
    columns = [kind.column(batch, name, "a join") for name in key]
    nulls = [
        column.is_null().to_numpy(zero_copy_only=False)
        for column in columns
        if getattr(column, "null_count", 0)  # of Arrow; other columns have none
    ]
    return np.flatnonzero(~np.logical_or.reduce(nulls)) if nulls else None


def are_equal(own: Any, own_key: list[str], other: Any, other_key: list[str]) -> Mask | None:
    """Which pairs of equal hashes have equal keys; None if all must."""
    columns = [
        (_values(own, mine), _values(other, theirs))
        for mine, theirs in zip(own_key, other_key, strict=True)
    ]
    if len(columns) == 1 and _is_signed(columns[0][0]) and _is_signed(columns[0][1]):
        return None
    masks = [_equal(a, b) for a, b in columns]
    every: Mask = np.logical_and.reduce(masks)
    return every


def key_types(batch: Any, key: list[str]) -> list[Any]:
    """The types of the columns of a key: Arrow's, or dtypes of NumPy."""
    columns = [_values(batch, name) for name in key]
    return [c.dtype if isinstance(c, np.ndarray) else c.type for c in columns]


def types_of_key(batch: Any, key: Any) -> list[Any]:
    """`key_types` by a key as `Stream.join` takes it; none of rows, whose keys have any type."""
    return key_types(batch, key_names(key)) if kind_of(batch).has_columns else []


def check_comparable(types: list[Any], others: list[Any]) -> None:
    """Refuse keys of which none can be equal: that they have no partners would say nothing.

    Raises
    ------
    SchemaError
        If a column of one side has other values than the other's: texts and numbers, for one.
    """
    check_values(*([(kind, values_of(kind)) for kind in each] for each in (types, others)))


def check_values(
    types: Iterable[tuple[Any, str | None]], others: Iterable[tuple[Any, str | None]]
) -> None:
    """The same of the columns' types, or what they are called, and `values_of` each."""
    for (one, of_one), (other, of_other) in zip(types, others, strict=True):
        if of_one != of_other and of_one and of_other:
            raise SchemaError(
                f"the keys of a join cannot be compared: {one} with {other} ({of_one} with "
                f"{of_other}); make them one type"
            )


def values_of(kind: Any) -> str | None:
    """What the values of a type are, of which hashes and comparisons agree; None: anything."""
    if isinstance(kind, np.dtype):
        if kind.kind == "M":  # as `hash_times` does
            is_date = np.datetime_data(kind)[0] in UNITS_OF_DATES
            return "dates" if is_date else "times without a zone"
        return _OF_DTYPE.get(kind.kind)
    # Here and not above: both are Arrow, which programs without columns do not import.
    import pyarrow.types as of

    from pointstamp.containers.texts import is_text

    if of.is_dictionary(kind):
        kind = kind.value_type
    if of.is_integer(kind) or of.is_floating(kind) or of.is_decimal(kind):
        return "numbers"
    if of.is_timestamp(kind):
        return "times with a zone" if kind.tz else "times without a zone"
    for name, is_it in (
        ("booleans", of.is_boolean),
        ("dates", of.is_date),
        ("times of day", of.is_time),
        ("durations", of.is_duration),
    ):
        if is_it(kind):
            return name
    return "texts" if is_text(kind) or of.is_fixed_size_binary(kind) else None


_OF_DTYPE = {
    **dict.fromkeys("iuf", "numbers"),
    "b": "booleans",
    "m": "durations",
    "U": "texts",
    "S": "bytes",
}
"""By the kind of a dtype. NumPy takes no bytes for equal to a text, though Arrow does."""


def _values(batch: Any, name: str) -> Any:
    """A column as an array of NumPy's or of Arrow's."""
    column = kind_of(batch).column(batch, name, "a join")
    return np.asarray(column) if type(column) is list else column


def _is_signed(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return bool(column.dtype.kind == "i")
    import pyarrow as pa

    return bool(pa.types.is_signed_integer(column.type))


def _equal(a: Any, b: Any) -> Mask:
    if isinstance(a, np.ndarray):
        return np.asarray(a == b, np.bool_)
    import pyarrow as pa
    import pyarrow.compute as pc

    a, b = (c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in (a, b))
    # Arrow compares no times of two zones, which are of one clock all the same.
    a, b = (
        c.cast(pa.timestamp(c.type.unit, "UTC")) if getattr(c.type, "tz", None) else c
        for c in (a, b)
    )
    # Of halves Arrow compares none; as floats they have the same values.
    a, b = (c.cast(pa.float32()) if pa.types.is_float16(c.type) else c for c in (a, b))
    a, b = sorted((a, b), key=_place_in_comparison)
    try:
        if pa.types.is_integer(a.type) and pa.types.is_floating(b.type):
            # Arrow refuses integers that are no floats; those are equal to none.
            equal = pc.equal(a.cast(b.type, safe=False), b)
            equal = pc.and_(equal, pc.equal(a, b.cast(a.type, safe=False)))
        elif pa.types.is_signed_integer(a.type) and pa.types.is_uint64(b.type):
            # Arrow refuses these where one does not fit the other's type.
            equal = pc.equal(a.cast(pa.uint64(), safe=False), b)
            equal = pc.and_(equal, pc.greater_equal(a, pa.scalar(0, a.type)))
        else:
            equal = pc.equal(a, b)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise SchemaError(
            f"the keys of a join cannot be compared: {a.type} with {b.type} ({error})"
        ) from error
    return np.asarray(pc.fill_null(equal, False).cast(pa.uint8())).astype(np.bool_)


def _place_in_comparison(column: Any) -> int:
    """Signed integers come before unsigned ones, and integers before floats."""
    import pyarrow as pa

    return 2 if pa.types.is_floating(column.type) else int(pa.types.is_uint64(column.type))
