"""Counting the records of each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.operators.generic import operator_notify

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class CountMethods(StreamCore[T]):
    """Counting. Methods of `Stream`."""

    def count(self, *, name: str = "Count") -> Stream[int]:
        """The number of records of each time, when it is complete, on each worker.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream("abc").count())
        [(0, 3)]
        """

        def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
            counts: dict[Any, int] = {}

            def logic(input_: Input, output: Output, notificator: Notificator) -> None:
                for time, batch in input_:
                    if time.time not in counts:
                        counts[time.time] = 0
                        notificator.notify_at(time.retain())
                    counts[time.time] += kind_of(batch).length(batch)
                for capability in notificator:
                    with output.session(capability) as session:
                        session.give(counts.pop(capability.time))
                    capability.drop()

            return logic

        return operator_notify([self], [Pipeline()], name, build, ())
