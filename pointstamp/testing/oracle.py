"""The truth about a simulated run, against which every frontier that is delivered is checked.

Safety (I1): no frontier may show a time as complete at a place while something
could still produce it there. The oracle looks at what there is, not at what was
counted: batches in queues and in the network, records collected and not yet sent,
capabilities alive, workers that have not begun. It lays all scopes out as one
graph, follows every path with its times, and compares with what operators, probes
and scopes on every worker believe. It shares no code with `progress` but the order
and the summaries of the timestamp types, whose laws have tests of their own.

When it looks: whenever a frontier is delivered to an operator, before it acts on that, and
after every decision of the simulation. A claim that is true stays true, so what
was not delivered anew need not be looked at again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pointstamp.communication.communicator import Message
from pointstamp.communication.simulated import SimulatedNetwork
from pointstamp.containers.codec import decode
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.operator import Operator
from pointstamp.progress.antichain import Antichain, MutableAntichain
from pointstamp.progress.input_frontier import InputFrontier
from pointstamp.progress.operate import Interest
from pointstamp.progress.subgraph import Subgraph
from pointstamp.progress.timestamp import Timestamp
from pointstamp.progress.topology import Node
from pointstamp.runtime.simulate import Simulation

CHECK_EVERY = 64
"""After how many decisions all counted antichains are recomputed."""


class SafetyError(AssertionError):
    """A frontier has passed a time that is not complete (I1)."""


class LivenessError(AssertionError):
    """A run ended with work left or times still expected (I2)."""


class Place(NamedTuple):
    """A port of an operator of some scope; the same on all workers."""

    scope: tuple[int, ...]
    node: int
    port: int
    is_target: bool


class Claim(NamedTuple):
    """What a frontier says: only times from it on can come at a place."""

    believer: str
    less_equal: Callable[[Any, Any], bool]
    frontier: Callable[[], Sequence[Any]]


Advance = Callable[[Any], Any]


@runtime_checkable
class Foreign(Protocol):
    """What the oracle asks of an operator that speaks `Operate` without an `OperatorBuilder`.

    It may call `Environment.watcher.notified(self)`, where there is a watcher, whenever it was
    given a frontier and before it acts on that.
    """

    timestamp: Timestamp

    @property
    def queues(self) -> Sequence[Any]:
        """Per input, the `Queue` in which its batches wait."""

    def believes(self) -> Sequence[list[Any]]:
        """Per input: times of which it takes one, or a later one, to be all that may come."""

    def holds(self) -> Iterable[tuple[int, Any]]:
        """(output, time) of all that this instance has and may send from."""

    def channels(self) -> Mapping[int, Callable[[Any], tuple[int, Any]]]:
        """By the number of a channel of its own: what a tag under way counts as in `holds`."""


@dataclass
class _Map:
    """A dataflow as one graph, all its scopes laid open."""

    steps: dict[Place, list[tuple[Place, Advance | None]]] = field(default_factory=dict)
    orders: dict[tuple[int, ...], Callable[[Any, Any], bool]] = field(default_factory=dict)
    names: dict[tuple[tuple[int, ...], int], str] = field(default_factory=dict)
    initial: list[tuple[Place, Any]] = field(default_factory=list)
    """The capabilities that each worker starts with."""
    claims: dict[Place, list[Claim]] = field(default_factory=dict)
    """What all workers' instances believe, by what it is about."""
    found: tuple[set[tuple[Place, Any]], dict[Place, list[Any]]] = field(default=(set(), {}))
    """What was explored last, and where that leads: most steps change nothing of it."""

    def leads_to(self, pointstamps: set[tuple[Place, Any]]) -> dict[Place, list[Any]]:
        """The same as `explore`."""
        if self.found[0] != pointstamps:
            self.found = pointstamps, self.explore(pointstamps)
        return self.found[1]

    def explore(self, pointstamps: set[tuple[Place, Any]]) -> dict[Place, list[Any]]:
        """The minimal times that `pointstamps` could lead to, everywhere."""
        reached: dict[Place, list[Any]] = {}
        work: deque[tuple[Place, Any]] = deque()
        for place, time in pointstamps:
            self._reach(reached, work, place, time)
        while work:
            place, time = work.popleft()
            for to, advance in self.steps[place]:
                arrived = time if advance is None else advance(time)
                if arrived is not None:
                    self._reach(reached, work, to, arrived)
        return reached

    def describe(self, place: Place) -> str:
        """The place in words."""
        side = "input" if place.is_target else "output"
        return f"{side} {place.port} of {self.names[place.scope, place.node]}"

    def _reach(
        self,
        reached: dict[Place, list[Any]],
        work: deque[tuple[Place, Any]],
        place: Place,
        time: Any,
    ) -> None:
        less_equal = self.orders[place.scope]
        known = reached.setdefault(place, [])
        for other in known:
            if less_equal(other, time):
                return
        known[:] = [other for other in known if not less_equal(time, other)]
        known.append(time)
        work.append((place, time))


@dataclass
class _Instance:
    """A dataflow on one worker."""

    worker: int
    number: int
    scopes: dict[tuple[int, ...], Subgraph] = field(default_factory=dict)
    operators: dict[tuple[tuple[int, ...], int], Operator] = field(default_factory=dict)
    foreign: dict[tuple[tuple[int, ...], int], Foreign] = field(default_factory=dict)
    queues: list[tuple[Place, Any]] = field(default_factory=list)
    """Of all inputs: the queues in which their batches wait."""
    outputs: list[tuple[Place, Any]] = field(default_factory=list)
    retired: bool = False


class Oracle:
    """Checks one simulation after every action; use it in a `with`, and pass its `observe` along.

    >>> from pointstamp.runtime.schedule import Schedule
    >>> def main(worker):
    ...     with worker.dataflow() as scope:
    ...         scope.to_stream([worker.index]).exchange().probe()
    >>> with Oracle() as oracle:
    ...     simulation = Simulation(2, Schedule(1), observe=oracle.observe)
    ...     results = simulation.run(main)
    >>> oracle.check_end(simulation)
    >>> oracle.n_checked > 0
    True
    """

    def __init__(self) -> None:
        self.n_checked = 0
        """How often a frontier was delivered to an operator, and checked."""
        self._simulation: Simulation | None = None
        self._maps: dict[int, _Map] = {}
        self._instances: dict[tuple[int, int], _Instance] = {}
        self._live: dict[int, tuple[int, Any]] = {}
        """By a capability's id: the id of its capabilities, and its time."""
        self._sources: dict[int, tuple[int, Place]] = {}
        """By the id of capabilities: dataflow and place."""
        self._listeners: dict[int, tuple[_Instance, tuple[int, ...], int]] = {}
        """By the id of an operator: where it is."""
        self._channels: dict[int, tuple[int, Callable[[Any], tuple[Place, Any]]]] = {}
        """By channel: the dataflow, and what place and time a tag on it means."""
        self._found: str | None = None

    def __enter__(self) -> Oracle:
        """Watch capabilities and operators of what is built until the end of the `with`."""
        Environment.watcher = self
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        Environment.watcher = None

    # As a watcher.

    def holds(self, capability: Capability, time: Any) -> None:
        """A capability was made, or moved."""
        self._live[id(capability)] = (id(capability._counts), time)

    def lets_go(self, capability: Capability) -> None:
        """A capability was dropped, or collected."""
        self._live.pop(id(capability), None)

    def notified(self, operator: Operator | Foreign) -> None:
        """A frontier was delivered to an operator: check it before it acts."""
        listener = self._listeners.get(id(operator))
        if listener is None or self._found is not None:
            return
        self.n_checked += 1
        instance, scope, node = listener
        self._check(instance.number, self._claims_of(instance, scope, node, operator))

    # As an observer.

    def observe(self, simulation: Simulation) -> None:
        """Check what everybody believes now; called after each decision.

        Raises
        ------
        SafetyError
            With the claim, and what contradicts it.
        """
        self._simulation = simulation
        self._meet_dataflows(simulation)
        # Messages that move change neither what is true nor what is believed.
        if simulation.schedule.decisions[-1][0] == "run":
            for number in self._maps:
                self._check(number)
        if self._found is not None:
            raise SafetyError(f"{self._found} ({simulation.where})")
        if len(simulation.schedule.decisions) % CHECK_EVERY == 0:
            self._check_antichains(simulation)

    def _check_antichains(self, simulation: Simulation) -> None:
        """Recompute every counted antichain from its counts, and compare."""
        try:
            for counts in self._antichains():
                counts.check()
        except AssertionError as wrong:
            raise AssertionError(
                f"a frontier differs from its counts: {wrong} ({simulation.where})"
            ) from None

    def _antichains(self) -> Iterator[MutableAntichain | InputFrontier]:
        for instance in self._instances.values():
            for subgraph in instance.scopes.values():
                yield from _antichains(subgraph)
            for operator in instance.operators.values():
                yield from operator.frontiers

    def check_end(self, simulation: Simulation) -> None:
        """Check that a run that ended well left nothing behind (I2).

        Raises
        ------
        LivenessError
            With what is left, and where.
        """
        self._meet_dataflows(simulation)
        self._check_antichains(simulation)
        for number, map_ in self._maps.items():
            for place, time in sorted(self._pointstamps(number), key=str):
                raise LivenessError(
                    f"the run ended, and at {map_.describe(place)} there is still something of "
                    f"time {time} ({simulation.where})"
                )
        for instance in self._instances.values():
            self._check_instance_end(instance, simulation)

    def _check_instance_end(self, instance: _Instance, simulation: Simulation) -> None:
        map_ = self._maps[instance.number]
        if not instance.retired:
            raise LivenessError(
                f"worker {instance.worker} ended without completing dataflow {instance.number} "
                f"({simulation.where})"
            )
        for (scope, node), operator in instance.operators.items():
            for port, counts in enumerate(operator.frontiers):
                if operator.frontier_interest[port] == Interest.ALWAYS and counts.frontier:
                    raise LivenessError(
                        f"the run ended, and {map_.describe(Place(scope, node, port, True))} on "
                        f"worker {instance.worker} still expects {counts.frontier} "
                        f"({simulation.where})"
                    )

    # What is believed.

    def _claims_of(
        self, instance: _Instance, scope: tuple[int, ...], node: int, operator: Operator | Foreign
    ) -> dict[Place, list[Claim]]:
        """What an operator believes of its inputs."""
        name = self._maps[instance.number].names[scope, node]
        believer = f"worker {instance.worker} has delivered to {name}"
        if isinstance(operator, Operator):
            frontiers = [partial(_delivered, operator, n) for n in range(len(operator.frontiers))]
        else:
            frontiers = [partial(_believed, operator, n) for n in range(len(operator.queues))]
        less_equal = operator.timestamp.less_equal
        return {
            Place(scope, node, port, True): [Claim(believer, less_equal, frontier)]
            for port, frontier in enumerate(frontiers)
        }

    def _claims_of_scope(
        self, instance: _Instance, scope: tuple[int, ...], subgraph: Subgraph
    ) -> dict[Place, list[Claim]]:
        """What a scope knows of the inputs of its operators, and of itself."""
        believer = f"worker {instance.worker}, scope {subgraph.name!r}, knows"
        return {
            Place(scope, node, port, is_target): [
                Claim(
                    believer,
                    subgraph.timestamp.less_equal,
                    partial(_known, instance, subgraph, location),
                )
            ]
            for location, (node, port, is_target) in enumerate(subgraph.topology.ports)
            if is_target is (node != 0)
        }

    # What is true.

    def _check(self, number: int, claims: Mapping[Place, Sequence[Claim]] | None = None) -> None:
        """Check some claims, or all there are."""
        if self._found is not None:
            return
        map_ = self._maps[number]
        if claims is None:
            claims = map_.claims
        pointstamps = self._pointstamps(number)
        for place, times in map_.leads_to(pointstamps).items():
            for claim in claims.get(place, ()):
                _, less_equal, read = claim
                frontier = read()
                for time in times:
                    for element in frontier:
                        if less_equal(element, time):
                            break
                    else:
                        self._found = self._explain(map_, claim, place, time, pointstamps)
                        return

    def _explain(
        self,
        map_: _Map,
        claim: Claim,
        at: Place,
        time: Any,
        pointstamps: set[tuple[Place, Any]],
    ) -> str:
        causes = [
            f"time {time_} at {map_.describe(place)}"
            for place, time_ in sorted(pointstamps, key=str)
            if time in map_.explore({(place, time_)}).get(at, ())
        ]
        return (
            f"{claim.believer} that at {map_.describe(at)} only times from "
            f"{claim.frontier()} on may come, but {time} still can, because of {'; '.join(causes)}"
        )

    def _pointstamps(self, number: int) -> set[tuple[Place, Any]]:
        """Everything of a dataflow that is unfinished, on any worker or between two."""
        found: set[tuple[Place, Any]] = set()
        for capabilities, time in self._live.values():
            dataflow, place = self._sources.get(capabilities, (None, None))
            if dataflow == number and place is not None:
                found.add((place, time))
        simulation = self._simulation
        assert simulation is not None
        for worker in range(len(simulation.workers)):
            instance = self._instances.get((worker, number))
            if instance is None:
                found.update(self._maps[number].initial)  # to come, once it is built
            else:
                found.update(_inside(instance))
        for channel, message in _under_way(simulation.network):
            dataflow, meaning = self._channels.get(channel, (None, None))
            if dataflow == number and meaning is not None:
                found.add(meaning(message.tag))
        return found

    # Getting to know the dataflows.

    def _meet_dataflows(self, simulation: Simulation) -> None:
        self._simulation = simulation
        for index, worker in enumerate(simulation.workers):
            if worker is None:
                continue
            for number, dataflow in worker._dataflows.items():
                if (index, number) not in self._instances and dataflow.root is not None:
                    self._meet(_Instance(index, number), dataflow.root)
            for (owner, number), instance in self._instances.items():
                if owner == index and number not in worker._dataflows:
                    instance.retired = True

    def _meet(self, instance: _Instance, root: Subgraph) -> None:
        self._instances[instance.worker, instance.number] = instance
        if instance.number not in self._maps:
            self._maps[instance.number] = map_ = _Map()
            _draw(map_, (), root)
        self._bind(instance, (), root)

    def _listen(self, instance: _Instance, claims: Mapping[Place, list[Claim]]) -> None:
        """Check these claims from now on."""
        of_all = self._maps[instance.number].claims
        for place, more in claims.items():
            of_all.setdefault(place, []).extend(more)

    def _bind(self, instance: _Instance, scope: tuple[int, ...], subgraph: Subgraph) -> None:
        instance.scopes[scope] = subgraph
        self._listen(instance, self._claims_of_scope(instance, scope, subgraph))
        for node, child in enumerate(subgraph.children, start=1):
            if isinstance(child, Subgraph):
                self._bind(instance, (*scope, node), child)
            elif isinstance(child, Operator):
                self._bind_operator(instance, scope, node, child)
            elif isinstance(child, Foreign):
                self._bind_foreign(instance, scope, node, child)
            else:
                raise TypeError(f"the oracle cannot look into {child.name!r}, a {type(child)}")

    def _bind_operator(
        self, instance: _Instance, scope: tuple[int, ...], node: int, operator: Operator
    ) -> None:
        number = instance.number
        instance.operators[scope, node] = operator
        self._listeners[id(operator)] = (instance, scope, node)
        for port, capabilities in enumerate(operator.capabilities):
            self._sources[id(capabilities)] = (number, Place(scope, node, port, False))
        for port, input_ in enumerate(operator._inputs):
            self._bind_queue(instance, input_._queue, Place(scope, node, port, True))
        for port, output in enumerate(operator._outputs):
            instance.outputs.append((Place(scope, node, port, False), output))
        self._listen(instance, self._claims_of(instance, scope, node, operator))

    def _bind_foreign(
        self, instance: _Instance, scope: tuple[int, ...], node: int, foreign: Foreign
    ) -> None:
        instance.foreign[scope, node] = foreign
        self._listeners[id(foreign)] = (instance, scope, node)
        for port, queue in enumerate(foreign.queues):
            self._bind_queue(instance, queue, Place(scope, node, port, True))
        for channel, meaning in foreign.channels().items():

            def place(tag: Any, meaning: Any = meaning) -> tuple[Place, Any]:
                output, time = meaning(tag)
                return Place(scope, node, output, False), time

            self._channels[channel] = (instance.number, place)
        self._listen(instance, self._claims_of(instance, scope, node, foreign))

    def _bind_queue(self, instance: _Instance, queue: Any, place: Place) -> None:
        instance.queues.append((place, queue))
        if queue._channel is not None:
            self._channels[queue._channel.id] = (instance.number, lambda tag: (place, tag))

    def _operators(self) -> Iterator[Operator]:
        """All operators on all workers."""
        for instance in self._instances.values():
            yield from instance.operators.values()


def _inside(instance: _Instance) -> Iterator[tuple[Place, Any]]:
    """What waits in queues of one worker, and what it has collected to send."""
    for place, queue in instance.queues:
        if queue._next is not None:
            yield place, queue._next[0]
        for time, _ in queue._local:
            yield place, time
        for time, _ in queue._later:
            yield place, time
    for place, output in instance.outputs:
        if output.n_collected():
            yield place, output._time
    for (scope, node), foreign in instance.foreign.items():
        for port, time in foreign.holds():
            yield Place(scope, node, port, False), time


def _delivered(operator: Operator, port: int) -> Sequence[Any]:
    return operator.frontiers[port].frontier


def _believed(foreign: Foreign, port: int) -> Sequence[Any]:
    return foreign.believes()[port]


def _known(instance: _Instance, subgraph: Subgraph, location: int) -> Sequence[Any]:
    return () if instance.retired else subgraph._tracker.frontier(location)


def _under_way(network: SimulatedNetwork) -> Iterator[tuple[int, Message]]:
    """(channel, message) of all that was sent and not yet taken by a worker."""
    for (sender, _, channel), waiting in network._waiting.items():
        for sent in waiting:
            tag, batch = decode(sent) if network._serialize else sent
            yield channel, Message(sender, tag, batch)
    for mailbox in network._mailboxes:
        for channel, arrived in mailbox._queues.items():
            for message in arrived:
                yield channel, message


def _draw(map_: _Map, scope: tuple[int, ...], subgraph: Subgraph) -> None:
    """Lay out a scope, and the scopes in it."""
    map_.orders[scope] = subgraph.timestamp.less_equal
    map_.names[scope, 0] = f"scope {subgraph.name!r} {list(scope)}"
    for port in range(subgraph.inputs):
        map_.steps[Place(scope, 0, port, False)] = []
    for port in range(subgraph.outputs):
        map_.steps[Place(scope, 0, port, True)] = []
    for node, child in enumerate(subgraph.children, start=1):
        map_.names[scope, node] = f"{child.name!r} {[*scope, node]}"
        for port in range(child.inputs):
            map_.steps[Place(scope, node, port, True)] = []
        for port in range(child.outputs):
            map_.steps[Place(scope, node, port, False)] = []
        if isinstance(child, Subgraph):
            _draw(map_, (*scope, node), child)
            _draw_border(map_, scope, node, child)
        elif isinstance(child, Operator):
            _draw_initial(map_, scope, node, child)
        if not isinstance(child, Subgraph):
            _draw_operator(map_, scope, node, subgraph.topology.nodes[node])
    for edge in subgraph.edges:
        map_.steps[Place(scope, *edge.source, False)].append(
            (Place(scope, *edge.target, True), None)
        )


def _draw_border(map_: _Map, scope: tuple[int, ...], node: int, inner: Subgraph) -> None:
    inside = (*scope, node)
    for port in range(inner.inputs):
        way_in = (Place(inside, 0, port, False), inner.refinement.to_inner)
        map_.steps[Place(scope, node, port, True)].append(way_in)
    for port in range(inner.outputs):
        way_out = (Place(scope, node, port, False), inner.refinement.to_outer)
        map_.steps[Place(inside, 0, port, True)].append(way_out)


def _draw_initial(map_: _Map, scope: tuple[int, ...], node: int, operator: Operator) -> None:
    for port, initial in enumerate(operator.initial):
        if initial:
            map_.initial.append((Place(scope, node, port, False), operator.timestamp.minimum))


def _draw_operator(map_: _Map, scope: tuple[int, ...], node: int, drawn: Node) -> None:
    for port, row in enumerate(drawn.summaries):
        for output, summaries in row.items():
            map_.steps[Place(scope, node, port, True)].extend(
                (Place(scope, node, output, False), summary.results_in)
                for summary in _elements(summaries)
            )


def _elements(antichain: Antichain) -> list[Any]:
    return list(antichain)


def _antichains(subgraph: Subgraph) -> Iterator[MutableAntichain]:
    for tracker in (subgraph._tracker, *subgraph._views.values()):
        yield from tracker._pointstamps
        yield from tracker._implications
    yield from subgraph._output_capabilities
