"""Operators that look at what flows by, and pass it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.operators.transform import look_at_batches, transform
from pointstamp.operators.user_code import check_function, check_takes
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class InspectMethods(StreamCore[T]):
    """Operators that look at what flows by. Methods of `Stream`."""

    def inspect(self, function: Callable[[T], object], *, name: str = "Inspect") -> Stream[T]:
        """Call `function(record)` for each record, and pass the record on.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream(["hi"]).inspect(print))
        hi
        [(0, 'hi')]
        """
        check_function(function, name)
        check_takes(function, name, "record")

        def look(time: Any, batch: Any) -> Any:
            for record in kind_of(batch).records(batch):
                function(record)
            return batch

        return transform(self, name, look)

    def inspect_batch(
        self, function: Callable[[Any, Any], object], *, name: str = "InspectBatch"
    ) -> Stream[T]:
        """Call `function(time, batch)` for each batch, and pass the batch on.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream(["hi"]).inspect_batch(print))
        0 ['hi']
        [(0, 'hi')]
        """
        check_function(function, name)
        check_takes(function, name, "time", "batch")
        return look_at_batches(self, name, function)

    def inspect_time(
        self, function: Callable[[Any, T], object], *, name: str = "InspectTime"
    ) -> Stream[T]:
        """Call `function(time, record)` for each record, and pass the record on.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream(["hi"]).inspect_time(print))
        0 hi
        [(0, 'hi')]
        """
        check_function(function, name)
        check_takes(function, name, "time", "record")

        def look(time: Any, batch: Any) -> Any:
            for record in kind_of(batch).records(batch):
                function(time, record)
            return batch

        return transform(self, name, look)

    def inspect_frontier(
        self,
        on_frontier: Callable[[list[Any]], object],
        on_batch: Callable[[Any, Any], object] | None = None,
        *,
        name: str = "InspectFrontier",
    ) -> Stream[T]:
        """Call `on_frontier(elements)` when the frontier moves, and pass batches on.

        Parameters
        ----------
        on_frontier : callable
            Of the list of the minimal times that may still come, which is empty at the end.
            It is called for the first time when it is not the least time alone any more.
        on_batch : callable, optional
            `on_batch(time, batch)`, for each batch, in the order in which both are seen: a
            frontier that is past a time comes after all batches of it.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     letters = scope.to_stream("a").delay(lambda letter, time: ord(letter))
        ...     return letters.inspect_frontier(lambda elements: print("may come:", elements))
        >>> ps.testing.collect(build)
        may come: [97]
        may come: []
        [(97, 'a')]
        """
        check_function(on_frontier, name)
        if on_batch is not None:
            check_function(on_batch, name)
        least = [self.scope.timestamp.minimum]
        builder = OperatorBuilder(self.scope, name)
        builder.new_input(self, Pipeline(), Interest.ALWAYS)
        result: Stream[T] = builder.new_output(initial=False)

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], None]:
            seen = least

            def logic(inputs: list[Input], outputs: list[Output]) -> None:
                nonlocal seen
                now = inputs[0].frontier.elements
                if now != seen:
                    # First, as a batch that is here still holds the frontier back.
                    seen = now
                    on_frontier(now)
                while (item := inputs[0].pull()) is not None:
                    if on_batch is not None:
                        on_batch(*item)
                    outputs[0].push(*item)

            return logic

        builder.build(make_logic)
        return result
