"""Streams: what flows from one operator's output to the inputs of others.

A stream belongs to a scope and has no data of its own; its methods add operators
that read it. Each is a call of a function in `operators`, and can be done by
other code in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.containers.kind import Key
from pointstamp.dataflow.channels import Tee
from pointstamp.dataflow.operators import command as commands
from pointstamp.dataflow.operators import counting, generic, split_merge, stateless
from pointstamp.dataflow.operators import probe as probes
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

    # Through other programs.

    def command(
        self,
        command: Sequence[str],
        *,
        form: str = "text",
        marker: str | None = None,
        ok: Collection[int] = (0,),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        name: str = "Command",
    ) -> Stream[Any]:
        """Run the records through an external program, one on each worker.

        Its standard input gets the records of this worker, and what it writes to its
        standard output are the results, at the same time. A time at which there are no
        records is not asked for. The worker does not wait for it. It is killed when the
        dataflow goes: when a worker fails, or the dataflow is dropped.

        Parameters
        ----------
        command : sequence of str
            The program, looked for on the path, and its arguments. No shell is involved.
        form : str
            How records travel. `"text"`: each is a `str`, and a line in UTF-8. `"bytes"`:
            each is a `bytes`, and a line. `"arrow"`: batches of columns, as an Arrow IPC
            stream in either direction.
        marker : str, optional
            Without it a process is started for each time, and told by the end of its
            input that the time is complete. With it one process is asked for all times, one
            after the other: after the last record of each it gets a mark, and it must send
            the mark back when it has answered, and flushed, everything before it. In lines
            the mark is the line `marker`. In Arrow it is a batch without records whose
            custom metadata has `marker` under the key `"pointstamp"`.
        ok : collection of int
            The exit statuses that are no failure: `(0, 1)` for grep, which exits with 1
            where nothing matches.
        env : mapping, optional
            Its environment variables, if not this process's.
        cwd : str, optional
            The folder that it runs in, if not this process's.
        name : str
            Of the operator.

        Raises
        ------
        BuildError
            If there is no such program. The other errors come while it runs:
        CommandError
            If it exits with another status, or does not answer as it should. The error
            has the status, the last lines of its standard error, and the time. What it
            writes there is shown nowhere else.
        ContainerError, DataError
            If a record is not of the form, or would not be one line.

        Notes
        -----
        A process costs some milliseconds at each time; with a marker, only the first. Most
        programs keep what they write until it is 4 KiB, or their input ends: with a marker
        they must be told to flush lines (`sed -u`, `grep --line-buffered`), or nobody gets on.
        Nothing bounds what waits to be written to a program that is slow.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     words = scope.to_stream(["plum", "apple", "pear"])
        ...     return words.command(["grep", "pl"], ok=(0, 1))
        >>> ps.testing.collect(build)
        [(0, 'apple'), (0, 'plum')]
        """
        return commands.command(
            self, command, form=form, marker=marker, ok=ok, env=env, cwd=cwd, name=name
        )

    def spark(
        self, function: Callable[[Any], Any], *, schema: Any = None, name: str = "Spark"
    ) -> Stream[Any]:
        """Run a Spark job on the records of each time, once it is complete.

        See `pointstamp.spark.operator.spark`, which says where it runs and what it needs.
        """
        # By name: what imports PySpark is below this layer.
        operator = import_module("pointstamp.spark.operator")
        result: Stream[Any] = operator.spark(self, function, schema=schema, name=name)
        return result

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
