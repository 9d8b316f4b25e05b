"""Counting the records of each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pointstamp.containers.registry import n_records
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.operators.generic import operator
from pointstamp.operators.names_elsewhere import of_other_words
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class CountMethods(StreamCore[T]):
    """Counting. Methods of `Stream`."""

    @of_other_words(
        "streams", {"key": "name= alone (aggregate([(column, 'count')], key=) counts by key)"}
    )
    def count(self, *, name: str = "Count") -> Stream[int]:
        """Count the records of each time on each worker; emitted when the time is complete.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream("abc").count())
        [(0, 3)]
        """

        def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
            capability.drop()
            counts: Stash[_Count] = Stash(info, _Count)

            def logic(input_: Input, output: Output) -> None:
                for time, batch in input_:
                    counts.at(time).n += n_records(batch)
                for capability, count in counts:
                    output.session(capability).give(count.n)

            return logic

        return operator([self], [Pipeline()], name, build, Interest.IF_CAPABILITY)


class _Count:
    """The number of records of a time so far."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0
