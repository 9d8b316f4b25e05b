"""Triangles of a graph that changes: which appear and which vanish with each change.

A triangle a -> b -> c with a -> c is three edges, so a change of an edge can be its first, its
second or its third. There is a query for each case, which starts from the changed edges:
the neighbours of one end propose the third vertex, and the neighbours of another vertex
confirm it. So that a triangle of which several edges change is found once, a query sees
the earlier edges as they are after the epoch and the later ones as they were before it.

    python examples/changing_motifs.py [VERTICES [EDGES [EPOCHS [WORKERS]]]]
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pointstamp as ps

Edge: TypeAlias = tuple[int, int]
Triangle: TypeAlias = tuple[int, int, int]
Update: TypeAlias = tuple[Any, int]
"""An edge, the triangle that it may be of, or one; and whether it comes (+1) or goes (-1)."""

Logic = Callable[[ps.Input, ps.Input, ps.Output, ps.Notificator], None]
OUT, IN = 0, 1


def look_up(
    prefixes: ps.Stream[Update],
    edges: ps.Stream[Update],
    key: Callable[[Any], int],
    end: int,
    then: Callable[[Any, set[int]], Iterable[Any]],
    *,
    after: bool,
) -> ps.Stream[Update]:
    """`then(prefix, neighbours)` for each prefix, with the neighbours of the vertex `key(prefix)`.

    Those that it has edges to (`end` is OUT) or from (IN), after the changes of the
    epoch or before them.
    """

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
        capability.drop()
        neighbours: dict[int, set[int]] = defaultdict(set)
        asked: dict[int, list[Update]] = defaultdict(list)
        changes: dict[int, list[Update]] = defaultdict(list)

        def change(time: int) -> None:
            for edge, diff in changes.pop(time, ()):
                others = neighbours[edge[end]]
                others.add(edge[1 - end]) if diff > 0 else others.remove(edge[1 - end])

        def logic(
            prefixes: ps.Input, edges: ps.Input, output: ps.Output, notificator: ps.Notificator
        ) -> None:
            for input, held in ((prefixes, asked), (edges, changes)):
                for time, batch in input:
                    held[time.time].extend(batch)
                    notificator.notify_at(time.retain())
            for cap in notificator:
                with cap, output.session(cap) as session:
                    if after:
                        change(cap.time)
                    for prefix, diff in asked.pop(cap.time, ()):
                        found = then(prefix, neighbours.get(key(prefix), set()))
                        session.give_many((match, diff) for match in found)
                    change(cap.time)

        return logic

    pacts = ps.Exchange(lambda update: key(update[0])), ps.Exchange(lambda update: update[0][end])
    return prefixes.binary_notify(edges, *pacts, "LookUp", build)


def triangles(edges: ps.Stream[Update]) -> ps.Stream[Update]:
    """The triangles (a, b, c) that come and go with the edges."""
    # What changes is a -> b, and b -> c and a -> c are as they were; so for the others.
    ab_c = look_up(edges, edges, lambda ab: ab[1], OUT, with_c, after=False)
    first = look_up(ab_c, edges, lambda abc: abc[0], OUT, if_c, after=False)
    bc_a = look_up(edges, edges, lambda bc: bc[0], IN, with_a, after=True)
    second = look_up(bc_a, edges, lambda abc: abc[0], OUT, if_c, after=False)
    ac_b = look_up(edges, edges, lambda ac: ac[0], OUT, with_b, after=True)
    third = look_up(ac_b, edges, lambda abc: abc[1], OUT, if_c, after=True)
    # A triangle may come by one of its edges and go by another: what is left is told.
    found = first.concat(second, third)
    changes = found.aggregate(lambda abc, diff, total: total + diff, default=0)
    return changes.filter(lambda update: update[1] != 0)


def with_a(bc: Edge, found: set[int]) -> list[Triangle]:
    return [(a, *bc) for a in found]


def with_b(ac: Edge, found: set[int]) -> list[Triangle]:
    return [(ac[0], b, ac[1]) for b in found]


def with_c(ab: Edge, found: set[int]) -> list[Triangle]:
    return [(*ab, c) for c in found]


def if_c(abc: Triangle, found: set[int]) -> list[Triangle]:
    return [abc] if abc[2] in found else []


def epochs(n_vertices: int, n_edges: int, n_epochs: int) -> list[list[Update]]:
    """At first random edges; then at each epoch a tenth of them go and as many come."""
    draw = random.Random(5)
    pairs = [(a, b) for a in range(n_vertices) for b in range(n_vertices) if a != b]
    present = draw.sample(pairs, n_edges)
    result: list[list[Update]] = [[(edge, +1) for edge in present]]
    for _ in range(n_epochs - 1):
        gone = draw.sample(present, n_edges // 10)
        come = draw.sample(sorted({*pairs} - {*present}), n_edges // 10)
        present = sorted({*present, *come} - {*gone})
        result.append([(edge, -1) for edge in gone] + [(edge, +1) for edge in come])
    return result


def watch(worker: ps.Worker, epochs: list[list[Update]]) -> list[tuple[int, Update]]:
    """(epoch, update) of the triangles found here."""
    found: list[tuple[int, Update]] = []
    with worker.dataflow("motifs") as scope:
        input, edges = scope.new_input("edges")
        triangles(edges).inspect_batch(lambda time, batch: found.extend((time, u) for u in batch))
    for epoch, updates in enumerate(epochs):
        input.send_batch(updates[worker.index :: worker.peers])
        input.advance_to(epoch + 1)
        worker.step()
    input.close()
    worker.run()
    return found


def main(n_vertices: int = 50, n_edges: int = 500, n_epochs: int = 4, workers: int = 2) -> None:
    changes = epochs(n_vertices, n_edges, n_epochs)
    found = [update for part in ps.execute(watch, changes, workers=workers) for update in part]
    n_present = 0
    for epoch in range(n_epochs):
        diffs = [diff for at, (_, diff) in found if at == epoch]
        n_present += sum(diffs)
        print(
            f"epoch {epoch}: {len(changes[epoch])} edges change, {diffs.count(1)} triangles "
            f"appear and {diffs.count(-1)} vanish: {n_present}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
