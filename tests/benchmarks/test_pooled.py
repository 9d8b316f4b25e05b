"""Two runs are one where they agree, and no figure where they do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.harness.pooled import DIFFER, pool, pooled
from benchmarks.harness.results import Results, Row


def of(*rows: Row) -> Results:
    return Results("chain", "full", "2026-01-01", {"cores": 2}, {"python": "3"}, [*rows])


def row(*seconds: float, peak: int = 1) -> Row:
    return Row("Pointstamp", {"workers": 1}, 1, [*seconds], [peak], "compiled")


@pytest.mark.parametrize(
    "seconds", [(2.0, 2.1, 2.2), (1.9, 9.0, 9.0)], ids=["its median is", "the other's median is"]
)
def test_runs_that_agree_have_the_samples_of_both(seconds: tuple[float, ...]) -> None:
    found = pooled(of(row(1.0, 2.0, 3.0, peak=5)), of(row(*seconds)))
    assert found.rows == [row(1.0, 2.0, 3.0, *seconds, peak=5)]


def test_runs_that_do_not_agree_have_none() -> None:
    (found,) = pooled(of(row(1.0, 2.0, 3.0)), of(row(3.1, 3.2, 3.3))).rows
    assert (found.seconds, found.peaks, found.missing) == ([], [], DIFFER)


def test_what_was_not_measured_in_one_run_is_not_there() -> None:
    absent = replace(row(), peaks=[], missing="it is not installed")
    assert pooled(of(row(1.0)), of(absent)).rows == [absent]
    assert pooled(of(absent), of(row(1.0))).rows == [absent]


def test_runs_of_other_work_are_refused() -> None:
    one = of(row(1.0))
    for other in (
        replace(one, machine={"cores": 4}),
        replace(one, rows=[replace(row(1.0), at={"workers": 2})]),
        replace(one, rows=[replace(row(1.0), answer=3)]),
    ):
        with pytest.raises(ValueError, match=r"chain: |answers None, and 3 in another run"):
            pooled(one, other)


def test_folders_of_two_runs_are_pooled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for n, folder in enumerate(folders):
        of(row(1.0 + n, 2.0)).save(folder)
    assert pool("chain", *folders).rows == [row(1.0, 2.0, 2.0, 2.0)]
    kept: list[Results] = []
    monkeypatch.setattr(Results, "save", lambda self: kept.append(self))
    both = ["--pool", *map(str, folders)]
    assert main(["chain", "--no-page", *both]) == 0
    assert [results.rows for results in kept] == [[row(1.0, 2.0, 2.0, 2.0)]]
    assert main(["barrier", "--no-page", *both]) == 2
    assert "barrier.json" in capsys.readouterr().err
