"""The k largest records of a batch, of each key: rows by a function, columns by a column.

Of records that are equal where not all are among the k, those with the least stable hashes are
chosen, so that the answer does not depend on the order in which they came; but for those whose
hashes are equal, too: records that are equal, and objects of which no hash is stable.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from pointstamp.containers.event_times import group_numbers
from pointstamp.containers.keys import check_rows_key, hash_key, hash_keys
from pointstamp.containers.kind import Kind
from pointstamp.containers.registry import kind_of
from pointstamp.containers.row_lists import rows_with_values
from pointstamp.errors import BuildError, DataError, KeyHashError
from pointstamp.kernels.hashing import Hashes

_MANY = 100
"""How many times k it takes until a heap is quicker than to sort."""


def largest(batch: Any, k: int, by: Any, key: Any, operator: str, *, exactly: bool) -> Any:
    """The k largest records of each key, the largest first; nulls and NaNs are left out.

    Parameters
    ----------
    by : callable, str or None
        What records are compared by; None: themselves.
    exactly : bool
        Otherwise also all that are equal to the last of them: for parts of what is to be
        compared.

    >>> largest([3, 9, 4, 1], 2, None, None, "an example", exactly=True)
    [9, 4]
    """
    kind = kind_of(batch)
    if not kind.has_columns:
        return _of_rows(list(kind.records(batch)), k, by, key, exactly)
    return _of_columns(kind, batch, k, by, key, operator, exactly)


def _of_rows(batch: list[Any], k: int, by: Any, key: Any, exactly: bool) -> list[Any]:
    """The k largest of each key, the largest first; not `exactly`: and all their equals."""
    for chosen in (by, key):
        check_rows_key(chosen, batch[0] if batch else None)
    groups = rows_with_values(batch, by, key).values()
    return [record for group in groups for record in _first(group[::2], group[1::2], k, exactly)]


def _first(values: list[Any], records: list[Any], k: int, exactly: bool) -> list[Any]:
    """The records of the k largest values, the largest first where there are exactly so many."""
    if len(values) <= k and not exactly:
        return records
    order = list(range(len(values)))
    if len(values) > _MANY * k:  # more than what is quicker sorted as a whole
        least = heapq.nlargest(k, values)[-1]
        order = [place for place, value in enumerate(values) if not value < least]
    order.sort(key=values.__getitem__, reverse=True)
    start = stop = k
    if k < len(order):
        least = values[order[k - 1]]
        while start and not least < values[order[start - 1]]:
            start -= 1
        while stop < len(order) and not values[order[stop]] < least:
            stop += 1
    found = [records[place] for place in order[:stop]]
    if not exactly or stop == k:
        return found
    equal = found[start:]
    chosen = np.argsort(_tie_hashes(equal), kind="stable")[: k - start]
    return found[:start] + [equal[place] for place in chosen.tolist()]


def _tie_hashes(records: list[Any]) -> Hashes:
    """The hashes by which records that are equal are ordered, whether they can be keys or not."""
    try:
        return hash_keys(records)
    except KeyHashError:
        return np.array(list(map(_tie_hash, records)), np.uint64)


def _tie_hash(record: Any) -> int:
    """The hash of a record, of dicts, lists and sets by what they hold; 0 where there is none."""
    if isinstance(record, (list, tuple)):
        return hash_key(tuple(map(_tie_hash, record)))
    if isinstance(record, (dict, set, frozenset)):
        members = record.items() if isinstance(record, dict) else record
        return sum(map(_tie_hash, members)) % (1 << 64)  # in whatever order they are
    try:
        return hash_key(record)
    except KeyHashError:
        return 0


def _of_columns(
    kind: Kind[Any], batch: Any, k: int, by: Any, key: Any, operator: str, exactly: bool
) -> Any:
    """The same of columns."""
    # Here and not above: it is Arrow, which programs without columns do not import.
    import pyarrow as pa
    import pyarrow.compute as pc

    from pointstamp.containers.convert import arrow_array, numbers

    if not isinstance(by, str):
        raise BuildError(f"{operator}: columns are compared by the name of a column, not by {by!r}")
    values = kind.column(batch, by, operator)
    values = arrow_array(values) if isinstance(values, np.ndarray) else values
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    is_value = values.is_valid()
    if pa.types.is_floating(values.type):
        is_value = pc.and_(is_value, pc.invert(pc.fill_null(pc.is_nan(values), True)))
    try:
        ranks = pc.rank(values, sort_keys="descending", tiebreaker="dense")
    except pa.ArrowNotImplementedError as error:
        raise DataError(
            f"{operator} cannot order the column {by!r} of type {values.type}"
        ) from error
    places = np.flatnonzero(numbers(is_value.cast(pa.uint8())))
    batch, ranking = kind.take(batch, places), numbers(ranks)[places]
    if not len(places):
        return batch
    groups = group_numbers(batch, key, operator)
    ties = kind.hashes(batch, None) if exactly else np.zeros(len(places), np.uint64)
    order = np.lexsort((ties, ranking, groups))
    of, rank = groups[order], ranking[order]
    begins = np.flatnonzero(np.diff(of, prepend=of[0] - 1))
    sizes = np.diff(begins, append=len(of))
    position = np.arange(len(of)) - np.repeat(begins, sizes)
    if exactly:
        return kind.take(batch, order[position < k])
    last = np.repeat(rank[begins + np.minimum(sizes, k) - 1], sizes)
    return kind.take(batch, order[rank <= last])
