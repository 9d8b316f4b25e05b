"""A Python operator, as a place to put code and as its parent sees it.

`OperatorBuilder` connects inputs and outputs and takes the logic; `Operator`
speaks `Operate` for it: it runs the logic, flushes the outputs, and reports in
one go what was consumed, what is held and what was produced. Because it reports
only between activations, consuming a batch and the capability retained for it
are one report, however the code in between is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.dataflow.alignment import AlignedFrontier, EpochAligner
from pointstamp.dataflow.capability import Capability, CapabilityCounts
from pointstamp.dataflow.channels import Tee
from pointstamp.dataflow.durability import OperatorState
from pointstamp.dataflow.handles import BuiltInLogic, Frontier, Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator_error import operator_error
from pointstamp.dataflow.operator_info import OperatorInfo as OperatorInfo
from pointstamp.dataflow.operator_logic import check_code, check_logic
from pointstamp.dataflow.pact import Exchange, Pact
from pointstamp.dataflow.ways import FEW_WAYS, STAYS, Connections, Ways, staying
from pointstamp.errors import BuildError, OperatorError
from pointstamp.progress.activation import activation_of
from pointstamp.progress.antichain import Antichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.input_frontier import InputFrontier
from pointstamp.progress.operate import (
    Changes,
    DirectOperate,
    Interest,
    ProgressReport,
    Summaries,
    distinct_rows,
)
from pointstamp.progress.timestamp import Timestamp

if TYPE_CHECKING:
    from pointstamp.dataflow.scope_core import ScopeCore
    from pointstamp.dataflow.stream_core import StreamCore

Logic = Callable[[list[Input], list[Output]], Any]

S = TypeVar("S")

UNFINISHED = object()
"""What a logic returns to have the dataflow wait for it although it holds no capability:
what it has begun outside, a program for one, has still to end, and will have it run again."""

_UNFINISHED = UNFINISHED  # compiled, a variable of C

_NO_REPORT = ProgressReport((), (), (), False)


def _idle(inputs: list[Input], outputs: list[Output]) -> None:
    """The logic of an operator that has none yet, or none any more."""


class Operator(DirectOperate):
    """Runs the logic of one operator and reports on it; see `Operate`."""

    local = True
    wants_outside = False

    __slots__ = (
        "_active",
        "_built_in",
        "_call",
        "_idle",
        "_inputs",
        "_logic",
        "_outputs",
        "_summaries",
        "activation",
        "aligner",
        "capabilities",
        "complete",
        "consumed",
        "frontier_interest",
        "frontiers",
        "initial",
        "inputs",
        "name",
        "notificators",
        "outputs",
        "parameters",
        "produced",
        "role",
        "timestamp",
        "watcher",
    )

    def __init__(
        self,
        name: str,
        timestamp: Timestamp,
        wake: Callable[[], None],
        call: Callable[[Callable[[], object]], None],
        watcher: Any = None,
    ) -> None:
        self._call = call
        self.watcher = watcher
        self.complete = True
        self.name = name
        self.timestamp = timestamp
        self.parameters = ""
        """What it was given that all workers must have given alike, beside its ports."""
        self.role = ""
        """What it is for observers: "input", "probe", or nothing in particular."""
        self.inputs = 0
        self.outputs = 0
        self.frontier_interest: list[Interest] = []
        self.frontiers: list[InputFrontier] = []
        self.capabilities: list[CapabilityCounts] = []
        self.initial: list[bool] = []
        # Of batches. When all ports are known they are tuples: one object, where a list is two.
        self.consumed: Any = []
        self.produced: Any = []
        self.notificators: list[Notificator] = []
        self._inputs: list[Input] = []
        self._outputs: list[Output] = []
        self._summaries: list[dict[int, Antichain]] = []
        self._logic: Logic = _idle
        self._built_in: BuiltInLogic | None = None
        """The same, if it is of this library."""
        self.aligner: EpochAligner | None = None
        """Of an operator that keeps state, in a durable dataflow."""
        self.activation = activation_of(wake)
        self._idle = self._active = _NO_REPORT
        """The second is another one from when it asks for another visit; few ever do."""

    @property
    def holds_capability(self) -> bool:
        """Whether any output's capabilities are not empty."""
        return self.holds()

    def holds(self) -> bool:
        """The same, for a scope that is compiled."""
        for capabilities in self.capabilities:
            if capabilities.n_held:
                return True
        return False

    def is_complete(self) -> bool:
        """`complete`, for a scope that is compiled."""
        return self.complete

    def internal_summary(self) -> tuple[Summaries, Changes]:
        """As declared when it was built."""
        least = self.timestamp.minimum
        return self._summaries, [
            ChangeBatch([(least, 1)] if initial else []) for initial in self.initial
        ]

    def set_external_summary(self, summaries: Summaries, capabilities: Changes) -> None:
        """Replace the frontiers assumed while building by what may really come.

        An input that gets nothing keeps the least time, which is always true: an empty
        frontier would say to code that reads it all the same that nothing comes.
        """
        changed = zip(self.frontiers, capabilities, self.frontier_interest, strict=True)
        for frontier, changes, interest in changed:
            if interest == Interest.NEVER:
                continue
            for time, change in changes.drain():
                frontier.change(time, change)
            frontier.change(self.timestamp.minimum, -1)

    def push_external_progress(self, changes: Changes) -> None:
        """Move the frontiers that the logic sees."""
        has_changed = False
        for port, batch in enumerate(changes):
            if not batch.is_empty():
                has_changed = True
                frontier = self.frontiers[port]
                frontier.take(batch)
        if has_changed and self.watcher is not None:
            self.watcher.notified(self)

    def pull_internal_progress(self) -> ProgressReport:
        """Run the logic once, send what it gave, report."""
        again = self._run()
        if self.activation.has_collected:
            # From when it was set back, a collected capability is the worker's to settle.
            self.activation.has_collected = False
            for capabilities in self.capabilities:
                capabilities.settle()
        is_active = again is True
        if not is_active:
            for notificator in self.notificators:
                if notificator.overlooked():
                    is_active = True
        if self.aligner is not None and self.aligner.after(self.capabilities):
            is_active = True
        for input_ in self._inputs:
            if input_.end_round():
                is_active = True
        self.complete = again is not _UNFINISHED
        return self._report(is_active)

    def _run(self) -> Any:
        """Run the logic once, and send what it gave."""
        self.activation.is_at_work = True
        try:
            if self._built_in is not None:
                again = self._built_in.run(self._inputs, self._outputs)
            else:
                again = self._logic(self._inputs, self._outputs)
            for output in self._outputs:
                output.flush()
        except OperatorError:
            raise
        except Exception as error:
            raise operator_error(error, self.name, self._time()) from error
        finally:
            self.activation.is_at_work = False
        return again

    def _report(self, is_active: bool) -> ProgressReport:
        """What to report: the batches, and whether to be visited again."""
        idle = self._idle
        if is_active and self._active is idle:
            self._active = ProgressReport(idle.internal, idle.consumed, idle.produced, True)
        return self._active if is_active else idle

    def collected(self, capabilities: CapabilityCounts) -> None:
        """A capability was garbage, and no activation is under way that settles it."""
        self._call(capabilities.settle_late)

    def abandon(self) -> None:
        """Say nothing more, and throw away what waits here.

        The counts that are kept on this worker and its peers stay as they are: what
        this operator held is held for ever, so no operator sees that a time is complete.
        `let_go` follows, so that capabilities that go with the logic are not reported.
        """
        for capabilities in self.capabilities:
            capabilities.abandon()
        for output in self._outputs:
            output.abandon()
        for input_ in self._inputs:
            input_.abandon()
        self._inputs, self._outputs = [], []
        self.notificators.clear()

    def let_go(self) -> None:
        """Let go of the logic, and so of what it holds."""
        self._logic = _idle
        self._built_in = None

    def end_ports(self, alike: Callable[[str, list[Any], list[Any]], list[Any]]) -> None:
        """No port comes after this: let go of the room for more; what is `alike` is shared."""
        interests, initial = self.frontier_interest, self.initial
        self.frontiers = self.frontiers[:]
        if not any(interests):
            self.frontiers = alike("frontiers", self.frontiers, interests)
        self.frontier_interest = alike("interests", interests[:], interests)
        self.initial = alike("initial", initial[:], initial)
        self.capabilities = self.capabilities[:]
        self.consumed, self.produced = tuple(self.consumed), tuple(self.produced)

    def set_logic(self, logic: Logic, inputs: list[Input], outputs: list[Output]) -> None:
        """Complete the operator; nothing is added after this."""
        self._logic = logic
        self._built_in = logic if isinstance(logic, BuiltInLogic) else None
        self._inputs = inputs
        self._outputs = outputs
        held = tuple([capabilities.changes for capabilities in self.capabilities])
        self._idle = self._active = ProgressReport(held, self.consumed, self.produced, False)

    def declared(self) -> str:
        """What all workers must have declared alike, for `Scope.structure`."""
        identity = self.timestamp.identity
        is_plain = all(
            len(row) == self.outputs and len(staying(row, identity)) == self.outputs
            for row in distinct_rows(self._summaries)
        )
        rows = [
            {output: [_written(s) for s in row[output]] for output in sorted(row)}
            for row in ([] if is_plain else self._summaries)
        ]
        text = f", with {self.parameters}" if self.parameters else ""
        text += "" if is_plain else f", summaries {rows}"
        return text if all(self.initial) else f"{text}, initial capabilities {self.initial}"

    def set_summaries(self, summaries: list[dict[int, Antichain]]) -> None:
        """How times advance, by input and by output that it leads to."""
        self._summaries = summaries

    def _time(self) -> Any:
        """Of what it was at work on, for error messages; None if that is not known.

        Of a time that a notificator gave out last, and not of a batch that came before it.
        """
        for notificator in self.notificators:
            if notificator.last_time is not None:
                return notificator.last_time
        return next(
            (input_.last_time for input_ in self._inputs if input_.last_time is not None), None
        )


def _written(summary: Any) -> str:
    """The same in every process: not the default `repr`, which has an address."""
    has_own = type(summary).__repr__ is not object.__repr__  # type: ignore[comparison-overlap]  # both are bound late
    return repr(summary) if has_own else type(summary).__name__


def _has_to_say(code: Any) -> bool:
    """Whether an operator with this code has to say what it keeps from epoch to epoch.

    Of our own operators on streams we know that they keep nothing, or say so. Of those on
    collections most keep something, so that one which does not say it is refused.
    """
    module = str(getattr(code, "__module__", "")).split(".")
    return module[0] != "pointstamp" or module[1:2] == ["collections"]


class OperatorBuilder(Generic[S]):
    """Makes an operator with any numbers of inputs and outputs.

    Connect inputs and outputs first, then call `build` with a function that is
    given the initial capabilities (one for each output) and the operator's info,
    and returns the logic: a function of the lists of inputs and outputs, called
    at each activation. If the logic returns True it is called again soon; `UNFINISHED` has
    the dataflow wait for it without a capability.
    """

    def __init__(self, scope: ScopeCore[S], name: str) -> None:
        self._scope = scope
        self._node = scope.reserve(name)
        environment = scope.environment
        self._log = environment.log
        make = Operator if self._log is None else self._log.operator(scope.number, self._node, name)
        self._operator = make(
            name,
            scope.timestamp,
            scope.activation(self._node),
            scope.defer,
            environment.watcher,
        )
        self._inputs: list[Input] = []
        self._outputs: list[Output] = []
        self._ways = Ways(name, scope.timestamp, scope.shared)
        self._is_built = False
        self._queues: list[Any] = []
        self.states = OperatorState(
            scope.environment.durable_state,
            scope.path_of(self._node),
            self._make_aligner,
            scope.environment.texts_held,
        )
        """What the operator declares of what it keeps."""

    @property
    def info(self) -> OperatorInfo:
        """What the logic may want to know."""
        scope = self._scope
        backpressure = scope.environment.backpressure
        return OperatorInfo(
            self._operator.name,
            (*scope.address, self._node),
            scope.environment.index,
            scope.environment.peers,
            activate := scope.activation(self._node),
            scope.environment,
            lambda: backpressure is not None and backpressure.throttles(activate),
            self.states,
            scope.timestamp,
            [Frontier(counts) for counts in self._operator.frontiers],
            self._operator.notificators,
        )

    def new_input(
        self,
        stream: StreamCore[Any],
        pact: Pact,
        interest: Interest = Interest.ALWAYS,
        summaries: Connections | None = None,
    ) -> int:
        """Connect `stream` to a new input; its number.

        Parameters
        ----------
        stream : Stream
            Of this scope.
        pact : Pact
            How its batches reach the workers.
        interest : Interest
            When a change of its frontier is a reason to run.
        summaries : sequence or mapping, optional
            For each output so far how times advance on the way there, as for
            `new_output`. The default leaves times as they are.
        """
        operator = self._operator
        self._check_open("is given an input")
        port = operator.inputs
        if isinstance(pact, Exchange):
            self.states.is_exchanged = True
        consumed: ChangeBatch = ChangeBatch()
        queue = self._scope.connect(stream, (self._node, port), pact, consumed)
        if self._log is not None:
            number = self._scope.number
            self._log.connect(queue, operator, port, number, stream.source, pact.describe())
        operator.inputs += 1
        operator.consumed.append(consumed)
        operator.frontier_interest.append(interest)
        operator.frontiers.append(self._new_frontier(interest))
        self._queues.append(queue)
        self._ways.add_input(summaries)
        return port

    def _new_frontier(self, interest: Interest) -> InputFrontier:
        """What an input sees of what may come: at first, anything."""
        timestamp = self._operator.timestamp
        least = [(timestamp.minimum, 1)]
        if self._scope.environment.durable_state is not None:
            return AlignedFrontier(timestamp, least)
        if interest != Interest.NEVER:
            return InputFrontier(timestamp, least)
        # It never changes: one for all inputs of the scope to which no frontier is delivered.
        shared: InputFrontier | None = self._scope.shared.get(InputFrontier)
        if shared is None:
            shared = self._scope.shared[InputFrontier] = InputFrontier(timestamp, least)
        return shared

    def new_output(self, *, initial: bool = True, summaries: Connections | None = None) -> S:
        """A new output, as a stream.

        Parameters
        ----------
        initial : bool
            Whether the operator starts with a capability for it. Without one it
            can send only at times of what it receives.
        summaries : sequence or mapping, optional
            For each input so far how times advance on the way to this output: a
            summary, a list of several of which none is at or before another, or None
            where there is no way. What cannot come by any way does not hold the
            frontier of the output back. A mapping has the inputs from which there is a way,
            and `connect` adds to it. The default is a way from each that leaves times as
            they are.

        Notes
        -----
        An operator costs in proportion to its ways: one of thousands of ports gives mappings.
        """
        scope, operator = self._scope, self._operator
        self._check_open("is given an output")
        port = operator.outputs
        operator.outputs += 1
        produced: ChangeBatch = ChangeBatch()
        tee = Tee(operator.name, produced, scope.environment.fail)
        make = CapabilityCounts if self._log is None else self._log.capabilities(operator)
        capabilities = make(
            operator.name,
            port,
            operator.timestamp,
            operator.activation,
            operator.collected,
            operator.watcher,
        )
        operator.produced.append(produced)
        operator.capabilities.append(capabilities)
        if self._log is not None:
            self._log.output(operator, tee)
        operator.initial.append(initial)
        self._outputs.append(Output(tee, capabilities))
        self._ways.add_output(summaries)
        return scope.new_stream((self._node, port), tee)

    def build(
        self,
        make_logic: Callable[
            [list[Capability], OperatorInfo], Callable[[list[Input], list[Output]], Any]
        ],
        code: Any = None,
    ) -> None:
        """Give the operator its code; `code` is what `make_logic` calls, if that is another's."""
        operator = self._operator
        self._check_open("is built a second time")
        check_code(make_logic, operator.name)
        self._is_built = True
        self._finish_ports()
        # The list is made in the call, so that no name here keeps a capability alive.
        logic = make_logic(
            [
                capabilities.add(operator.timestamp.minimum)
                for capabilities, initial in zip(
                    operator.capabilities, operator.initial, strict=True
                )
                if initial
            ],
            self.info,
        )
        check_logic(logic, operator.name)
        if self.states.durable_state is not None and _has_to_say(code or make_logic):
            self.states.check_said()
        self.states.end_building(operator)
        for capabilities in operator.capabilities:
            # The initial capabilities are known to all; only what changes is reported.
            if operator.initial[capabilities.output]:
                capabilities.changes.update(operator.timestamp.minimum, -1)
        operator.set_logic(logic, self._inputs, self._outputs)
        self._scope.install(self._node, operator)

    def _make_aligner(self) -> EpochAligner:
        """Have snapshots wait for this operator's epochs, and later epochs for snapshots."""
        operator, scope = self._operator, self._scope
        if not operator.inputs:
            self.states.refuse("it has no input that would say how far epochs have come")
        aligner = EpochAligner(
            scope.path_of(self._node),
            scope.epochs(),
            [counts for counts in operator.frontiers if isinstance(counts, AlignedFrontier)],
            scope.activation(self._node),
        )
        aligner.begin(operator.initial, operator.timestamp.minimum)
        memory = self._scope.environment.memory
        for port, queue in enumerate(self._queues):
            queue.guard(aligner.waiting(deque if memory is None else memory.queue))
            operator.frontier_interest[port] = Interest.ALWAYS
        operator.aligner = aligner
        return aligner

    def declare(self, **parameters: Any) -> None:
        """Have workers compare these parameters: plain values, the same in every process."""
        said = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        self._operator.parameters = said

    def set_role(self, role: str) -> None:
        """Say what the operator is for: "input", "source" or "probe"; for observers."""
        self._operator.role = role

    def connect(self, input_: int, output: int, summary: Any = STAYS) -> None:
        """Say how times advance from one input to one output.

        Parameters
        ----------
        input_, output : int
            Their numbers.
        summary : optional
            As for `new_output`: a summary, a list of several, or None where there is no way.
            The default leaves times as they are.

        Examples
        --------
        >>> import pointstamp as ps
        >>> def swapped(scope):
        ...     builder = scope.operator("Swap")
        ...     for numbers in ([1, 2], [3, 4]):
        ...         builder.new_input(scope.to_stream(numbers), ps.Pipeline())
        ...     streams = [builder.new_output(initial=False, summaries={}) for _ in range(2)]
        ...     builder.connect(0, 1)
        ...     builder.connect(1, 0)
        ...     def build(capabilities, info):
        ...         def logic(inputs, outputs):
        ...             for i, input in enumerate(inputs):
        ...                 for time, batch in input:
        ...                     outputs[1 - i].session(time).give_batch(batch)
        ...         return logic
        ...     builder.build(build)
        ...     return streams[0]
        >>> ps.testing.collect(swapped)
        [(0, 3), (0, 4)]
        """
        self._check_open("has a way said")
        self._ways.connect(input_, output, summary)

    def _check_open(self, what: str) -> None:
        if self._is_built:
            raise BuildError(
                f"operator {self._operator.name!r} {what} after build(), which comes last, once: "
                "its inputs, outputs and ways are complete then"
            )

    @property
    def output_handles(self) -> list[Output]:
        """The outputs, for operators that are driven from outside."""
        return self._outputs

    @property
    def frontiers(self) -> list[InputFrontier]:
        """The frontiers of the inputs, live."""
        return self._operator.frontiers

    def _finish_ports(self) -> None:
        operator = self._operator
        operator.end_ports(self._alike)
        table, each_stays = self._ways.finish(self._scope.environment.durable_state is None)
        operator.set_summaries(table)
        if self._log is not None:
            self._log.summaries(operator, table)
        self._inputs = [
            Input(operator.name, port, queue, counts, operator.capabilities, row, stays)
            for port, (queue, counts, row, stays) in enumerate(
                zip(self._queues, operator.frontiers, table, each_stays, strict=True)
            )
        ]

    def _alike(self, what: str, values: list[Any], said: list[Any]) -> list[Any]:
        """`values`, or the list of another operator of the scope of which the same is `said`.

        It never changes, or it is one of its own: in a durable dataflow interests do.
        """
        if len(values) > FEW_WAYS or self._scope.environment.durable_state is not None:
            return values
        shared: list[Any] = self._scope.shared.setdefault((what, *said), values)
        return shared
