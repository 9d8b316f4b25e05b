"""Operators that send each record to one of several streams: partition and its kin.

They hold no capability and care for no frontier, so progress never visits them.

Source: timely-dataflow `dataflow/operators/core/{partition,ok_err}.rs` and
`vec/branch.rs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.containers.expressions import is_expression
from pointstamp.containers.splitting import place, split_by_column
from pointstamp.dataflow.results import Err, Ok
from pointstamp.dataflow.several_streams import several
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError, RouteError
from pointstamp.operators.split_merge import divide, divide_whole, divider
from pointstamp.operators.transform import rows
from pointstamp.operators.user_code import check_function

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


def check_places(n: Any, name: str) -> None:
    """Raise unless `n` streams can be made."""
    if type(n) is not int or n < 1:
        raise BuildError(f"{name} makes one stream or more; {n!r} were asked for")


def split_result(record: Any, function: Callable[[Any], Any], name: str) -> tuple[bool, Any]:
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
        is_err, value = split_result(record, function, name)
        parts[is_err].append(value)
    return parts


class RoutingMethods(StreamCore[T]):
    """Operators that split a stream in several ways. Methods of `Stream`."""

    def partition(self, n: int, route: Any, *, name: str = "Partition") -> list[Stream[T]]:
        """Split into `n` streams; `route` returns the number of the stream for each record.

        Parameters
        ----------
        n : int
            How many.
        route : callable, str or pyarrow.compute.Expression
            On rows a function of the record that gives an index, from 0 on; on columns
            the name of a column of indices, or an expression (of record batches).

        Raises
        ------
        RouteError
            While it runs, for an index that is not below `n`.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     even, odd = scope.to_stream(range(4)).partition(2, lambda x: x % 2)
        ...     return odd
        >>> ps.testing.collect(build)
        [(0, 1), (0, 3)]
        """
        check_function(route, name, or_columns=True)
        check_places(n, name)
        split = _split_rows if callable(route) and not is_expression(route) else split_by_column
        return divide(self, name, n, lambda time, batch: split(batch, route, n, name))

    def branch_when(
        self, predicate: Callable[[Any], Any], *, name: str = "BranchWhen"
    ) -> tuple[Stream[T], Stream[T]]:
        """Split into two streams by time: `predicate(time)` is false, and true.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     letters = scope.to_stream("ab").delay(lambda letter, time: time + ord(letter))
        ...     before, after = letters.branch_when(lambda time: time > ord("a"))
        ...     return after
        >>> ps.testing.collect(build)
        [(98, 'b')]
        """
        check_function(predicate, name)
        where_false, where_true = divide_whole(self, name, predicate)
        return several((where_false, where_true), ["where_false", "where_true"], main=1)

    def ok_err(self, function: Any, *, name: str = "OkErr") -> tuple[Stream[Any], Stream[Any]]:
        """Apply `function`, and split its results into `Ok` values and `Err` values.

        Parameters
        ----------
        function : callable, str or pyarrow.compute.Expression
            On rows a function of the record that gives `ps.Ok(value)` or
            `ps.Err(value)`; on columns the name of a column of booleans, or an
            expression, which is true for the records of the first stream. The others,
            null among them, are the second.

        Raises
        ------
        RouteError
            While it runs, if the function gives anything else.

        >>> import pointstamp as ps
        >>> def read(text):
        ...     return ps.Ok(int(text)) if text.isdigit() else ps.Err(text)
        >>> def build(scope):
        ...     numbers, others = scope.to_stream(["1", "x"]).ok_err(read)
        ...     return numbers.map(lambda n: n + 1).concat(others.map(len))
        >>> ps.testing.collect(build)
        [(0, 1), (0, 2)]
        """
        check_function(function, name, or_columns=True)
        if is_expression(function) or isinstance(function, str):
            parts = divider(function)
            err, ok = divide(self, name, 2, lambda time, batch: parts(batch, function, name))
        else:
            ok, err = divide(self, name, 2, lambda time, batch: _results(batch, function, name))
        return several((ok, err), ["ok", "err"])
