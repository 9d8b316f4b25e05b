"""Tables and data frames as record batches: the one place where those are converted.

pyarrow's tables and readers, pandas' and polars' data frames, and whatever else shows itself
by Arrow's C stream interface. Nothing here imports pandas or polars.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from typing import Any

from pointstamp.errors import ContainerError, SchemaError


def is_table(data: Any) -> bool:
    """Whether `data` is a table or a data frame: columns, and no container of ours.

    >>> is_table([1, 2]), is_table("ab")
    (False, False)
    """
    if not isinstance(data, type) and hasattr(data, "__arrow_c_stream__"):
        # A single column has the interface, too, and is no table.
        return hasattr(data, "columns") or hasattr(data, "read_next_batch")
    return _is_pandas_frame(data)


def record_batches(data: Any) -> Iterator[Any]:
    """The `pyarrow.RecordBatch`es of a table or a data frame, without those that are empty.

    The index of a pandas frame is not taken, as Spark does not: `frame.reset_index()` makes
    columns of it. Views of text become text, in categories, too, which all operators can work on.

    Raises
    ------
    ContainerError
        If it is neither.
    SchemaError
        If it is a frame of pandas with columns of one name, or of values that Arrow cannot hold.

    >>> import pyarrow as pa
    >>> [batch.to_pydict() for batch in record_batches(pa.table({"a": [1, 2]}))]
    [{'a': [1, 2]}]
    """
    if not is_table(data):
        raise ContainerError(
            f"a {type(data).__module__}.{type(data).__name__} is no batch of records: give a list, "
            "a pyarrow.RecordBatch or Table, or a data frame of pandas or polars"
        )
    import pyarrow as pa

    if hasattr(data, "read_next_batch"):
        batches = iter(data)
    elif _is_pandas_frame(data):
        table = _from_pandas(data)
        batches = iter(table.replace_schema_metadata(None).to_batches())
    else:
        batches = iter((data if isinstance(data, pa.Table) else pa.table(data)).to_batches())
    return (_without_views(batch) for batch in batches if batch.num_rows)


def whole_table(data: Any, what: str) -> Any:
    """The `pyarrow.Table` of a table, a record batch, a data frame, or columns by name.

    what : what it is, for the message of an error

    Raises
    ------
    ContainerError
        If it is none of these.
    SchemaError
        As for `record_batches`.

    >>> whole_table({"a": [1, 2]}, "an example").num_rows
    2
    """
    import pyarrow as pa

    if isinstance(data, dict):
        return pa.table(data)
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([_without_views(data)])
    if not is_table(data):
        raise ContainerError(
            f"{what} are a table, a data frame or columns by name, not a "
            f"{type(data).__module__}.{type(data).__name__}"
        )
    batches = list(record_batches(data))
    if batches:
        return pa.Table.from_batches(batches)
    if _is_pandas_frame(data):
        return _from_pandas(data).replace_schema_metadata(None)
    return data if isinstance(data, pa.Table) else pa.table(data)


def merged_table(parts: Sequence[tuple[str, Any]]) -> Any:
    """One `pyarrow.Table` of what several workers have, in that order.

    Parameters
    ----------
    parts : sequence of (str, object)
        What it is, for the message of an error, and what `whole_table` takes, a list of that, or
        None.

    Raises
    ------
    ContainerError
        If one is something else, or if there is nothing.
    SchemaError
        If columns of one name are of types that do not go together; also as for `record_batches`.

    >>> merged_table([("a", {"x": [1]}), ("b", None), ("c", [{"x": [2.5]}])]).to_pydict()
    {'x': [1.0, 2.5]}
    """
    import pyarrow as pa

    tables = []
    for what, given in parts:
        for each in given if isinstance(given, list | tuple) else [given]:
            if each is None:
                continue
            if isinstance(each, str | bytes | int | float):
                raise ContainerError(
                    f"{what} is no table, data frame or columns by name, nor a list of such: in it "
                    f"is {each!r}"
                )
            try:
                tables.append(whole_table(each, what))
            except (pa.ArrowException, TypeError) as error:
                if not isinstance(each, dict):
                    raise
                raise ContainerError(
                    f"{what} has a dict, which is to be columns by name, of equal lengths: "
                    f"{str(error).splitlines()[0]}; found {reprlib.repr(each)}"
                ) from error
    if not tables:
        raise ContainerError(
            "no table can be made, as there are no columns: each worker returned None or an empty "
            "list"
        )
    try:
        return pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    except pa.ArrowException as error:
        schemas = "; ".join(
            sorted(
                {
                    ", ".join(f"{each.name}: {each.type}" for each in table.schema)
                    for table in tables
                }
            )
        )
        raise SchemaError(
            f"the tables of the workers cannot be one: {str(error).splitlines()[0]}; their "
            f"columns are {schemas}"
        ) from error


def _from_pandas(frame: Any) -> Any:
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        raise SchemaError(
            "a data frame of pandas cannot become columns of Arrow: "
            f"{'; '.join(map(str, error.args))}; give each column its own name, and values of one "
            "type that Arrow has"
        ) from error
    for field in table.schema:
        if getattr(field.type, "extension_name", "") == "pandas.period":
            raise SchemaError(
                f"the column {field.name!r} of a data frame of pandas has "
                f"{frame[field.name].dtype}, of which Arrow would make plain numbers; make "
                "timestamps of it, as with .dt.to_timestamp(), or texts"
            )
    return table


def _is_pandas_frame(data: Any) -> bool:
    kind = type(data)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _without_views(batch: Any) -> Any:
    import pyarrow as pa

    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}

    def plain(kind: Any) -> Any:
        if pa.types.is_dictionary(kind):  # as polars has categories
            return pa.dictionary(kind.index_type, plain(kind.value_type), kind.ordered)
        return views.get(kind, kind)

    if all(plain(kind) == kind for kind in batch.schema.types):
        return batch
    fields = [field.with_type(plain(field.type)) for field in batch.schema]
    return batch.cast(pa.schema(fields))
