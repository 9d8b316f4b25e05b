"""The vertices of a graph that is given by its edges alone: the ends of these, each once.

    edges --> ids that are new here --> by their number --> each once

Edges of a vertex are many, and most come where others of it have come before: what a worker has
seen it does not send again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.convert import arrow_array, numbers, one_batch
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange, Pipeline
from pointstamp.dataflow.stash import Stash
from pointstamp.graph.tables.hashed_ids import NUMBER, hashed_ids
from pointstamp.graph.tables.vertex_ids import cast_ids, one_type
from pointstamp.joins.join_operators import SOURCE, TARGET
from pointstamp.kernels.lists import Bools, DenseIds, Ints, distinct
from pointstamp.operators.stream import Stream

ID = "id"

_GROWTH = 4
"""What has come since numbers were put in a table is so many times less than what is there."""

_MOST = 1 << 28
"""Of so many bytes of ids a worker has a table at most; all others it sends, seen or not."""

_COPIES = 4
"""Ids that have come are put together where they are so many times those that are known."""

_FEW = 1 << 16
"""So many more ids wait for it at least."""


def ends_of(edges: Stream[Any]) -> Stream[Any]:
    """The ends of edges as records with a column `id`, each once, of each time.

    edges : stream of record batches, with `src` and `dst` of one type without floats in it, or of
        integers, of which ids have the type that has the values of both
    """

    def new_here(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        info.keeps_nothing()
        seen: Stash[SeenIds] = Stash(info, SeenIds)

        def logic(input: Input, output: Output) -> None:
            for time, batch in input:
                found = seen.at(time).new_ends(batch)
                if found.num_rows:
                    output.session(time).give_batch(found)
            for _ in seen:
                pass  # what was seen at a complete time is forgotten

        return logic

    def once(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        info.keeps_nothing()
        stash: Stash[IdsOnce] = Stash(info, IdsOnce)

        def logic(input: Input, output: Output) -> None:
            for time, batch in input:
                stash.at(time).add(batch)
            for cap, ids in stash:
                output.session(cap).give_batch(ids.all().select([ID]))

        return logic

    found = edges.unary_frontier(Pipeline(), "Ends of edges", new_here)
    return found.unary_frontier(Exchange(NUMBER), "Each vertex once", once)


class SeenIds:
    """The ids that a worker has seen, but for a few of the last batches.

    >>> seen = SeenIds()
    >>> edges = pa.RecordBatch.from_pydict({"src": [5, 5], "dst": [6, 5]})
    >>> seen.new_ends(edges)["id"].to_pylist(), seen.new_ends(edges)["id"].to_pylist()
    ([5, 6], [])
    """

    def __init__(self) -> None:
        self._table = DenseIds.of(np.empty(0, np.int64))
        self._ids: Any = None  # in the order of the table
        self._since: list[Any] = []
        self._n_since = 0

    def new_ends(self, edges: Any) -> Any:
        """Records of ids and numbers of the ends that are new, each once; few that are not new."""
        columns = _of_one_type([edges.column(name) for name in (SOURCE, TARGET)])
        found = np.concatenate(
            [
                hashed_ids(column, f"{name!r} of the edges")
                for name, column in zip((SOURCE, TARGET), columns, strict=True)
            ]
        )
        ends = _records(pa.concat_arrays(columns), found)
        at = self._table.numbers_of(found).astype(np.int64)
        seen = np.flatnonzero(at >= 0)
        if len(seen):
            same = _are_same(ends.column(ID).take(arrow_array(seen)), self._ids, at[seen])
            at[seen[~same]] = -1
        new = each_once(ends.take(arrow_array(np.flatnonzero(at < 0))))
        self._remember(new)
        return new

    def _remember(self, new: Any) -> None:
        if self._ids is not None and self._ids.nbytes >= _MOST:
            return
        self._since.append(new)
        self._n_since += new.num_rows
        if _GROWTH * self._n_since > len(self._table.ids):
            before = [] if self._ids is None else [_records(self._ids, self._table.ids)]
            records = one_batch([*before, *self._since])
            self._table, first = _firsts(numbers(records.column(NUMBER)))
            self._ids = records.column(ID).take(arrow_array(first))
            self._since, self._n_since = [], 0


class IdsOnce:
    """Records of ids and numbers that have come from all workers, of which each is kept once.

    All workers have most of the vertices of a graph, so that copies of each come from all of them.

    >>> ids = IdsOnce()
    >>> for _ in range(3):
    ...     ids.add(pa.RecordBatch.from_pydict({ID: ["a"], NUMBER: [5]}))
    >>> ids.all()[ID].to_pylist()
    ['a']
    """

    def __init__(self) -> None:
        self._records: list[Any] = []
        self._n_records = self._n_known = 0

    def add(self, records: Any) -> None:
        """Add some."""
        self._records.append(records)
        self._n_records += records.num_rows
        if self._n_records > _COPIES * self._n_known + _FEW:
            self._put_together()

    def all(self) -> Any:
        """Each once; at least one was added."""
        self._put_together()
        return self._records[0]

    def _put_together(self) -> None:
        self._records = [each_once(one_batch(self._records))]
        self._n_records = self._n_known = self._records[0].num_rows


def each_once(records: Any) -> Any:
    """Records of ids and numbers, each once; of two ids that have one number both.

    These are refused where vertices are: here none is to be lost.
    """
    found = numbers(records.column(NUMBER))
    table, first = _firsts(found)
    at = table.numbers_of(found).astype(np.int64)
    ids = records.column(ID)
    others = np.flatnonzero(~_are_same(ids, ids.take(arrow_array(first)), at))
    return records.take(arrow_array(np.concatenate([first, others])))


def _firsts(found: Ints) -> tuple[DenseIds, Ints]:
    """The table of some numbers, and where each of it is first, int64[k]."""
    table = DenseIds.of(distinct(found))
    first = np.empty(len(table.ids), np.int64)
    ranks = table.numbers_of(found)
    first[ranks[::-1]] = np.arange(len(found))[::-1]  # of those of one place the last is kept
    return table, first


def _are_same(ids: Any, others: Any, at: Ints) -> Bools:
    """Whether each id is that of the same number, `others[at]`; integers are their own numbers."""
    if pa.types.is_integer(ids.type):
        return np.ones(len(ids), np.bool_)
    same = pc.equal(ids, others.take(arrow_array(at)))
    return numbers(same.cast(pa.uint8())).view(np.bool_)


def _of_one_type(columns: list[Any]) -> list[Any]:
    """Columns of integers of two types, both of one that has the values of both; others as are."""
    kinds = [column.type for column in columns]
    if kinds[0] == kinds[1] or not all(map(pa.types.is_integer, kinds)):
        return columns
    kind = one_type(kinds)
    return [
        cast_ids(column, kind, f"{name!r} of the edges")
        for name, column in zip((SOURCE, TARGET), columns, strict=True)
    ]


def _records(ids: Any, found: Ints) -> Any:
    return pa.RecordBatch.from_arrays([ids, arrow_array(found)], names=[ID, NUMBER])
