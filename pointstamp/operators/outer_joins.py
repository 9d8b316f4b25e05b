"""Joins that say what has no partner: outer joins, semijoin and antijoin, time by time.

They can answer for a time only when it is complete on both sides, and keep the records of both
until then; an inner join sends its pairs as they come (`stream_joins.py`).

In an outer join of columns a record without a partner needs the columns of the other side, of
which this worker may have had no batch. So each worker sends the schemas that it sees to all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.containers.batch_join import How, joined
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Exchange, Pact, Pipeline
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.operators.generic import operator, operator_notify
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

_NULLABLE = {"left": [1], "right": [0], "full": [0, 1]}
"""By the kind of join: the sides that may be missing."""


def join_complete(
    streams: tuple[StreamCore[Any], StreamCore[Any]],
    keys: tuple[Any, Any],
    how: How,
    schemas: tuple[Any, Any],
    name: str,
) -> Stream[Any]:
    """The join of all records of a time, when it is complete; see `Stream.join`."""
    sides = [side for side in _NULLABLE.get(how, []) if schemas[side] is None]
    inputs = [*streams, *[_schemas(streams[side], f"{name}Schemas") for side in sides]]
    pacts: list[Pact] = [*map(Exchange, keys), *[Broadcast() for _ in sides]]

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        known = list(schemas)
        held: dict[Any, tuple[list[Any], list[Any]]] = {}

        def logic(left: Input, right: Input, *others: Any) -> None:
            *schema_inputs, output, notificator = others
            for number, input_ in enumerate((left, right)):
                for time, batch in input_:
                    if time.time not in held:
                        held[time.time] = ([], [])
                        notificator.notify_at(time.retain())
                    held[time.time][number].append(batch)
            for side, input_ in zip(sides, schema_inputs, strict=True):
                for _, found in input_:
                    known[side] = found[0]
            _answer(output, notificator, held, known)

        return logic

    def _answer(
        output: Output,
        notificator: Notificator,
        held: dict[Any, tuple[list[Any], list[Any]]],
        known: list[Any],
    ) -> None:
        for capability in notificator:
            with capability, output.session(capability) as session:
                one, other = map(_whole, held.pop(capability.time))
                answer = joined(one, other, keys, how, (known[0], known[1]))
                if answer is not None and kind_of(answer).length(answer):
                    session.give_batch(answer)

    return operator_notify(inputs, pacts, name, build, ())


def _schemas(stream: StreamCore[Any], name: str) -> Stream[Any]:
    """The schema of the first columns that this worker has."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        found = info.state("schema")
        restored = [capability] if found else []
        if not restored:
            capability.drop()

        def logic(input_: Input, output: Output) -> None:
            if restored:
                with restored.pop() as first:
                    output.session(first).give_many(list(found.values())[:1])
            for time, batch in input_:
                kind = kind_of(batch)
                if kind.name == "columns" and info.index not in found:
                    found[info.index] = kind.schema(batch)
                    output.session(time).give(found[info.index])

        return logic

    return operator([stream], [Pipeline()], name, build, Interest.NEVER)


def _whole(batches: list[Any]) -> Any:
    return kind_of(batches[0]).concat(batches) if batches else None
