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
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from pointstamp.cli.display import Display
from pointstamp.cli.edge_reading import COLUMNS, EdgeReading, Facts
from pointstamp.cli.outcome import Outcome
from pointstamp.cli.request import Request
from pointstamp.cli.search import Search

Result = TypeVar("Result")

START_S = 20.0
"""How long Java, at the most, takes to start and to give PySpark its port."""


def answer(request: Request, display: Display) -> Outcome:
    """Answer a question by a Spark job."""
    # What Py4J has to say when it is interrupted says nothing to our users.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addHandler(logging.NullHandler())
    outcome = Outcome()
    # A line that stays, since Java may print one of its own below it.
    display.print_line("starting Spark")
    with _session(request) as spark, display.working("reading"):
        outcome.end("start")
        table = _beside(lambda: _found(spark, request, display, outcome)).result()
        display.now("stopping Spark" if request.out is None else "writing")
        # Here and not beside: a file that is begun is removed when this is interrupted.
        outcome.take(request, table.to_batches())
        if request.out is not None:
            outcome.end("write")
    outcome.end("stop")
    outcome.end_all()
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


def _found(spark: Any, request: Request, display: Display, outcome: Outcome) -> Any:
    """Read and search: the result as an Arrow table; what is known beside it is of `outcome`."""
    from pointstamp.spark import run

    edges, outcome.facts = _edges(spark, request, display)
    outcome.end("read")
    display.now("searching")
    search = Search(request.query, request.wanted)
    schema = ", ".join(f"`{name}` long" for name in search.columns)
    frame = run(search, {"edges": edges}, schema, **request.options())
    with _failing_in_words(frame):
        table = frame.toArrow()
    outcome.reports = display.server.last_reports()
    outcome.end("search")
    return table


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
    scanned = _scanned(spark, request.edges)
    if scanned is not None:
        with _failing_in_words():
            return scanned, _counted(scanned)
    from pointstamp.formats.parquet import table_of

    reading = EdgeReading(request.edges)
    table = table_of(display.reading(reading), COLUMNS)
    return spark.createDataFrame(table), reading.facts


def _scanned(spark: Any, path: str) -> Any:
    """The DataFrame of Parquet files whose vertices are integers; None for other files."""
    if not path.endswith(".parquet") or _PATTERN.search(path):
        return None  # to Spark a pattern names several files, and to us one
    try:
        frame = spark.read.parquet(path)
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
