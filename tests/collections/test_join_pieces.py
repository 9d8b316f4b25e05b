"""What joins make leaves by pieces: all of it, once, never more than fuel allows at a time."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import build_info, col
from pointstamp.collections.lattice import join_of
from pointstamp.collections.trace import Trace, with_time
from pointstamp.collections.trace_join import Matcher
from pointstamp.errors import PointstampError
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest
from tests.collections.checks import PIECES, in_pieces
from tests.collections.skewed_joins import check_skewed, in_rounds
from tests.collections.traces import trace_times
from tests.conftest import examples


@settings(max_examples=examples(200))
@given(st.integers(0, 1 << 30))
def test_joins_of_many_pairs_give_what_recomputing_gives(seed: int) -> None:
    check_skewed(seed)


records = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(-2, 2)), min_size=1, max_size=8
)


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(records, trace_times), max_size=6),
    records,
    trace_times,
    st.lists(st.tuples(records, trace_times, trace_times), max_size=8),
    st.sampled_from([1, 2, 7, 100]),
)
def test_a_batch_meets_what_was_known_when_it_began(
    before: Any, changes: Any, now: Any, later: Any, most: int
) -> None:
    """Whatever is inserted and merged while its pairs leave."""
    trace = Trace(2, let_be=1, fuel=4, at_once=4, lump=1)
    reader, others = trace.reader(), trace.reader()
    expected: Counter[Any] = Counter()
    one = consolidated(changes)
    for rows, time in before:
        if len(other := consolidated(rows)):
            trace.insert(other, time)
            expected.update(pairs_of(one, now, other, time))
    # Of the last batch nothing is known yet.
    for rows in (reader, others):
        rows.advance(trace.n_inserted, [(0, 0)])
    trace.insert(np.array([[0, 9, 1]]), (0, 0))
    matcher = Matcher(1, 2, np.array([0, 1, ~1], np.int32), 2)
    pairs = matcher.many(one, now, reader)
    found: Counter[Any] = Counter()
    while not pairs.is_over:
        made, n = pairs.some(most)
        assert sum(len(rows) for _, rows in made) <= n < 2 * most
        for time, rows in made:
            for *words, diff in rows.tolist():
                found[time, *words] += diff
        if later:
            rows, time, frontier = later.pop()
            if len(other := consolidated(rows)):
                trace.insert(other, time)
            others.advance(trace.n_inserted, [join_of(frontier, others.frontier[0])])
            trace.work(100)
    assert {k: n for k, n in found.items() if n} == {k: n for k, n in expected.items() if n}


def consolidated(rows: Any) -> Any:
    from pointstamp.kernels.consolidation import consolidate

    return consolidate(np.array(rows, np.int64))


def pairs_of(one: Any, now: Any, other: Any, time: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for k, v, n in one.tolist():
        for j, w, *when, m in with_time(other, time).tolist():
            if k == j:
                found[join_of(now, tuple(when)), k, v, w] += n * m
    return found


def most_at_once(collection: Any, counts: list[int]) -> None:
    """Note how many updates a following operator is given in each of its turns."""

    def build(capability: Any, info: Any) -> Any:
        capability.drop()

        def logic(input_: Any, output: Any) -> None:
            n = sum(len(batch) for _, batch in input_)
            if n:
                counts.append(n)

        return logic

    operator([collection.stream], [PIPELINE], "Turns", build, Interest.NEVER)


@pytest.mark.once
@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("sizes", [(1, 500), (500, 1), (30, 30), (70, 90)])
@pytest.mark.parametrize("fuel", [1, 7, 64])
def test_a_turn_makes_little_more_than_there_is_fuel_for(
    fuel: int, sizes: tuple[int, int], looped: bool
) -> None:
    """Of one key, of many epochs that come together, in which each side changes."""
    counts: list[int] = []

    def main(worker: ps.Worker) -> int:
        def build(sides: Any) -> Any:
            found = sides[0].join(sides[1].rename({"v": "w"}), on="k")
            most_at_once(found, counts)
            return found

        seen: list[Any] = []
        with worker.dataflow() as scope:
            made = [scope.new_collection("k long, v long") for _ in range(2)]
            sides = [collection for _, collection in made]
            result = in_rounds(build)(sides) if looped else build(sides)
            result.inspect(lambda row, time, diff: seen.append(diff))
        for epoch in range(3):
            for (input_, _), n in zip(made, sizes, strict=True):
                input_.insert([(1, epoch * n + k) for k in range(n)])
                input_.advance_to(epoch + 1)
        for input_, _ in made:
            input_.close()
        worker.run()
        return sum(seen)

    with in_pieces((fuel, *PIECES[0][1:])):
        assert ps.execute(main) == [9 * sizes[0] * sizes[1]]
    assert sum(counts) == 9 * sizes[0] * sizes[1]
    # What was left of the fuel was spent, or nearly, and then a piece was made.
    assert max(counts) < (2 if looped else 3) * (fuel + 1)


SIZES = [(2_000, 2_000), (50, 80_000), (80_000, 50), (1, 300_000)]


@pytest.mark.once
@pytest.mark.parametrize("sizes", SIZES if build_info() == "compiled" else [(500, 500)])
@pytest.mark.parametrize("at_once", [True, False])
def test_in_loops_what_a_join_makes_is_never_in_memory_as_a_whole(
    sizes: tuple[int, int], at_once: bool
) -> None:
    """Of four million pairs of one key, 128 MB, few are left by what follows.

    The sources, which take minutes for those, have words as objects of Python.
    """

    def build(scope: Any, one: Any, two: Any) -> Any:
        with scope.iterative() as inner:
            pairs = one.enter(inner).join(two.enter(inner), on="k")
            return pairs.filter(col("v") == col("w")).leave()

    view = ps.View(build, one="k long, v long", two="k long, w long")
    rows = [[(1, k) for k in range(n)] for n in sizes]
    for name, side in zip(["one", "two"], rows, strict=True):
        view.insert(name, side)
        if name == "one" and not at_once:
            view.advance()
    n_kept = 24 * sum(sizes)
    tracemalloc.start()
    try:
        assert len(view.advance()) == min(sizes)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What is kept is put together on its way, and then there are the pairs of a turn.
    assert peak < (16 << 20) + 3 * n_kept


@pytest.mark.parametrize("looped", [False, True])
def test_a_product_beyond_64_bits_in_a_later_piece_is_an_error_of_the_join(looped: bool) -> None:
    def main(worker: ps.Worker) -> None:
        def build(sides: Any) -> Any:
            return sides[0].join(sides[1].rename({"v": "w"}), on="k")

        with worker.dataflow() as scope:
            made = [scope.new_collection("k long, v long") for _ in range(2)]
            sides = [collection for _, collection in made]
            (in_rounds(build)(sides) if looped else build(sides)).inspect(lambda *update: None)
        for (input_, _), diff in zip(made, [2, 1 << 62], strict=True):
            input_.update([((k, 1), 1) for k in range(40)])
            input_.update([((50, 1), diff)])
            input_.close()
        worker.run()

    with in_pieces(PIECES[2]), pytest.raises(PointstampError, match=r"'Join'.*64 bits"):
        ps.execute(main)


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("n_steps", [1, 3, 7])
def test_a_dataflow_is_dropped_while_pairs_are_on_their_way(n_steps: int, looped: bool) -> None:
    def main(worker: ps.Worker) -> int:
        seen: list[Any] = []

        def build(sides: Any) -> Any:
            return sides[0].join(sides[1].rename({"v": "w"}), on="k")

        with worker.dataflow("dropped") as scope:
            made = [scope.new_collection("k long, v long") for _ in range(2)]
            sides = [collection for _, collection in made]
            result = in_rounds(build)(sides) if looped else build(sides)
            result.inspect(lambda row, time, diff: seen.append(row))
        for input_, _ in made:
            input_.insert([(1, k) for k in range(30)])
            input_.advance_to(1)
        for _ in range(n_steps):
            worker.step()
        worker.drop_dataflow("dropped")
        n = len(seen)
        worker.run()
        assert len(seen) == n < 900
        return n

    with in_pieces(PIECES[1]):
        ps.execute(main)
