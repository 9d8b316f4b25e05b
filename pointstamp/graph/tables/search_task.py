"""Searches that go through a whole graph at each worker, which has its share of where to begin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pointstamp.containers.convert import to_arrow
from pointstamp.errors import DataError
from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.numbered_graph import NumberedGraph
from pointstamp.joins.join_operators import from_index
from pointstamp.operators.stream import Stream


class SearchTask(Protocol):
    """What a worker looks for."""

    def pieces(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Any]:
        """What worker `index` of `peers` finds: record batches of a limited size."""


@dataclass(frozen=True, eq=False)
class FindTask:
    """The matches of a pattern, as numbers: a column for each element with a name."""

    search: ElementSearch

    def pieces(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Any]:
        """The matches of this worker."""
        return map(to_arrow, self.search.matches(graph, index, peers))


@dataclass(frozen=True, eq=False)
class CountTask:
    """How many matches each worker finds: a record with `count`."""

    search: ElementSearch

    def pieces(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Any]:
        """Their number."""
        n = self.search.count(graph, index, peers)
        if n >> 63:
            raise DataError(f"the pattern has {n} matches at a worker, more than 64 bits can say")
        yield to_arrow({"count": np.array([n])})


def searched(graphs: Stream[Any], task: SearchTask) -> Stream[Any]:
    """What a task finds in each of a stream of graphs, a piece at each activation."""
    index, peers = graphs.scope.index, graphs.scope.peers

    def pieces(graph: Any) -> Iterator[Any]:
        return task.pieces(graph, index, peers)

    return from_index(graphs, "Search", pieces)
