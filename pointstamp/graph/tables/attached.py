"""Records brought together with others by a number: `attached`, a join whose one side is unique.

    records --> by their number --+--> records with a column, or columns, more
    tables  --> by NUMBER --> kept'

Each worker keeps a part of the table, by hash of the number; a record goes where its number is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.convert import numbers
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash, in_memory
from pointstamp.errors import GraphError
from pointstamp.graph.tables.hashed_ids import NUMBER
from pointstamp.joins.join_operators import with_graph
from pointstamp.kernels.lists import DenseIds, Ints
from pointstamp.operators.stream import Stream

Attach = Callable[[Any, Any, Any], Any]
"""From records, the table's columns and positions in it, null where there is none, to records."""


class NumberedTable:
    """This worker's part of a table, in the order of its numbers."""

    def __init__(self, table: Any, id_name: str | None = None) -> None:
        order = pc.sort_indices(table.column(NUMBER))
        self.table = table.take(order).combine_chunks()
        in_order = numbers(self.table.column(NUMBER).combine_chunks())
        if id_name is not None:
            check_unique(in_order, self.table.column(id_name))
        self._places = PlacesOfNumbers(in_order)

    def positions(self, found: Any) -> Any:
        """Where the records of numbers are, an Arrow array; null for those that are not here."""
        at = self._places.of(numbers(found))
        missing = at < 0
        if found.null_count:
            missing |= found.is_null().to_numpy(zero_copy_only=False)
        return pa.array(at, mask=missing)


class PlacesOfNumbers:
    """Where numbers are among those that are in order: the first place of one that repeats.

    >>> PlacesOfNumbers(np.array([-4, 7, 7, 9])).of(np.array([9, 7, 8])).tolist()
    [3, 1, -1]
    """

    def __init__(self, in_order: Ints) -> None:
        is_first = np.ones(len(in_order), np.bool_)
        np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
        self._firsts = None if is_first.all() else np.flatnonzero(is_first)
        self._ids = DenseIds.of(in_order if self._firsts is None else in_order[self._firsts])

    def of(self, wanted: Ints) -> Ints:
        """The place of each, int64[n]; -1 of those that are not there."""
        found = self._ids.numbers_of(wanted).astype(np.int64)
        return found if self._firsts is None else np.where(found < 0, -1, self._firsts[found])


def check_unique(numbers: Any, ids: Any) -> None:
    """Refuse numbers in order of which two are alike: those of one id, or of two with one hash.

    numbers : int64[n] · ids : pyarrow column of n ids, for what is said
    """
    repeated = np.flatnonzero(numbers[1:] == numbers[:-1])
    if not len(repeated):
        return
    at = int(repeated[0])
    one, other = ids[at : at + 2].to_pylist()
    if one == other:
        raise GraphError(
            f"{len(repeated)} vertices have an id that another one has, such as {one!r}"
        )
    raise GraphError(
        f"the ids {one!r} and {other!r} have one hash of 64 bits: rename one of the two"
    )


def attached(
    records: Stream[Any],
    key: str,
    tables: Stream[Any],
    attach: Attach,
    name: str,
) -> Stream[Any]:
    """What `attach` makes of records, which go where the table has what their `key` names.

    tables : stream of `NumberedTable`, from `numbered_tables`
    """

    def tactic(table: NumberedTable | None, batch: Any) -> Iterator[Any]:
        if table is None:
            nothing = pa.nulls(batch.num_rows, pa.int64())
            yield attach(batch, None, nothing)
        else:
            yield attach(batch, table.table, table.positions(batch.column(key)))

    return with_graph(
        records, tables, Exchange(key), name, tactic, nothing=lambda index, peers: None
    )


def numbered_tables(records: Stream[Any], id_name: str | None = None) -> Stream[Any]:
    """The tables of records with a column `NUMBER`, one at each worker that has any.

    id_name : the column of ids, where numbers must differ; refused if they do not
    """

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        stash: Stash[list[Any]] = Stash(info)

        def logic(input: Input, output: Output) -> None:
            stash.take(input)
            for cap, batches in stash:
                table = pa.Table.from_batches(in_memory(batches))
                output.session(cap).give(NumberedTable(table, id_name))

        return logic

    return records.unary_frontier(Exchange(NUMBER), "Numbered table", build)
