"""What views of a running program and of a log have in common: the shape of what the page draws.

A view is plain values, as JSON has them. Moments and durations are in seconds; addresses are those
of `runtime.watched_structure`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

N_BARS = 40
"""Bars of a histogram."""
READ_EVERY_S = 0.9
"""What runs is read once in so many seconds at most, however many browsers ask."""


def histogram(seconds: Sequence[float], weights: Sequence[float] | None = None) -> dict[str, Any]:
    """Latencies as bars whose widths grow by the same factor, with the median and p99.

    Parameters
    ----------
    seconds : sequence of float
    weights : sequence of float, optional
        How many epochs each stands for.

    >>> found = histogram([0.001, 0.001, 0.1])
    >>> found["n"], found["p50"], sum(found["counts"])
    (3, 0.001, 3.0)
    >>> histogram([0.001, 0.1], [1, 9])["p50"]
    0.1
    """
    values = np.asarray(seconds, np.float64)
    if not len(values):
        return {"n": 0, "edges": [], "counts": [], "p50": None, "p99": None, "most": None}
    sizes = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    order = np.argsort(values)
    values, sizes = np.maximum(values[order], 1e-7), sizes[order]
    edges = np.geomspace(values[0] / 1.05, values[-1] * 1.05, N_BARS + 1)
    counts, _ = np.histogram(values, edges, weights=sizes)
    # The least latency that so many are not above: one that was measured.
    upto = np.cumsum(sizes)
    places = np.searchsorted(upto, np.array([0.5, 0.99]) * upto[-1] * (1 - 1e-12))
    return {
        "n": len(values),
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "p50": float(values[places[0]]),
        "p99": float(values[places[1]]),
        "most": float(values[-1]),
    }


def skew(per_worker: Sequence[float]) -> float | None:
    """How many times the mean the largest part is; None where there is nothing.

    >>> skew([30, 10]), skew([0, 0])
    (1.5, None)
    """
    total = float(sum(per_worker))
    return round(max(per_worker) * len(per_worker) / total, 3) if total else None


def exchanges(
    structure: dict[str, Any], taken: Iterable[tuple[dict[str, Any], Sequence[int]]]
) -> list[dict[str, Any]]:
    """Of streams that spread records over workers, what each worker took; the most uneven first.

    Parameters
    ----------
    structure : dict
    taken : iterable of (dict, sequence of int)
        A stream of the structure, and the records by worker.
    """
    names = {each["address"]: each["name"] for each in structure["operators"]}
    found = [
        {
            "stream": stream["stream"],
            "operator": stream["target"],
            "name": names.get(stream["target"], "?"),
            "pact": stream["pact"],
            "taken": counts,
            "skew": skew(counts),
        }
        for stream, counts in taken
        if any(counts)
    ]
    return sorted(found, key=lambda each: -(each["skew"] or 0))


def leads_back(stream: dict[str, Any]) -> bool:
    """Whether a stream closes a loop: it leads to an operator of its scope that was made before.

    >>> leads_back({"scope": "0", "source": "0/4", "target": "0/1"})
    True
    >>> leads_back({"scope": "0/2", "source": "0/2/1", "target": "0/2"})  # out of its scope
    False
    """
    ends = stream["source"], stream["target"]
    if stream["scope"] in ends:
        return False
    source, target = (end.rpartition("/")[2] for end in ends)
    return source.isdecimal() and target.isdecimal() and int(target) <= int(source)


def across_borders(
    streams: Iterable[dict[str, Any]], known: dict[str, float | None]
) -> dict[str, float]:
    """What passed on each stream, also on those that come out of a scope, or into one.

    Only what an operator sends is counted. What leaves a scope is what its streams to the border
    have brought, and what enters it likewise.

    Parameters
    ----------
    streams : iterable of dict
    known : dict
        By stream: a count, or None where it comes across a border.
    """
    table = {each["stream"]: each for each in streams}
    arriving: dict[tuple[str, int, bool], list[str]] = {}
    """By (scope, port, whether from within) the streams that lead to its border."""
    for name, each in table.items():
        key = each["target"], each["target_port"], each["target"] == each["scope"]
        arriving.setdefault(key, []).append(name)
    found = {name: float(count) for name, count in known.items() if count is not None}

    def count(name: str) -> float:
        if name not in found:
            found[name] = 0.0  # should it lead to itself
            each = table[name]
            # From the border of the scope that it is in, it came in from outside.
            from_within = each["source"] != each["scope"]
            key = each["source"], each["source_port"], from_within
            found[name] = sum(count(other) for other in arriving.get(key, ()))
        return found[name]

    return {name: count(name) for name in table}
