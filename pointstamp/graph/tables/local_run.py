"""A dataflow over numbered edges on workers of this machine, and its answers as one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.containers.convert import to_arrow
from pointstamp.errors import ColumnError, PatternError, SchemaError, UsageError, WorkerError
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream
from pointstamp.runtime.execute import execute

_BATCH = 1 << 16

_ASKED_WRONGLY = (ColumnError, PatternError, SchemaError, UsageError)


@dataclass(frozen=True)
class LocalRun:
    """Where dataflows run: so many workers, as processes of their own or as threads."""

    workers: int
    threads: bool

    def answers_of(
        self,
        build: Callable[[Stream[Any], Stream[Any]], Stream[Any]],
        edges: dict[str, Any],
        n_vertices: int,
    ) -> Any:
        """What a dataflow answers, as a `pyarrow.Table`; None where there is not one record.

        edges : by name, `src` and `dst`, int64[m], and, if they have weights, `weight`, float64[m]
        """
        vertices = {VERTEX: np.arange(n_vertices)}

        def build_from(scope: Scope) -> Stream[Any]:
            share = slice(scope.index, None, scope.peers)
            return build(
                scope.batches_to_stream(_batches(edges)[share]),
                scope.batches_to_stream(_batches(vertices)[share]),
            )

        return self.rows_of(build_from)

    def rows_of(self, build: Callable[[Scope], Stream[Any]]) -> Any:
        """The same for a dataflow that brings its inputs."""

        def main(worker: Any) -> list[Any]:
            found: list[Any] = []
            with worker.dataflow("graph") as scope:
                build(scope).inspect_batch(lambda _, batch: found.append(batch))
            worker.run()
            return found

        try:
            parts = execute(main, workers=self.workers, threads=self.threads)
        except WorkerError as error:
            raise _said(error) from error
        batches = [batch for part in parts for batch in part]
        return pa.Table.from_batches(batches) if batches else None


def _said(error: WorkerError) -> BaseException:
    """What a search said is asked wrongly, in place of which worker it was at.

    `pattern` and conditions are tried where the graph is, so it is there that they are refused.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, _ASKED_WRONGLY):
            return cause
        cause = cause.__cause__
    return error


def _batches(columns: dict[str, Any]) -> list[Any]:
    n = len(next(iter(columns.values())))
    return [
        to_arrow({name: column[i : i + _BATCH] for name, column in columns.items()})
        for i in range(0, n, _BATCH)
    ]
