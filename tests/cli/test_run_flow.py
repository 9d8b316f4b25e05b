"""`pointstamp run` of a dataflow with sources of its own, which goes on where it was ended."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pointstamp.checkpoint import Checkpoint, claims
from tests.cli.conftest import Ran

PROGRAM = """
import pathlib
import pyarrow as pa
import pointstamp as ps

SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])

def pairs(batch):
    return [(word, 1) for word in batch.column("word").to_pylist()]


def counted(word, one, n):
    return n + one, [(word, n + one)]

def main(scope, folder):
    words = scope.source(ps.FileSource(pathlib.Path(folder, "in")))
    counts = words.map_batches(pairs).state_machine(counted, default=0)
    counts.sink(ps.FileSink(pathlib.Path(folder, "out"), format="csv", schema=SCHEMA))
"""


def test_a_program_goes_on_with_its_checkpoint(tmp_path: Path, run: Callable[..., Ran]) -> None:
    name = f"flow_{tmp_path.name.replace('-', '_')}"  # of a module that is imported here
    program = tmp_path / f"{name}.py"
    program.write_text(PROGRAM)
    (tmp_path / "in").mkdir()
    options = ("--checkpoint", tmp_path / "checkpoint", "--epoch-s", "0.01")
    for n, how in enumerate((("--workers", 2), ("--threads",))):
        (tmp_path / "in" / f"{n}.csv").write_text("word\na\nb\n")
        ran = run("run", f"{program}:main", *options, *how, "--", tmp_path)
        assert ran == Ran(0, "", "")
    parts = (tmp_path / "out").glob("part-*")
    lines = [line for part in parts for line in part.read_text().splitlines()[1:]]
    assert sorted(lines) == ['"a",1', '"a",2', '"b",1', '"b",2']
    assert Checkpoint(tmp_path / "checkpoint").latest() is not None
    # Without a checkpoint it is run once.
    (tmp_path / "out").rename(tmp_path / "before")
    assert run("run", f"{program}:main", "--epoch-s", "0", "--", tmp_path).status == 0
    assert len(list((tmp_path / "out").glob("part-*"))) >= 1


_KEYED_BY_LISTS = """
def main(worker):
    with worker.dataflow() as scope:
        scope.to_stream([1]).distinct().map(lambda x: [x]).distinct(name="Second")
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_it_is_said_which_operator_cannot_take_a_record(
    tmp_path: Path, run: Callable[..., Ran], workers: int
) -> None:
    program = tmp_path / f"keyed_{workers}_{tmp_path.name.replace('-', '_')}.py"
    program.write_text(_KEYED_BY_LISTS)
    ran = run("run", f"{program}:main", "--workers", workers)
    assert ran.status == 2
    assert "operator 'Second' failed at time 0: a key of type list has no hash" in ran.err


def test_what_does_not_go_together_is_refused(tmp_path: Path, run: Callable[..., Ran]) -> None:
    program = tmp_path / f"misused_{tmp_path.name.replace('-', '_')}.py"
    program.write_text("def main(scope):\n    pass\n")
    options = ("--checkpoint", tmp_path / "checkpoint")
    ran = run("run", f"{program}:main", *options, "--", "word")
    assert (ran.status, "called with a scope and ['word']" in ran.err) == (2, True)
    ran = run("run", f"{program}:main", *options, "--process", 0)
    assert ran.status == 2
    assert "--checkpoint and --epoch-s are for workers of this machine" in ran.err
    ran = run("run", f"{program}:main", *options, "--threads")
    assert ran.status == 2
    assert "the flow has no source" in ran.err
    ran = run("run", f"{program}:main")
    assert (ran.status, ran.out) == (2, "")
    assert "main takes a scope, in which it builds a dataflow with sources: name --ch" in ran.err
    program.with_name("worker_" + program.name).write_text("def main(worker):\n    pass\n")
    ran = run("run", f"{program.with_name('worker_' + program.name)}:main", *options)
    assert (ran.status, ran.out) == (2, "")
    assert "main takes a worker, and with --checkpoint or --epoch-s it is given a sco" in ran.err


def test_a_checkpoint_that_is_no_folder_is_refused(tmp_path: Path, run: Callable[..., Ran]) -> None:
    program = tmp_path / f"folder_{tmp_path.name.replace('-', '_')}.py"
    program.write_text("def main(scope):\n    pass\n")
    for place in (program, program / "below"):
        ran = run("run", f"{program}:main", "--threads", "--checkpoint", place)
        assert (ran.status, ran.out) == (2, "")
        assert ran.err == (
            f"pointstamp: a checkpoint is kept in a folder, and {program} is a file\n"
        )


@pytest.mark.parametrize("epoch_s", ["-1", "soon"])
def test_what_is_no_length_of_an_epoch_is_refused(
    tmp_path: Path, run: Callable[..., Ran], epoch_s: str
) -> None:
    assert run("run", "program.py:main", "--epoch-s", epoch_s).status == 2


def test_a_checkpoint_that_another_program_has_is_refused(
    tmp_path: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE_S", 0.1)
    program = tmp_path / f"second_{tmp_path.name.replace('-', '_')}.py"
    program.write_text("def main(scope):\n    pass\n")
    with Checkpoint(tmp_path / "checkpoint").claimed():
        ran = run("run", f"{program}:main", "--threads", "--checkpoint", tmp_path / "checkpoint")
    assert (ran.status, ran.out) == (1, "")
    assert re.fullmatch(r"pointstamp: \S+: this program commits to this .*\n", ran.err)
