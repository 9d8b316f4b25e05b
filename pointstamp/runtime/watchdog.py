"""Warns when nothing has advanced for a while, with what holds what back.

A thread beside the worker looks now and then how many changes of counts the worker's
scopes have seen. A record taken, a capability moved, the message of a peer: each is one.
If none has come for the set time, and some dataflow is not complete, it logs a warning
with what `diagnostics.account` knows, once for each such pause.

The time should be longer than the longest pause that is in order: between two inputs
of a program that waits for them, or of the slowest single batch. A *patient* watchdog
knows such pauses: it warns only of a worker that steps or parks and itself holds back what
it waits for (`diagnostics.is_stalled`). Every worker has that one, unless another is asked for.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from pointstamp.errors import UsageError

if TYPE_CHECKING:
    from pointstamp.runtime.worker import Worker

LOGGER = logging.getLogger("pointstamp.watchdog")
"""Without any configuration of logging, its warnings go to standard error."""

STALL_S = 10.0
"""After how many seconds the watchdog warns that every worker has."""

LOOKS = 4
"""How often to look in the time after which it barks."""


class Watchdog:
    """Watches one worker, which the thread that makes it runs.

    Parameters
    ----------
    worker : Worker
        Not kept alive by it.
    after_s : float
        After how many seconds without any change it barks.
    is_patient : bool
        Whether it is silent unless the worker is stalled.
    bark : callable, optional
        Takes the text; the default logs it.

    Raises
    ------
    UsageError
        If `after_s` is not a positive time.
    """

    def __init__(
        self,
        worker: Worker,
        after_s: float,
        *,
        is_patient: bool = False,
        bark: Callable[[str], object] = LOGGER.warning,
    ) -> None:
        check_after_s(after_s)
        self._worker = weakref.ref(worker)
        self._watched = threading.get_ident()
        self._after_s = after_s
        self._is_patient = is_patient
        self._bark = bark
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name=f"pointstamp-watchdog-{worker.index}", daemon=True
        )
        weakref.finalize(worker, self._stopped.set)
        self._thread.start()

    def stop(self) -> None:
        """End it; when this returns, its thread has ended."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        state: object = None
        since, has_barked, n_steps = time.monotonic(), False, -1
        while not self._stopped.wait(self._after_s / LOOKS):
            worker = self._worker()
            if worker is None:
                return
            now, seen = time.monotonic(), worker.n_changes
            is_busy = self._is_patient and not worker.is_parked and worker.n_steps == n_steps
            n_steps = worker.n_steps
            # A program may wait for more than its complete dataflows gave, in step_while.
            is_over = not worker._dataflows and not (self._is_patient and worker.is_waiting)
            if seen != state or is_over or is_busy:
                state, since, has_barked = seen, now, False
            elif now - since >= self._after_s and not has_barked:
                has_barked = True
                if (text := self._text(worker, now - since)) is not None:
                    self._bark(text)
            del worker  # or it would live until the next look

    def _text(self, worker: Worker, pause_s: float) -> str | None:
        """What there is to say of a pause; None if others hold back what is waited for."""
        from pointstamp.runtime.diagnostics import account, frame_of, is_stalled

        if self._is_patient and not is_stalled(worker):
            return None
        said = account(worker, frame_of(self._watched))
        if not worker._dataflows:
            said = f"step_while waits for what no dataflow can bring any more: {said}"
        return f"nothing has advanced for {pause_s:.1f} s: {said}"


def check_after_s(after_s: float) -> None:
    """Refuse a time that is none, before any worker starts."""
    is_number = isinstance(after_s, (int, float)) and not isinstance(after_s, bool)
    if not is_number or not after_s > 0:
        raise UsageError(f"a watchdog barks after some seconds, not after {after_s!r}")
