"""The count of `kept_tables`, kept up to date by Pathway.

A connector in Python gives it a round's rows and commits them; the round is over when a subscriber
to the result hears of the end of its time. Where a round changes nothing it hears of none, so that
a join cannot be measured like this.
"""

from __future__ import annotations

import os
import threading
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.harness.case import Effort, Measure, Reading
from benchmarks.harness.memory import peaks

WAIT_S = 300.0


def kept(n_records: int, changes: int, rounds: int) -> Measure:
    """Seconds of a round of so many changes each way, in one thread."""

    def measure(effort: Effort) -> Reading:
        os.environ["PATHWAY_THREADS"] = "1"
        n_rounds = rounds * (effort.samples + 1)
        seconds = _rounds(n_records, changes, n_rounds)
        samples = [median(seconds[at : at + rounds]) for at in range(0, n_rounds, rounds)]
        return Reading(samples[1:], peaks())

    return measure


def _rounds(n_records: int, changes: int, n_rounds: int) -> list[float]:
    import pathway as pw

    pw.internals.parse_graph.G.clear()
    over, seconds = threading.Event(), list[float]()
    choose = np.random.default_rng(1)
    keys = choose.integers(0, n_records, n_records + changes * n_rounds).tolist()

    class Changes(pw.io.python.ConnectorSubject):
        """All records, then a round after the other."""

        def run(self) -> None:
            for number, key in enumerate(keys[:n_records]):
                self.next(id=number, k=key)
            over.clear()
            self.commit()
            over.wait(WAIT_S)
            for at in range(0, changes * n_rounds, changes):
                over.clear()
                began = perf_counter()
                for number in range(at, at + changes):
                    self.next(id=n_records + number, k=keys[n_records + number])
                    self.delete(id=number, k=keys[number])
                self.commit()
                over.wait(WAIT_S)
                seconds.append(perf_counter() - began)

    schema = pw.schema_builder(
        {
            "id": pw.column_definition(dtype=int, primary_key=True),
            "k": pw.column_definition(dtype=int),
        }
    )

    one = pw.io.python.read(Changes(), schema=schema, autocommit_duration_ms=None)
    result = one.groupby(pw.this.k).reduce(pw.this.k, n=pw.reducers.count())
    pw.io.subscribe(result, on_change=lambda **_: None, on_time_end=lambda time: over.set())
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return seconds
