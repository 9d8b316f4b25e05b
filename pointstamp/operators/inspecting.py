"""Operators that look at what flows by, and pass it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.operators.transform import transform
from pointstamp.operators.user_code import check_function

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

from pointstamp.dataflow.stream_core import StreamCore, T


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

        def look(time: Any, batch: Any) -> Any:
            function(time, batch)
            return batch

        return transform(self, name, look)
