"""The dataflow of a Spark job, built once on the driver: what is wrong is said before any job.

A worker that has peers in number only builds it, on streams that know the columns of their
inputs, and is thrown away. Nothing is sent, so no function of an operator is called, and what is
not seen from the graph alone (a column that such a function asks for) is found by the workers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from pointstamp.communication.mailbox import ChannelEnd, Mailbox
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.keys import expression_hint
from pointstamp.errors import BuildError, ColumnError
from pointstamp.operators.building import built, name_of
from pointstamp.operators.stream import Stream
from pointstamp.runtime.worker import Worker


class PeersInNumber:
    """The communicator of a worker that only builds: all that it sends goes nowhere."""

    index = 0
    is_urgent = False

    def __init__(self, peers: int) -> None:
        self.peers = peers
        self._mailbox = Mailbox()

    def channel(self) -> ChannelEnd:
        """Make the next channel."""
        return self._mailbox.make(self.peers, lambda channel, peer, tag, batch: None)

    def receive(self) -> list[int]:
        """Nothing arrives."""
        return []

    def flush(self) -> None:
        """Nothing is under way."""

    def park(self, timeout_s: float | None = None) -> None:
        """There is nothing to wait for."""

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """Nothing is kept."""

    def unpark(self) -> None:
        """Nothing waits."""

    def objects_under_way(self) -> list[tuple[int, Any]]:
        """Nothing is sent."""
        return []

    def close(self) -> None:
        """There are no peers."""

    def abort(self, cause: BaseException | None = None) -> None:
        """There are no peers."""


class InputStream(Stream[Any]):
    """A stream with the records of an input as they are, and so with its columns."""

    def __init__(self, stream: Stream[Any], name: str, schema: pa.Schema) -> None:
        super().__init__(stream.scope, stream.source, stream.tee)
        self.input = name
        self.schema = schema

    def exchange(self, key: Any = None, *, to: Any = None, name: str = "Exchange") -> Stream[Any]:
        """As `Stream.exchange`, of columns that are there."""
        self._check(key, name)
        self._check(to, name)
        return self._same(super().exchange(key, to=to, name=name))

    def filter(self, predicate: Any, **options: Any) -> Any:
        """As `Stream.filter`, of columns that are there."""
        self._check(predicate, options.get("name", "Filter"))
        made = super().filter(predicate, **options)
        return self._same(made) if isinstance(made, Stream) else made

    def _same(self, stream: Stream[Any]) -> InputStream:
        return InputStream(stream, self.input, self.schema)

    def _check(self, given: Any, operator: str) -> None:
        """Refuse a column or an expression that these columns do not have."""
        if isinstance(given, str):
            given = [given]
        if isinstance(given, Sequence):
            missing = [str(each) for each in given if each not in self.schema.names]
        elif is_expression(given):
            missing = _missing_fields(given, self.schema)
        else:
            return
        if missing:
            raise ColumnError(
                f"operator {operator!r} reads {', '.join(missing)} of input {self.input!r}, whose "
                f"columns are {', '.join(self.schema.names)}{expression_hint(missing)}"
            )


def _missing_fields(expression: Any, schema: pa.Schema) -> list[str]:
    """What Arrow says that an expression asks for in vain; empty if it asks for what is there."""
    try:
        schema.empty_table().filter(expression == expression)
    except pa.ArrowInvalid as error:
        said = str(error)
        if "No match for FieldRef" in said:
            return [said.partition("FieldRef.Name(")[2].partition(")")[0] or said]
    except (pa.ArrowException, TypeError):
        pass  # wrong for another reason, or not by Arrow: the operator says it
    return []


def dry_build(
    build: Callable[..., Any], inputs: Mapping[str, pa.Schema], workers: int, *, by_name: bool
) -> Stream[Any]:
    """The stream of results of a dataflow that never runs, as worker 0 of so many builds it.

    Parameters
    ----------
    build : callable
        As for `pointstamp.spark.run`.
    inputs : dict of str to pyarrow.Schema
    workers : int
    by_name : bool
        What `takes_names` said.

    Returns
    -------
    Stream
        An `InputStream` where the results are the records of an input as they are.

    Raises
    ------
    BuildError
        If `build` returns something else than a stream; with where it is written.
    ColumnError
        If an operator on an input reads a column that is not there.

    What `build` raises itself is raised as it is.

    Examples
    --------
    >>> edges = {"edges": pa.schema([("src", pa.int64()), ("dst", pa.int64())])}
    >>> dry_build(lambda scope, edges: edges.exchange("src"), edges, 2, by_name=True).schema.names
    ['src', 'dst']
    >>> dry_build(lambda scope, edges: edges.exchange("source"), edges, 2, by_name=True)
    Traceback (most recent call last):
    ...
    pointstamp.errors.ColumnError: operator 'Exchange' reads source of input 'edges', whose \
columns are src, dst
    """
    with closing(Worker(PeersInNumber(workers))) as worker, worker.dataflow("spark") as scope:
        streams = [
            InputStream(scope.new_input(name)[1], name, schema) for name, schema in inputs.items()
        ]
        stream = built(build, scope, list(inputs), streams, by_name)
        check_result(build, stream)
        stream.probe()
    found: Stream[Any] = stream
    return found


def check_result(build: Callable[..., Any], result: Any) -> None:
    """Refuse what `build` returned unless it is the stream of its results."""
    if not isinstance(result, Stream):
        hint = "; is a return missing?" if result is None else ""
        raise BuildError(
            f"{name_of(build)}{_place(build)} should return the stream of its results, and "
            f"returned {result!r}{hint}"
        )


def _place(build: Callable[..., Any]) -> str:
    """Where a function is written, in words that follow its name; empty if that is not known."""
    code = getattr(inspect.unwrap(build), "__code__", None)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
