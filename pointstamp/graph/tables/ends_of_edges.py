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
from pointstamp.dataflow.stash import Stash, in_memory
from pointstamp.graph.tables.hashed_ids import NUMBER, hashed_ids
from pointstamp.joins.join_operators import SOURCE, TARGET
from pointstamp.kernels.lists import Bools, DenseIds, Ints, distinct
from pointstamp.operators.stream import Stream

ID = "id"

_GROWTH = 8
"""What has come since numbers were put in a table is so many times less than what is there."""


def ends_of(edges: Stream[Any]) -> Stream[Any]:
    """The ends of edges as records with a column `id`, each once, of each time.

    edges : stream of record batches, with `src` and `dst` of one type without floats in it
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
        stash: Stash[list[Any]] = Stash(info)

        def logic(input: Input, output: Output) -> None:
            stash.take(input)
            for cap, batches in stash:
                records = one_batch(in_memory(batches))
                output.session(cap).give_batch(each_once(records).select([ID]))

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
        columns = [edges.column(name) for name in (SOURCE, TARGET)]
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
        self._since.append(new)
        self._n_since += new.num_rows
        if _GROWTH * self._n_since > len(self._table.ids):
            before = [] if self._ids is None else [_records(self._ids, self._table.ids)]
            records = one_batch([*before, *self._since])
            of_all = numbers(records.column(NUMBER))
            self._table = DenseIds.of(distinct(of_all))
            self._ids = records.column(ID).take(arrow_array(_firsts(self._table, of_all)))
            self._since, self._n_since = [], 0


def each_once(records: Any) -> Any:
    """Records of ids and numbers, each once; of two ids that have one number both.

    These are refused where vertices are: here none is to be lost.
    """
    found = numbers(records.column(NUMBER))
    table = DenseIds.of(distinct(found))
    first = _firsts(table, found)
    at = table.numbers_of(found).astype(np.int64)
    ids = records.column(ID)
    others = np.flatnonzero(~_are_same(ids, ids.take(arrow_array(first)), at))
    return records.take(arrow_array(np.concatenate([first, others])))


def _firsts(table: DenseIds, found: Ints) -> Ints:
    """Where each number of the table is first, int64[k]."""
    first = np.empty(len(table.ids), np.int64)
    ranks = table.numbers_of(found)
    first[ranks[::-1]] = np.arange(len(found))[::-1]  # of those of one place the last is kept
    return first


def _are_same(ids: Any, others: Any, at: Ints) -> Bools:
    """Whether each id is that of the same number, `others[at]`; integers are their own numbers."""
    if pa.types.is_integer(ids.type):
        return np.ones(len(ids), np.bool_)
    same = pc.equal(ids, others.take(arrow_array(at)))
    return numbers(same.cast(pa.uint8())).view(np.bool_)


def _records(ids: Any, found: Ints) -> Any:
    return pa.RecordBatch.from_arrays([ids, arrow_array(found)], names=[ID, NUMBER])
