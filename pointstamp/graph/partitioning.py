"""From streams of edges to the workers' partitions of a graph.

    edges --> pairs by head --> gather --+------------------> partition --> [GraphPartition]
    vertices ------------------>         +-- ghost_requests, by owner -->

Edges are `Arrays` with the columns `src` and `dst`, and `weight` where they are
weighted. The graph of a time is the edges of that time, as for motifs.

Vertices without edges come on a stream of their own, if they are to be known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pointstamp.containers import Arrays
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange, Pipeline
from pointstamp.dataflow.stash import Stash, in_memory
from pointstamp.graph.edges import checked_stream, joined, without_loops
from pointstamp.graph.edges import directed as edge_stream
from pointstamp.graph.graph_partition import (
    AT,
    OF,
    WEIGHT,
    Direction,
    Form,
    GhostRequests,
    GraphPartition,
    LocalEdges,
    ghost_requests,
    local_edges_of,
    partition_of,
)
from pointstamp.graph.supersteps import TO_WORKER, VertexProgram, results, run_supersteps
from pointstamp.graph.vertex_columns import VERTEX, vertex_column, weighted_columns
from pointstamp.joins.join_operators import SOURCE, TARGET
from pointstamp.operators.split_merge import union
from pointstamp.operators.stream import Stream


def solve(
    partitions: Stream[Any],
    start: Callable[[GraphPartition], VertexProgram],
    result: Callable[[Any], Any],
    name: str,
) -> Stream[Any]:
    """Run the program that `start` makes of each partition, and give what `result` makes of it."""
    programs = partitions.map_batches(lambda batch: [start(partition) for partition in batch])
    return results(run_supersteps(programs, name), result)


def partitions(
    edges: Stream[Any],
    vertices: Stream[Any] | None,
    directions: Sequence[Direction],
    form: Form,
    *,
    loops: bool = False,
    weighted: bool = False,
    signed: bool = False,
) -> Stream[Any]:
    """The `GraphPartition` of each time, at each worker that has one: rows, one a time.

    Parameters
    ----------
    edges : Stream
        As users give it.
    vertices : Stream, optional
        Vertices that may have no edges.
    directions : sequence of "in", "out", "both"
        Of the links wanted.
    form : "pull" or "push"
    loops : bool
        Whether edges from a vertex to itself stay.
    weighted : bool
        Whether the third column, or `weight`, is wanted too.
    signed : bool
        Whether weights may be less than 0.
    """
    edges = checked_stream(edges, "edges")
    if weighted:
        arrays = edges.map_batches(partial(weighted_columns, signed=signed))
    else:
        arrays = edge_stream(edges)
    if vertices is not None:
        vertices = checked_stream(vertices, "vertices").map_batches(vertex_column)
    if not loops:
        # A vertex that has a loop and no other edge is one all the same.
        with_loops = arrays.map_batches(_loop_vertices)
        vertices = with_loops if vertices is None else vertices.concat(with_loops)
        arrays = arrays.map_batches(without_loops)
    pairs = [_pairs(arrays, direction) for direction in directions]
    local_streams, wanted = _gather(pairs, vertices, form)
    return _partition(local_streams, wanted, form, len(directions))


def _loop_vertices(edges: Arrays) -> Arrays | None:
    loops = edges[SOURCE] == edges[TARGET]
    return Arrays({VERTEX: edges[SOURCE][loops]}) if loops.any() else None


_INTO, _OUT_OF = (TARGET, SOURCE), (SOURCE, TARGET)
_ENDS: dict[Direction, list[tuple[str, str]]] = {
    "in": [_INTO],
    "out": [_OUT_OF],
    "both": [_INTO, _OUT_OF],
}
"""By direction, which ends of an edge are head and tail."""


def _pairs(edges: Stream[Arrays], direction: Direction) -> Stream[Arrays]:
    """The edges, each at its head, or at both ends: the same columns under other names."""
    return union([edges.map_batches(partial(_named, *ends)) for ends in _ENDS[direction]])


def _named(head: str, tail: str, edges: Arrays) -> Arrays:
    weights = {WEIGHT: edges[WEIGHT]} if WEIGHT in edges else {}
    return Arrays({AT: edges[head], OF: edges[tail], **weights})


# Two steps: what there is, and which workers want it.


def _gather(
    pairs: list[Stream[Arrays]], vertices: Stream[Arrays] | None, form: Form
) -> tuple[Stream[Any], Stream[Arrays]]:
    builder = pairs[0].scope.operator("Gather edges")
    for stream in pairs:
        builder.new_input(stream, Exchange(AT))
    if vertices is not None:
        builder.new_input(vertices, Exchange(VERTEX))
    local_streams = builder.new_output(initial=False)
    wanted = builder.new_output(initial=False)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        stash: Stash[Any] = Stash(info, n_outputs=2)

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            stash.take(*inputs)
            for (of_edges, of_requests), value in stash.by_output():
                batches = value if len(inputs) > 1 else [value]
                found = _local_edges(batches, form, len(pairs), info.peers)
                outputs[0].session(of_edges).give(found)
                outputs[1].session(of_requests).give_batch(ghost_requests(found, info.index))

        return logic

    builder.build(make_logic)
    return local_streams, wanted


def _local_edges(batches: list[list[Arrays]], form: Form, n_links: int, peers: int) -> LocalEdges:
    vertices = [batch[VERTEX] for of_input in batches[n_links:] for batch in of_input]
    edges = [joined(in_memory(of_input)) for of_input in batches[:n_links]]
    batches.clear()
    return local_edges_of(form, edges, vertices, peers)


def _partition(
    local_streams: Stream[Any], wanted: Stream[Arrays], form: Form, n_links: int
) -> Stream[Any]:
    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        stash: Stash[list[list[Any]]] = Stash(info)

        def logic(local_streams: Input, wanted: Input, output: Output) -> None:
            stash.take(local_streams, wanted)
            for capability, (local, requests) in stash:
                known = local[0][0] if local else _nothing(form, n_links, info.peers)
                partition = partition_of(known, info.index, info.peers, GhostRequests.of(requests))
                output.session(capability).give(partition)

        return logic

    return local_streams.binary_frontier(wanted, Pipeline(), TO_WORKER, "Partition", build)


def _nothing(form: Form, n_links: int, peers: int) -> LocalEdges:
    """The edges of a worker that others' edges lead from, and none lead to."""
    return local_edges_of(form, [[] for _ in range(n_links)], [], peers)
