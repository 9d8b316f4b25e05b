"""Operators that send each record to one of several streams: partition and its kin.

They hold no capability and care for no frontier, so progress never visits them.

Source: timely-dataflow `dataflow/operators/core/{partition,ok_err}.rs` and
`vec/branch.rs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.containers.expressions import is_expression
from pointstamp.containers.routes import place, split_by_column
from pointstamp.dataflow.results import Err, Ok
from pointstamp.errors import BuildError, RouteError
from pointstamp.operators.split_merge import branch, divide
from pointstamp.operators.stateless import rows

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


def partition(
    stream: Stream[Any], n: int, route: Any, name: str = "Partition"
) -> list[Stream[Any]]:
    """See `Stream.partition`."""
    check_places(n, name)
    split = _split_rows if callable(route) and not is_expression(route) else split_by_column
    return divide(stream, name, n, lambda time, batch: split(batch, route, n, name))


def branch_when(
    stream: Stream[Any], predicate: Callable[[Any], Any], name: str = "BranchWhen"
) -> tuple[Stream[Any], Stream[Any]]:
    """See `Stream.branch_when`."""
    where_false, where_true = divide(
        stream, name, 2, lambda time, batch: whole(predicate(time), batch)
    )
    return where_false, where_true


def ok_err(
    stream: Stream[Any], function: Any, name: str = "OkErr"
) -> tuple[Stream[Any], Stream[Any]]:
    """See `Stream.ok_err`."""
    if is_expression(function) or isinstance(function, str):
        err, ok = branch(stream, function, name)
    else:
        ok, err = divide(stream, name, 2, lambda time, batch: _results(batch, function, name))
    return ok, err


def check_places(n: Any, name: str) -> None:
    """Raise unless `n` streams can be made."""
    if type(n) is not int or n < 1:
        raise BuildError(f"{name} makes one stream or more; {n!r} were asked for")


def whole(is_true: Any, batch: Any) -> tuple[Any, Any]:
    """A batch as the parts where it is false and where it is true."""
    return (None, batch) if is_true else (batch, None)


def judged(record: Any, function: Callable[[Any], Any], name: str) -> tuple[bool, Any]:
    """Whether the function gave an `Err` for a record, and the value of that or of the `Ok`."""
    match function(record):
        case Ok(value):
            return False, value
        case Err(value):
            return True, value
        case other:
            raise RouteError(
                f"{name}: the function gave {other!r} ({type(other).__name__}) for the record "
                f"{record!r}; give ps.Ok(value) or ps.Err(value)"
            )


def _split_rows(batch: Any, route: Callable[[Any], Any], n: int, name: str) -> list[list[Any]]:
    parts: list[list[Any]] = [[] for _ in range(n)]
    for record in rows(batch, name):
        number = route(record)
        if type(number) is not int or not 0 <= number < n:
            number = place(number, n, f"{name}: the record {record!r}")
        parts[number].append(record)
    return parts


def _results(batch: Any, function: Callable[[Any], Any], name: str) -> tuple[list[Any], list[Any]]:
    parts: tuple[list[Any], list[Any]] = ([], [])
    for record in rows(batch, name):
        is_err, value = judged(record, function, name)
        parts[is_err].append(value)
    return parts
