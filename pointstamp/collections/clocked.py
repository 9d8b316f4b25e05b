"""Operators that go by a clock: what they do with updates depends on what time it is then.

The clock is another input, or the epochs. At each complete time the clock moves first, and then
come the updates of that time: so what is sent depends on neither workers nor schedules. With the
epochs as the clock an operator asks for those at which something changes by itself.

What an operator does is an engine, which knows no times; a temporal filter is one, and windows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pointstamp.collections.arrange import check_times, consolidated, send_rows
from pointstamp.collections.casts import Bound
from pointstamp.collections.clock_input import Clock
from pointstamp.collections.durable_rows import StoredPart, restored_rows
from pointstamp.collections.expression import Expression, as_expression, col
from pointstamp.collections.schema import Schema
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.containers.words import LONG, WordType
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Exchange, Pact
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, SchemaError
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Int

Ints = npt.NDArray[np.int64]


class ClockedEngine(Protocol):
    """What one operator does with updates and a clock."""

    now: int | None
    """The word of the clock; None before it has one."""
    is_canonical: bool
    """Whether what follows of a time never has two updates of a record."""

    def move(self, now: int) -> list[Rows]:
        """Move the clock to a later word; what changes by that, as updates."""

    def add(self, rows: Rows) -> Rows:
        """Take in updates; those that follow at once."""

    def first(self) -> int | None:
        """The next word of the clock at which something changes by itself."""

    def contents(self) -> Iterable[StoredPart]:
        """What is kept, as rows that begin with the words by which they were exchanged."""

    def restore(self, parts: Mapping[str, Rows]) -> None:
        """Take in what `contents` gave, by name, where there is nothing yet."""


def check_clock(stream: StreamCore[Any], clock: Clock | None, name: str) -> None:
    """Refuse what is no clock, and times that are none.

    Raises
    ------
    BuildError
    """
    check_times(stream, name)
    if clock is not None and not isinstance(clock, Clock):
        raise BuildError(
            f"operator {name!r} is given clock={clock!r}, and needs one of scope.new_clock() or of "
            "an input ps.ClockInput() of a view"
        )
    if clock is None and stream.scope.timestamp is not Int:
        raise BuildError(
            f"operator {name!r} is given no clock, and the times of {stream.scope.path} are "
            f"{stream.scope.timestamp.name}, not epochs; give it clock="
        )


def clock_type_of(clock: Clock | None) -> WordType:
    """The type of the clock; epochs are integers."""
    return LONG if clock is None else clock.type


def bound_by_clock(value: Any, schema: Schema, clock: Clock | None, name: str) -> Bound:
    """A column or an expression of the type of the clock.

    Raises
    ------
    SchemaError
        If it is of another.
    """
    kind = clock_type_of(clock)
    expression: Expression = col(value) if isinstance(value, str) else as_expression(value)
    bound = expression.bind(schema)
    if bound.type != kind and not (bound.type.is_signed and kind.is_signed):
        raise SchemaError(
            f"operator {name!r}: {expression} is {bound.type.name}, and its clock is {kind.name}; "
            "cast it, or give a clock of its type"
        )
    return bound


def rows_at_times(time: Bound, rows: Rows) -> tuple[Rows, Ints]:
    """Those of some rows whose time is not null, and their times, int64[n]."""
    values, there = time.evaluate(rows)
    # A constant may be one value for all.
    times = np.broadcast_to(values, (len(rows),))
    if there is not None:
        rows, times = rows[there], times[there]
    return rows, times


def clocked(
    stream: StreamCore[Any],
    clock: Clock | None,
    make_engine: Callable[[], ClockedEngine],
    n_key: int | None,
    texts: tuple[int, ...],
    name: str,
    kept: str = "",
    what: str = "",
) -> StreamCore[Any]:
    """What an engine makes of updates.

    Parameters
    ----------
    n_key : int or None
        By so many words at the beginning they are exchanged. None of an engine that keeps
        nothing: they stay where they are.
    texts : tuple of int
        Which words of what it makes are numbers of texts.
    kept : str
        What the engine keeps, in words that are the same in every process: see `restored_rows`.
    what : str
        What else workers compare. A snapshot does not have it, as what is kept may go on with
        another lateness, for one.
    """
    if clock is None:
        return _by_epoch(stream, make_engine, n_key, texts, name, kept, what)
    return _by_clock(stream, clock, make_engine, n_key, texts, name, kept, what)


def _by_clock(
    stream: StreamCore[Any],
    clock: Clock,
    make_engine: Callable[[], ClockedEngine],
    n_key: int | None,
    texts: tuple[int, ...],
    name: str,
    kept: str,
    what: str,
) -> StreamCore[Any]:
    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        stash: Stash[Any] = Stash(info)
        # Where the clock was is sent by the clock, when the program begins again.
        engine = _begun(make_engine(), info, n_key, kept, what)

        def logic(records: Input, clock: Input, output: Output) -> None:
            stash.take(records, clock)
            for held, (batches, set_to) in stash:
                words = [word for batch in set_to for word in batch]
                now = max(words, default=None)
                parts = []
                if now is not None and (engine.now is None or now > engine.now):
                    parts = engine.move(now)
                _send(output, held, engine, [*parts, *_added(engine, batches)], texts, name)

        return logic

    pacts: list[Pact] = [_pact(n_key), Broadcast()]
    return operator([stream, clock.words], pacts, name, build, Interest.IF_CAPABILITY)


def _by_epoch(
    stream: StreamCore[Any],
    make_engine: Callable[[], ClockedEngine],
    n_key: int | None,
    texts: tuple[int, ...],
    name: str,
    kept: str,
    what: str,
) -> StreamCore[Any]:
    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        stash: Stash[Any] = Stash(info)
        engine = _begun(make_engine(), info, n_key, kept, what)

        def await_following(held: Capability) -> None:
            following = engine.first()
            if following is not None:
                # All that was due has been taken, or this epoch would come for ever.
                assert following > held.time
                # An entry without batches, so that this epoch is looked at by itself.
                stash.at(held, following)

        await_following(capability)
        capability.drop()

        def logic(records: Input, output: Output) -> None:
            stash.take(records)
            for held, batches in stash:
                parts = engine.move(held.time)
                _send(output, held, engine, [*parts, *_added(engine, batches)], texts, name)
                await_following(held)

        return logic

    return operator([stream], [_pact(n_key)], name, build, Interest.IF_CAPABILITY)


def _pact(n_key: int | None) -> Pact:
    return PIPELINE if n_key is None else Exchange(FirstWords(n_key))


def _begun(
    engine: ClockedEngine, info: OperatorInfo, n_key: int | None, kept: str, what: str
) -> ClockedEngine:
    """The engine with what it had kept, if the program begins with a snapshot."""
    info.states.compared = what
    if n_key is None:
        info.keeps_nothing()
        info.states.holds_no_texts()
    else:
        # What comes and what goes are in other forms than what is kept, so it is stored as a whole.
        rows, _ = restored_rows(info, n_key, engine.contents, None, what=kept)
        engine.restore(rows)
        # By epochs it has a capability for the next one at which something changes.
        waiting = [f"output 0 of {info.name!r} [{info.address[-1]}]"]
        info.states.holds_texts(
            lambda: [(part.rows, part.texts) for part in engine.contents()], waiting
        )
    return engine


def _added(engine: ClockedEngine, batches: Iterable[Updates]) -> list[Rows]:
    """What follows of all updates of a time."""
    given = [batch.rows for batch in batches]
    return [engine.add(given[0] if len(given) == 1 else np.concatenate(given))] if given else []


def _send(
    output: Output,
    held: Capability,
    engine: ClockedEngine,
    parts: list[Rows],
    texts: tuple[int, ...],
    name: str,
) -> None:
    parts = [rows for rows in parts if len(rows)]
    if not parts:
        return
    if engine.is_canonical:
        rows = np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))
    else:
        rows = consolidated([np.ascontiguousarray(rows) for rows in parts], name)
    send_rows(output, held, rows, texts)
