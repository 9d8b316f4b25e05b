"""What the code of an operator may know of its place, and ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.activator import ThreadActivator
from pointstamp.dataflow.durability import OperatorState, no_state
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.handles import Frontier
from pointstamp.dataflow.notificator import Notificator
from pointstamp.progress.timestamp import Int, Timestamp

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_columns import KeyedColumns


@dataclass(frozen=True)
class OperatorInfo:
    """What an operator's code may want to know about its place."""

    name: str
    address: tuple[int, ...]
    """Indices of the scopes around it, from the dataflow down, then its own."""
    index: int
    """The worker's number."""
    peers: int
    """How many workers there are."""
    activate: Callable[[], None]
    """Asks for the operator to be run again."""
    environment: Environment = field(repr=False, compare=False)
    """What else it may know of the worker; `environment.closers`, for one."""
    is_throttled: Callable[[], bool] = lambda: False
    """For operators that make new data: whether enough of this dataflow is in flight. If so
    they should return without any; they are run again when they may go on."""
    states: OperatorState = field(default_factory=no_state, repr=False, compare=False)
    """What it declares of what it keeps; see `state`."""
    timestamp: Timestamp = field(default=Int, repr=False, compare=False)
    """Of its scope."""
    frontiers: Sequence[Frontier] = field(default=(), repr=False, compare=False)
    """Of its inputs: the times that may still come."""
    notificators: list[Notificator] = field(default_factory=list, repr=False, compare=False)
    """Those that it has, which its errors and its activations ask."""

    def notificator(self, *, early: bool = False) -> Notificator:
        """A notificator over all inputs of the operator, to be asked for in `build`.

        With `early` it gives times out as soon as all before them are complete. The
        operator must see its frontiers (`Interest.IF_CAPABILITY` at least).
        """
        made = Notificator(self.timestamp, self.frontiers, early=early)
        self.notificators.append(made)
        return made

    def new_batches(self) -> Any:
        """An empty list for batches that wait; of a run with a `memory_limit` one that spills.

        That is a sequence with `append`, `extend` and `clear`, of which what does not fit is
        on disk: iterating reads one batch at a time.
        """
        memory = self.environment.memory
        return [] if memory is None else memory.list()

    def state(
        self, name: str = "state", *, route: Callable[[Any], Any] | None = None
    ) -> dict[Any, Any]:
        """A dictionary that outlasts the program, where the dataflow is durable.

        To be asked for in `build`; when the program starts again it holds what it held
        when the snapshot's epoch was complete, of the keys that this worker has.

        Parameters
        ----------
        name : str
            Of the table: unique in the operator, and the same next time.
        route : callable, optional
            Of a key of the table, what the operator's records are exchanged by, where that
            is not the key itself: `lambda vertex: 0` if all go to one worker.

        Notes
        -----
        Where the operator's inputs are exchanged, a key comes to the worker that its records
        come to; where they are not, to any. A value that is changed in place must be put again,
        `table[key] = value`. What is held for times beyond an epoch is held by the program
        alone, unless it is in a table.

        Raises
        ------
        BuildError
            If the operator has declared a table of this name already.
        CheckpointStructureError
            If the snapshot does not have this table.

        Examples
        --------
        >>> import pointstamp as ps
        >>> def build(capability, info):
        ...     capability.drop()
        ...     counts = info.state("counts")
        ...     def logic(input, output):
        ...         for time, words in input:
        ...             for word in words:
        ...                 counts[word] = counts.get(word, 0) + 1
        ...                 output.session(time).give((word, counts[word]))
        ...     return logic
        >>> def running_counts(scope):
        ...     return scope.to_stream("aba").unary(ps.Exchange(), "RunningCount", build)
        >>> ps.testing.collect(running_counts)
        [(0, ('a', 1)), (0, ('a', 2)), (0, ('b', 1))]
        """
        if self.states.durable_state is None:
            self.states.take_name(name)
            return {}
        # Here and not above: few dataflows are durable.
        from pointstamp.checkpoint.keyed_state import KeyedRows

        table = KeyedRows(route)
        self.states.keep(name, table)
        if not self.states.is_exchanged:
            # What this worker has now is not what it has in the snapshot: hand out everything.
            table.begin_anew()
        return table

    def state_columns(self, columns: Mapping[str, str], name: str = "state") -> KeyedColumns:
        """The same as arrays: a table of numbers by key, for operators on columns.

        Parameters
        ----------
        columns : mapping of str to str
            The dtype of each column; the first is the key, int64, by which the operator's
            input is exchanged.
        name : str
            Of the table: unique in the operator, and the same next time.

        Raises
        ------
        BuildError
            If the operator has declared a table of this name already.

        See Also
        --------
        pointstamp.checkpoint.keyed_columns.KeyedColumns : what it can do.
        """
        # Here and not above: few operators have one.
        from pointstamp.checkpoint.keyed_columns import KeyedColumns

        table = KeyedColumns(columns)
        self.states.keep(name, table)
        return table

    def keeps_nothing(self) -> None:
        """Say that what the operator keeps is of times that are not complete, and no more.

        In a durable dataflow one has to say so, or declare it with `state`.
        """
        self.states.is_said = True

    def activate_after(self, seconds: float) -> None:
        """Ask for the operator to be run again after `seconds`; for the worker's thread.

        A worker that has nothing else to do sleeps until then. Each call is one run,
        and none takes another one back. The time is the worker's: in a simulation it
        is drawn with the rest of the schedule, and nothing waits.

        Raises
        ------
        UsageError
            If `seconds` is negative or not finite.
        """
        self.environment.later(seconds, self.activate)

    def thread_activator(self) -> ThreadActivator:
        """What asks for the operator to be run when it is called, from any thread.

        It wakes a worker that is parked. The operator must hold a capability as long
        as it waits, as for anything: the dataflow is complete otherwise.
        """
        return ThreadActivator(self.environment, self.activate)
