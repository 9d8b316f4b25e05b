"""Rounds: when they begin and end, on schedules that are as unfair as they get."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.graph import communities, pagerank, strongly_connected_components
from pointstamp.graph.supersteps import results, run_supersteps
from tests.graph.answers import quick

seeds = st.integers(0, 2**32)


class Relay:
    """Passes a token on to the next worker, a number of times; notes its rounds."""

    def __init__(self, index, peers, starts, n_hops):
        self.next = (index + 1) % peers
        self.holds = index in starts
        self.n_hops = n_hops
        self.rounds = []

    def step(self, round, messages):
        self.rounds.append(round)
        hops = [int(hop) for batch in messages for hop in batch["hop"]]
        if round == 0 and self.holds:
            hops = [self.n_hops]
        assert len(messages) == 0 or round > 0
        more = np.array([hop - 1 for hop in hops if hop > 0], np.int64)
        yield_to = np.full(len(more), self.next, np.int16)
        return [Arrays(to=yield_to, hop=more)], False


def relay(worker, starts, n_hops, absent=()):
    found = []
    with worker.dataflow() as scope:
        here = worker.index not in absent
        program = Relay(worker.index, worker.peers, starts, n_hops)
        programs = scope.batches_to_stream([[program]] if here else [])
        done = run_supersteps(programs, "Relay")
        rounds = results(done, lambda p: Arrays(round=np.array(p.rounds, np.int64)))
        rounds.inspect_batch(lambda time, batch: found.extend(batch["round"].tolist()))
    worker.run()
    return found


@quick
@given(seed=seeds)
def test_a_worker_is_called_in_the_rounds_that_have_news_for_it(seed):
    found = ps.simulate(relay, {0}, 7, workers=3, seed=seed)
    # The token is at worker r % 3 in round r; everybody is called in round 0.
    assert found == [[0, 3, 6], [0, 1, 4, 7], [0, 2, 5]]


@quick
@given(seed=seeds)
def test_news_for_a_worker_without_a_program_is_dropped(seed):
    assert ps.simulate(relay, {0}, 7, {1}, workers=3, seed=seed) == [[0], [], [0]]


def test_one_worker_tells_itself():
    assert ps.execute(relay, {0}, 3) == [[0, 1, 2, 3]]


class Counting:
    """Asks for rounds until there were so many."""

    def __init__(self, n_rounds):
        self.left = n_rounds
        self.rounds = []

    def step(self, round, messages):
        self.rounds.append(round)
        self.left -= 1
        return [], self.left > 0


@quick
@given(seed=seeds)
def test_programs_are_done_together_though_some_are_quiet_early(seed):
    """What asks for no more rounds waits for the others, and is not called meanwhile."""

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            programs = scope.batches_to_stream([[Counting(2 + 3 * worker.index)]])
            done = run_supersteps(programs, "Count")
            done.inspect_batch(lambda time, batch: found.extend(p.rounds for p in batch))
        worker.run()
        return found

    assert ps.simulate(main, workers=3, seed=seed) == [
        [list(range(2))],
        [list(range(5))],
        [list(range(8))],
    ]


def records_of(build, edges):
    """The sorted records that `build` gives on a simulated worker."""

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            mine = [edges[i : i + 3] for i in range(3 * worker.index, len(edges), 3 * worker.peers)]
            stream = build(scope.batches_to_stream(mine))
            stream.inspect_batch(
                lambda time, batch: found.extend(zip(*batch.to_pydict().values(), strict=True))
            )
        worker.run()
        return found

    return main


@pytest.mark.parametrize("algorithm", [pagerank, communities, strongly_connected_components])
def test_answers_do_not_depend_on_timing(algorithm):
    rng = np.random.default_rng(8)
    edges = [(int(s), int(t)) for s, t in rng.integers(0, 20, (60, 2))]
    main = records_of(algorithm, edges)
    (expected,) = ps.execute(main)

    @quick
    @given(seed=seeds)
    def check(seed):
        found = ps.simulate(main, workers=3, seed=seed)
        assert sorted(record for part in found for record in part) == sorted(expected)

    check()


def test_answers_are_the_same_from_processes():
    edges = [(i, (7 * i) % 90) for i in range(90)]
    main = records_of(lambda e: pagerank(e, rounds=3), edges)
    (expected,) = ps.execute(main)
    found = ps.execute(main, workers=2)
    assert sorted(record for part in found for record in part) == sorted(expected)


class Meeting:
    """Sends to all others, and after some long rounds ends one only when they are in it, too."""

    n_before = 40

    def __init__(self, index, peers, all_here, n_rounds):
        self.others = [peer for peer in range(peers) if peer != index]
        self.all_here = all_here
        self.n_rounds = n_rounds

    def step(self, round, messages):
        assert len(messages) == (len(self.others) if round else 0)
        time.sleep(5e-4)
        # Those that wait for a round of others to end would wait here for ever.
        if round >= self.n_before:
            self.all_here.wait(timeout=20)
        if round == self.n_rounds:
            return [], False
        return [Arrays(to=np.full(1, other, np.int16)) for other in self.others], True


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_workers_are_in_a_round_at_once(workers):
    all_here = threading.Barrier(workers)

    def main(worker):
        with worker.dataflow() as scope:
            program = Meeting(worker.index, workers, all_here, 70)
            run_supersteps(scope.batches_to_stream([[program]]), "Meeting")
        worker.run()
        return True

    assert all(ps.execute(main, workers=workers, threads=True))
