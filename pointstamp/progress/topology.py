"""The graph of a scope: its places, how they are connected, and its paths.

A *location* is an operator's input port (a target) or output port (a source).
Locations are numbered from 0, so that what changes later lives in lists. Node 0
stands for the world outside: its targets are the scope's outputs, its sources
the scope's inputs; the paths from one to the other run outside the scope.

An operator of many ports mostly has a way from each input to each output, and they are all
alike. To have each of these ways as a step would cost their number, a million for a thousand
ports. So inputs that share their ways lead to a *hub*, and it leads to the outputs.

All of this is fixed before the first record flows. What is computed here once:
which cycles do not advance (an error), the summaries of the paths from every
location to the scope's outputs, and of those from an operator back to itself.

Source: timely-dataflow `progress/reachability.rs` (`Builder`, `summarize_outputs`,
`is_acyclic`).
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pointstamp.errors import BuildError, CycleError
from pointstamp.progress.antichain import Antichain
from pointstamp.progress.operate import Summaries, distinct_rows
from pointstamp.progress.timestamp import Timestamp, followed_by, summary_less_equal

_NO_CONSUMERS: list[tuple[int, int]] = []
"""Stays empty."""

_SAVED = 4
"""How many times as many steps without a hub as with it are reason to have one."""

Port = tuple[int, int]
"""(node, port); whether of a source or a target is said by where it stands."""


class Edge(NamedTuple):
    """A stream's way from a source to a target, inside one scope."""

    source: Port
    target: Port
    copies: int = 1
    """How many records arrive, over all workers, for one sent (broadcast: peers)."""


@dataclass(frozen=True, slots=True)
class Node:
    """What the graph needs to know of an operator."""

    name: str
    inputs: int
    outputs: int
    summaries: Summaries
    describe_way: Callable[[int, int], str] | None = None
    """Of a scope: the operators on a way through it, from an input to an output, in words."""


class PathStep(NamedTuple):
    """One step from a location to the next."""

    to: int
    summary: Any
    """How time advances; None where it stays (a stream from source to target, a way to a hub)."""


class Topology:
    """The locations of a scope, numbered, with the steps between them."""

    def __init__(self, timestamp: Timestamp, nodes: list[Node], edges: list[Edge]) -> None:
        self.timestamp = timestamp
        self.nodes = nodes
        self.edges = edges
        self.first: list[int] = []
        """Per node: the location of its first port; its inputs come before its outputs."""
        self.ports: list[tuple[int, int, bool]] = []
        """Per location: node, port, whether it is a target. Those of hubs are the last."""
        for index, node in enumerate(nodes):
            self.first.append(len(self.ports))
            self.ports += [(index, port, True) for port in range(node.inputs)]
            self.ports += [(index, port, False) for port in range(node.outputs)]
        self._n_ports = len(self.ports)
        self.steps: list[list[PathStep]] = [[] for _ in self.ports]
        self.consumers: list[list[tuple[int, int]]] = [[] for _ in self.ports]
        """Per source: (target, copies) of every stream that leaves it."""
        for edge in edges:
            self._add_edge(edge)
        for index, node in enumerate(nodes):
            self._add_internal_steps(index, node)
        # Without the room for more that lists have.
        self.steps = [steps[:] for steps in self.steps]
        self.consumers = [
            consumers[:] if consumers else _NO_CONSUMERS for consumers in self.consumers
        ]
        self._has_cycles = _has_cycles(self.steps)

    def target(self, node: int, port: int) -> int:
        """The location of an input port."""
        if not 0 <= port < self.nodes[node].inputs:
            raise BuildError(f"{self.describe_node(node)} has no input {port}")
        return self.first[node] + port

    def source(self, node: int, port: int) -> int:
        """The location of an output port."""
        if not 0 <= port < self.nodes[node].outputs:
            raise BuildError(f"{self.describe_node(node)} has no output {port}")
        return self.first[node] + self.nodes[node].inputs + port

    def describe(self, location: int) -> str:
        """The location in words."""
        node, port, is_target = self.ports[location]
        return f"{'input' if is_target else 'output'} {port} of {self.describe_node(node)}"

    def describe_node(self, node: int) -> str:
        """The operator in words."""
        return f"{self.nodes[node].name!r} [{node}]"

    def add_outside_step(self, output: int, input_: int, summary: Any) -> None:
        """Add a path that runs outside, from a scope output to a scope input."""
        self.steps[self.target(0, output)].append(PathStep(self.source(0, input_), summary))
        self._has_cycles = True  # maybe

    def check_cycles(self, scope: str = "") -> None:
        """Raise `CycleError` if some cycle need not advance time, naming its path.

        A cycle advances if one of its steps does. So all is well if, without the
        steps that strictly advance, no cycle is left. Cost: linear.
        """
        if not self._has_cycles:
            return
        staying = [
            [step.to for step in steps if step.summary is None or not step.summary.advances]
            for steps in self.steps
        ]
        cycle = _find_cycle(staying)
        if cycle is None:
            return
        cycle = self._without_hubs(cycle)
        if not self.ports[cycle[0]][2]:  # from a source on: begin at a target
            cycle = [*cycle[1:], cycle[0]]
        first = self.describe_node(self.ports[cycle[0]][0])
        path = " -> ".join([*self._describe_passages(cycle), first])
        where = f" of scope {scope!r}" if scope else ""
        raise CycleError(
            f"a loop{where} does not advance time: {path}; on every loop some step must strictly "
            "advance the timestamp, as a feedback with a positive summary does"
        )

    def describe_way(self, input_: int, output: int, stays: Callable[[Any], bool]) -> str:
        """The operators on a shortest way through the scope all of whose summaries `stays`."""
        start, end = self.source(0, input_), self.target(0, output)
        came_from = {start: start}
        work = deque([start])
        while work:
            location = work.popleft()
            for to, summary in self.steps[location]:
                if to not in came_from and (summary is None or stays(summary)):
                    came_from[to] = location
                    work.append(to)
        way = [end]
        while way[-1] != start and way[-1] in came_from:
            way.append(came_from[way[-1]])
        return " -> ".join(self._describe_passages(self._without_hubs(way[-2:0:-1])))

    def summaries_to_outputs(self) -> list[list[tuple[int, Any]]]:
        """Per location, (scope output, summary) for each minimal path inside the scope."""
        found: list[list[tuple[int, Any]]] = [[] for _ in self.ports]
        if not self.nodes[0].inputs:
            return found
        backwards: list[list[PathStep]] = [[] for _ in self.ports]
        for location, steps in enumerate(self.steps):
            if self.ports[location][0] or not self.ports[location][2]:  # not a step outside
                for to, summary in steps:
                    backwards[to].append(PathStep(location, summary))
        for output in range(self.nodes[0].inputs):
            start = self.target(0, output)
            paths = self._closure(start, backwards, lambda path, step: followed_by(step, path))
            for location, summaries in paths.items():
                found[location].extend((output, summary) for summary in summaries)
        return found

    def summaries_across(
        self, to_outputs: list[list[tuple[int, Any]]], summarize: Callable[[Any], Any]
    ) -> Summaries:
        """`[input][output]` of the scope, from `summaries_to_outputs`, as seen from outside."""
        rows: list[dict[int, Antichain]] = []
        for input_ in range(self.nodes[0].outputs):
            row: dict[int, Antichain] = {}
            for output, summary in to_outputs[self.source(0, input_)]:
                if output not in row:
                    row[output] = Antichain(summary_less_equal)
                row[output].insert(summarize(summary))
            rows.append(row)
        return rows

    def summaries_around(self, node: int) -> Summaries:
        """`[output][input]`: the paths from `node` back to itself, outside of it."""
        first = self.first[node]
        targets = range(first, first + self.nodes[node].inputs)
        outward = list(self.steps)
        for target in targets:
            outward[target] = []  # not through the node itself
        around = []
        for output in range(self.nodes[node].outputs):
            paths = self._closure(self.source(node, output), outward, followed_by)
            around.append({to - first: paths[to] for to in paths if to in targets})
        return around

    def greatest_reached(self, values: Mapping[int, int]) -> list[int]:
        """Per location, the greatest of the `values` of locations that paths lead to; else -1."""
        backward: list[list[int]] = [[] for _ in self.ports]
        for location, steps in enumerate(self.steps):
            for to, _ in steps:
                backward[to].append(location)
        greatest = [-1] * len(self.ports)
        for location in sorted(values, key=values.__getitem__, reverse=True):
            work = [location]
            while work:
                reached = work.pop()
                if greatest[reached] < 0:
                    greatest[reached] = values[location]
                    work.extend(backward[reached])
        return greatest

    def reachable_from(self, start: int) -> set[int]:
        """All locations on paths from `start`."""
        found, work = {start}, [start]
        while work:
            for to, _ in self.steps[work.pop()]:
                if to not in found:
                    found.add(to)
                    work.append(to)
        return found

    def nodes_in_loops(self) -> set[int]:
        """Every node on a cycle (and, harmlessly, those between two cycles).

        What is left when locations without a way in are removed again and again,
        and then those without a way out. Cost: linear.
        """
        if not self._has_cycles:
            return set()
        forward = [{step.to for step in steps} for steps in self.steps]
        backward: list[set[int]] = [set() for _ in self.ports]
        for location, following in enumerate(forward):
            for to in following:
                backward[to].add(location)
        left = _trim(_trim(set(range(len(self.ports))), backward, forward), forward, backward)
        return {self.ports[location][0] for location in left}

    def consumers_side_by_side(self) -> array[int]:
        """`consumers` in one array, which begins with where those of each source begin in it.

        They are (target, copies), one after the other, and end where those of the next one begin.
        """
        first, pairs = array("q"), array("q")
        n_before = len(self.consumers) + 1
        for consumers in self.consumers:
            first.append(n_before + len(pairs))
            for consumer in consumers:
                pairs.extend(consumer)
        first.append(n_before + len(pairs))
        return first + pairs

    def _without_hubs(self, way: list[int]) -> list[int]:
        return [location for location in way if location < self._n_ports]

    def _describe_passages(self, locations: list[int]) -> Iterator[str]:
        """The operators that are passed: each by a target, and then a source of it."""
        for target, source in zip(locations[::2], locations[1::2], strict=True):
            node, port, _ = self.ports[target]
            describe = self.nodes[node].describe_way
            inside = describe(port, self.ports[source][1]) if describe is not None else ""
            yield self.describe_node(node) + (f" (inside {inside})" if inside else "")

    def _add_edge(self, edge: Edge) -> None:
        source, target = self.source(*edge.source), self.target(*edge.target)
        self.steps[source].append(PathStep(target, None))
        self.consumers[source].append((target, edge.copies))

    def _add_internal_steps(self, index: int, node: Node) -> None:
        if index == 0:
            return
        if len(node.summaries) != node.inputs or any(
            row and not (0 <= min(row) <= max(row) < node.outputs)
            for row in distinct_rows(node.summaries)
        ):
            raise BuildError(
                f"operator {node.name!r} has {node.inputs} inputs and {node.outputs} outputs, "
                "but its internal summary is of another shape"
            )
        first = self.first[index]
        first_source = first + node.inputs
        sharing: dict[int, list[int]] = defaultdict(list)
        """By the identity of a row: the inputs that have it."""
        for port, row in enumerate(node.summaries):
            sharing[id(row)].append(first + port)
        for targets in sharing.values():
            row = node.summaries[targets[0] - first]
            if len(targets) * len(row) >= _SAVED * (len(targets) + len(row)):
                targets = [self._add_hub(index, targets)]
            for output, summaries in row.items():
                for target in targets:
                    self.steps[target] += [PathStep(first_source + output, s) for s in summaries]

    def _add_hub(self, index: int, targets: list[int]) -> int:
        """Lead all of `targets` to one new location."""
        hub = len(self.ports)
        self.ports.append((index, 0, False))
        self.steps.append([])
        self.consumers.append([])
        for target in targets:
            self.steps[target].append(PathStep(hub, None))
        return hub

    def _closure(
        self, start: int, steps: list[list[PathStep]], compose: Callable[[Any, Any], Any]
    ) -> dict[int, Antichain]:
        """The minimal summaries of all paths from `start`, by location."""
        found = {start: Antichain(summary_less_equal, [self.timestamp.identity])}
        work = deque([(start, self.timestamp.identity)])
        while work:
            location, path = work.popleft()
            for to, step in steps[location]:
                longer = path if step is None else compose(path, step)
                if longer is None:
                    continue
                if to not in found:
                    found[to] = Antichain(summary_less_equal)
                if found[to].insert(longer):
                    work.append((to, longer))
        return found


def _has_cycles(steps: list[list[PathStep]]) -> bool:
    """Whether locations are left when those without a way in are removed again and again."""
    n_into = [0] * len(steps)
    for following in steps:
        for to, _ in following:
            n_into[to] += 1
    bare = [location for location, n in enumerate(n_into) if not n]
    n_left = len(steps)
    while bare:
        n_left -= 1
        for to, _ in steps[bare.pop()]:
            n_into[to] -= 1
            if not n_into[to]:
                bare.append(to)
    return n_left > 0


def _trim(left: set[int], into: list[set[int]], out_of: list[set[int]]) -> set[int]:
    """`left` without what has, again and again, nothing of `left` in `into`."""
    counts = {location: len(into[location] & left) for location in left}
    bare = [location for location, count in counts.items() if not count]
    while bare:
        for following in out_of[bare.pop()]:
            if counts.get(following):
                counts[following] -= 1
                if not counts[following]:
                    bare.append(following)
    return {location for location, count in counts.items() if count}


def _find_cycle(successors: list[list[int]]) -> list[int] | None:
    """Some cycle of a graph, or None. Depth first, with a stack of our own."""
    unseen, open_, done = 0, 1, 2
    state = [unseen] * len(successors)
    for root in range(len(successors)):
        if state[root] != unseen:
            continue
        path: list[int] = [root]
        stack: list[Iterator[int]] = [iter(successors[root])]
        state[root] = open_
        while stack:
            following = next(stack[-1], None)
            if following is None:
                state[path.pop()] = done
                stack.pop()
            elif state[following] == open_:
                return path[path.index(following) :]
            elif state[following] == unseen:
                state[following] = open_
                path.append(following)
                stack.append(iter(successors[following]))
    return None
