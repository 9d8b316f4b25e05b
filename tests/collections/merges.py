"""Merges by pieces: what readers see while they are under way, and what they cost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections import batch_merges
from pointstamp.collections.spine import Spine
from pointstamp.kernels.consolidation import consolidate, is_consolidated, merge

pairs = st.lists(st.tuples(st.integers(0, 30), st.sampled_from([-1, 1])), max_size=12)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), pairs),
        st.tuples(st.just("insert"), pairs),
        st.tuples(st.just("insert"), pairs.map(lambda changes: changes[:2])),
        st.tuples(st.just("idle"), st.integers(0, 9)),
        st.tuples(st.just("acknowledge"), st.integers(0, 9), st.integers(0, 3)),
        st.tuples(st.just("all"), st.just(0)),
        st.tuples(st.just("all"), st.integers(0, 2)),
        st.tuples(st.just("reader")),
    ),
    min_size=4,
    max_size=60,
)
fuels = st.sampled_from([0, 1, 4])
thresholds = st.sampled_from([0, 6])
lumps = st.sampled_from([1, 3])


def rows_of(changes: Any) -> Any:
    return consolidate(np.array(changes, np.int64).reshape(-1, 2))


def totals(batches: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for rows in batches:
        for *words, diff in rows.tolist():
            found[tuple(words)] += diff
    return Counter({words: n for words, n in found.items() if n})


class Meter:
    """Keeps account of the fuel that merges were given, beside what came.

    A merge begins with at most what its own newer batch pays, and gets for each update that
    comes later, and each row of idle budget, no more than it should. `slack` is how many rows more
    a piece may have, so that it ends with all updates of a record.
    """

    def __init__(self, fuel: int, lump: int, slack: int = 0) -> None:
        self.fuel, self.lump, self.slack = fuel, lump, slack
        self.n_arrived = self.n_idle = 0
        self._begun: dict[int, tuple[Any, int, int, int]] = {}

    def check(self, under_way: list[Any]) -> None:
        """Also those that are over since the last check."""
        for one in under_way:
            self._begun.setdefault(id(one), (one, one.n_fuel, self.n_arrived, self.n_idle))
        for one, at_first, n_arrived, n_idle in self._begun.values():
            most = self.fuel * (self.n_arrived - n_arrived + self.lump - 1)
            assert one.n_fuel - at_first <= most + self.n_idle - n_idle
            assert one.n_read <= one.n_fuel + self.slack
        self._begun = {id(one): self._begun[id(one)] for one in under_way}


def check_spine(steps: list[Any], fuel: int, at_once: int, lump: int) -> None:
    """What each reader may ask for is what was inserted, after each step."""
    spine = Spine(ps.Int, fuel, at_once, lump)
    meter = Meter(fuel, lump)
    readers = [spine.reader(), spine.reader()]
    history: list[Any] = []
    for step in steps:
        if step[0] == "insert":
            rows = rows_of(step[1])
            if len(rows):
                spine.insert(rows, len(history))
                meter.n_arrived += len(rows)
            history.append(rows)
        elif step[0] == "idle":
            meter.n_idle += step[1]
            spine.work(step[1])
        elif step[0] == "acknowledge":
            reader = readers[step[1] % len(readers)]
            reader.acknowledge(max(reader.bound, len(history) - step[2]))
        elif step[0] == "all":
            for reader in readers:
                reader.acknowledge(max(reader.bound, len(history) - step[1]))
        elif len(readers) < 4:
            # One that comes later, as of an import: it begins with the batches that are there.
            late = spine.reader()
            late.acknowledge(max((r.bound for r in readers), default=0))
            readers.append(late)
        for rows in (rows for _, rows in spine.listed()):
            assert is_consolidated(rows)
            assert len(rows)
        listed = spine.listed()
        assert spine.n_updates == sum(len(rows) for _, rows in listed)
        for n, (time, _) in enumerate(listed, 1):
            assert totals(rows for _, rows in listed[:n]) == totals(history[: time + 1])
        meter.check(spine.merges)
        for one in spine.merges:
            if one.is_complete:
                assert is_consolidated(one.rows)
        for reader in readers:
            for at in {reader.bound, len(history) - 1} - {-1}:
                if at >= reader.bound:
                    assert totals(reader.before(at)) == totals(history[:at])
                    assert totals(reader.through(at)) == totals(history[: at + 1])
    for reader in readers:
        reader.acknowledge(len(history))
    for _ in range(1_000):
        if not spine.work(7):
            break
    else:
        raise AssertionError("idle work does not end")
    n_there = len(totals(history))
    assert spine.n_updates <= 2 * n_there + at_once
    assert batch_merges.first_to_merge([len(rows) for _, rows in spine.listed()], at_once) < 0


def check_series(
    epochs: list[Any], fuel: int, at_once: int, lump: int, most: int = batch_merges.MOST_READ
) -> None:
    """A series holds what was inserted, in few batches."""
    series = batch_merges.BatchSeries()
    series.set_fuel(fuel, at_once, lump)
    meter = Meter(fuel, lump)
    history: list[Any] = []
    for changes in epochs:
        rows = rows_of(changes)
        if len(rows):
            series.insert(rows)
            meter.n_arrived += len(rows)
        history.append(rows)
        assert totals(series.rows) == totals(history)
        assert len(series.rows) <= most
        for batch in series.rows:
            assert is_consolidated(batch)
            assert len(batch)
        meter.check(series.merges)
    whole = series.as_one(np.empty((0, 2), np.int64))
    assert is_consolidated(whole)
    assert totals([whole]) == totals(history)


def check_pieces(left: Any, right: Any, fuels: list[int]) -> None:
    """A merge by pieces of any size is the merge at once."""
    under_way = batch_merges.BatchMerge(left, right)
    for fuel in fuels:
        if under_way.advance(fuel):
            break
        assert under_way.n_read <= under_way.n_fuel
    under_way.advance(len(left) + len(right))
    assert under_way.is_complete
    assert under_way.rows.tolist() == merge(left, right).tolist()
