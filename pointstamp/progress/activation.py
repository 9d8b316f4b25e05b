# cython: boundscheck=False, wraparound=False
"""Activations: what asks for a visit of an operator, or of a scope.

Whatever has something for an operator holds one: the queues of its inputs, the counts of its
capabilities, the handle of an input, a timer. Compiled, asking is a call without Python, for it is
done for each batch, and by an input for each record.
"""

from __future__ import annotations

from collections.abc import Callable

from pointstamp.progress.operate import DirectOperate


class ActivatedScope(DirectOperate):
    """A scope, as far as the activations of its operators know it."""

    __slots__ = ()

    def activate(self, child: int) -> None:
        """Ask for a visit of an operator."""
        raise NotImplementedError


class Activation:
    """Asks for a visit of one operator, once its scope is complete and has a subgraph.

    >>> Activation(1).ask()  # it has none yet: every operator runs once at the start
    """

    __slots__ = ("_child", "has_collected", "is_at_work", "subgraph")

    def __init__(self, child: int = 0) -> None:
        self._child = child
        self.subgraph: ActivatedScope | None = None
        self.is_at_work = False
        """Whether the operator runs, and reports afterwards what it does to its capabilities."""
        self.has_collected = False
        """Whether a capability of it was garbage lately, which is not counted yet."""

    def __call__(self) -> None:
        """Ask."""
        self.ask()

    def ask(self) -> None:
        """The same, for compiled code."""
        if self.subgraph is not None:
            self.subgraph.activate(self._child)


class CallActivation(Activation):
    """Asks by calling a function.

    >>> CallActivation(lambda: print("asked")).ask()
    asked
    """

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self._call = call

    def ask(self) -> None:
        """Call it."""
        self._call()


def activation_of(wake: Callable[[], object]) -> Activation:
    """`wake` itself, if it is an activation, or one that calls it."""
    return wake if isinstance(wake, Activation) else CallActivation(wake)


NO_ACTIVATION = Activation()
"""Asks for nothing: of what is left of a dataflow that was dropped."""
