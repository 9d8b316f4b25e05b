"""Planted bugs in loops of collections, one line each, which the random programs catch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from tests.collections.checks import check_view, check_workers
from tests.collections.graphs import check_graph
from tests.collections.hunting import from_seed, planted_in, without_shrinking
from tests.collections.lattice_programs import LatticeProgram, check_lattice, lattice_programs
from tests.collections.loops import LoopProgram, loop_programs
from tests.collections.running import run_epochs
from tests.collections.traces import catching_up, check_trace, insertions, moves, trace_times


@from_seed(3)
@without_shrinking
@given(loop_programs())
def by_loops(program: LoopProgram) -> None:
    """Loops of one worker, an epoch after the other."""
    check_view(program)


@from_seed(4)
@without_shrinking
@given(loop_programs(), st.sampled_from([1, 2]), st.sampled_from([2, 7]), st.integers(0, 1 << 20))
def by_workers_of_loops(program: LoopProgram, workers: int, at_a_time: int, schedule: int) -> None:
    """Loops of several epochs under way."""
    check_workers(program, workers, at_a_time, schedule)


@from_seed(5)
@without_shrinking
@given(
    st.sampled_from(["bfs", "components"]),
    st.integers(0, 1 << 20),
    st.sampled_from([1, 2]),
    st.sampled_from([2, 7]),
)
def by_graphs(name: str, history: int, workers: int, at_a_time: int) -> None:
    """Graphs of several epochs under way."""
    check_graph(name, history, 8, workers, at_a_time)


@from_seed(7)
@without_shrinking
@given(
    lattice_programs(), st.sampled_from([1, 2]), st.sampled_from([1, 2, 7]), st.integers(0, 1 << 20)
)
def by_times(program: LatticeProgram, workers: int, at_a_time: int, schedule: int) -> None:
    """Operators of loops, looked at as of each epoch and round."""
    check_lattice(program, workers, at_a_time, schedule)


@from_seed(6)
@without_shrinking
@given(st.lists(st.one_of(insertions, moves), max_size=30), trace_times)
def by_readers(steps: list[Any], asked: Any) -> None:
    """Traces with readers that lag behind."""
    check_trace(steps, asked)


@from_seed(8)
@without_shrinking
@given(st.lists(st.one_of(insertions, catching_up), min_size=5, max_size=41), trace_times)
def by_merged_times(steps: list[Any], asked: Any) -> None:
    """Traces whose readers know of all that there is from time to time."""
    check_trace([*steps, *steps[: 1 - len(steps) % 2]], asked)  # an odd number: small limits


def by_totals() -> None:
    """An aggregate without a key in a loop, on two workers, first of nothing."""

    def build(collections: Sequence[Any]) -> Any:
        return collections[0].iterate(lambda found: found.agg(n=ps.count()), limit=1)

    epochs: list[Any] = [[[]], [[((7,), 1), ((8,), 1)]]]
    parts = ps.simulate(run_epochs, ["n long"], build, epochs, 1, workers=2, seed=1)
    found = [update for part in parts for update in part]
    for epoch, expected in enumerate([{(0,): 1}, {(2,): 1}]):
        now: Counter[Any] = Counter()
        for row, time, diff in found:
            now[row] += diff if time <= epoch else 0
        assert {row: n for row, n in now.items() if n} == expected


LOOP_MUTANTS = [
    *planted_in(
        "kernels.histories",
        by_readers,
        [
            (
                "Times become their join with all that is still asked for.",
                "found = list(map(min, found, map(max, time, element)))",
                "found = list(map(max, found, map(max, time, element)))",
            ),
            (
                "Times become representatives at one of the times that are asked for.",
                "for element in frontier[1:]:",
                "for element in frontier[:0]:",
            ),
        ],
    ),
    *planted_in(
        "collections.trace",
        by_readers,
        [
            (
                "What a reader does not know of yet is merged.",
                "if newest.last <= known:",
                "if newest.last <= known + 99:",
            ),
            (
                "A reader reads what it was not told of.",
                "return [batch for batch in self._trace.batches if batch.last <= self.known]",
                "return list(self._trace.batches)",
            ),
            (
                "Times are merged by what one reader asks for.",
                "frontier, batches = self.asked_for, self.batches[begin:end]",
                "frontier = next(r.frontier for r in reversed(self._readers) if r.frontier)\n"
                "        batches = self.batches[begin:end]",
            ),
        ],
    ),
    *planted_in(
        "collections.trace",
        by_readers,
        [
            (
                "Batches of several times are merged as of one.",
                "if part.time != time:",
                "if part.time is None:",
                25,
            ),
            (
                "A merge loses the first record.",
                "self.batches[begin:end] = [TraceBatch(merged, time, last)] if len(merged) else []",
                "self.batches[begin:end] = [TraceBatch(merged[1:], time, last)][: len(merged)]",
            ),
        ],
    ),
    *planted_in(
        "collections.trace_join",
        by_loops,
        [
            (
                "A pair with one of several times is there from the time of that one on.",
                "np.maximum(times, time, out=times)",
                "times[:, 0] = time[0]",
                18,
            ),
            (
                "A change meets no change that came before it.",
                "n_made += n\n            self._readers[side].known = number",
                "n_made += n",
            ),
            (
                "The longer side looks into the shorter one by the recipe of the other.",
                "one, other, recipe = other, one, recipes[1]",
                "one, other, recipe = other, one, recipes[0]",
                69,
            ),
        ],
    ),
    *planted_in(
        "collections.trace_join",
        by_graphs,
        [
            (
                "A pair is there from the time of the later change on.",
                "by_time.setdefault(join_of(time, own), []).append(rows)",
                "by_time.setdefault(time, []).append(rows)",
            ),
            (
                "A side is kept as its own changes need it.",
                "input_, reader = inputs[1 - side], readers[side]",
                "input_, reader = inputs[side], readers[side]",
            ),
        ],
    ),
    *planted_in(
        "collections.reduce",
        by_loops,
        [
            (
                "The answer that left is not taken back.",
                "rows[:, -1] *= -1",
                "rows[:, -1] *= 0",
            ),
            (
                "What left is not kept.",
                "self._output.insert(changes, time)",
                "pass",
            ),
        ],
    ),
    *planted_in(
        "collections.reduce",
        by_times,
        [
            (
                "No group is looked at again at a later round.",
                "return changes, split_by_first(joins, self._depth)",
                "return changes, []",
                1,
            ),
            (
                "A group is looked at again at the last of the later rounds alone.",
                "return changes, split_by_first(joins, self._depth)",
                "return changes, split_by_first(joins, self._depth)[-1:]",
                1,
            ),
        ],
    ),
    *planted_in(
        "collections.trace",
        by_merged_times,
        [
            (
                "A batch gets the first of its times.",
                "if not len(rows) or (times != times[0]).any():",
                "if not len(rows):",
            ),
        ],
    ),
    *planted_in(
        "kernels.histories",
        by_times,
        [
            (
                "Pairs are there from the time of the change on.",
                "found[tuple(map(max, time, own))].append([*words, row[-1] * other[-1]])",
                "found[time].append([*words, row[-1] * other[-1]])",
                3,
            ),
            (
                "Times are compared as they are sorted.",
                "if all(one <= other for one, other in zip(own, time, strict=True)):",
                "if own <= time:",
            ),
            (
                "A later time is not joined with the one that is looked at.",
                "joins[(*map(max, own, time), *key, 1)] = None",
                "joins[(*own, *key, 1)] = None",
            ),
            (
                "The last record of a group is its first.",
                "if diff > 0 and (greatest or key not in firsts):",
                "if diff > 0 and key not in firsts:",
                1,
            ),
            (
                "The record that left is not taken back.",
                "left[:, -1] *= -1\n    changes",
                "left = left[:0]\n    changes",
            ),
        ],
    ),
    *planted_in(
        "collections.reduce",
        by_totals,
        [
            (
                "Each worker has the row of an empty collection.",
                "not is_restored(info) and owner(always, info.peers) == info.index:",
                "not is_restored(info):",
            ),
        ],
    ),
    *planted_in(
        "collections.fixpoint",
        by_loops,
        [
            (
                "The start stays in each round.",
                "changes = result.concat(entered.negate())",
                "changes = result",
            ),
            (
                "There is one round more than the limit says.",
                "loop, stream = inner.feedback(1, limit, name)",
                "loop, stream = inner.feedback(1, limit and limit + 1, name)",
                6,
            ),
            (
                "What leaves is what went round.",
                "(entered if limit == 0 else result).leave()",
                "entered.concat(entered.of(stream, start.schema)).leave()",
            ),
        ],
    ),
    *planted_in(
        "operators.feedback",
        by_workers_of_loops,
        [
            (
                "What waits to enter a loop is let go of.",
                "self._waiting[place][1].append(batch)",
                "self._waiting[place][0].drop()",
            ),
            (
                "What waits enters by the first way in.",
                "input_, output = inputs[port - 1], outputs[port]",
                "input_, output = inputs[port - 1], outputs[1]",
            ),
        ],
    ),
    *planted_in(
        "collections.counted",
        by_loops,
        [
            (
                "The inputs are taken for each other.",
                "for number in range(n_inputs)",
                "for number in reversed(range(n_inputs))",
                68,
            ),
        ],
    ),
    *planted_in(
        "collections.aggregate",
        by_loops,
        [
            (
                "An empty collection has no row in a loop.",
                "return found if always is None or len(found) else empty",
                "return found",
                24,
            ),
        ],
    ),
]
