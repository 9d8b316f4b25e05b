"""`ServiceProbe`: whether epochs of a service are complete.

Of a service that was stopped all are: its workers, which are asked before, are there no more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pointstamp.errors import EpochError, StoppedError
from pointstamp.service import protocol
from pointstamp.service.conversions import epoch_of
from pointstamp.service.output_handle import TIMEOUT_S
from pointstamp.service.protocol import NEVER

if TYPE_CHECKING:
    from pointstamp.service.service import Service

LOGGER = logging.getLogger("pointstamp.service")

SOON_S = 5.0
"""So long an epoch is waited for without a word."""


@dataclass(frozen=True)
class ServiceProbe:
    """Whether epochs are complete, at one output or at all of them.

    Of a service that was stopped every epoch is, and nothing more comes.
    """

    _service: Service
    _output: str | None

    def less_than(self, epoch: int) -> bool:
        """Whether an epoch before `epoch` is not complete."""
        return self.less_equal(epoch_of(epoch) - 1)

    def less_equal(self, epoch: int) -> bool:
        """Whether `epoch`, or one before it, is not complete."""
        epoch = epoch_of(epoch)
        return not self._is_complete(
            lambda: self._service.status().is_complete(self._output, epoch)
        )

    @property
    def done(self) -> bool:
        """Whether nothing more comes."""
        return not self.less_equal(NEVER)

    def wait(self, epoch: int, timeout_s: float | None = TIMEOUT_S) -> None:
        """Wait until `epoch` is complete.

        Raises
        ------
        EpochError
            If it is not in time; None is as long as it takes.
        StoppedError
            If the service is aborted.

        After some seconds a warning of the logger "pointstamp.service" says which epochs are
        committed.
        """
        epoch = epoch_of(epoch)
        if not self._is_complete(lambda: self._await(epoch, timeout_s)):
            where = "" if self._output is None else f" of output {self._output!r}"
            raise EpochError(
                f"epoch {epoch}{where} is not complete after {timeout_s:g} s: "
                f"{self._service.status()}"
            )

    def _is_complete(self, ask: Callable[[], bool]) -> bool:
        """What the workers answer; with none left, whether they ended with all complete."""
        try:
            return ask()
        except StoppedError:
            if not self._service.is_complete:
                raise
            return True

    def _await(self, epoch: int, timeout_s: float | None) -> bool:
        service, output = self._service, self._output
        request = protocol.AwaitEpoch(epoch, output)
        soon_s = SOON_S if timeout_s is None else min(SOON_S, timeout_s)
        is_complete = service.wait(request, soon_s)
        if not is_complete and timeout_s != soon_s:
            status = service.status()
            LOGGER.warning(
                "service %r: epoch %d is waited for, and not complete after %g s; epochs up to %d "
                "are committed: %s",
                *(service.name, epoch, soon_s, status.last_committed(), status),
            )
            is_complete = service.wait(request, None if timeout_s is None else timeout_s - soon_s)
        if is_complete:
            for name in service.spec.outputs if output is None else [output]:
                service.reached.note_complete(name, epoch)
        return is_complete
