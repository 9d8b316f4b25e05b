"""Operators that answer for the records of a time together: by time, or by time and key.

What they keep is kept by time, under one capability for each time, until the time
is complete. A state machine also keeps a state for each key, from time to time.

On rows the user's function is called for each record. On columns it is called for
each key, with all its records of a time as one batch: that is the same whatever
batches they came in.

Source: timely-dataflow `dataflow/operators/vec/count.rs` and
`vec/aggregation/{aggregate,state_machine}.rs`. Theirs change a state in place; here a
new one is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Protocol

from pointstamp.containers import kind_of
from pointstamp.containers.keys import alike
from pointstamp.containers.kind import Key
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output, Session
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange, Pact, Pipeline
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, ContainerError, DataError
from pointstamp.operators.generic import operator_notify

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

KEPT_RECORDS = 1 << 20
"""How many records of a time are kept before they are aggregated."""

Fold = Callable[[Any, Any, Any], Any]

Keyed = Iterable[tuple[Any, Any]]
"""Keys, and a value or the records of each."""


def accumulate(
    stream: StreamCore[Any],
    default: Any,
    logic: Callable[[Any, Any], Any],
    name: str = "Accumulate",
) -> Stream[Any]:
    """See `Stream.accumulate`."""
    return _answered(stream, Pipeline(), name, lambda: _Total(deepcopy(default), logic))


def aggregate(
    stream: StreamCore[Any],
    fold: Any,
    emit: Callable[..., Any] | None = None,
    key: Key = None,
    default: Any = None,
    name: str = "Aggregate",
) -> Stream[Any]:
    """See `Stream.aggregate`."""
    pact = _to_their_key(key)
    if not callable(fold):
        _check_named(fold, key, name)
        return _answered(stream, pact, name, lambda: _Named(list(fold), emit, key, name))
    make = _OfColumns if is_of_columns(key) else _OfRows
    return _answered(stream, pact, name, lambda: make(fold, emit or pair, key, default, name))


def state_machine(
    stream: StreamCore[Any],
    fold: Fold,
    key: Key = None,
    default: Any = None,
    name: str = "StateMachine",
) -> Stream[Any]:
    """See `Stream.state_machine`."""
    of_columns = is_of_columns(key)
    keyed = _keyed_columns if of_columns else _keyed_rows

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        held: dict[Any, list[Any]] = {}
        states = info.state("states")

        def turn(of: Any, value: Any, session: Session) -> None:
            state = states.pop(of) if of in states else deepcopy(default)
            state, answers = _turned(fold(of, value, state), of, name)
            if state is not None:
                states[of] = state
            if answers is not None:
                give = session.give_batch if of_columns else session.give_many
                give(answers)

        def logic(input_: Input, output: Output, notificator: Notificator) -> None:
            _keep(input_, held, notificator)
            for capability in notificator:
                with capability, output.session(capability) as session:
                    for of, value in keyed(_whole(held.pop(capability.time)), key, name):
                        turn(of, value, session)

        return logic

    # A record may have its turn once none of an earlier time can come. The groups of
    # columns are of all records of a time, and wait until there are no more of those.
    return operator_notify([stream], [_to_their_key(key)], name, build, (), early=not of_columns)


def _turned(turn: Any, of: Any, name: str) -> tuple[Any, Any]:
    """What a fold gave, if that is a state and what to send."""
    if not isinstance(turn, (tuple, list)) or len(turn) != 2:
        raise DataError(
            f"{name}: the function gave {turn!r:.200} for the key {of!r:.200}; give (state, "
            "records to send): None forgets the key, and [] sends nothing"
        )
    state, answers = turn
    return state, answers


class _Answer(Protocol):
    """Takes the batches of a time, and gives what is to be sent when it is complete."""

    def take(self, batch: Any) -> None:
        """One more batch."""

    def answer(self) -> Any:
        """A container."""


def _answered(
    stream: StreamCore[Any], pact: Pact, name: str, make: Callable[[], _Answer]
) -> Stream[Any]:
    """Have each time answered by an object that `make` gives for it."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        waiting: dict[Any, _Answer] = {}

        def logic(input_: Input, output: Output, notificator: Notificator) -> None:
            for time, batch in input_:
                if time.time not in waiting:
                    waiting[time.time] = make()
                    notificator.notify_at(time.retain())
                waiting[time.time].take(batch)
            for capability in notificator:
                with capability, output.session(capability) as session:
                    session.give_batch(waiting.pop(capability.time).answer())

        return logic

    return operator_notify([stream], [pact], name, build, ())


class _Total:
    """One value, which each batch changes."""

    def __init__(self, total: Any, logic: Callable[[Any, Any], Any]) -> None:
        self._total = total
        self._logic = logic

    def take(self, batch: Any) -> None:
        self._total = self._logic(self._total, batch)

    def answer(self) -> list[Any]:
        return [self._total]


class _OfRows:
    """A value for each key, which each record of the key changes."""

    def __init__(
        self, fold: Fold, emit: Callable[[Any, Any], Any], key: Key, default: Any, name: str
    ) -> None:
        self._fold = fold
        self._emit = emit
        self._key = key
        self._default = default
        self._name = name
        self._aggregates: dict[Any, Any] = {}

    def take(self, batch: Any) -> None:
        fold, aggregates = self._fold, self._aggregates
        for key, value in _keyed_rows(batch, self._key, self._name):
            if key not in aggregates:
                aggregates[key] = deepcopy(self._default)
            aggregates[key] = fold(key, value, aggregates[key])

    def answer(self) -> list[Any]:
        return [self._emit(key, value) for key, value in self._aggregates.items()]


class _OfColumns:
    """The batches of a time, of which each key has its records folded at once."""

    def __init__(
        self, fold: Fold, emit: Callable[[Any, Any], Any], key: Key, default: Any, name: str
    ) -> None:
        self._fold = fold
        self._emit = emit
        self._key = key
        self._default = default
        self._name = name
        self._batches: list[Any] = []

    def take(self, batch: Any) -> None:
        self._batches.append(batch)

    def answer(self) -> list[Any]:
        return [
            self._emit(key, self._fold(key, records, deepcopy(self._default)))
            for key, records in _keyed_columns(_whole(self._batches), self._key, self._name)
        ]


class _Named:
    """The batches of a time, of which Arrow makes the aggregates that were named.

    Where the answers for parts of the records can be combined, those take the place of
    the records now and then: so what is kept grows with the keys and not with the records.
    """

    def __init__(
        self, aggregates: list[Any], emit: Callable[[Any], Any] | None, key: Key, name: str
    ) -> None:
        # Here and not above: it is Arrow, which programs without columns do not import.
        from pointstamp.containers import groups

        self._groups = groups
        self._emit = emit
        self._how = (key, aggregates, name)
        self._batches: list[Any] = []
        self._n_records = 0
        self._part: Any = None
        """The answer for the records that are not kept any more."""
        self._room: float = KEPT_RECORDS if groups.can_combine(key, aggregates) else math.inf

    def take(self, batch: Any) -> None:
        self._batches.append(batch)
        self._n_records += kind_of(batch).length(batch)
        if self._n_records >= self._room:
            self._part = self._of_all()
            self._batches.clear()
            self._n_records = 0
            # As many as there are keys, or the same keys would be gone through too often.
            self._room = max(KEPT_RECORDS, kind_of(self._part).length(self._part))

    def answer(self) -> Any:
        answer = self._of_all()
        return answer if self._emit is None else self._emit(answer)

    def _of_all(self) -> Any:
        if not self._batches:
            return self._part
        answer = self._groups.aggregated(_whole(self._batches), *self._how)
        return (
            answer
            if self._part is None
            else self._groups.combined((self._part, answer), *self._how)
        )


def _keep(input_: Input, held: dict[Any, list[Any]], notificator: Notificator) -> None:
    """Keep what has come, by time, and ask to be notified of each."""
    for time, batch in input_:
        if time.time not in held:
            held[time.time] = []
            notificator.notify_at(time.retain())
        held[time.time].append(batch)


def _whole(batches: list[Any]) -> Any:
    return batches[0] if len(batches) == 1 else kind_of(batches[0]).concat(batches)


def _keyed_rows(batch: Any, key: Key, name: str) -> Keyed:
    """The key and the value of each record: it is a pair of them, or `key` is a function of it."""
    if type(batch) is not list:
        raise ContainerError(
            f"{name} was given batches of {kind_of(batch).name} ({type(batch).__name__}) and the "
            f"key {key!r}: name the columns of the key, as key='user' or key=['user', 'day']"
        )
    if key is None:
        return (checked_pair(record, name) for record in batch)
    assert callable(key)
    return ((alike(key(record)), record) for record in batch)


def checked_pair(record: Any, name: str) -> tuple[Any, Any]:
    """The key and the value of a record that is a pair of them.

    Raises
    ------
    DataError
    """
    try:
        of, value = record
    except (TypeError, ValueError):
        raise DataError(
            f"{name} without a key takes records that are pairs (key, value), and was given "
            f"{record!r:.200}; say what its key is, as key=lambda record: ..."
        ) from None
    return alike(of), value


def _keyed_columns(batch: Any, key: Key, name: str) -> Keyed:
    """Each key of a batch of columns, and its records."""
    # Here and not above: it is Arrow, which programs without columns do not import.
    from pointstamp.containers.groups import groups

    return groups(batch, key, name)


def is_of_columns(key: Key) -> bool:
    """Whether a key names columns, rather than being a function of a record or nothing."""
    return key is not None and not callable(key)


def _to_their_key(key: Key) -> Pact:
    return Exchange(_first if key is None else key)


def _first(record: Any) -> Any:
    try:
        return record[0]
    except (TypeError, LookupError):
        return None  # anywhere: it is no pair, and the operator says so


def pair(key: Any, aggregate: Any) -> tuple[Any, Any]:
    """What is emitted where nothing else is said."""
    return key, aggregate


def _check_named(aggregates: Any, key: Key, name: str) -> None:
    if not is_of_columns(key):
        raise BuildError(
            f"{name}: named aggregates {aggregates!r} are of columns; name those of the key "
            f"instead of {key!r}, or give a function fold(key, record, aggregate)"
        )
    from pointstamp.containers.groups import check_aggregates

    check_aggregates(aggregates, name)
