"""What a program holds of an output of a service, which can be read once that is stopped, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pyarrow as pa

from pointstamp.errors import EpochError, StoppedError
from pointstamp.service import protocol
from pointstamp.service.conversions import epoch_of

if TYPE_CHECKING:
    from pointstamp.service.service import Service
    from pointstamp.service.service_probe import ServiceProbe

T = TypeVar("T")

TIMEOUT_S = 60.0
"""How long to wait for an epoch to be complete where nothing else is said."""


class OutputHandle:
    """The workers' part of an output is read of them, and fetched when they end."""

    keeps_discarded: ClassVar[bool] = False
    """Whether what is discarded is added up and kept, as a collection's is."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self.name = name
        self._fetched: FetchedOutput | None = None
        """Once the service is stopped."""

    @property
    def probe(self) -> ServiceProbe:
        """Whether epochs are complete here."""
        return self._service.probe_of(self.name)

    def discard(self, upto: int) -> None:
        """Have the workers let go of the epochs up to this one, which is complete."""
        upto = epoch_of(upto)
        self._answer(
            lambda: self._service.ask(protocol.Discard(self.name, upto)),
            lambda fetched: fetched.discard(upto, keep=self.keeps_discarded),
        )
        self._service.reached.note_discarded(self.name, upto)

    def fetch(self) -> None:
        """Read what the workers have, so that it can be read when they have ended."""
        service = self._service
        # One worker says which is the last: the others may not know yet that all is complete.
        upto = service.last_complete(self.name)
        pairs = service.read_all(protocol.ReadEpochs(self.name, None, upto, TIMEOUT_S, "all"))
        self._fetched = FetchedOutput(self.name, pairs, service.discarded_of(self.name))

    def _answer(self, of_workers: Callable[[], T], of_fetched: Callable[[FetchedOutput], T]) -> T:
        """What the workers answer; once they have ended, even meanwhile, what was fetched does."""
        if self._fetched is None:
            try:
                return of_workers()
            except StoppedError:
                if self._fetched is None:
                    raise
        return of_fetched(self._fetched)

    def _last(self) -> int:
        """The last epoch that is complete; of a stopped service the last that is known here."""
        return self._answer(
            lambda: self._service.last_complete(self.name), lambda fetched: fetched.last
        )

    def _pairs(
        self, upto: int | None, after: int | None, timeout_s: float | None
    ) -> list[tuple[int, pa.RecordBatch]]:
        """Of the epochs in (after, upto], which are waited for; all, for None."""
        return self._answer(
            lambda: self._service.read_of(self.name, upto, after, timeout_s),
            lambda fetched: fetched.read(upto, after),
        )

    def _as_of(self, epoch: int, timeout_s: float | None) -> list[tuple[int, pa.RecordBatch]]:
        """What adds up to the records as of the end of an epoch, which is waited for."""

        def of_workers() -> list[tuple[int, pa.RecordBatch]]:
            self.probe.wait(epoch, timeout_s)
            request = protocol.ReadEpochs(self.name, None, epoch, TIMEOUT_S, "snapshot")
            return self._service.read_all(request)

        return self._answer(of_workers, lambda fetched: fetched.as_of(epoch))


@dataclass
class FetchedOutput:
    """The epochs of an output that were complete.

    Attributes
    ----------
    name : str
        Of the output.
    pairs : list of (int, pyarrow.RecordBatch)
        With their epochs. Of a collection some are of what was discarded, added up.
    discarded : int
        Up to which epoch.
    """

    name: str
    pairs: list[tuple[int, pa.RecordBatch]]
    discarded: int

    @property
    def last(self) -> int:
        """The last epoch that has something, or is discarded."""
        # Nothing is left of what is discarded, where it adds up to nothing.
        return max([self.discarded, *(epoch for epoch, _ in self.pairs)])

    def read(self, upto: int | None, after: int | None) -> list[tuple[int, pa.RecordBatch]]:
        """Those behind `after`, or behind what is discarded; raises `EpochError` as workers do."""
        if after is not None and after < self.discarded:
            raise EpochError(
                f"output {self.name!r} cannot be read from epoch {after + 1}: what came up to "
                f"epoch {self.discarded} is discarded"
            )
        first = self.discarded if after is None else after
        return [
            (epoch, batch)
            for epoch, batch in self.pairs
            if first < epoch and (upto is None or epoch <= upto)
        ]

    def as_of(self, upto: int) -> list[tuple[int, pa.RecordBatch]]:
        """Those up to an epoch; raises `EpochError` as workers do."""
        if upto < self.discarded:
            raise EpochError(
                f"output {self.name!r} has no snapshot as of epoch {upto}: what came up to "
                f"epoch {self.discarded} is added up"
            )
        return [(epoch, batch) for epoch, batch in self.pairs if epoch <= upto]

    def discard(self, upto: int, *, keep: bool) -> None:
        """Read the epochs up to this one no more; `keep` them for what adds them up."""
        self.discarded = max(self.discarded, upto)
        if not keep:
            self.pairs = self.read(None, None)
