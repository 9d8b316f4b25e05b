"""How far a run is: what is counted, what may remain, and where and how it is shown."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

import pointstamp as ps
from pointstamp.communication import publishing
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.dataflow.source_counts import SourceCounts
from pointstamp.errors import MissingExtraError, UsageError, WorkerError
from pointstamp.formats import extras
from pointstamp.observability import progress_bar
from pointstamp.observability.progress_bar import RunFigures, RunProgressBar, part_read
from pointstamp.runtime import counted_run
from pointstamp.runtime.counted_run import CountedRun, run_name
from pointstamp.runtime.watched_program import ReadWorkers, read_program
from tests.waiting import wait_for

LIMIT_S = 60.0


def counts_of(main: Callable[[ps.Worker], object]) -> dict[str, Any]:
    """The counts of one worker at the end of a program."""
    counts = SourceCounts()

    def counted(worker: ps.Worker) -> None:
        worker.environment.source_counts = counts
        main(worker)

    ps.execute(counted)
    return counts.read()


def counts_within(build: Callable[[ps.Scope], ps.Stream[Any]]) -> list[dict[str, Any]]:
    """The counts after each batch that a stream of one worker has brought."""
    counts, found = SourceCounts(), list[dict[str, Any]]()

    def main(worker: ps.Worker) -> None:
        worker.environment.source_counts = counts
        with worker.dataflow() as scope:
            build(scope).inspect_batch(lambda time, batch: found.append(counts.read()))

    ps.execute(main)
    return found


def extents(counts: dict[str, Any]) -> list[tuple[int, int | None]]:
    return list(counts["sources"].values())


# What is counted.


def test_a_source_of_a_list_knows_how_much_of_it_was_sent() -> None:
    n = 2 * PREFERRED_RECORDS + 10
    found = counts_within(lambda scope: scope.to_stream(range(n)))
    # All of the last batch was sent; the capability goes with the next activation.
    assert [extents(each) for each in found] == [
        [(PREFERRED_RECORDS, n)],
        [(2 * PREFERRED_RECORDS, n)],
        [(n, n)],
    ]
    assert [each["records"] for each in found] == [PREFERRED_RECORDS, 2 * PREFERRED_RECORDS, n]


@pytest.mark.parametrize(
    ("build", "n_total"),
    [
        (lambda scope: scope.to_stream("abc"), 3),
        (lambda scope: scope.to_stream(iter("abc")), None),
        (lambda scope: scope.to_stream(pa.table({"a": [1, 2, 3]})), 3),
        (lambda scope: scope.to_stream(pa.table({"a": [1, 2, 3]}).to_reader()), None),
        (lambda scope: scope.batches_to_stream([[1, 2], [3]]), 3),
        (lambda scope: scope.batches_to_stream([pa.table({"a": [1, 2, 3]})]), 3),
        (lambda scope: scope.batches_to_stream(iter([[1, 2, 3]])), None),
    ],
    ids=["text", "iterator", "table", "reader", "batches", "tables", "iterator of batches"],
)
def test_what_has_a_length_is_known_and_what_has_none_is_not(
    build: Callable[[ps.Scope], ps.Stream[Any]], n_total: int | None
) -> None:
    (first, *_) = counts_within(build)
    assert [each[1] for each in extents(first)] == [n_total]


def test_an_input_of_the_program_has_no_size_until_it_is_closed() -> None:
    counts, found = SourceCounts(), list[dict[str, Any]]()

    def main(worker: ps.Worker) -> None:
        worker.environment.source_counts = counts
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.map(lambda x: x + 1).probe()
        for epoch in range(3):
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
            found.append(counts.read())
        input.close()
        found.append(counts.read())
        worker.run()
        found.append(counts.read())

    ps.execute(main)
    assert [each["records"] for each in found] == [1, 2, 3, 3, 3]
    assert [each["sent"] for each in found] == [2, 4, 6, 6, 6]
    assert [each["epochs"] for each in found] == [1, 2, 3, 3, 3]
    assert [extents(each) for each in found] == [[(1, None)], [(2, None)], [(3, None)], [], []]


def test_epochs_of_inputs_count_where_there_is_no_probe() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            first, stream = scope.new_input()
            second, other = scope.new_input()
            stream.concat(other)
        first.close()
        for epoch in range(5):
            second.send(epoch)
            second.advance_to(epoch + 1)

    assert counts_of(main)["epochs"] == 5


def test_dataflows_that_are_over_or_dropped_have_been_counted() -> None:
    def main(worker: ps.Worker) -> None:
        for _ in range(3):
            with worker.dataflow("short") as scope:
                scope.to_stream([1, 2])
            worker.run()
        with worker.dataflow("dropped") as scope:
            input, _ = scope.new_input()
        for _ in range(7):
            input.send(1)
        worker.step()
        worker.drop_dataflow("dropped")

    found = counts_of(main)
    assert (found["records"], found["sent"], found["sources"]) == (13, 13, {})


def test_what_goes_round_a_loop_is_sent_and_does_not_come_in() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope, scope.iterative() as inner:
            loop, again = inner.feedback(1)
            numbers = scope.to_stream([3]).enter(inner).concat(again)
            loop.connect(numbers.filter(lambda x: x > 0).map(lambda x: x - 1))

    found = counts_of(main)
    assert found["records"] == 1
    # ToStream 1, Concatenate 4 (3, 2, 1, 0), Filter 3, Map 3, Feedback 3.
    assert found["sent"] == 14


def test_the_inner_epochs_of_a_flow_are_no_source() -> None:
    class Numbers:
        def partitions(self) -> list[str]:
            return ["a", "b"]

        def sizes(self) -> dict[str, int]:
            return {"a": 3, "b": 2}

        def open(self, partition: str, position: int | None) -> Any:
            for n in range(position or 0, self.sizes()[partition]):
                yield [n], n + 1

    found: list[list[tuple[int, int | None]]] = []

    def build(scope: ps.Scope) -> None:
        def look(time: Any, batch: Any) -> None:
            (process,) = read_program(ReadWorkers("counts", run=run[0]))
            found.append(extents(process["workers"][0]))

        scope.source(Numbers()).inspect_batch(look)

    run: list[str] = []
    said = io.StringIO()

    class Names(RunProgressBar):
        def __init__(self, name: str, workers: int) -> None:
            run.append(name)
            super().__init__(name, workers, Console(file=said))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(progress_bar, "RunProgressBar", Names)
        ps.run(build, epoch_s=0, progress_bar=True)
    assert found == [[(1, 5)], [(2, 5)], [(3, 5)], [(4, 5)], [(5, 5)]]
    # Nor do they count: they are by the clock, and go on from one run to the next.
    assert "5 records" in said.getvalue()
    assert "epochs" not in said.getvalue()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "csv.gz"])
def test_a_source_of_files_knows_its_bytes(tmp_path: Path, kind: str) -> None:
    table = pa.table({"n": range(1000)})
    for number in range(2):
        _write(table, tmp_path / f"{number}.{kind}")
    n_bytes = sum(each.stat().st_size for each in tmp_path.iterdir())
    half = (tmp_path / f"0.{kind}").stat().st_size
    source = ps.FileSource(tmp_path, batch_rows=250, block_bytes=1000)
    ps.testing.check_source(source)
    found = [extents(each)[0] for each in counts_within(lambda scope: scope.source(source))]
    assert {n_total for _, n_total in found} == {n_bytes}
    read = [n for n, _ in found]
    assert read == sorted(read)
    if kind == "csv.gz":  # of which one sees no more than that a file is read
        assert set(read) <= {0, half, n_bytes}
        assert half in read
    else:
        assert len(read) >= 8
        assert len({*read}) == len(read)
        assert read[-1] == n_bytes


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=500)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(str(path), table.schema) as file:
            for batch in table.to_batches(max_chunksize=250):
                file.write_batch(batch)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f'{{"n": {n}}}\n' for n in table["n"].to_pylist()))
    else:
        with pa.output_stream(str(path), compression="detect") as out:
            pyarrow.csv.write_csv(table, out)


def test_a_watched_folder_has_no_size(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")

    def build(scope: ps.Scope) -> ps.Stream[Any]:
        scope.to_stream([1])  # which is known
        return scope.source(ps.FileSource(tmp_path, watch_s=60))

    counts, found = SourceCounts(), list[dict[str, Any]]()

    def main(worker: ps.Worker) -> None:
        worker.environment.source_counts = counts
        with worker.dataflow("watched") as scope:
            build(scope).inspect_batch(lambda time, batch: found.append(counts.read()))
        worker.step_while(lambda: not found)
        worker.drop_dataflow("watched")

    ps.execute(main)
    assert (1, None) in extents(found[0])


def test_nothing_is_counted_where_nothing_is_shown() -> None:
    code = """
import sys
import pointstamp as ps
def main(worker):
    with worker.dataflow() as scope:
        scope.to_stream([1])
    worker.run()
    return worker.environment.source_counts, [m for m in sys.modules if "counted_run" in m]
print(ps.execute(main), ps.execute(main, workers=2))
print([m for m in sys.modules if m == "rich" or m.endswith("progress_bar")])
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    assert ran.stdout == "[(None, [])] [(None, []), (None, [])]\n[]\n"


# What may remain.


def sources(**found: tuple[int, int | None]) -> dict[str, Any]:
    return {"records": 10, "sent": 10, "epochs": 0, "sources": found}


@pytest.mark.parametrize(
    ("counts", "part"),
    [
        ([sources(a=(1, 4))], 0.25),
        ([sources(a=(1, 4)), sources(a=(4, 4))], 5 / 8),
        ([sources(a=(1, 4), b=(1, 10))], 0.1),
        ([sources(a=(1, 4), b=(0, 0))], 0.25),
        ([sources(a=(1, 4)), sources(b=(5, None))], None),
        ([sources(a=(4, 4))], None),
        ([sources()], None),
        ([sources(a=(9, 4), b=(1, 2))], 0.5),
    ],
)
def test_the_source_furthest_behind_decides(counts: list[Any], part: float | None) -> None:
    assert part_read(counts) == part


def figures_at(*moments: tuple[float, dict[str, Any]]) -> RunFigures:
    now = [0.0]
    figures = RunFigures(1, clock=lambda: now[0])
    for at, counts in moments:
        now[0] = at
        figures.take(0, counts)
        figures.note()
    return figures


def test_the_rest_is_estimated_by_the_pace_of_the_last_half_minute() -> None:
    # A tenth in the first 100 s, and another one in the last 10 s.
    slow = [(float(at), sources(a=(at, 1000))) for at in range(0, 101, 10)]
    fast = [(100.0 + at, sources(a=(100 + 10 * at, 1000))) for at in range(0, 31, 5)]
    figures = figures_at(*slow, *fast)
    assert figures.part == 0.4
    assert figures.remaining_s == pytest.approx(60.0)


def test_nothing_is_estimated_of_what_stands_still_or_is_all_read() -> None:
    assert figures_at((1.0, sources(a=(0, 10))), (2.0, sources(a=(0, 10)))).remaining_s is None
    done = figures_at((1.0, sources(a=(5, 10))), (2.0, sources(a=(10, 10))))
    assert done.remaining_s is None
    assert "all read" in str(done)


def test_no_estimate_is_made_before_all_workers_have_answered() -> None:
    figures = RunFigures(2)
    figures.take(0, sources(a=(5, 10)))
    figures.note()
    assert figures.part is None
    figures.take(1, sources(a=(1, 10)))
    figures.note()
    assert figures.part == 0.3


def test_after_its_last_counts_a_worker_is_not_counted_again() -> None:
    figures = RunFigures(1)
    figures.take(0, {**sources(), "records": 20}, is_last=True)
    figures.take(0, sources(a=(5, 10)))
    figures.end()
    assert figures.n_records == 20


# Where it is shown.

LINE = re.compile(r"pointstamp: \d+\.\d s, (\w+): (.*)\n")


def numbers(worker: ps.Worker, n: int) -> int:
    with worker.dataflow() as scope:
        scope.to_stream(range(worker.index, n, worker.peers)).exchange().map(lambda x: -x)
    worker.run()
    return worker.index


@pytest.mark.parametrize(("workers", "threads"), [(1, False), (2, True), (2, False)])
def test_where_there_is_no_terminal_the_end_is_one_line(
    workers: int,
    threads: bool,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_bar, "LINE_EVERY_S", 1e9)  # the machine may be slow
    found = ps.execute(numbers, 1000, workers=workers, threads=threads, progress_bar=True)
    assert found == list(range(workers))
    said = LINE.fullmatch(capfd.readouterr().err)
    assert said is not None
    assert said[1] == "done"
    assert re.fullmatch(r"1,000 records, [\d,]+/s, 100 % read", said[2])


def test_now_and_then_there_is_a_line_with_what_remains(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_bar, "EVERY_S", 0.01)
    monkeypatch.setattr(progress_bar, "LINE_EVERY_S", 0.02)
    n = 4 * PREFERRED_RECORDS
    has_more = threading.Event()

    def main(worker: ps.Worker) -> None:
        def look(time: Any, batch: Any) -> None:
            if batch[0] == PREFERRED_RECORDS:
                assert has_more.wait(LIMIT_S)

        with worker.dataflow() as scope:
            scope.to_stream(range(n)).inspect_batch(look)

    line = re.compile(
        r"pointstamp: \d+\.\d s: ([\d,]+) records, [\d,]+/s, (\d+) % read, [\d:]+ left\n"
    )
    lines: list[str] = []

    def between() -> list[tuple[str, str]]:
        return line.findall("".join(lines))

    def read() -> None:
        def there() -> bool:
            lines.append(capfd.readouterr().err)
            return ("131,072", "50") in between()

        try:
            wait_for(there)
        finally:
            has_more.set()

    reading = threading.Thread(target=read)
    reading.start()
    ps.execute(main, progress_bar=True)
    reading.join()
    # On a slow machine one may come of the first batch alone.
    assert set(between()) <= {("65,536", "25"), ("131,072", "50")}


def test_a_run_that_fails_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1, 0]).map(lambda x: 1 // x)

    with pytest.raises(WorkerError, match="division"):
        ps.execute(main, progress_bar=True)
    said = LINE.fullmatch(capfd.readouterr().err)
    assert said is not None
    assert said[1] == "failed"


class Gone(io.StringIO):
    """A file whose reader is gone."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_has_its_results_where_the_line_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(sys, "stderr", Gone())
    results = ps.execute(numbers, 10, workers=workers, threads=True, progress_bar=True)
    assert len(results) == workers


def test_only_true_and_false_are_taken() -> None:
    with pytest.raises(UsageError, match="progress_bar is True or False, and not 1"):
        ps.execute(numbers, 1, progress_bar=1)  # type: ignore[arg-type]


def test_without_rich_that_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"Rich.*pip install 'pointstamp\[cli\]'"):
        ps.execute(numbers, 1, progress_bar=True)


def test_two_runs_of_one_process_do_not_count_each_other() -> None:
    """Each is shown its own: their workers answer in the same process."""
    bars = [RunProgressBar(run, 1, Console(file=io.StringIO())) for run in ("0-a", "0-b")]
    counted = CountedRun("0-b", 0)
    found: list[Any] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1])
        for run in ("0-a", "0-b"):
            (process,) = read_program(ReadWorkers("counts", run=run))
            found.append([each["worker"] for each in process["workers"]])

    ps.execute(counted.counting(main))
    assert found == [[], [0]]
    assert len(bars) == 2


def test_of_two_machines_whose_processes_have_one_number_one_shows_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    published: list[Any] = []
    monkeypatch.setattr(publishing, "publish", published.append)
    counted = CountedRun(run_name(0), 1)
    counted.publish()
    assert published == []
    monkeypatch.setattr(counted_run, "gethostname", lambda: "another machine")
    counted.publish()
    assert [last.worker for last in published] == [1]


PROGRAM = """
import sys
import pointstamp as ps
from pointstamp.observability import progress_bar
progress_bar.EVERY_S = 0.02

def main(worker):
    import time
    with worker.dataflow() as scope:
        numbers = scope.source(ps.FileSource(sys.argv[1], block_bytes=4000))
        numbers.inspect_batch(lambda at, batch: time.sleep(0.01))
    print("from the program", flush=True)
    return worker.index

print(ps.execute(main, progress_bar=True))
"""


def test_on_a_terminal_a_bar_is_drawn_over_and_over(tmp_path: Path) -> None:
    for number in range(4):
        lines = "".join(f"{n}\n" for n in range(20_000))
        (tmp_path / f"{number}.csv").write_text(f"n\n{lines}")
    terminal, other = pty.openpty()
    shown = bytearray()

    def read() -> None:
        while True:
            try:
                more = os.read(terminal, 1 << 16)
            except OSError:  # nothing holds the other end
                return
            if not more:
                return
            shown.extend(more)

    reading = threading.Thread(target=read)
    reading.start()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    environment.pop("NO_COLOR", None)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=other,
        env=environment,
        timeout=LIMIT_S,
    )
    os.close(other)
    reading.join()
    os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert ran.returncode == 0, text
    # What the program prints goes where it went, and not through the bar.
    assert ran.stdout == b"from the program\n[0]\n"
    parts = [int(found) for found in re.findall(r"(\d+) % read", text)]
    assert parts == sorted(parts)
    assert any(0 < part < 100 for part in parts)
    assert parts[-1] == 100
    assert re.search(r"\d+ % read \d+:\d\d, \d+:\d\d left", text)
    assert text.count("80,000 records") >= 1
    assert "━" in text
    # Drawn over: it goes up by its two lines, and leaves the last picture.
    assert shown.count(b"\x1b[1A") >= 2
    assert text.rstrip().endswith("/s")
