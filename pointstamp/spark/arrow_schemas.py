"""The Arrow schemas of Spark's: those of what Spark gives the workers, and takes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def arrow_schema_of(schema: StructType, of: str) -> pa.Schema:
    """The schema that Spark has in Arrow; times with a zone are in UTC.

    Parameters
    ----------
    of : str
        What has the columns, for the message of an error: "the input 'edges'".

    Raises
    ------
    SchemaError
        If Arrow has no type for a column, as for intervals of Spark and `array()` of nothing.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except (PySparkException, TypeError, ValueError):
        for field in schema:
            try:
                to_arrow_schema(StructType([field]), timezone="UTC")
            except (PySparkException, TypeError, ValueError) as error:
                raise SchemaError(
                    f"column {field.name!r} of {of} is {field.dataType.simpleString()}, which "
                    "Arrow has no type for: cast it, such as to text, or leave it out"
                ) from error
        raise
