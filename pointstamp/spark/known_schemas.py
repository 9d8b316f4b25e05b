"""Columns that are known without asking Spark, where a program may not ask.

Through Spark Connect the columns of a DataFrame are an answer of the server, and so is the meaning
of a text such as `"a long"`. Within the functions of a declarative pipeline (`pyspark.pipelines`)
the server answers neither: the tables of the pipeline are not there yet. So what is said of columns
travels with the DataFrame, and simple texts are read here.

PySpark keeps the columns of a DataFrame of Spark Connect in an attribute of it once it has asked
for them. That attribute is not public, and all that is used here that is not: `mapInArrow` has no
argument for the columns that it reads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pointstamp.errors import SchemaError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

_KEPT = "_cached_schema"
"""The attribute of PySpark."""

_IN_PIPELINE = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
"""What Spark calls the error of asking it within a function that defines a table."""

_COLUMN = re.compile(
    r"\s*(?:`(?P<quoted>[^`]+)`|(?P<plain>[^\W\d]\w*))(?:\s*:\s*|\s+)(?P<type>[a-z_]+)"
    r"\s*(?:\(\s*(?P<digits>\d+)\s*(?:,\s*(?P<scale>\d+)\s*)?\))?"
    r"(?P<required>\s+not\s+null)?\s*(?:,|$)",
    re.IGNORECASE,
)


def with_schema(frame: DataFrame, schema: str | StructType) -> DataFrame:
    """`frame` with its schema declared, so that Spark need not be asked for it.

    In a declarative pipeline it comes first: the functions that define tables may not ask for the
    columns of other tables of the pipeline, which `run`, `graph` and `maintain_stream` need.

    Parameters
    ----------
    frame : DataFrame
        Of a table or a stream.
    schema : str or StructType
        The columns, which are selected by name and cast to these types. A text is read without
        asking Spark where all types are such as `long`, `string` or `decimal(10, 2)`, which have
        no other types inside.

    Returns
    -------
    DataFrame
        Lazy. If there is no such column, Spark says so when it analyzes the query.

    Raises
    ------
    SchemaError
        If the schema is none, or has no columns.
    UsageError
        If the frame is no DataFrame.

    Examples
    --------
    ::

        @dp.materialized_view
        def triangles():
            edges = pointstamp.spark.with_schema(spark.read.table("edges"), "src long, dst long")
            graph = pointstamp.spark.graph(edges, workers=2)
            return graph.find("(a)-[]->(b); (b)-[]->(c); (c)-[]->(a)").groupBy("a.id").count()
    """
    given: Any = frame  # of any type, until it is looked at
    if not hasattr(given, "select"):
        raise UsageError(f"with_schema is given {given!r:.200}, and takes a DataFrame of Spark")
    struct = struct_of(schema)
    if not struct.fields:
        raise SchemaError("a DataFrame has columns: with_schema is given none")
    # What commits a stream's batch imports this module, and needs no dataflow.
    from pointstamp.spark.mapped_columns import column_of

    columns = (column_of(one.name).cast(one.dataType).alias(one.name) for one in struct)
    return known(frame.select(*columns), struct)


def known(frame: DataFrame, schema: StructType) -> DataFrame:
    """`frame`, of which the columns are known, so that nothing asks the server for them."""
    if hasattr(frame, _KEPT):
        setattr(frame, _KEPT, schema)
    return frame


def columns_of_frame(frame: DataFrame, what: str) -> StructType:
    """The columns of a DataFrame, for which Spark is asked where they are not known.

    Raises `SchemaError` where it may not be asked: they are to be declared there.
    """
    from pyspark.errors import AnalysisException

    try:
        return frame.schema
    except AnalysisException as error:
        if not is_of_pipeline(str(error)):
            raise
        raise SchemaError(
            f"{what} has columns that are not known, and the functions of a declarative pipeline "
            "may not ask Spark for them: declare them, as by "
            "pointstamp.spark.with_schema(frame, 'src long, dst long')"
        ) from error


def is_of_pipeline(text: str) -> bool:
    """Whether an error is of asking Spark within a function of a declarative pipeline."""
    return _IN_PIPELINE in text


def struct_of(schema: str | StructType) -> StructType:
    """Columns as Spark has them; a text that is not simple is read by Spark.

    Raises `SchemaError` if there are none in it, or Spark cannot read it.
    """
    from pyspark.sql.types import StructType

    found: Any = schema
    if isinstance(schema, str):
        found = _simple(schema) or _read_by_spark(schema)
    if not isinstance(found, StructType):
        raise SchemaError(
            f"a schema is a text such as 'a long, b string', or a StructType, and not {schema!r}"
        )
    return found


_INSIDE = {
    "array": "the type of its elements, as in array<long>",
    "map": "the types of its keys and values, as in map<string, long>",
    "struct": "its fields, as in struct<x: long>",
}
_BARE = re.compile(r"[\s:<,](array|map|struct)\s*(?:\(.*\)|<\s*>)?\s*(?:[,>]|$)", re.IGNORECASE)
"""A type that has others inside, which are not there."""


def _read_by_spark(text: str) -> Any:
    from pyspark.errors import ParseException
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(text)
    except ParseException as error:
        bare = _BARE.search(text)
        if bare is None:
            why = str(error).strip().splitlines()[0]
        else:
            why = f"{bare[1].lower()} needs {_INSIDE[bare[1].lower()]}"
        raise SchemaError(f"Spark cannot read the schema {text!r}: {why}") from error


def _simple(text: str) -> StructType | None:
    """Columns of types without others inside; None if the text is anything else.

    >>> _simple("a long, `b c` decimal(10, 2) not null").simpleString()
    'struct<a:bigint,b c:decimal(10,2)>'
    >>> _simple("a long, `b c` decimal(10, 2) not null")["b c"].nullable
    False
    >>> _simple("a array<long>"), _simple("a"), _simple(" ")
    (None, None, None)
    """
    from pyspark.sql.types import StructField, StructType

    fields, at = [], 0
    while at < len(text):
        found = _COLUMN.match(text, at)
        kind = None if found is None else _type(found["type"], found["digits"], found["scale"])
        if found is None or kind is None:
            return None
        name = found["quoted"] or found["plain"]
        fields.append(StructField(name, kind, not found["required"]))
        at = found.end()
    return StructType(fields) if fields and not text.rstrip().endswith(",") else None


def _type(name: str, digits: str | None, scale: str | None) -> DataType | None:
    """A type of Spark by its name in SQL; None if it is not a simple one."""
    from pyspark.sql import types

    names: dict[str, Any] = {
        "bigint": types.LongType,
        "binary": types.BinaryType,
        "boolean": types.BooleanType,
        "byte": types.ByteType,
        "date": types.DateType,
        "double": types.DoubleType,
        "float": types.FloatType,
        "int": types.IntegerType,
        "integer": types.IntegerType,
        "long": types.LongType,
        "real": types.FloatType,
        "short": types.ShortType,
        "smallint": types.ShortType,
        "string": types.StringType,
        "timestamp_ltz": types.TimestampType,
        "timestamp_ntz": types.TimestampNTZType,
        "tinyint": types.ByteType,
    }
    name = name.lower()
    if name in ("decimal", "dec", "numeric"):
        return types.DecimalType(int(digits or 10), int(scale or 0))
    return names[name]() if name in names and digits is None else None
