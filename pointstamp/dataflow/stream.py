"""Streams: what flows from one operator's output to the inputs of others.

A stream belongs to a scope and has no data of its own; its methods add operators
that read it. Each is a call of a function in `operators`, and can be done by
other code in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.containers.kind import Key
from pointstamp.dataflow.channels import Tee
from pointstamp.dataflow.handles import Input
from pointstamp.dataflow.operators import counting, generic, split_merge, stateless
from pointstamp.dataflow.operators import probe as probes
from pointstamp.dataflow.operators import sink as sinks
from pointstamp.dataflow.operators.generic import Build
from pointstamp.dataflow.operators.probe import Probe
from pointstamp.dataflow.pact import Broadcast, Exchange, Pact
from pointstamp.progress.operate import Interest
from pointstamp.progress.topology import Port

if TYPE_CHECKING:
    from pointstamp.dataflow.scope import Scope

T = TypeVar("T")
U = TypeVar("U")


class Stream(Generic[T]):
    """Batches of records of type `T`, each batch with its time.

    Attributes
    ----------
    scope : Scope
        Where it flows.
    source : tuple of int
        (operator, output) that it comes from.
    """

    def __init__(self, scope: Scope, source: Port, tee: Tee) -> None:
        self.scope = scope
        self.source = source
        self.tee = tee

    # Record by record, or batch by batch.

    def map(self, function: Callable[[T], U]) -> Stream[U]:
        """Replace each record by `function(record)`.

        >>> import pointstamp as ps
        >>> seen = ps.testing.collect(lambda scope: scope.to_stream([1, 2]).map(lambda x: x + 1))
        >>> seen
        [(0, 2), (0, 3)]
        """
        return stateless.map_(self, function)

    def flat_map(self, function: Callable[[T], Iterable[U]]) -> Stream[U]:
        """Replace each record by the records of `function(record)`.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([2, 0, 1]).flat_map(range))
        [(0, 0), (0, 0), (0, 1)]
        """
        return stateless.flat_map(self, function)

    def filter(self, predicate: Any) -> Stream[T]:
        """Keep the records for which `predicate` is true.

        Parameters
        ----------
        predicate : callable or pyarrow.compute.Expression
            On rows a function of the record; on columns an expression. Records
            for which an expression is null are not kept.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([1, 2, 3]).filter(lambda x: x > 1))
        [(0, 2), (0, 3)]
        """
        return stateless.filter_(self, predicate)

    def map_batches(self, function: Callable[[Any], Any]) -> Stream[Any]:
        """Replace each batch by `function(batch)`, a container, or None for nothing.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([3, 1]).map_batches(sorted))
        [(0, 1), (0, 3)]
        """
        return stateless.map_batches(self, function)

    def inspect(self, function: Callable[[T], Any]) -> Stream[T]:
        """Call `function(record)` for each record, and pass the record on.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream(["hi"]).inspect(print))
        hi
        [(0, 'hi')]
        """
        return stateless.inspect(self, function)

    def inspect_batch(self, function: Callable[[Any, Any], Any]) -> Stream[T]:
        """Call `function(time, batch)` for each batch, and pass the batch on.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream(["hi"]).inspect_batch(print))
        0 ['hi']
        [(0, 'hi')]
        """
        return stateless.inspect_batch(self, function)

    def count(self) -> Stream[int]:
        """The number of records of each time, when it is complete, on each worker.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream("abc").count())
        [(0, 3)]
        """
        return counting.count(self)

    # To other workers.

    def exchange(self, key: Key = None) -> Stream[T]:
        """Send records of equal key to the same worker.

        Parameters
        ----------
        key : callable, str, or sequence of str, optional
            On rows a function of the record (the default: the record itself); on
            columns a column's name, or several.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers = scope.to_stream(range(4) if scope.index == 0 else [])
        ...     return numbers.exchange(lambda x: x)
        >>> ps.testing.collect(build, workers=2)
        [(0, 0), (0, 1), (0, 2), (0, 3)]
        """
        return stateless.pass_on(self, "Exchange", Exchange(key))

    def broadcast(self) -> Stream[T]:
        """Send every record to every worker.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream(["hi"] if scope.index == 0 else []).broadcast()
        >>> ps.testing.collect(build, workers=2)
        [(0, 'hi'), (0, 'hi')]
        """
        return stateless.pass_on(self, "Broadcast", Broadcast())

    # Streams from streams.

    def concat(self, *others: Stream[T]) -> Stream[T]:
        """The records of this stream and of `others`.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([1]).concat(scope.to_stream([2]))
        >>> ps.testing.collect(build)
        [(0, 1), (0, 2)]
        """
        return split_merge.concatenate([self, *others])

    def branch(self, predicate: Any) -> tuple[Stream[T], Stream[T]]:
        """The records for which `predicate` is false, and those for which it is true.

        Parameters
        ----------
        predicate : callable or pyarrow.compute.Expression
            As for `filter`; null counts as false.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     odd, even = scope.to_stream(range(4)).branch(lambda x: x % 2 == 0)
        ...     return odd.map(lambda x: ("odd", x)).concat(even.map(lambda x: ("even", x)))
        >>> ps.testing.collect(build)
        [(0, ('even', 0)), (0, ('even', 2)), (0, ('odd', 1)), (0, ('odd', 3))]
        """
        return split_merge.branch(self, predicate)

    # Across scopes.

    def enter(self, inner: Scope) -> Stream[T]:
        """This stream inside `inner`, a scope of this one."""
        return inner.enter(self)

    def leave(self) -> Stream[T]:
        """This stream in the scope around its own, at the times without their inner part."""
        return self.scope.leave(self)

    # Watching.

    def probe(self) -> Probe:
        """A handle that tells whether times are still possible at the end of this stream."""
        probe = Probe()
        probes.probe_with(self, probe)
        return probe

    def probe_with(self, probe: Probe) -> Stream[T]:
        """Let an existing `probe` watch this stream too; gives the stream back."""
        probes.probe_with(self, probe)
        return self

    # Operators with code of one's own.

    def unary(self, pact: Pact, name: str, build: Build) -> Stream[Any]:
        """An operator that reads this stream; `logic(input, output)`.

        See `pointstamp.dataflow.operators.generic` for what `build` does.
        """
        return generic.operator([self], [pact], name, build, Interest.NEVER)

    def unary_frontier(self, pact: Pact, name: str, build: Build) -> Stream[Any]:
        """The same; `input.frontier` says what may still come, and moves are a reason to run."""
        return generic.operator([self], [pact], name, build, Interest.ALWAYS)

    def unary_notify(
        self, pact: Pact, name: str, build: Build, initial: Iterable[Any] = ()
    ) -> Stream[Any]:
        """The same with notifications; `logic(input, output, notificator)`.

        `initial` are times to be notified of without asking.
        """
        return generic.operator_notify([self], [pact], name, build, initial)

    def sink(self, pact: Pact, name: str, logic: Callable[[Input], Any]) -> None:
        """An operator that reads this stream and sends nothing; `logic(input)`.

        `input.frontier` says what may still come, and its moves are a reason to run.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     events = []
        ...     def logic(input):
        ...         for time, batch in input:
        ...             events.append((time.time, batch))
        ...         if input.frontier.is_empty():
        ...             events.append("end")
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2]).sink(ps.Pipeline(), "Events", logic)
        ...     worker.run()
        ...     return events
        >>> ps.execute(main)
        [[(0, [1, 2]), 'end']]
        """
        sinks.sink(self, pact, name, logic)

    def binary(
        self, other: Stream[Any], pact1: Pact, pact2: Pact, name: str, build: Build
    ) -> Stream[Any]:
        """An operator that reads two streams; `logic(input1, input2, output)`."""
        return generic.operator([self, other], [pact1, pact2], name, build, Interest.NEVER)

    def binary_frontier(
        self, other: Stream[Any], pact1: Pact, pact2: Pact, name: str, build: Build
    ) -> Stream[Any]:
        """The same; both inputs' frontiers are seen, and moves are a reason to run."""
        return generic.operator([self, other], [pact1, pact2], name, build, Interest.ALWAYS)

    def binary_notify(
        self,
        other: Stream[Any],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Build,
        initial: Iterable[Any] = (),
    ) -> Stream[Any]:
        """The same with notifications; `logic(input1, input2, output, notificator)`."""
        return generic.operator_notify([self, other], [pact1, pact2], name, build, initial)

    def __repr__(self) -> str:
        return f"Stream({self.source} of scope {self.scope.name!r})"
