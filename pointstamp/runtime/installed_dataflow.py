"""What a worker keeps of a dataflow that it has built, until that is complete."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from pointstamp.dataflow.backpressure import Backpressure
from pointstamp.dataflow.durability import DataflowState
from pointstamp.dataflow.environment import Closers
from pointstamp.progress.activation import Activation
from pointstamp.progress.subgraph import Subgraph

_NONE_LATER: Any = ()
"""In place of a `deque`, of a worker of which no two dataflows were active at once."""


class InstalledDataflow:
    """A dataflow of this worker, from its making to its end."""

    def __init__(self, number: int, name: str, is_logged: bool, active: ActiveDataflows) -> None:
        self.number = number
        self.name = name
        self.is_logged = is_logged
        self.structure: Callable[[], list[str]] | None = None
        """Gives its lines."""
        self._lines: list[str] | None = None
        self.root: Subgraph | None = None
        self.scopes: list[int] = []
        self.channels: list[int] = []
        self.closers = Closers()
        """What its operators want called when it ends, however it does."""
        self.is_queued = False
        """Whether it is among the active ones, which the worker visits in its next step."""
        self.activation = DataflowActivation(self, active)
        self.backpressure: Backpressure | None = None
        self.agreed: set[int] = set()
        """The peers that are known to have built the same."""
        self.inputs: list[Any] = []
        self.is_dropped = False
        self.durable_state: DataflowState | None = None
        self.beside: Any = None
        """What layers below keep of it; see `ScopeCore`."""

    @property
    def lines(self) -> list[str]:
        """Its structure, which all peers must have built alike.

        Of one worker it is written when something outside asks for it.
        """
        if self._lines is None:
            self._lines = [] if self.structure is None else self.structure()
        return self._lines

    def forget_structure(self) -> None:
        """It is compared with all peers', and complete."""
        self.structure = self._lines = None


class DataflowActivation(Activation):
    """Has the worker visit a dataflow in its next step; asking twice is asking once."""

    __slots__ = ("_active", "_dataflow")

    def __init__(self, dataflow: InstalledDataflow, active: ActiveDataflows) -> None:
        super().__init__()
        self._dataflow = dataflow
        self._active = active

    def ask(self) -> None:
        """Put the dataflow among the active ones."""
        if not self._dataflow.is_queued:
            self._dataflow.is_queued = True
            self._active.add(self._dataflow)


class ActiveDataflows:
    """The dataflows that a worker visits in its next step, in the order in which they asked.

    Mostly it is one, which is kept aside: a list that is filled and emptied in each step gives its
    memory back and asks for it again.
    """

    __slots__ = ("_first", "_later", "n")

    def __init__(self) -> None:
        self.n = 0
        self._first: InstalledDataflow | None = None
        self._later: Any = _NONE_LATER

    def add(self, dataflow: InstalledDataflow) -> None:
        """Have one more visited."""
        self.n += 1
        if self._first is None:
            self._first = dataflow
            return
        if self._later is _NONE_LATER:
            self._later = deque()
        self._later.append(dataflow)

    def take(self) -> InstalledDataflow:
        """The one that asked first, of at least one."""
        first = self._first
        assert first is not None
        self.n -= 1
        self._first = self._later.popleft() if self._later else None
        return first


def first_logged(dataflows: dict[int, InstalledDataflow]) -> InstalledDataflow | None:
    """One of them that is logged; None if none is."""
    for dataflow in dataflows.values():
        if dataflow.is_logged:
            return dataflow
    return None
