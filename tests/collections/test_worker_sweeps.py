"""Workers and services whose texts are swept give what recomputing gives, and keep few texts."""

from __future__ import annotations

import gc
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.text_sweep import SWEEPS
from tests.collections import worker_sweeping as checks
from tests.collections.loops import loop_programs
from tests.collections.programs import Program, programs
from tests.collections.sweeping import ALONE, PIECES, sweeping
from tests.conftest import examples

STEPS = st.lists(st.integers(0, 40), min_size=1, max_size=6)


@settings(max_examples=examples(100), deadline=None)
@given(programs(), STEPS, st.sampled_from(PIECES), st.booleans())
def test_swept_workers_are_what_recomputing_gives(
    program: Program, steps: list[int], piece: int, reuses: bool
) -> None:
    checks.check_swept_worker(program, steps, piece, reuses)


@settings(max_examples=examples(60), deadline=None)
@given(programs(), STEPS, st.sampled_from(PIECES), st.booleans())
def test_swept_traces_are_what_recomputing_gives(
    program: Program, steps: list[int], piece: int, reuses: bool
) -> None:
    checks.check_swept_traces(program, steps, piece, reuses)


def test_texts_of_a_trace_stay_as_long_as_it_can_be_read() -> None:
    checks.check_traces_are_let_go()


def test_a_worker_forgets_traces_that_nothing_reads() -> None:
    checks.check_handles_are_forgotten()


def test_what_an_import_reads_outlasts_its_source() -> None:
    checks.check_imports_outlast()


def test_a_trace_of_a_view_keeps_all_texts() -> None:
    checks.check_traces_of_a_view()


def test_a_trace_with_texts_of_a_worker_that_has_ended_is_not_read() -> None:
    checks.check_traces_of_a_worker_that_has_ended()


@settings(max_examples=examples(60), deadline=None)
@given(loop_programs(), STEPS, st.sampled_from(PIECES), st.booleans())
def test_so_are_swept_loops(program: Program, steps: list[int], piece: int, reuses: bool) -> None:
    checks.check_swept_worker(program, steps, piece, reuses)


@settings(max_examples=examples(3), deadline=None)
@given(st.lists(programs() | loop_programs(), min_size=12, max_size=12), STEPS, st.booleans())
def test_so_are_two_processes(some: list[Program], steps: list[int], reuses: bool) -> None:
    found = ps.execute(checks.run_all_swept, some, steps, reuses, workers=2)
    for number, program in enumerate(some):
        checks.check_updates([update for part, _, _ in found for update in part[number]], program)
    assert all(n_sweeps > 0 for _, n_sweeps, _ in found), [why for _, _, why in found]


@settings(max_examples=examples(15), deadline=None)
@given(programs() | loop_programs(), st.booleans())
def test_so_are_swept_services(program: Program, reuses: bool) -> None:
    checks.check_swept_service(program, reuses)


@settings(max_examples=examples(2), deadline=None)
@given(programs(), st.integers(1, 2))
def test_so_are_services_of_processes(program: Program, workers: int) -> None:
    with sweeping():
        checks.drive_service(program, workers)


@pytest.mark.parametrize("name", ALONE)
def test_texts_stay_that_one_operator_alone_keeps(name: str) -> None:
    checks.check_alone_in_worker(name)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_under_way,
        checks.check_rows_without_schema,
        checks.check_equal_pins,
        checks.check_steps_while_rows_are_given,
        checks.check_views_inside_of_steps,
        checks.check_views_beside,
        checks.check_service_that_is_given_rows,
        checks.check_added_up,
    ],
)
def test_what_is_not_between_epochs_is_found(check: Any) -> None:
    check()


def test_what_is_handed_out_for_a_snapshot_stays(tmp_path: Path) -> None:
    checks.check_snapshots(tmp_path)


@pytest.mark.parametrize("reuses", [False, True])
def test_what_a_complete_dataflow_hands_out_for_later_snapshots_stays(
    tmp_path: Path, reuses: bool
) -> None:
    checkpoint = Checkpoint(tmp_path)
    kept = [(k, f"kept {k}") for k in range(3)]

    def snapshot_when_complete(worker: Any) -> Any:
        with worker.dataflow("kept", durable=Durable(checkpoint)) as scope:
            input_, given = scope.new_collection("k long, t string")
            given.arrange("k")
            given.distinct()
        with worker.dataflow("others") as scope:
            others, texts = scope.new_collection("t string")
            probe = texts.distinct().probe()
        input_.insert(kept)
        input_.close()
        worker.run("kept")
        for turn in range(4):
            rows = [(f"other {turn} {number}",) for number in range(9)]
            for change in (others.insert, others.delete):
                change(rows)
                others.advance_to(others.time + 1)
                worker.step_while(lambda: probe.less_than(others.time))
                for _ in range(40):  # looks for what is to be swept once in a few
                    worker.step()
        snapshot = worker.snapshot(0, background=False)
        worker.step_while(lambda: not snapshot.done)
        return snapshot.part

    def delete_all(worker: Any) -> list[Any]:
        found: list[Any] = []
        durable = Durable(checkpoint, checkpoint.latest())
        with worker.dataflow("kept", durable=durable) as scope:
            input_, given = scope.new_collection("k long, t string")
            given.arrange("k")
            given.distinct().inspect(lambda row, time, diff: found.append((row, diff)))
        input_.delete(kept)
        input_.close()
        worker.run()
        return sorted(found)

    with sweeping(reuses=reuses):
        (part,) = ps.execute(snapshot_when_complete)
    checkpoint.commit_manifest(0, [part], {})
    assert ps.execute(delete_all) == [[(row, -1) for row in kept]]


def test_a_durable_service_begins_again_with_texts_that_are_swept(tmp_path: Path) -> None:
    checks.check_durable_service(tmp_path)


def test_what_a_snapshot_had_goes_when_it_is_deleted(tmp_path: Path) -> None:
    def life(n: int) -> int:
        with ps.serve(
            checks.churned,
            1,
            threads=True,
            collections={"t": "k long, t string"},
            checkpoint=tmp_path,
            snapshot_every=1,
        ) as service:
            if n:
                service.input("t").insert(checks.rows_of(1, n))
            else:
                service.input("t").delete(checks.rows_of(1, 500))
            epoch = service.advance()
            assert len(service.output("all").snapshot(epoch)) == n
            for name in ("all", "last"):
                service.output(name).discard(epoch)
            assert service.await_snapshot(epoch)
            for _ in range(6 if n else 200):
                if len(TEXTS) < 100:
                    break  # what was deleted is merged when there is time
                service.input("t").insert(checks.rows_of(2, 1))
                service.input("t").delete(checks.rows_of(2, 1))
                service.output("all").probe.wait(service.advance())
            return len(TEXTS)

    with sweeping():
        assert life(500) > 500
        gc.collect()
        assert life(0) < 100


def churning(scope: Any, left: Any, right: Any) -> dict[str, Any]:
    """A join, aggregates, the first of each group, and a loop."""
    joined = left.join(right, on="k")
    capped = ps.when(col("k") < 3).then(col("k") + 1).otherwise(3)
    return {
        "joined": joined.group_by("t").agg(n=ps.count(), last=ps.max("u")),
        "first": left.group_by("k").top_k(2, by="t"),
        "loop": left.iterate(lambda found: found.select(k=capped, t="t").distinct()),
        "none": joined.filter(col("t") == "a constant that never comes"),
    }


SCHEMAS = {"left": "k long, t string", "right": "k long, u string"}


def send(service: ps.Service, turn: int, n: int) -> int:
    """An epoch in which all rows are others."""
    for name in SCHEMAS:
        service.input(name).insert(checks.rows_of(turn, n))
        if turn:
            service.input(name).delete(checks.rows_of(turn - 1, n))
    return service.advance()


def run_churn(worker: ps.Worker, n_epochs: int, ahead: int) -> tuple[int, int, str]:
    """At most so many entries after a while, how many sweeps, and why not more."""
    with sweeping() as sweeps:
        with worker.dataflow() as scope:
            made = {name: scope.new_collection(schema) for name, schema in SCHEMAS.items()}
            results = churning(scope, *(collection for _, collection in made.values()))
            probe = ps.Probe()
            for result in results.values():
                result.probe_with(probe)
        sweeps.spare, before, most = 64, sweeps.stats().sweeps, 0
        for turn in range(n_epochs):
            for input_, _ in made.values():
                input_.insert(checks.rows_of(turn * 2 + worker.index, 20))
                if turn:
                    input_.delete(checks.rows_of(turn * 2 - 2 + worker.index, 20))
                input_.advance_to(turn + 1)
            worker.step_while(partial(probe.less_than, turn + 1 - ahead))
            if turn > 40:
                most = max(most, len(TEXTS))
        found = most, sweeps.stats().sweeps - before, sweeps.stats().refused
        # What is under way names texts of this dictionary, so all is done before it goes.
        for input_, _ in made.values():
            input_.close()
        worker.run()
        return found


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("ahead", [0, 3])
def test_entries_are_at_most_twice_those_in_use_also_under_load(workers: int, ahead: int) -> None:
    for most, n_sweeps, refused in ps.execute(run_churn, 120, ahead, workers=workers):
        # Of 2,400 for each worker: those of this epoch and of the one before, and of each that
        # is under way, are in use; there may be twice as many, and those that came meanwhile.
        assert most < 144 + 3 * 20 * workers * (2 + ahead), refused
        assert n_sweeps > 5


def test_operators_that_say_nothing_are_named_also_when_they_have_ended() -> None:
    def main(worker: ps.Worker) -> tuple[str, int]:
        kept: list[Any] = []
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("t string")
            given.each_batch(lambda time, batch: kept.append(batch), name="Keeps")
        input_.insert([("it is kept",)])
        input_.close()
        worker.run()
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("t string")
            given.distinct()
        for turn in range(5):
            input_.insert([(f"later {turn}",)])
            input_.advance_to(turn + 1)
            worker.step()
        return SWEEPS.stats().refused, SWEEPS.stats().sweeps

    with sweeping():
        n_before = SWEEPS.stats().sweeps
        ((refused, n_sweeps),) = ps.execute(main)
    assert "do not say which texts they keep: " in refused
    assert "Keeps" in refused
    assert n_sweeps == n_before


def test_a_client_of_a_service_sweeps_its_own() -> None:
    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        with ps.serve(churning, 2, collections=SCHEMAS) as service:
            sweeps.spare = 64
            kept = []
            for turn in range(40):
                epoch = send(service, turn, 20)
                kept.append((turn, service.output("first").changes(epoch)))
                kept = kept[-3:]
            assert len(TEXTS) < 64 + 600
        assert sweeps.stats().sweeps > n_before
        for turn, changes in kept:
            came = sorted(row for row, diff in changes if diff > 0)
            assert came == sorted(checks.rows_of(turn, 20))


SECONDS = float(os.environ.get("POINTSTAMP_CHURN_SECONDS", "3600"))
"""How long the soak goes on."""


def process_bytes(pid: int) -> int:
    """Resident, of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("is_durable", [False, True])
def test_churn_in_a_service_leaves_memory_flat(
    workers: int, is_durable: bool, tmp_path: Path
) -> None:
    """Texts that are ever new, in epochs that follow each other without a pause."""
    n, lines, measured = 200, [], []
    options = {"checkpoint": tmp_path, "snapshot_every": 20} if is_durable else {}
    with ps.serve(churning, workers, collections=SCHEMAS, **options) as service:  # type: ignore[arg-type]  # by key
        began, turn, pids = time.monotonic(), 0, _children()
        while (elapsed := time.monotonic() - began) < SECONDS:
            epoch = send(service, turn, n)
            turn += 1
            if turn % 10 == 0:
                assert len(service.output("first").changes(epoch)) == 2 * n
                service.probe.wait(epoch)
                for name in ("joined", "first", "loop", "none"):
                    service.output(name).discard(epoch - 5)
            if elapsed >= len(measured) * SECONDS / 20:
                gc.collect()
                sizes = [process_bytes(pid) >> 20 for pid in (os.getpid(), *pids)]
                measured.append((max(sizes), len(TEXTS)))
                lines.append(
                    f"{elapsed:.0f} s, {turn} epochs, {2 * n * turn} texts came: "
                    f"{sizes} MB, {SWEEPS.stats()}"
                )
                print(lines[-1], flush=True)
    settled, later = measured[4:12], measured[12:]
    assert len(later) >= 5
    for kind, slack in enumerate((16, 20_000)):
        most = max(each[kind] for each in settled)
        assert max(each[kind] for each in later) <= 1.1 * most + slack, "\n".join(lines)
    assert len(TEXTS) < 300_000


def _children() -> list[int]:
    """The processes that this one has started and that hold workers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.append(int(path.parent.name))
    return found
