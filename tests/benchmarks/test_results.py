"""What is worked out from samples: medians, spreads, ratios, verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.harness.case import OURS, Benchmark, Effort, Quantity, Target
from benchmarks.harness.results import (
    Results,
    Row,
    baseline_of,
    faster_peers,
    load,
    point,
    times_baseline,
    verdict,
)

US = Quantity("us per round", 1e6)
RATE = Quantity("M/s", 1e-6, is_rate=True)


def benchmark(*baselines: str) -> Benchmark:
    return Benchmark("some", "Some", "About.", US, lambda size: [], baselines=baselines)


def test_a_median_and_a_spread_are_in_the_unit_and_for_one_piece() -> None:
    row = Row(OURS, {}, amount=1_000, seconds=[0.003, 0.001, 0.002])
    assert row.value(US) == pytest.approx(2.0)
    assert row.spread(US) == pytest.approx((1.0, 3.0))


def test_the_spread_of_a_rate_goes_from_the_slowest_to_the_quickest() -> None:
    row = Row(OURS, {}, amount=6_000_000, seconds=[3.0, 1.0, 2.0])
    assert row.value(RATE) == pytest.approx(3.0)
    assert row.spread(RATE) == pytest.approx((2.0, 6.0))


def test_the_first_baseline_that_was_measured_and_fits_is_the_one() -> None:
    ours = Row(OURS, {"scale": 14, "workers": 2}, 1, [1.0])
    rows = [
        ours,
        Row("absent", {"scale": 14}, 1, missing="absent is not installed"),
        Row("other", {"scale": 16}, 1, [1.0]),
        Row("other", {"scale": 14}, 1, [4.0]),
        Row("other", {}, 1, [9.0]),
    ]
    assert baseline_of(ours, rows, benchmark("absent", "other")) is rows[3]
    assert times_baseline(ours, rows, benchmark("absent", "other")) == pytest.approx(0.25)
    assert times_baseline(ours, rows, benchmark("absent")) is None


def test_a_ratio_compares_times_for_equal_work() -> None:
    ours = Row(OURS, {}, amount=100, seconds=[1.0])
    rows = [ours, Row("other", {}, amount=10, seconds=[0.2])]
    assert times_baseline(ours, rows, benchmark("other")) == pytest.approx(0.5)


def test_a_baseline_has_no_ratio_to_itself() -> None:
    row = Row("other", {}, 1, [1.0])
    assert times_baseline(row, [row], benchmark("other")) is None


def test_who_was_faster_at_the_same_is_found_fastest_first() -> None:
    ours = Row(OURS, {"scale": 14, "workers": 2}, 1, [3.0])
    rows = [
        ours,
        Row("slower", {"scale": 14}, 1, [4.0]),
        Row("faster", {"scale": 14}, 1, [2.0]),
        Row("fastest", {}, 1, [1.0]),
        Row("of another input", {"scale": 8}, 1, [0.1]),
        Row("with other workers", {"workers": 1}, 1, [0.1]),
    ]
    assert [row.who for row in faster_peers(ours, rows)] == ["fastest", "faster"]


@pytest.mark.parametrize(
    ("seconds", "quantity", "expected"),
    [
        (2.0, Quantity("s"), "stretch target"),
        (5.0, Quantity("s"), "target"),
        (5.1, Quantity("s"), "missed"),
        (0.5, Quantity("per s", is_rate=True), "target"),
        (0.6, Quantity("per s", is_rate=True), "missed"),
    ],
)
def test_a_verdict_knows_which_way_is_better(
    seconds: float, quantity: Quantity, expected: str
) -> None:
    target = Target({}, 2.0, 10.0) if quantity.is_rate else Target({}, 5.0, 2.0)
    assert verdict(Row(OURS, {}, 1, [seconds]), target, quantity) == expected


def test_results_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    row = Row(OURS, {"workers": 1}, 3.0, [0.1], [7], "compiled", [1, "x"], {"a": 1}, "note", "")
    results = Results(
        "some", "tiny", "2024-01-01", {"cores": 2}, {"numpy": "2"}, [row], {"": 16}, 0.5
    )
    assert load(results.save(tmp_path)) == results


def test_the_input_does_not_depend_on_the_workers() -> None:
    assert point({"scale": 14, "workers": 2}) == point({"scale": 14})


def test_what_takes_long_is_measured_less_often() -> None:
    assert [Effort(5).wanted(seconds) for seconds in (0.1, 19.0, 21.0)] == [5, 5, 1]
    assert [Effort(5, patience_s=3.0).wanted(seconds) for seconds in (2.0, 4.0)] == [5, 3]
