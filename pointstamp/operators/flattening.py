"""Flattening: the items of each record that is a collection, as records of their own."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pointstamp.containers.list_columns import flattened
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import DataError
from pointstamp.operators.transform import rows, transform

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

U = TypeVar("U")


class FlattenMethods(StreamCore[T]):
    """Flattening. Methods of `Stream`."""

    # Of the collections that streams mostly have: a stream of lists is none of iterables.
    @overload
    def flatten(self: StreamCore[list[U]], *, name: str = "Flatten") -> Stream[U]: ...

    @overload
    def flatten(self: StreamCore[tuple[U, ...]], *, name: str = "Flatten") -> Stream[U]: ...

    @overload
    def flatten(self, column: str | None = None, *, name: str = "Flatten") -> Stream[Any]: ...

    def flatten(self, column: str | None = None, *, name: str = "Flatten") -> Any:
        """Replace records that are collections by their items; on columns, a column of lists.

        Parameters
        ----------
        column : str, optional
            On columns: a column of lists. Each record is repeated for each item, which takes
            the place of the list; one whose list is empty or null is not sent.
        name : str
            Of the operator.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([[3, 1], [], [2]]).flatten())
        [(0, 1), (0, 2), (0, 3)]
        >>> import pyarrow as pa
        >>> batch = pa.RecordBatch.from_pydict({"user": ["ann", "bob"], "item": [[1, 2], [3]]})
        >>> ps.testing.collect(lambda scope: scope.batches_to_stream([batch]).flatten("item"))
        [(0, ('ann', 1)), (0, ('ann', 2)), (0, ('bob', 3))]
        """
        if column is None:
            return transform(self, name, lambda time, batch: _items(rows(batch, name)))
        return transform(self, name, lambda time, batch: flattened(batch, column, name))


def _items(records: list[Any]) -> list[Any]:
    try:
        return list(chain.from_iterable(records))
    except TypeError:
        for record in records:
            if not hasattr(type(record), "__iter__"):
                raise DataError(
                    f"a record is to be a collection of items, such as a list; found "
                    f"{record!r:.200} ({type(record).__name__})"
                ) from None
        raise
