"""What is in flight stays bounded, and nothing waits for ever because of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays, kind_of
from pointstamp.dataflow import environment
from pointstamp.dataflow.backpressure import N_WAITING, Backpressure, InFlight
from pointstamp.errors import UsageError
from pointstamp.graph import pagerank
from pointstamp.graph.edges import edge_columns
from pointstamp.joins import GenericJoin, make_plan
from tests.conftest import in_one_mode

LIMIT = 100_000


def batches(kind: str, n: int) -> Any:
    """`n` batches of about 8 kB, in each kind of container."""
    import numpy as np

    for i in range(n):
        if kind == "rows":
            yield list(range(1000 * i, 1000 * i + 250))
        elif kind == "columns":
            yield pa.RecordBatch.from_pydict({"x": np.arange(1000) + i})
        else:
            yield Arrays(x=np.arange(1000) + i)


class Sizes:
    """What was made and what was taken, and the most there was between the two."""

    def __init__(self) -> None:
        self.now = self.most = self.taken = 0

    def made(self, batch: Any) -> None:
        self.now += kind_of(batch).n_bytes(batch)
        self.most = max(self.most, self.now)

    def take(self, batch: Any) -> None:
        self.now -= kind_of(batch).n_bytes(batch)
        self.taken += kind_of(batch).length(batch)


def fast_into_slow(
    kind: str,
    limit: int,
    n: int,
    pact: Any = ps.Broadcast(),  # noqa: B008
) -> tuple[int, int]:
    """Worker 0 makes batches; worker 1 takes one of them every 20 steps.

    Gives the most bytes that were on the way, and how many records were taken. Simulated, so
    that no other program of the machine decides which of the two is faster.
    """
    sizes = Sizes()

    def main(worker: Any) -> None:
        worker.environment.in_flight_bytes = limit

        def noted(made: Any) -> Any:
            for batch in made:
                sizes.made(batch)
                yield batch

        def build(capability: Any, info: Any) -> Any:
            turns = 0

            def logic(input: Any, output: Any) -> bool:
                nonlocal turns
                turns += 1
                if turns % 20 == 0 or worker.index == 0:
                    item = input.next()
                    if item is not None and worker.index == 1:
                        sizes.take(item[1])
                return not input.frontier.is_empty()

            return logic

        with worker.dataflow() as scope:
            made = noted(batches(kind, n if worker.index == 0 else 0))
            stream = scope.batches_to_stream(made)
            stream.unary_frontier(pact, "Slow", build)

    ps.simulate(main, workers=2, seed=0)
    return sizes.most, sizes.taken


@pytest.mark.parametrize("kind", ["rows", *in_one_mode(["columns", "arrays"])])
def test_a_fast_source_waits_for_a_slow_receiver(kind: str) -> None:
    n = 150
    with_, taken = fast_into_slow(kind, LIMIT, n)
    without, same = fast_into_slow(kind, 0, n)
    assert taken == same == n * (250 if kind == "rows" else 1000)
    assert with_ < 2 * LIMIT < without


@pytest.mark.parametrize("kind", in_one_mode(["rows", "columns"]))
def test_records_that_name_their_worker_are_in_flight_like_others(kind: str) -> None:
    to_1 = ps.Exchange(to=(lambda x: 1) if kind == "rows" else pc.field("x") * 0 + 1)
    with_, taken = fast_into_slow(kind, LIMIT, 150, to_1)
    without, same = fast_into_slow(kind, 0, 150, to_1)
    assert taken == same == 150 * (250 if kind == "rows" else 1000)
    assert with_ < 2 * LIMIT < without


def test_all_messages_of_a_graph_and_of_a_join_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent, taken, throttled = Counter[int](), Counter[int](), []

    class NotingInFlight(InFlight):
        def sent(self, peer: int, batch: Any, n_records: int) -> None:
            sent[type(batch).__name__] += n_records
            super().sent(peer, batch, n_records)

        def taken(self, sender: int, batch: Any, n_records: int) -> None:
            taken[type(batch).__name__] += n_records
            super().taken(sender, batch, n_records)

    monkeypatch.setattr(environment, "InFlight", NotingInFlight)
    monkeypatch.setattr(Backpressure, "over", lambda self: throttled.append(self))
    monkeypatch.setattr(Backpressure, "under", lambda self: None)

    def main(worker: Any, find: Any) -> None:
        worker.environment.in_flight_bytes = 100
        mine = [(v, (7 * v + k) % 60) for v in range(worker.index, 60, 2) for k in range(3)]
        with worker.dataflow() as scope:
            find(scope.to_stream(mine))

    def four_cycles(edges: Any) -> Any:
        # No worker has a list of another one, so prefixes have to go where the lists are.
        arrays = edges.map_batches(edge_columns)
        plan = make_plan(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
        return GenericJoin(arrays, plan, (0, 1, 2, 3), replicated_items=0).matches()

    for find, carried in [(pagerank, "Arrays"), (four_cycles, "PrefixesWithCandidates")]:
        for noted in (sent, taken, throttled):
            noted.clear()
        ps.execute(main, find, workers=2, threads=True)
        assert sent == taken
        assert sent[carried] > 100
        assert throttled


@pytest.mark.once
def test_the_most_in_flight_does_not_grow_with_the_stream() -> None:
    short, long = (fast_into_slow("rows", LIMIT, n)[0] for n in (100, 400))
    assert long < 1.5 * short


def test_a_local_queue_holds_back_a_source_too() -> None:
    """An operator that takes less than it is given: the source makes no more meanwhile."""
    most = 0

    def main(worker: Any) -> int:
        made = 0

        def source() -> Any:
            nonlocal made
            for i in range(1000):
                made += 1
                yield [i]

        def build(capability: Any, info: Any) -> Any:
            turns = taken = 0

            def logic(input: Any, output: Any) -> bool:
                nonlocal turns, taken, most
                turns += 1
                if turns % 7 == 0 and input.next() is not None:
                    taken += 1
                most = max(most, made - taken)
                return not input.frontier.is_empty()

            return logic

        with worker.dataflow() as scope:
            scope.batches_to_stream(source()).unary_frontier(ps.Pipeline(), "Slow", build)
        worker.run()
        return made

    assert ps.execute(main) == [1000]
    assert N_WAITING < most <= N_WAITING + 2


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_an_operator_that_waits_for_one_input_does_not_stop_the_source_of_it(
    workers: int, seed: int
) -> None:
    """What it leaves in the other input's queue is more than may be in flight."""
    seen: list[int] = []

    def main(worker: Any) -> None:
        worker.environment.in_flight_bytes = 1000

        def build(capability: Any, info: Any) -> Any:
            def logic(first: Any, second: Any, output: Any) -> None:
                for _ in first:
                    pass
                if first.frontier.is_empty():
                    for _, batch in second:
                        seen.extend(batch)

            return logic

        with worker.dataflow() as scope:
            many = scope.batches_to_stream([i] * 50 for i in range(200))
            # Both come from one source, and the operator wants all of the one before the other.
            kept = many.filter(lambda x: x % 2)
            kept.binary_frontier(many, ps.Exchange(), ps.Exchange(), "Late", build)

    ps.simulate(main, workers=workers, seed=seed)
    assert len(seen) == workers * 200 * 50


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_loop_that_carries_more_than_may_be_in_flight_ends(workers: int) -> None:
    seen: list[int] = []

    def main(worker: Any) -> None:
        worker.environment.in_flight_bytes = 500
        with worker.dataflow() as scope:
            numbers = scope.batches_to_stream([i] * 30 for i in range(40))
            with scope.iterative() as inner:
                loop, again = inner.feedback(1, limit=5)
                body = numbers.enter(inner).concat(again).exchange(lambda x: x)
                loop.connect(body.flat_map(lambda x: [x + 1]))
                body.leave().inspect(seen.append)

    ps.simulate(main, workers=workers, seed=1)
    assert len(seen) == workers * 40 * 30 * 5


def test_a_worker_that_only_passes_on_holds_back_the_sources_of_others() -> None:
    """0 makes, 1 passes on, 2 is slow: it is worker 0 that has to wait."""
    sizes = Sizes()

    def main(worker: Any) -> None:
        worker.environment.in_flight_bytes = LIMIT

        def made() -> Any:
            for batch in batches("rows", 400 if worker.index == 0 else 0):
                sizes.made(batch)
                yield batch

        def build(capability: Any, info: Any) -> Any:
            turns = 0

            def logic(input: Any, output: Any) -> bool:
                nonlocal turns
                turns += 1
                item = input.next() if turns % 3 == 0 else None
                if item is not None:
                    sizes.take(item[1])
                return not input.frontier.is_empty()

            return logic

        with worker.dataflow() as scope:
            stream = scope.batches_to_stream(made()).broadcast()
            stream = stream.filter(lambda x: worker.index == 1).broadcast()
            stream = stream.filter(lambda x: worker.index == 2)
            stream.unary_frontier(ps.Pipeline(), "Slow", build)

    ps.execute(main, workers=3, threads=True)
    assert sizes.taken == 400 * 250
    assert sizes.most < 10 * LIMIT  # all are 36 times that


def test_an_input_says_when_it_should_wait_and_when_no_longer() -> None:
    def main(worker: Any) -> int:
        worker.environment.in_flight_bytes = LIMIT
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.broadcast().probe()
        waited = 0
        if worker.index == 0:
            for batch in batches("rows", 100):
                waited += input.is_throttled
                worker.step_while(lambda: input.is_throttled)
                input.send_batch(batch)
                worker.step()
        worker.step_while(lambda: input.is_throttled)  # until what is in flight is taken
        input.close()
        worker.step_while(lambda: not probe.done)
        return waited

    waits = [ps.simulate(main, workers=2, seed=seed)[0] for seed in range(5)]
    assert sum(waits) > 5  # with some schedules the other is as quick


@pytest.mark.parametrize("workers", [1, 2])
def test_epochs_in_flight_are_bounded(workers: int) -> None:
    def main(worker: Any) -> list[int]:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.exchange().probe()
        behind = []
        for epoch in range(30):
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.keep_within(3, input, probe)
            behind.append(input.time - min(probe.elements, default=input.time))
        return behind

    for behind in ps.simulate(main, workers=workers, seed=5):
        assert max(behind) <= 3


def test_epochs_of_other_times_are_refused() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow(timestamp=ps.Product(ps.Int, ps.Int)) as scope:
            input, stream = scope.new_input()
            probe = stream.probe()
        with pytest.raises(UsageError, match="counts epochs"):
            worker.keep_within(1, input, probe)

    ps.execute(main)


def test_a_meter_tells_little_and_counts_back_to_nothing() -> None:
    told: list[bool] = []
    acknowledged: list[tuple[int, int]] = []
    flow = Backpressure(set(), told.append)
    sender = InFlight(flow, 8000, 2, lambda peer, n: None)
    receiver = InFlight(
        Backpressure(set(), told.append), 8000, 2, lambda *n: acknowledged.append(n)
    )
    sent = [list(range(1000, 1100)) for _ in range(10)]
    for batch in sent:
        sender.sent(1, batch, len(batch))
    assert flow.is_throttled
    assert told == [True]
    for batch in sent:
        receiver.taken(0, batch, len(batch))
    for _, n in acknowledged:
        sender.acknowledged(1, n)
    assert told == [True, False]
    assert not flow.is_throttled
    assert sum(n for _, n in acknowledged) == 1000
