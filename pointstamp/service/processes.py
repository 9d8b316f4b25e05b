"""Workers of a service as processes of this machine."""

from __future__ import annotations

from pointstamp.runtime.execute import execute
from pointstamp.service.afar import Afar, reside_afar


class Processes(Afar):
    """One alone is a thread of this process."""

    def _run(self) -> None:
        self.fate.end_with(
            lambda: execute(reside_afar, self._plan, self._appointment, workers=self._n_workers)
        )
