"""A vertex program on workers that each have a part of the graph: all its rounds in one dataflow.

    vertices --> by owner of the number ------+--> parts --> rounds --> the vertices, as they end
    edges    --> by owner of their source ----+

A worker owns the vertices of its numbers, and the edges from them. Of the targets that others own
it knows what expressions name of them, `dst.rank`, which their owners send it each round. So a
round has two steps of all workers: what is known of targets, and messages.

    0    which targets are wanted         to their owners
    odd  what is known of them            from their owners, once messages have been received
    even messages, and how many           to the owners of the vertices

In each step each worker sends every worker something, be it nothing, so all know whether any
message was sent. Records of any type travel as they are in Arrow's stream format, because all that
goes through an exchange has the same columns.

Source: G. Malewicz and others, "Pregel: a system for large-scale graph processing", 2010.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.containers.conform import conform
from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import in_memory
from pointstamp.graph.supersteps import TO, results, run_supersteps
from pointstamp.graph.tables.attached import NumberedTable
from pointstamp.graph.tables.frame_columns import with_column
from pointstamp.graph.tables.hashed_ids import NUMBER, hashed_ids, with_numbers
from pointstamp.graph.tables.messages import (
    MESSAGE,
    Function,
    Ints,
    PregelProgram,
    Triplets,
    as_begun,
    concatenated,
)
from pointstamp.graph.tables.sql_text import names_in
from pointstamp.joins.join_operators import SOURCE, TARGET
from pointstamp.kernels.hashing import hash_ints
from pointstamp.kernels.lists import numbers_of
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream

ID = "id"
_ENDS = ("_pointstamp_source", "_pointstamp_target")
_OWNER = "_pointstamp_owner"
_FOUND = "_pointstamp_found"


@dataclass(frozen=True, eq=False)
class ProgramFlow:
    """The dataflow of a vertex program: from records of vertices and edges to the vertices.

    Attributes
    ----------
    program : PregelProgram
    vertices, edges, schema : pyarrow.Schema
        Of what comes in, and of the vertices with the columns of the program.
    """

    program: PregelProgram
    vertices: Any
    edges: Any
    schema: Any

    def __call__(self, scope: Scope, vertices: Stream[Any], edges: Stream[Any]) -> Stream[Any]:
        """Lay it out; gives the vertices with the columns of the program."""
        peers = scope.peers

        def owned(batch: Any) -> Any:
            batch = with_numbers(batch, ID)
            return batch.append_column(_OWNER, arrow_array(owners(batch.column(NUMBER), peers)))

        def from_owned(batch: Any) -> Any:
            for name, end in zip((SOURCE, TARGET), _ENDS, strict=True):
                found = hashed_ids(batch.column(name), f"{name!r} of the edges")
                batch = batch.append_column(end, arrow_array(found))
            return batch.append_column(_OWNER, arrow_array(owners(batch.column(_ENDS[0]), peers)))

        parts = self._parts(vertices.map_batches(owned), edges.map_batches(from_owned))
        ended = results(run_supersteps(parts, "Pregel"), _ProgramPart.result)
        return ended.map_batches(lambda batch: conform(batch, self.schema))

    def _parts(self, vertices: Stream[Any], edges: Stream[Any]) -> Stream[Any]:
        """The part of each worker, be it empty, when all its records are there."""
        index, peers = vertices.scope.index, vertices.scope.peers
        of_vertices = self.vertices.append(pa.field(NUMBER, pa.int64()))
        of_edges = self.edges.append(pa.field(_ENDS[0], pa.int64()))
        of_edges = of_edges.append(pa.field(_ENDS[1], pa.int64()))

        def build(
            capability: Capability, info: OperatorInfo
        ) -> Callable[[Input, Input, Output], None]:
            held = [capability]
            arrived: tuple[list[Any], list[Any]] = ([], [])

            def logic(first: Input, second: Input, output: Output) -> None:
                for input, batches in zip((first, second), arrived, strict=True):
                    for _, batch in input:
                        batches.append(batch)
                if held and first.frontier.is_empty() and second.frontier.is_empty():
                    owned = _table(in_memory(arrived[0]), of_vertices)
                    from_owned = _table(in_memory(arrived[1]), of_edges)
                    with held.pop() as cap:
                        part = _ProgramPart(
                            self.program, owned, from_owned, self.schema, index, peers
                        )
                        output.session(cap).give(part)

            return logic

        pact = Exchange(to=_OWNER)
        return vertices.binary_frontier(edges, pact, pact, "Parts of a program", build)


def owners(numbers_of: Any, peers: int) -> Ints:
    """Which worker has each of some numbers, int64[n]: a hash of it, as numbers may be ids."""
    return (hash_ints(numbers(numbers_of)) % np.uint64(peers)).astype(np.int64)


def _table(batches: list[Any], schema: Any) -> Any:
    return pa.Table.from_batches(
        [conform(b.drop_columns([_OWNER]), schema) for b in batches], schema
    )


class _ProgramPart:
    """One worker's vertices and edges, as the program goes on."""

    def __init__(
        self,
        program: PregelProgram,
        vertices: Any,
        edges: Any,
        schema: Any,
        index: int,
        peers: int,
    ) -> None:
        self._program = program
        self._index, self._peers = index, peers
        self._owned = NumberedTable(vertices, ID)
        state = program.begun(self._owned.table.drop_columns([NUMBER]))
        for name in program.columns:  # a function may give another type where it has no record
            begun = as_begun(name, state.column(name), schema.field(name).type)
            state = with_column(state, name, begun)
        self._state = state
        source = self._owned.positions(edges.column(_ENDS[0]).combine_chunks())
        # An edge from what is no vertex is none, as in a join.
        kept = source.is_valid()
        self._edges = edges.filter(kept)
        self._source = numbers(source.filter(kept)).astype(np.int64)
        self._targets = numbers(self._edges.column(_ENDS[1]).combine_chunks())
        self._edges = self._edges.drop_columns(list(_ENDS))
        self._ghosts: list[Ints] = []
        self._place = np.empty(0, np.int64)
        self._wanted: list[Any] = []
        self._rounds = 0
        self._of_targets = named_of(program, "dst", state.schema.names)

    def step(self, round: int, messages: list[Any]) -> tuple[Iterable[Any], bool]:
        """See the module."""
        if round == 0:
            return (self._requests(), True) if self._program.max_iter else ([], False)
        received = _received(messages)
        if round == 1:
            self._wanted = [
                self._owned.positions(one.column(NUMBER).combine_chunks()) for one, _ in received
            ]
            return self._known(), True
        if round % 2 == 0:
            return self._messages([one for one, _ in received], is_first=round == 2), True
        if self._program.early_stopping and not sum(count for _, count in received):
            return [], False
        self._update([one for one, _ in received])
        self._rounds += 1
        return ([], False) if self._rounds == self._program.max_iter else (self._known(), True)

    def _requests(self) -> list[Any]:
        """The targets that each worker owns; the places of all, in the order of these."""
        distinct = np.unique(self._targets)
        of = owners(arrow_array(distinct), self._peers)
        self._ghosts = [distinct[of == worker] for worker in range(self._peers)]
        order = np.argsort(np.concatenate(self._ghosts))
        self._place = order[numbers_of(distinct, self._targets)]
        return self._sent([pa.table({NUMBER: ghosts}) for ghosts in self._ghosts])

    def _known(self) -> list[Any]:
        """What is known of the targets that each worker has asked for."""
        named = self._state.select(self._of_targets)
        named = named.append_column(_FOUND, pa.array(np.ones(named.num_rows, np.bool_)))
        return self._sent([named.take(wanted) for wanted in self._wanted])

    def _messages(self, known: list[Any], *, is_first: bool) -> list[Any]:
        targets = pa.concat_tables(known).combine_chunks()
        if is_first:  # an edge to what is no vertex is none, either
            found = targets.column(_FOUND).take(arrow_array(self._place)).is_valid()
            kept = found.to_numpy(zero_copy_only=False) if len(self._place) else np.empty(0, bool)
            self._edges = self._edges.filter(pa.array(kept, pa.bool_()))
            self._source, self._place = self._source[kept], self._place[kept]
        n = self._state.num_rows
        both = pa.concat_tables(
            [self._state, targets.drop_columns([_FOUND])], promote_options="default"
        )
        triplets = Triplets(both.combine_chunks(), self._edges, (self._source, n + self._place))
        to, said = triplets.sent(self._program.to_source, self._program.to_target)
        own = numbers(self._owned.table.column(NUMBER).combine_chunks())
        of = np.concatenate([own, *self._ghosts])[to]
        peers = [np.full(len(ghosts), w) for w, ghosts in enumerate(self._ghosts)]
        worker = np.concatenate([np.full(n, self._index), *peers])[to]
        pieces = []
        for one in range(self._peers):
            chosen = np.flatnonzero(worker == one)
            pieces.append(pa.table({NUMBER: of[chosen], MESSAGE: said.take(arrow_array(chosen))}))
        return self._sent(pieces, len(to))

    def _update(self, received: list[Any]) -> None:
        to = pa.concat_arrays([one.column(NUMBER).combine_chunks() for one in received])
        said = concatenated([_array(one.column(MESSAGE)) for one in received], "messages")
        rows = numbers(self._owned.positions(to)).astype(np.int64)
        self._state = self._program.updated(self._state, rows, said)

    def _sent(self, tables: list[Any], n_messages: int = 0) -> list[Any]:
        """A table for each worker, and how many messages there are from here to all of them."""
        return [
            pa.RecordBatch.from_arrays(
                [
                    pa.array([worker], pa.int64()),
                    pa.array([self._index], pa.int64()),
                    pa.array([n_messages], pa.int64()),
                    pa.array([_as_bytes(table)], pa.large_binary()),
                ],
                names=[TO, "sender", "n_messages", "records"],
            )
            for worker, table in enumerate(tables)
        ]

    def result(self) -> Any:
        """The vertices, as they are."""
        table = self._state.combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)


def _as_bytes(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _received(messages: list[Any]) -> list[tuple[Any, int]]:
    """The records that each worker sent, in the order of the workers, and its messages to all."""
    rows = [row for batch in messages for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["sender"])
    return [(pa.ipc.open_stream(row["records"]).read_all(), row["n_messages"]) for row in rows]


def _array(column: Any) -> Any:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def named_of(program: PregelProgram, element: str, names: Sequence[str]) -> list[str]:
    """The columns that what is sent names of an element; a function names all that there are."""
    found: dict[str, None] = {}
    for tree in (program.to_source, program.to_target):
        if isinstance(tree, Function):
            return list(names)
        for name in [] if tree is None else names_in(tree):
            if name.parts[0] == element and len(name.parts) > 1:
                found[name.parts[1]] = None
    return list(found)
