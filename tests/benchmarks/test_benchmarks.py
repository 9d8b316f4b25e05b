"""Each benchmark is well made: cases that can be told apart, targets that name one."""

from __future__ import annotations

import doctest
import importlib

import pytest

from benchmarks.harness.case import SIZES, Benchmark, Case, Size
from benchmarks.harness.find import FOLDER, ORDER, find, names

BENCHMARKS = [find(name) for name in names()]


def every(benchmark: Benchmark) -> str:
    return benchmark.name


def test_every_file_with_a_benchmark_has_its_place_on_the_page() -> None:
    files = {p.stem for p in FOLDER.glob("*.py") if "\nBENCHMARK = " in p.read_text()}
    assert files == set(ORDER)


def test_a_benchmark_that_is_not_there_is_an_error_that_says_which_are() -> None:
    with pytest.raises(LookupError, match=r"no benchmark 'nope'; there are .*\bbarrier, "):
        find("nope")


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=every)
@pytest.mark.parametrize("size", SIZES)
def test_cases_can_be_told_apart(benchmark: Benchmark, size: Size) -> None:
    keys = [case.key for case in benchmark.cases(size)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=every)
def test_what_it_is_called_is_what_its_file_is_called(benchmark: Benchmark) -> None:
    module = importlib.import_module(f"benchmarks.{benchmark.name}")
    assert module.BENCHMARK is benchmark
    assert module.__doc__


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=every)
def test_targets_are_of_cases_that_are_measured(benchmark: Benchmark) -> None:
    ours = [case.at for case in benchmark.cases("full") if case.is_ours]
    for target in (*benchmark.targets, *benchmark.growth, *benchmark.ratios, *benchmark.memory):
        assert target.at in ours


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=every)
def test_baselines_and_floors_are_among_the_cases(benchmark: Benchmark) -> None:
    others = {case.who for case in benchmark.cases("full") if not case.is_ours}
    assert {*benchmark.baselines, *benchmark.floors} <= others


@pytest.mark.parametrize("benchmark", [b for b in BENCHMARKS if b.baselines], ids=every)
def test_every_case_of_ours_has_a_baseline_or_a_smaller_one_has(benchmark: Benchmark) -> None:
    cases = list(benchmark.cases("full"))

    def has_baseline(case: Case) -> bool:
        return any(
            other.who in benchmark.baselines and other.at.items() <= case.at.items()
            for other in cases
        )

    ours = [case for case in cases if case.is_ours]
    assert any(map(has_baseline, ours))


@pytest.mark.parametrize("benchmark", [b for b in BENCHMARKS if b.axis], ids=every)
def test_a_curve_has_points(benchmark: Benchmark) -> None:
    points = {case.at[str(benchmark.axis)] for case in benchmark.cases("full") if case.is_ours}
    assert len(points) > 1


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=every)
def test_what_runs_numba_says_that_it_needs_it(benchmark: Benchmark) -> None:
    for case in benchmark.cases("full"):
        assert ("numba" in case.needs) == ("Numba" in case.who)


@pytest.mark.parametrize("name", ["case", "machine", "rust", "text"])
def test_examples_of_the_harness_are_true(name: str) -> None:
    module = importlib.import_module(f"benchmarks.harness.{name}")
    failed, tried = doctest.testmod(module)
    assert tried
    assert not failed
