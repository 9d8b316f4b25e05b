"""Views whose texts are swept give what recomputing gives, and keep no texts that are not there."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.text_sweep import SWEEPS
from tests.collections.checks import in_pieces
from tests.collections.loops import loop_programs
from tests.collections.programs import Program, programs
from tests.collections.record_programs import (
    RecordProgram,
    check_records_in_view,
    record_programs,
)
from tests.collections.sweeping import (
    ALONE,
    PIECES,
    check_alone,
    check_bystanders,
    check_swept,
    sweeping,
)
from tests.conftest import examples


@settings(max_examples=examples(200))
@given(programs(), st.sampled_from(PIECES), st.booleans())
def test_swept_views_are_what_recomputing_gives(program: Program, piece: int, reuses: bool) -> None:
    check_swept(program, piece, reuses)


@settings(max_examples=examples(80))
@given(loop_programs(), st.sampled_from(PIECES), st.booleans())
def test_so_are_swept_loops(program: Program, piece: int, reuses: bool) -> None:
    check_swept(program, piece, reuses)


@settings(max_examples=examples(80))
@given(record_programs(), st.sampled_from(PIECES), st.booleans())
def test_so_are_swept_records(program: RecordProgram, piece: int, reuses: bool) -> None:
    with sweeping(piece, reuses):
        check_records_in_view(program)


@pytest.mark.parametrize("name", ALONE)
def test_texts_stay_that_one_operator_alone_keeps(name: str) -> None:
    check_alone(name)


def test_texts_stay_that_are_outside_of_the_view_that_sweeps() -> None:
    check_bystanders()


def churning(scope: Any, left: Any, right: Any) -> dict[str, Any]:
    """A join, aggregates, the first of each group, a loop, and records that come and go."""
    joined = left.join(right, on="k")
    capped = ps.when(col("k") < 3).then(col("k") + 1).otherwise(3)
    return {
        "joined": joined.group_by("t").agg(n=ps.count(), last=ps.max("u")),
        "first": left.group_by("k").top_k(2, by="t"),
        "loop": left.iterate(lambda found: found.select(k=capped, t="t").distinct()),
        "there": right.temporal_filter("k", col("k") + 1),
        "none": joined.filter(col("t") == "a constant that never comes"),
    }


SCHEMAS = {"left": "k long, t string", "right": "k long, u string"}


def rows_of(turn: int, n: int) -> dict[str, list[tuple[int, str]]]:
    return {
        name: [(k, f"a text of {name} that is new in turn {turn}: {k}") for k in range(n)]
        for name in SCHEMAS
    }


def churn(view: ps.View, turn: int, n: int) -> Any:
    """An epoch in which all rows are others."""
    for name, rows in rows_of(turn, n).items():
        view.insert(name, rows)
    if turn:
        for name, rows in rows_of(turn - 1, n).items():
            view.delete(name, rows)
    return view.advance()


def test_entries_are_at_most_twice_those_in_use_and_some() -> None:
    with sweeping(), ps.View(churning, **SCHEMAS) as view:
        SWEEPS.spare = 64
        most = 0
        for turn in range(200):
            changes = churn(view, turn, 20)
            if turn > 40:
                texts = view.stats().texts
                assert texts.entries <= 2 * texts.used + 64 + 2 * 40
                most = max(most, texts.entries)
                assert len(changes["first"]) == 40
        # 8,000 texts came, of which 40 are there at a time, and 40 on their way out.
        assert most < 800
        assert view.stats().texts.sweeps > 10


def test_an_operator_that_says_nothing_of_its_texts_has_none_swept() -> None:
    def build(scope: Any, t: Any) -> Any:
        t.each_batch(lambda time, batch: None, name="Looks")
        return t.distinct()

    with sweeping():
        n_before = SWEEPS.stats().sweeps
        with ps.View(build, t="t string") as view:
            for turn in range(5):
                view.insert("t", [(f"it stays {turn}",)])
                view.advance()
            assert "do not say which texts they keep: Looks" in view.stats().texts.refused
            assert view.stats().texts.sweeps == n_before


def test_a_worker_that_is_of_no_view_has_none_swept() -> None:
    def main(worker: ps.Worker) -> tuple[str, int]:
        with ps.View(lambda scope, t: t.distinct(), t="t string") as view:
            n_before = SWEEPS.stats().sweeps
            for turn in range(5):
                view.insert("t", [(f"with a worker {turn}",)])
                view.advance()
            return view.stats().texts.refused, SWEEPS.stats().sweeps - n_before

    with sweeping():
        ((refused, n_sweeps),) = ps.execute(main)
    assert refused.startswith("1 workers in this process")
    assert n_sweeps == 0


def test_changes_that_are_kept_have_their_texts_also_when_copied() -> None:
    with sweeping(), ps.View(lambda scope, t: t.distinct(), t="t string") as view:
        kept = []
        for turn in range(6):
            view.insert("t", [(f"kept from turn {turn}",)])
            if turn:
                view.delete("t", [(f"kept from turn {turn - 1}",)])
            changes = view.advance()
            kept.append((changes, pickle.loads(pickle.dumps(changes)), view.snapshot()))
        for turn, (changes, copied, snapshot) in enumerate(kept):
            assert changes == copied
            assert ((f"kept from turn {turn}",), 1) in changes
            assert snapshot == [(f"kept from turn {turn}",)]
            assert changes.to_arrow().num_rows == copied.to_arrow().num_rows == 1 + (turn > 0)


def test_a_view_that_has_failed_holds_its_results_alone() -> None:
    with sweeping():
        broken = ps.View(lambda scope, t: t.assert_empty("there are none"), t="t string")
        broken.insert("t", [("it fails",)])
        with pytest.raises(ps.errors.OperatorError):
            broken.advance()
        n_before = SWEEPS.stats().sweeps
        with ps.View(lambda scope, t: t.distinct(), t="t string") as view:
            for turn in range(6):
                view.insert("t", [(f"beside it {turn}",)])
                view.advance()
            assert SWEEPS.stats().sweeps > n_before
            assert len(view.snapshot()) == 6


SECONDS = float(os.environ.get("POINTSTAMP_CHURN_SECONDS", "3600"))
"""How long the soak goes on."""


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.soak
def test_an_hour_of_churn_leaves_memory_flat() -> None:
    """Texts that are ever new through a join, the first of groups, and a loop."""
    n = 500
    lines, measured = [], []
    with ps.View(churning, **SCHEMAS) as view:
        began, turn, longest = time.monotonic(), 0, 0.0
        while (elapsed := time.monotonic() - began) < SECONDS:
            at = time.perf_counter()
            churn(view, turn, n)
            longest = max(longest, time.perf_counter() - at)
            turn += 1
            if elapsed >= len(measured) * SECONDS / 20:
                gc.collect()
                stats = view.stats()
                measured.append((resident_bytes(), stats.texts.entries, stats.updates))
                lines.append(
                    f"{elapsed:.0f} s, {turn} epochs, {2 * n * turn} texts came: "
                    f"{resident_bytes() >> 20} MB, {stats.texts}, {stats.updates} updates, "
                    f"longest epoch {longest * 1e3:.0f} ms"
                )
                print(lines[-1], flush=True)
    settled, later = measured[4:12], measured[12:]
    assert len(later) >= 5
    for kind, slack in enumerate((16 << 20, 20_000, 20_000)):
        most = max(each[kind] for each in settled)
        assert max(each[kind] for each in later) <= 1.1 * most + slack, "\n".join(lines)
    assert len(TEXTS) < 300_000


def test_code_that_runs_where_a_sweep_begins_may_wait_for_what_gives_values() -> None:
    """What a join still has to give, beside what is waited for, leaves where a sweep asks."""
    changes: list[bytes] = []
    came: list[bool] = []

    def look(row: Any, time: int, diff: int) -> None:
        if changes and SWEEPS._is_at_it and not came:
            # Values are given there, as of what another process has sent.
            other = threading.Thread(target=pickle.loads, args=(changes[0],), daemon=True)
            other.start()
            other.join(60)
            came.append(not other.is_alive())

    def build(scope: Any, given: Any) -> Any:
        given.join(given.rename({"t": "u"}), on="k").inspect(look)
        return given.distinct()

    with in_pieces((1, 8, 1 << 18)), sweeping(), ps.View(build, given="k long, t string") as view:
        for turn in range(3):
            view.insert("given", [(1, f"text {n} of turn {turn}") for n in range(6)])
            changes.append(pickle.dumps(view.advance()))
    assert came == [True]
