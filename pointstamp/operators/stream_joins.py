"""Joins of two streams: records of equal key meet, each pair once.

Two forms. *Per time*: records of equal time and key meet, and what a time needs is
forgotten when the other side can bring no more of it. *With retained state*: records of
all times meet, each pair at the least time that is at or after both; a side is
forgotten when the other has ended.

Both are symmetric: a batch asks the other side, then is kept for what will come there.
So pairs leave as soon as both records are there, and no capability is held.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, TypeVar, Unpack, overload

from pointstamp.containers.batch_join import How, check_how, check_join_keys
from pointstamp.containers.join_index import JoinIndex, index_for, paired
from pointstamp.containers.kind import Key
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.durability import OperatorState
from pointstamp.dataflow.error_policy import Failed, OnError, Routed, Unrouted
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.joined_keys import JoinedKeys
from pointstamp.operators.names_elsewhere import of_other_words
from pointstamp.operators.outer_joins import join_complete
from pointstamp.operators.split_merge import concatenate
from pointstamp.operators.user_code import refuse_deferred_of
from pointstamp.operators.validation import validated_keys
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Timestamp

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_state import KeyedBatches
    from pointstamp.operators.stream import Stream


U = TypeVar("U")

RowKey: TypeAlias = Callable[[Any], object] | None
Schemas: TypeAlias = tuple[Any, Any]


class Joined(Unrouted, total=False):
    """What `join` takes by name beside `how`, in types."""

    retain: bool
    schemas: Schemas


class JoinedRouted(Routed):
    """The same where failures are a stream."""

    how: NotRequired[How]
    retain: NotRequired[bool]
    schemas: NotRequired[Schemas]


def join(
    left: StreamCore[Any],
    right: StreamCore[Any],
    keys: tuple[Any, Any],
    *,
    retain: bool,
    name: str = "Join",
) -> Stream[Any]:
    """See `Stream.join`."""
    timestamp = left.scope.timestamp
    builder = OperatorBuilder(left.scope, name)
    builder.declare(how="inner", retain=retain)
    for stream, key in zip((left, right), keys, strict=True):
        builder.new_input(stream, Exchange(key), Interest.ALWAYS)
    result: Stream[Any] = builder.new_output(initial=False)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        make = _RetainedSide if retain else _PerTimeSide
        sides: tuple[Any, Any] = (
            make(keys[0], keys[1], timestamp),
            make(keys[1], keys[0], timestamp),
        )
        joined_keys = JoinedKeys(keys, info, takes_any_rows=True)
        if info.states.durable_state is not None:
            for side, which in zip(sides, ("left", "right"), strict=True):
                side.declare(which, info.states)

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            (output,) = outputs
            for own in (0, 1):
                mine, theirs, others = sides[own], sides[1 - own], inputs[1 - own].frontier
                for at, batch in inputs[own]:
                    joined_keys.see(own, batch)
                    for time, asked, found in mine.meet(batch, at.time, theirs, others):
                        pair = (found, asked) if own else (asked, found)
                        _send(output, at, time, paired(*pair, keys[1]))
            for own in (0, 1):
                sides[own].forget(inputs[1 - own].frontier)

        return logic

    builder.build(make_logic)
    return result


class _PerTimeSide:
    """One side of a join per time: what came, by time."""

    def __init__(self, own_key: Any, other_key: Any, timestamp: Timestamp) -> None:
        self._keys = (own_key, other_key)
        self._timestamp = timestamp
        self._index: dict[Any, JoinIndex] = {}
        self._times: list[tuple[Any, Any]] = []
        """(key, time), least first, where times are in one line."""
        self._elements: list[Any] | None = None

    def meet(self, batch: Any, time: Any, theirs: _PerTimeSide, others: Frontier) -> Any:
        """The pairs of a batch with what the other side keeps of its time.

        It is kept, if the other side may still bring something of that.
        """
        index = theirs._index.get(time)

        def arrive(_: Any) -> Any:
            return time

        if not others.less_equal(time):
            return () if index is None else index.pairs(batch, arrive)
        if time not in self._index:
            self._index[time] = index_for(batch, *self._keys)
            if self._timestamp.total:
                heapq.heappush(self._times, (self._timestamp.key(time), time))
        return self._index[time].meet(batch, time, index, arrive)

    def declare(self, which: str, states: OperatorState) -> None:
        """Nothing is kept from one epoch to the next."""

    def forget(self, others: Frontier) -> None:
        """Drop what the other side will bring nothing for."""
        if not self._index:
            return
        if self._timestamp.total:
            while self._times and not others.less_equal(self._times[0][1]):
                del self._index[heapq.heappop(self._times)[1]]
            return
        elements = others.elements
        if elements != self._elements:
            self._elements = elements
            for time in [time for time in self._index if not others.less_equal(time)]:
                del self._index[time]


class _RetainedSide:
    """One side of a join with retained state: all that came."""

    def __init__(self, own_key: Any, other_key: Any, timestamp: Timestamp) -> None:
        self._keys = (own_key, other_key)
        self._timestamp = timestamp
        self._index: JoinIndex | None = None
        self._elements: list[Any] = [timestamp.minimum]
        self._table: KeyedBatches | None = None

    def declare(self, which: str, states: OperatorState) -> None:
        """Have what is kept outlast the program; when it came does not matter then."""
        if not self._timestamp.total:
            states.refuse(
                "with retained state it pairs records of different rounds, whose times would be "
                "lost; join outside of the loop, or without retain=True"
            )
        # Here and not above: few dataflows are durable.
        from pointstamp.checkpoint.keyed_state import KeyedBatches, by_key, names_in

        key = self._keys[0]
        what = f"by {names}" if (names := names_in(key)) else ""
        self._table = KeyedBatches(
            self._everything, self._take_in, by_key(key), grows_only=True, what=what
        )
        states.keep(which, self._table)

    def _everything(self) -> Iterator[tuple[None, Any]]:
        if self._index is not None:
            for batch in self._index.batches():
                yield None, batch

    def _take_in(self, tag: None, batch: Any) -> None:
        if self._index is None:
            self._index = index_for(batch, *self._keys)
        self._index.add(batch, self._timestamp.minimum)

    def meet(self, batch: Any, time: Any, theirs: _RetainedSide, others: Frontier) -> Any:
        """The pairs of a batch with what the other side keeps, each at the least time after both.

        It is kept, if the other side may still bring something.
        """
        join = self._timestamp.join

        def arrive(other: Any) -> Any:
            return time if other is None else join(time, other)

        if others.is_empty():
            return () if theirs._index is None else theirs._index.pairs(batch, arrive)
        if self._index is None:
            self._index = index_for(batch, *self._keys)
        if self._table is not None:
            self._table.add(None, batch)
        return self._index.meet(batch, time, theirs._index, arrive)

    def forget(self, others: Frontier) -> None:
        """Drop everything when the other side has ended; else what no time can keep apart."""
        elements = others.elements
        if self._index is None or elements == self._elements:
            return
        self._elements = elements
        if not elements:
            self._index = None
            if self._table is not None:
                self._table.clear()
            return
        less_equal = self._timestamp.less_equal
        self._index.merge_times(lambda time: all(less_equal(time, element) for element in elements))


def _send(output: Output, at: InputCapability, time: Any, batch: Any) -> None:
    if time == at.time:
        output.session(at).give_batch(batch)
    else:
        with at.delayed(time) as capability:
            output.session(capability).give_batch(batch)


class JoinMethods(StreamCore[T]):
    """Joins with another stream. Methods of `Stream`."""

    @overload
    def join(
        self,
        other: StreamCore[U],
        key: Key = None,
        other_key: Key = None,
        **options: Unpack[JoinedRouted],
    ) -> tuple[Stream[Any], Stream[Failed[Any]]]: ...

    @overload
    def join(
        self,
        other: StreamCore[U],
        key: Key = None,
        other_key: Key = None,
        *,
        how: Literal["semi", "anti"],
        **options: Unpack[Joined],
    ) -> Stream[T]: ...

    @overload
    def join(
        self,
        other: StreamCore[U],
        key: str | Sequence[str],
        other_key: Key = None,
        *,
        how: How = "inner",
        **options: Unpack[Joined],
    ) -> Stream[Any]: ...

    @overload
    def join(
        self,
        other: StreamCore[U],
        key: RowKey = None,
        other_key: RowKey = None,
        *,
        how: Literal["inner"] = "inner",
        **options: Unpack[Joined],
    ) -> Stream[tuple[T, U]]: ...

    @overload
    def join(
        self,
        other: StreamCore[U],
        key: RowKey = None,
        other_key: RowKey = None,
        *,
        how: Literal["left"],
        **options: Unpack[Joined],
    ) -> Stream[tuple[T, U | None]]: ...

    @overload
    def join(
        self,
        other: StreamCore[U],
        key: RowKey = None,
        other_key: RowKey = None,
        *,
        how: Literal["right"],
        **options: Unpack[Joined],
    ) -> Stream[tuple[T | None, U]]: ...

    @overload
    def join(
        self,
        other: StreamCore[U],
        key: RowKey = None,
        other_key: RowKey = None,
        *,
        how: Literal["full"],
        **options: Unpack[Joined],
    ) -> Stream[tuple[T | None, U | None]]: ...

    @of_other_words(
        "streams", {"on": "key=", **dict.fromkeys(("left_on", "right_on"), "key= and other_key=")}
    )
    def join(
        self,
        other: StreamCore[U],
        key: Key = None,
        other_key: Key = None,
        *,
        retain: bool = False,
        how: How = "inner",
        schemas: Schemas = (None, None),
        on_error: OnError = "raise",
        name: str = "Join",
    ) -> Any:
        """Join with `other` on equal keys: records of equal times, or, with `retain`, of all times.

        Both streams are exchanged by key, and must have the same kind of container. A null (in
        columns) and a NaN match nothing; in rows a None matches a None.

        Parameters
        ----------
        key : callable, str, or sequence of str, optional
            On rows a function of the record (the default: the record itself, also of pairs
            that `reduce` takes for a key and a value: give `lambda pair: pair[0]`); on
            columns a column's name, or several.
        other_key : optional
            The same for `other`; the default is `key`.
        retain : bool
            False: records of equal times join, and are discarded when
            their time is complete. True: records of all times join, each pair at the
            least time at or after both, and all records are kept until the other
            stream ends; custom timestamp types need a `join` method. Inner joins only.
        how : {"inner", "left", "right", "full", "semi", "anti"}
            "inner": the pairs, each as soon as both records have arrived. The others
            need a complete time. "left", "right", "full": also the records of that
            side, or of both, without a partner, with None in its place, or nulls. "semi":
            the records of this stream with a partner, once each; "anti": those
            without.
        schemas : tuple of (pyarrow.Schema or None), optional
            Of both streams, for an outer join of columns in which one stream may have records
            before the other has had any batch, on any worker.
        on_error : {"raise", "route", "drop"}
            As for `map`, where a key fails or cannot be hashed; with "route" a second stream has
            the failures of both streams, whose operators are "JoinLeft" and "JoinRight".
        name : str
            Of the operator.

        Returns
        -------
        Stream
            Of rows, pairs of records; of columns, the columns of this stream and then
            those of `other` without its key, with "_right" after names that are taken. In an
            outer join the columns of the key are those of whichever side there is. Of "semi" and
            "anti", records of this stream.

        Raises
        ------
        BuildError
            If there is no such join, or `retain` is given for a join that is not inner; if the
            keys are of unequally many columns, or of columns that `schemas` do not have.
        SchemaError
            While it runs, if the columns of a side are needed and not known, or if the keys of
            both sides have incompatible types, such as strings and numbers.

        >>> import pointstamp as ps
        >>> def build(scope, how="inner"):
        ...     ages = scope.to_stream([("ann", 40), ("bob", 50)])
        ...     towns = scope.to_stream([("bob", "Rome"), ("eve", "Oslo")])
        ...     return ages.join(towns, lambda person: person[0], how=how)
        >>> ps.testing.collect(build)
        [(0, (('bob', 50), ('bob', 'Rome')))]
        >>> ps.testing.collect(lambda scope: build(scope, "anti"))
        [(0, ('ann', 40))]
        """
        keys = (key, key if other_key is None else other_key)
        refuse_deferred_of(name, *keys)
        check_join_keys(keys, schemas, name)
        check_how(how, name)
        if retain and how != "inner":
            raise BuildError(
                f"operator {name!r} cannot retain what has come and join by how={how!r}: whether a "
                "record has no partner is known for a time, and not for all times to come; join "
                "per time, or join inner"
            )
        left, *failed_left = validated_keys(self, keys[0], on_error, f"{name}Left")
        right, *failed_right = validated_keys(other, keys[1], on_error, f"{name}Right")
        if how == "inner":
            pairs = join(left, right, keys, retain=retain, name=name)
        else:
            pairs = join_complete((left, right), keys, how, schemas, name)
        failed = [*failed_left, *failed_right]
        return (pairs, concatenate(failed)) if failed else pairs
