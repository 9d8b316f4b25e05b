"""Planted bugs in merges by pieces, one line each, as those in `mutants.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from hypothesis import given, seed
from hypothesis import strategies as st

from pointstamp.collections import batch_merges, spine
from pointstamp.collections.trace import Trace
from tests.collections.hunting import planted_in, without_shrinking
from tests.collections.merges import (
    Meter,
    check_series,
    check_spine,
    fuels,
    lumps,
    pairs,
    steps,
    thresholds,
)
from tests.collections.traces import (
    catching_up,
    check_trace,
    insertions,
    moves,
    pauses,
    trace_times,
)


@contextmanager
def few_are_read() -> Iterator[None]:
    """Bugs are planted into what is interpreted: there these are looked up."""
    with ExitStack() as undo:
        for module, name, n in (
            (batch_merges, "_MOST_READ", 5),
            (batch_merges, "_FEW_ROWS", 2),
            (spine, "_MOST_READ", 5),
            (spine, "_FEW_ROWS", 2),
            (spine, "_MOST_NEW", 1),
        ):
            undo.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, n)
        yield


@seed(13)
@without_shrinking
@given(steps, fuels, thresholds, lumps)
def by_spines(steps: list[Any], fuel: int, at_once: int, lump: int) -> None:
    """Spines that merge by little at a time, and of which few batches are read side by side."""
    with few_are_read():
        check_spine(steps, fuel, at_once, lump)


@seed(14)
@without_shrinking
@given(st.lists(pairs, max_size=90), fuels, thresholds, lumps)
def by_series(epochs: list[Any], fuel: int, at_once: int, lump: int) -> None:
    """Series that do."""
    with few_are_read():
        check_series(epochs, fuel, at_once, lump, 5)


@seed(15)
@without_shrinking
@given(
    st.lists(
        st.one_of(insertions, insertions, catching_up, catching_up, moves, pauses),
        min_size=12,
        max_size=40,
    ),
    trace_times,
    fuels,
    thresholds,
)
def by_traces(steps: list[Any], asked: Any, fuel: int, at_once: int) -> None:
    """Traces that do."""
    check_trace(steps, asked, 1, fuel, at_once)


def by_fuel_of_a_trace() -> None:
    """A merge of two batches of a trace, to which a few updates come."""
    trace = Trace(1, 1, 1, 0, 1)
    reader, meter = trace.reader(), Meter(1, 1, 2)
    for epoch, n in enumerate([40, 40, *[1] * 30]):
        rows = np.array([[100 * epoch + word, 1] for word in range(n)])
        reader.advance(trace.insert(rows, (epoch,)), [(epoch + 1,)])
        meter.n_arrived += n
        meter.check(trace.merges)
        assert trace.merges or epoch not in (1, 10)


MERGE_MUTANTS = [
    *planted_in(
        "collections.spine",
        by_spines,
        [
            (
                "A merge is published unfinished.",
                "            if older.merge.is_complete:",
                "            if older.merge.n_read:",
            ),
            (
                "Fuel is spent twice.",
                "        self._owed = 0\n        is_complete = False",
                "        is_complete = False",
                1,
            ),
            (
                "A merge that is no longer small loses the first record.",
                "self._publish(at, older.merge.rows)",
                "self._publish(at, older.merge.rows[1:])",
            ),
            (
                "Runs are read that are of before the merge.",
                "        self._runs_have_fewer(1 if len(rows) else 2, at + 1)\n",
                "",
                1,
            ),
            (
                "What is merged has the time of the older one.",
                "time = self._batches[at].time",
                "time = self._batches[at - 1].time",
            ),
            (
                "A batch is in two merges.",
                "if is_longer or older.is_merging or newer.is_merging:",
                "if is_longer:",
                1,
            ),
            (
                "There is always something to do when idle.",
                "        self._is_idle_known = False\n        return False",
                "        return True",
            ),
            (
                "When idle nothing is begun.",
                "if first >= 0 and not self._batches[n - 1].is_merging:",
                "if False:",
            ),
        ],
    ),
    *planted_in(
        "kernels.consolidation",
        by_spines,
        [
            (
                "A merge by pieces keeps diffs of zero.",
                "i, j, n, most = i + 1, j + 1, n + (total != 0), most - 2",
                "i, j, n, most = i + 1, j + 1, n + 1, most - 2",
                1,
            ),
            (
                "Of what one side alone has left a row is left out between pieces.",
                "at[:] = i, j, n",
                "at[:] = i, j + (0 < j < len(right) and i == len(left)), n",
                1,
            ),
        ],
    ),
    *planted_in(
        "collections.batch_merges",
        by_series,
        [
            (
                "In a series a merge is put in place unfinished.",
                "            if under_way.is_complete:\n                self._put",
                "            if under_way.n_read:\n                self._put",
            ),
            (
                "In a series fuel is spent twice.",
                "            self._owed = 0\n        self.rows.append",
                "        self.rows.append",
            ),
            (
                "In a series a batch is in two merges.",
                "is_free = merges[at] is None and (at < 2 or merges[at - 2] is None)",
                "is_free = True",
            ),
            (
                "In a series there are more batches than are read.",
                "while len(rows) > _MOST_READ:",
                "while len(rows) > 2 * _MOST_READ:",
            ),
        ],
    ),
    *planted_in(
        "collections.trace",
        by_traces,
        [
            (
                "In a trace a merge is published unfinished.",
                "if batch.merge is not None and batch.merge.advance(fuel):",
                "if batch.merge is not None and (batch.merge.advance(fuel) or batch.merge.n_read):",
            ),
            (
                "A piece ends between updates of one record.",
                "right.rows, j, most, self._n_words)",
                "right.rows, j, most, min(r.rows.shape[1] - 1 for r in (left, right)))",
                1,
            ),
            (
                "Rows are taken to be of the time of the first piece.",
                "self._seen = first if (times == first).all() else None",
                "self._seen = first",
            ),
        ],
    ),
    *planted_in(
        "collections.trace",
        by_fuel_of_a_trace,
        [
            (
                "In a trace fuel is spent twice.",
                "        self._owed = 0\n        for at",
                "        for at",
            ),
        ],
    ),
]
