"""PageRank of a graph whose edges come and go: an epoch costs what it changes.

Ranks are worked out in rounds, each from the ranks of the round before. A vertex keeps its
rank of every round, and tells a neighbour by how much what it gives to it has changed,
because its rank of that round has, or its edges have. Ranks are integers, in thousandths, so
that small changes die out, and the order in which changes come does not matter: the ranks
of an epoch are those of a run from scratch on its edges, to the last digit.

A time is `epoch * ROUNDS + round`: one line and not pairs, since an epoch's rounds must be
over before the next one changes the ranks that they start from.

    python examples/pagerank.py [VERTICES [CHANGES [EPOCHS [WORKERS]]]]
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pointstamp as ps

Edge: TypeAlias = tuple[int, int]
Update: TypeAlias = tuple[tuple[int, int], int]
"""An edge that comes (+1) or goes (-1); or likewise a vertex with its rank."""

Logic = Callable[[ps.Input, ps.Input, ps.Output, ps.Notificator], None]

ROUNDS = 20
UNIT = 1000
BASE = UNIT * 15 // 100


class Vertex:
    """Its ranks by round, the rank that was told last, its edges before the epoch and now."""

    def __init__(self) -> None:
        self.ranks = [UNIT] + [BASE] * (ROUNDS - 1)
        self.told: int | None = None
        self.before: frozenset[int] = frozenset()
        self.targets: frozenset[int] = frozenset()

    def pass_on(self, round: int, change: int) -> Iterator[tuple[int, int]]:
        """Change the rank of a round; by how much that changes what neighbours are given."""
        old = self.ranks[round]
        self.ranks[round] += change
        news = given(self.ranks[round], self.targets)
        news.subtract(given(old, self.before))
        return ((target, change) for target, change in news.items() if change)

    def tell(self, name: int, change: int) -> Iterator[Update]:
        """Change the rank of the last round, and take back what was told before."""
        self.ranks[-1] += change
        self.before = self.targets
        if self.told != self.ranks[-1]:
            if self.told is not None:
                yield (name, self.told), -1
            self.told = self.ranks[-1]
            yield (name, self.told), +1


def given(rank: int, targets: frozenset[int]) -> Counter[int]:
    """What a vertex gives to its neighbours: 85 %, in equal parts, rounded down."""
    return Counter({target: rank * 85 // (100 * len(targets)) for target in targets})


def page_rank(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
    capability.drop()
    vertices: dict[int, Vertex] = defaultdict(Vertex)
    updates: dict[int, list[Update]] = defaultdict(list)
    changes: dict[int, Counter[int]] = defaultdict(Counter)
    """By time: whose turn it is, and by how much their rank of that round changes."""

    def connect(time: int) -> None:
        """Change edges. Whose edges change has a turn in every round of the epoch."""
        for (source, target), diff in updates.pop(time, ()):
            vertex = vertices[source]
            vertex.targets = vertex.targets | {target} if diff > 0 else vertex.targets - {target}
            for round in range(ROUNDS):
                changes[time + round][source] += 0

    def logic(
        edges: ps.Input, gifts: ps.Input, output: ps.Output, notificator: ps.Notificator
    ) -> None:
        for time, batch in edges:
            updates[time.time].extend(batch)
            for round in range(ROUNDS):
                notificator.notify_at(time.delayed(time.time + round))
        for time, batch in gifts:
            notificator.notify_at(time.retain())
            for vertex, change in batch:
                changes[time.time][vertex] += change
        for cap in notificator:
            with cap, output.session(cap) as session:
                round = cap.time % ROUNDS
                connect(cap.time)
                for name, change in changes.pop(cap.time).items():
                    vertex = vertices[name]
                    is_last = round == ROUNDS - 1
                    answer = vertex.tell(name, change) if is_last else vertex.pass_on(round, change)
                    session.give_many(answer)

    return logic


def epochs(n_vertices: int, n_changes: int, n_epochs: int) -> list[list[Update]]:
    """At first random edges, three from each vertex; then at each epoch some go and some come."""
    draw = random.Random(11)
    present = {(v, draw.randrange(n_vertices)) for v in range(n_vertices) for _ in range(3)}
    result: list[list[Update]] = [[(edge, +1) for edge in sorted(present)]]
    for _ in range(n_epochs - 1):
        gone = draw.sample(sorted(present), n_changes)
        come = {(draw.randrange(n_vertices), draw.randrange(n_vertices)) for _ in gone} - present
        present = (present | come).difference(gone)
        result.append([(edge, -1) for edge in gone] + [(edge, +1) for edge in sorted(come)])
    return result


def rank(
    worker: ps.Worker, epochs: list[list[Update]]
) -> tuple[list[int], list[tuple[int, Update]]]:
    """How many changes were passed on to this worker, by epoch; and (epoch, update) of ranks."""
    n_passed_on = [0] * len(epochs)
    ranks: list[tuple[int, Update]] = []

    def note(time: int, batch: list[Edge]) -> None:
        n_passed_on[time // ROUNDS] += len(batch)

    with worker.dataflow("pagerank") as scope:
        input, edges = scope.new_input("edges")
        loop, gifts = scope.feedback(1)
        pacts = ps.Exchange(lambda update: update[0][0]), ps.Exchange(lambda gift: gift[0])
        answers = edges.binary_notify(gifts.inspect_batch(note), *pacts, "PageRank", page_rank)
        again, last = answers.branch_when(lambda time: time % ROUNDS == ROUNDS - 1)
        loop.connect(again)
        last.inspect_batch(
            lambda time, batch: ranks.extend((time // ROUNDS, update) for update in batch)
        )
    for epoch, updates in enumerate(epochs):
        input.send_batch(updates[worker.index :: worker.peers])
        input.advance_to((epoch + 1) * ROUNDS)
    input.close()
    worker.run()
    return n_passed_on, ranks


def main(n_vertices: int = 2000, n_changes: int = 1, n_epochs: int = 4, workers: int = 2) -> None:
    parts = ps.execute(rank, epochs(n_vertices, n_changes, n_epochs), workers=workers)
    held: Counter[tuple[int, int]] = Counter()
    for epoch in range(n_epochs):
        updates = [update for _, ranks in parts for at, update in ranks if at == epoch]
        for vertex_and_rank, diff in updates:
            held[vertex_and_rank] += diff
        n_new = sum(diff > 0 for _, diff in updates)
        n_passed_on = sum(part[epoch] for part, _ in parts)
        first, most = max(held.elements(), key=lambda entry: entry[1])
        print(
            f"epoch {epoch}: {n_new} ranks are new, by {n_passed_on} changes passed on; "
            f"vertex {first} has most, {most / UNIT:.3f}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
