"""Sets of capabilities: an antichain that is held, and moves on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.errors import CapabilityError, TimestampError
from tests.dataflow.carried import settle

Pairs = ps.Product(ps.Int, ps.Int)


class Held:
    """An output at which capabilities can be made, and are counted."""

    def __init__(self, timestamp: Any = Pairs) -> None:
        self.capabilities = CapabilityCounts("Keeper", 0, timestamp, lambda: None)
        self._changes: dict[Any, int] = {}

    def at(self, *times: Any) -> list[ps.Capability]:
        """New capabilities."""
        return [self.capabilities.add(time) for time in times]

    def times(self) -> list[Any]:
        """Of all capabilities that are held, by what was reported."""
        for time, change in self.capabilities.changes.drain():
            self._changes[time] = self._changes.get(time, 0) + change
        assert self.capabilities.n_held == sum(self._changes.values())
        return sorted(time for time, n in self._changes.items() for _ in range(n))


def test_it_keeps_the_least_and_drops_the_others() -> None:
    held = Held()
    first, second, later, least = held.at((1, 2), (2, 1), (2, 2), (0, 0))
    kept = ps.CapabilitySet([first])
    kept.insert(second)
    assert sorted(kept.elements) == [(1, 2), (2, 1)]
    kept.insert(later)
    assert not later.live
    assert held.times() == [(0, 0), (1, 2), (2, 1)]
    kept.insert(least)
    assert kept.elements == [(0, 0)]
    assert not first.live
    assert not second.live
    assert held.times() == [(0, 0)]
    kept.drop()
    assert (held.times(), len(kept), kept.elements) == ([], 0, [])


def test_inserting_a_capability_twice_is_once_and_an_equal_one_is_dropped() -> None:
    held = Held()
    one, equal = held.at((1, 1), (1, 1))
    kept = ps.CapabilitySet([one, one])
    assert one.live
    kept.insert(equal)
    assert held.times() == [(1, 1)]
    assert list(kept) == [one]
    kept.drop()


def test_delayed_gives_one_more_where_some_capability_allows_it() -> None:
    held = Held()
    with ps.CapabilitySet(held.at((1, 2), (2, 1))) as kept:
        more = kept.delayed((5, 1))
        assert more.time == (5, 1)
        assert held.times() == [(1, 2), (2, 1), (5, 1)]
        more.drop()
        assert kept.less_equal((1, 2))
        assert not kept.less_equal((1, 1))
        with pytest.raises(CapabilityError, match=r"'Keeper' cannot delay to \(1, 1\)") as caught:
            kept.delayed((1, 1))
        assert "[(1, 2), (2, 1)]" in str(caught.value)
    assert held.times() == []


def test_downgrade_moves_to_a_frontier() -> None:
    held = Held()
    kept = ps.CapabilitySet(held.at((0, 0)))
    kept.downgrade([(3, 1), (1, 3), (3, 3), (3, 1)])
    assert sorted(kept.elements) == [(1, 3), (3, 1)]
    assert held.times() == [(1, 3), (3, 1)]
    (stays,) = [c for c in kept if c.time == (3, 1)]
    kept.downgrade(ps.CapabilitySet(held.at((3, 1))))
    assert list(kept) == [stays]
    assert stays.live
    kept.downgrade([])
    assert len(kept) == 0
    assert not stays.live


def test_a_downgrade_that_is_not_allowed_leaves_the_set_as_it_was() -> None:
    held = Held()
    kept = ps.CapabilitySet(held.at((1, 2), (2, 1)))
    before = list(kept)
    assert not kept.try_downgrade([(2, 2), (1, 1)])
    with pytest.raises(CapabilityError, match=r"cannot downgrade to \(1, 1\): it has") as caught:
        kept.downgrade([(2, 2), (1, 1)])
    assert "'Keeper'" in str(caught.value)
    assert list(kept) == before
    assert held.times() == [(1, 2), (2, 1)]
    assert kept.try_downgrade([(2, 2)])
    assert held.times() == [(2, 2)]
    kept.drop()


def test_an_empty_set_allows_nothing_and_may_go_nowhere() -> None:
    kept = ps.CapabilitySet()
    assert not kept.less_equal((0, 0))
    assert kept.try_downgrade([])
    assert not kept.try_downgrade([(0, 0)])
    with pytest.raises(CapabilityError, match="it has capabilities for \\[\\]"):
        kept.delayed((0, 0))


def test_misuse_is_named() -> None:
    held, elsewhere = Held(), Held()
    (dropped,), (other,) = held.at((0, 0)), elsewhere.at((0, 0))
    dropped.drop()
    with ps.CapabilitySet(held.at((0, 0))) as kept:
        with pytest.raises(CapabilityError, match="it was dropped"):
            kept.insert(dropped)
        with pytest.raises(CapabilityError, match="cannot join a CapabilitySet at output 0"):
            kept.insert(other)
        with pytest.raises(CapabilityError, match=r"was given \(0, 0\) \(tuple\)"):
            kept.insert((0, 0))  # type: ignore[arg-type]
        with pytest.raises(TimestampError, match="found 'soon'"):
            kept.delayed("soon")
        with pytest.raises(TimestampError, match="is a pair; found 0"):
            kept.downgrade((0, 0))  # one time, and not several
    other.drop()


times = st.tuples(st.integers(0, 4), st.integers(0, 4))
actions = st.lists(
    st.tuples(st.just("insert"), times) | st.tuples(st.just("to"), st.lists(times, max_size=3)),
    max_size=8,
)


@given(actions)
def test_it_is_the_antichain_of_what_it_was_given(actions: list[tuple[str, Any]]) -> None:
    """Against sets of all times that it allows, of a small square of them."""
    square = [(a, b) for a in range(6) for b in range(6)]

    def after(times: Any) -> set[Any]:
        return {t for t in square for least in times if Pairs.less_equal(least, t)}

    held = Held()
    kept = ps.CapabilitySet()
    allowed: set[Any] = set()
    for what, argument in actions:
        if what == "insert":
            kept.insert(*held.at(argument))
            allowed |= after([argument])
        elif kept.try_downgrade(argument):
            assert set(argument) <= allowed
            allowed = after(argument)
        else:
            assert not set(argument) <= allowed
        assert {t for t in square if kept.less_equal(t)} == allowed
        assert held.times() == sorted(kept.elements)
        least = [t for t in allowed if after([t]) == {u for u in allowed if u in after([t])}]
        assert set(kept.elements) == {
            t for t in least if not any(u != t and Pairs.less_equal(u, t) for u in allowed)
        }
    kept.drop()


def test_an_operator_follows_its_input_with_one() -> None:
    """Time passes as the set is downgraded to the input's frontier, and stops when it stops."""

    def main(worker: Any) -> list[Any]:
        def build(capability: Any, info: Any) -> Any:
            held = ps.CapabilitySet([capability])

            def logic(input: Any, output: Any) -> None:
                for time, batch in input:
                    with held.delayed(time.time) as cap, output.session(cap) as session:
                        session.give_batch(batch)
                if not input.frontier.less_than(5) or not held.less_equal(3):
                    held.downgrade(input.frontier)

            return logic

        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = (
                stream.unary_frontier(ps.Pipeline(), "Follow", build).inspect(out.append).probe()
            )
        seen = []
        for time in (3, 5, 6):
            input.send(time)
            input.advance_to(time)
            settle(worker)
            seen.append(probe.elements)
        input.close()
        settle(worker)
        return [*seen, probe.elements, out]

    assert ps.execute(main) == [[[0], [5], [6], [], [3, 5, 6]]]
