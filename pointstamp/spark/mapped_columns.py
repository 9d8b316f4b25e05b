"""Columns of DataFrames by names: those of `mapInArrow`, which does not find all of them by theirs.

To it a dot leads to a field and a star is all columns; and it finds a column by a name in other
letters' case, so that of `a` and `A` it finds two, or another one. Such columns are given other
names before it, and get back their own in the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

MapInArrow = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def mappable(frame: DataFrame) -> DataFrame:
    """`frame`, with other names where `mapInArrow` does not find columns by theirs."""
    names = frame.schema.names
    folded = {name.casefold() for name in names}
    if len(folded) < len(names) or any(set(".`*").intersection(name) for name in names):
        return numbered(frame)
    return frame


def numbered(frame: DataFrame) -> DataFrame:
    """`frame`, with the names `c0`, `c1` and so on."""
    return frame.toDF(*(f"c{place}" for place in range(len(frame.schema.names))))


def selected(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns of some names, each of which is that of one column, whatever is in it."""
    places = [frame.schema.names.index(name) for name in names]
    return numbered(frame).select(*(f"c{place}" for place in places)).toDF(*names)


def mapped_in_arrow(
    frame: DataFrame, function: MapInArrow, schema: str | StructType, names: Sequence[str] = ()
) -> DataFrame:
    """`frame.mapInArrow(function, schema)`, whatever the names of its columns are.

    names : those that `function` finds in the batches; those of `frame`, if not given
    """
    found = NamedBatches(function, tuple(names or frame.schema.names))
    return mappable(frame).mapInArrow(found, schema)


@dataclass(frozen=True)
class NamedBatches:
    """A function for `mapInArrow` that is given batches with names that they did not have."""

    function: MapInArrow
    names: Sequence[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the function makes of batches with those names."""
        names = list(self.names)
        return self.function(batch.rename_columns(names) for batch in batches)


def column_of(name: str) -> Column:
    """The column of a name, whatever is in it."""
    from pyspark.sql import functions

    return functions.col(quoted(name))


def quoted(name: str) -> str:
    """A name as SQL has it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
