"""What a service is sent, as batches: tables, frames, records; distributed to its workers."""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from pointstamp.containers.registry import batches_of, kind_of
from pointstamp.errors import SchemaError, UsageError


def epoch_of(given: Any) -> int:
    """`given` as an epoch, which any kind of whole number is, and True is not.

    >>> import numpy as np
    >>> epoch_of(np.int32(7))
    7
    """
    if not isinstance(given, bool):
        with contextlib.suppress(TypeError):
            return operator.index(given)
    raise UsageError(f"an epoch is a whole number, and not {given!r} ({type(given).__name__})")


def check_staged(max_staged_bytes: Any) -> None:
    """Raise `UsageError` for what is no number of bytes."""
    if type(max_staged_bytes) is not int or max_staged_bytes <= 0:
        raise UsageError(
            f"max_staged_bytes={max_staged_bytes!r} is no number of bytes: how many may wait, over "
            "all workers, that were sent to the input"
        )


def to_batches(data: Any, input: str, schema: pa.Schema) -> list[Any]:
    """Tables, batches and records as a list of batches."""
    batches = batches_of(data)
    if batches is not None:
        return [kind_of(batch).to_arrow(batch) for batch in batches]
    # What a user gives, and not a batch: records without an order of columns.
    found = type(data).__name__
    if isinstance(data, list):
        others = [record for record in data if not isinstance(record, dict)]
        if not others:
            return [_of_records(data, input, schema)] if data else []
        found = f"a list with {others[0]!r:.100} ({type(others[0]).__name__}) in it"
    raise UsageError(
        f"input {input!r} is sent a pyarrow.Table, a RecordBatch, a data frame or a list of dicts, "
        f"and not {found}"
    )


def _of_records(records: list[dict[str, Any]], input: str, schema: pa.Schema) -> pa.RecordBatch:
    """Records as a batch, of the types that their values have where those are of one type."""
    columns = set(schema.names)
    for number, record in enumerate(records):
        if record.keys() != columns:
            raise SchemaError(
                f"record {number} of those sent to {input!r} has columns "
                f"{', '.join(map(str, record)) or '(none)'}, and that input has "
                f"{', '.join(schema.names)}: give each record these, None for no value"
            )
    # What Arrow makes of the values is cast later, if nothing changes by it. What it can make
    # nothing of, such as entries of a map, may be clear by the schema.
    with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.RecordBatch.from_pylist(records)
    try:
        return pa.RecordBatch.from_pylist(records, schema=schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as cause:
        raise SchemaError(
            f"the records that are sent to {input!r} do not fit its schema: {cause}; expected:\n"
            f"{schema}"
        ) from cause


SHARE_RECORDS = 4096
"""Fewer than this go to one worker: distributing them costs more than it gives."""


def distributed(batches: Iterable[Any], n: int, first: int = 0) -> list[list[Any]]:
    """The batches, sliced and distributed to `n` workers, about equally many records for each.

    first : which worker has the first of them, modulo `n`
    """
    shares: list[list[Any]] = [[] for _ in range(n)]
    turns = itertools.islice(itertools.cycle(shares), first % n, None)
    for batch in batches:
        size = max(SHARE_RECORDS, -(-len(batch) // n))
        for start in range(0, len(batch), size):
            next(turns).append(batch.slice(start, size))
    return shares


class ShareOfWorker:
    """What one of several workers has of batches, as `distributed` has it.

    It is read when it is iterated over, again each time: batches that are read from elsewhere
    are in memory one at a time.

    >>> batches = [pa.RecordBatch.from_pydict({"n": [k] * k}) for k in range(4)]
    >>> shares = [ShareOfWorker(batches, k, 2, first=1) for k in range(2)]
    >>> [[len(batch) for batch in share] for share in shares]
    [[2], [1, 3]]
    """

    def __init__(self, batches: Iterable[Any], number: int, of: int, first: int = 0) -> None:
        self._batches = batches
        self._number = number
        self._of = of
        self._first = first

    def __iter__(self) -> Iterator[Any]:
        turn = self._first
        for batch in self._batches:
            size = max(SHARE_RECORDS, -(-len(batch) // self._of))
            for start in range(0, len(batch), size):
                if turn % self._of == self._number:
                    yield batch.slice(start, size)
                turn += 1

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None
