"""Errors as data, for operators that keep records or a state: delays, folds, windows, joins.

Such an operator stays what it is, between two others that are made here:

- *before it*, code that is about a record alone (its key, its event time, its new time) is
  tried, and what it fails on goes aside; so it does not fail in the operator. It is called
  once more there, except for a delay, which is told the new times.
- *around the user's fold* stands one that catches. What the operator sends then is
  `_Outcome`s, which are taken apart *behind it*, into results and failures.

The rules are those of `errors_as_data`. A fold that fails leaves the state as it was before
that record, unless it had changed it in place. Failures of a fold leave when the plain
operator would have sent something; all leave at the time of their record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.containers import kind_of
from pointstamp.containers.kind import Key
from pointstamp.dataflow.error_policy import Failed, OnError, check_on_error
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.operators import grouping
from pointstamp.operators.errors_as_data import (
    Failures,
    map_batches,
    screened_keys,
)
from pointstamp.operators.split_merge import concatenate
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    pass


class _Outcome(NamedTuple):
    """What came of a fold: a container of results, or None, and what it failed on."""

    results: Any
    failed: list[Failed[Any]]


class _SoFar:
    """What was folded so far, and what was left out of it."""

    __slots__ = ("failed", "is_any", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.is_any = False
        """Whether anything was folded: of failures alone there is no result."""
        self.failed: list[Failed[Any]] = []

    @property
    def results(self) -> list[Any]:
        """As an outcome has them."""
        return [self.value] if self.is_any else []


# What the records of a time, or of a key, come to.


def accumulate(
    stream: StreamCore[Any],
    default: Any,
    logic: Callable[[Any, Any], Any],
    on_error: OnError,
    name: str = "Accumulate",
) -> Any:
    """See `Stream.accumulate`."""
    note = _Note(stream, name, on_error)

    def tried(so_far: _SoFar, batch: Any) -> _SoFar:
        return note.fold(so_far, lambda value: logic(value, batch), batch, _n_records(batch))

    return _taken_apart(grouping.accumulate(stream, _SoFar(default), tried, name), on_error, name)


def aggregate(
    stream: StreamCore[Any],
    fold: Any,
    emit: Callable[..., Any] | None,
    key: Key,
    default: Any,
    on_error: OnError,
    name: str = "Aggregate",
) -> Any:
    """See `Stream.aggregate`."""
    note = _Note(stream, name, on_error)
    of_columns = grouping.is_of_columns(key)
    keyed, *unkeyed = screened_keys(
        stream, _first_of_pair if key is None else key, on_error, f"{name}Key"
    )
    if not callable(fold):
        # Arrow's aggregates fail for all records together, so there is nobody to blame.
        answers = grouping.aggregate(keyed, fold, None, key, None, name)
        made = map_batches(answers, emit or _same, on_error, name)
        results, *failed = made if isinstance(made, tuple) else (made,)
        return _with(results, *failed, *unkeyed)
    whole_emit = emit or grouping.pair

    def tried(of: Any, value: Any, so_far: _SoFar) -> _SoFar:
        record = (of, value) if key is None else value
        n_records = _n_records(value) if of_columns else 1
        return note.fold(so_far, lambda value_: fold(of, value, value_), record, n_records)

    def tried_emit(of: Any, so_far: _SoFar) -> _Outcome:
        results: list[Any] = []
        if so_far.is_any:
            try:
                results.append(whole_emit(of, so_far.value))
            except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
                so_far.failed += note.of((of, so_far.value), error)
        return _Outcome(results, so_far.failed)

    outcomes = grouping.aggregate(keyed, tried, tried_emit, key, _SoFar(default), name)
    return _taken_apart(outcomes, on_error, name, *unkeyed)


def state_machine(
    stream: StreamCore[Any],
    fold: grouping.Fold,
    key: Key,
    default: Any,
    on_error: OnError,
    name: str = "StateMachine",
) -> Any:
    """See `Stream.state_machine`."""
    note = _Note(stream, name, on_error)
    of_columns = grouping.is_of_columns(key)
    keyed, *unkeyed = screened_keys(
        stream, _first_of_pair if key is None else key, on_error, f"{name}Key"
    )

    def tried(of: Any, value: Any, state: Any) -> tuple[Any, list[_Outcome]]:
        try:
            new_state, answers = fold(of, value, state)
            if not of_columns:
                answers = [] if answers is None else list(answers)
        except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
            record = (of, value) if key is None else value
            n_records = _n_records(value) if of_columns else 1
            return state, [_Outcome(None, note.of(record, error, n_records))]
        return new_state, [_Outcome(answers, [])]

    outcomes = grouping.state_machine(keyed, tried, key, default, name)
    return _taken_apart(outcomes, on_error, name, *unkeyed)


class _Note:
    """Notes what a fold fails on, for the stream that it leaves with."""

    __slots__ = ("_failures",)

    def __init__(self, stream: StreamCore[Any], name: str, on_error: OnError) -> None:
        check_on_error(on_error, name)
        self._failures = Failures(name, stream.scope.environment, on_error)

    def of(self, record: Any, error: Exception, n_records: int = 1) -> list[Failed[Any]]:
        """What is to be sent for it: nothing if it is counted only."""
        self._failures.note(record, error, n_records)
        return self._failures.take()

    def fold(
        self, so_far: _SoFar, fold: Callable[[Any], Any], record: Any, n_records: int
    ) -> _SoFar:
        """`so_far` with what `fold` makes of its value, or with the failure."""
        try:
            so_far.value = fold(so_far.value)
            so_far.is_any = True
        except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
            so_far.failed += self.of(record, error, n_records)
        return so_far


def _first_of_pair(record: Any) -> Any:
    of, _ = record
    return of


# Taking outcomes apart, and putting streams together.


def _taken_apart(
    outcomes: StreamCore[Any], on_error: OnError, name: str, *unkeyed: StreamCore[Any]
) -> Any:
    """The results of a stream of outcomes, and, if routed, what failed."""
    builder = OperatorBuilder(outcomes.scope, f"{name}Outcomes")
    builder.new_input(outcomes, PIPELINE, Interest.NEVER)
    results = builder.new_output(initial=False)
    failed = builder.new_output(initial=False) if on_error == "route" else None
    builder.build(lambda capabilities, info: _take_apart)
    return _with(results, failed, *unkeyed)


def _take_apart(inputs: list[Input], outputs: list[Output]) -> None:
    while (item := inputs[0].pull()) is not None:
        time, outcomes = item
        failed: list[Failed[Any]] = []
        for outcome in outcomes:
            if outcome.results is not None:
                outputs[0].at(time).give_batch(outcome.results)
            failed += outcome.failed
        if failed:
            outputs[1].push(time, failed)


def _with(results: Any, *failed: StreamCore[Any] | None) -> Any:
    """The results, and all failures as one stream if they are routed."""
    routed = [stream for stream in failed if stream is not None]
    if not routed:
        return results
    return results, routed[0] if len(routed) == 1 else concatenate(routed)


def _n_records(batch: Any) -> int:
    return kind_of(batch).length(batch)


def _same(batch: Any) -> Any:
    return batch
