"""Aggregates of columns by name: of each batch before it is sent, and of all parts together."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.containers.arrow_groups import (
    again,
    aggregated,
    can_combine,
    combined,
    listed,
    named_columns,
)
from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.containers.group_totals import GroupTotals, has_table, total_of
from pointstamp.containers.keys import column_names
from pointstamp.containers.registry import kind_of

WORTH_GROUPING = 1024
"""Records of a batch from which what grouping saves is more than what a call of Arrow costs."""

_N_PASSED = 15
"""After a batch whose keys are nearly all different, so many are not looked at."""


def aggregate_batch(
    batch: Any, key: Any, aggregates: Sequence[Any], operator: str
) -> pa.RecordBatch:
    """What `aggregated` gives of a batch of any kind that has columns."""
    kind = kind_of(batch)
    if not kind.has_columns and (named := named_columns(key, aggregates)):
        kind.column(batch, named[0], operator)  # which says why it has none
    return aggregated(kind.to_arrow(batch), key, aggregates, operator)


def ones(batch: pa.RecordBatch, key: Any, name: str) -> pa.RecordBatch:
    """The columns of the key, and a one for each record; without a key one sum of them.

    >>> batch = pa.RecordBatch.from_pydict({"k": [7, 9], "x": [1, 2]})
    >>> ones(batch, "k", "n").to_pydict(), ones(batch, [], "n").to_pydict()
    ({'k': [7, 9], 'n': [1, 1]}, {'n': [2]})
    """
    names = listed(key)
    if not names:
        return pa.RecordBatch.from_pydict({name: [batch.num_rows]})
    counts = arrow_array(np.ones(batch.num_rows, np.int64))
    columns = [*map(batch.column, names), counts]
    return pa.RecordBatch.from_arrays(columns, [*names, name])


def aggregate_each(
    batches: Sequence[pa.RecordBatch],
    key: Any,
    aggregate: Callable[[pa.RecordBatch, Any], pa.RecordBatch],
) -> list[pa.RecordBatch]:
    """What `aggregate(batch, key)` gives for each of some batches, by one call for all.

    >>> batches = [pa.RecordBatch.from_pydict({"k": keys}) for keys in ([7, 9, 7], [7])]
    >>> def count(batch, key):
    ...     return aggregate_batch(batch, key, [("k", "count")], "an example")
    >>> [counts.to_pydict() for counts in aggregate_each(batches, "k", count)]
    [{'k': [7, 9], 'k_count': [2, 1]}, {'k': [7], 'k_count': [1]}]
    """
    if len(batches) == 1:
        return [aggregate(batches[0], key)]
    whole: Any = kind_of(batches[0]).concat(batches)
    name = "batch"
    while name in whole.schema.names:
        name += "_"
    places = np.arange(len(batches))
    of = np.repeat(places, [batch.num_rows for batch in batches])
    found = aggregate(whole.append_column(name, arrow_array(of)), [*listed(key), name])
    # Where keys are new, Arrow has groups nearly in the order of their first records, not quite.
    of = numbers(found.column(name))
    order = np.argsort(of, kind="stable")
    found = found.drop_columns([name]).take(arrow_array(order))
    starts = np.searchsorted(of[order], [*places, len(batches)]).tolist()
    return [found.slice(start, end - start) for start, end in itertools.pairwise(starts)]


class AggregatesByName:
    """Aggregates of columns by name in two steps: of each batch where it is, then of all together.

    A part has no columns but those of the key and of the aggregates. Where the functions allow
    it, the part of a batch has one record for each of its keys; where that hardly makes it
    shorter, it is not worth a look at each key, and each record is a key of its own for a while.
    Where parts stay on one worker they need not be short (`is_sent` is False), and it is so always.

    >>> counts = AggregatesByName("k", [("x", "count")], "an example")
    >>> batch = pa.RecordBatch.from_pydict({"k": [7, 9, 7], "x": [1, None, 3], "y": [0, 0, 0]})
    >>> part = counts.part([batch])
    >>> part.to_pydict(), counts.whole([part, part]).to_pydict()
    ({'k': [7, 9], 'x_count': [2, 0]}, {'k': [7, 9], 'x_count': [4, 0]})
    """

    def __init__(
        self, key: Any, aggregates: Sequence[Any], operator: str, *, is_sent: bool = True
    ) -> None:
        self._key = key
        self._aggregates = aggregates
        self._operator = operator
        self.is_sent = is_sent
        """Whether parts may go to other workers, for which they are made short."""
        self.is_shorter = False
        """Whether the last part has at most half as many records as it is of."""
        self.columns = named_columns(key, aggregates)
        """Those that are named."""
        self.combines = can_combine(key, aggregates)
        """Whether parts are aggregates already, and not the records."""
        self._of: Any = None
        self._schema: Any = None
        """Of what the last part that Arrow made is of, and of the part."""
        self._n_to_pass = 0
        """Batches of which each record is left a key of its own."""

    def part(self, batches: Sequence[Any]) -> pa.RecordBatch:
        """What is sent and kept of some batches, of any kind that has columns."""
        narrow = self._narrow_of(batches)
        self.is_shorter = False
        if not self.combines:
            return narrow
        is_small = narrow.num_rows < WORTH_GROUPING
        if (self._n_to_pass or is_small) and narrow.schema == self._of:
            self._n_to_pass = max(0, self._n_to_pass - 1)
            return self._of_each_record(narrow)
        found = self._grouped(narrow)
        if not self.is_sent:
            self._n_to_pass = sys.maxsize
        elif 2 * found.num_rows > narrow.num_rows:
            self._n_to_pass = _N_PASSED
        else:
            self.is_shorter = True
        return found

    def records(self, batches: Sequence[Any]) -> pa.RecordBatch | None:
        """The part of some batches, were all their keys different; None if their types are new."""
        narrow = self._narrow_of(batches)
        if not self.combines or narrow.schema != self._of:
            return None
        return self._of_each_record(narrow)

    def _narrow_of(self, batches: Sequence[Any]) -> pa.RecordBatch:
        """The columns that are named, of all of them."""
        whole = [self._narrow(batch) for batch in batches]
        return whole[0] if len(whole) == 1 else kind_of(whole[0]).concat(whole)

    def _grouped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Do as `aggregated`, in a table where there is one, in a third of the time."""
        totals = self._totals_of(self._schema) if batch.schema == self._of else None
        if totals is not None and totals.add(self._of_each_record(batch)):
            return totals.batch()
        found = aggregated(batch, self._key, self._aggregates, self._operator)
        self._of, self._schema = batch.schema, found.schema
        return found

    def _narrow(self, batch: Any) -> pa.RecordBatch:
        """The columns that are named."""
        kind = kind_of(batch)
        if not kind.has_columns and self.columns:
            kind.column(batch, self.columns[0], self._operator)  # which says why it has none
        narrow: pa.RecordBatch = kind.to_arrow(batch)
        if self.columns:
            column_names(self.columns, kind.names(batch), self._operator, "aggregate")
            narrow = narrow.select(self.columns)
        return narrow

    def whole(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """The aggregates of all records that `parts` are of."""
        if self.combines:
            return combined(parts, self._key, self._aggregates, self._operator)
        whole = kind_of(parts[0]).concat(parts)
        return aggregated(whole, self._key, self._aggregates, self._operator)

    def wholes(self, parts: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """The aggregates of the records of each part, not of all together."""

        def whole(part: pa.RecordBatch, key: Any) -> pa.RecordBatch:
            if self.combines:
                return combined([part], key, self._aggregates, self._operator)
            return aggregated(part, key, self._aggregates, self._operator)

        if not self.combines and not listed(self._key):
            # Arrow has functions of a whole batch that it does not have of groups.
            return [whole(part, self._key) for part in parts]
        return aggregate_each(parts, self._key, whole)

    def totals(self, part: pa.RecordBatch) -> GroupTotals | None:
        """What adds up parts like this one as they come, if their types allow it.

        >>> counts = AggregatesByName("k", [("x", "count")], "an example")
        >>> part = counts.part([pa.RecordBatch.from_pydict({"k": [7, 9, 7], "x": [1, None, 3]})])
        >>> totals = counts.totals(part)
        >>> totals.add(part), totals.batch().to_pydict()
        (True, {'k': [7, 9], 'x_count': [2, 0]})
        """
        return self._totals_of(part.schema) if self.combines else None

    def _totals_of(self, schema: pa.Schema) -> GroupTotals | None:
        if len(listed(self._key)) != 1 or not has_table(schema.types[0]):
            return None
        functions = [function for _, function in again(self._aggregates)]
        if any(map(lambda *of: total_of(*of) is None, functions, schema.types[1:])):
            return None
        return GroupTotals(schema, functions)

    def _of_each_record(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """As `aggregated`, were all keys different."""
        columns = [batch.column(name) for name in listed(self._key)]
        for name, function in self._aggregates:
            values: Any = batch.column(name)
            columns.append(values.is_valid() if function == "count" else values)
        types = self._schema.types
        cast = [column.cast(kind) for column, kind in zip(columns, types, strict=True)]
        return pa.RecordBatch.from_arrays(cast, schema=self._schema)
