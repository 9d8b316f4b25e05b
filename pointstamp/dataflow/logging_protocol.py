"""What a dataflow reports of itself, and to what: the seam for `pointstamp.observability`.

A worker with a log hands it down in its `Environment`. What is built asks for it once:
with a log, other classes are made (of operators, of queues), which report to it what they do;
without one, the ordinary ones, which know of none of this. So what is not logged costs
nothing, and what is logged is decided when it is built.

Progress is not reported here: it returns what happened, and the worker reports that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pointstamp.communication.communicator import Channel, Communicator
from pointstamp.progress.operate import CountObserver, Operate
from pointstamp.progress.topology import Port

if TYPE_CHECKING:
    from pointstamp.dataflow.capability import CapabilityCounts
    from pointstamp.dataflow.channels import Queue, Tee
    from pointstamp.dataflow.operator import Operator
    from pointstamp.dataflow.scope_core import ScopeCore


class Logger(Protocol):
    """The log of one worker, used from that worker's thread alone."""

    def watch(self, worker: Any) -> None:
        """This is the log of `worker`, which begins; called once."""

    # While a dataflow is built. Scopes go by their numbers, operators by scope and node.

    def begin_scope(self, number: int, parent: int | None, node: int, name: str) -> None:
        """A scope begins, as operator `node` of scope `parent` (None: a dataflow)."""

    def operator(self, scope: int, node: int, name: str) -> Callable[..., Operator]:
        """What to make an operator with: called as `Operator` is."""

    def operate(self, scope: int, node: int, operator: Operate) -> Operate:
        """What to put in the place of something else that speaks `Operate`."""

    def capabilities(self, operator: Operator) -> Callable[..., CapabilityCounts]:
        """What to make an operator's capabilities with: called as `CapabilityCounts` is."""

    def output(self, operator: Operator, tee: Tee) -> None:
        """An operator has this output, of which no stream was made yet."""

    def channel(self, channel: Channel) -> Channel:
        """What to use in place of a channel between workers."""

    def queue(self) -> Callable[..., Queue]:
        """What to make the end of a stream with: called as `Queue` is."""

    def connect(
        self, queue: Queue, operator: Operator, port: int, scope: int, source: Port, pact: str
    ) -> None:
        """The queue is that of an input, and of a stream from `source` in the same scope."""

    def crossing(self, scope: int, source: Port, target: Port, way: str) -> None:
        """A stream of a scope enters a scope in it, or leaves it: `way` is "enter" or "leave"."""

    def summaries(self, operator: Operator, table: Sequence[Mapping[int, Any]]) -> None:
        """An operator is built, with its path summaries by input and output."""

    def observer(self, scope: int) -> CountObserver | None:
        """What a scope reports the changes of its counts to, if to anything."""

    def stream(self, scope: ScopeCore[Any], what: str, name: str = "") -> Any:
        """The events of one type, in a dataflow of this worker."""

    # While it runs.

    def now(self) -> int:
        """The clock as the log reads it, for `visited`."""

    def visited(self, scope: int, began: int) -> None:
        """A dataflow was visited, by the number of its scope, since `now` gave `began`."""

    def progress_sent(self, scope: int, n_updates: int) -> None:
        """Every peer was sent updates of the counts of a scope."""

    def progress_received(self, scope: int, sender: int, n_updates: int) -> None:
        """The same, from one peer."""

    def park(self, park: Callable[[float | None], None], timeout_s: float | None) -> None:
        """Park; for a shorter time than was asked for, where events wait to be written."""

    def text(self, text: str) -> None:
        """A line of the user's."""

    def own(self, name: str, values: Mapping[str, Any]) -> None:
        """An event of a type of the user's."""

    def tick(self) -> None:
        """A step has ended."""

    def end_streams(self) -> None:
        """Nothing that is logged will happen any more: complete the streams."""

    def close(self) -> None:
        """Write what there is, and let go of everything."""


class LoggerFactory(Protocol):
    """What is to be logged, and where: makes the log of each worker."""

    def prepare(self) -> None:
        """Called once, before any worker begins, and where the program was started."""

    def simulated(self) -> LoggerFactory:
        """The same, by a clock that all workers of a simulation share, and that is no clock."""

    def begin(self, communicator: Communicator) -> Logger:
        """The log of a worker; called by that worker."""
