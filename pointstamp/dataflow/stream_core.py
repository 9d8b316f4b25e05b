"""The core of a stream: the output of an operator that others can read.

A stream belongs to a scope and holds no data. It knows its scope, its source port, and the
tee that pushes batches to its readers. Operators are methods of its subclass
`pointstamp.operators.stream.Stream`; scopes make that one, through the class that they were
handed, so that nothing here knows an operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from pointstamp.dataflow.channels import Tee
from pointstamp.errors import BuildError
from pointstamp.progress.topology import Port

if TYPE_CHECKING:
    from pointstamp.dataflow.scope_core import ScopeCore

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class StreamCore(Generic[T]):
    """What a `Stream` is without its operators."""

    scope: Any
    """Of its own class of scopes, which only that says."""

    def __init__(self, scope: ScopeCore[Any], source: Port, tee: Tee) -> None:
        self.scope = scope
        self.source = source
        self.tee = tee

    def pipe(
        self, function: Callable[Concatenate[Self, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """`function(stream, *args, **kwargs)`: call an operator of your own like a method.

        >>> import pointstamp as ps
        >>> def times(stream, factor):
        ...     return stream.map(lambda x: factor * x)
        >>> ps.testing.collect(lambda scope: scope.to_stream([1, 2]).pipe(times, factor=3))
        [(0, 3), (0, 6)]
        """
        return function(self, *args, **kwargs)

    def enter(self, inner: ScopeCore[Any], *, name: str = "") -> Self:
        """This stream inside `inner`, a child of its scope.

        It keeps the name of its operator, or gets another.

        Raises
        ------
        BuildError
            If `inner` is not directly in this stream's scope.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.iterative() as inner:
        ...         inside = scope.to_stream([1]).enter(inner)
        ...         times = inside.inspect_batch(lambda time, batch: print("inside", time))
        ...         return times.leave()
        >>> ps.testing.collect(build)
        inside (0, 0)
        [(0, 1)]
        """
        given: Any = inner  # of any type, until it is looked at
        if isinstance(given, StreamCore) or not hasattr(given, "enter"):
            raise BuildError(
                f"a stream of scope {self.scope.name!r} enters a scope that is in that one, such "
                f"as iterative() or region() makes; found {given!r:.200}"
            )
        inside: Self = inner.enter(self, name=name)
        return inside

    def leave(self, *, name: str = "") -> Self:
        """This stream in the parent of its scope, at times without the inner coordinate.

        Raises
        ------
        BuildError
            If it is of the outermost scope.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.iterative() as inner:
        ...         loop, again = inner.feedback(1, limit=3)
        ...         numbers = scope.to_stream([1]).enter(inner).concat(again)
        ...         loop.connect(numbers.map(lambda x: 2 * x))
        ...         return numbers.leave()
        >>> ps.testing.collect(build)  # rounds 0, 1 and 2, all of time 0
        [(0, 1), (0, 2), (0, 4)]
        """
        outside: Self = self.scope.leave(self, name=name)
        return outside

    def __repr__(self) -> str:
        return f"Stream({self.source} of scope {self.scope.name!r})"
