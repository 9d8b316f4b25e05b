"""Tables as a graph takes them, and the columns that are made of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.expressions import is_expression
from pointstamp.containers.frames import whole_table
from pointstamp.errors import SchemaError, UsageError
from pointstamp.graph.tables.argument_checks import check_columns
from pointstamp.graph.tables.hashed_ids import NUMBER
from pointstamp.graph.tables.sql_text import parse_sql
from pointstamp.graph.tables.sql_values import column_of, holds

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def table_of(data: Any, needed: Sequence[str], what: str) -> Any:
    """A `pyarrow.Table` of a table, a batch, a data frame or a mapping, with the columns it needs.

    Raises
    ------
    ContainerError
        If it is none of these.
    ColumnError
        If a column is not there.
    SchemaError
        If two columns have one name, one has a name that is reserved, or what is given cannot
        become columns.

    >>> table_of({"src": ["a"], "dst": ["b"]}, ["src", "dst"], "edges").num_rows
    1
    """
    try:
        table = whole_table(data, what)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(
            f"{what} cannot become columns of Arrow: {str(error).splitlines()[0]}; columns are of "
            "equal lengths, and of types that Arrow has"
        ) from error
    check_columns(table.schema.names, needed, what)
    return _takeable(table)


def _takeable(table: Any) -> Any:
    """The table with views of text and bytes as text and bytes, and runs as single values.

    From the others Arrow cannot take.
    """
    for name in table.schema.names:
        if pa.types.is_run_end_encoded(table.schema.field(name).type):
            values = pc.call_function("run_end_decode", [table.column(name)])
            table = with_column(table, name, values)
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    fields = [field.with_type(plain.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields, table.schema.metadata))


def mask_of(condition: Any, table: Any, what: str) -> Bools:
    """For which records of a table a condition is true: text, an Arrow expression, or booleans."""
    if isinstance(condition, str):
        return holds(parse_sql(condition), column_of(table, what), table.num_rows)
    if is_expression(condition) and isinstance(condition, pc.Expression):
        numbered = table.append_column(NUMBER, pa.array(np.arange(table.num_rows)))
        mask = np.zeros(table.num_rows, np.bool_)
        mask[numbered.filter(condition).column(NUMBER).to_numpy()] = True
        return mask
    raise UsageError(
        "a condition is text such as \"age > 30 and kind = 'bank'\", or an expression of "
        f"pyarrow.compute, not {condition!r}"
    )


def struct_of(table: Any) -> Any:
    """The records of a table as structs, an Arrow array."""
    table = table.combine_chunks()
    columns = [
        column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for column in table.columns
    ]
    if not columns:
        return pa.array([{}] * table.num_rows, pa.struct([]))
    return pa.StructArray.from_arrays(columns, fields=list(table.schema))


def typed_ids(table: Any, names: Sequence[str], kind: Any) -> Any:
    """The table with columns of no record and no type, such as of an empty list, of a type."""
    for name in names:
        if not table.num_rows and pa.types.is_null(table.schema.field(name).type):
            table = with_column(table, name, pa.array([], kind))
    return table


def taken(column: Any, found: Ints) -> Any:
    """Items of a column by position, null for positions below 0."""
    return column.take(pa.array(found, mask=found < 0))


def with_column(table: Any, name: str, column: Any) -> Any:
    """The table with a column more, or with another one in the place of that of its name."""
    at = table.schema.get_field_index(name)
    return table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
