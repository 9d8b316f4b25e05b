"""The page: what it says of made-up results, worked out by hand."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Quantity, Ratio, Reading, Target
from benchmarks.harness.page import page
from benchmarks.harness.pooled import DIFFER
from benchmarks.harness.results import Results, Row

ROOT = Path(__file__).resolve().parent.parent.parent

AT = {"scale": 18, "workers": 1}


def _measure(effort: Effort) -> Reading:
    return Reading([])


BENCHMARK = Benchmark(
    name="some",
    title="Some work",
    about="What it is.",
    quantity=Quantity("s"),
    cases=lambda size: [Case("Rust timely", _measure)],
    baselines=("Baseline",),
    floors=("Floor",),
    targets=(Target(AT, 5.0, 1.0),),
    ratios=(Ratio(AT, 1.5),),
    memory=(Ratio(AT, 6.0),),
)

RESULTS = Results(
    name="some",
    size="full",
    date="2024-01-01",
    machine={
        "processor": "A processor",
        "cores": 2,
        "memory_gib": 8.0,
        "system": "Linux x86_64",
        "python": "3.11.7",
    },
    versions={"numpy": "2.0"},
    rows=[
        Row(OURS, AT, 1, [2.0, 4.0, 3.0], [1 << 30], "compiled"),
        Row(OURS, AT, 1, [9.0], [1 << 30], "interpreted"),
        Row("Baseline", {"scale": 18}, 1, [1.5], [1 << 20]),
        Row("Rust timely", AT, 1, [2.0]),
        Row("Rust timely, columnar", AT, 1, [6.0]),
        Row("Rust timely, threads", {"scale": 18, "workers": 2}, 1, [1.0]),
        Row("Floor", {}, 1, [0.1]),
        Row("Absent", {}, 1, missing="absent is not installed"),
    ],
    input_bytes={"scale=18": 1 << 28},
)


def lines(benchmark: Benchmark = BENCHMARK, results: Results = RESULTS) -> list[str]:
    return page([(benchmark, results)]).splitlines()


def test_a_target_is_told_with_both_modes_the_verdict_and_the_best_other() -> None:
    assert (
        "| [some](#some) | scale 18, 1 worker | 3 | 9 | 5 s | 1 "
        "| target | Baseline 1.5 | Rust timely 2; Rust timely, columnar 6 |"
    ) in lines()


def test_a_ratio_is_told_against_the_baseline() -> None:
    assert (
        "| [some](#some) | scale 18, 1 worker | 2 x | 6 x | 1.5 x Baseline |  | missed |  |  |"
    ) in lines()


def test_peak_memory_is_told_in_terms_of_the_input() -> None:
    assert (
        "| [some](#some), peak memory | scale 18, 1 worker | 4 x | 4 x | 6 x the columns |  "
        "| target |  |  |"
    ) in lines()


def test_a_row_has_median_spread_ratio_and_memory() -> None:
    assert (
        "| **Pointstamp** | scale 18, 1 worker | compiled | 3 | 2 to 4 | 3 | 2 | 1,020 | 4 |"
    ) in [line.replace("1,024", "1,020") for line in lines()]


def test_a_target_of_which_two_runs_differ_is_neither_met_nor_missed() -> None:
    rows = [replace(RESULTS.rows[0], seconds=[], missing=DIFFER), *RESULTS.rows[1:]]
    found = lines(results=replace(RESULTS, rows=rows))
    assert (
        "| [some](#some) | scale 18, 1 worker |  | 9 | 5 s | 1 "
        "| the runs differ | Baseline 1.5 | Rust timely 2; Rust timely, columnar 6 |"
    ) in found
    assert not any(line.startswith("| [some](#some) | scale 18, 1 worker | s |") for line in found)


def test_where_we_lose_floors_are_not_counted() -> None:
    assert (
        "- [some](#some): scale 18, 1 worker: Baseline (2 x as fast), Rust timely (1.5 x as fast)"
    ) in lines()


def test_who_is_not_there_is_said() -> None:
    assert "Not there: Absent: absent is not installed." in lines()


def test_growth_is_told_in_terms_of_the_first_point() -> None:
    rows = [Row(OURS, {"n": n}, 1, [s], mode="interpreted") for n, s in ((1, 2.0), (1000, 3.0))]
    benchmark = replace(
        BENCHMARK,
        targets=(),
        ratios=(),
        memory=(),
        growth=(Target({"n": 1000}, 2.5, 1.2),),
        axis="n",
    )
    rows += [Row("Rust timely", {"n": n}, 1, [s]) for n, s in ((1, 2.0), (1000, 8.0))]
    assert (
        "| [some](#some) | 1,000 n |  | 1.5 x the first | 2.5 x | 1.2 | target |  "
        "| Rust timely 4 x |"
    ) in lines(benchmark, replace(RESULTS, rows=rows))


def test_growth_is_along_one_curve_of_several() -> None:
    places = [{"n": n, "moves": moves} for moves in ("all", "one") for n in (1, 1000)]
    rows = [
        Row(OURS, at, 1, [s], mode="compiled")
        for at, s in zip(places, (9.0, 9.0, 2.0, 3.0), strict=True)
    ]
    benchmark = replace(
        BENCHMARK,
        targets=(),
        ratios=(),
        memory=(),
        growth=(Target({"n": 1000, "moves": "one"}, 2.5),),
        axis="n",
    )
    assert (
        "| [some](#some) | 1,000 n, one | 1.5 x the first |  | 2.5 x |  | target |  |  |"
    ) in lines(benchmark, replace(RESULTS, rows=rows))


def test_each_row_stands_beside_the_quickest_program_in_rust_that_does_its_work() -> None:
    ours = Row(OURS, {"scale": 18, "workers": 2}, 1, [0.5], mode="compiled")
    slower = Row("Rust timely", {"scale": 18, "workers": 2}, 1, [4.0])
    told = lines(results=replace(RESULTS, rows=[*RESULTS.rows, ours, slower]))
    assert "| [some](#some) | scale 18, 1 worker | s | 3 | 2 (timely) | 1.5 |" in told
    assert (
        "| [some](#some) | scale 18, 2 workers | s | 0.5 | 1 (timely, threads) | **0.5** |" in told
    )
    assert "| [some](#some) | scale 18, 2 workers | s | 0.5 | 4 (timely) | **0.125** |" in told


def test_where_rust_was_not_run_the_page_says_so_once_and_has_no_figure() -> None:
    absence = "Rust was not run: there is nothing to build"
    rows = [row for row in RESULTS.rows if not row.is_rust]
    rows += [Row("Rust timely", {"workers": n}, 1, missing=absence) for n in (1, 2)]
    told = lines(results=replace(RESULTS, rows=rows))
    assert told.count(f"{absence}.") == 2  # beside Rust, and in the section
    assert not [line for line in told if "Rust timely" in line]


def test_results_of_a_run_without_rust_say_so() -> None:
    rows = [row for row in RESULTS.rows if not row.is_rust]
    assert "Rust was not run with these." in lines(results=replace(RESULTS, rows=rows))
    assert "Rust was not run with these." not in lines()


def test_where_there_is_no_program_in_rust_the_page_says_so() -> None:
    rows = [row for row in RESULTS.rows if not row.is_rust]
    told = lines(replace(BENCHMARK, cases=lambda size: []), replace(RESULTS, rows=rows))
    assert "There is no program in Rust for this." in told
    assert [line for line in told if "no program in Rust, and so no figure, for [some]" in line]


def test_a_trial_run_says_that_it_is_one() -> None:
    told = lines(results=replace(RESULTS, size="small"))
    assert "*A trial run with inputs of size 'small': figures to be replaced.*" in told


def test_results_of_other_cases_are_said_to_be_of_an_earlier_form() -> None:
    said = "*Results of an earlier form of this benchmark"
    cases = [Case(row.who, _measure, at=row.at) for row in RESULTS.rows]
    benchmark = replace(BENCHMARK, cases=lambda size: cases)
    assert not [line for line in lines(benchmark) if line.startswith(said)]
    assert [line for line in lines() if line.startswith(said)]


def test_a_run_beside_other_programs_says_that_it_was_one() -> None:
    said = "*Other programs took 62% of the processors before this run or after it: figures to be "
    told = lines(results=replace(RESULTS, others_share=0.62, n_runs=2))
    assert "Of two runs." in told
    assert "Of two runs." not in lines()
    assert [line for line in told if line.startswith(said)]
    assert not [line for line in lines() if line.startswith("*Other programs")]


DRAW = """
import sys
from dataclasses import replace
from pathlib import Path
from benchmarks.harness.plots import draw
from tests.benchmarks.test_page import BENCHMARK, RESULTS
for axis in (None, "scale"):
    for path in map(Path, sys.argv[1:]):
        draw(replace(BENCHMARK, axis=axis), RESULTS, path.with_name(f"{path.name}-{axis}.svg"))
"""


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is in the bench extra")
def test_a_plot_is_svg_whose_ink_turns_light_on_dark_ground(tmp_path: Path) -> None:
    # In another process: the fonts that are open there stay open until it ends.
    paths = [tmp_path / "first", tmp_path / "again"]
    subprocess.run([sys.executable, "-c", DRAW, *map(str, paths)], cwd=ROOT, check=True)
    for axis in (None, "scale"):
        first, again = (Path(f"{path}-{axis}.svg").read_text() for path in paths)
        ElementTree.fromstring(first)
        assert "prefers-color-scheme: dark" in first
        assert "Some work" in first
        # Drawn again, it is the same to the letter: pictures change when figures do.
        assert first == again


def test_more_workers_than_cores_are_not_called_a_loss() -> None:
    rows = [*RESULTS.rows, Row(OURS, {"scale": 18, "workers": 4}, 1, [9.0], mode="compiled")]
    told = [line for line in lines(results=replace(RESULTS, rows=rows)) if "x as fast" in line]
    assert told == [
        "- [some](#some): scale 18, 1 worker: Baseline (2 x as fast), Rust timely (1.5 x as fast)"
    ]
