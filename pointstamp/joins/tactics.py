"""The work of a join on one batch of prefixes: count, propose, validate, test.

A prefix is a match of the vertices bound so far, a record of int64 columns `v0`,
`v1`, ... by vertex number. A step binds one more vertex, whose value must be in
k lists of neighbours, one for each constraint:

- *count* visits the lists' workers and remembers which list is the shortest;
- *propose* attaches to each prefix its shortest list, at a worker that has it, to be
  candidates to the next one (`candidates.py`), if there is one that is not there, too;
- *extend* makes a record of each item that is in the candidates list and in those at
  the present worker;
- *validate* visits the workers of the rest, and drops what is not there.

Where all the lists of a prefix are at the worker that it is at, as with one worker
they always are, *extend* does it all, and nothing is proposed in vain. Where all are
long, so that every worker knows them (`replicated_lists.py`), each worker takes a part of the
shortest one, lest a hub's worker work alone: the prefix goes to all of them.

A record on its way has beside its vertices

- `route`, the worker that it must go to next (or stays with), and
- `todo`, a bit for each constraint not counted yet, or once it is extended, not
  tested yet, and
- `least` and `key`, while it is counted, the length of the shortest list so far
  and the vertex of the motif that it is a list of, and
- `part`, once it is proposed: the part of that list that it is for, or -1 for all.

These are generators over arrays: a batch in, pieces of at most the size asked
for out, and None where much was read and nothing was found. They know nothing of
streams, times or workers (`join_operators.py` drives them).

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
from pointstamp.joins.adjacency import Adjacency, IndexedGraph
from pointstamp.joins.candidates import LIST, PrefixesWithCandidates
from pointstamp.joins.plan import Direction, Filter, PlanStep
from pointstamp.kernels import intersect
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.intersect import FIRST, are_members
from pointstamp.kernels.lists import Numbers

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pieces = Iterator[Arrays | None]

READ_BUDGET = 4_000_000
"""How many neighbours may be read before control is given back: some 10 ms."""

LEAST, KEY, TODO, PART, MATCHES = "least", "key", "todo", "part", "matches"

ROUTE = "route"
"""The column that has the number of the worker that a prefix goes to next."""

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
    step : PlanStep
    bound : vertices that the new one must differ from; () where it need not
    kept : vertices bound before that someone still asks for
    """

    step: PlanStep
    bound: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()

    @property
    def keys(self) -> tuple[int, ...]:
        """The vertices whose lists constrain the new one, each once, in the plan's order."""
        return tuple(dict.fromkeys(c.key for c in self.step.constraints))

    @property
    def directions(self) -> frozenset[Direction]:
        """Those of the lists that constrain it."""
        return frozenset(c.direction for c in self.step.constraints)


def seeds(first: int, adjacency: Adjacency) -> Pieces:
    """The prefixes of one vertex: all keys of an index."""
    yield Arrays({column(first): adjacency.keys})


# Count.


def uncounted(extension: Extension, prefixes: Arrays) -> Arrays:
    """Prefixes made ready to be counted."""
    n, n_constraints = len(prefixes), len(extension.step.constraints)
    none = np.zeros(n, np.int64)
    return Arrays(
        {
            **dict(prefixes.items()),
            LEAST: np.full(n, _MOST),
            KEY: none,
            TODO: np.full(n, (1 << n_constraints) - 1),
            ROUTE: none,
        }
    )


def count(extension: Extension, graph: IndexedGraph, prefixes: Arrays) -> Pieces:
    """See how long the lists here are; drop prefixes for which one is empty.

    `least` becomes the shortest length so far, `key` whose list it is; `route` leads
    to a worker of a list not counted yet, or when there is none, of the shortest.
    """
    if not prefixes[TODO].any():
        yield prefixes
        return
    if graph.has_all(extension.directions):  # no worker has to be asked, so nothing is looked up
        n = len(prefixes)
        stay = _with(prefixes, ROUTE, np.full(n, graph.index))
        yield _with(stay, TODO, np.zeros(n, np.int64))
        return
    yield _counted(extension, graph, prefixes)


def _counted(extension: Extension, graph: IndexedGraph, prefixes: Arrays) -> Arrays:
    least, keys, todo = prefixes[LEAST], prefixes[KEY], prefixes[TODO]
    at_key = np.full(len(prefixes), graph.index)
    for key in extension.keys:
        vertices = prefixes[column(key)]
        here, owners = has_lists(extension, graph, key, vertices), graph.owners(vertices)
        for j, constraint in enumerate(extension.step.constraints):
            if constraint.key != key:
                continue
            begins, ends = graph.adjacency(constraint.direction).spans(vertices)
            shorter = here & (ends - begins < least) & (todo >> j & 1 > 0)
            least = np.where(shorter, ends - begins, least)
            keys = np.where(shorter, key, keys)
            todo = np.where(here, todo & ~(1 << j), todo)
        at_key = np.where((keys == key) & ~here, owners, np.where(keys == key, graph.index, at_key))
    route = next_route(extension, graph, todo, prefixes, at_key)
    columns = {**dict(prefixes.items()), LEAST: least, KEY: keys, TODO: todo, ROUTE: route}
    return _taken(Arrays(columns), least > 0)


def has_lists(extension: Extension, graph: IndexedGraph, key: int, vertices: Ints) -> Bools:
    """Whether all lists that constrain the new vertex by vertex `key` are here."""
    here = np.ones(len(vertices), np.bool_)
    for constraint in extension.step.constraints:
        if constraint.key == key:
            here &= graph.has(constraint.direction, vertices)
    return here


# Propose.

SPREAD = 4096
"""From how many neighbours on a list that every worker knows is worth sharing out."""


def propose(
    extension: Extension, graph: IndexedGraph, prefixes: Arrays, room: int
) -> Iterator[PrefixesWithCandidates | None]:
    """Prefixes with what is in all lists of their key, on their way to the next key's worker.

    What has all its lists here stays, and carries none; or goes to all workers, if all
    its lists are long and known to them. Prefixes of equal key share one list; so that
    they are in one piece, prefixes are put in the order of keys. A piece has lists of
    about `room` items, or one list that is longer.
    """
    if not len(prefixes):
        return
    prefixes = _with(prefixes, PART, np.full(len(prefixes), -1))
    if graph.has_all(extension.directions):
        yield from _at_hand(extension, graph, prefixes)
        return
    away = _away(extension, graph, prefixes, prefixes[KEY])
    spread = (away == 0) & _spread(extension, graph, prefixes)
    if spread.any():
        yield _without_lists(_for_all(graph, _taken(prefixes, spread)))
    here = (away == 0) & ~spread
    if here.any():
        stay = np.full(int(here.sum()), graph.index)
        yield _without_lists(_with(_taken(prefixes, here), ROUTE, stay))
    if away.any():
        yield from _with_candidates(extension, graph, _taken(prefixes, away != 0), room)


def _at_hand(
    extension: Extension, graph: IndexedGraph, prefixes: Arrays
) -> Iterator[PrefixesWithCandidates]:
    """Prefixes of a graph of which all workers have all: as they are, but for the long ones."""
    long = np.arange(len(prefixes))
    for constraint in extension.step.constraints:
        if graph.longest(constraint.direction) < SPREAD:
            long = long[:0]
        if len(long):
            vertices = prefixes[column(constraint.key)][long]
            begins, ends = graph.adjacency(constraint.direction).spans(vertices)
            long = long[ends - begins >= SPREAD]
    if len(long):
        ones = np.full(len(long), (1 << len(extension.step.constraints)) - 1)
        counted = _counted(extension, graph, _with(_taken(prefixes, long), TODO, ones))
        yield _without_lists(_for_all(graph, counted))
        prefixes = _taken(prefixes, np.delete(np.arange(len(prefixes)), long))
    if len(prefixes):
        yield _without_lists(prefixes)


def _spread(extension: Extension, graph: IndexedGraph, prefixes: Arrays) -> Bools:
    """Which prefixes have nothing but long lists, which all workers have."""
    long = (prefixes[LEAST] >= SPREAD) & (graph.peers > 1)
    for constraint in extension.step.constraints if long.any() else ():
        begins, ends = graph.adjacency(constraint.direction).spans(prefixes[column(constraint.key)])
        long &= graph.all_have(constraint.direction, ends - begins)
    return long


def _for_all(graph: IndexedGraph, prefixes: Arrays) -> Arrays:
    """A prefix for each worker in place of each."""
    columns = {name: np.tile(values, graph.peers) for name, values in prefixes.items()}
    workers = np.repeat(np.arange(graph.peers), len(prefixes))
    return Arrays({**columns, ROUTE: workers, PART: workers})


def _without_lists(prefixes: Arrays) -> PrefixesWithCandidates:
    none = np.full(len(prefixes), -1)
    return PrefixesWithCandidates(
        _with(prefixes, LIST, none), np.zeros(1, np.int64), np.empty(0, np.int64)
    )


def _with_candidates(
    extension: Extension, graph: IndexedGraph, prefixes: Arrays, room: int
) -> Iterator[PrefixesWithCandidates | None]:
    """Prefixes that miss a list here, with the lists of their keys."""
    prefixes = _taken(prefixes, np.lexsort((_key_vertices(prefixes), prefixes[KEY])))
    away = _away(extension, graph, prefixes, prefixes[KEY])
    begins_group = _changes(prefixes[KEY]) | _changes(_key_vertices(prefixes))
    groups = np.flatnonzero(begins_group)
    group_of = np.cumsum(begins_group) - 1
    n_items = prefixes[LEAST][groups]
    cuts = np.flatnonzero(_changes((np.cumsum(n_items) - n_items) // room))
    for start, stop in zip(cuts, np.append(cuts[1:], len(groups)), strict=True):
        starts, values = _lists_of_keys(extension, graph, _taken(prefixes, groups[start:stop]))
        which = slice(groups[start], groups[stop] if stop < len(groups) else len(prefixes))
        columns = {name: values_[which] for name, values_ in prefixes.items()}
        columns[LIST] = group_of[which] - start
        here = np.full(len(columns[LIST]), graph.index)
        columns[ROUTE] = next_route(extension, graph, away[which], columns, here)
        yield PrefixesWithCandidates(Arrays(columns), starts, values)


def _key_vertices(prefixes: Arrays) -> Ints:
    """The vertex whose list each prefix is to be extended by."""
    vertices = np.zeros(len(prefixes), np.int64)
    for key in np.unique(prefixes[KEY]).tolist():
        vertices = np.where(prefixes[KEY] == key, prefixes[column(key)], vertices)
    return vertices


def _changes(values: Ints) -> Bools:
    """Whether each value differs from the one before it; the first one does."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _lists_of_keys(extension: Extension, graph: IndexedGraph, groups: Arrays) -> tuple[Ints, Ints]:
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
    candidates: Numbers


def extend(
    extension: Extension,
    graph: IndexedGraph,
    batch: Arrays | PrefixesWithCandidates,
    room: int,
    part: Part = "all",
) -> Pieces:
    """Prefixes extended by what is in all their lists, candidates or at this worker.

    Arrays have all their lists here; of a candidates batch with lists of three keys or
    more, some may be missing: its pieces have columns `route` and `todo`. At most
    `room` records per piece; a cursor goes on where the last one stopped.
    """
    prefixes, lists, away = _of_part(part, *_met(extension, graph, batch))
    with_todo = graph.peers > 1 and len(extension.keys) > 2
    bound = _stacked(graph, prefixes, extension.bound)
    at, resume = 0, FIRST
    parents, found = np.empty(room, np.int64), np.empty(room, np.int32)
    while at < len(prefixes):
        n, at, resume = _extend(graph, lists, bound, at, resume, False, parents, found)
        if n == 0:
            yield None
            continue
        columns = {column(v): prefixes[column(v)].take(parents[:n]) for v in extension.kept}
        columns[column(extension.step.vertex)] = graph.ids.take(found[:n])
        if with_todo:
            todo, here = away[parents[:n]], np.full(n, graph.index)
            columns |= {TODO: todo, ROUTE: next_route(extension, graph, todo, columns, here)}
        yield Arrays(columns)


def count_matches(
    extension: Extension,
    graph: IndexedGraph,
    batch: Arrays | PrefixesWithCandidates,
    part: Part = "all",
) -> Pieces:
    """How many records `extend` would give, without making them: pieces of one number."""
    prefixes, lists, _ = _of_part(part, *_met(extension, graph, batch))
    bound = _stacked(graph, prefixes, extension.bound)
    room, found = np.empty(4096, np.int64), np.empty(4096, np.int32)
    at, resume = 0, FIRST
    while at < len(prefixes):
        n, at, resume = _extend(graph, lists, bound, at, resume, True, room, found)
        yield Arrays({MATCHES: np.array([n])})


def _met(
    extension: Extension, graph: IndexedGraph, batch: Arrays | PrefixesWithCandidates
) -> tuple[Arrays, _Lists, Ints | None]:
    """Prefixes, the lists that meet here, and a bit for each constraint whose list does not.

    None if all meet here.
    """
    # Both are of joins alone, and no kind of a user's comes here.
    if isinstance(batch, Arrays):
        return batch, _lists(extension, graph, batch), None
    prefixes, numbers = batch.prefixes, batch.prefixes[LIST]
    if graph.has_all(extension.directions) and (prefixes[PART] < 0).all():
        return prefixes, _lists(extension, graph, prefixes), None
    key = np.where(numbers < 0, _UNKNOWN, prefixes[KEY])
    away = _away(extension, graph, prefixes, key)
    lists = _lists(extension, graph, prefixes)
    for j, constraint in enumerate(extension.step.constraints):
        lists.ends[j][(away >> j & 1).astype(np.bool_) | (key == constraint.key)] = _UNKNOWN
    _cut(extension, graph, lists, prefixes)
    starts, candidates = _as_numbers(graph, batch)
    begins = np.where(numbers < 0, 0, starts[numbers])
    ends = np.where(numbers < 0, _UNKNOWN, starts[numbers + 1])
    with_carried = _Lists(
        np.append(lists.pool_of, np.int8(2)),
        np.vstack([lists.begins, begins]),
        np.vstack([lists.ends, ends]),
        candidates,
    )
    return prefixes, with_carried, away


def _cut(extension: Extension, graph: IndexedGraph, lists: _Lists, prefixes: Arrays) -> None:
    """Of prefixes that all workers have, leave this worker's part of a list of their key."""
    parts, size = prefixes[PART], lists.ends - lists.begins
    uncut = parts < 0
    if uncut.all():
        return
    for j, constraint in enumerate(extension.step.constraints):
        cut = ~uncut & (prefixes[KEY] == constraint.key)
        begins = lists.begins[j][cut]
        lists.begins[j][cut] = begins + size[j][cut] * parts[cut] // graph.peers
        lists.ends[j][cut] = begins + size[j][cut] * (parts[cut] + 1) // graph.peers
        uncut |= cut


def _as_numbers(graph: IndexedGraph, batch: PrefixesWithCandidates) -> tuple[Ints, Numbers]:
    """The lists that came along, without vertices that are in no list here."""
    numbers = graph.numbers_of(batch.values)
    known = numbers >= 0
    n_known = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(known, out=n_known[1:])
    return n_known[batch.starts], numbers[known]


def _away(extension: Extension, graph: IndexedGraph, prefixes: Arrays, key: Ints) -> Ints:
    """A bit for each constraint, of other keys than `key`, whose list is at another worker."""
    away = np.zeros(len(prefixes), np.int64)
    here = {k: has_lists(extension, graph, k, prefixes[column(k)]) for k in extension.keys}
    for j, constraint in enumerate(extension.step.constraints):
        elsewhere = (key != constraint.key) & ~here[constraint.key]
        away |= elsewhere.astype(np.int64) << j
    return away


def _lists(extension: Extension, graph: IndexedGraph, prefixes: Arrays) -> _Lists:
    constraints = extension.step.constraints
    begins = np.empty((len(constraints), len(prefixes)), np.int64)
    ends = np.empty_like(begins)
    for j, constraint in enumerate(constraints):
        vertices = prefixes[column(constraint.key)]
        begins[j], ends[j] = graph.adjacency(constraint.direction).spans(vertices)
    pool_of = np.array([c.direction == "reverse" for c in constraints], np.int8)
    return _Lists(pool_of, begins, ends, np.empty(0, np.int32))


def _of_part(
    part: Part, prefixes: Arrays, lists: _Lists, away: Ints | None
) -> tuple[Arrays, _Lists, Ints]:
    if away is None:
        away = np.zeros(len(prefixes), np.int64)
        if part == "here":
            return prefixes, lists, away
    if part == "all":
        return prefixes, lists, away
    chosen = np.flatnonzero((away == 0) if part == "here" else (away != 0))
    begins, ends = lists.begins.take(chosen, 1), lists.ends.take(chosen, 1)
    some = _Lists(lists.pool_of, begins, ends, lists.candidates)
    return _taken(prefixes, chosen), some, away[chosen]


def _extend(
    graph: IndexedGraph,
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
        contiguous(lists.candidates),
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


def validate(extension: Extension, graph: IndexedGraph, proposals: Arrays) -> Pieces:
    """Test the constraints in `todo` whose lists are here; drop what fails one."""
    if not proposals[TODO].any():
        yield proposals
        return
    todo = proposals[TODO].copy()
    kept = np.ones(len(proposals), np.bool_)
    values = proposals[column(extension.step.vertex)]
    for j, constraint in enumerate(extension.step.constraints):
        keys = proposals[column(constraint.key)]
        here = graph.has(constraint.direction, keys)
        asked = np.flatnonzero((todo >> j & 1).astype(np.bool_) & kept & here)
        if len(asked):
            kept[asked] = _are_edges(graph, constraint.direction, keys[asked], values[asked])
            todo[asked] &= ~(1 << j)
    stay = np.full(len(proposals), graph.index)
    route = next_route(extension, graph, todo, proposals, stay)
    yield _taken(Arrays({**dict(proposals.items()), TODO: todo, ROUTE: route}), kept)


def next_route(
    extension: Extension,
    graph: IndexedGraph,
    todo: Ints,
    vertices: dict[str, Ints] | Arrays,
    else_: Ints,
) -> Ints:
    """The worker of a list of `todo`, or `else_` if there is none."""
    route = else_
    for j, constraint in reversed(list(enumerate(extension.step.constraints))):
        missing = (todo >> j & 1).astype(np.bool_)
        if missing.any():
            route = np.where(missing, graph.owners(vertices[column(constraint.key)]), route)
    return route


# Conditions that are no constraints.


def test(condition: Filter, graph: IndexedGraph, prefixes: Arrays) -> Pieces:
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


def _are_edges(graph: IndexedGraph, direction: Direction, keys: Ints, values: Ints) -> Bools:
    adjacency = graph.adjacency(direction)
    begins, ends = adjacency.spans(keys)
    return are_members(adjacency.values, begins, ends, contiguous(graph.numbers_of(values)))


def _stacked(graph: IndexedGraph, prefixes: Arrays, vertices: tuple[int, ...]) -> Numbers:
    stacked = np.empty((len(vertices), len(prefixes)), np.int32)
    for i, vertex in enumerate(vertices):
        stacked[i] = graph.numbers_of(prefixes[column(vertex)])
    return stacked


def _with(records: Arrays, name: str, values: Ints) -> Arrays:
    return Arrays({**dict(records.items()), name: values})


def _taken(records: Arrays, which: Ints | Bools) -> Arrays:
    if which.dtype == np.bool_ and which.all():
        return records
    return Arrays({name: values[which] for name, values in records.items()})
