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
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, Unpack, overload

from pointstamp.containers import kind_of
from pointstamp.containers.keys import check_key
from pointstamp.containers.kind import Key
from pointstamp.containers.registry import n_records
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.error_policy import (
    FAILED,
    ErrorPolicy,
    Failed,
    OnError,
    Routed,
    Unrouted,
    streams,
)
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Exchange, Pact, Pipeline
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.partial_aggregates import in_part
from pointstamp.operators.row_folds import checked_turn, fold_rows, take_turns
from pointstamp.operators.split_merge import concatenate
from pointstamp.operators.user_code import check_function, check_takes, refuse_deferred_of
from pointstamp.operators.validation import validated_keys
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.containers.group_totals import GroupTotals
    from pointstamp.containers.named_aggregates import AggregatesByName
    from pointstamp.operators.stream import Stream

K = TypeVar("K")
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")

KEPT_RECORDS = 1 << 20
"""How many records of a time are kept before they are aggregated."""

Fold = Callable[[Any, Any, Any], Any]


class FoldMethods(StreamCore[T]):
    """Operators that fold the records of a time, or of a key. Methods of `Stream`."""

    @overload
    def accumulate(
        self, default: U, logic: Callable[[U, Any], U], **options: Unpack[Routed]
    ) -> tuple[Stream[U], Stream[Failed[Any]]]: ...

    @overload
    def accumulate(
        self, default: U, logic: Callable[[U, Any], U], **options: Unpack[Unrouted]
    ) -> Stream[U]: ...

    def accumulate(
        self,
        default: U,
        logic: Callable[[U, Any], U],
        *,
        on_error: OnError = "raise",
        name: str = "Accumulate",
    ) -> Any:
        """Fold the records of each time on each worker; emitted when the time is complete.

        Parameters
        ----------
        default
            What each time starts from; a copy of it.
        logic : callable
            `logic(value, batch)` gives the new value. `batch` is a container.
        on_error : {"raise", "route", "drop"}
            As for `map_batches`: the value stays as it was before a batch on which `logic`
            fails (unless it was changed in place). Without any other there is no value.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([1, 2, 3]).accumulate(0, lambda value, b: value + sum(b))
        >>> ps.testing.collect(build)
        [(0, 6)]
        """
        check_function(logic, name)
        check_takes(logic, name, "value", "batch")
        policy = ErrorPolicy(self.scope.environment, name, on_error)
        attempt = policy.guard(logic, lambda value, batch: batch, n_records)
        return _answered(
            self, Pipeline(), name, lambda _: _Total(deepcopy(default), attempt), policy
        )

    @overload
    def aggregate(
        self,
        fold: Any,
        emit: Callable[..., Any] | None = None,
        key: Key = None,
        default: Any = None,
        **options: Unpack[Routed],
    ) -> tuple[Stream[Any], Stream[Failed[Any]]]: ...

    @overload
    def aggregate(
        self,
        fold: Callable[[K, T, V], V],
        emit: None = None,
        *,
        key: Callable[[T], K],
        default: V,
        **options: Unpack[Unrouted],
    ) -> Stream[tuple[K, V]]: ...

    @overload
    def aggregate(
        self: StreamCore[tuple[K, W]],
        fold: Callable[[K, W, V], V],
        emit: None = None,
        *,
        key: None = None,
        default: V,
        **options: Unpack[Unrouted],
    ) -> Stream[tuple[K, V]]: ...

    @overload
    def aggregate(
        self,
        fold: Callable[[K, T, V], V],
        emit: Callable[[K, V], U],
        key: Callable[[T], K],
        default: V,
        **options: Unpack[Unrouted],
    ) -> Stream[U]: ...

    @overload
    def aggregate(
        self,
        fold: Any,
        emit: Callable[..., Any] | None = None,
        key: Key = None,
        default: Any = None,
        **options: Unpack[Unrouted],
    ) -> Stream[Any]: ...

    def aggregate(
        self,
        fold: Any,
        emit: Callable[..., Any] | None = None,
        key: Key = None,
        default: Any = None,
        *,
        on_error: OnError = "raise",
        name: str = "Aggregate",
    ) -> Any:
        """Aggregate the records of each key and time; emitted when the time is complete.

        Parameters
        ----------
        fold : callable, or sequence of (column, function)
            `fold(key, record, aggregate)` gives the new aggregate. Without a `key`
            records are pairs (key, value), and it is given the value. On columns it
            is called once for each key, with all its records as a batch.

            On columns it may also be a list of aggregates by name, as for
            `pyarrow.TableGroupBy.aggregate`: the answer is a record batch with the columns
            of the key, then `{column}_{function}` for each. Only these columns are sent and
            kept; sums, counts, extremes and the like are combined before they are sent.
            Arrow adds and multiplies integers in 64 bits and decimals in 128 (or 256), and does
            not check: what goes beyond wraps around. Where that can be, cast to float64 or
            decimal256 before.
        emit : callable, optional
            `emit(key, aggregate)` gives the record to send, by default the pair of
            them; for aggregates by name, `emit(batch)` gives the batch to send.
        key : callable, str, or sequence of str, optional
            On rows a function of the record; on columns a column's name, or several
            (keys are tuples then). Records of equal key meet on one worker.
        default
            What each aggregate starts from; a copy of it.
        on_error : {"raise", "route", "drop"}
            As for `map`, where `key`, `fold` or `emit` fails. The aggregate stays as it was
            before a record on which `fold` fails (unless it was changed in place); of those
            alone nothing is sent. What `emit` fails on is a pair (key, aggregate), or the
            batch of aggregates by name. Keys are computed more than once then.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     words = scope.to_stream(["a", "bb", "c"])
        ...     return words.aggregate(lambda key, word, n: n + 1, key=len, default=0)
        >>> ps.testing.collect(build)
        [(0, (1, 2)), (0, (2, 1))]

        >>> import pyarrow as pa
        >>> def build(scope):
        ...     batch = pa.record_batch({"user": [7, 9, 7], "spent": [1, 2, 3]})
        ...     return scope.batches_to_stream([batch]).aggregate([("spent", "sum")], key="user")
        >>> ps.testing.collect(build)
        [(0, (7, 4)), (0, (9, 2))]
        """
        refuse_deferred_of(name, fold, emit, key)
        check_key(key, name)
        check_takes(fold, name, "key", "record", "aggregate")
        if not callable(fold):
            _check_named(fold, key, name)
        if emit is not None:
            check_function(emit, name)
        policy = ErrorPolicy(self.scope.environment, name, on_error)
        keyed, *unkeyed = validated_keys(self, _validated_key(key), on_error, f"{name}Key")
        if not callable(fold):
            is_sent = keyed.scope.environment.peers > 1
            keyed = in_part(keyed, _named(fold, key, name, is_sent=is_sent), f"{name}Parts")
        make = partial(
            _answer_for(fold, key), _guarded(fold, emit, key, policy), key, default, name
        )
        return _answered(keyed, _to_their_key(key), name, make, policy, *unkeyed)

    @overload
    def state_machine(
        self, fold: Any, key: Key = None, default: Any = None, **options: Unpack[Routed]
    ) -> tuple[Stream[Any], Stream[Failed[Any]]]: ...

    @overload
    def state_machine(
        self,
        fold: Callable[[K, T, V], tuple[V | None, Iterable[U]]],
        key: Callable[[T], K],
        default: V,
        **options: Unpack[Unrouted],
    ) -> Stream[U]: ...

    @overload
    def state_machine(
        self: StreamCore[tuple[K, W]],
        fold: Callable[[K, W, V], tuple[V | None, Iterable[U]]],
        key: None = None,
        *,
        default: V,
        **options: Unpack[Unrouted],
    ) -> Stream[U]: ...

    @overload
    def state_machine(
        self, fold: Any, key: Key = None, default: Any = None, **options: Unpack[Unrouted]
    ) -> Stream[Any]: ...

    def state_machine(
        self,
        fold: Any,
        key: Key = None,
        default: Any = None,
        *,
        on_error: OnError = "raise",
        name: str = "StateMachine",
    ) -> Any:
        """Update a state for each key by its records, in the order of their times, with results.

        Records of a later time wait until the earlier ones are complete; those of one
        time come in any order. So do those of two times of which neither is earlier, as in a
        loop round 1 of epoch 0 and round 0 of epoch 1: one state is kept of both, and what it
        comes to between them depends on timing.

        Parameters
        ----------
        fold : callable
            `fold(key, record, state)` gives the new state, or None to forget the key,
            and an iterable of records to send at the time of this one. Without a `key`
            records are pairs (key, value), and it is given the value. On columns it is
            called once for each key and complete time, with all its records as a batch,
            and gives the new state, and a container to send or None.
        key : callable, str, or sequence of str, optional
            As for `aggregate`.
        default
            The state of a key that has none; a copy of it.
        on_error : {"raise", "route", "drop"}
            As for `aggregate`: a record on which `fold` fails sends nothing, and leaves the
            state as it was (unless it was changed in place).

        >>> import pointstamp as ps
        >>> def total(key, value, state):
        ...     return state + value, [(key, state + value)]
        >>> def build(scope):
        ...     return scope.to_stream([("a", 1), ("a", 2)]).state_machine(total, default=0)
        >>> ps.testing.collect(build)
        [(0, ('a', 1)), (0, ('a', 3))]
        """
        check_function(fold, name)
        check_takes(fold, name, "key", "value", "state")
        refuse_deferred_of(name, key)
        check_key(key, name)
        policy = ErrorPolicy(self.scope.environment, name, on_error)
        keyed, *unkeyed = validated_keys(self, _validated_key(key), on_error, f"{name}Key")
        of_columns = is_of_columns(key)
        turn = _turn(fold, key, policy, name)
        builder = OperatorBuilder(self.scope, name)
        builder.new_input(keyed, _to_their_key(key), Interest.IF_CAPABILITY)
        results = builder.new_output(initial=False)
        failed = policy.new_output(builder)

        def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
            # A record may have its turn once none of an earlier time can come. The groups of
            # columns are of all records of a time, and wait until there are no more of those.
            stash: Stash[list[Any]] = Stash(info, n_outputs=1 + len(failed), early=not of_columns)
            states = info.state("states")

            def logic(inputs: list[Input], outputs: list[Output]) -> None:
                for time, batch in inputs[0]:
                    stash.add(time, batch)
                for rights, batches in stash.by_output():
                    with outputs[0].session(rights[0]) as session:
                        whole = _whole(batches)
                        keyed: Iterable[Any]
                        if of_columns:
                            keyed, of = kind_of(whole).group(whole, key, name), None
                        else:
                            keyed, of = kind_of(whole).to_fold(whole, key, name)
                        take_turns(keyed, of, turn, states, default, session, name, of_columns)
                    policy.send(outputs, rights[-1])

            return logic

        builder.build(make_logic)
        return _with_failures(results, *failed, *unkeyed)


class _TimeAnswer(Protocol):
    """Takes the batches of a time, and gives what is to be sent when it is complete."""

    def take(self, batch: Any) -> None:
        """One more batch."""

    def answer(self) -> Any:
        """A container."""


def _answered(
    stream: StreamCore[Any],
    pact: Pact,
    name: str,
    make: Callable[[Callable[[], Any]], _TimeAnswer],
    policy: ErrorPolicy,
    *unkeyed: StreamCore[Any],
) -> Any:
    """Have each time answered by an object that `make` gives for it, of a maker of lists."""
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, pact, Interest.IF_CAPABILITY)
    results = builder.new_output(initial=False)
    failed = policy.new_output(builder)

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        stash = Stash(info, partial(make, info.new_batches), n_outputs=1 + len(failed))

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            for time, batch in inputs[0]:
                stash.at(time).take(batch)
                policy.send(outputs, time)
            for rights, value in stash.by_output():
                answer = value.answer()
                if answer is not FAILED:
                    with outputs[0].session(rights[0]) as session:
                        session.give_batch(answer)
                policy.send(outputs, rights[-1])

        return logic

    builder.build(make_logic)
    return _with_failures(results, *failed, *unkeyed)


def _with_failures(results: Any, *failed: StreamCore[Any]) -> Any:
    """The results, and all failures as one stream if they are routed."""
    return streams(results, *([concatenate(failed)] if len(failed) > 1 else failed))


class _Total:
    """One value, which each batch changes."""

    def __init__(self, total: Any, logic: Callable[[Any, Any], Any]) -> None:
        self._total = total
        self._logic = logic
        self._is_any = False
        """Whether anything was folded: of failures alone there is no value."""

    def take(self, batch: Any) -> None:
        total = self._logic(self._total, batch)
        if total is not FAILED:
            self._total = total
            self._is_any = True

    def answer(self) -> Any:
        return [self._total] if self._is_any else FAILED


class _OfRows:
    """A value for each key, which each record of the key changes."""

    def __init__(
        self, code: _Code, key: Key, default: Any, name: str, new_batches: Callable[[], Any]
    ) -> None:
        self._code = code
        self._key = key
        self._default = default
        self._name = name
        self._aggregates: dict[Any, Any] = {}

    def take(self, batch: Any) -> None:
        records, key = kind_of(batch).to_fold(batch, self._key, self._name)
        fold_rows(records, key, self._code.fold, self._aggregates, self._default, self._name)

    def answer(self) -> list[Any]:
        if self._code.emit is _pair:
            return list(self._aggregates.items())
        return _good(starmap(self._code.emit, self._aggregates.items()))


class _OfColumns:
    """The batches of a time, of which each key has its records folded at once."""

    def __init__(
        self, code: _Code, key: Key, default: Any, name: str, new_batches: Callable[[], Any]
    ) -> None:
        self._code = code
        self._key = key
        self._default = default
        self._name = name
        self._batches = new_batches()

    def take(self, batch: Any) -> None:
        self._batches.append(batch)

    def answer(self) -> list[Any]:
        folded = (
            (key, self._code.fold(key, records, deepcopy(self._default)))
            for key, records in self._groups()
        )
        return _good(self._code.emit(*pair) for pair in folded if pair[1] is not FAILED)

    def _groups(self) -> Iterator[tuple[Any, Any]]:
        """Each key, and its records."""
        whole = _whole(self._batches)
        return kind_of(whole).group(whole, self._key, self._name)


class _Named:
    """The parts of a time, and the aggregates that were named of them.

    Parts that a table can add up are not kept. Of others Arrow makes the aggregates; where
    they can be combined, that is done now and then. So what is kept grows with the keys and
    not with the records.
    """

    def __init__(
        self, code: _Code, key: Key, default: Any, name: str, new_batches: Callable[[], Any]
    ) -> None:
        self._emit = code.emit
        self._named = _named(code.fold, key, name)
        self._is_new = True
        self._totals: GroupTotals | None = None
        self._parts = new_batches()
        self._n_records = 0
        self._room: float = KEPT_RECORDS if self._named.combines else math.inf

    def take(self, batch: Any) -> None:
        if self._is_new:
            self._is_new = False
            self._totals = self._named.totals(batch)
        if self._totals is not None:
            if self._totals.add(batch):
                return
            # A null has come, which Arrow knows about; or another type, which it refuses.
            self._parts.append(self._totals.batch())
            self._n_records += self._parts[0].num_rows
            self._totals = None
        self._parts.append(batch)
        self._n_records += batch.num_rows
        if self._n_records >= self._room:
            self._parts = [self._named.whole(self._parts)]
            # As many as there are keys, or the same keys would be gone through too often.
            self._n_records = self._parts[0].num_rows
            self._room = self._n_records + max(KEPT_RECORDS, self._n_records)

    def answer(self) -> Any:
        if self._totals is not None:
            return self._emit(self._totals.batch())
        return self._emit(self._named.whole(self._parts))


def _named(fold: Any, key: Key, name: str, *, is_sent: bool = True) -> AggregatesByName:
    # Here and not above: it is Arrow, which programs without columns do not import.
    from pointstamp.containers.named_aggregates import AggregatesByName

    return AggregatesByName(key, list(fold), name, is_sent=is_sent)


class _Code(NamedTuple):
    """What an aggregate calls, guarded: the fold (or the aggregates by name), and emit."""

    fold: Any
    emit: Callable[..., Any]


def _guarded(fold: Any, emit: Callable[..., Any] | None, key: Key, policy: ErrorPolicy) -> _Code:
    if not callable(fold):
        # Arrow's aggregates fail for all records together, which is no record's fault.
        return _Code(fold, policy.guard(emit, n_records=n_records) if emit else lambda batch: batch)
    return _Code(
        _guarded_fold(fold, key, policy), policy.guard(emit or _pair, lambda of, value: (of, value))
    )


def _guarded_fold(fold: Fold, key: Key, policy: ErrorPolicy) -> Fold:
    """What it fails on is a record; of columns, the records of a key."""
    return policy.guard(
        fold,
        lambda of, value, aggregate: (of, value) if key is None else value,
        n_records if is_of_columns(key) else lambda record: 1,
    )


def _turn(fold: Fold, key: Key, policy: ErrorPolicy, name: str) -> Fold:
    """The fold of a state machine: if guarded, what it gives is checked and all there."""

    def turn(of: Any, value: Any, state: Any) -> tuple[Any, Any]:
        state, answers = checked_turn(fold(of, value, state), of, name)
        if not policy.raises and not is_of_columns(key) and answers is not None:
            # What an iterator gives before it fails must not be among the results.
            answers = list(answers)
        return state, answers

    return fold if policy.raises else _guarded_fold(turn, key, policy)


def _answer_for(fold: Any, key: Key) -> Callable[..., _TimeAnswer]:
    if not callable(fold):
        return _Named
    return _OfColumns if is_of_columns(key) else _OfRows


def _validated_key(key: Key) -> Key:
    """The key that is tried before: without one, records must be pairs."""
    return _first_of_pair if key is None else key


def _first_of_pair(record: Any) -> Any:
    of, _ = record
    return of


def _good(results: Iterable[Any]) -> list[Any]:
    """Those that did not fail."""
    return [result for result in results if result is not FAILED]


def _whole(batches: list[Any]) -> Any:
    return batches[0] if len(batches) == 1 else kind_of(batches[0]).concat(batches)


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


def _pair(key: Any, aggregate: Any) -> tuple[Any, Any]:
    """What is emitted where nothing else is said."""
    return key, aggregate


def _check_named(aggregates: Any, key: Key, name: str) -> None:
    if not is_of_columns(key):
        raise BuildError(
            f"{name}: named aggregates {aggregates!r} are of columns; name those of the key "
            f"instead of {key!r}, or give a function fold(key, record, aggregate)"
        )
    from pointstamp.containers.arrow_groups import check_aggregates

    check_aggregates(aggregates, name)
