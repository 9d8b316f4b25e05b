"""Fuel of joins: how much one makes before other operators have their turn.

What a join makes of a time may be far more than what comes or is kept. It leaves by pieces, and
the join asks to be run again, so that what follows takes one piece before there is the next.

Source: the fuel of differential-dataflow's `operators/join.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pointstamp.collections.arrange import consolidated, send_rows
from pointstamp.collections.spine import SpineReader
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.errors import DataError

FUEL = 65_536
"""So many updates, or some more: those of one change leave together."""


class JoinTurns:
    """What a join makes of a time, on its way out: a piece each time that it is run.

    Parameters
    ----------
    info : OperatorInfo
        Of the join.
    texts : tuple of int
        Which words of what it makes are numbers of texts.
    name : str
        For messages to people.
    consolidates : bool
        Whether what leaves together is consolidated.
    """

    def __init__(
        self, info: OperatorInfo, texts: tuple[int, ...], name: str, consolidates: bool = False
    ) -> None:
        self._activate = info.activate
        self._texts = texts
        self._name = name
        self._consolidates = consolidates
        self._held: Capability | None = None
        self._pieces: Iterator[Rows] = iter(())
        self._changes: list[Any] = []
        texts_held = info.environment.texts_held
        if texts_held is not None:
            # What is read beside them stays in the arrangements: it is not acknowledged.
            texts_held.waiting_with.append((info.name, lambda: self._changes))

    @property
    def is_under_way(self) -> bool:
        """Whether a time was begun and is not at its end."""
        return self._held is not None

    def begin(self, held: Capability, pieces: Iterator[Rows], changes: list[Any]) -> None:
        """A time begins.

        held : to be dropped at its end
        changes : of which the pieces are made, in arrays and lists of them
        """
        self._held, self._pieces, self._changes = held, pieces, changes

    def take(self, output: Output, readers: Sequence[SpineReader]) -> bool:
        """Send the next pieces; whether that was all, and else ask for another turn.

        readers : of what the pieces are made of, which finish with the time

        Raises
        ------
        DataError
            If a diff is beyond 64 bits.
        """
        held = self._held
        assert held is not None
        found: list[Rows] = []
        n, is_over = 0, True
        try:
            for rows in self._pieces:
                found.append(rows)
                n += len(rows)
                if n >= FUEL:
                    is_over = False
                    break
            if self._consolidates:
                found = [consolidated(found, self._name)] if found else []
            for rows in found:
                send_rows(output, held, rows, self._texts)
        except OverflowError as error:
            self._end(held)
            raise DataError(f"operator {self._name!r}: {error}") from error
        except BaseException:
            self._end(held)
            raise
        if not is_over:
            self._activate()
            return False
        for reader in readers:
            reader.finish(held.time)
        self._end(held)
        return True

    def _end(self, held: Capability) -> None:
        held.drop()
        self._held, self._pieces, self._changes = None, iter(()), []
