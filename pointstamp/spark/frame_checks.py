"""What a graph of DataFrames refuses before a job: types, weights, and names that Spark mixes up.

To Spark `w` and `W` are one name, unless `spark.sql.caseSensitive` is true, and it says so only
where a column is asked for, in words about its plans. So a graph may have both, and is refused
where either is needed; not before, as all else of it is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp.errors import PatternError, SchemaError, UsageError
from pointstamp.graph.tables.argument_checks import check_columns as check_given
from pointstamp.spark.collations import has_collation
from pointstamp.spark.known_schemas import columns_of_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ID, SOURCE, TARGET = "id", "src", "dst"

_REMEDY = "rename one of them, or set spark.sql.caseSensitive to true"


def check_types(vertices: DataFrame, edges: DataFrame) -> None:
    """Refuse ends of another type than ids: their hashes differ, so that nothing would be found.

    And ids with a collation, of which equal ones differ in their hashes, and those without a type
    in Arrow.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import IntegralType

    of_ids = vertices.schema[ID].dataType
    try:
        to_arrow_type(of_ids, timezone="UTC")
    except (PySparkException, TypeError) as error:
        raise SchemaError(
            f"ids are {of_ids.simpleString()}, which Arrow has no type for: cast them to text or "
            "to integers"
        ) from error
    if has_collation(of_ids):
        raise SchemaError(
            f"ids are {of_ids.simpleString()}, in which texts that differ may be equal, and "
            "a graph compares ids by their bytes: give ids without a collation, such as "
            "lower(id) collate UTF8_BINARY"
        )
    for name in (SOURCE, TARGET):
        kind = edges.schema[name].dataType
        both_integers = isinstance(kind, IntegralType) and isinstance(of_ids, IntegralType)
        if kind.simpleString() != of_ids.simpleString() and not both_integers:
            raise SchemaError(
                f"{name!r} of the edges: ids are {of_ids.simpleString()}, and these are "
                f"{kind.simpleString()}: cast one to the type of the other"
            )


def check_weights(edges: DataFrame, name: str) -> None:
    """Refuse weights of a type that no algorithm takes before a job does."""
    from pyspark.sql.types import DoubleType, FloatType, IntegralType

    kind = edges.schema[name].dataType
    if not isinstance(kind, IntegralType | DoubleType | FloatType):
        raise SchemaError(
            f"a weighted graph needs floats or integers in the column {name!r}, not "
            f"{kind.simpleString()}: cast them"
        )


def minds_case(frame: DataFrame) -> bool:
    """Whether names of columns that differ in upper and lower case differ to Spark."""
    said = frame.sparkSession.conf.get("spark.sql.caseSensitive")
    return str(said).lower() == "true"  # as it was written, which may be "True"


def check_columns(frame: DataFrame, needed: Sequence[str], what: str) -> None:
    """Refuse what is no DataFrame, or lacks columns, or has two of one name to Spark."""
    given: Any = frame  # of any type, until it is looked at
    if not hasattr(given, "mapInArrow"):
        raise UsageError(f"{what} of a graph are a DataFrame of Spark, and not {given!r:.200}")
    names = columns_of_frame(frame, f"the DataFrame of {what}").names
    check_given(names, needed, what)
    for name in needed:
        check_one_name(frame, name, what)


def check_one_name(
    frame: DataFrame, name: str, what: str, names: Sequence[str] | None = None
) -> None:
    """Refuse a column that has another's name to Spark; of `frame`, or of other names."""
    names = frame.columns if names is None else names
    others = [one for one in names if one.lower() == name.lower() and one != name]
    if others and not minds_case(frame):
        raise SchemaError(
            f"{what} have the columns {name!r} and {others[0]!r}, which are one name to Spark: "
            f"{_REMEDY}"
        )


def check_all_names(frame: DataFrame, what: str) -> None:
    """Refuse columns of which two have one name to Spark, where all are needed."""
    names = frame.columns
    if len({name.lower() for name in names}) < len(names):
        for name in names:
            check_one_name(frame, name, what, names)


def check_elements(frame: DataFrame, names: Sequence[str]) -> None:
    """Refuse names of elements of a pattern that would be one column's to Spark."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name and not minds_case(frame):
            raise PatternError(
                f"the pattern names {other!r} and {name!r}, which are one name to Spark: {_REMEDY}"
            )


@contextmanager
def names_as_in(frame: DataFrame, what: str) -> Iterator[None]:
    """Have what Spark says of a name that is that of two columns of `frame` say which they are."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "AMBIGUOUS_REFERENCE":
            raise
        said = (error.getMessageParameters() or {}).get("name", "")
        asked = {name.lower() for name in re.findall("`([^`]+)`", said)}
        for name in frame.columns:
            if name.lower() in asked:
                try:
                    check_one_name(frame, name, what)
                except SchemaError as named:
                    raise named from error
        raise


@contextmanager
def types_of_aggregates(messages: DataFrame, aggregates: Sequence[Any]) -> Iterator[None]:
    """Have aggregates that messages are of no type for be refused as the local graph does."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        if not str(error.getCondition()).startswith("DATATYPE_MISMATCH"):
            raise
        kind = messages.schema["msg"].dataType.simpleString()
        raise SchemaError(
            f"messages, which are {kind}, cannot be put together by "
            f"{', '.join(map(str, aggregates))}: {str(error).splitlines()[0]}"
        ) from error
