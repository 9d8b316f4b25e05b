"""A question answered by Pointstamp's workers inside a Spark job.

The edges become a DataFrame: Spark scans Parquet files of integers itself; what
else can be read is read here, on the driver, and handed over as Arrow. The result
comes back to the driver as Arrow, and with `--out` all matches do, so they have
to fit into its memory and into `spark.driver.maxResultSize`.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pointstamp.cli.display import Display
from pointstamp.cli.edge_source import COLUMNS, EdgeReading, Facts
from pointstamp.cli.outcome import Outcome, Request, Wanted
from pointstamp.cli.progress_reporter import ProgressReporter
from pointstamp.cli.progress_server import ProgressServer
from pointstamp.cli.queries import Query
from pointstamp.cli.search import result_columns, results
from pointstamp.cli.top_matches import merged_top
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream

Result = TypeVar("Result")

START_S = 20.0
"""How long Java, at the most, takes to start and to give PySpark its port."""


@dataclass(frozen=True)
class Build:
    """The dataflow of a question, for the tasks of the Spark job."""

    query: Query
    wanted: Wanted

    def __call__(self, scope: Scope, edges: Stream[Any]) -> Stream[Any]:
        """Build it on one worker."""
        reporter = ProgressReporter(scope.index)
        return results(self.query, self.wanted, edges, reporter)


def answer(request: Request, display: Display) -> Outcome:
    """Answer a question by a Spark job."""
    # What Py4J has to say when it is interrupted says nothing to our users.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addHandler(logging.NullHandler())
    clock = _Clock()
    # A line that stays, since Java may print one of its own below it.
    display.print_line("starting Spark")
    with _session(request) as spark, display.working("reading"):
        clock.end("start")
        table, outcome = _beside(lambda: _found(spark, request, display, clock)).result()
        display.now("stopping Spark" if request.out is None else "writing")
        # Here and not beside: a file that is begun is removed when this is interrupted.
        _take(request, table, outcome)
        if request.out is not None:
            clock.end("write")
    clock.end("stop")
    outcome.seconds = clock.with_total()
    return outcome


def _beside(work: Callable[[], Result]) -> Future[Result]:
    """`work()` in a thread of its own, so that this one can be interrupted at any time.

    PySpark's calls cannot: one that is interrupted may go on to wait for the end of
    its job before it says so. Here the session is stopped instead, which ends both.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  (raised where it is waited for)
            future.set_exception(error)

    threading.Thread(target=run, name="pointstamp-spark", daemon=True).start()
    return future


def _found(spark: Any, request: Request, display: Display, clock: _Clock) -> tuple[Any, Outcome]:
    """Read and search: the result as an Arrow table, and what is known beside it."""
    from pointstamp.spark import run

    edges, facts = _edges(spark, request, display)
    clock.end("read")
    display.now("searching")
    with ProgressServer(request.workers, display.update) as server:
        build = Build(request.query, request.wanted)
        columns = result_columns(request.query, request.wanted)
        schema = ", ".join(f"`{name}` long" for name in columns)
        options = request.run.options()
        frame = run(build, {"edges": edges}, schema, workers=request.workers, **options)
        with _failing_in_words(frame):
            table = frame.toArrow()
        reports = server.last_reports()
    clock.end("search")
    return table, Outcome(facts=facts, reports=reports)


class _Clock:
    """How long each phase took."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._seconds: dict[str, float] = {}

    def end(self, phase: str) -> None:
        now = time.monotonic()
        self._seconds[phase] = now - self._last
        self._last = now

    def with_total(self) -> dict[str, float]:
        return {**self._seconds, "total": self._last - self._began}


@contextmanager
def _session(request: Request) -> Iterator[Any]:
    from pointstamp.spark import is_active, session

    if is_active():
        yield session(request.master, request.workers)
        return
    starting = _beside(lambda: session(request.master, request.workers))
    try:
        yield starting.result()
    finally:
        # When interrupted, too. A Java that is left while it starts does not notice that
        # we are gone, and stays for ever; one that has started does, so this wait may end.
        with suppress(Exception):
            starting.result(START_S).stop()


@contextmanager
def _failing_in_words(frame: Any = None) -> Iterator[None]:
    """Let a job of Spark fail of what its workers failed of, or else in words of Spark's."""
    from pointstamp.spark.failures import error_of

    try:
        yield
    except Exception as error:
        raise error_of(error, frame) from error


# Edges in.


def _edges(spark: Any, request: Request, display: Display) -> tuple[Any, Facts]:
    """The edges as a DataFrame, and the facts about them."""
    scanned = _scanned(spark, request)
    if scanned is not None:
        with _failing_in_words():
            return scanned, _counted(scanned)
    from pointstamp.formats.parquet import table_of

    reading = EdgeReading(request.source)
    table = table_of(display.reading(reading), COLUMNS)
    return spark.createDataFrame(table), reading.facts


def _scanned(spark: Any, request: Request) -> Any:
    """The DataFrame of Parquet files whose vertices are integers; None for other files."""
    source = request.source
    if not source.path.endswith(".parquet"):
        return None
    if _PATTERN.search(source.path):
        return None  # to Spark it names several files, and to us one
    try:
        frame = spark.read.parquet(source.path)
        kinds = [kind for _, kind in frame.dtypes]
    except Exception:  # noqa: BLE001  (whatever it is: read here, it is said in our words)
        return None
    names = frame.columns
    ends = [names.index(name) for name in COLUMNS] if set(COLUMNS) <= set(names) else [0, 1]
    if len(names) < 2 or not {kinds[end] for end in ends} <= _INTEGERS:
        return None  # names, or an error in words that we choose
    # By position: to Spark a name may be a path into a column, or two columns'.
    frame = frame.toDF(*(f"column{number}" for number in range(len(names))))
    return frame.selectExpr(
        *(f"cast(column{end} as long) {name}" for end, name in zip(ends, COLUMNS, strict=True))
    )


_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_PATTERN = re.compile(r"[*?\[\]{}\\]")


def _counted(frame: Any) -> Facts:
    """How many edges and vertices a DataFrame of edges has."""
    one_end = [frame.selectExpr(f"{name} as vertex") for name in COLUMNS]
    vertices = one_end[0].union(one_end[1]).distinct().count()
    return Facts(edges=frame.count(), vertices=vertices)


# Results out.


def _take(request: Request, table: Any, outcome: Outcome) -> None:
    """Complete `outcome` by what is in the result."""
    takers: dict[Wanted, Callable[[Request, Any, Outcome], None]] = {
        Wanted.COUNT: _take_counts,
        Wanted.FIRST: _take_top,
        Wanted.FILE: _take_matches,
    }
    takers[request.wanted](request, table, outcome)


def _take_counts(request: Request, table: Any, outcome: Outcome) -> None:
    outcome.matches = int(table.column(0).to_numpy().sum())


def _take_top(request: Request, table: Any, outcome: Outcome) -> None:
    top = merged_top(table.to_batches(), len(request.query.columns))
    outcome.matches, outcome.first = top.n_matches, top.rows.tolist()


def _take_matches(request: Request, table: Any, outcome: Outcome) -> None:
    from pointstamp.formats.parquet import write_parquet

    assert request.out is not None
    outcome.matches = table.num_rows
    columns, names = request.query.columns, outcome.facts.names
    write_parquet(request.out, table.to_batches(), columns, names)
