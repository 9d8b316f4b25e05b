"""Workers of a service as processes of this machine."""

from __future__ import annotations

from pointstamp.runtime.execute import execute
from pointstamp.service.remote_pool import RemoteWorkerPool, run_service_worker


class Processes(RemoteWorkerPool):
    """One alone is a thread of this process."""

    def _run(self) -> None:
        self.termination.end_with(
            lambda: execute(
                run_service_worker, self._plan, self._appointment, workers=self._n_workers
            )
        )
