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
from pointstamp.containers.keys import check_rows_key
from pointstamp.containers.kind import Key
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.error_policy import Failed, OnError, check_on_error, detached
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import ContainerError
from pointstamp.operators.transform import PIPELINE, is_of_columns, kept, rows
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    pass


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
    stream: StreamCore[Any], name: str, attempt: Attempt, on_error: OnError, n_outputs: int = 1
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
    stream: StreamCore[Any], function: Callable[[Any], Any], on_error: OnError, name: str = "Map"
) -> Any:
    """See `Stream.map`."""

    def attempt(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        results: list[Any] = []
        each(rows(batch, name), lambda x: results.append(function(x)), failures)
        return (results,)

    return divert(stream, name, attempt, on_error)


def flat_map(
    stream: StreamCore[Any],
    function: Callable[[Any], Iterable[Any]],
    on_error: OnError,
    name: str = "FlatMap",
) -> Any:
    """See `Stream.flat_map`."""

    def attempt(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        results: list[Any] = []
        # A list first: what an iterator gave before it failed must not be among the results.
        each(rows(batch, name), lambda x: results.extend(list(function(x))), failures)
        return (results,)

    return divert(stream, name, attempt, on_error)


def filter_(
    stream: StreamCore[Any], predicate: Any, on_error: OnError, name: str = "Filter"
) -> Any:
    """See `Stream.filter`."""

    def keep(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        results: list[Any] = []
        each(rows(batch, name), lambda x: results.append(x) if predicate(x) else None, failures)
        return (results,)

    def keep_columns(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        return of_batch(batch, lambda: (kept(batch, predicate, name),), failures, predicate)

    attempt = keep_columns if is_of_columns(predicate) else keep
    return divert(stream, name, attempt, on_error)


def map_batches(
    stream: StreamCore[Any],
    function: Callable[[Any], Any],
    on_error: OnError,
    name: str = "MapBatches",
) -> Any:
    """See `Stream.map_batches`."""

    def attempt(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        try:
            return (function(batch),)
        except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
            failures.note(batch, error, kind_of(batch).length(batch))
            return ()

    return divert(stream, name, attempt, on_error)


def screen(
    stream: StreamCore[Any],
    name: str,
    check: Callable[[Any], object],
    on_error: OnError,
    *,
    chosen: Iterable[Any],
) -> Any:
    """Pass on that for which `check(batch)` does not fail.

    Of rows each record is checked by itself, as a batch of one, where all together fail.

    Parameters
    ----------
    chosen : iterable
        What is checked: columns are an error of the program where there are rows.
    """

    def attempt(time: Any, batch: Any, failures: Failures) -> Sequence[Any]:
        def whole() -> Sequence[Any]:
            check(batch)
            return (batch,)

        if type(batch) is not list:
            return of_batch(batch, whole, failures)
        for choice in chosen:
            check_rows_key(choice, batch[0])
        try:
            check(batch)
        except Exception:  # noqa: BLE001  (user code: which record it was is found out below)
            bad = each(batch, lambda record: check([record]), failures)
            return (_without(batch, bad),)
        return (batch,)

    return divert(stream, name, attempt, on_error)


def each(records: Iterable[Any], act: Callable[[Any], Any], failures: Failures) -> list[int]:
    """Call `act` with each of `records`; which of them it failed on."""
    bad = []
    for index, record in enumerate(records):
        try:
            act(record)
        except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
            failures.note(record, error)
            bad.append(index)
    return bad


def of_batch(
    batch: Any, attempt: Callable[[], Sequence[Any]], failures: Failures, chosen: Any = None
) -> Sequence[Any]:
    """What `attempt()` gives, where its code is about a whole batch; nothing if that fails.

    Parameters
    ----------
    chosen : optional
        The column or expression that it is about: with rows, or columns that no expression
        can be asked of, no batch of the stream will do, and that is raised.
    """
    if isinstance(chosen, str) and type(batch) is list:
        check_rows_key(chosen, batch[0])
    try:
        return attempt()
    except Exception as error:  # an expression is user code, too
        if chosen is not None and isinstance(error, ContainerError):
            raise
        failures.note(batch, error, kind_of(batch).length(batch))
        return ()


def _without(batch: Any, bad: Sequence[int]) -> Any:
    """`batch` without the records of these indices."""
    if not bad:
        return batch
    kind = kind_of(batch)
    starts, stops = [0, *(index + 1 for index in bad)], [*bad, kind.length(batch)]
    runs = zip(starts, stops, strict=True)
    left = [kind.slice(batch, start, stop) for start, stop in runs if start < stop]
    return kind.concat(left) if left else None


def screened(
    stream: StreamCore[Any],
    name: str,
    check: Callable[[Any], object],
    on_error: OnError,
    *,
    chosen: Iterable[Any],
) -> tuple[Any, ...]:
    """The records for which `check(batch)` does not fail, and if routed the failures.

    With "raise" it is the stream itself: the operator behind it will raise.
    """
    if on_error == "raise":
        return (stream,)
    made = screen(stream, name, check, on_error, chosen=chosen)
    return made if isinstance(made, tuple) else (made,)


def screened_keys(
    stream: StreamCore[Any], key: Key, on_error: OnError, name: str
) -> tuple[Any, ...]:
    """`screened`, for keys that fail or cannot be hashed."""
    return screened(
        stream, name, lambda batch: kind_of(batch).hashes(batch, key), on_error, chosen=[key]
    )
