"""Validation: code about a record alone, tried before the operator that calls it.

A key, or an event time, is computed where a record is sent or taken in, and cannot fail
there without stopping all. Where failures are routed or dropped, an operator before that
one tries the code, and lets pass only that on which it does not fail: so it is called twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pointstamp.containers import kind_of
from pointstamp.containers.kind import Key
from pointstamp.containers.registry import batches_of, n_records
from pointstamp.dataflow.error_policy import ErrorPolicy, OnError
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, ContainerError
from pointstamp.operators.transform import try_transform


def validated(
    stream: StreamCore[Any],
    name: str,
    check: Callable[[Any], object],
    on_error: OnError,
    *,
    chosen: Iterable[Any],
) -> tuple[Any, ...]:
    """The records for which `check(batch)` does not fail, and if routed the failures.

    With "raise" it is the stream itself. Of rows each record is checked by itself, as a
    batch of one, where all together fail.

    Parameters
    ----------
    chosen : iterable
        What is checked: columns are an error of the program where there are rows.
    """
    given: Any = stream  # of any type, until it is looked at
    if not isinstance(given, StreamCore):
        if batches_of(given) is not None:
            what = f"a {type(given).__name__} is none: scope.to_stream(it) makes one of it"
        else:
            what = f"{given!r:.200} is none"
        raise BuildError(f"operator {name!r} reads streams, and {what}")
    policy = ErrorPolicy(stream.scope.environment, name, on_error)
    if policy.raises:
        return (stream,)

    def validate(time: Any, batch: Any) -> Any:
        kind = kind_of(batch)
        for choice in chosen:
            kind.check_chosen(batch, choice)
        return kind.passing(batch, check, policy.note)

    made = try_transform(stream, name, validate, policy)
    return made if isinstance(made, tuple) else (made,)


def validated_keys(
    stream: StreamCore[Any], key: Key, on_error: OnError, name: str
) -> tuple[Any, ...]:
    """`validated`, for keys that fail or cannot be hashed."""
    return validated(
        stream, name, lambda batch: kind_of(batch).hashes(batch, key), on_error, chosen=[key]
    )


def guarded_columns(
    policy: ErrorPolicy, function: Callable[[Any], Any], chosen: Any
) -> Callable[[Any], Any]:
    """`function` of a batch of columns, guarded, which asks it for `chosen`.

    That is a column's name or an expression: with rows, or columns that no expression can
    be asked of, no batch of the stream will do, and that is raised.
    """
    attempt = policy.guard(function, n_records=n_records, unless=ContainerError)

    def check_and_attempt(batch: Any) -> Any:
        if isinstance(chosen, str):
            kind_of(batch).check_chosen(batch, chosen)
        return attempt(batch)

    return function if policy.raises else check_and_attempt
