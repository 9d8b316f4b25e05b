"""Streams: what flows from one operator's output to the inputs of others.

A stream belongs to a scope and has no data of its own; its methods add operators
that read it. Each is a call of a function in `operators`, and can be done by
other code in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.containers.events import Events
from pointstamp.containers.kind import Key
from pointstamp.dataflow.channels import Tee
from pointstamp.dataflow.operators import capture as capturing
from pointstamp.dataflow.operators import counting, generic, split_merge, stateless, stream_joins
from pointstamp.dataflow.operators import probe as probes
from pointstamp.dataflow.operators import windows as windowing
from pointstamp.dataflow.operators.generic import Build
from pointstamp.dataflow.operators.probe import Probe
from pointstamp.dataflow.pact import Broadcast, Exchange, Pact
from pointstamp.dataflow.windows import Clock, Sessions, Sliding
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

    def join(
        self, other: Stream[U], key: Key = None, other_key: Key = None, *, retain: bool = False
    ) -> Stream[Any]:
        """Pairs of a record of this stream and one of `other`, of equal key.

        Each pair leaves as soon as both of its records are there. Both streams are
        exchanged by key, and carry one kind of container. In columns a null is no key.

        Parameters
        ----------
        key : callable, str, or sequence of str, optional
            On rows a function of the record (the default: the record itself); on
            columns a column's name, or several.
        other_key : optional
            The same for `other`; the default is `key`.
        retain : bool
            False: records of equal time meet, and what has come is forgotten when
            its time is complete. True: records of all times meet, each pair at the
            least time at or after both, and all that has come is kept until the other
            stream ends; times of a type of your own need a `join` method.

        Returns
        -------
        Stream
            Of rows, pairs of records; of columns, the columns of this stream and then
            those of `other` without its key, with "_right" after names that are taken.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     ages = scope.to_stream([("ann", 40), ("bob", 50)])
        ...     towns = scope.to_stream([("bob", "Rome"), ("eve", "Oslo")])
        ...     return ages.join(towns, lambda person: person[0])
        >>> ps.testing.collect(build)
        [(0, (('bob', 50), ('bob', 'Rome')))]
        """
        keys = (key, key if other_key is None else other_key)
        return stream_joins.join(self, other, keys, retain=retain)

    # Windows of event time.

    def window(
        self,
        windows: Sliding | Sessions,
        time: Any = None,
        key: Key = None,
        lateness: int = 0,
        clock: Clock | None = None,
    ) -> tuple[Stream[Any], Stream[T]]:
        """The records in windows of event time, each window when it is complete; and late ones.

        The stream's timestamps say how far event time has come: a record may lie up to
        `lateness` behind its timestamp. Those that lie further behind are late, and are
        in no window. A window `[start, end)` is complete, and released, at the
        timestamp `end + lateness`; all that are open, at the end of the input.

        Parameters
        ----------
        windows : Tumbling, Sliding or Sessions
            `pointstamp.Tumbling(size)`, for one.
        time : callable or str, optional
            Event times, which are integers: on rows a function of the record, on
            columns a column's name (of integers or Arrow times, in their unit). The
            default is the timestamp.
        key : callable, str, or sequence of str, optional
            Windows are of records of equal key, as for `exchange`; without one, all
            records are together, on one worker.
        lateness : int
            How far a record may lie behind its timestamp, in event time.
        clock : Clock, optional
            How timestamps map to event times; the default is that they are the same.

        Returns
        -------
        (Stream, Stream)
            Of rows, a stream of `Window(key, start, end, records)`. Of columns, one of
            the records with the columns `window_start` and `window_end`, in which all
            windows that are released together are one batch (with each key's records
            anywhere in it). And the late records as they came.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     done, late = scope.to_stream([3, 12, 14]).window(ps.Tumbling(10), time=lambda x: x)
        ...     return done
        >>> for time, window in ps.testing.collect(build):
        ...     print(time, window)
        10 Window(key=None, start=0, end=10, records=[3])
        20 Window(key=None, start=10, end=20, records=[12, 14])
        """
        return windowing.window(self, windows, time, key, lateness, clock)

    # Written down.

    def capture(self, to: Any = None) -> Any:
        """Write down what this stream does: its batches at their times, and its progress.

        `Scope.replay` makes the stream again from it. Each worker captures its part.

        Parameters
        ----------
        to : path, Events, Dial or Listen, optional
            A path names a folder, for a file of each worker: an Arrow IPC stream, whose
            end is the end of the capture, so that a file that was cut off is known by
            it. `Dial` and `Listen` send the part to another computation. The default is
            new `Events`, in memory.

        Returns
        -------
        what was given as `to`, or the new Events

        >>> import pointstamp as ps
        >>> def record(worker):
        ...     with worker.dataflow() as scope:
        ...         events = scope.to_stream(["a", "b"]).capture()
        ...     worker.run()
        ...     return events
        >>> [events] = ps.execute(record)
        >>> for event in events:
        ...     print(event)
        Messages(time=0, batch=['a', 'b'])
        Progress(changes=[(0, -1)])
        >>> ps.testing.collect(lambda scope: scope.replay(events))
        [(0, 'a'), (0, 'b')]
        """
        to = Events() if to is None else to
        capturing.capture(self, to)
        return to

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
