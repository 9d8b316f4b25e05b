"""The generic join: matches of a motif, one vertex bound after the other.

    edges --+--> index forward --+------------+--- ...
            +--> index reverse --|--+---------|--+
                                 v  v         v  v
                      seeds --> extend v1 --> extend v2 --> ... --> matches

Every worker owns some vertices by hash, and keeps their neighbours; the longest
lists, in small graphs all of them, are sent to every worker (`replicated_lists.py`, which says
why). A step counts the lists of a prefix where they are, proposes the shortest,
extends where the next list is, by what is in both, and validates at the workers of
the rest:

    count --> count at k1, k2, ... --> propose --> extend --> validate --> next step

A prefix says itself where it goes next, and one whose lists are all at hand stays
through all of this. A prefix of long lists that all workers know is shared out: each
extends it by a part, so that the prefixes of a hub are spread as well, and no worker
works alone on a skewed graph.

The work is within a logarithm of the largest number of matches that a graph with
as many edges can have (worst-case optimal), and memory within some batches per
step and worker (`throttle.py`).

Source: Ngo, Porat, Re, Rudra, "Worst-case optimal join algorithms", PODS 2012;
Ammar, McSherry, Salihoglu, Joglekar, "Distributed evaluation of subgraph queries
using worst-case optimal low-memory dataflows", VLDB 2018.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.dataflow.pact import Exchange, Pact, Pipeline
from pointstamp.joins import tactics
from pointstamp.joins.adjacency import Adjacency, IndexedGraph
from pointstamp.joins.join_operators import (
    Tactic,
    from_index,
    graphs,
    index,
    indexed,
    total,
    watch,
    with_graph,
)
from pointstamp.joins.plan import Filter, Plan
from pointstamp.joins.replicated_lists import REPLICATED_ITEMS
from pointstamp.joins.tactics import MATCHES, ROUTE, Extension, Part, column
from pointstamp.joins.throttle import Throttle, ThrottleTime
from pointstamp.operators.scope import Scope
from pointstamp.operators.split_merge import union
from pointstamp.operators.stream import Stream

BATCH_RECORDS = 65_536

NO_MATCH = Arrays({MATCHES: np.zeros(1, np.int64)})
"""A count of none."""

BY_ROUTE = Exchange(to=ROUTE)
"""A prefix says itself where it goes: where the lists are that extend it, a hash does not know."""


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
    replicated_items : int
        How many neighbours, in each direction, every worker may know (`replicated_lists.py`).

    Attributes
    ----------
    throttles : list of list of Throttle
        By level, those of its operators at this worker, once it is laid out. The
        levels are the places where there may come out more than went in.
    """

    def __init__(
        self,
        edges: Stream[Any],
        plan: Plan,
        outputs: Sequence[int] = (),
        distinct: bool = False,
        batch_records: int = BATCH_RECORDS,
        replicated_items: int = REPLICATED_ITEMS,
    ) -> None:
        self.plan = plan
        self.outputs = tuple(outputs)
        self.distinct = distinct
        self.batch_records = batch_records
        self._scope = edges.scope
        self.throttles: list[list[Throttle]] = [
            [] for _ in range(levels(plan, edges.scope.peers)[-1] + 1)
        ]
        self._seeds: Stream[Any]
        if edges.scope.peers == 1:
            self._graphs = self._seeds = indexed(edges, plan.directions)
        else:
            by_direction = {d: index(edges, d) for d in plan.directions}
            self._graphs = graphs(list(by_direction.values()), replicated_items)
            self._seeds = by_direction[plan.seed]

    def matches(self) -> Stream[Arrays]:
        """Every match once: batches with a column `v0`, `v1`, ... for each output."""
        names = [column(v) for v in self.outputs]
        with self._inner_scope() as scope:
            found = self._steps(scope).prefixes(len(self.plan.steps))
            return found.map_batches(lambda batch: tactics.selected(batch, names)).leave()

    def count(self, batch_of: Callable[[int], Any]) -> Stream[Any]:
        """The number of matches of each time that has edges, a batch of it, at one worker.

        The last step counts instead of proposing: nothing is made in order to be counted.
        """
        with self._inner_scope() as scope:
            counts = [counts.leave() for counts in self._steps(scope).counts()]
        return total(union(counts), batch_of)

    def _inner_scope(self) -> Scope:
        return self._scope.iterative(ThrottleTime(len(self.throttles) - 1), "Join")

    def _steps(self, scope: Scope) -> _Steps:
        entered = self._graphs.enter(scope)
        seeds = entered if self._seeds is self._graphs else self._seeds.enter(scope)
        return _Steps(self, scope.peers, seeds, entered)


def levels(plan: Plan, peers: int) -> list[int]:
    """The level at which each step extends its prefixes.

    Each step is a level; and one before it, where lists are proposed to other workers.

    >>> from pointstamp.joins.plan import make_plan
    >>> triangle = make_plan(3, [(0, 1), (1, 2), (0, 2)])
    >>> levels(triangle, peers=1), levels(triangle, peers=2)
    ([0, 1], [0, 2])
    """
    several = [peers > 1 and len({c.key for c in s.constraints}) > 1 for s in plan.steps]
    return [i + n for i, n in enumerate(itertools.accumulate(several))]


class _Steps:
    """The operators of a join, inside its scope."""

    def __init__(
        self,
        join: GenericJoin,
        peers: int,
        seeds: Stream[Any],
        graphs: Stream[IndexedGraph],
    ) -> None:
        self._join = join
        self._plan = join.plan
        self._peers = peers
        self._levels = levels(join.plan, peers)
        self._seeds = seeds
        self._graphs = graphs

    def prefixes(self, n_steps: int) -> Stream[Arrays]:
        """The matches of the vertices that are bound by the first `n_steps` steps."""
        keys = from_index(self._seeds, "Seeds", self._keys)
        prefixes = self._tested(keys, self._plan.first_filters)
        for i in range(n_steps):
            prefixes = self._tested(self._extended(prefixes, i), self._plan.steps[i].filters)
        return prefixes

    def _keys(self, index: Adjacency | IndexedGraph) -> tactics.Pieces:
        if isinstance(index, IndexedGraph):
            index = index.adjacency(self._plan.seed)
        return tactics.seeds(self._plan.first, index)

    def counts(self) -> list[Stream[Arrays]]:
        """Numbers of matches, which add up to that of all; one at least of each graph."""
        last = len(self._plan.steps) - 1
        if self._plan.steps[last].filters:
            none = self._graphs.map_batches(lambda graphs: NO_MATCH)
            return [none, self.prefixes(last + 1).map_batches(tactics.number_of)]
        extension = self._extension(last)
        prefixes, pact = self._ready(self.prefixes(last), last, extension)
        if self._peers == 1 or len(extension.keys) <= 2:
            return [self._count(prefixes, pact, last, extension, "all")]
        here = self._count(prefixes, pact, last, extension, "here")
        found = self._extend(prefixes, pact, last, extension, "away")
        return [here, self._validated(found, extension).map_batches(tactics.number_of)]

    # One step.

    def _extended(self, prefixes: Stream[Arrays], i: int) -> Stream[Arrays]:
        extension = self._extension(i)
        prefixes, pact = self._ready(prefixes, i, extension)
        return self._validated(self._extend(prefixes, pact, i, extension, "all"), extension)

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

    def _ready(
        self, prefixes: Stream[Arrays], i: int, extension: Extension
    ) -> tuple[Stream[Any], Pact]:
        """The prefixes with what they need to be extended, and how they get where they can be."""
        if self._peers == 1:
            return prefixes, Pipeline()
        counted = prefixes.map_batches(partial(tactics.uncounted, extension))
        name = column(extension.step.vertex)
        counting = partial(tactics.count, extension)
        visits: list[Pact] = (
            [] if i == 0 else [BY_ROUTE] * len(extension.keys)
        )  # seeds are with their lists
        for pact in (Pipeline(), *visits):
            counted = with_graph(counted, self._graphs, pact, f"Count {name}", counting)
        room = 4 * self._join.batch_records

        def propose(graph: IndexedGraph, batch: Arrays) -> Any:
            return tactics.propose(extension, graph, batch, room)

        if len(extension.keys) == 1:  # nothing is candidates, so what goes in is what comes out
            proposed = with_graph(counted, self._graphs, BY_ROUTE, f"Propose {name}", propose)
        else:
            level = self._levels[i] - 1
            proposed = self._throttled(counted, BY_ROUTE, level, f"Propose {name}", propose)
        return proposed, BY_ROUTE

    def _extend(
        self, prefixes: Stream[Any], pact: Pact, i: int, extension: Extension, part: Part
    ) -> Stream[Arrays]:
        kept = extension.kept
        if self._n_to_validate(extension):  # the workers that validate ask for the keys
            wanted = {*extension.kept, *extension.keys}
            kept = tuple(v for v in self._plan.order if v in wanted)
        keeping = Extension(extension.step, extension.bound, kept)
        room = self._join.batch_records
        return self._throttled(
            prefixes,
            pact,
            self._levels[i],
            f"Extend by {column(extension.step.vertex)}",
            lambda graph, batch: tactics.extend(keeping, graph, batch, room, part),
        )

    def _count(
        self, prefixes: Stream[Any], pact: Pact, i: int, extension: Extension, part: Part
    ) -> Stream[Arrays]:
        return self._throttled(
            prefixes,
            pact,
            self._levels[i],
            f"Count matches of {column(extension.step.vertex)}",
            lambda graph, batch: tactics.count_matches(extension, graph, batch, part),
            NO_MATCH,
        )

    def _throttled(
        self,
        prefixes: Stream[Any],
        pact: Pact,
        level: int,
        name: str,
        tactic: Tactic,
        first: Any = None,
    ) -> Stream[Any]:
        """An operator that may give more than it gets, watched by those of the level before."""
        join = self._join
        throttle = Throttle(level, level + 1 == len(join.throttles), join.batch_records)
        join.throttles[level].append(throttle)
        found = with_graph(prefixes, self._graphs, pact, name, tactic, throttle, first=first)
        for before in join.throttles[level - 1] if level else ():
            watch(found, before)
        return found

    def _n_to_validate(self, extension: Extension) -> int:
        """How many workers a record must visit once it is extended, at most."""
        return 0 if self._peers == 1 else max(0, len(extension.keys) - 2)

    def _validated(self, found: Stream[Arrays], extension: Extension) -> Stream[Arrays]:
        n_visits = self._n_to_validate(extension)
        if not n_visits:
            return found
        name = f"Validate {column(extension.step.vertex)}"
        tactic = partial(tactics.validate, extension)
        for _ in range(n_visits):
            found = with_graph(found, self._graphs, BY_ROUTE, name, tactic)
        names = [column(v) for v in (*extension.kept, extension.step.vertex)]
        return found.map_batches(lambda batch: tactics.selected(batch, names))

    def _tested(self, prefixes: Stream[Arrays], filters: Sequence[Filter]) -> Stream[Arrays]:
        for condition in filters:
            source, target = column(condition.source), column(condition.target)
            tactic = partial(tactics.test, condition)
            name = f"Test {source} to {target}"
            prefixes = with_graph(prefixes, self._graphs, Exchange(source), name, tactic)
        return prefixes
