"""Tables that change: a count by key and a join, kept up to date.

A million records (for the join, on each side) are there when the clock starts. A round inserts
some and deletes as many, and is over when the changes of the result are out. What is told is the
median of the rounds of a sample. Rust's is differential dataflow, whose keys have 32 bits and
ours 64; of it a sample is a run of its program, which has its own clock.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

import pointstamp as ps
from benchmarks import kept_in_pathway
from benchmarks.harness import rust
from benchmarks.harness.case import (
    OURS,
    RUST,
    At,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Reading,
    Size,
    Target,
)
from benchmarks.harness.memory import peaks
from pointstamp.containers.convert import arrow_array
from pointstamp.containers.words import LONG, record_batch

RECORDS = {"tiny": 1_000, "small": 100_000, "full": 1_000_000}
ROUNDS = {"tiny": (2, 2, 2, 2), "small": (200, 100, 50, 20), "full": (2_000, 1_000, 300, 100)}
CHANGES = (1, 10, 100, 1_000)
COUNT, JOIN = "a count by key", "a join"
AS_COLUMNS = 100
"""So many changes, or more, are given as columns; fewer as rows."""

Build = Callable[..., Any]
Ints = npt.NDArray[np.int64]


def count(scope: ps.Scope, a: ps.Collection) -> ps.Collection:
    """How many records each key has."""
    return a.group_by("k").count()


def join(scope: ps.Scope, a: ps.Collection, b: ps.Collection) -> ps.Collection:
    """The pairs of equal key."""
    return a.join(b, on="k")


def kept(
    build: Build,
    inputs: dict[str, list[str]],
    n_records: int,
    changes: int,
    rounds: int,
    n_keys: int | None = None,
    *,
    of: Callable[[list[Ints]], list[Ints]] = list,
) -> Measure:
    """Seconds of a round of so many changes each way; without `n_keys` as many keys as records.

    Columns of random keys are `of` what is drawn.
    """

    def measure(effort: Effort) -> Reading:
        choose = np.random.default_rng(1)

        def made(columns: list[str], n: int) -> Any:
            arrays = [
                arrow_array(column)
                for column in of([choose.integers(0, n_keys or n_records, n) for _ in columns])
            ]
            return record_batch([(name, LONG, False) for name in columns], arrays)

        schemas = {name: ", ".join(f"{c} long" for c in cs) for name, cs in inputs.items()}
        with ps.View(build, **schemas) as view:
            first, *_ = inputs
            known: list[Any] = []
            for name, columns in inputs.items():
                records = made(columns, n_records)
                view.insert(name, records)
                if name == first:
                    n_known = changes * rounds * (effort.samples + 1)
                    starts = range(0, min(n_known, n_records - changes + 1), changes)
                    known = [records.slice(at, changes) for at in starts]
            view.advance()
            gc.collect()
            seconds = []
            for _ in range(effort.samples + 1):
                todo, sample = [], []
                for _ in range(rounds):
                    come, gone = made(inputs[first], changes), known.pop(0)
                    known.append(come)
                    is_few = changes < AS_COLUMNS
                    todo.append((_rows(come), _rows(gone)) if is_few else (come, gone))
                # Made before all rounds: what else runs between two takes the caches from them.
                for come, gone in todo:
                    began = perf_counter()
                    view.insert(first, come)
                    view.delete(first, gone)
                    view.advance()
                    sample.append(perf_counter() - began)
                seconds.append(median(sample))
        return Reading(seconds[1:], peaks())

    return measure


def _rows(batch: Any) -> list[tuple[int, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def in_rust(
    program: str, n_records: int, changes: int, rounds: int, n_keys: int | None = None
) -> Measure:
    """The same by differential dataflow, in one thread."""
    each = ",".join(str(rounds if n == changes else 0) for n in CHANGES)
    arguments = (program, n_keys or n_records, n_records, each, "--")

    def measure(effort: Effort) -> Reading:
        ran = [rust.run("ddrace", arguments, rust.ALONE) for _ in range(effort.samples)]
        seconds = [_median(each.lines, changes) for each in ran]
        return Reading(seconds, max((each.peaks for each in ran), key=sum))

    return measure


def _median(lines: list[str], changes: int) -> float:
    """The seconds that the program prints.

    >>> _median(["R changes 10+10 median_us 44.0 p10_us 40.1"], 10)
    4.4e-05
    """
    for line in lines:
        words = line.split()
        if words[:3] == ["R", "changes", f"{changes}+{changes}"]:
            return 1e-6 * float(words[words.index("median_us") + 1])
    raise RuntimeError(f"the program printed no median: {' '.join(lines)[:200]!r}")


def cases(size: Size) -> list[Case]:
    """Both questions, with one to a thousand changes each way."""
    n_records = RECORDS[size]
    questions: list[tuple[str, str, Build, dict[str, list[str]]]] = [
        (COUNT, "count", count, {"a": ["k"]}),
        (JOIN, "join", join, {"a": ["k", "x"], "b": ["k", "y"]}),
    ]
    found = []
    for question, program, build, inputs in questions:
        for changes, rounds in zip(CHANGES, ROUNDS[size], strict=True):
            at: At = {"kept": question, "in and out": changes}
            ours = partial(kept, build, inputs, n_records, changes)
            # At least as many records are known as go in all rounds.
            rounds_of_ours = min(rounds, n_records // changes // 10)
            found.append(Case(OURS, ours(max(1, rounds_of_ours)), at=at))
            peer = in_rust(program, n_records, changes, rounds)
            found.append(Case(f"{RUST} differential", peer, at=at, samples=3, absent=rust.absent))
            if question == COUNT:
                peer = kept_in_pathway.kept(n_records, changes, max(2, rounds // 10))
                found.append(Case("Pathway", peer, at=at, samples=2, needs=("pathway",)))
    return found


BENCHMARK = Benchmark(
    name="kept_tables",
    title="Changing tables: an incremental count and join of a million records",
    about="From inserting some records and deleting as many to knowing what that changes; the "
    "median of the rounds of a sample.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(f"{RUST} differential",),
    targets=(
        Target({"kept": JOIN, "in and out": 1}, 15, 10),
        Target({"kept": JOIN, "in and out": 100}, 200, 120),
        Target({"kept": JOIN, "in and out": 1_000}, 1_800, 900),
    ),
)
