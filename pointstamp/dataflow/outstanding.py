"""What this worker itself holds of a dataflow: capabilities, and records that wait.

Progress counts for all workers together, and a sum does not say whose its parts are.
To say what holds a time back one needs to know what is held here. Nothing keeps
a list of that, since it would cost at each turn of a loop: it is found, when one
asks, by going through all live objects and through the queues.

May be called at any moment, also in the middle of a step (by the handler of a signal,
or from another thread). What an operator took and has not reported counts as waiting.

Cost: in proportion to the objects that this process has, about 0.1 s for a million.
"""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from typing import Any

from pointstamp.dataflow.capability import Capability, CapabilityCounts
from pointstamp.dataflow.operator import Operator
from pointstamp.progress.explanation import Layout, Own


def local_outstanding(scopes: list[Layout]) -> Own:
    """What this worker knows of itself, for `explanation.explain`."""
    own = Own()
    live = _live_capabilities()
    for index, scope in enumerate(scopes):
        _note_entered(own, index, scopes)
        for node, operator in enumerate(scope.subgraph.children, start=1):
            if isinstance(operator, Operator):
                _note_operator(own, index, scope, node, operator, live)
    return own


def _live_capabilities() -> dict[int, Counter[Any]]:
    """The times of all live capabilities of this process, by the identity of their counts."""
    found: dict[int, Counter[Any]] = defaultdict(Counter)
    for thing in gc.get_objects():
        if type(thing) is Capability and thing.live:
            found[id(thing._counts)][thing.time] += 1
    return found


def _note_operator(
    own: Own,
    index: int,
    scope: Layout,
    node: int,
    operator: Operator,
    live: dict[int, Counter[Any]],
) -> None:
    topology = scope.topology
    for port, input_ in enumerate(operator._inputs):
        place = (index, topology.target(node, port))
        for time, n_records in input_.waiting():
            own.held[place][time] += n_records
        for time, n_records in _items(operator.consumed[port]):
            own.held[place][time] += n_records
    counts: CapabilityCounts
    for port, counts in enumerate(operator.capabilities):
        source = topology.source(node, port)
        place = (index, source)
        own.held[place].update(live.get(id(counts), {}))
        for time, change in _items(counts.changes):
            own.pending[place][time] += change
        for time, n_records in _items(operator.produced[port]):
            _note_sent(own, index, scope, source, time, n_records)
        if operator.role == "input":
            own.inputs.add(place)


def _note_entered(own: Own, index: int, scopes: list[Layout]) -> None:
    """Records that entered the scope since its last report."""
    scope = scopes[index]
    for port, entered in enumerate(scope.subgraph.entered):
        for time, n_records in _items(entered):
            outside = (scope.parent, scopes[scope.parent].topology.target(scope.node, port))
            own.pending[outside][scope.refinement.to_outer(time)] -= n_records
            _note_sent(own, index, scope, scope.topology.source(0, port), time, n_records)


def _note_sent(own: Own, index: int, scope: Layout, source: int, time: Any, n: int) -> None:
    for target, copies in scope.topology.consumers[source]:
        own.pending[index, target][time] += n * copies


def _items(changes: Any) -> list[tuple[Any, int]]:
    return list(changes)
