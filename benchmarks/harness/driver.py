"""Runs benchmarks: their cases one after the other, each in a new process.

Programs in Rust and what of ours does the same work take turns, a few samples each, so that
what the machine does meanwhile is the same for both.

A case that needs what is not installed is said to be missing, one that fails or
takes too long is said to have, and the others go on. Answers that differ where they
should be equal are an error of the run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from benchmarks.harness import inputs
from benchmarks.harness.case import PART, Benchmark, Case, Size
from benchmarks.harness.machine import machine, mode, others_share, versions
from benchmarks.harness.results import Results, Row, point

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT_S = 300.0
"""After so long a process is ended: no case is worth a sixth of the whole."""

FURTHER_S = 60.0
"""How much longer it may take for each further case that is measured in it."""

LOOK_S: dict[Size, float] = {"tiny": 0.01, "small": 1.0, "full": 1.0}
"""How long we look, before a run and after it, whether other programs are at work."""

TURNS = 3
"""How often those that take turns have one."""

INTERPRETED = {"POINTSTAMP_COMPILED": "0"}

Say = Callable[[str], None]


def run(benchmark: Benchmark, size: Size, samples: int, say: Say) -> Results:
    """Measure all cases of a benchmark.

    Raises
    ------
    RuntimeError
        If its inputs cannot be made, or if answers differ.
    """
    cases = benchmark.cases(size)
    rows: list[Row] = []
    others = others_share(LOOK_S[size])
    with inputs_of(benchmark, size):
        for row in _rows(benchmark, cases, size, samples):
            rows.append(row)
            say(_said(row, benchmark))
        sizes = {}
        if benchmark.input_bytes is not None:
            sizes = {point(case.at): benchmark.input_bytes(size, case.at) for case in cases}
    _check_answers(cases, rows)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    others = round(max(others, others_share(LOOK_S[size])), 2)
    return Results(benchmark.name, size, date, machine(), versions(), rows, sizes, others)


def _rows(benchmark: Benchmark, cases: Sequence[Case], size: Size, samples: int) -> Iterator[Row]:
    if benchmark.together is not None:
        found = benchmark.together(size)
        for case in cases:
            ours = {"mode": mode()} if case.is_ours else {}
            yield _row(case, {**asdict(found[case.key]), **ours}, "")
        return
    in_turns = _in_turns(benchmark, taking_turns(cases), size, samples)
    for _, sharing in groupby(cases, lambda case: case.session or case.key):
        yield from _measured(benchmark, list(sharing), size, samples, in_turns)


def taking_turns(cases: Sequence[Case]) -> list[Case]:
    """Those that ask for it, Rust's that can be measured, and ours of the same work as those."""
    rust = [case for case in cases if case.is_rust and not _absence(case)]
    return [
        case
        for case in cases
        if case in rust
        or case.in_turns
        or (case.is_ours and any(other.at.items() <= case.at.items() for other in rust))
    ]


def _in_turns(
    benchmark: Benchmark, cases: Sequence[Case], size: Size, samples: int
) -> dict[str, Row]:
    """Their rows by key. Each turn is a process of its own, and has its part of the samples.

    Where a case is measured once, there is one turn.
    """
    rows: dict[str, Row] = {}
    turns = min([TURNS, samples, *(case.samples for case in cases)])
    for _ in range(turns):
        for case in cases:
            before = rows.get(case.key)
            if before is None or not before.missing:
                part = max(case.turn_samples, -(-samples // turns))
                ((_, row),) = _run(benchmark, [case], size, part, {})
                rows[case.key] = row if before is None else _joined(before, row)
    return rows


def _joined(before: Row, row: Row) -> Row:
    """One row of a case's turns."""
    if row.missing:
        return row
    if before.answer != row.answer:
        raise RuntimeError(
            f"{row.who} {row.at} answers {before.answer!r}, and in another turn {row.answer!r}"
        )
    peaks = max(before.peaks, row.peaks, key=sum)
    return replace(before, seconds=before.seconds + row.seconds, peaks=peaks)


def _absence(case: Case) -> str:
    """Why a case cannot be measured here, or nothing."""
    absent = [module for module in case.needs if find_spec(module) is None]
    return f"{absent[0]} is not installed" if absent else case.absent()


@contextmanager
def inputs_of(benchmark: Benchmark, size: Size) -> Iterator[None]:
    """Make the input files of a benchmark, and remove them afterwards."""
    before = os.environ.get(inputs.VARIABLE)
    with tempfile.TemporaryDirectory(prefix="pointstamp-bench-") as folder:
        os.environ[inputs.VARIABLE] = folder
        try:
            if benchmark.prepare is not None:
                _, failed = _child([benchmark.name, size, "prepare"], {})
                if failed:
                    raise RuntimeError(f"the inputs of {benchmark.name} cannot be made: {failed}")
            yield
        finally:
            if before is None:
                del os.environ[inputs.VARIABLE]
            else:
                os.environ[inputs.VARIABLE] = before


def _measured(
    benchmark: Benchmark,
    cases: Sequence[Case],
    size: Size,
    samples: int,
    in_turns: dict[str, Row],
) -> Iterator[Row]:
    """A row for each; two if the core is compiled and the case asks for both modes."""
    there = []
    for case in cases:
        if absence := _absence(case):
            yield Row(case.who, dict(case.at), case.amount, missing=absence)
        else:
            there.append(case)
    compiled = []
    rest = [case for case in there if case.key not in in_turns]
    turned = [(case, in_turns[case.key]) for case in there if case.key in in_turns]
    for case, row in chain(turned, _run(benchmark, rest, size, samples, {})):
        yield row
        if case.in_both_modes and row.mode == "compiled":
            compiled.append(case)
    for _, row in _run(benchmark, compiled, size, samples, INTERPRETED):
        yield row


def _run(
    benchmark: Benchmark,
    cases: Sequence[Case],
    size: Size,
    samples: int,
    environment: dict[str, str],
) -> Iterator[tuple[Case, Row]]:
    """Each with its row, measured in one process."""
    if cases:
        keys = [case.key for case in cases]
        limit_s = LIMIT_S + FURTHER_S * (len(keys) - 1)
        command = [benchmark.name, size, str(samples), *keys]
        found, failed = _child(command, environment, limit_s)
        for case in cases:
            yield case, _row(case, found.get(case.key, {}), "" if case.key in found else failed)


def _row(case: Case, found: dict[str, Any], failed: str) -> Row:
    given = {"missing": f"failed: {failed}"} if failed else {}
    return Row(case.who, dict(case.at), case.amount, note=case.note, **given, **found)


def _child(
    command: Sequence[str], environment: dict[str, str], limit_s: float = LIMIT_S
) -> tuple[dict[str, Any], str]:
    """What the child wrote, by case, and why it could not do all if it could not."""
    with tempfile.TemporaryDirectory(prefix="pointstamp-bench-") as folder:
        result = Path(folder) / "result.json"
        with (Path(folder) / "log").open("w+") as log:
            program = [sys.executable, "-m", "benchmarks.harness.child", str(result), *command]
            # Signals stop it with us: it stays in our process group.
            process = subprocess.Popen(
                program,
                cwd=ROOT,
                env={**os.environ, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return _read(result), f"not done after {limit_s:.0f} s"
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
            log.seek(0)
            lines = [line.strip() for line in log if line.strip()]
        if status != 0:
            return _read(result), lines[-1][:200] if lines else f"exit status {status}"
        return _read(result), ""


def _read(result: Path) -> dict[str, Any]:
    return json.loads(result.read_text()) if result.exists() else {}


def _check_answers(cases: Sequence[Case], rows: Sequence[Row]) -> None:
    data = {(case.who, *sorted(case.at.items())): case.data for case in cases}
    first: dict[str, tuple[Row, Any]] = {}
    for row in rows:
        name = data[row.who, *sorted(row.at.items())]
        if name is None or not row.seconds:
            continue
        # Two workers in Rust print what the first one has, and only that.
        answers = {} if row.is_rust and row.answer is None else {name: row.answer}
        if PART in row.details:
            answers[f"{name}, {PART} of {row.at['workers']}"] = row.details[PART]
        for of, answer in answers.items():
            other, expected = first.setdefault(of, (row, answer))
            if answer != expected:
                raise RuntimeError(
                    f"on {of}, {row.who} {row.at} answers {answer!r} and {other.who} "
                    f"{other.at} {expected!r}"
                )


def _said(row: Row, benchmark: Benchmark) -> str:
    where = " ".join(f"{name}={value}" for name, value in row.at.items())
    what = f"  {row.who:34} {where:18} {row.mode or '':12}"
    if row.missing:
        return f"{what} {row.missing}"
    low, high = row.spread(benchmark.quantity)
    return (
        f"{what} {row.value(benchmark.quantity):10.4g} {benchmark.quantity.unit}"
        f" ({low:.4g} to {high:.4g}, {len(row.seconds)} runs)"
        f" {max(row.peaks, default=0) >> 20} MiB"
    )
