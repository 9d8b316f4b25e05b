"""`ArrangedCollection`: a collection with an index that any number of operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.collections.arrange import Arrangement
from pointstamp.collections.exported_trace import TraceExport, TraceHandle
from pointstamp.collections.schema import Column, Schema
from pointstamp.errors import BuildError

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection, How
    from pointstamp.collections.grouped import GroupedCollection


class ArrangedCollection:
    """A collection indexed by key columns; see `Collection.arrange`.

    Attributes
    ----------
    collection : Collection
    key : tuple of str
        The columns that it is indexed by.
    """

    def __init__(self, collection: Collection, key: Sequence[str]) -> None:
        self.collection = collection
        self.key = tuple(key)
        self._arrangement = collection.arranged(self.key)
        self._export: TraceExport | None = None

    @property
    def n_updates(self) -> int:
        """How many updates this worker keeps, for all that read it together."""
        if isinstance(self._arrangement, Arrangement):
            return self._arrangement.spine.n_updates
        return self._arrangement.trace.n_updates

    def join(
        self,
        other: ArrangedCollection | Collection,
        *,
        how: How = "inner",
        null_equal: bool = False,
        name: str = "Join",
    ) -> Collection:
        """Pairs of records of equal keys, as `Collection.join` has them.

        other : arranged by as many columns, or a collection with columns of the same names

        With `null_equal=True`, and keys that may be null on both sides, these indexes are not
        used: records with a null are not in them.
        """
        options: Any = {"how": how, "null_equal": null_equal, "name": name}
        if isinstance(other, ArrangedCollection):
            return self.collection.join(
                other.collection, left_on=self.key, right_on=other.key, **options
            )
        return self.collection.join(other, on=self.key, **options)

    def group_by(self) -> GroupedCollection:
        """The groups of its keys; `agg`, `reduce` or `top_k` follows."""
        return self.collection.group_by(*self.key)

    def trace(self) -> TraceHandle:
        """A handle to what is arranged, for reading it from outside, from now on.

        To be asked for while the dataflow is built. What is kept for it is all from then on,
        and each epoch is a batch to look into for all that read the arrangement; so allow
        compaction from time to time (`TraceHandle.allow_compaction`). A durable dataflow that
        begins with a snapshot can be read as of that one's epoch, and from there on.

        Raises
        ------
        BuildError
            If the dataflow is not being built any more, or in a loop.
        UsageError
            If what was arranged before is gone, as nothing reads it any more.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         input, edges = scope.new_collection("src long, dst long")
        ...         handle = edges.arrange("src").trace()
        ...     input.insert([(7, 1), (7, 2)])
        ...     input.advance_to(1)
        ...     input.delete([(7, 1)])
        ...     input.close()
        ...     worker.run()
        ...     return [handle.as_of(time).lookup(src=7) for time in (0, 1)]
        >>> ps.execute(main)
        [[[(7, 1), (7, 2)], [(7, 2)]]]
        """
        if not isinstance(self._arrangement, Arrangement):
            raise BuildError(
                f"an arrangement in {self.collection.scope.path} has times of a loop, and cannot "
                "be read from outside; take the collection out of it by leave()"
            )
        if self._export is None:
            schema = arranged_schema(self.collection.schema, self.key)
            self._export = TraceExport(self._arrangement, schema, self.collection.of)
        return TraceHandle(self._export)

    def __repr__(self) -> str:
        return f"ArrangedCollection({self.collection.schema}; by {', '.join(self.key)})"


def arranged_schema(schema: Schema, key: Sequence[str]) -> Schema:
    """Of the records of an arrangement: the columns of the key, not null, then the others."""
    columns = [Column(name, schema.column(name).type) for name in key]
    return Schema((*columns, *(c for c in schema.columns if c.name not in key)))
