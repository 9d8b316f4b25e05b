"""External programs as operators: what they are given, what they answer, how they end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import (
    BuildError,
    CommandError,
    ContainerError,
    DataError,
    WorkerError,
)
from pointstamp.testing import collect
from tests.os_processes import is_running

TWICE = [sys.executable, str(Path(__file__).parent / "twice.py")]
SED = ["sed", "-u", "s/^x/yy/"]
"""Which passes a mark on as it is, line by line."""

PYTHON = [sys.executable, "-u", "-c"]

WAYS = pytest.mark.parametrize("marker", [None, "--end--"], ids=["a process a time", "marks"])


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def run(build: Any, epochs: list[list[Any]], workers: int = 1, **options: Any) -> Any:
    """(time, record) of the stream that `build(stream)` gives, the records dealt to workers."""

    def main(worker: Any) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            answers = build(stream)
            answers.inspect_batch(
                lambda time, batch: found.extend(
                    (time, record) for record in ps.containers.kind_of(batch).records(batch)
                )
            )
        for epoch, records in enumerate(epochs):
            for record in records[worker.index :: worker.peers]:
                (input.send if isinstance(record, (str, bytes, int)) else input.send_batch)(record)
            input.advance_to(epoch + 1)
            worker.step()
        return found

    options.setdefault("threads", True)
    parts = ps.execute(main, workers=workers, **options)
    return sorted(item for part in parts for item in part)


def failure(build: Any, epochs: list[list[Any]], workers: int = 1, **options: Any) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        run(build, epochs, workers, **options)
    return caught.value


# What goes through.


@WAYS
def test_lines_go_through_at_their_times(workers: int, marker: str | None) -> None:
    epochs = [["xa", "b"], [], ["xc", "xd", "e", "f", "g"], ["xh"]]
    expected = [(0, "b"), (0, "yya"), (2, "e"), (2, "f"), (2, "g"), (2, "yyc"), (2, "yyd"),
                (3, "yyh")]  # fmt: skip
    assert run(lambda stream: stream.command(SED, marker=marker), epochs, workers) == expected


@WAYS
def test_processes(marker: str | None) -> None:
    found = run(lambda s: s.command(SED, marker=marker), [["xa", "b"], ["xc"]], 2, threads=False)
    assert found == [(0, "b"), (0, "yya"), (1, "yyc")]


def test_bytes_need_not_be_utf8(workers: int) -> None:
    epochs = [[b"x\xff", b""], [b"x"]]
    found = run(lambda s: s.command(["cat"], form="bytes"), epochs, workers)
    assert found == [(0, b""), (0, b"x\xff"), (1, b"x")]


@WAYS
def test_columns_go_through_as_an_arrow_stream(workers: int, marker: str | None) -> None:
    def batch(*values: Any) -> Any:
        kind = pa.dictionary(pa.int8(), pa.string())
        return pa.RecordBatch.from_pydict(
            {"n": pa.array(values, pa.int64()), "word": pa.array(["w"] * len(values)).cast(kind)}
        )

    command = [*TWICE, "arrow"]
    epochs = [[batch(1, 2), batch(3)], [batch(4), batch(5), batch(None)]]
    found = run(lambda s: s.command(command, form="arrow", marker=marker).map_batches(
        lambda answer: [str(row) for row in ps.containers.kind_of(answer).records(answer)]
    ), epochs, workers)  # fmt: skip
    once = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (1, None)]
    assert found == sorted((time, str((n, "w"))) for time, n in once * 2)


def test_arrays_come_back_as_arrow(workers: int) -> None:
    def build(scope: Any) -> Any:
        mine = np.arange(10, dtype=np.int64)[scope.index :: scope.peers]
        return scope.batches_to_stream([Arrays(x=mine)]).command(["cat"], form="arrow")

    assert collect(build, workers) == [(0, (x,)) for x in range(10)]


def test_a_program_of_ones_own_answers_marks() -> None:
    found = run(lambda s: s.command([*TWICE, "text", "#"], marker="#"), [["a"], ["b", "c"]])
    assert found == [(0, "a"), (0, "a"), (1, "b"), (1, "b"), (1, "c"), (1, "c")]


def test_with_marks_one_process_answers_all_times_and_without_each_has_its_own() -> None:
    program = "import os, sys\nfor x in sys.stdin: print(x.strip() if x < 'a' else os.getpid())"

    def pids(marker: str | None) -> list[int]:
        epochs = [["a", "b"], ["c"], ["d"]]
        found = run(lambda s: s.command([*PYTHON, program], marker=marker), epochs)
        assert [time for time, _ in found] == [0, 0, 1, 2]
        return [int(pid) for _, pid in found]

    assert len(set(pids("#"))) == 1
    assert len(set(pids(None))) == 3


def test_a_program_may_read_its_input_to_the_end_before_it_answers() -> None:
    epochs = [["b", "a"], ["d", "c", "c"]]
    found = run(lambda s: s.command(["wc", "-l"]).map(int), epochs)
    assert found == [(0, 2), (1, 3)]


@WAYS
def test_much_goes_both_ways_at_once(marker: str | None) -> None:
    """Far more than pipes hold: who writes all before reading waits for ever."""
    lines = [f"{n:0100}" for n in range(100_000)]

    def build(scope: Any) -> Any:
        return scope.to_stream(lines).command(["cat"], marker=marker).count()

    assert collect(build) == [(0, 100_000)]


@WAYS
def test_a_long_line_without_an_end(marker: str | None) -> None:
    long = "x" * 3_000_000
    program = "import sys\nfor x in sys.stdin: sys.stdout.write(x); sys.stdout.flush()"
    assert run(lambda s: s.command([*PYTHON, program], marker=marker), [[long]]) == [(0, long)]
    assert run(lambda s: s.command(["printf", "a\\nb"]), [["ignored"]]) == [(0, "a"), (0, "b")]


def test_a_program_may_stop_reading_early() -> None:
    """As in a shell: `head` is done, and the rest of the time is not its business."""
    lines = [str(n) for n in range(200_000)]

    def build(scope: Any) -> Any:
        return scope.to_stream(lines).command(["head", "-n", "2"])

    assert collect(build) == [(0, "0"), (0, "1")]
    answers = run(lambda s: s.command(["head", "-n", "1"]), [["a", "b"], ["c"]])
    assert answers == [(0, "a"), (1, "c")]


@WAYS
def test_in_a_loop(workers: int, marker: str | None) -> None:
    """Every answer goes in again until it is long enough; times are pairs."""

    def build(scope: Any) -> Any:
        words = scope.to_stream(["a", "bbb"] if scope.index == 0 else [])
        with scope.iterative() as inner:
            loop, again = inner.feedback(1)
            around = words.enter(inner).concat(again).exchange()
            longer = around.command(["sed", "-u", "s/^[a-z].*/&&/"], marker=marker)
            rest, done = longer.branch(lambda word: len(word) > 10)
            loop.connect(rest)
            return done.leave()

    assert collect(build, workers) == [(0, "a" * 16), (0, "b" * 12)]


@WAYS
def test_times_in_any_order(marker: str | None) -> None:
    """What came first need not be complete first."""

    def shuffled(capability: Any, info: Any) -> Any:
        held = [capability]

        def logic(input: Any, output: Any) -> bool:
            for _ in input:
                pass
            if held and not input.frontier.less_equal(0):
                for time in (5, 3, 5, 1, 3, 4):
                    with output.session(held[0].delayed(time)) as session:
                        session.give(f"x{time}")
                held.pop().drop()
            return False

        return logic

    def build(scope: Any) -> Any:
        stream = scope.to_stream([]).unary_frontier(ps.Pipeline(), "Shuffled", shuffled)
        return stream.command(SED, marker=marker)

    assert Counter(collect(build)) == Counter([(1, "yy1"), (3, "yy3"), (3, "yy3"), (4, "yy4"),
                                               (5, "yy5"), (5, "yy5")])  # fmt: skip


@WAYS
def test_a_time_is_not_complete_before_the_program_has_answered(
    tmp_path: Path, marker: str | None
) -> None:
    """And the worker goes on meanwhile: here it is the worker that lets the program answer."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    answer = f'read -r y < {gate}; echo "$x $y"'
    wait = f'while read -r x; do if [ "$x" = --end-- ]; then echo "$x"; else {answer}; fi; done'
    seen: list[Any] = []

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            answers = stream.command(["sh", "-c", wait], marker=marker)
            probe = answers.inspect(seen.append).probe()
        input.send("question")
        input.advance_to(1)
        for _ in range(20):
            worker.step()
        assert not seen
        assert probe.less_equal(0)
        gate.write_text("answer\n")  # waits for the program to be there
        worker.step_while(lambda: probe.less_equal(0))
        assert seen == ["question answer"]

    ps.execute(main)


def test_env_and_cwd(tmp_path: Path) -> None:
    env = {**os.environ, "GREETING": "hi"}
    command = ["sh", "-c", "echo $GREETING; pwd; cat >/dev/null"]
    found = run(lambda s: s.command(command, env=env, cwd=str(tmp_path)), [["x"]])
    assert found == [(0, str(tmp_path.resolve())), (0, "hi")]


# What goes wrong.


def test_a_failure_says_command_status_last_words_and_time(workers: int) -> None:
    talks = "read x; echo one; for n in $(seq 50); do echo word $n >&2; done; exit 3"
    error = failure(lambda s: s.command(["sh", "-c", talks], name="Talker"), [[], ["a"]], workers)
    cause = error.__cause__
    assert isinstance(cause, CommandError)
    assert (error.operator, error.time) == ("Talker", 1)
    assert (cause.operator, cause.time, cause.status) == ("Talker", 1, 3)
    assert cause.command == ("sh", "-c", talks)
    assert cause.stderr.splitlines() == [f"word {n}" for n in range(31, 51)]
    assert "operator 'Talker' failed at time 1" in str(error)
    assert "exited with status 3 (fine would be 0)" in str(error)
    assert str(error).endswith("word 50")


def test_a_failure_travels_between_processes() -> None:
    error = failure(lambda s: s.command(["sh", "-c", "exit 3"]), [["a"]], 2, threads=False)
    assert isinstance(error.__cause__, CommandError)
    assert error.__cause__.status == 3
    assert error.worker == 0


def test_statuses_that_are_fine() -> None:
    def grep(ok: Any) -> Any:
        return lambda stream: stream.command(["grep", "x"], ok=ok)

    assert run(grep((0, 1)), [["ax", "b"], ["c"]]) == [(0, "ax")]
    error = failure(grep((0,)), [["ax", "b"], ["c"]])
    assert error.time == 1
    assert "exited with status 1" in str(error)


def test_a_signal_is_told_as_such() -> None:
    error = failure(lambda s: s.command(["sh", "-c", "kill -TERM $$"]), [["a"]])
    assert isinstance(error.__cause__, CommandError)
    assert error.__cause__.status == -signal.SIGTERM
    assert "was ended by signal 15" in str(error)


def test_with_marks_the_last_status_counts_too() -> None:
    """All is answered, and no capability left; the dataflow waits for the program all the same."""
    ends_badly = "import sys\nfor x in sys.stdin: print(x, end='')\nsys.exit('no good')"
    error = failure(lambda s: s.command([*PYTHON, ends_badly], marker="#"), [["a"]])
    assert isinstance(error.__cause__, CommandError)
    assert (error.__cause__.status, error.__cause__.stderr) == (1, "no good")


def test_with_marks_a_program_that_leaves_early_has_not_answered() -> None:
    error = failure(lambda s: s.command(["head", "-n", "2"], marker="#"), [["a"], ["b"], ["c"]])
    assert "before it had answered" in str(error)
    assert error.operator == "Command"


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("import sys\nprint('#\\n#', flush=True)\nfor x in sys.stdin: pass", "it was not sent"),
        ("import sys\nfor x in sys.stdin: print(x, end='')\nprint('more')", "was answered"),
    ],
    ids=["a mark too many", "an answer too many"],
)
def test_with_marks_what_nobody_asked_for_is_an_error(program: str, what: str) -> None:
    assert what in str(failure(lambda s: s.command([*PYTHON, program], marker="#"), [["a"]]))


def test_answers_that_are_not_of_the_form() -> None:
    error = failure(lambda s: s.command(["printf", "\\377"]), [["a"]])
    assert "not UTF-8" in str(error)
    assert isinstance(error.__cause__, DataError)
    batch = pa.RecordBatch.from_pydict({"x": [1]})
    error = failure(lambda s: s.command(["echo", "hello world"], form="arrow"), [[batch]])
    assert "not an Arrow IPC stream" in str(error)
    assert error.operator == "Command"
    assert error.time == 0


@pytest.mark.parametrize(
    ("record", "options", "kind", "what"),
    [
        (1, {}, ContainerError, "lines of str, and was given 1"),
        (b"a", {}, ContainerError, "lines of str"),
        ("a", {"form": "bytes"}, ContainerError, "lines of bytes"),
        ("a\nb", {}, DataError, "would arrive as two"),
        ("#", {"marker": "#"}, DataError, "choose another marker"),
        ("a", {"form": "arrow"}, ContainerError, "form='text'"),
        (pa.RecordBatch.from_pydict({"x": [1]}), {}, ContainerError, "form='arrow'"),
    ],
)
def test_records_that_do_not_fit(record: Any, options: Any, kind: Any, what: str) -> None:
    error = failure(lambda s: s.command(["cat"], **options), [[], [record]])
    assert isinstance(error.__cause__, kind)
    assert what in str(error)
    assert (error.operator, error.time) == ("Command", 1)


@pytest.mark.parametrize(
    ("command", "options", "what"),
    [
        (["no-such-program-here"], {}, "not on the path"),
        (["./no-such-program-here"], {}, "there is no such program"),
        (["cat"], {"env": {"PATH": "/nowhere"}}, "not on the path /nowhere"),
        (["cat"], {"cwd": "/nowhere"}, "no such folder"),
        ("cat", {}, "as a list"),
        ([], {}, "as a list"),
        (["cat"], {"form": "json"}, "text, bytes, arrow"),
        (["cat"], {"marker": "a\nb"}, "a marker of one line"),
        (["cat"], {"marker": ""}, "a marker of one line"),
        (["cat"], {"marker": b"#", "form": "bytes"}, "a marker of one line, not b'#'"),
        (["cat"], {"ok": 0}, "ok= as a collection of statuses, such as (0, 1), not 0"),
        (["cat"], {"ok": "0"}, "ok= as a collection of statuses, such as (0, 1), not '0'"),
    ],
)
def test_what_cannot_run_is_refused_when_it_is_built(command: Any, options: Any, what: str) -> None:
    error = failure(lambda s: s.command(command, **options), [["a"]])
    assert isinstance(error.__cause__, BuildError)
    assert what in str(error)
    assert error.operator is None


# How it ends.


@WAYS
def test_a_program_goes_with_the_worker_that_fails(marker: str | None) -> None:
    """It would not end by itself, and neither would what it has started."""
    stays = "sleep 1000 & echo started; sleep 1000"

    def main(worker: Any) -> None:
        def fail(line: str) -> None:
            raise ArithmeticError(line)

        with worker.dataflow() as scope:
            stream = scope.to_stream(["a"])
            answers = stream.command(["sh", "-c", stays], marker=marker)
            answers.exchange(lambda line: 0).inspect(fail)

    with pytest.raises(WorkerError, match="ArithmeticError"):
        ps.execute(main, workers=2, threads=True)


@pytest.mark.skipif(shutil.which("setsid") is None, reason="there is no setsid")
def test_a_program_goes_where_others_keep_its_pipes_open(tmp_path: Path) -> None:
    """Somebody else may go on with its pipes, in a session of his own: we do not wait for him."""
    note = tmp_path / "pid"
    stays = f"setsid sh -c 'echo $$ > {note}; echo ready; exec sleep 1000' & wait"

    def main(worker: Any) -> None:
        def fail(line: str) -> None:
            raise ArithmeticError(line)

        with worker.dataflow() as scope:
            scope.to_stream(["a"]).command(["sh", "-c", stays]).inspect(fail)

    try:
        with pytest.raises(WorkerError, match=r"ArithmeticError\('ready'\)"):
            ps.execute(main)
    finally:
        os.kill(int(note.read_text()), signal.SIGKILL)


@WAYS
def test_a_program_goes_with_a_dataflow_that_is_dropped(marker: str | None) -> None:
    def main(worker: Any) -> None:
        pids: list[str] = []
        with worker.dataflow("stays") as scope:
            stream = scope.to_stream(["a"])
            stream.command(["sh", "-c", "echo $$; exec sleep 1000"], marker=marker).inspect(
                pids.append
            )
        worker.step_while(lambda: not pids)
        worker.drop_dataflow("stays")
        assert not is_running(int(pids[0]))

    ps.execute(main)


def test_a_program_of_a_dataflow_whose_making_fails_never_starts(tmp_path: Path) -> None:
    mark = tmp_path / "ran"

    def main(worker: Any) -> None:
        try:
            with worker.dataflow() as scope:
                scope.to_stream(["a"]).command(["touch", str(mark)])
                raise KeyError
        except KeyError:
            pass

    ps.execute(main)
    assert not mark.exists()


def test_nothing_is_left_when_the_dataflow_is_complete() -> None:
    def main(worker: Any) -> list[str]:
        for marker in (None, "#"):
            with worker.dataflow() as scope:
                scope.to_stream(["a"]).command(["cat"], marker=marker)
            worker.run()
        return [t.name for t in threading.enumerate() if t.name.startswith("pointstamp-command")]

    assert ps.execute(main) == [[]]


@pytest.mark.parametrize("name", ["run_worker", "nobody"])
def test_a_program_goes_with_the_program_that_started_it(tmp_path: Path, name: str) -> None:
    """With the worker, where somebody looks after it; else with the interpreter."""
    program = f"""
import os, sys
import pointstamp as ps
from pointstamp.communication.single import SingleCommunicator

def main(worker):
    seen = []
    with worker.dataflow() as scope:
        answers = scope.to_stream(["a"]).command(["sh", "-c", "echo $$; sleep 1000"])
        answers.inspect(seen.append)
    worker.step_while(lambda: not seen)
    print(seen[0], flush=True)
    sys.exit(5)

{
        "ps.run_worker(SingleCommunicator(), main)"
        if name == "run_worker"
        else "main(ps.Worker(SingleCommunicator()))"
    }
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 5, ran.stderr
    assert not is_running(int(ran.stdout))
