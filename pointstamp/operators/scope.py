"""Scopes: where operators are put together, and scopes in scopes.

A scope collects operators and the streams between them while its `with` block
runs. At the end it becomes a `Subgraph`: an operator of the scope around it. The
outermost one is what a worker steps.

Operators are numbered from 1 in the order of their making, which is the same on
all workers, since all run the same program; `structure` writes down what was
made, so that the workers can make sure.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pointstamp.dataflow.alignment import Epochs
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.channels import Egress, Ingress, Queue, Tee
from pointstamp.dataflow.durability import OperatorState, epochs_of, refused
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.operator import Operator, OperatorBuilder
from pointstamp.dataflow.pact import Pact
from pointstamp.errors import BuildError, FeedbackError, UsageError
from pointstamp.operators import flow_control, sources, split_merge, unordered
from pointstamp.operators import replay as replaying
from pointstamp.operators.feedback import Loop
from pointstamp.operators.flow_control import Read
from pointstamp.operators.generic import Build
from pointstamp.operators.probe import Probe
from pointstamp.operators.sources import InputHandle
from pointstamp.operators.stream import Stream
from pointstamp.operators.unordered import UnorderedInput
from pointstamp.operators.user_code import is_async
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import Operate
from pointstamp.progress.subgraph import Activation, Subgraph
from pointstamp.progress.timestamp import Int, Product, Timestamp
from pointstamp.progress.topology import Edge, Port

if TYPE_CHECKING:
    from pointstamp.dataflow.event_loop import AsyncInput

T = TypeVar("T")


class Scope:
    """A dataflow, or a part of one with times of its own.

    Parameters
    ----------
    environment : Environment
        What it may know of the worker.
    name : str
        For messages to people.
    timestamp : Timestamp
        The type of its times.
    parent : Scope, optional
        The scope that it is an operator of.
    wake : callable, optional
        For the outermost scope: called when it has something to do.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        timestamp: Timestamp,
        parent: Scope | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.environment = environment
        self.name = name
        self.timestamp = timestamp
        self.parent = parent
        self.number = environment.next_scope()
        self.node = parent.reserve(name) if parent is not None else 0
        self.address: tuple[int, ...] = (*parent.address, self.node) if parent else ()
        self._log = environment.log
        if self._log is not None:
            self._log.begin_scope(self.number, parent.number if parent else None, self.node, name)
        self.subgraph: Subgraph | None = None
        self.closed = False
        self.dataflow: Any = None
        """What the worker knows the outermost scope by, from the end of its making on."""
        self.scopes: list[Scope] = []
        """The scopes in it, closed ones only."""
        self._activations: list[Activation] = []
        self._wake = wake if parent is None else parent.activation(self.node)
        self._names: list[str] = ["outside"]
        self._children: dict[int, Operate] = {}
        self._edges: list[Edge] = []
        self._structure: list[str] = []
        self._entered: list[ChangeBatch] = []
        self._n_outputs = 0
        self._loops: list[Loop] = []
        if parent is not None:
            self._refinement = timestamp.refines(parent.timestamp)
            if self._refinement is None:
                raise BuildError(
                    f"scope {name!r} has times of {timestamp!r}, which do not refine those of "
                    f"{parent.timestamp!r} in scope {parent.name!r}"
                )

    @property
    def index(self) -> int:
        """This worker's number."""
        return self.environment.index

    @property
    def peers(self) -> int:
        """How many workers build this dataflow."""
        return self.environment.peers

    @property
    def path(self) -> str:
        """Its name behind those of the scopes around it, for messages to people."""
        own = f"scope {self.name!r}"
        return own if self.parent is None else f"{own} in {self.parent.path}"

    # Streams from outside.

    def new_input(self, name: str = "Input") -> tuple[InputHandle, Stream[Any]]:
        """An input to be driven by this program: its handle and its stream.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         input, stream = scope.new_input()
        ...         stream.inspect_batch(lambda time, batch: seen.append((time, batch)))
        ...     input.send("a")
        ...     input.advance_to(4)
        ...     input.send("b")
        ...     input.close()
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[(0, ['a']), (4, ['b'])]]
        """
        return sources.new_input(self, name)

    def to_stream(self, records: Iterable[T]) -> Stream[T]:
        """The records of an iterable, at the least time. Every worker gives its own.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream("ab"))
        [(0, 'a'), (0, 'b')]
        """
        return sources.to_stream(self, records)

    def batches_to_stream(self, batches: Iterable[Any]) -> Stream[Any]:
        """The same for an iterable of containers, such as Arrow record batches.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.batches_to_stream([[1, 2], [3]]))
        [(0, 1), (0, 2), (0, 3)]
        """
        return sources.batches_to_stream(self, batches)

    def empty(self) -> Stream[Any]:
        """A stream without records, complete from the start.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.empty())
        []
        """
        return sources.empty(self)

    def async_source(
        self,
        generate: Callable[[AsyncInput], AsyncIterator[T]],
        *,
        batches: bool = False,
        buffer: int = 1024,
    ) -> Stream[T]:
        """What an asynchronous generator yields, each worker running its own.

        Until it ends, the worker keeps the right to send at the time at which it is. It
        runs in the worker's event loop, and is cancelled when the dataflow ends early.

        Parameters
        ----------
        generate : callable
            An asynchronous generator function. It is called with an `AsyncInput`, whose
            `advance_to(time)` says at which time the next records are given (at first the
            least), and whose `index` and `peers` say which worker it is.
        batches : bool
            Whether it yields containers rather than records.
        buffer : int
            How many records (or containers) it may yield before the worker has sent them;
            after so many it waits.

        >>> import pointstamp as ps
        >>> async def ticks(input):
        ...     for round in range(3):
        ...         yield "tick"
        ...         input.advance_to(round + 1)
        >>> ps.testing.collect(lambda scope: scope.async_source(ticks))
        [(0, 'tick'), (1, 'tick'), (2, 'tick')]
        """
        # Not at the top: it imports asyncio.
        from pointstamp.operators import async_source

        return async_source.async_source(self, generate, batches=batches, buffer=buffer)

    @overload
    def source(
        self, build: Callable[[AsyncInput], AsyncIterator[T]], name: str = "Source"
    ) -> Stream[T]: ...

    @overload
    def source(self, build: Build, name: str = "Source") -> Stream[Any]: ...

    def source(self, build: Any, name: str = "Source") -> Stream[Any]:
        """An operator without inputs, with code of the user's; `logic(output)`.

        An asynchronous generator function is run as `async_source` does.

        `build(capability, info)` is called once on each worker and returns the logic,
        which is called once, and again whenever it returns True or `info` was asked
        for it: at once (`activate`), after a time (`activate_after`) or by another
        thread (`thread_activator`). The stream ends when the capability is dropped.

        >>> import pointstamp as ps
        >>> def build(capability, info):
        ...     def logic(output):
        ...         with output.session(capability) as session:
        ...             session.give(capability.time ** 2)
        ...         capability.downgrade(capability.time + 1)
        ...         if capability.time == 3:
        ...             capability.drop()
        ...         return capability.live
        ...     return logic
        >>> ps.testing.collect(lambda scope: scope.source(build))
        [(0, 0), (1, 1), (2, 4)]
        """
        if is_async(build):
            return self.async_source(build)
        return sources.source(self, build, name)

    def unordered_input(
        self, name: str = "UnorderedInput"
    ) -> tuple[tuple[UnorderedInput, Capability], Stream[Any]]:
        """An input that may be open at many times at once, in no order.

        Gives `(handle, capability), stream`. What may still be sent is what there are
        capabilities for: the first, at the least time, and those made from it. They
        are the caller's, who drops each when nothing more comes at its time; the
        dataflow is not complete before, and nobody else closes this input.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         (input, first), stream = scope.unordered_input()
        ...         stream.inspect_batch(lambda time, batch: seen.append((time, batch)))
        ...     with first.delayed(5) as later, first:
        ...         input.send(later, "b")
        ...         input.send(first, "a")
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[(5, ['b']), (0, ['a'])]]
        """
        return unordered.unordered_input(self, name)

    def flow_controlled(
        self,
        batches: Iterable[tuple[int, Any]],
        probe: Probe,
        ahead: int = 1,
        name: str = "FlowControlled",
    ) -> Stream[Any]:
        """The batches of an iterable of (time, batch), read on only as `probe` advances.

        Parameters
        ----------
        batches : iterable of (int, container)
            Times that do not go back, each with a list of records, or columns. One
            batch is read before it may be sent.
        probe : Probe
            Says what is complete; put it where the work is done, which may be later
            than this call, with `probe_with`.
        ahead : int
            How far to run ahead: a batch of time t is sent when all times up to
            `t - ahead` are complete, so that at most so many times are at work.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     probe = ps.Probe()
        ...     lines = scope.flow_controlled([(0, ["a", "b"]), (3, ["c"])], probe, ahead=2)
        ...     return lines.map(str.upper).probe_with(probe)
        >>> ps.testing.collect(build)
        [(0, 'A'), (0, 'B'), (3, 'C')]
        """
        return flow_control.flow_controlled(self, batches, probe, ahead, name)

    def iterator_source(
        self, read: Read, probe: Probe, name: str = "IteratorSource"
    ) -> Stream[Any]:
        """A source that says itself how far `probe` must have come before it reads on.

        `read(time)` gives a `Reading`: what to send at `time` or later, and the target
        that the probe has to reach before the next call. It gives None at the end.
        Times may be of any type.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     probe = ps.Probe()
        ...     def read(time):
        ...         if time == 3:
        ...             return None
        ...         return ps.Reading([(time, [10 * time])], target=time, lower_bound=time + 1)
        ...     return scope.iterator_source(read, probe).probe_with(probe)
        >>> ps.testing.collect(build)
        [(0, 0), (1, 10), (2, 20)]
        """
        return flow_control.iterator_source(self, read, probe, name)

    def replay(self, sources: Any, *, partial: bool = False) -> Stream[Any]:
        """A stream that was captured, again: its batches at their times, and its progress.

        As many workers as one likes can replay what others captured: each part is
        replayed by one of them, and a time is complete when it is so in all parts.

        Parameters
        ----------
        sources : path, or sequence of Events, Connect, Accept or iterables of events
            A path is that of the folder (or of one file) that was captured to, the same
            on all workers, which share its files. Else every worker gives its own.
        partial : bool
            Of files of a capture that was interrupted, or goes on: replay the times that
            are complete in all of them, and leave out the others. Without it they are an
            error, where they end.

        Raises
        ------
        TruncatedError
            When it comes to where a file was cut off; says which, and at which byte.
            A file that is still written to ends where it ends just then.
        FileFormatError
            For files that are no capture, or damaged, or not all there.
        PeerLostError
            When a connection ends before its stream.
        EventError
            When events contradict each other.

        >>> import pointstamp as ps
        >>> events = [ps.Messages(0, ["a"]), ps.Progress([(5, 1), (0, -1)]),
        ...           ps.Messages(7, ["b"]), ps.Progress([(5, -1)])]
        >>> ps.testing.collect(lambda scope: scope.replay([events]))
        [(0, 'a'), (7, 'b')]
        """
        return replaying.replay(self, sources, partial=partial)

    def log_stream(self, what: str) -> Stream[Any]:
        """What this worker tells of itself, as it happens: the events of one type.

        For a dataflow that is not logged itself, `worker.dataflow(logged=False)`, as it
        would feed itself otherwise. Batches are Arrow record batches; `docs/logs.md` has the
        types of events, and their columns. Times are the moments of the log, integers: a
        batch has events at its time or later, and once the frontier is past a moment, all
        events of that moment have come. The stream ends when the dataflows that are logged
        are complete, and the worker runs to the end.

        Parameters
        ----------
        what : str
            "operators", "channels", "schedules", "messages", "progress", "capabilities",
            "frontiers", "parks" or "texts".

        Raises
        ------
        UsageError
            If the worker keeps no log, or there are no such events.
        BuildError
            If this dataflow is logged.
        """
        log = self.environment.worker_log
        if log is None:
            raise UsageError(
                f"scope {self.name!r} cannot read the log of worker {self.index}, which keeps "
                "none; start the workers with log=ps.Log(...)"
            )
        if self.environment.log is not None:
            raise BuildError(
                f"scope {self.name!r} reads the log that it is told of in: it would feed itself; "
                "build it with worker.dataflow(..., logged=False)"
            )
        return log.stream(self, what)

    # Streams from streams.

    def concatenate(self, streams: Iterable[Stream[T]]) -> Stream[T]:
        """All records of all `streams` (at least one).

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.concatenate([scope.to_stream([1]), scope.to_stream([3, 2])])
        >>> ps.testing.collect(build)
        [(0, 1), (0, 2), (0, 3)]
        """
        streams = list(streams)
        if not streams:
            raise BuildError(f"scope {self.name!r}: concatenate needs at least one stream")
        return split_merge.concatenate(streams)

    def feedback(
        self,
        summary: Any,
        limit: int | None = None,
        name: str = "Feedback",
        *,
        expect: int | None = None,
    ) -> tuple[Loop, Stream[Any]]:
        """The two ends of a loop: connect one, build on the other.

        Parameters
        ----------
        summary
            How time advances around the loop: an int advances an integer time, or
            the inner coordinate of a product.
        limit : int, optional
            Times whose (inner) coordinate would reach it never arrive.
        expect : int, optional
            Warn (`LoopWarning`) when times come whose (inner) coordinate is beyond twice
            as much, and each time that it doubles.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     loop, again = scope.feedback(1, limit=3)
        ...     result = scope.to_stream([10]).concat(again)
        ...     loop.connect(result.map(lambda x: x + 1))
        ...     return result
        >>> ps.testing.collect(build)
        [(0, 10), (1, 11), (2, 12)]
        """
        advance = self.timestamp.summary(summary)
        if limit is not None:
            if type(limit) is not int or limit < 0:
                raise BuildError(
                    f"feedback {name!r} of {self.path} cannot have a limit of {limit!r}: it is an "
                    "integer, and 0 is the least"
                )
            advance = self.timestamp.bounded(advance, limit)
        loop = Loop(self, advance, name, expect)
        self._loops.append(loop)
        return loop, loop.stream

    # Scopes in scopes, each to be used in a `with`.

    def scoped(self, timestamp: Timestamp, name: str = "Scope") -> Scope:
        """A scope whose times are of a type that refines this scope's.

        Raises
        ------
        BuildError
            If the type does not refine that of this scope.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.scoped(ps.Product(ps.Int, ps.Int), "rounds") as inner:
        ...         return scope.to_stream([1]).enter(inner).leave()
        >>> ps.testing.collect(build)
        [(0, 1)]
        """
        self._check_open("a scope")
        return Scope(self.environment, name, timestamp, self)

    def iterative(self, inner: Timestamp = Int, name: str = "Iterative") -> Scope:
        """A scope for loops: its times are pairs of this scope's time and a round.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.iterative() as inner:
        ...         loop, again = inner.feedback(1)
        ...         numbers = scope.to_stream([20]).enter(inner).concat(again)
        ...         done, rest = numbers.branch(lambda x: x % 2 == 0)
        ...         loop.connect(rest.map(lambda x: x // 2))
        ...         return done.leave()
        >>> ps.testing.collect(build)  # 20, 10, 5
        [(0, 5)]
        """
        return self.scoped(Product(self.timestamp, inner), name)

    def region(self, name: str = "Region") -> Scope:
        """A scope with the same times: one box around several operators.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.region("box") as box:
        ...         return scope.to_stream([1]).enter(box).map(lambda x: x + 1).leave()
        >>> ps.testing.collect(build)
        [(0, 2)]
        """
        return self.scoped(self.timestamp, name)

    def __enter__(self) -> Scope:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception is None:
            self.close()

    # For operators.

    def operator(self, name: str) -> OperatorBuilder:
        """A builder for an operator with any numbers of inputs and outputs.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     builder = scope.operator("Deal")
        ...     builder.new_input(scope.to_stream(range(4)), ps.Pipeline())
        ...     even, odd = builder.new_output(initial=False), builder.new_output(initial=False)
        ...     def make_logic(capabilities, info):
        ...         def logic(inputs, outputs):
        ...             for time, batch in inputs[0]:
        ...                 for rest, output in enumerate(outputs):
        ...                     output.session(time).give_batch([x for x in batch if x % 2 == rest])
        ...         return logic
        ...     builder.build(make_logic)
        ...     return odd
        >>> ps.testing.collect(build)
        [(0, 1), (0, 3)]
        """
        return OperatorBuilder(self, name)

    def reserve(self, name: str) -> int:
        """The number of a new operator, to be installed later."""
        self._check_open(f"operator {name!r}")
        self._names.append(name)
        return len(self._names) - 1

    def install(self, node: int, operator: Operate) -> None:
        """Put an operator in its place.

        Raises
        ------
        UndeclaredStateError
            If the dataflow is durable, and the operator is not made of Python code: what it
            keeps, nobody here can store.
        """
        durable_state = self.environment.durable_state
        if durable_state is not None and not isinstance(operator, Operator):
            OperatorState(durable_state, self.path_of(node), refused).refuse(
                "it is run elsewhere, and what it keeps there is not known"
            )
        self._children[node] = operator

    def add_operator(self, operator: Operate) -> int:
        """Put in something that speaks `Operate`; its number."""
        node = self.reserve(operator.name)
        self.install(node, self._told(node, operator))
        return node

    def connect(
        self, stream: Stream[Any], target: Port, pact: Pact, consumed: ChangeBatch
    ) -> Queue:
        """Lead `stream` to input `target`, (operator, input), of an operator of this scope.

        Returns the queue in which its batches wait. What is taken from it is counted in
        `consumed`, which the operator reports; arrivals ask for a visit of it.
        """
        node, _ = target
        self.check_stream(stream, self._names[node])
        pusher, queue = pact.connect(self.environment, self.activation(node), consumed)
        queue.reader = self._names[node]
        self.environment.bound(pusher, queue)
        stream.tee.pushers.append(pusher)
        self.add_edge(Edge(stream.source, target, pact.copies(self.peers)), pact.describe())
        return queue

    def add_edge(self, edge: Edge, pact: str) -> None:
        """Note a stream between two operators."""
        self._edges.append(edge)
        self._structure.append(f"stream {edge.source} -> {edge.target} by {pact}")

    def new_stream(self, source: Port, tee: Tee) -> Stream[Any]:
        """The stream of an output."""
        return Stream(self, source, tee)

    def path_of(self, node: int) -> str:
        """What operator `node` is called in snapshots: the same in every run of a program.

        Its name behind those of the scopes around it, with a number where it is not the
        first of its name.
        """
        durable_state = self.environment.durable_state
        if durable_state is None:
            return self._names[node]
        around = (
            self.parent.path_of(self.node) if self.parent is not None else durable_state.dataflow
        )
        name = self._names[node]
        number = self._names[1 : node + 1].count(name)
        own = name.replace("%", "%25").replace("/", "%2F").replace("#", "%23")
        return f"{around}/{own}" if number == 1 else f"{around}/{own}#{number}"

    def epochs(self) -> Epochs:
        """How times of this scope relate to epochs, those of the dataflow that it is in."""
        refinements: list[Any] = []
        scope = self
        while scope.parent is not None:
            refinements.append(scope._refinement)
            scope = scope.parent
        return epochs_of(scope.timestamp, refinements, scope.name)

    def activation(self, node: int) -> Activation:
        """What asks for operator `node` to be run."""
        activation = Activation(node)
        activation.subgraph = self.subgraph
        self._activations.append(activation)
        return activation

    def check_stream(self, stream: Stream[Any], operator: str) -> None:
        """Raise unless `stream` is of this scope."""
        if stream.scope is not self:
            raise BuildError(
                f"operator {operator!r} of scope {self.name!r} cannot read a stream of scope "
                f"{stream.scope.name!r}; bring it there with enter() or leave()"
            )

    def enter(self, stream: Stream[T]) -> Stream[T]:
        """See `Stream.enter`."""
        self._check_open("a stream")
        if stream.scope is not self.parent or self._refinement is None:
            raise BuildError(
                f"a stream of scope {stream.scope.name!r} cannot enter scope {self.name!r}, which "
                f"is in {self.parent.name if self.parent else None!r}: enter one scope at a time"
            )
        port = len(self._entered)
        entered: ChangeBatch = ChangeBatch()
        self._entered.append(entered)
        tee = Tee(stream.tee.name)
        stream.tee.pushers.append(Ingress(tee, self._refinement, entered, self._wake))
        stream.scope.add_edge(Edge(stream.source, (self.node, port)), "enter")
        return self.new_stream((0, port), tee)

    def leave(self, stream: Stream[T]) -> Stream[T]:
        """See `Stream.leave`."""
        self._check_open("a stream")
        if self.parent is None or self._refinement is None:
            raise BuildError(
                f"a stream of the outermost scope {self.name!r} has nowhere to leave to"
            )
        port = self._n_outputs
        self._n_outputs += 1
        tee = Tee(stream.tee.name)
        stream.tee.pushers.append(Egress(tee, self._refinement))
        self.add_edge(Edge(stream.source, (0, port)), "leave")
        return self.parent.new_stream((self.node, port), tee)

    # The end of building.

    def close(self) -> None:
        """Finish building; for the outermost scope, make the whole ready to run."""
        self._check_open("nothing")
        self._check_loops()
        self.closed = True
        self.subgraph = Subgraph(
            self.name,
            self.timestamp,
            self.parent.timestamp if self.parent else self.timestamp,
            [self._child(node) for node in range(1, len(self._names))],
            self._edges,
            inputs=len(self._entered),
            outputs=self._n_outputs,
            peers=self.environment.peers,
            eager=self.environment.eager,
            entered=self._entered,
            share=partial(self.environment.share, self.number),
            wake=self._wake,
        )
        for activation in self._activations:
            activation.subgraph = self.subgraph
        self._activations.clear()
        if self.parent is not None:
            self.parent._children[self.node] = self.parent._told(self.node, self.subgraph)
            self.parent.scopes.append(self)
        else:
            self.subgraph.internal_summary()
            self.subgraph.set_external_summary([], [])

    def leads_to(self, stream: Stream[Any], later: Stream[Any]) -> bool:
        """Whether what comes on `stream` may cause what comes on `later`.

        Both are streams of this scope, which is complete. What may happen in scopes within is
        counted, at other operators what their path summaries say.
        """
        assert self.subgraph is not None
        topology = self.subgraph.topology
        start = topology.source(*stream.source)
        return topology.source(*later.source) in topology.reachable_from(start)

    def all_scopes(self) -> Iterator[Scope]:
        """This scope and all scopes in it."""
        yield self
        for scope in self.scopes:
            yield from scope.all_scopes()

    def structure(self) -> list[str]:
        """What was built, a line for each part; the same on workers that built the same."""
        where = "/".join(map(str, self.address)) or "."
        lines = [f"scope {where} {self.name!r} times {self.timestamp.name} number {self.number}"]
        for node in range(1, len(self._names)):
            child = self._children[node]
            lines.append(
                f"{where}/{node} {child.name!r} inputs {child.inputs} outputs {child.outputs}"
                f"{child.declared() if isinstance(child, Operator) else ''}"
            )
        lines.extend(f"{where} {line}" for line in self._structure)
        for scope in self.scopes:
            lines.extend(scope.structure())
        return lines

    def _told(self, node: int, operator: Operate) -> Operate:
        """What tells the log of `operator`, if there is one."""
        return operator if self._log is None else self._log.operate(self.number, node, operator)

    def _child(self, node: int) -> Operate:
        try:
            return self._children[node]
        except KeyError:
            raise BuildError(
                f"{self._names[node]!r} of scope {self.name!r} was begun and not finished; "
                "a nested scope is finished at the end of its `with` block"
            ) from None

    def _check_loops(self) -> None:
        for loop in self._loops:
            if not loop.connected:
                raise FeedbackError(
                    f"feedback {loop.name!r} of {self.path} was never connected; call "
                    "connect(stream) on its handle before the scope ends"
                )

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise BuildError(f"scope {self.name!r} is complete; {what} cannot be added to it")

    def __repr__(self) -> str:
        return f"Scope({self.name!r}, {self.timestamp!r})"
