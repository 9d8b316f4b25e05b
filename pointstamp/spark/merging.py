"""MERGE of upserts into a table that has it, such as Delta's or Iceberg's.

A batch of a stream may have several epochs: of each key its last row counts. Merged again, a batch
finds what it has made, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pointstamp.collections.upserts import VERSION
from pointstamp.errors import UsageError
from pointstamp.spark.frame_checks import minds_case
from pointstamp.spark.mapped_columns import column_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def merge_statement(table: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """MERGE of `{rows}`, which are upserts with one row for each key, for `spark.sql`.

    >>> print(merge_statement("report", ["city", "n"], ["city"]))
    MERGE INTO report AS target USING {rows} AS source
    ON target.`city` <=> source.`city`
    WHEN MATCHED AND source.`_deleted` THEN DELETE
    WHEN MATCHED THEN UPDATE SET target.`n` = source.`n`
    WHEN NOT MATCHED AND NOT source.`_deleted` THEN INSERT (`city`, `n`)
    VALUES (source.`city`, source.`n`)
    """
    names = {name: quoted(name) for name in columns}
    is_key = " AND ".join(f"target.{names[name]} <=> source.{names[name]}" for name in key)
    others = [names[name] for name in columns if name not in key]
    updated = ", ".join(f"target.{name} = source.{name}" for name in others)
    lines = [
        "MERGE INTO {table} AS target USING {rows} AS source",
        f"ON {is_key}",
        "WHEN MATCHED AND source.`_deleted` THEN DELETE",
        f"WHEN MATCHED THEN UPDATE SET {updated}",
        f"WHEN NOT MATCHED AND NOT source.`_deleted` THEN INSERT ({', '.join(names.values())})",
        f"VALUES ({', '.join(f'source.{name}' for name in names.values())})",
    ]
    if not others:
        del lines[3]  # a row that is there has nothing to be updated
    # All but `{rows}` as it is, for `spark.sql` fills in what is in braces.
    said = "\n".join(lines[:1] + [line.replace("{", "{{").replace("}", "}}") for line in lines[1:]])
    return said.replace("{table}", table.replace("{", "{{").replace("}", "}}"), 1)


def check_table(spark: SparkSession, table: str, columns: Sequence[str], wanted_by: str) -> None:
    """Refuse a table that Spark does not find, or that lacks one of some columns.

    The query would fail of it with its first batch.

    Raises
    ------
    UsageError
    """
    from pyspark.errors import AnalysisException

    try:
        found = spark.table(table)
        names = found.columns  # Spark Connect looks when it is asked for columns
    except AnalysisException as error:
        first_line = str(error).partition("\n")[0]
        raise UsageError(
            f"{wanted_by} needs a table that is there, with the columns of the output, and Spark "
            f"finds none: {first_line}"
        ) from error
    there = set(names) if minds_case(found) else {name.lower() for name in names}
    for name in columns:
        if (name if minds_case(found) else name.lower()) not in there:
            raise UsageError(
                f"{wanted_by} needs a table with the columns of the output, and this one lacks "
                f"{name!r}: it has {', '.join(names)}"
            )


def last_of_each(upserts: DataFrame, key: Sequence[str]) -> DataFrame:
    """The last row of each key, of upserts of several epochs."""
    from pyspark.sql import functions

    row = functions.struct(*map(column_of, upserts.columns))
    last = functions.max_by(row, column_of(VERSION)).alias("row")
    # A column of the key may be called as the row is.
    keys = [column_of(name).alias(f"key {place}") for place, name in enumerate(key)]
    return upserts.groupBy(*keys).agg(last).select("row.*")


@dataclass(frozen=True)
class Merge:
    """The function for `foreachBatch`: merges a batch of upserts into a table."""

    table: str
    columns: Sequence[str]
    key: Sequence[str]

    def __call__(self, upserts: DataFrame, batch: int) -> None:
        """Merge the last row of each key."""
        # Once, as MERGE reads its source more often than once.
        rows = last_of_each(upserts, self.key).persist()
        try:
            statement = merge_statement(self.table, self.columns, self.key)
            upserts.sparkSession.sql(statement, rows=rows)
        finally:
            rows.unpersist()
