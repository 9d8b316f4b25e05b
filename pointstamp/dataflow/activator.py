"""A bell that other threads ring to have an operator run.

`info.activate` belongs to the worker's thread. What waits elsewhere, for a socket or
a future, leaves what it got where the operator looks, and rings: a worker that is
parked wakes up, and its next step runs the operator.

Source: timely-dataflow `scheduling/activate.rs`, its `SyncActivator`.
"""

from __future__ import annotations

from collections.abc import Callable

from pointstamp.dataflow.environment import Environment


class ThreadActivator:
    """Asks for an operator to be run, from any thread; see `OperatorInfo.thread_activator`.

    Ringing many times before the worker looks is ringing once. What a thread did
    before it rang, the operator sees when it runs. Ringing for an operator that is
    complete, or was dropped, does nothing.
    """

    __slots__ = ("_activate", "_environment", "_is_rung")

    def __init__(self, environment: Environment, activate: Callable[[], None]) -> None:
        self._environment = environment
        environment.is_called = True
        self._activate = activate
        self._is_rung = False

    def __call__(self) -> None:
        """Ring; never waits, and may be called inside of anything."""
        if not self._is_rung:
            self._is_rung = True
            self._environment.call(self._answer)

    def _answer(self) -> None:
        """Called by the worker: what rings from now on counts again, and after this."""
        self._is_rung = False
        self._activate()
