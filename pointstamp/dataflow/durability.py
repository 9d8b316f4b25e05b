"""Dataflows whose state outlasts them: what their operators declare, and are given back.

Each operator with state has a name that a later program can find again: the names of the
scopes around it and its own, numbered where they repeat. What an operator keeps it keeps in
tables (`checkpoint/keyed_state.py`); for a snapshot its aligner hands them out (`alignment.py`).

An operator that might keep something and does not say so is refused: it would be lost. Code of the
user's must say what it keeps, even if that is nothing; our own operators either declare it,
or keep nothing from epoch to epoch, or refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.alignment import EpochAligner, Epochs, HandOut
from pointstamp.dataflow.texts_held import Holding, TextsHeld
from pointstamp.errors import BuildError, InternalError, UndeclaredStateError
from pointstamp.progress.timestamp import Int, Timestamp

if TYPE_CHECKING:
    from pointstamp.checkpoint.durable import Durable
    from pointstamp.checkpoint.keyed_state import Table
    from pointstamp.dataflow.operator import Operator


NOT_REPLAYED = (
    "what it has sent since a snapshot would not be sent again; have it stage what it reads, and "
    "send that to an input (scope.new_input)"
)
"""Why a source cannot be in a durable dataflow."""


class DataflowState:
    """The state of one dataflow on one worker.

    Parameters
    ----------
    durable : Durable
        What the program says of it.
    dataflow : str
        Its name.
    index, peers : int
        The worker's number, and how many there are.
    """

    def __init__(self, durable: Durable, dataflow: str, index: int, peers: int) -> None:
        given: Any = durable  # of any type, until it is looked at
        if not hasattr(given, "part"):
            raise BuildError(
                f"dataflow {dataflow!r} is durable by a Durable(Checkpoint(folder), manifest), of "
                f"pointstamp.checkpoint; found {given!r:.200}"
            )
        self.durable = durable
        self.dataflow = dataflow
        self.aligners: list[EpochAligner] = []
        self.is_over = False
        """Whether the dataflow is complete."""
        self._index = index
        self._peers = peers
        self._is_same = durable.part(index, peers) is not None

    @property
    def is_restored(self) -> bool:
        """Whether it begins with a snapshot."""
        return self.durable.manifest is not None

    @property
    def first_epoch(self) -> int:
        """The first that is new."""
        return self.durable.epoch + 1

    def declare(self, aligner: EpochAligner, name: str, table: Table) -> bool:
        """Take on a table, and fill it with what the snapshot has; whether it has it."""
        aligner.tables[name] = table
        is_stored = self.durable.stored(aligner.operator, name, table.kind)
        if is_stored:
            # What belongs to no key goes to all, as if each were the only worker.
            place = (0, 1) if getattr(table, "is_shared", False) else (self._index, self._peers)
            table.load(self.durable.read(aligner.operator, name, *place), *place)
        if not self._is_same:
            table.begin_anew()
        return is_stored

    def close(self) -> None:
        """The dataflow is built: see that it keeps what the snapshot has."""
        declared = {
            (aligner.operator, name) for aligner in self.aligners for name in aligner.tables
        }
        self.durable.check_structure(self.dataflow, declared)

    def check_in_time(self, epoch: int) -> None:
        """Raise if an operator is past `epoch`."""
        for aligner in self.aligners:
            aligner.check_in_time(epoch)

    def hold(self, epoch: int, hand_out: HandOut) -> None:
        """Have each operator hand out what it has at the end of `epoch`."""
        for aligner in self.aligners:
            aligner.hold(epoch, hand_out)
        if self.is_over:
            self.finish()

    def begin_anew(self) -> None:
        """Have each table hand out everything next."""
        for aligner in self.aligners:
            for table in aligner.tables.values():
                table.begin_anew()

    def finish(self) -> None:
        """The dataflow is complete."""
        self.is_over = True
        for aligner in self.aligners:
            aligner.finish()


class OperatorState:
    """What one operator declares of its state, while it is built.

    Parameters
    ----------
    durable_state : DataflowState, optional
        None where nothing outlasts the dataflow.
    operator : str
        The operator's name, with the scopes around it.
    make_aligner : callable
        Puts a aligner before the operator.
    texts : TextsHeld, optional
        Is given what the operator says of the texts that it keeps.
    """

    def __init__(
        self,
        durable_state: DataflowState | None,
        operator: str,
        make_aligner: Callable[[], EpochAligner],
        texts: TextsHeld | None = None,
    ) -> None:
        self._texts = texts
        self._are_texts_said = False
        self.durable_state = durable_state
        self._operator = operator
        self._make_aligner: Callable[[], EpochAligner] | None = make_aligner
        """None when the operator is built."""
        self._aligner: EpochAligner | None = None
        self._names: set[str] = set()
        """Of its tables."""
        self.is_said = False
        """Whether anything was said of what is kept."""
        self.is_exchanged = False
        """Whether records are exchanged, so that keys are where they go back to."""
        self.is_restored = False
        """Whether the dataflow begins with a snapshot that has something of the operator."""
        self.kept_rows = ""
        """What rows it keeps, in words that are the same in every process: workers compare it."""
        self.compared = ""
        """What else workers compare of it, in such words, where it is no matter for a snapshot."""

    def take_name(self, name: str) -> None:
        """Note that there is a table of this name, whether it outlasts the dataflow or not.

        Raises
        ------
        BuildError
            If there is one already: both would be empty, and neither know of the other.
        """
        if name in self._names:
            raise BuildError(
                f"operator {self._operator!r} declares table {name!r} twice; keep what "
                f"info.state({name!r}) returns, or give each table a name of its own"
            )
        self._names.add(name)
        self.is_said = True

    def keep(self, name: str, table: Table) -> bool:
        """Declare a table; whether there is a snapshot that has it."""
        self.take_name(name)
        if self.durable_state is None:
            return False
        if self._make_aligner is None:
            raise BuildError(
                f"operator {self._operator!r} declares table {name!r} after it was built, so that "
                "no snapshot would begin with it: call info.state() in `build`, and keep what it "
                "returns"
            )
        if self._aligner is None:
            self._aligner = self._make_aligner()
            self.durable_state.aligners.append(self._aligner)
        with nullcontext() if self._texts is None else self._texts.loading():
            is_stored = self.durable_state.declare(self._aligner, name, table)
        self.is_restored |= is_stored
        return is_stored

    def refuse(self, why: str) -> None:
        """Raise if the dataflow is durable: what is kept here cannot be declared.

        Raises
        ------
        UndeclaredStateError
        """
        if self.durable_state is not None:
            raise UndeclaredStateError(
                f"operator {self._operator!r} cannot be in a durable dataflow: {why}"
            )

    def holds_no_texts(self) -> None:
        """Say that no numbers of texts are kept but of times that are not complete."""
        self._are_texts_said = True

    def holds_texts(self, holding: Holding, waiting: Sequence[str] = ()) -> None:
        """Say which numbers of texts are kept; see `TextsHeld`."""
        self._are_texts_said = True
        if self._texts is not None:
            self._texts.holdings.append(holding)
            self._texts.waiting.update(waiting)

    def waits_with(self, waiting: Callable[[], Iterable[Any]]) -> None:
        """Say what waits for a time, beside what is in a stash."""
        if self._texts is not None:
            self._texts.waiting_with.append((self._operator, waiting))

    def logs_texts(self, holding: Holding) -> None:
        """Say which of them wait for the next snapshot, beside what is kept."""
        if self._texts is not None:
            self._texts.holdings.append(holding)

    def end_building(self, operator: Operator) -> None:
        """Note the operator, what workers compare of it, and if nothing was said of texts."""
        rows = f"rows of {self.kept_rows}" if self.kept_rows else ""
        operator.parameters = ", ".join(filter(None, (operator.parameters, self.compared, rows)))
        self._make_aligner = None  # it has the builder, which has this
        if self._texts is not None:
            self._texts.operators.append(operator)
            if not self._are_texts_said:
                self._texts.unsaid.append(self._operator)

    def check_said(self) -> None:
        """Raise if an operator with code of the user's has not said what it keeps.

        Raises
        ------
        UndeclaredStateError
        """
        if self.durable_state is not None and not self.is_said:
            raise UndeclaredStateError(
                f"operator {self._operator!r} does not say what it keeps from one epoch to the "
                "next, which would be lost when the program starts again: in `build`, declare "
                "it with info.state(name), or say info.keeps_nothing()"
            )


def refused() -> EpochAligner:
    """For operators that cannot be aligned."""
    raise InternalError("an aligner was asked for where nothing can be declared")


def no_state() -> OperatorState:
    """For operators whose dataflow does not outlast the program, and that have no name."""
    return OperatorState(None, "", refused)


def epochs_of(timestamp: Timestamp, refinements: list[Any], dataflow: str) -> Epochs:
    """The epochs of a scope, from the times of the dataflow and the scopes in it.

    Raises
    ------
    BuildError
        If the dataflow has none.
    """
    if timestamp != Int:
        raise BuildError(
            f"durable dataflow {dataflow!r} has times of {timestamp!r}; snapshots are at epochs, "
            "which are times of Int"
        )
    return Epochs(refinements)


def unique_name(name: str, known: list[str]) -> str:
    """The name of a durable dataflow, with a number if there is one of that name already."""
    own = name.replace("%", "%25").replace("/", "%2F").replace("#", "%23")
    number = sum(other.partition("#")[0] == own for other in known)
    return own if not number else f"{own}#{number + 1}"
