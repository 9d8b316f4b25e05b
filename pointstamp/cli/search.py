"""The dataflow of a question: the same on this machine and on Spark."""

from __future__ import annotations

from typing import Any

from pointstamp.cli.outcome import Wanted
from pointstamp.cli.progress_reporter import ProgressReporter
from pointstamp.cli.queries import Query
from pointstamp.cli.top_matches import top_columns, top_matches
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.formats.vertices import check_vertices
from pointstamp.operators.stream import Stream


def results(
    query: Query, wanted: Wanted, edges: Stream[Any], reporter: ProgressReporter
) -> Stream[Any]:
    """What is wanted of the matches, as record batches; `reporter` counts the work.

    With `Wanted.COUNT`, batches with the column `count`, to be added up; with
    `Wanted.FIRST`, the least matches of each worker; with `Wanted.FILE`, the matches.
    """
    edges.scope.environment.observers.append(reporter.note)
    edges = edges.inspect_batch(lambda _, batch: _taken(batch, reporter))
    if wanted is Wanted.COUNT:
        counts = query.count(edges).inspect_batch(
            lambda _, batch: reporter.note("found", int(batch.column(0).to_numpy().sum()))
        )
        return _with_end(counts, reporter)
    found = query.find(edges).inspect_batch(lambda _, batch: reporter.note("found", batch.num_rows))
    if wanted is Wanted.FIRST:
        found = top_matches(found, len(query.columns))
    return _with_end(found, reporter)


def _taken(batch: Any, reporter: ProgressReporter) -> None:
    check_vertices(batch, "the graph")  # what Spark scanned by itself is not checked yet
    reporter.note("edges", batch.num_rows)


def result_columns(query: Query, wanted: Wanted) -> list[str]:
    """The names of the columns of `results`, all of them int64."""
    if wanted is Wanted.COUNT:
        return ["count"]
    if wanted is Wanted.FIRST:
        return top_columns(len(query.columns))
    return list(query.columns)


def _with_end(stream: Stream[Any], reporter: ProgressReporter) -> Stream[Any]:
    """The same stream; when it is complete, the reporter sends its last report."""

    def build(capability: Capability, info: OperatorInfo) -> Any:
        capability.drop()

        def logic(input: Input, output: Output) -> None:
            for time, batch in input:
                output.session(time).give_batch(batch)
            if not reporter.report.done and input.frontier.is_empty():
                reporter.finish()

        return logic

    return stream.unary_frontier(Pipeline(), "Report", build)
