"""The generic join: matches of a motif, one vertex bound after the other.

    edges --+--> index forward --+------------+--- ...
            +--> index reverse --|--+---------|--+
                                 v  v         v  v
                      seeds --> extend v1 --> extend v2 --> ... --> matches

Every worker owns some vertices by hash, and keeps their neighbours. A step whose
lists are all keyed by one vertex sends the prefixes to its worker and extends
them there. A step with several keys, on several workers, counts at each of their
workers, proposes where the list is shortest, and validates at the others:

    count k1 --> count k2 --> propose at the shortest --> validate --> next step

The work is within a logarithm of the largest number of matches that a graph with
as many edges can have (worst-case optimal), and memory within some batches per
step and worker (`turns.py`).

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
from pointstamp.dataflow.scope import Scope
from pointstamp.dataflow.stream import Stream
from pointstamp.joins import tactics
from pointstamp.joins.adjacency import Adjacency
from pointstamp.joins.operators import Tactic, from_index, index, total, watch, with_graph
from pointstamp.joins.plan import Filter, Plan
from pointstamp.joins.tactics import MATCHES, ROUTE, Extension, Part, column
from pointstamp.joins.turns import Pace, Turns

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
    paces : list of list of Pace
        By step, those of its operators at this worker, once it is laid out.
    """

    def __init__(
        self,
        edges: Stream[Any],
        plan: Plan,
        outputs: Sequence[int] = (),
        distinct: bool = False,
        batch_records: int = BATCH_RECORDS,
    ) -> None:
        self.plan = plan
        self.outputs = tuple(outputs)
        self.distinct = distinct
        self.batch_records = batch_records
        self.paces: list[list[Pace]] = [[] for _ in plan.steps]
        self._scope = edges.scope
        self._by_direction = {d: index(edges, d) for d in plan.directions}

    def matches(self) -> Stream[Arrays]:
        """Every match once: batches with a column `v0`, `v1`, ... for each output."""
        names = [column(v) for v in self.outputs]
        with self._inner_scope() as scope:
            found = self._steps(scope).prefixes(len(self.plan.steps))
            return found.map_batches(lambda batch: tactics.selected(batch, names)).leave()

    def count(self) -> Stream[Arrays]:
        """The number of matches of each time that has edges, one record `matches`, at one worker.

        The last step counts instead of proposing: nothing is made in order to be counted.
        """
        with self._inner_scope() as scope:
            counts = [counts.leave() for counts in self._steps(scope).counts()]
        zero = Arrays({MATCHES: np.zeros(1, np.int64)})
        none = [i.map_batches(lambda _: zero) for i in self._by_direction.values()]
        return total(self._scope.concatenate([*none, *counts]))

    def _inner_scope(self) -> Scope:
        return self._scope.iterative(Turns(len(self.plan.steps) - 1), "Join")

    def _steps(self, scope: Scope) -> _Steps:
        by_direction = {d: i.enter(scope) for d, i in self._by_direction.items()}
        indexes = scope.concatenate(list(by_direction.values()))
        return _Steps(self, scope.peers, by_direction[self.plan.seed], indexes)


class _Steps:
    """The operators of a join, inside its scope."""

    def __init__(
        self,
        join: GenericJoin,
        peers: int,
        seeds: Stream[Adjacency],
        indexes: Stream[Adjacency],
    ) -> None:
        self._join = join
        self._plan = join.plan
        self._peers = peers
        self._seeds = seeds
        self._indexes = indexes

    def prefixes(self, n_steps: int) -> Stream[Arrays]:
        """The matches of the vertices that are bound by the first `n_steps` steps."""
        keys = from_index(self._seeds, "Seeds", partial(tactics.seeds, self._plan.first))
        prefixes = self._tested(keys, self._plan.first_filters)
        for i in range(n_steps):
            prefixes = self._tested(self._extended(prefixes, i), self._plan.steps[i].filters)
        return prefixes

    def counts(self) -> list[Stream[Arrays]]:
        """Numbers of matches, which add up to that of all."""
        last = len(self._plan.steps) - 1
        if self._plan.steps[last].filters:
            return [self.prefixes(last + 1).map_batches(tactics.number_of)]
        extension, prefixes = self._extension(last), self.prefixes(last)
        if self._one_place(extension):
            return [self._count(prefixes, last, extension, self._to_key(last, extension), "all")]
        ranked = self._ranked(prefixes, extension)
        here = self._count(ranked, last, extension, Exchange(ROUTE), "here")
        away = self._propose(ranked, last, extension, Exchange(ROUTE), "away")
        return [here, self._validated(away, extension).map_batches(tactics.number_of)]

    # One step.

    def _extended(self, prefixes: Stream[Arrays], i: int) -> Stream[Arrays]:
        extension = self._extension(i)
        if self._one_place(extension):
            return self._propose(prefixes, i, extension, self._to_key(i, extension), "all")
        ranked = self._ranked(prefixes, extension)
        proposed = self._propose(ranked, i, extension, Exchange(ROUTE), "mixed")
        return self._validated(proposed, extension)

    def _extension(self, i: int) -> Extension:
        plan, step = self._plan, self._plan.steps[i]
        before, is_last = plan.order[: i + 1], i + 1 == len(plan.steps)
        asked = set(plan.needed_after(i + 1, self._join.outputs))
        asked.update(v for f in step.filters for v in (f.source, f.target))
        if self._join.distinct and not is_last:
            asked.update(before)
        return Extension(
            step,
            bound=before if self._join.distinct else (),
            kept=tuple(v for v in before if v in asked),
        )

    def _one_place(self, extension: Extension) -> bool:
        """Whether all lists of a prefix are at one worker."""
        return self._peers == 1 or len(extension.keys) == 1

    def _to_key(self, i: int, extension: Extension) -> Pact:
        """To the worker of the lists; seeds are there already."""
        return Pipeline() if i == 0 else Exchange(column(extension.keys[0]))

    def _ranked(self, prefixes: Stream[Arrays], extension: Extension) -> Stream[Arrays]:
        """The prefixes with the vertex of their shortest list, after a visit to each list."""
        ranked = prefixes.map_batches(tactics.uncounted)
        for key in extension.keys:
            name = f"Count {column(extension.step.vertex)} by {column(key)}"
            tactic = partial(tactics.count, extension, key)
            ranked = with_graph(ranked, self._indexes, Exchange(column(key)), name, tactic)
        return ranked

    def _propose(
        self, prefixes: Stream[Arrays], i: int, extension: Extension, pact: Pact, part: Part
    ) -> Stream[Arrays]:
        kept = extension.kept
        if part != "all":  # the workers that validate ask for the keys
            wanted = {*extension.kept, *extension.keys}
            kept = tuple(v for v in self._plan.order[: i + 1] if v in wanted)
        keeping = Extension(extension.step, extension.bound, kept)
        name = f"Extend by {column(extension.step.vertex)}"
        room = self._join.batch_records
        return self._paced(
            prefixes, i, pact, name, lambda g, b: tactics.propose(keeping, g, b, room, part)
        )

    def _count(
        self, prefixes: Stream[Arrays], i: int, extension: Extension, pact: Pact, part: Part
    ) -> Stream[Arrays]:
        name = f"Count extensions by {column(extension.step.vertex)}"
        return self._paced(
            prefixes, i, pact, name, lambda g, b: tactics.count_matches(extension, g, b, part)
        )

    def _paced(
        self, prefixes: Stream[Arrays], i: int, pact: Pact, name: str, tactic: Tactic
    ) -> Stream[Arrays]:
        """An operator of step `i`, and with its end in view for the step before."""
        paces = self._join.paces
        pace = Pace(i, i + 1 == len(paces), self._join.batch_records)
        paces[i].append(pace)
        found = with_graph(prefixes, self._indexes, pact, name, tactic, pace)
        for before in paces[i - 1] if i else ():
            watch(found, before)
        return found

    def _validated(self, proposals: Stream[Arrays], extension: Extension) -> Stream[Arrays]:
        name = f"Validate {column(extension.step.vertex)}"
        tactic = partial(tactics.validate, extension)
        for _ in extension.keys[1:]:
            proposals = with_graph(proposals, self._indexes, Exchange(ROUTE), name, tactic)
        names = [column(v) for v in (*extension.kept, extension.step.vertex)]
        return proposals.map_batches(lambda batch: tactics.selected(batch, names))

    def _tested(self, prefixes: Stream[Arrays], filters: Sequence[Filter]) -> Stream[Arrays]:
        for condition in filters:
            source, target = column(condition.source), column(condition.target)
            tactic = partial(tactics.test, condition)
            name = f"Test {source} to {target}"
            prefixes = with_graph(prefixes, self._indexes, Exchange(source), name, tactic)
        return prefixes
