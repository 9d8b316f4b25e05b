"""The structure of a worker's dataflows, as plain values: operators, scopes and streams.

`dataflow.structure_values` says how they go by their addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.operator import Operator
from pointstamp.dataflow.structure_values import operator_values, stream_values
from pointstamp.progress.subgraph import Subgraph

if TYPE_CHECKING:
    from pointstamp.runtime.worker import Worker


@dataclass(frozen=True)
class WatchedScope:
    """A scope of a dataflow on one worker."""

    address: str
    number: int
    subgraph: Subgraph
    pacts: list[str]
    """By stream: how its batches reach the workers."""

    def operators(self) -> Iterator[tuple[str, int, Any]]:
        """(address, number in the scope, what speaks `Operate`)."""
        for node, child in enumerate(self.subgraph.children, start=1):
            yield f"{self.address}/{node}", node, child


def watched_scopes(worker: Worker, dataflow: Any) -> list[WatchedScope]:
    """The scopes of a dataflow that is not complete, the outermost first."""
    pacts = _pacts(dataflow.lines)
    found: list[WatchedScope] = []
    # By what a log does not put something else in the place of.
    numbers = {id(worker._subgraphs[number].topology): number for number in dataflow.scopes}
    work = [(str(dataflow.scopes[0]), dataflow.root)] if dataflow.scopes else []
    for address, child in work:  # which grows meanwhile
        number = numbers[id(child.topology)]
        scope = WatchedScope(address, number, worker._subgraphs[number], pacts.get(number, []))
        found.append(scope)
        work += [(inner, each) for inner, _, each in scope.operators() if is_scope(each)]
    return found


def structure_of(worker: Worker) -> dict[str, Any]:
    """What a worker has built and not completed.

    Returns
    -------
    dict
        "operators" (scopes and dataflows among them) and "streams", a dict for each.
    """
    operators: list[dict[str, Any]] = []
    streams: list[dict[str, Any]] = []
    for dataflow in list(worker._dataflows.values()):
        lines = worker.environment.lines or {}
        for scope in watched_scopes(worker, dataflow):
            if "/" not in scope.address:
                operators.append(operator_values(scope.address, "", dataflow.name, "dataflow"))
            for address, node, child in scope.operators():
                kind = "scope" if is_scope(child) else "operator"
                line = lines.get((scope.number, node), "")
                operators.append(
                    operator_values(
                        address,
                        scope.address,
                        child.name,
                        kind,
                        role=child.role if isinstance(child, Operator) else "",
                        inputs=child.inputs,
                        outputs=child.outputs,
                        line=line,
                    )
                )
            streams += _streams(scope)
    return {"operators": operators, "streams": streams}


def is_scope(child: Any) -> bool:
    """Whether what speaks `Operate` is a scope, or reports to the log of one."""
    return hasattr(child, "topology")


def _streams(scope: WatchedScope) -> Iterator[dict[str, Any]]:
    for number, edge in enumerate(scope.subgraph.edges):
        pact = scope.pacts[number] if number < len(scope.pacts) else ""
        yield stream_values(scope.address, number, edge, pact)


def _pacts(lines: list[str]) -> dict[int, list[str]]:
    """By the number of a scope, the pacts of its streams; see `ScopeCore.structure`."""
    found: dict[int, list[str]] = {}
    number = -1
    for line in lines:
        _, _, details = line.rpartition(": ")
        if line.startswith("stream from "):
            found.setdefault(number, []).append(details)
        elif not line.startswith("operator "):
            number = int(details.rpartition("number ")[2])
    return found
