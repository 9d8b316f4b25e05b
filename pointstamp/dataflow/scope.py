"""Scopes: where operators are put together, and scopes in scopes.

A scope collects operators and the streams between them while its `with` block
runs. At the end it becomes a `Subgraph`: an operator of the scope around it. The
outermost one is what a worker steps.

Operators are numbered from 1 in the order of their making, which is the same on
all workers, since all run the same program; `structure` writes down what was
made, so that the workers can make sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from pointstamp.dataflow.channels import Egress, Ingress, Tee
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.operator import Operator, OperatorBuilder
from pointstamp.dataflow.operators import sources, split_merge
from pointstamp.dataflow.operators.feedback import Loop
from pointstamp.dataflow.operators.sources import InputHandle
from pointstamp.dataflow.stream import Stream
from pointstamp.errors import BuildError, FeedbackError, UsageError
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import Operate
from pointstamp.progress.subgraph import Activation, Subgraph
from pointstamp.progress.timestamp import Int, Product, Timestamp
from pointstamp.progress.topology import Edge, Port


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

    # Streams from outside.

    def new_input(self, name: str = "Input") -> tuple[InputHandle, Stream[Any]]:
        """An input to be driven by this program: its handle and its stream."""
        return sources.new_input(self, name)

    def to_stream(self, records: Iterable[Any]) -> Stream[Any]:
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

    def concatenate(self, streams: Sequence[Stream[Any]]) -> Stream[Any]:
        """All records of all `streams` (at least one)."""
        if not streams:
            raise BuildError(f"scope {self.name!r}: concatenate needs at least one stream")
        return split_merge.concatenate(streams)

    def feedback(
        self, summary: Any, limit: int | None = None, name: str = "Feedback"
    ) -> tuple[Loop, Stream[Any]]:
        """The two ends of a loop: connect one, build on the other.

        Parameters
        ----------
        summary
            How time advances around the loop: an int advances an integer time, or
            the inner coordinate of a product.
        limit : int, optional
            Times whose (inner) coordinate would reach it never arrive.

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
            advance = self.timestamp.bounded(advance, limit)
        loop = Loop(self, advance, name)
        self._loops.append(loop)
        return loop, loop.stream

    # Scopes in scopes, each to be used in a `with`.

    def scoped(self, timestamp: Timestamp, name: str = "Scope") -> Scope:
        """A scope whose times are of a type that refines this scope's."""
        self._check_open("a scope")
        return Scope(self.environment, name, timestamp, self)

    def iterative(self, inner: Timestamp = Int, name: str = "Iterative") -> Scope:
        """A scope for loops: its times are pairs of this scope's time and a round."""
        return self.scoped(Product(self.timestamp, inner), name)

    def region(self, name: str = "Region") -> Scope:
        """A scope with the same times: one box around several operators."""
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
        """A builder for an operator with any numbers of inputs and outputs."""
        return OperatorBuilder(self, name)

    def reserve(self, name: str) -> int:
        """The number of a new operator, to be installed later."""
        self._check_open(f"operator {name!r}")
        self._names.append(name)
        return len(self._names) - 1

    def install(self, node: int, operator: Operate) -> None:
        """Put an operator in its place."""
        self._children[node] = operator

    def add_operator(self, operator: Operate) -> int:
        """Put in something that speaks `Operate`; its number."""
        node = self.reserve(operator.name)
        self.install(node, self._told(node, operator))
        return node

    def add_edge(self, edge: Edge, pact: str) -> None:
        """Note a stream between two operators."""
        self._edges.append(edge)
        self._structure.append(f"stream {edge.source} -> {edge.target} by {pact}")

    def new_stream(self, source: Port, tee: Tee) -> Stream[Any]:
        """The stream of an output."""
        return Stream(self, source, tee)

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

    def enter(self, stream: Stream[Any]) -> Stream[Any]:
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

    def leave(self, stream: Stream[Any]) -> Stream[Any]:
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
            self.parent.install(self.node, self.parent._told(self.node, self.subgraph))
            self.parent.scopes.append(self)
        else:
            self.subgraph.internal_summary()
            self.subgraph.set_external_summary([], [])

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
                    f"feedback {loop.name!r} of scope {self.name!r} was never connected; call "
                    "connect(stream) on its handle before the scope ends"
                )

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise BuildError(f"scope {self.name!r} is complete; {what} cannot be added to it")

    def __repr__(self) -> str:
        return f"Scope({self.name!r}, {self.timestamp!r})"
