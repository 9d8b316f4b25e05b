"""Fuel of joins: how much one makes before other operators have their turn.

What a join makes of a time may be far more than what comes or is kept. It leaves by pieces, and
the join asks to be run again, so that what follows takes one piece before there is the next.

Source: the fuel of differential-dataflow's `operators/join.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pointstamp.collections.arrange import consolidated, send_rows
from pointstamp.collections.spine import SpineReader
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.stash import Stash
from pointstamp.errors import DataError

FUEL = 65_536
"""So many updates in a turn, or some more: a piece may be nearly twice as many."""


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

    def ask(self) -> None:
        """Ask for another turn: something may wait."""
        self._activate()

    def take(self, output: Output, readers: Sequence[SpineReader], fuel: int) -> int:
        """Send the next pieces, to the end or until some `fuel` are made; how many were.

        If that was not all, another turn is asked for.

        readers : of what the pieces are made of, which finish with the time

        Raises
        ------
        DataError
            If a diff is beyond 64 bits.
        """
        held = self._held
        assert held is not None
        found: list[Rows] = []
        n, is_over = 0, fuel > 0
        try:
            for rows in self._pieces if is_over else ():
                found.append(rows)
                n += len(rows)
                if n >= fuel:
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
            return n
        for reader in readers:
            reader.finish(held.time)
        self._end(held)
        return n

    def go_on(
        self,
        stash: Stash[Any],
        begin: Callable[[Capability], None],
        output: Output,
        readers: Sequence[SpineReader],
    ) -> bool:
        """Send pieces of times that are complete, in one turn; whether all of those are over.

        begin : begins the time of a capability, whose value the stash has
        """
        fuel = FUEL
        if self.is_under_way:
            fuel -= self.take(output, readers, fuel)
        while not self.is_under_way and fuel > 0:
            held = stash.next_complete()
            if held is None:
                return True
            try:
                begin(held)
            except BaseException:
                held.drop()
                raise
            fuel -= self.take(output, readers, fuel)
        if not self.is_under_way:
            self.ask()
        return False

    def _end(self, held: Capability) -> None:
        held.drop()
        self._held, self._pieces, self._changes = None, iter(()), []
