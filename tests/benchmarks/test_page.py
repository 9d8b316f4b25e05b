"""The page: what it says of made-up results, worked out by hand."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.harness.case import OURS, Benchmark, Elsewhere, Quantity, Ratio, Target
from benchmarks.harness.page import page
from benchmarks.harness.results import Results, Row

ROOT = Path(__file__).resolve().parent.parent.parent

AT = {"scale": 18, "workers": 1}

BENCHMARK = Benchmark(
    name="some",
    title="Some work",
    about="What it is.",
    quantity=Quantity("s"),
    cases=lambda size: [],
    baselines=("Baseline",),
    floors=("Floor",),
    targets=(Target(AT, 5.0, 1.0),),
    ratios=(Ratio(AT, 1.5),),
    elsewhere=(Elsewhere("Rust", AT, 0.5),),
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
        "| target | Baseline 1.5 | Rust 0.5 |"
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


def test_where_we_lose_floors_are_not_counted() -> None:
    assert "- [some](#some): scale 18, 1 worker: Baseline (2 x as fast)" in lines()


def test_who_is_not_there_is_said() -> None:
    assert "Not there: Absent : absent is not installed." in lines()


def test_growth_is_told_in_terms_of_the_first_point() -> None:
    rows = [Row(OURS, {"n": n}, 1, [s], mode="interpreted") for n, s in ((1, 2.0), (1000, 3.0))]
    benchmark = replace(
        BENCHMARK,
        targets=(),
        ratios=(),
        memory=(),
        elsewhere=(),
        growth=(Target({"n": 1000}, 2.5, 1.2),),
        axis="n",
    )
    assert (
        "| [some](#some) | 1,000 n |  | 1.5 x the first | 2.5 x | 1.2 | target |  |  |"
    ) in lines(benchmark, replace(RESULTS, rows=rows))


def test_a_trial_run_says_that_it_is_one() -> None:
    told = lines(results=replace(RESULTS, size="small"))
    assert "*A trial run with inputs of size 'small': figures to be replaced.*" in told


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
    assert told == ["- [some](#some): scale 18, 1 worker: Baseline (2 x as fast)"]
