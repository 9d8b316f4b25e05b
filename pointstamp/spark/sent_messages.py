"""What a function of record batches sends along the edges of a graph on Spark, by `mapInArrow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pointstamp.errors import SchemaError
from pointstamp.spark.arrow_schemas import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sent_by(triplets: DataFrame, end: str, call: Callable[[Any], Any]) -> DataFrame:
    """What a function makes of triplets, as messages: `id`, of their `end`, and `msg`.

    triplets : with the structs `src`, `edge` and `dst`, which the function gets in batches
    end : "src" or "dst"

    Raises
    ------
    SchemaError
        If what the function gives for a batch without records has no type, or one that Spark has
        not. By this call; what else it raises for such a batch is raised, too.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql.pandas.types import from_arrow_schema

    from pointstamp.containers.conform import conform
    from pointstamp.graph.tables.messages import MESSAGE, Function

    function = Function(call, "messages to sources" if end == "src" else "messages to targets")
    schema = arrow_schema_of(triplets.schema, "the triplets")
    kind = function.values(iter([pa.RecordBatch.from_pylist([], schema)])).type
    if pa.types.is_null(kind):
        raise SchemaError(
            f"{function.what} have no type: the function is to give an array of Arrow or NumPy for "
            "a batch without records, too"
        )
    of_ids = schema.field(end).type.field("id").type
    made = pa.schema([("id", of_ids), (MESSAGE, kind)])
    try:
        struct = from_arrow_schema(made)
    except Exception as error:
        raise SchemaError(f"Spark has no type for {function.what}: {error}") from error

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids: Any = pc.struct_field(batch.column(end), "id")
            said = function.values(iter([batch]))
            yield conform(pa.RecordBatch.from_arrays([ids, said], names=made.names), made)

    task.__name__ = task.__qualname__ = "pointstamp: messages"
    return triplets.mapInArrow(task, struct)
