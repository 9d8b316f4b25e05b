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
from pointstamp.containers.registry import n_records
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Exchange, Pipeline
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.operators.generic import operator
from pointstamp.operators.joined_keys import JoinedKeys
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
    builder = OperatorBuilder(streams[0].scope, name)
    builder.declare(how=how)
    for stream, key in zip(streams, keys, strict=True):
        builder.new_input(stream, Exchange(key), Interest.IF_CAPABILITY)
    for side in sides:
        schemas_of = _schemas(streams[side], f"{name}Schemas")
        builder.new_input(schemas_of, Broadcast(), Interest.IF_CAPABILITY)
    result: Stream[Any] = builder.new_output(initial=False)

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        known = list(schemas)
        joined_keys = JoinedKeys(keys, info)
        stash: Stash[tuple[list[Any], list[Any]]] = Stash(
            info, lambda: (info.new_batches(), info.new_batches())
        )

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            for number, input_ in enumerate(inputs[:2]):
                for time, batch in input_:
                    joined_keys.see(number, batch)
                    stash.at(time)[number].append(batch)
            for side, input_ in zip(sides, inputs[2:], strict=True):
                for _, found in input_:
                    known[side] = found[0]
            for capability, batches in stash:
                left, right = map(_whole, batches)
                answer = joined(left, right, keys, how, (known[0], known[1]))
                if answer is not None and n_records(answer):
                    outputs[0].session(capability).give_batch(answer)

        return logic

    builder.build(make_logic)
    return result


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
                schema = kind_of(batch).schema(batch)
                if schema is not None and info.index not in found:
                    found[info.index] = schema
                    output.session(time).give(schema)

        return logic

    return operator([stream], [Pipeline()], name, build, Interest.NEVER)


def _whole(batches: list[Any]) -> Any:
    return kind_of(batches[0]).concat(batches) if batches else None
