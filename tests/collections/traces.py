"""Traces beside lists of all that was inserted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pointstamp.collections import trace as traces
from pointstamp.collections.lattice import join_of, less_equal
from pointstamp.kernels.consolidation import consolidate, is_consolidated
from tests.collections.merges import Meter

DEPTH = 2
trace_times = st.tuples(st.integers(0, 4), st.integers(0, 4))
updates = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-2, 2)), min_size=1, max_size=6
)
insertions = st.tuples(st.just("insert"), updates, trace_times)
catching_up = st.tuples(st.just("all"), trace_times)
pauses = st.tuples(st.just("idle"), st.integers(0, 9))
moves = st.tuples(
    st.just("advance"),
    st.integers(0, 2),
    st.integers(0, 3),
    st.lists(trace_times, min_size=1, max_size=2),
)


def accumulated(parts: Any, time: Any) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for rows, own in parts:
        for *words, diff in rows.tolist():
            at = own if own is not None else tuple(words[-DEPTH:])
            if less_equal(at, time):
                found[tuple(words if own is not None else words[:-DEPTH])] += diff
    return {record: n for record, n in found.items() if n}


def check(trace: Any, readers: list[Any], inserted: list[Any], asked: Any) -> None:
    for batch in trace.batches:
        assert is_consolidated(batch.rows)
        assert len(batch.rows)
    for reader in readers:
        parts = [(batch.rows, batch.time) for batch in reader.batches()]
        for element in reader.frontier:
            time = join_of(asked, element)
            assert accumulated(parts, time) == accumulated(inserted[: reader.known], time)


def check_trace(
    steps: list[Any], asked: Any, let_be: int = 1, fuel: int = 4, at_once: int = 4_096
) -> None:
    """Readers see what was inserted as far as they know of it, from the times on that they ask."""
    traces.SMALL = 1 if len(steps) % 2 else 256
    trace = traces.Trace(DEPTH, let_be, fuel, at_once, 1)
    meter = Meter(fuel, 1, 2 * 25)  # of a record in both batches, at each of the times
    readers = [trace.reader() for _ in range(3)]
    inserted: list[Any] = []
    for step in steps:
        if step[0] == "insert":
            rows = consolidate(np.array(step[1], np.int64))
            if len(rows):
                assert trace.insert(rows, step[2]) == len(inserted) + 1
                meter.n_arrived += len(rows)
                inserted.append((rows, step[2]))
        elif step[0] == "all":
            for reader in readers:
                reader.advance(
                    len(inserted), [join_of(step[1], known) for known in reader.frontier]
                )
        elif step[0] == "idle":
            meter.n_idle += step[1]
            trace.work(step[1])
        else:
            _, which, more, elements = step
            reader = readers[which]
            # It asks for times at or after what it asked for before.
            frontier = [join_of(element, old) for element in elements for old in reader.frontier]
            known = min(reader.known + more, len(inserted))
            reader.advance(known, frontier)
        check(trace, readers, inserted, asked)
