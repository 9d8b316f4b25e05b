"""How a service ends, for all threads that wait for something of it.

The thread that runs the workers says here that they have ended, and of what. A thread
that a worker refuses, or that waits for one, looks here first: a refusal is mostly a
consequence, and this has the cause.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pointstamp.errors import PointstampError, ServiceError, StoppedError

CAUSE_S = 3.0
"""How long the cause may take to be known after a worker is found gone."""


class Termination:
    """Unknown until the workers end; then why.

    >>> termination = Termination()
    >>> termination.check()
    >>> termination.end(ServiceError("worker 1 fell over"))
    >>> termination.check()
    Traceback (most recent call last):
    pointstamp.errors.ServiceError: worker 1 fell over
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._error: BaseException | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the workers are gone."""
        return self._ended.is_set()

    def end(self, error: BaseException | None = None) -> None:
        """The workers have ended, of `error` or as they should; the first call counts."""
        if not self._ended.is_set():
            self._error = error
            self._ended.set()

    def end_with(self, run: Callable[[], object]) -> None:
        """Call `run()`, and have the service end as that does."""
        try:
            run()
        except BaseException as error:  # noqa: BLE001  (raised where the service is used)
            self.end(error)
        else:
            self.end()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the workers have ended; whether they have."""
        return self._ended.wait(timeout_s)

    @property
    def error(self) -> BaseException | None:
        """What they ended of."""
        return self._error

    def check(self) -> None:
        """Raise what the workers ended of, if they have ended."""
        if not self._ended.is_set():
            return
        if self._error is None:
            raise StoppedError("the service has stopped")
        # One error is raised to any number of callers: each with a traceback of its own.
        raise self._error.with_traceback(None) from self._error.__cause__

    def explain(self, refusal: PointstampError) -> BaseException:
        """What to raise for a refusal by a worker that may be gone: the cause, if there is one."""
        if self._ended.wait(CAUSE_S):
            return self._error or StoppedError("the service has stopped")
        return ServiceError(f"{refusal}; why is not known")
