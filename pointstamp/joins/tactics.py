"""The work of a join on one batch of prefixes: count, propose, validate, test.

A prefix is a match of the vertices bound so far, a record of int64 columns `v0`,
`v1`, ... by vertex number. A step binds one more vertex, whose value must be in
k lists of neighbours, one for each constraint:

- *count* visits the lists' workers and remembers which list is the shortest;
- *propose* extends each prefix by what is in its shortest list, and in whichever
  others are at the same worker;
- *validate* visits the workers of the rest, and drops what is not there.

Where all the lists of a prefix are at one worker, as with one worker they always
are, the three fall into one intersection, and nothing is proposed in vain. A
record on its way has beside its vertices

- `route`, a vertex whose worker it must go to next (or stays with), and
- `least`, while it is counted, the length of the shortest list so far, or
- `todo`, once it is proposed, a bit for each constraint not tested yet.

These are generators over arrays: a batch in, pieces of at most the size asked
for out, and None where much was read and nothing was found. They know nothing of
streams, times or workers (`operators.py` drives them).

Source: the operators of `dogsdogsdogs` in differential-dataflow (`count.rs`,
`propose.rs`, `validate.rs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays
from pointstamp.joins.adjacency import Adjacency, Graph
from pointstamp.joins.plan import Filter, Step
from pointstamp.kernels.hashing import settled
from pointstamp.kernels.intersect import FIRST, are_members, extend

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pieces = Iterator[Arrays | None]

READ_BUDGET = 4_000_000
"""How many neighbours may be read before control is given back: some 10 ms."""

ROUTE, LEAST, TODO, MATCHES = "route", "least", "todo", "matches"

_UNKNOWN = -1
_MOST = np.iinfo(np.int64).max


def column(vertex: int) -> str:
    """The column that holds the values of a vertex of the motif.

    >>> column(3)
    'v3'
    """
    return f"v{vertex}"


@dataclass(frozen=True)
class Extension:
    """One step, and what to keep of its prefixes.

    Attributes
    ----------
    step : Step
    bound : vertices that the new one must differ from; () where it need not
    kept : vertices bound before that someone still asks for
    """

    step: Step
    bound: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()

    @property
    def keys(self) -> tuple[int, ...]:
        """The vertices whose lists constrain the new one, each once, in the plan's order."""
        return tuple(dict.fromkeys(c.key for c in self.step.constraints))


def seeds(first: int, adjacency: Adjacency) -> Pieces:
    """The prefixes of one vertex: all keys of an index."""
    yield Arrays({column(first): adjacency.keys})


# Count.


def uncounted(prefixes: Arrays) -> Arrays:
    """Prefixes made ready to be counted."""
    n = len(prefixes)
    return Arrays(
        {**dict(prefixes.items()), LEAST: np.full(n, _MOST), ROUTE: np.zeros(n, np.int64)}
    )


def count(extension: Extension, key: int, graph: Graph, prefixes: Arrays) -> Pieces:
    """See how long the lists of vertex `key` are; drop prefixes for which one is empty.

    `least` becomes the shortest length so far, `route` the vertex that has it.
    """
    least, route = prefixes[LEAST], prefixes[ROUTE]
    vertices = prefixes[column(key)]
    for constraint in extension.step.constraints:
        if constraint.key == key:
            begins, ends = graph.adjacency(constraint.direction).spans(vertices)
            shorter = ends - begins < least
            least = np.where(shorter, ends - begins, least)
            route = np.where(shorter, vertices, route)
    counted = Arrays({**dict(prefixes.items()), LEAST: least, ROUTE: route})
    yield _taken(counted, least > 0)


# Propose.

Part = Literal["all", "mixed", "here", "away"]
"""Where the lists are. `all`: at this worker, which saves looking. `mixed`: some may
be elsewhere. `here` and `away`: the same, and of those prefixes only the ones that
have all their lists here, or only the others."""


@dataclass(frozen=True)
class _Lists:
    """The lists of a batch of prefixes, as `kernels.intersect.extend` wants them."""

    is_reverse: Bools
    begins: Ints
    ends: Ints


def propose(
    extension: Extension, graph: Graph, prefixes: Arrays, room: int, part: Part = "all"
) -> Pieces:
    """Prefixes extended by what is in all their lists that are here.

    Unless `part` is "all", pieces have the columns `route` and `todo` for validation.
    At most `room` records per piece; a cursor goes on where the last one stopped.
    """
    prefixes, lists = _of_part(part, prefixes, _lists(extension, graph, prefixes, part))
    bound = _stacked(prefixes, extension.bound)
    at, resume = 0, FIRST
    while at < len(prefixes):
        parents, found = np.empty(room, np.int64), np.empty(room, np.int64)
        n, at, resume = _extend(graph, lists, bound, at, resume, False, parents, found)
        if n == 0:
            yield None
            continue
        columns = {column(v): prefixes[column(v)][parents[:n]] for v in extension.kept}
        # A piece that fills little of its room is copied, so as not to keep all of it.
        columns[column(extension.step.vertex)] = found[:n] if 2 * n > room else found[:n].copy()
        if part != "all":
            todo = _away(lists)[parents[:n]]
            here = prefixes[ROUTE][parents[:n]]
            columns |= {TODO: todo, ROUTE: _next_route(extension, todo, columns, here)}
        yield Arrays(columns)


def count_matches(
    extension: Extension, graph: Graph, prefixes: Arrays, part: Part = "all"
) -> Pieces:
    """How many records `propose` would give, without making them: pieces of one number."""
    prefixes, lists = _of_part(part, prefixes, _lists(extension, graph, prefixes, part))
    bound = _stacked(prefixes, extension.bound)
    room = np.empty(4096, np.int64)
    at, resume = 0, FIRST
    while at < len(prefixes):
        n, at, resume = _extend(graph, lists, bound, at, resume, True, room, room)
        yield Arrays({MATCHES: np.array([n])})


def _lists(extension: Extension, graph: Graph, prefixes: Arrays, part: Part) -> _Lists:
    constraints = extension.step.constraints
    begins = np.empty((len(constraints), len(prefixes)), np.int64)
    ends = np.empty_like(begins)
    for j, constraint in enumerate(constraints):
        vertices = prefixes[column(constraint.key)]
        begins[j], ends[j] = graph.adjacency(constraint.direction).spans(vertices)
        if part != "all":
            ends[j][~graph.owns(vertices)] = _UNKNOWN
    return _Lists(np.array([c.direction == "reverse" for c in constraints]), begins, ends)


def _of_part(part: Part, prefixes: Arrays, lists: _Lists) -> tuple[Arrays, _Lists]:
    if part in ("all", "mixed"):
        return prefixes, lists
    here = (lists.ends != _UNKNOWN).all(axis=0)
    chosen = np.flatnonzero(here if part == "here" else ~here)
    return (
        _taken(prefixes, chosen),
        _Lists(lists.is_reverse, lists.begins.take(chosen, 1), lists.ends.take(chosen, 1)),
    )


def _extend(
    graph: Graph,
    lists: _Lists,
    bound: Ints,
    at: int,
    resume: int,
    counting: bool,
    parents: Ints,
    found: Ints,
) -> tuple[int, int, int]:
    return extend(
        graph.adjacency("forward").values,
        graph.adjacency("reverse").values,
        lists.is_reverse,
        lists.begins,
        lists.ends,
        bound,
        graph.marks,
        graph.low,
        at,
        resume,
        READ_BUDGET,
        counting,
        parents,
        found,
    )


def _away(lists: _Lists) -> Ints:
    """For each prefix the constraints whose lists are at other workers, a bit each."""
    bits = np.int64(1) << np.arange(len(lists.ends), dtype=np.int64)
    todo: Ints = ((lists.ends == _UNKNOWN) * bits[:, None]).sum(axis=0)
    return todo


# Validate.


def validate(extension: Extension, graph: Graph, proposals: Arrays) -> Pieces:
    """Test the constraints in `todo` whose lists are here; drop what fails one."""
    todo = proposals[TODO].copy()
    kept = np.ones(len(proposals), np.bool_)
    values = proposals[column(extension.step.vertex)]
    for j, constraint in enumerate(extension.step.constraints):
        keys = proposals[column(constraint.key)]
        asked = np.flatnonzero((todo >> j & 1).astype(np.bool_) & kept & graph.owns(keys))
        if len(asked):
            adjacency = graph.adjacency(constraint.direction)
            kept[asked] = _are_edges(adjacency, keys[asked], values[asked])
            todo[asked] &= ~(1 << j)
    route = _next_route(extension, todo, proposals, proposals[ROUTE])
    yield _taken(Arrays({**dict(proposals.items()), TODO: todo, ROUTE: route}), kept)


def _next_route(
    extension: Extension, todo: Ints, vertices: dict[str, Ints] | Arrays, here: Ints
) -> Ints:
    """The key of a constraint still to test, or `here`, where the record is, if there is none."""
    route = here
    for j, constraint in reversed(list(enumerate(extension.step.constraints))):
        route = np.where(todo >> j & 1, vertices[column(constraint.key)], route)
    return route


# Conditions that are no constraints.


def test(condition: Filter, graph: Graph, prefixes: Arrays) -> Pieces:
    """Keep the prefixes in which an edge is there, or is absent; at the source's worker."""
    sources, targets = prefixes[column(condition.source)], prefixes[column(condition.target)]
    found = _are_edges(graph.adjacency("forward"), sources, targets)
    yield _taken(prefixes, found != condition.absent)


def number_of(records: Arrays) -> Arrays:
    """The number of records in place of the records."""
    return Arrays({MATCHES: np.array([len(records)])})


def selected(records: Arrays, names: Iterable[str]) -> Arrays:
    """The columns `names` of `records`, without a copy."""
    return Arrays({name: records[name] for name in names})


# What they share.


def _are_edges(adjacency: Adjacency, keys: Ints, values: Ints) -> Bools:
    begins, ends = adjacency.spans(keys)
    return are_members(adjacency.values, begins, ends, settled(values))


def _stacked(prefixes: Arrays, vertices: tuple[int, ...]) -> Ints:
    stacked = np.empty((len(vertices), len(prefixes)), np.int64)
    for i, vertex in enumerate(vertices):
        stacked[i] = prefixes[column(vertex)]
    return stacked


def _taken(records: Arrays, which: Ints | Bools) -> Arrays:
    if which.dtype == np.bool_ and which.all():
        return records
    return Arrays({name: values[which] for name, values in records.items()})
