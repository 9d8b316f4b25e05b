"""The log of a worker as a stream of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.errors import BuildError, UsageError

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class LogMethods(ScopeCore["Stream[Any]"]):
    """The worker's log as a stream. Methods of `Scope`."""

    def log_stream(self, what: str, *, name: str = "") -> Stream[Any]:
        """A stream of this worker's own log events of one type, as they happen.

        For a dataflow that is not logged itself, `worker.dataflow(logged=False)`, as it
        would feed itself otherwise. Batches are Arrow record batches; `docs/logs.md` has the
        types of events, and their columns. Times are the moments of the log, integers: a
        batch has events at its time or later, and once the frontier is past a moment, all
        events of that moment have come. The stream ends when the dataflows that are logged
        are complete, and the worker runs to the end.

        Parameters
        ----------
        what : str
            "operators", "channels", "schedules", "messages", "progress", "capabilities",
            "frontiers", "parks" or "texts".

        Raises
        ------
        UsageError
            If the worker keeps no log, or there are no such events.
        BuildError
            If this dataflow is logged.
        """
        log = self.environment.worker_log
        if log is None:
            raise UsageError(
                f"scope {self.name!r} cannot read the log of worker {self.index}, which keeps "
                "none; start the workers with log=ps.Log(...)"
            )
        if self.environment.log is not None:
            raise BuildError(
                f"scope {self.name!r} reads the log that it is recorded in: it would feed itself; "
                "build it with worker.dataflow(..., logged=False)"
            )
        events: Stream[Any] = log.stream(self, what, name)
        return events
