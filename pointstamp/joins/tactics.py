"""The work of a join on one batch of prefixes: count, propose, validate, test.

A prefix is a match of the vertices bound so far, a record of int64 columns `v0`,
`v1`, ... by vertex number. A step binds one more vertex, whose value must be in
k lists of neighbours, one for each constraint:

- *count* visits the lists' workers and remembers which list is the shortest;
- *propose* attaches to each prefix its shortest list, at the list's worker, to be
  carried to the next one (`carried.py`);
- *extend* makes a record of each item that is in the carried list and in those at
  the present worker;
- *validate* visits the workers of the rest, and drops what is not there.

Where all the lists of a prefix are at one worker, as with one worker they always
are, *extend* does it all, and nothing is proposed in vain. A record on its way
has beside its vertices

- `route`, a vertex whose worker it must go to next (or stays with), and
- `least` and `key`, while it is counted, the length of the shortest list so far
  and the vertex of the motif that it is a list of, or
- `todo`, once it is extended, a bit for each constraint not tested yet.

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
from pointstamp.joins.carried import LIST, Carried
from pointstamp.joins.plan import Direction, Filter, Step
from pointstamp.kernels import intersect
from pointstamp.kernels.hashing import settled
from pointstamp.kernels.intersect import FIRST, are_members
from pointstamp.kernels.lists import Numbers

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pieces = Iterator[Arrays | None]

READ_BUDGET = 4_000_000
"""How many neighbours may be read before control is given back: some 10 ms."""

ROUTE, LEAST, KEY, TODO, MATCHES = "route", "least", "key", "todo", "matches"

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
    none = np.zeros(n, np.int64)
    return Arrays({**dict(prefixes.items()), LEAST: np.full(n, _MOST), KEY: none, ROUTE: none})


def count(extension: Extension, key: int, graph: Graph, prefixes: Arrays) -> Pieces:
    """See how long the lists of vertex `key` are; drop prefixes for which one is empty.

    `least` becomes the shortest length so far, `key` and `route` whose list it is.
    """
    least, keys, route = prefixes[LEAST], prefixes[KEY], prefixes[ROUTE]
    vertices = prefixes[column(key)]
    for constraint in extension.step.constraints:
        if constraint.key == key:
            begins, ends = graph.adjacency(constraint.direction).spans(vertices)
            shorter = ends - begins < least
            least = np.where(shorter, ends - begins, least)
            keys = np.where(shorter, key, keys)
            route = np.where(shorter, vertices, route)
    columns = {**dict(prefixes.items()), LEAST: least, KEY: keys, ROUTE: route}
    yield _taken(Arrays(columns), least > 0)


# Propose.


def propose(
    extension: Extension, graph: Graph, prefixes: Arrays, room: int
) -> Iterator[Carried | None]:
    """Prefixes with what is in all lists of their key, on their way to the next key's worker.

    What has all its lists here stays, and carries none. Prefixes of equal key share
    one list; so that they are in one piece, prefixes are put in the order of keys.
    A piece has lists of about `room` items, or one list that is longer.
    """
    if not len(prefixes):
        return
    prefixes = _taken(prefixes, np.lexsort((prefixes[ROUTE], prefixes[KEY])))
    away = _away(extension, graph, prefixes, prefixes[KEY])
    begins_group = _changes(prefixes[KEY]) | _changes(prefixes[ROUTE])
    groups = np.flatnonzero(begins_group)
    group_of = np.cumsum(begins_group) - 1
    carried = np.logical_or.reduceat(away != 0, groups)
    n_items = np.where(carried, prefixes[LEAST][groups], 0)
    cuts = np.flatnonzero(_changes((np.cumsum(n_items) - n_items) // room))
    for start, stop in zip(cuts, np.append(cuts[1:], len(groups)), strict=True):
        own = carried[start:stop]
        starts, values = _lists_of_keys(extension, graph, _taken(prefixes, groups[start:stop][own]))
        which = slice(groups[start], groups[stop] if stop < len(groups) else len(prefixes))
        columns = {name: values_[which] for name, values_ in prefixes.items()}
        numbers = (np.cumsum(own) - 1)[group_of[which] - start]
        columns[LIST] = np.where(away[which] != 0, numbers, -1)
        columns[ROUTE] = _next_route(extension, away[which], columns, columns[ROUTE])
        yield Carried(Arrays(columns), starts, values)


def _changes(values: Ints) -> Bools:
    """Whether each value differs from the one before it; the first one does."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _lists_of_keys(extension: Extension, graph: Graph, groups: Arrays) -> tuple[Ints, Ints]:
    """For each record what is in all lists of the vertex `key`, end to end."""
    lists = _lists(extension, graph, groups)
    for j, constraint in enumerate(extension.step.constraints):
        lists.ends[j][groups[KEY] != constraint.key] = _UNKNOWN
    room = int(groups[LEAST].sum()) + 1
    parents, found = np.empty(room, np.int64), np.empty(room, np.int32)
    bound = np.empty((0, len(groups)), np.int32)
    at, resume, n_found = 0, FIRST, 0
    while at < len(groups):
        n, at, resume = _extend(
            graph, lists, bound, at, resume, False, parents[n_found:], found[n_found:]
        )
        n_found += n
    starts = np.searchsorted(parents[:n_found], np.arange(len(groups) + 1))
    return starts, graph.ids[found[:n_found]]


# Extend.

Part = Literal["all", "here", "away"]
"""Which prefixes: every one, those that no list is missing for, or the others."""


@dataclass(frozen=True)
class _Lists:
    """The lists of a batch of prefixes, as `kernels.intersect.extend` wants them."""

    pool_of: npt.NDArray[np.int8]
    begins: Ints
    ends: Ints
    carried: Numbers


def extend(
    extension: Extension, graph: Graph, batch: Arrays | Carried, room: int, part: Part = "all"
) -> Pieces:
    """Prefixes extended by what is in all their lists, carried or at this worker.

    Arrays have all their lists here; of a carried batch with lists of three keys or
    more, some may be missing: its pieces have columns `route` and `todo`. At most
    `room` records per piece; a cursor goes on where the last one stopped.
    """
    prefixes, lists, away = _of_part(part, *_met(extension, graph, batch))
    with_todo = _may_miss(extension, batch)
    bound = _stacked(graph, prefixes, extension.bound)
    at, resume = 0, FIRST
    parents, found = np.empty(room, np.int64), np.empty(room, np.int32)
    while at < len(prefixes):
        n, at, resume = _extend(graph, lists, bound, at, resume, False, parents, found)
        if n == 0:
            yield None
            continue
        columns = {column(v): prefixes[column(v)][parents[:n]] for v in extension.kept}
        columns[column(extension.step.vertex)] = graph.ids[found[:n]]
        if with_todo:
            todo, here = away[parents[:n]], prefixes[ROUTE][parents[:n]]
            columns |= {TODO: todo, ROUTE: _next_route(extension, todo, columns, here)}
        yield Arrays(columns)


def count_matches(
    extension: Extension, graph: Graph, batch: Arrays | Carried, part: Part = "all"
) -> Pieces:
    """How many records `extend` would give, without making them: pieces of one number."""
    prefixes, lists, _ = _of_part(part, *_met(extension, graph, batch))
    bound = _stacked(graph, prefixes, extension.bound)
    room, found = np.empty(4096, np.int64), np.empty(4096, np.int32)
    at, resume = 0, FIRST
    while at < len(prefixes):
        n, at, resume = _extend(graph, lists, bound, at, resume, True, room, found)
        yield Arrays({MATCHES: np.array([n])})


def _may_miss(extension: Extension, batch: Arrays | Carried) -> bool:
    return isinstance(batch, Carried) and len(extension.keys) > 2


def _met(
    extension: Extension, graph: Graph, batch: Arrays | Carried
) -> tuple[Arrays, _Lists, Ints]:
    """Prefixes, the lists that meet here, and a bit for each constraint whose list does not."""
    if isinstance(batch, Arrays):
        return batch, _lists(extension, graph, batch), np.zeros(len(batch), np.int64)
    prefixes, numbers = batch.prefixes, batch.prefixes[LIST]
    key = np.where(numbers < 0, _UNKNOWN, prefixes[KEY])
    away = _away(extension, graph, prefixes, key)
    lists = _lists(extension, graph, prefixes)
    for j, constraint in enumerate(extension.step.constraints):
        lists.ends[j][(away >> j & 1).astype(np.bool_) | (key == constraint.key)] = _UNKNOWN
    starts, carried = _as_numbers(graph, batch)
    begins = np.where(numbers < 0, 0, starts[numbers])
    ends = np.where(numbers < 0, _UNKNOWN, starts[numbers + 1])
    with_carried = _Lists(
        np.append(lists.pool_of, np.int8(2)),
        np.vstack([lists.begins, begins]),
        np.vstack([lists.ends, ends]),
        carried,
    )
    return prefixes, with_carried, away


def _as_numbers(graph: Graph, batch: Carried) -> tuple[Ints, Numbers]:
    """The lists that came along, without vertices that are in no list here."""
    numbers = graph.numbers_of(batch.values)
    known = numbers >= 0
    n_known = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(known, out=n_known[1:])
    return n_known[batch.starts], numbers[known]


def _away(extension: Extension, graph: Graph, prefixes: Arrays, key: Ints) -> Ints:
    """A bit for each constraint, of other keys than `key`, whose list is at another worker."""
    away = np.zeros(len(prefixes), np.int64)
    for j, constraint in enumerate(extension.step.constraints):
        elsewhere = (key != constraint.key) & ~graph.owns(prefixes[column(constraint.key)])
        away |= elsewhere.astype(np.int64) << j
    return away


def _lists(extension: Extension, graph: Graph, prefixes: Arrays) -> _Lists:
    constraints = extension.step.constraints
    begins = np.empty((len(constraints), len(prefixes)), np.int64)
    ends = np.empty_like(begins)
    for j, constraint in enumerate(constraints):
        vertices = prefixes[column(constraint.key)]
        begins[j], ends[j] = graph.adjacency(constraint.direction).spans(vertices)
    pool_of = np.array([c.direction == "reverse" for c in constraints], np.int8)
    return _Lists(pool_of, begins, ends, np.empty(0, np.int32))


def _of_part(
    part: Part, prefixes: Arrays, lists: _Lists, away: Ints
) -> tuple[Arrays, _Lists, Ints]:
    if part == "all":
        return prefixes, lists, away
    chosen = np.flatnonzero((away == 0) if part == "here" else (away != 0))
    begins, ends = lists.begins.take(chosen, 1), lists.ends.take(chosen, 1)
    some = _Lists(lists.pool_of, begins, ends, lists.carried)
    return _taken(prefixes, chosen), some, away[chosen]


def _extend(
    graph: Graph,
    lists: _Lists,
    bound: Numbers,
    at: int,
    resume: int,
    counting: bool,
    parents: Ints,
    found: Numbers,
) -> tuple[int, int, int]:
    return intersect.extend(
        graph.adjacency("forward").values,
        graph.adjacency("reverse").values,
        settled(lists.carried),
        lists.pool_of,
        lists.begins,
        lists.ends,
        bound,
        graph.marks,
        at,
        resume,
        READ_BUDGET,
        counting,
        parents,
        found,
    )


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
            kept[asked] = _are_edges(graph, constraint.direction, keys[asked], values[asked])
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
    found = _are_edges(graph, "forward", sources, targets)
    yield _taken(prefixes, found != condition.absent)


def number_of(records: Arrays) -> Arrays:
    """The number of records in place of the records."""
    return Arrays({MATCHES: np.array([len(records)])})


def selected(records: Arrays, names: Iterable[str]) -> Arrays:
    """The columns `names` of `records`, without a copy."""
    return Arrays({name: records[name] for name in names})


# What they share.


def _are_edges(graph: Graph, direction: Direction, keys: Ints, values: Ints) -> Bools:
    adjacency = graph.adjacency(direction)
    begins, ends = adjacency.spans(keys)
    return are_members(adjacency.values, begins, ends, settled(graph.numbers_of(values)))


def _stacked(graph: Graph, prefixes: Arrays, vertices: tuple[int, ...]) -> Numbers:
    stacked = np.empty((len(vertices), len(prefixes)), np.int32)
    for i, vertex in enumerate(vertices):
        stacked[i] = graph.numbers_of(prefixes[column(vertex)])
    return stacked


def _taken(records: Arrays, which: Ints | Bools) -> Arrays:
    if which.dtype == np.bool_ and which.all():
        return records
    return Arrays({name: values[which] for name, values in records.items()})
