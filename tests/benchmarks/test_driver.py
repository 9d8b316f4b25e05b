"""Running: tiny sizes, in processes of their own, and what becomes of those that fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.harness import child, driver, machine
from benchmarks.harness.case import Benchmark, Case, Effort, Reading, Size
from benchmarks.harness.driver import run
from benchmarks.harness.find import find
from benchmarks.harness.results import Row


def chosen(name: str, *keys: str) -> Benchmark:
    """A benchmark with only some of its cases."""
    benchmark = find(name)
    return replace(
        benchmark, cases=lambda size: [c for c in benchmark.cases(size) if c.key in keys]
    )


def test_a_case_of_ours_is_measured_on_each_number_of_workers() -> None:
    said: list[str] = []
    results = run(
        chosen("barrier", "Pointstamp, workers 1", "Pointstamp, workers 2"), "tiny", 2, said.append
    )
    modes = {"compiled", "interpreted"}
    measured = [row for row in results.rows if row.mode in modes]
    assert {row.at["workers"] for row in measured} == {1, 2}
    for row in measured:
        assert len(row.seconds) == 2
        assert all(seconds > 0 for seconds in row.seconds)
        # One peak for each worker; an interpreter takes a few MiB at the least.
        assert len(row.peaks) == row.at["workers"]
        assert min(row.peaks) > 1 << 22
    assert len(said) == len(results.rows)
    assert results.machine["cores"] >= 1
    assert "numpy" in results.versions


OURS_2 = "Pointstamp, workers 2, counted before the exchange"


def test_inputs_are_made_for_the_run_and_answers_compared() -> None:
    results = run(chosen("words", OURS_2, "pyarrow"), "tiny", 1, lambda line: None)
    ours, arrow = results.rows
    assert ours.answer == arrow.answer
    assert ours.answer[1] == 10_000


def test_answers_that_differ_are_an_error() -> None:
    cases = [Case(who, _measure, data="the same") for who in ("one", "other")]
    rows = [Row("one", {}, 1, [0.1], answer=3), Row("other", {}, 1, [0.1], answer=4)]
    with pytest.raises(RuntimeError, match=r"on the same, other \{\} answers 4 and one \{\} 3"):
        driver._check_answers(cases, rows)


def test_a_peer_that_is_not_installed_is_missing_and_no_failure() -> None:
    benchmark = find("chain")
    case = Case("Other", _measure, needs=("no_such_module_here",))
    (row,) = run(replace(benchmark, cases=lambda size: [case]), "tiny", 1, lambda line: None).rows
    assert row.missing == "no_such_module_here is not installed"
    assert not row.seconds


def test_a_case_that_fails_says_why_and_the_others_go_on() -> None:
    benchmark = find("chain")
    # The process that is to run it knows no case of that name.
    cases = [Case("Unheard of", _measure), *benchmark.cases("tiny")[-1:]]
    failed, other = run(
        replace(benchmark, cases=lambda size: cases), "tiny", 1, lambda line: None
    ).rows
    assert failed.missing.startswith("failed: ValueError")
    assert other.seconds


def test_cases_that_are_measured_together_are_rows_as_others_are() -> None:
    def together(size: Size) -> dict[str, Reading]:
        return {key: Reading([float(n)], [7]) for n, key in enumerate(("Pointstamp", "Other"), 1)}

    cases = [Case("Pointstamp", _measure), Case("Other", _measure)]
    benchmark = replace(find("chain"), cases=lambda size: cases, together=together)
    ours, other = run(benchmark, "tiny", 5, lambda line: None).rows
    assert (ours.seconds, ours.peaks, other.seconds) == ([1.0], [7], [2.0])
    assert ours.mode
    assert other.mode is None


def test_cases_of_a_session_are_measured_in_one_process_and_one_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(effort: Effort) -> Reading:
        raise ValueError("no such luck")

    cases = [Case("one", _measure, samples=2), Case("two", fail), Case("three", _measure)]
    monkeypatch.setattr(
        child, "find", lambda name: replace(find("chain"), cases=lambda size: cases)
    )
    result = tmp_path / "result.json"
    child.main(str(result), "chain", "tiny", "5", "one", "two", "three")
    found = json.loads(result.read_text())
    assert found["one"]["seconds"] == found["three"]["seconds"] == [0.1]
    assert found["two"] == {"missing": "failed: ValueError: no such luck"}
    with pytest.raises(ValueError, match="no such luck"):
        child.main(str(result), "chain", "tiny", "5", "two")


def test_rust_and_what_of_ours_does_the_same_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, int]] = []

    def measured(benchmark, cases, size, samples, environment):
        for case in cases:
            ran.append((case.key, samples))
            yield case, Row(case.who, dict(case.at), 1, [float(len(ran))], [len(ran)])

    monkeypatch.setattr(driver, "_run", measured)
    cases = [
        Case("Pointstamp", _measure, at={"workers": 1}),
        Case("Pointstamp", _measure, at={"workers": 1, "of": "rows"}),
        Case("Pointstamp", _measure, at={"workers": 4}),
        Case("Pointstamp", _measure, at={"workers": 3}, in_turns=True),
        Case("Rust timely", _measure, at={"workers": 1}, turn_samples=4),
        Case("Rust timely", _measure, at={"workers": 2}, absent=lambda: "Rust was not run"),
        Case("Other", _measure),
    ]
    benchmark = replace(find("chain"), cases=lambda size: cases)
    results = run(benchmark, "tiny", 5, lambda line: None)
    in_turns = [
        "Pointstamp, workers 1",
        "Pointstamp, workers 1, of rows",
        "Pointstamp, workers 3",
        "Rust timely, workers 1",
    ]
    assert ran == [
        *[(key, 4 if "Rust" in key else 2) for _ in range(3) for key in in_turns],
        ("Pointstamp, workers 4", 5),
        ("Other", 5),
    ]
    assert [row.who for row in results.rows] == [case.who for case in cases]
    assert [row.seconds for row in results.rows] == [
        [1, 5, 9],
        [2, 6, 10],
        [13],
        [3, 7, 11],
        [4, 8, 12],
        [],
        [14],
    ]
    assert results.rows[0].peaks == [9]
    assert results.rows[5].missing == "Rust was not run"


def test_a_turn_that_fails_is_the_last_and_one_that_answers_otherwise_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = iter([Row("Rust", {}, 1, [0.1]), Row("Rust", {}, 1, missing="failed: no")])
    monkeypatch.setattr(driver, "_run", lambda *args: [(case, next(turns)) for case in args[1]])
    benchmark = replace(find("chain"), cases=lambda size: [Case("Rust", _measure)])
    (row,) = run(benchmark, "tiny", 5, lambda line: None).rows
    assert (row.missing, row.seconds) == ("failed: no", [])
    turns = iter([Row("Rust", {}, 1, [0.1], answer=n) for n in range(5)])
    with pytest.raises(RuntimeError, match="answers 0, and in another turn 1"):
        run(benchmark, "tiny", 5, lambda line: None)


def test_what_the_first_of_two_workers_has_is_compared_where_it_is_all_that_is_told() -> None:
    at = {"workers": 2}
    cases = [Case(who, _measure, at=at, data="it") for who in ("Pointstamp", "Rust")]
    rows = [
        Row("Pointstamp", at, 1, [0.1], answer=9, details={"worker 0": 4}),
        Row("Rust", at, 1, [0.1], details={"worker 0": 4}),
    ]
    driver._check_answers(cases, rows)
    rows[1].details["worker 0"] = 5
    with pytest.raises(RuntimeError, match=r"on it, worker 0 of 2, Rust .* answers 5 and Pointst"):
        driver._check_answers(cases, rows)


def test_what_other_programs_take_is_what_is_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(machine, "_STAT", stat)
    assert machine.others_share(0) == 0
    # user, nice, system, idle, waiting, interrupts (hard and soft), stolen; guests are users, too
    stat.write_text("cpu  10 0 5 80 5 0 0 0 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    more = "cpu  40 0 15 125 15 0 0 5 9 0\n"
    monkeypatch.setattr(machine.time, "sleep", lambda seconds: stat.write_text(more))
    assert machine.others_share(3) == pytest.approx(0.45)


def test_an_engine_without_an_answer_disagrees() -> None:
    cases = [Case(who, _measure, data="it") for who in ("Pointstamp", "Other")]
    rows = [Row("Pointstamp", {}, 1, [0.1], answer=9), Row("Other", {}, 1, [0.1])]
    with pytest.raises(RuntimeError, match=r"Other .* answers None and Pointstamp"):
        driver._check_answers(cases, rows)


def _measure(effort: Effort) -> Reading:
    return Reading([0.1])
