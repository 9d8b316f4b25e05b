"""Errors as data: map, filter, branch and their kin, where failing is no end.

With `on_error="route"` what the user's code fails on leaves the stream, and goes with
its error, at its own time, to a second one; with `"drop"` it is counted and gone.
`"raise"` is the business of the plain operators, which know nothing of this.

Rules
-----
1. A record gives all of its results or none of them.
2. Only an `Exception` of the user's code counts. `KeyboardInterrupt` and `SystemExit`
   stop the worker, and so does what no record can be blamed for: columns where the
   operator takes rows, or a result that is no batch.
3. Code that is called with a whole batch fails for the batch; an expression is such code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.containers.expressions import filter_batch, is_expression
from pointstamp.containers.keys import check_rows_key
from pointstamp.containers.kind import Key, Kind
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.failed import Failed, OnError, check_on_error, detached
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder
from pointstamp.dataflow.operators.stateless import PIPELINE, pass_on, rows
from pointstamp.dataflow.pact import Exchange
from pointstamp.errors import ContainerError
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.dataflow.stream import Stream


class Failures:
    """What an operator's code failed on: counted if dropped, else kept to be sent."""

    __slots__ = ("_environment", "_failed", "_operator", "_routes")

    def __init__(self, operator: str, environment: Environment, on_error: OnError) -> None:
        self._operator = operator
        self._environment = environment
        self._routes = on_error == "route"
        self._failed: list[Failed[Any]] = []

    def note(self, record: Any, error: Exception, n_records: int = 1) -> None:
        """The code raised `error` for `record` (a batch: of so many records)."""
        if self._routes:
            self._failed.append(Failed(record, self._operator, detached(error)))
        else:
            self._environment.drop(self._operator, n_records)

    def take(self) -> list[Failed[Any]]:
        """What is to be sent."""
        failed, self._failed = self._failed, []
        return failed


Attempt = Callable[[Any, Any, Failures], Sequence[Any]]
"""`attempt(time, batch, failures)` gives a batch, or None, for each output."""


def divert(
    stream: Stream[Any], name: str, attempt: Attempt, on_error: OnError, n_outputs: int = 1
) -> Any:
    """The streams of what `attempt` gives, and for "route" one more of what failed."""
    check_on_error(on_error, name)
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, PIPELINE, Interest.NEVER)
    n_streams = n_outputs + (on_error == "route")
    streams = [builder.new_output(initial=False) for _ in range(n_streams)]
    failures = Failures(name, stream.scope.environment, on_error)

    builder.build(lambda capabilities, info: _Divert(attempt, failures).run)
    return streams[0] if len(streams) == 1 else tuple(streams)


class _Divert:
    """The logic: sends what an attempt gives, and then what it failed on."""

    __slots__ = ("_attempt", "_failures")

    def __init__(self, attempt: Attempt, failures: Failures) -> None:
        self._attempt = attempt
        self._failures = failures

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        while (item := inputs[0].pull()) is not None:
            time, batch = item
            parts = self._attempt(time, batch, self._failures)
            # Of several outputs the last may be that of the failures.
            for output, part in zip(outputs, parts, strict=False):
                if part is not None:
                    output.push(time, part)
            if failed := self._failures.take():
                outputs[-1].push(time, failed)


def map_(
    stream: Stream[Any], function: Callable[[Any], Any], on_error: OnError, name: str = "Map"
) -> Any:
    """See `Stream.map`."""

    def attempt(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        results: list[Any] = []
        _each(rows(batch, name), lambda x: results.append(function(x)), failures)
        return (results,)

    return divert(stream, name, attempt, on_error)


def flat_map(
    stream: Stream[Any],
    function: Callable[[Any], Iterable[Any]],
    on_error: OnError,
    name: str = "FlatMap",
) -> Any:
    """See `Stream.flat_map`."""

    def attempt(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        results: list[Any] = []
        # A list first: what an iterator gave before it failed must not be among the results.
        _each(rows(batch, name), lambda x: results.extend(list(function(x))), failures)
        return (results,)

    return divert(stream, name, attempt, on_error)


def filter_(stream: Stream[Any], predicate: Any, on_error: OnError, name: str = "Filter") -> Any:
    """See `Stream.filter`."""

    def keep(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        results: list[Any] = []
        _each(rows(batch, name), lambda x: results.append(x) if predicate(x) else None, failures)
        return (results,)

    def keep_columns(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        return (_filtered(batch, predicate, failures),)

    attempt = keep_columns if is_expression(predicate) else keep
    return divert(stream, name, attempt, on_error)


def branch(stream: Stream[Any], predicate: Any, on_error: OnError, name: str = "Branch") -> Any:
    """See `Stream.branch`."""

    def divide(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        parts: tuple[list[Any], list[Any]] = ([], [])
        _each(rows(batch, name), lambda x: parts[bool(predicate(x))].append(x), failures)
        return parts

    def divide_columns(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        true = _filtered(batch, predicate, failures)
        return () if true is None else (filter_batch(batch, predicate, keep=False), true)

    attempt = divide_columns if is_expression(predicate) else divide
    return divert(stream, name, attempt, on_error, 2)


def map_batches(
    stream: Stream[Any], function: Callable[[Any], Any], on_error: OnError, name: str = "MapBatches"
) -> Any:
    """See `Stream.map_batches`."""

    def attempt(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        try:
            return (function(batch),)
        except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
            failures.note(batch, error, kind_of(batch).length(batch))
            return ()

    return divert(stream, name, attempt, on_error)


def inspect(
    stream: Stream[Any], function: Callable[[Any], Any], on_error: OnError, name: str = "Inspect"
) -> Any:
    """See `Stream.inspect`."""

    def look(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        bad = _each(kind_of(batch).records(batch), function, failures)
        return (_without(batch, bad),)

    return divert(stream, name, look, on_error)


def inspect_batch(
    stream: Stream[Any],
    function: Callable[[Any, Any], Any],
    on_error: OnError,
    name: str = "InspectBatch",
) -> Any:
    """See `Stream.inspect_batch`."""

    def look(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        try:
            function(time, batch)
        except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
            failures.note(batch, error, kind_of(batch).length(batch))
            return ()
        return (batch,)

    return divert(stream, name, look, on_error)


def exchange(stream: Stream[Any], key: Key, on_error: OnError, name: str = "Exchange") -> Any:
    """See `Stream.exchange`. The keys are tried before, so they are computed twice."""

    def attempt(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        kind = kind_of(batch)
        is_rows = type(batch) is list
        if is_rows:
            check_rows_key(key, batch[0])
        batch_error = _error_of(kind, batch, key)
        if batch_error is None:
            return (batch,)
        if is_rows:
            bad = _each(batch, lambda record: kind.hashes([record], key), failures)
            return (_without(batch, bad),)
        failures.note(batch, batch_error, kind.length(batch))
        return ()

    tried = divert(stream, f"{name}Key", attempt, on_error)
    if on_error == "route":
        good, failed = tried
        return pass_on(good, name, Exchange(key)), failed
    return pass_on(tried, name, Exchange(key))


def _error_of(kind: Kind[Any], batch: Any, key: Key) -> Exception | None:
    try:
        kind.hashes(batch, key)
    except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
        return error
    return None


def _each(records: Iterable[Any], act: Callable[[Any], Any], failures: Failures) -> list[int]:
    """Call `act` with each of `records`; which of them it failed on."""
    bad = []
    for index, record in enumerate(records):
        try:
            act(record)
        except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
            failures.note(record, error)
            bad.append(index)
    return bad


def _without(batch: Any, bad: Sequence[int]) -> Any:
    """`batch` without the records of these indices."""
    if not bad:
        return batch
    kind = kind_of(batch)
    starts, stops = [0, *(index + 1 for index in bad)], [*bad, kind.length(batch)]
    runs = zip(starts, stops, strict=True)
    kept = [kind.slice(batch, start, stop) for start, stop in runs if start < stop]
    return kind.concat(kept) if kept else None


def _filtered(batch: Any, expression: Any, failures: Failures) -> Any:
    try:
        return filter_batch(batch, expression)
    except ContainerError:
        raise  # the stream carries no columns: no batch of it will do
    except Exception as error:  # noqa: BLE001  (an expression is user code, too)
        failures.note(batch, error, kind_of(batch).length(batch))
        return None
