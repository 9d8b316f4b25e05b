"""Diagnostics of a worker: what holds its dataflows back, and what it is doing.

Reads a worker from outside, at any moment, and changes nothing in it. The worker may
be in the middle of a step, or go on meanwhile in its own thread: then what is read may
not fit together, and is read again.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp.dataflow.operator import Operator
from pointstamp.dataflow.outstanding import local_outstanding
from pointstamp.progress.explanation import Holder, HolderKind, Layout, causes, explain, layouts
from pointstamp.progress.subgraph import Subgraph

if TYPE_CHECKING:
    from pointstamp.runtime.worker import Worker

Result = TypeVar("Result")

N_READINGS = 20
"""How often a worker that goes on meanwhile is read, before that is given up."""

N_HOLDERS = 20
"""How many holders of one time are written down."""


def holders(worker: Worker, scope: int, node: int, time: Any) -> list[Holder]:
    """What could still produce `time` (None: the earliest ones) at input 0 of an operator."""
    for dataflow in worker._dataflows.values():
        if scope in dataflow.scopes:
            scopes = _layouts(dataflow)
            subgraph, own = worker._subgraphs[scope], local_outstanding(scopes)
            at = _place(scopes, subgraph, node)
            found = _unbuilt(worker, dataflow)
            for each in subgraph.frontier(node, 0) if time is None else [time]:
                found += explain(scopes, own, at, each, worker.index, worker.peers)
            if found or time is None:
                return found
            return [_not_yet_seen(worker, scopes[at[0]], node, time)]
    return []


def holders_at(worker: Worker, root: int, nodes: list[int]) -> list[Holder]:
    """What could still produce the earliest times at an operator, by its place in each scope.

    Of one without an input: what keeps its dataflow from its end.
    """
    for dataflow in list(worker._dataflows.values()):
        if not dataflow.scopes or dataflow.scopes[0] != root:
            continue
        scopes = _layouts(dataflow)
        *around, node = nodes or [0]
        index = next((i for i, each in enumerate(scopes) if each.address == tuple(around)), None)
        own, found = local_outstanding(scopes), _unbuilt(worker, dataflow)
        topology = None if index is None else scopes[index].topology
        if index is None or topology is None or not node or not topology.nodes[node].inputs:
            return found + causes(scopes, own, worker.index, worker.peers)
        for port in range(topology.nodes[node].inputs):
            at = index, topology.target(node, port)
            for time in scopes[index].subgraph.frontier(node, port):
                found += explain(scopes, own, at, time, worker.index, worker.peers)
        return list(dict.fromkeys(found))
    return []


def all_causes(worker: Worker) -> list[Holder]:
    """What keeps the dataflows of a worker from their ends."""
    found: list[Holder] = []
    for dataflow in list(worker._dataflows.values()):
        scopes = _layouts(dataflow)
        found += _unbuilt(worker, dataflow)
        found += causes(scopes, local_outstanding(scopes), worker.index, worker.peers)
    return found


def is_stalled(worker: Worker) -> bool:
    """Whether what the worker waits for will never come, by all that it can know.

    So it is if the program waits, or has closed all of its inputs, and

    - an operator of this worker keeps a capability, and nothing that is outstanding could
      make it let go, or
    - only this worker's inputs, or records that its operators leave where they are, hold back
      what the program waits for, or
    - a peer has not built a dataflow, or
    - all dataflows are complete or dropped, and the program waits for something else.

    A thread, a timer, or something begun outside may change that, so where there is one the
    answer is no. What a peer holds back is for the peer to report.
    """
    environment = worker.environment
    is_excused = environment.n_outside or environment.is_called or worker.timers.waiting
    if is_excused or any(not each.closers.is_empty for each in list(worker._dataflows.values())):
        return False
    if not worker._dataflows:
        return worker.is_waiting
    if not worker.is_waiting and any(not handle.is_closed for handle in environment.inputs):
        return False
    found = _steady(lambda: all_causes(worker), lambda failed: [])
    kinds = {holder.what for holder in found if holder.is_here}
    if HolderKind.CAPABILITY in kinds or any(h.what is HolderKind.UNBUILT for h in found):
        return True
    own = HolderKind.INPUT, HolderKind.RECORDS
    return bool(found) and all(h.is_here and h.what in own for h in found)


def account(worker: Worker, frame: FrameType | None) -> str:
    """What a worker waits for, in several lines; `frame` is where its thread is."""
    lines = [f"worker {worker.index} of {worker.peers} {_doing(worker)}"]
    lines += _steady(
        lambda: list(_dataflow_lines(worker)),
        lambda failed: [f"  its dataflows cannot be read, as it is at work on them: {failed!r}"],
    )
    if frame is not None:
        lines.append("  it is at (most recent call last):")
        lines += ["  " + line for line in "".join(traceback.format_stack(frame)).splitlines()]
    return "\n".join(lines)


def frame_of(thread: int) -> FrameType | None:
    """Where a thread of this process is."""
    return sys._current_frames().get(thread)


def _doing(worker: Worker) -> str:
    if worker.is_parked:
        return "waits for something to do"
    if not worker._is_stepping:
        return "is in the program, between two steps"
    for operator in _operators(worker):
        if operator.activation.is_at_work:
            times = [input_.last_time for input_ in operator._inputs]
            at = next((f", at time {time}" for time in times if time is not None), "")
            return f"is in operator {operator.name!r}{at}"
    return "is in a step"


def _operators(worker: Worker) -> Iterator[Operator]:
    for dataflow in list(worker._dataflows.values()):
        for number in dataflow.scopes:
            subgraph = worker._subgraphs[number]
            yield from (child for child in subgraph.children if isinstance(child, Operator))


def _dataflow_lines(worker: Worker) -> Iterator[str]:
    if not worker._dataflows:
        yield "  all dataflows that it has built are complete, or were dropped"
    for dataflow in list(worker._dataflows.values()):
        scopes = _layouts(dataflow)
        own = local_outstanding(scopes)
        place = worker.index, worker.peers
        yield f"  dataflow {dataflow.name!r}"
        yield from (f"    {holder}" for holder in _unbuilt(worker, dataflow))
        probes = list(_probes(scopes))
        for label, at, times in probes:
            if not times:
                yield f"    nothing more comes at {label}"
            for time in times:
                yield f"    {time} may still come at {label}:"
                yield from _written(explain(scopes, own, at, time, *place))
        if not any(times for _, _, times in probes):
            yield "    it is not complete:"
            yield from _written(causes(scopes, own, *place))


def _written(found: list[Holder]) -> Iterator[str]:
    yield from (f"      {holder}" for holder in islice(found, N_HOLDERS))
    if len(found) > N_HOLDERS:
        yield f"      and {len(found) - N_HOLDERS} more"
    if not found:
        yield "      nothing that this worker knows of"


def _probes(scopes: list[Layout]) -> Iterator[tuple[str, tuple[int, int], list[Any]]]:
    """Every probe: in words, its place, and the earliest times that may still come there."""
    for index, scope in enumerate(scopes):
        for node, child in enumerate(scope.subgraph.children, start=1):
            if isinstance(child, Operator) and child.role == "probe":
                at = (index, scope.topology.target(node, 0))
                yield scope.label(node), at, list(scope.subgraph.frontier(node, 0))


def _layouts(dataflow: Any) -> list[Layout]:
    return layouts(dataflow.root)


def _place(scopes: list[Layout], subgraph: Subgraph, node: int) -> tuple[int, int]:
    index = next(i for i, scope in enumerate(scopes) if scope.subgraph is subgraph)
    return index, scopes[index].topology.target(node, 0)


def _not_yet_seen(worker: Worker, scope: Layout, node: int, time: Any) -> Holder:
    """Nothing, but the operator that is asked about has not been visited since."""
    label, address = scope.label(node), (*scope.address, node)
    index, peers = worker.index, worker.peers
    return Holder(
        HolderKind.NOT_YET_SEEN, index, peers, True, label, address, 0, time, 1, time, (label,)
    )


def _unbuilt(worker: Worker, dataflow: Any) -> list[Holder]:
    """The peers that have not built a dataflow yet, so that it cannot start."""
    peers = worker.peers
    return [
        Holder(
            HolderKind.UNBUILT, peer, peers, False, repr(dataflow.name), (), 0, None, 1, None, ()
        )
        for peer in range(peers)
        if peer != worker.index and peer not in dataflow.agreed
    ]


def _steady(
    read: Callable[[], list[Result]], otherwise: Callable[[Exception], list[Result]]
) -> list[Result]:
    """What `read` gives, if need be after some attempts: the worker may go on meanwhile."""
    for _ in range(N_READINGS):
        try:
            return read()
        except (RuntimeError, ValueError, KeyError, AttributeError, IndexError) as error:
            # A dictionary changed its size while it was read, for one.
            failed: Exception = error
    return otherwise(failed)
