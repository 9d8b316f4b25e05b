"""Programs in Rust: found, built once, run in each form, read; and if absent, said to be.

What is built here are scripts that print as the programs do.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import event_driven
from benchmarks.harness import rust
from benchmarks.harness.case import Case, Effort
from benchmarks.harness.driver import run
from benchmarks.harness.find import find, names

NAMED = os.environ.get(rust.VARIABLE, "")

BUILD = """#!/bin/sh
echo built >> "{folder}/builds"
echo "noise on the way"
echo "{folder}/bin"
"""

RACE = """#!/bin/sh
echo "$@" >> "{folder}/calls"
case "$*" in *-p1*) exit 0;; esac
echo "connected"
echo "R us_per_round 3.4 cpu_s 0.2 wall_s 0.250000 count 4711"
"""

EXAMPLE = """#!/bin/sh
echo "$@" >> "{folder}/calls"
test "$1" = 2 || sleep 0.2
"""


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like that of the peers, with programs that are scripts."""
    (tmp_path / "bin").mkdir()
    put(tmp_path / "build.sh", BUILD)
    put(tmp_path / "bin" / "race", RACE)
    put(tmp_path / "bin" / "example", EXAMPLE)
    monkeypatch.setenv(rust.VARIABLE, str(tmp_path))
    return tmp_path


def put(path: Path, script: str) -> None:
    """Write a script that can be run."""
    path.write_text(
        script.replace(
            "{folder}", str(path.parent.parent if path.parent.name == "bin" else path.parent)
        )
    )
    path.chmod(0o755)


def clear() -> None:
    """Look for the sources, and build, anew."""
    rust.sources.cache_clear()
    rust.programs.cache_clear()


def cases() -> list[Case]:
    """One for each form."""
    return rust.race(
        *("count", lambda: 10), amount=lambda form: form.workers, data="it", answer=rust.number
    )


def test_a_program_is_run_alone_by_threads_and_by_processes(peers: Path) -> None:
    alone, threads, processes = cases()
    assert (alone.who, threads.who, processes.who) == (rust.TIMELY, rust.THREADS, rust.TIMELY)
    assert [case.at["workers"] for case in cases()] == [1, 2, 2]
    assert [case.amount for case in cases()] == [1, 2, 2]
    for case in cases():
        assert not case.absent()
        assert case.measure(Effort(1)).seconds == [0.25]
    called = (peers / "calls").read_text().splitlines()
    assert called[:2] == ["count 10 -- -w1", "count 10 -- -w2"]
    assert [call.rpartition(" ")[0] for call in called[2:]] == [
        "count 10 -- -n2 -p0 -h",
        "count 10 -- -n2 -p1 -h",
    ]
    assert (peers / "builds").read_text().splitlines() == ["built"]


def test_one_worker_has_the_answer_and_two_print_the_part_of_the_first(peers: Path) -> None:
    alone, threads, _ = (case.measure(Effort(1)) for case in cases())
    assert (alone.answer, alone.details) == (4711, {})
    assert (threads.answer, threads.details) == (None, {"worker 0": 4711})
    (whole,) = rust.race(
        "count", amount=lambda form: 1, answer=rust.number, told="all", forms=[rust.TWO_THREADS]
    )
    assert whole.measure(Effort(1)).answer == 4711
    (unlike,) = rust.race(
        "count", amount=lambda form: 1, answer=rust.number, told="unlike", forms=[rust.TWO_THREADS]
    )
    assert unlike.measure(Effort(1)).details == {}


def test_it_runs_as_often_as_is_wanted_and_once_where_that_takes_long(peers: Path) -> None:
    (alone, *_) = cases()
    assert len(alone.measure(Effort(3)).seconds) == 3
    assert len(alone.measure(Effort(3, patience_s=0.1)).seconds) == 1


def test_an_answer_that_changes_from_run_to_run_is_an_error(peers: Path) -> None:
    put(peers / "bin" / "race", RACE.replace("4711", "$(wc -l < {folder}/calls)"))
    with pytest.raises(RuntimeError, match="answers differ from run to run"):
        cases()[0].measure(Effort(2))


def test_of_rounds_processes_make_fewer(peers: Path) -> None:
    cases = rust.in_rounds("queue", rounds=1_000)
    assert [case.amount for case in cases] == [1_000, 200, 50]
    for case in cases[:2]:
        case.measure(Effort(1))
    assert (peers / "calls").read_text().splitlines() == ["queue 1000 -- -w1", "queue 200 -- -w2"]


def test_of_an_example_what_its_start_takes_is_subtracted(peers: Path) -> None:
    (alone, *_) = rust.example("example", "x", rounds=10)
    assert alone.amount == 19_998
    (seconds,) = alone.measure(Effort(1)).seconds
    assert seconds > 0.1
    assert (peers / "calls").read_text().splitlines() == ["2 x -w1", "20000 x -w1"]


def test_a_program_that_fails_is_an_error_that_has_its_last_words(peers: Path) -> None:
    put(peers / "bin" / "race", "#!/bin/sh\necho no such graph\nexit 3\n")
    with pytest.raises(RuntimeError, match=r"race count ended with \[3\]: no such graph"):
        cases()[0].measure(Effort(1))


def test_a_program_without_a_result_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no result: 'hello'"):
        rust.clock(["hello"])


def test_without_sources_rust_is_absent_and_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(rust.VARIABLE, str(tmp_path / "nowhere"))
    clear()
    (alone, *_) = cases()
    expected = "Rust was not run: its programs are built in POINTSTAMP_PEERS, which is not there"
    assert alone.absent() == expected
    assert rust.versions() == {}
    monkeypatch.delenv(rust.VARIABLE)
    monkeypatch.setattr(rust, "BESIDE", tmp_path / "shared" / "peers")
    clear()
    assert alone.absent() == expected.replace(rust.VARIABLE, "../shared/peers")
    clear()


def test_sources_that_cannot_be_built_are_as_good_as_none(peers: Path) -> None:
    put(peers / "build.sh", "#!/bin/sh\necho 'peers: no cargo on the PATH' >&2\nexit 2\n")
    (alone, *_) = cases()
    assert alone.absent() == "Rust was not run: peers: no cargo on the PATH"


def test_the_versions_are_those_of_the_sources(peers: Path) -> None:
    manifest = peers / "rust" / "timely" / "timely" / "Cargo.toml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('[package]\nname = "timely"\nversion = "0.29.0"\n')
    assert rust.versions() == {"timely (Rust)": "0.29.0"}


@pytest.mark.parametrize("name", names())
def test_what_rust_does_ours_does_on_as_many_workers(name: str) -> None:
    all_cases = find(name).cases("full")
    ours = [case.at for case in all_cases if case.is_ours]
    for case in all_cases:
        if case.is_rust:
            assert any(case.at.items() <= at.items() for at in ours)
            assert case.absent()  # there is none beside these tests


def test_what_takes_more_memory_than_there_is_is_not_tried(
    peers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = peers / "meminfo"
    meminfo.write_text("MemTotal:  24 kB\nMemAvailable:  4194304 kB\n")
    assert event_driven.free_bytes(meminfo) == 1 << 32
    assert event_driven.free_bytes(peers / "nothing") is None
    monkeypatch.setattr(event_driven, "free_bytes", lambda path: 1 << 32)
    tenth, _, ours, theirs = event_driven.cases("full")
    assert not tenth.absent()
    assert ours.absent() == "it may need 7.5 GiB of memory, of which 4.0 GiB are free"
    assert theirs.absent() == ours.absent()


@pytest.mark.skipif(not NAMED, reason="the peers are built where POINTSTAMP_PEERS names them")
@pytest.mark.parametrize("name", ["epochs", "hash_join", "union_find", "words"])
def test_programs_in_rust_give_what_ours_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rust.VARIABLE, NAMED)
    clear()
    rows = run(find(name), "tiny", 1, lambda line: None).rows
    assert {row.missing for row in rows if row.is_rust} == {""}
    assert [row.answer for row in rows if row.is_rust and row.at["workers"] == 1]
