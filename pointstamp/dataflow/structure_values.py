"""Operators and streams of a dataflow as plain values, for what watches or draws it.

Operators go by their addresses, "2/1/3": the number of the dataflow's outermost scope, then the
place in each scope on the way in. Logs have the same. A stream goes by its scope and its place
among the streams of that, "2/1#0".
"""

from __future__ import annotations

from typing import Any


def operator_values(
    address: str,
    parent: str,
    name: str,
    kind: str,
    *,
    role: str = "",
    inputs: int = 0,
    outputs: int = 0,
    line: str = "",
) -> dict[str, Any]:
    """An operator, or a scope or dataflow among them.

    Parameters
    ----------
    parent : str
        The address of the scope that it is in; "" of a dataflow.
    kind : {"operator", "scope", "dataflow"}
    line : str
        Of the program, where it was added, if that is known.

    >>> operator_values("2/1", "2", "Map", "operator", inputs=1, outputs=1)["parent"]
    '2'
    """
    return {
        "address": address,
        "parent": parent,
        "name": name,
        "kind": kind,
        "role": role,
        "inputs": inputs,
        "outputs": outputs,
        "line": line,
    }


def stream_values(scope: str, number: int, edge: Any, pact: str) -> dict[str, Any]:
    """A stream of a scope, by the scope's address: between which ports, and how batches go.

    >>> from types import SimpleNamespace
    >>> edge = SimpleNamespace(source=(1, 0), target=(0, 0))  # out of the scope
    >>> found = stream_values("2/1", 3, edge, "pipeline")
    >>> found["stream"], found["source"], found["target"]
    ('2/1#3', '2/1/1', '2/1')
    """
    (source, source_port), (target, target_port) = edge.source, edge.target
    return {
        "stream": f"{scope}#{number}",
        "scope": scope,
        "source": place_in(scope, source),
        "source_port": source_port,
        "target": place_in(scope, target),
        "target_port": target_port,
        "pact": pact,
    }


def place_in(scope: str, node: int) -> str:
    """The address of an operator; of the scope itself for 0.

    >>> place_in("2/1", 3), place_in("2/1", 0)
    ('2/1/3', '2/1')
    """
    return f"{scope}/{node}" if node else scope
