"""Scopes: where operators are put together, and scopes in scopes.

A scope collects operators and the streams between them while its `with` block
runs. At the end it becomes a `Subgraph`: an operator of the scope around it. The
outermost one is what a worker steps.

Operators are numbered from 1 in the order of their making, which is the same on
all workers, since all run the same program; `structure` writes down what was
made, so that the workers can make sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from pointstamp.dataflow.alignment import Epochs
from pointstamp.dataflow.channels import Egress, Ingress, Queue, Tee
from pointstamp.dataflow.durability import OperatorState, epochs_of, refused
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.operator import Operator, OperatorBuilder
from pointstamp.dataflow.pact import Pact
from pointstamp.dataflow.program_lines import line_of_program
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError
from pointstamp.progress.activation import Activation
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import Operate
from pointstamp.progress.subgraph import Subgraph
from pointstamp.progress.timestamp import Int, Product, Timestamp
from pointstamp.progress.topology import Edge, Port

S = TypeVar("S")
"""The class of its streams."""
R = TypeVar("R", bound=StreamCore[Any])


class ScopeCore(Generic[S]):
    """What a `Scope` is without its operators."""

    stream_type: Callable[..., S]
    """The class of its streams, which a subclass says."""

    def __init__(
        self,
        environment: Environment,
        name: str,
        timestamp: Timestamp,
        parent: Self | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        if isinstance(timestamp, type) or not hasattr(timestamp, "less_equal"):
            raise BuildError(
                f"scope {name!r} cannot have times of {timestamp!r}, which is no type of times: "
                "give one such as ps.Int or ps.Product(ps.Int, ps.Int), or an instance of a "
                "subclass of ps.Timestamp"
            )
        _check_name(name)
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
        self.installed: Any = None
        """What the worker knows the outermost scope by, from the end of its making on."""
        self.scopes: list[Any] = []
        """The scopes in it, closed ones only."""
        self._activations: dict[int, Activation] = {}
        self._wake = wake if parent is None else parent.activation(self.node)
        self._names: list[str] = ["outside"]
        self._children: dict[int, Operate] = {}
        self._edges: list[Edge] = []
        self._pacts: list[str] = []
        """By edge: how its batches reach the workers, in words."""
        self._tees: dict[Port, Tee] = {}
        """In a durable dataflow: those of its streams, by their source; see `ends`."""
        self._entered: list[ChangeBatch] = []
        self._n_outputs = 0
        self.defer = environment.defer
        """One for all operators: each look at it would make another."""
        self.shared: dict[Any, Any] = {}
        """What operators have in common that never changes, by what it is; see `Operator`."""
        self.beside: dict[Any, Any] = {}
        """What layers below keep of it, by what is theirs: a type, or a function."""
        self.checks: list[Callable[[], object]] = []
        """Called before it is complete, for what is added in two steps."""
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

    # Scopes in scopes, each to be used in a `with`.

    def scoped(self, timestamp: Timestamp, name: str = "Scope") -> Self:
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
        return type(self)(self.environment, name, timestamp, self)

    def iterative(self, inner: Timestamp = Int, name: str = "Iterative") -> Self:
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

    def region(self, name: str = "Region") -> Self:
        """A scope with the same times: one box around several operators.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.region("box") as box:
        ...         return scope.to_stream([1]).enter(box).map(lambda x: x + 1).leave()
        >>> ps.testing.collect(build)
        [(0, 2)]
        """
        return self.scoped(self.timestamp, name)

    def __enter__(self) -> Self:
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

    def operator(self, name: str) -> OperatorBuilder[S]:
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
        """Reserve the number of a new operator, to be installed later."""
        self._check_open(f"operator {name!r}")
        _check_name(name)
        self._names.append(name)
        node = len(self._names) - 1
        if self.environment.lines is not None:
            self.environment.lines[self.number, node] = line_of_program()
        return node

    def install(self, node: int, operator: Operate) -> None:
        """Install an operator under a reserved number.

        Raises
        ------
        UndeclaredStateError
            If the dataflow is durable, and the operator is not made of Python code: what it
            keeps, cannot be stored.
        """
        durable_state = self.environment.durable_state
        if durable_state is not None and not isinstance(operator, Operator):
            OperatorState(durable_state, self.path_of(node), refused).refuse(
                "it is run elsewhere, and what it keeps there is not known"
            )
        self._children[node] = operator
        if self.environment.source_counts is not None and isinstance(operator, Operator):
            self.environment.source_counts.add(self.number, node, operator)

    def add_operator(self, operator: Operate) -> int:
        """Add an operator, anything that implements `Operate`; returns its number."""
        node = self.reserve(operator.name)
        self.install(node, self._logged(node, operator))
        return node

    def connect(
        self, stream: StreamCore[Any], target: Port, pact: Pact, consumed: ChangeBatch
    ) -> Queue:
        """Connect `stream` to an input `target`, (operator, input), of this scope.

        Returns the queue in which its batches wait. What is taken from it is counted in
        `consumed`, which the operator reports; arrivals ask for a visit of it.
        """
        node, _ = target
        self.check_stream(stream, self._names[node])
        given: Any = pact  # of any type, until it is looked at
        if isinstance(given, type) or not hasattr(given, "connect"):
            raise BuildError(
                f"operator {self._names[node]!r} of scope {self.name!r} needs a pact, such as "
                f"Pipeline() or Exchange(key); found {given!r:.200}"
            )
        pusher, queue = pact.connect(self.environment, self.activation(node), consumed)
        queue.reader = self._names[node]
        self.environment.bound(pusher, queue)
        stream.tee.pushers.append(pusher)
        self.add_edge(Edge(stream.source, target, pact.copies(self.peers)), pact.describe())
        return queue

    def add_edge(self, edge: Edge, pact: str) -> None:
        """Note a stream between two operators."""
        self._edges.append(edge)
        self._pacts.append(pact)

    def new_stream(self, source: Port, tee: Tee) -> S:
        """The stream of an output."""
        if self.environment.durable_state is not None:
            self._tees[source] = tee
        return self.stream_type(self, source, tee)

    def ends(self) -> list[S]:
        """Where a durable dataflow ends, as far as it is built in this scope.

        The streams that nothing reads, and those that an operator without outputs reads.
        """
        read = {edge.source for edge in self._edges}
        ends = [source for source in self._tees if source not in read]
        for source, (node, _), _ in self._edges:
            if not self._children[node].outputs and source not in ends:
                ends.append(source)
        return [self.new_stream(source, self._tees[source]) for source in ends]

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
        """How times of this scope relate to epochs, the times of its dataflow."""
        refinements: list[Any] = []
        scope = self
        while scope.parent is not None:
            refinements.append(scope._refinement)
            scope = scope.parent
        return epochs_of(scope.timestamp, refinements, scope.name)

    def activation(self, node: int) -> Activation:
        """The activation of operator `node`, which requests that it be scheduled."""
        activation = self._activations.get(node)
        if activation is None:
            activation = Activation(node)
            activation.subgraph = self.subgraph
            if self.subgraph is None:
                self._activations[node] = activation
        return activation

    def check_stream(self, stream: StreamCore[Any], operator: str) -> None:
        """Raise unless `stream` is a stream of this scope."""
        if not isinstance(stream, StreamCore):
            raise BuildError(
                f"operator {operator!r} of scope {self.name!r} reads streams, each given by "
                f"itself, and {stream!r:.200} is none"
            )
        if stream.scope is not self:
            reads = f"operator {operator!r} of scope {self.name!r} cannot read a stream of"
            if _outermost(stream.scope) is not _outermost(self):
                raise BuildError(
                    f"{reads} another dataflow, of scope {stream.scope.name!r}; build both in one "
                    "`with worker.dataflow()`, or capture() it there and replay() it here"
                )
            raise BuildError(
                f"{reads} scope {stream.scope.name!r}; bring it there with enter() or leave()"
            )

    def enter(self, stream: R, *, name: str = "") -> R:
        """See `Stream.enter`."""
        self._check_open("a stream")
        parent = self.parent
        if parent is None or stream.scope is not parent or self._refinement is None:
            raise BuildError(
                f"a stream of scope {stream.scope.name!r} cannot enter scope {self.name!r}, which "
                f"is in {parent.name if parent else None!r}: enter one scope at a time"
            )
        port = len(self._entered)
        entered: ChangeBatch = ChangeBatch()
        self._entered.append(entered)
        tee = Tee(name or stream.tee.name)
        activation = parent.activation(self.node)
        stream.tee.pushers.append(Ingress(tee, self._refinement, entered, activation))
        parent._cross(Edge(stream.source, (self.node, port)), "enter", name)
        return cast(R, self.new_stream((0, port), tee))

    def leave(self, stream: R, *, name: str = "") -> R:
        """See `Stream.leave`."""
        self._check_open("a stream")
        if self.parent is None or self._refinement is None:
            raise BuildError(
                f"a stream of the outermost scope {self.name!r} has nowhere to leave to"
            )
        port = self._n_outputs
        self._n_outputs += 1
        tee = Tee(name or stream.tee.name)
        stream.tee.pushers.append(Egress(tee, self._refinement))
        self._cross(Edge(stream.source, (0, port)), "leave", name)
        return cast(R, self.parent.new_stream((self.node, port), tee))

    def _cross(self, edge: Edge, way: str, name: str) -> None:
        """Note a stream across the border of a scope."""
        self.add_edge(edge, _crossing(way, name))
        if self._log is not None:
            self._log.crossing(self.number, edge.source, edge.target, way)

    # The end of building.

    def close(self) -> None:
        """Finish building; for the outermost scope, make the dataflow ready to run."""
        self._check_open("nothing")
        for check in self.checks:
            check()
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
            observer=None if self._log is None else self._log.observer(self.number),
        )
        for activation in self._activations.values():
            activation.subgraph = self.subgraph
        self._activations.clear()
        if self.parent is not None:
            self.parent._children[self.node] = self.parent._logged(self.node, self.subgraph)
            self.parent.scopes.append(self)
        else:
            self.subgraph.internal_summary()
            self.subgraph.set_external_summary([], [])

    def leads_to(self, stream: StreamCore[Any], later: StreamCore[Any]) -> bool:
        """Whether records on `stream` may cause records on `later`.

        Both are streams of this scope, which is complete. What may happen in scopes within is
        counted, at other operators what their path summaries say.
        """
        assert self.subgraph is not None
        topology = self.subgraph.topology
        start = topology.source(*stream.source)
        return topology.source(*later.source) in topology.reachable_from(start)

    def all_scopes(self) -> Iterator[Any]:
        """This scope and all scopes in it."""
        yield self
        for scope in self.scopes:
            yield from scope.all_scopes()

    def structure(self) -> list[str]:
        """What was built, a line for each part; the same on workers that built the same.

        Each says what it is of, a colon, and what about it has to be equal.
        """
        path = self.path
        lines = [f"{path}: times {self.timestamp.name}, number {self.number}"]
        for node in range(1, len(self._names)):
            child = self._children[node]
            lines.append(
                f"operator {child.name!r} [{node}] of {path}: {child.inputs} inputs, "
                f"{child.outputs} outputs{child.declared() if isinstance(child, Operator) else ''}"
            )
        lines.extend(
            f"stream from {self._place(edge.source, 'output')} to "
            f"{self._place(edge.target, 'input')} of {path}: {pact}"
            for edge, pact in zip(self._edges, self._pacts, strict=True)
        )
        for scope in self.scopes:
            lines.extend(scope.structure())
        return lines

    def _place(self, port: Port, kind: str) -> str:
        """A port of an operator in words, or one of the scope itself."""
        node, number = port
        return f"{kind} {number} of {self._names[node]!r} [{node}]" if node else f"port {number}"

    def _logged(self, node: int, operator: Operate) -> Operate:
        """`operator`, or what reports to the log of it, if there is one."""
        return operator if self._log is None else self._log.operate(self.number, node, operator)

    def _child(self, node: int) -> Operate:
        try:
            return self._children[node]
        except KeyError:
            raise BuildError(
                f"{self._names[node]!r} of scope {self.name!r} was begun and not finished; "
                "a nested scope is finished at the end of its `with` block, an operator by build()"
            ) from None

    def _check_open(self, what: str) -> None:
        if self.closed:
            more = "" if self.parent is None else "; call leave() of a stream in its `with` block"
            raise BuildError(f"scope {self.name!r} is complete; {what} cannot be added to it{more}")

    def __repr__(self) -> str:
        return f"Scope({self.name!r}, {self.timestamp!r})"


def _check_name(name: str) -> None:
    """Refuse what logs and messages between workers could not have: they are UTF-8."""
    try:
        name.encode()
    except (AttributeError, UnicodeEncodeError) as error:
        raise BuildError(
            f"an operator, a scope or a dataflow has a text for a name, which can be written as "
            f"UTF-8; found {name!r}"
        ) from error


def _crossing(way: str, name: str) -> str:
    return f"{way} as {name!r}" if name else way


def _outermost(scope: ScopeCore[Any]) -> ScopeCore[Any]:
    return scope if scope.parent is None else _outermost(scope.parent)
