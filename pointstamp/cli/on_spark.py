"""A question answered by Pointstamp's workers inside a Spark job.

The edges become a DataFrame: Spark scans Parquet files of integers itself; what
else can be read is read here, on the driver, and handed over as Arrow. The result
comes back to the driver as Arrow, and with `--out` all matches do, so they have
to fit into its memory and into `spark.driver.maxResultSize`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pointstamp.cli.display import Display
from pointstamp.cli.request import Request
from pointstamp.errors import PointstampError
from pointstamp.formats.edge_files import read_edges
from pointstamp.formats.parquet import table_of
from pointstamp.formats.vertex_set import VertexSet
from pointstamp.spark import is_active, run, session
from pointstamp.spark.actions import whole
from pointstamp.spark.failures import error_of
from pointstamp.spark.scanned_edges import count_edges, scanned_edges

if TYPE_CHECKING:
    from pointstamp.cli.answer import Outcome

START_S = 60.0
"""How long Java, at the most, takes to start and to give PySpark its port."""


def search(display: Display, outcome: Outcome) -> None:
    """Answer a question by a Spark job."""
    # What Py4J has to say when it is interrupted says nothing to our users.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addHandler(logging.NullHandler())
    # A line that stays, since Java may print one of its own below it.
    display.print_line("starting Spark")
    with _session(outcome.request) as spark, display.working("reading"):
        outcome.end("start")
        table = _beside(lambda: _found(spark, display, outcome)).result()
        display.now("stopping Spark" if outcome.request.out is None else "writing")
        # Here and not beside: a file that is begun is removed when this is interrupted.
        outcome.take(table.to_batches())
    outcome.end("stop")


def _beside(work: Callable[[], Any]) -> Future[Any]:
    """`work()` in a thread of its own, so that this one can be interrupted at any time.

    PySpark's calls cannot: one that is interrupted may go on to wait for the end of
    its job before it says so. Here the session is stopped instead, which ends both.
    """
    pool = ThreadPoolExecutor(1, "pointstamp-spark")
    try:
        return pool.submit(work)
    finally:
        pool.shutdown(wait=False)


def _found(spark: Any, display: Display, outcome: Outcome) -> Any:
    """Read and search: the result as an Arrow table; what is known beside it is of `outcome`."""
    request = outcome.request
    edges = _edges(spark, display, outcome)
    outcome.end("read")
    display.now("searching")
    schema = ", ".join(f"`{name}` long" for name in outcome.search.result_columns)
    frame = run(outcome.search, {"edges": edges}, schema, check=False, **request.options())
    frame = whole(frame)
    with _failing_in_words(frame):
        table = frame.toArrow()
    outcome.reports = display.last_reports()
    outcome.end("search")
    return table


def _edges(spark: Any, display: Display, outcome: Outcome) -> Any:
    """The edges as a DataFrame."""
    scanned = scanned_edges(spark, outcome.request.edges)
    if scanned is not None:
        with _failing_in_words():
            outcome.n_edges, outcome.n_vertices = count_edges(scanned)
        return scanned
    display.source = edges = read_edges(outcome.request.edges)
    vertices = VertexSet()
    table = table_of(vertices.adding(edges.batches()), edges.columns)
    outcome.n_edges, outcome.n_vertices = edges.n_edges, vertices.count()
    outcome.names, outcome.notes = edges.names, edges.notes
    return spark.createDataFrame(table)


@contextmanager
def _session(request: Request) -> Iterator[Any]:
    is_ours = not is_active()
    starting = _beside(lambda: session(request.master, request.workers))
    try:
        yield starting.result()
    finally:
        # When interrupted, too. A Java that is left while it starts does not notice that
        # we are gone, and stays for ever; one that has started does, so this wait may end.
        if is_ours:
            with suppress(Exception):
                starting.result(START_S).stop()


@contextmanager
def _failing_in_words(frame: Any = None) -> Iterator[None]:
    """Let a job of Spark fail of what its workers failed of, or else in words of Spark's."""
    try:
        yield
    except PointstampError:
        raise  # an action of the frame has found what its workers failed of
    except Exception as error:
        raise error_of(error, frame) from error
