"""Notificators alone, against a list of what was asked for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.dataflow.handles import Frontier
from pointstamp.dataflow.notificator import Notificator
from pointstamp.errors import CapabilityError
from pointstamp.progress.input_frontier import InputFrontier
from pointstamp.progress.timestamp import Int, Product

NESTED = Product(Int, Int)
TYPES = [
    pytest.param(Int, st.integers(0, 6), id="Int"),
    pytest.param(NESTED, st.tuples(st.integers(0, 3), st.integers(0, 3)), id="Product"),
]


@pytest.mark.parametrize(("kind", "times"), TYPES)
@given(data=st.data())
def test_each_time_is_given_once_when_it_is_complete(kind: Any, times: Any, data: Any) -> None:
    capabilities = CapabilityCounts("op", 0, kind, lambda: None)
    counts = InputFrontier(kind, [(kind.minimum, 1)])
    notificator = Notificator(kind, [Frontier(counts)])
    frontier, waiting = kind.minimum, set[Any]()
    for time, is_frontier in data.draw(st.lists(st.tuples(times, st.booleans()), max_size=20)):
        if is_frontier:
            counts.change(time, 1)
            counts.change(frontier, -1)
            frontier = time
            complete = {t for t in waiting if not kind.less_equal(frontier, t)}
            given_out = []
            for capability in notificator:
                given_out.append(capability.time)
                capability.drop()
            assert sorted(given_out) == sorted(complete)
            if kind is Int:
                assert given_out == sorted(complete)
            waiting -= complete
        else:
            notificator.notify_at(capabilities.add(time))
            waiting.add(time)
        assert len(notificator) == len(waiting) == capabilities.n_held


def test_a_capability_given_twice_is_kept_and_another_of_its_time_is_dropped() -> None:
    capabilities = CapabilityCounts("op", 0, Int, lambda: None)
    notificator = Notificator(Int, [Frontier(InputFrontier(Int, [(0, 1)]))])
    for time in (5, 3, 7):
        first, second = capabilities.add(time), capabilities.add(time)
        for capability in (first, second, first):
            notificator.notify_at(capability)
        assert (first.live, second.live) == (True, False)
    assert len(notificator) == capabilities.n_held == 3


def test_a_time_asked_for_when_it_is_complete_is_overlooked_until_given_out() -> None:
    capabilities = CapabilityCounts("op", 0, Int, lambda: None)
    notificator = Notificator(Int, [Frontier(InputFrontier(Int, [(4, 1)]))])
    notificator.notify_at(capabilities.add(9))
    assert not notificator.overlooked()
    notificator.notify_at(capabilities.add(2))
    assert notificator.overlooked()
    notificator.notify_at(capabilities.add(3))
    assert [capability.time for capability in notificator] == [2, 3]
    assert not notificator.overlooked()
    assert len(notificator) == 1


@pytest.mark.parametrize(("kind", "times"), TYPES)
@given(data=st.data())
def test_what_is_overlooked_counts_and_waits_as_a_list_says(
    kind: Any, times: Any, data: Any
) -> None:
    """Requests for complete times and for others in any order, with and without requirements."""
    capabilities = CapabilityCounts("op", 0, kind, lambda: None)
    frontier = data.draw(times)
    notificator = Notificator(kind, [Frontier(InputFrontier(kind, [(frontier, 1)]))])

    def is_complete(time: Any) -> bool:
        return not kind.less_equal(frontier, time)

    own: Counter[Any] = Counter()
    required: list[tuple[Any, Any]] = []
    is_late = False
    actions = st.sampled_from(["ask", "ask", "ask", "require", "give", "look"])
    for action in data.draw(st.lists(actions, max_size=15)):
        if action in ("ask", "require"):
            time, later = data.draw(times), data.draw(times)
            later = kind.join(time, later)
            if action == "ask" or later == time:
                notificator.notify_at(capabilities.add(time))
                own[time] += 1
            else:
                notificator.notify_at(capabilities.add(later), time)
                required.append((time, later))
            is_late = is_late or is_complete(time)
        elif action == "look":
            waits = any(map(is_complete, [*own, *(time for time, _ in required)]))
            assert notificator.overlooked() == (is_late and waits)
            is_late = False
        else:
            due = Counter((time, n) for time, n in own.items() if is_complete(time))
            due.update((later, 1) for time, later in required if is_complete(time))
            given: Counter[Any] = Counter()
            for capability, count in notificator.counted():
                given[capability.time, count] += 1
                capability.drop()
            assert given == due
            own = Counter({time: n for time, n in own.items() if not is_complete(time)})
            required = [pair for pair in required if not is_complete(pair[0])]
        assert dict(notificator.pending()) == own + Counter(time for time, _ in required)
        assert len(notificator) == len(own) + len(required)


def test_a_late_notification_is_not_forgotten_over_the_next_request() -> None:
    capabilities = CapabilityCounts("op", 0, Int, lambda: None)
    notificator = Notificator(Int, [Frontier(InputFrontier(Int, [(4, 1)]))])
    notificator.notify_at(capabilities.add(2))  # complete already
    notificator.notify_at(capabilities.add(7))  # not yet
    assert notificator.overlooked()
    assert [capability.time for capability in notificator] == [2]


def test_a_requirement_is_waited_for_with_a_capability_of_a_later_time() -> None:
    """Naiad's NotifyAt: while it waits, the times before the capability's own may complete."""

    def main(worker: ps.Worker) -> Any:
        log: list[Any] = []

        def build(capability: Any, info: Any) -> Any:
            capability.drop()

            def logic(input: Any, output: Any, notificator: Any) -> None:
                for time, batch in input:
                    for _ in batch:
                        notificator.notify_at(time.delayed(time.time + 10), time.time)
                for later in notificator:
                    with output.session(later) as session:
                        session.give("done")
                    log.append(later.time)
                    later.drop()

            return logic

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            result = stream.unary_notify(ps.Pipeline(), "Ahead", build)
            probe = result.probe()
        input.send("a")
        input.send("b")
        input.advance_to(1)
        worker.step_while(lambda: len(log) < 2)
        seen = list(log), probe.less_than(1)
        input.close()
        worker.run()
        return seen

    assert ps.execute(main) == [([10, 10], False)]


def test_a_requirement_after_its_capability_is_refused() -> None:
    capabilities = CapabilityCounts("op", 0, Int, lambda: None)
    notificator = Notificator(Int, [])
    with pytest.raises(CapabilityError, match="cannot wait for 5 with Capability"):
        notificator.notify_at(capabilities.add(4), 5)


def test_a_capability_given_out_for_a_requirement_keeps_the_requests_of_its_own_time() -> None:
    holdings = CapabilityCounts("op", 0, Int, lambda: None)
    counts = InputFrontier(Int, [(4, 1)])
    notificator = Notificator(Int, [Frontier(counts)])
    for _ in range(3):
        notificator.notify_at(holdings.add(5))
    notificator.notify_at(holdings.add(5), 3)
    assert [capability.time for capability in notificator] == [5]
    assert notificator.pending() == [(5, 3)]
    counts.change(4, -1)
    assert [(capability.time, n) for capability, n in notificator.counted()] == [(5, 3)]
