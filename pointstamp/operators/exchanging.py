"""Operators that move records to other workers, and change nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.pact import Broadcast, Distribute, Exchange
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.operators.transform import pass_on
from pointstamp.operators.user_code import check_function, check_takes, refuse_deferred

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class ExchangeMethods(StreamCore[T]):
    """Operators that move records between workers. Methods of `Stream`."""

    def exchange(self, key: Any = None, *, to: Any = None, name: str = "Exchange") -> Stream[T]:
        """Repartition (shuffle) records by key, or send each to a given worker (`to=`).

        Parameters
        ----------
        key : callable, str, sequence of str or pyarrow.compute.Expression, optional
            On rows a function of the record (the default: the record itself); on
            columns a column's name, or several, or an expression (of record batches). The
            key is hashed, to the same on every machine and Python version.
        to : callable, str or pyarrow.compute.Expression, optional
            Instead of a key: the number of the worker, which is not hashed but, as in timely
            dataflow, taken modulo the number of workers. On rows a function of the record; on
            columns the name of a column of integers, an expression, or a function of the batch.

        Raises
        ------
        RouteError
            While it runs, for a number that is no integer, or negative.
        BuildError
            If both are given.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers = scope.to_stream(range(4) if scope.index == 0 else [])
        ...     return numbers.exchange(lambda x: x)
        >>> ps.testing.collect(build, workers=2)
        [(0, 0), (0, 1), (0, 2), (0, 3)]
        >>> def build(scope):
        ...     numbers = scope.to_stream(range(4) if scope.index == 0 else [])
        ...     return numbers.exchange(to=lambda x: x // 2).map(lambda x: (scope.index, x))
        >>> ps.testing.collect(build, workers=2)
        [(0, (0, 0)), (0, (0, 1)), (0, (1, 2)), (0, (1, 3))]
        """
        refuse_deferred(key, name)
        refuse_deferred(to, name)
        return pass_on(self, name, Exchange(key, to=to))

    def broadcast(self, *, name: str = "Broadcast") -> Stream[T]:
        """Send every record to every worker.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream(["hi"] if scope.index == 0 else []).broadcast()
        >>> ps.testing.collect(build, workers=2)
        [(0, 'hi'), (0, 'hi')]
        """
        return pass_on(self, name, Broadcast())

    def distribute(
        self, route: Callable[[Any, Any], int], *, name: str = "Distribute"
    ) -> Stream[T]:
        """Send each batch, whole, to the worker with the number `route(time, batch)`.

        Raises
        ------
        RouteError
            While it runs, for an index that no worker has.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     letters = scope.to_stream("ab" if scope.index == 0 else "c")
        ...     return letters.distribute(lambda time, batch: 1).map(lambda x: (scope.index, x))
        >>> ps.testing.collect(build, workers=2)
        [(0, (1, 'a')), (0, (1, 'b')), (0, (1, 'c'))]
        """
        check_function(route, name)
        check_takes(route, name, "time", "batch")
        return pass_on(self, name, Distribute(route))
