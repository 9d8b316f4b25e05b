"""The join as a dataflow: memory within batches, times apart, workers in any number."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.joins.generic_join import GenericJoin
from pointstamp.joins.plan import make_plan
from pointstamp.joins.throttle import WINDOW, Throttle

N = 14
COMPLETE = list(itertools.permutations(range(N), 2))
LIMIT = 50


def clique(k):
    return make_plan(k, list(itertools.combinations(range(k), 2)))


def merged(parts):
    """The items of all lists in one."""
    return list(itertools.chain.from_iterable(parts))


def most_waiting(join):
    """By level, the most records that a worker had in hand."""
    return [sum(throttle.most_waiting for throttle in throttles) for throttles in join.throttles]


def bound(workers):
    """A turn has at most a piece beyond half a batch, and `WINDOW` turns are under way.

    One more may be there before its sender hears that an earlier one is done.
    """
    return workers * (WINDOW + 1) * 1.5 * LIMIT


def edges_of(scope, pairs):
    table = np.array(pairs, np.int64).reshape(-1, 2)[scope.index :: scope.peers]
    return scope.batches_to_stream([Arrays(src=table[:, 0], dst=table[:, 1])])


@pytest.mark.parametrize(("workers", "known"), [(1, 0), (2, 0), (3, 0), (3, 1000)])
def test_no_batch_is_larger_than_asked_and_little_is_outstanding(workers, known):
    """14 * 13 * 12 * 11 matches of a 4-clique, found 50 records at a time."""

    def main(worker):
        sizes = []
        with worker.dataflow() as scope:
            edges = edges_of(scope, COMPLETE)
            join = GenericJoin(
                edges, clique(4), range(4), batch_records=LIMIT, replicated_items=known
            )
            join.matches().inspect_batch(lambda time, batch: sizes.append(len(batch)))
        worker.run()
        return sizes, most_waiting(join)

    results = ps.execute(main, workers=workers, threads=True)
    sizes = [size for part, _ in results for size in part]
    assert sum(sizes) == N * (N - 1) * (N - 2) * (N - 3)
    if workers == 1:  # operators that give out small batches put them together
        assert max(sizes) <= LIMIT
    for _, most in results:
        assert max(most[1:]) <= bound(workers)
    assert sum(most[0] for _, most in results) == N, "the seeds, which are a slice of the index"


@pytest.mark.parametrize("seed", range(6))
def test_little_is_outstanding_though_some_worker_is_very_slow(seed):
    """A star with its leaves joined in a ring: one worker has the hub, and most of the work."""
    leaves = range(1, 60)
    hub = [(0, leaf) for leaf in leaves] + [(leaf, 0) for leaf in leaves]
    ring = [(leaf, leaf % 59 + 1) for leaf in leaves]
    walk = make_plan(4, [(0, 1), (1, 2), (2, 3)])

    def main(worker):
        counts = []
        with worker.dataflow() as scope:
            edges = edges_of(scope, hub + ring)
            join = GenericJoin(edges, walk, range(4), batch_records=LIMIT, replicated_items=0)
            join.matches().inspect_batch(lambda time, batch: counts.append(len(batch)))
        worker.run()
        return sum(counts), most_waiting(join)

    results = ps.simulate(main, workers=3, seed=seed)
    step = np.zeros((60, 60), np.int64)
    step[tuple(np.array(hub + ring).T)] = 1
    assert sum(found for found, _ in results) == (step @ step @ step).sum()
    assert max(n for _, most in results for n in most[1:]) <= bound(3)


def test_without_turns_far_more_would_be_outstanding(monkeypatch):
    """The same without waiting for turns, so that the tests above prove something."""
    monkeypatch.setattr(Throttle, "may_send", lambda throttle, time: True)

    def main(worker):
        with worker.dataflow() as scope:
            join = GenericJoin(edges_of(scope, COMPLETE), clique(4), range(4), batch_records=LIMIT)
            join.matches()
        worker.run()
        return most_waiting(join)

    assert max(ps.execute(main)[0]) > 2 * bound(1)


def single(n):
    return [n]


def test_counting_makes_no_record_of_the_last_step():
    """Of the edges no record is made either that the last step does not ask for."""

    def main(worker):
        counts = []
        with worker.dataflow() as scope:
            join = GenericJoin(edges_of(scope, COMPLETE), clique(3), batch_records=LIMIT)
            join.count(single).inspect_batch(lambda time, batch: counts.append(batch))
        worker.run()
        return counts, most_waiting(join)

    ((counts, most),) = ps.execute(main)
    assert counts == [[N * (N - 1) * (N - 2)]]
    assert len(most) == 2
    assert most[1] <= bound(1)


@pytest.mark.parametrize(("workers", "known"), [(1, 0), (2, 0), (3, 0), (3, 60), (2, 1000)])
def test_many_times_at_once_do_not_mix(workers, known):
    """Epoch n has a complete graph of n vertices; all are sent before any is worked on."""

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            input, edges = scope.new_input()
            GenericJoin(edges, clique(3), batch_records=7, replicated_items=known).count(
                single
            ).inspect_batch(lambda time, batch: found.append((time, *batch)))
        for n in range(2, 12):
            input.advance_to(n)
            pairs = list(itertools.permutations(range(n), 2))[worker.index :: worker.peers]
            table = np.array(pairs, np.int64).reshape(-1, 2)
            input.send_batch(Arrays(src=table[:, 0], dst=table[:, 1]))
        input.close()
        worker.run()
        return found

    results = ps.execute(main, workers=workers, threads=True)
    assert sorted(merged(results)) == [(n, n * (n - 1) * (n - 2)) for n in range(2, 12)]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_order_of_messages_the_matches_are_the_same(seed):
    """Simulated workers and links, some far slower than others; a plan with every operator."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 12, (90, 2))
    # A 4-cycle with a loop at one corner, and one diagonal absent.
    plan = make_plan(4, [(0, 1), (1, 2), (2, 3), (3, 0), (1, 1)], [(0, 2)])

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            edges = edges_of(scope, pairs)
            GenericJoin(
                edges, plan, range(4), batch_records=5, replicated_items=0
            ).matches().inspect_batch(lambda time, batch: found.extend(batch))
            GenericJoin(edges, plan, batch_records=5, replicated_items=0).count(
                single
            ).inspect_batch(lambda time, batch: found.append(batch))
        worker.run()
        return found

    results = merged(ps.simulate(main, workers=3, seed=seed))
    graph = set(map(tuple, pairs.tolist()))
    expected = sorted(
        (a, b, c, d)
        for a, b in graph
        for c, d in graph
        if (b, b) in graph and (b, c) in graph and (d, a) in graph and (a, c) not in graph
    )
    assert sorted(match for match in results if isinstance(match, tuple)) == expected
    assert [count for count in results if isinstance(count, list)] == [[len(expected)]]


def test_a_worker_without_edges_takes_part():
    def main(worker):
        found = []
        with worker.dataflow() as scope:
            pairs = COMPLETE if worker.index == 2 else []
            table = np.array(pairs, np.int64).reshape(-1, 2)
            edges = scope.batches_to_stream([Arrays(src=table[:, 0], dst=table[:, 1])])
            GenericJoin(edges, clique(3)).count(single).inspect_batch(
                lambda time, batch: found.extend(batch)
            )
        worker.run()
        return found

    results = ps.execute(main, workers=3, threads=True)
    assert merged(results) == [N * (N - 1) * (N - 2)]
