"""The generic join: matches of a motif, one vertex bound after the other.

    edges --> index forward --+------------+-----------...
        \\-> index reverse ---|--+---------|--+
                              v  v         v  v
                   seeds --> extend v1 --> extend v2 --> ... --> matches

Every worker owns some vertices by hash, and keeps their neighbours. A step whose
lists are all keyed by one vertex sends the prefixes to its worker and extends
them there. A step with several keys, on several workers, counts at each of their
workers, proposes where the list is shortest, and validates at the others:

    count k1 --> count k2 --> propose at the shortest --> validate --> next step

The work is within a logarithm of the largest number of matches that a graph with
as many edges can have (worst-case optimal), and memory within some batches per
step (`backlog.py`).

Source: Ngo, Porat, Re, Rudra, "Worst-case optimal join algorithms", PODS 2012;
Ammar, McSherry, Salihoglu, Joglekar, "Distributed evaluation of subgraph queries
using worst-case optimal low-memory dataflows", VLDB 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.dataflow.pact import Exchange, Pact, Pipeline
from pointstamp.dataflow.stream import Stream
from pointstamp.joins import tactics
from pointstamp.joins.backlog import Backlog
from pointstamp.joins.operators import Pace, from_index, index, total, with_graph
from pointstamp.joins.plan import Filter, Plan
from pointstamp.joins.tactics import MATCHES, ROUTE, Extension, Part, column

BATCH_RECORDS = 65_536


class GenericJoin:
    """A motif's plan laid out as operators over a stream of edges.

    Parameters
    ----------
    edges : Stream of Arrays
        With the columns `src` and `dst`, int64. The edges of one time are one graph;
        those that repeat count once.
    plan : Plan
    outputs : sequence of int, optional
        The vertices wanted in `matches`; `count` needs none.
    distinct : bool
        Whether different vertices of the motif must be different in the graph.
    batch_records : int
        How many records a piece has at most.

    Attributes
    ----------
    backlog : Backlog
        What this worker's steps have in hand.
    """

    def __init__(
        self,
        edges: Stream[Any],
        plan: Plan,
        outputs: Sequence[int] = (),
        distinct: bool = False,
        batch_records: int = BATCH_RECORDS,
    ) -> None:
        self._plan = plan
        self._outputs = tuple(outputs)
        self._distinct = distinct
        self._peers = edges.scope.peers
        self._by_direction = {d: index(edges, d) for d in plan.directions}
        self._indexes = self._concatenated()
        self.backlog = Backlog(len(plan.steps), batch_records)

    def matches(self) -> Stream[Arrays]:
        """Every match once: batches with a column `v0`, `v1`, ... for each output."""
        found = self._prefixes(len(self._plan.steps))
        names = [column(v) for v in self._outputs]
        return found.map_batches(lambda batch: tactics.selected(batch, names))

    def count(self) -> Stream[Arrays]:
        """The number of matches of each time that has edges, one record `matches`, at one worker.

        The last step counts instead of proposing: nothing is made in order to be counted.
        """
        last = len(self._plan.steps) - 1
        prefixes = self._prefixes(last)
        if self._plan.steps[last].filters:
            found = self._filtered(self._extended(prefixes, last), last)
            counts = [found.map_batches(tactics.number_of)]
        else:
            counts = self._counted_step(prefixes, last)
        none = self._indexes.map_batches(lambda _: Arrays({MATCHES: np.zeros(1, np.int64)}))
        return total(none.concat(*counts))

    def _concatenated(self) -> Stream[Any]:
        first, *rest = self._by_direction.values()
        return first.concat(*rest) if rest else first

    def _prefixes(self, n_steps: int) -> Stream[Arrays]:
        """The matches of the vertices that are bound by the first `n_steps` steps."""
        plan = self._plan
        seeds = from_index(
            self._by_direction[plan.seed], "Seeds", partial(tactics.seeds, plan.first)
        )
        prefixes = self._tested(seeds, plan.first_filters)
        for i in range(n_steps):
            prefixes = self._filtered(self._extended(prefixes, i), i)
        return prefixes

    # One step.

    def _extended(self, prefixes: Stream[Arrays], i: int) -> Stream[Arrays]:
        extension = self._extension(i)
        if self._one_place(extension):
            return self._propose(prefixes, i, extension, self._to_key(i, extension), "all")
        counted = self._counted(prefixes, extension)
        return self._validated(
            self._propose(counted, i, extension, Exchange(ROUTE), "mixed"), i, extension
        )

    def _counted_step(self, prefixes: Stream[Arrays], i: int) -> list[Stream[Arrays]]:
        """The last step, as streams of numbers of matches."""
        extension = self._extension(i)
        if self._one_place(extension):
            return [self._count_matches(prefixes, i, extension, self._to_key(i, extension), "all")]
        counted = self._counted(prefixes, extension)
        here = self._count_matches(counted, i, extension, Exchange(ROUTE), "here")
        away = self._propose(counted, i, extension, Exchange(ROUTE), "away")
        validated = self._validated(away, i, extension)
        return [here, validated.map_batches(tactics.number_of)]

    def _extension(self, i: int) -> Extension:
        plan, step = self._plan, self._plan.steps[i]
        before = plan.order[: i + 1]
        later = plan.steps[i + 1 :]
        asked = set(plan.needed_after(i + 1, self._outputs))
        asked.update(v for f in step.filters for v in (f.source, f.target))
        if self._distinct and later:
            asked.update(before)
        return Extension(
            step,
            bound=before if self._distinct else (),
            kept=tuple(v for v in before if v in asked),
        )

    def _one_place(self, extension: Extension) -> bool:
        """Whether all lists of a prefix are at one worker."""
        return self._peers == 1 or len(extension.keys) == 1

    def _to_key(self, i: int, extension: Extension) -> Pact:
        """To the worker of the lists; seeds are there already."""
        return Pipeline() if i == 0 else Exchange(column(extension.keys[0]))

    def _counted(self, prefixes: Stream[Arrays], extension: Extension) -> Stream[Arrays]:
        counted = prefixes.map_batches(tactics.uncounted)
        for key in extension.keys:
            counted = with_graph(
                counted,
                self._indexes,
                Exchange(column(key)),
                f"Count {column(extension.step.vertex)} by {column(key)}",
                partial(tactics.count, extension, key),
            )
        return counted

    def _propose(
        self, prefixes: Stream[Arrays], i: int, extension: Extension, pact: Pact, part: Part
    ) -> Stream[Arrays]:
        kept = extension
        if part != "all":  # the validating workers ask for the keys
            vertices = {*extension.kept, *extension.keys}
            bound = tuple(v for v in self._plan.order[: i + 1] if v in vertices)
            kept = Extension(extension.step, extension.bound, bound)
        return with_graph(
            prefixes,
            self._indexes,
            pact,
            f"Extend by {column(extension.step.vertex)}",
            lambda graph, batch: tactics.propose(kept, graph, batch, self.backlog.limit, part),
            Pace(self.backlog, i),
        )

    def _count_matches(
        self, prefixes: Stream[Arrays], i: int, extension: Extension, pact: Pact, part: Part
    ) -> Stream[Arrays]:
        return with_graph(
            prefixes,
            self._indexes,
            pact,
            f"Count extensions by {column(extension.step.vertex)}",
            lambda graph, batch: tactics.count_matches(extension, graph, batch, part),
            Pace(self.backlog, i),
        )

    def _validated(
        self, proposals: Stream[Arrays], i: int, extension: Extension
    ) -> Stream[Arrays]:
        for _ in extension.keys[1:]:
            proposals = with_graph(
                proposals,
                self._indexes,
                Exchange(ROUTE),
                f"Validate {column(extension.step.vertex)}",
                partial(tactics.validate, extension),
            )
        names = [column(v) for v in (*extension.kept, extension.step.vertex)]
        return proposals.map_batches(lambda batch: tactics.selected(batch, names))

    # Conditions.

    def _filtered(self, prefixes: Stream[Arrays], i: int) -> Stream[Arrays]:
        return self._tested(prefixes, self._plan.steps[i].filters)

    def _tested(self, prefixes: Stream[Arrays], filters: Sequence[Filter]) -> Stream[Arrays]:
        for condition in filters:
            prefixes = with_graph(
                prefixes,
                self._indexes,
                Exchange(column(condition.source)),
                f"Test {column(condition.source)} to {column(condition.target)}",
                partial(tactics.test, condition),
            )
        return prefixes
