"""Columns grouped by the values of key columns: by Arrow, whatever the types of the keys.

Records of one group keep their order, and groups are in the order of their first
records. Null is a key like others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.arrays import Arrays
from pointstamp.containers.convert import arrow_array, numbers, one_zero, to_arrow
from pointstamp.containers.keys import alike, check_rows_key, column_names
from pointstamp.containers.registry import kind_of
from pointstamp.errors import BuildError, ColumnError, ContainerError, SchemaError

_ROW = "row"

_AGAIN = {name: name for name in ("sum", "product", "min", "max", "any", "all")} | {"count": "sum"}
"""What makes of the aggregates of parts the aggregate of the whole."""


def groups(batch: Any, key: Any, who: str) -> Iterator[tuple[Any, Any]]:
    """Each distinct key of a batch of columns, and its records as a batch of the same kind.

    Parameters
    ----------
    batch : Arrays or pyarrow.RecordBatch, not empty
    key : str or sequence of str
        Of one name keys are the values of that column, of several tuples of values.
    who : str
        Who groups, for the message of an error.

    Raises
    ------
    ColumnError
        For a column that is not there.
    ContainerError
        For a batch without columns.

    >>> batch = Arrays(k=[7, 9, 7], x=[1, 2, 3])
    >>> [(key, list(part)) for key, part in groups(batch, "k", "an example")]
    [(7, [(7, 1), (7, 3)]), (9, [(9, 2)])]
    """
    names = _names(batch, key, who)
    columns = [_key_column(batch, name) for name in names]
    places = list(map(str, range(len(names))))
    table = pa.Table.from_arrays(
        [*columns, arrow_array(np.arange(len(columns[0])))], names=[*places, _ROW]
    )
    grouped = _grouped(table, places, [(_ROW, "list")], names, who)
    rows: Any = pa.concat_arrays(grouped[f"{_ROW}_list"].chunks)
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(numbers(rows.value_lengths()), out=starts[1:])
    ordered = _take(batch, rows.flatten())
    keys = [grouped[place].to_pylist() for place in places]
    kind = kind_of(batch)
    found = keys[0] if isinstance(key, str) else zip(*keys, strict=True)
    for value, (start, stop) in zip(found, itertools.pairwise(starts.tolist()), strict=True):
        yield alike(value), kind.slice(ordered, start, stop)


def aggregated(batch: Any, key: Any, aggregates: Sequence[Any], who: str) -> Any:
    """One record for each distinct key: the key, and the named aggregates.

    Parameters
    ----------
    batch : Arrays or pyarrow.RecordBatch, not empty
    key : str or sequence of str
        None of the names: all records are one group.
    aggregates : sequence of (column, function) or (column, function, options)
        As for `pyarrow.TableGroupBy.aggregate`.

    Returns
    -------
    Arrays or pyarrow.RecordBatch
        The columns of the key, then `{column}_{function}` for each aggregate.

    >>> aggregated(Arrays(k=[7, 9, 7], x=[1, 2, 3]), "k", [("x", "sum")], "an example")
    Arrays(k: int64, x_sum: int64; 2 records)
    """
    names = _names(batch, key, who)
    wanted = [name for column, *_ in aggregates for name in _listed(column)]
    if names or wanted:
        column_names([*names, *wanted], _names_of(batch), who)
    whole = to_arrow(batch) if isinstance(batch, Arrays) else batch
    for name in names:
        column = _arrow_column(whole, name)
        if (zeros := one_zero(column)) is not column:
            whole = whole.set_column(whole.schema.names.index(name), name, zeros)
    grouped = _grouped(pa.Table.from_batches([whole]), names, list(aggregates), names, who)
    answer = grouped.combine_chunks().to_batches()[0]
    return _arrays(answer) if isinstance(batch, Arrays) else answer


def can_combine(key: Any, aggregates: Sequence[Any]) -> bool:
    """Whether the answers of `aggregated` for parts of the records make the one for all.

    So it is for sums and counts, and not for means or with options.
    """
    if not all(len(pair) == 2 and isinstance(pair[0], str) for pair in aggregates):
        return False
    names = [*_listed(key), *map(_answer_name, aggregates)]
    return len(set(names)) == len(names) and all(how in _AGAIN for _, how in aggregates)


def combined(answers: Sequence[Any], key: Any, aggregates: Sequence[Any], who: str) -> Any:
    """What `aggregated` gives for all records, from its answers for parts of them.

    >>> parts = [Arrays(k=[7, 9], x_count=[2, 1]), Arrays(k=[7], x_count=[3])]
    >>> list(combined(parts, "k", [("x", "count")], "an example"))
    [(7, 5), (9, 1)]
    """
    again = [(_answer_name(pair), _AGAIN[pair[1]]) for pair in aggregates]
    whole = kind_of(answers[0]).concat(answers)
    answer = aggregated(whole, key, again, who)
    names = [*_listed(key), *map(_answer_name, aggregates)]
    if isinstance(answer, Arrays):
        columns = [column for _, column in answer.items()]
        return Arrays(dict(zip(names, columns, strict=True)))
    return answer.rename_columns(names)


def _answer_name(aggregate: tuple[str, str]) -> str:
    """As Arrow names the column."""
    return "_".join(aggregate)


def check_aggregates(aggregates: Sequence[Any], who: str) -> None:
    """Raise unless each is a (column, function) that Arrow can group by.

    Raises
    ------
    BuildError
        With the functions that there are.
    """
    known = [name.removeprefix("hash_") for name in pc.list_functions() if name[:5] == "hash_"]
    for aggregate in aggregates:
        is_pair = isinstance(aggregate, (tuple, list)) and len(aggregate) in (2, 3)
        if not is_pair or aggregate[1] not in known:
            raise BuildError(
                f"{who} cannot aggregate by {aggregate!r}; give (column, function) with a function "
                f"of {sorted(known)}"
            )


def _grouped(
    table: pa.Table, by: Sequence[str], aggregates: Sequence[Any], names: Sequence[str], who: str
) -> pa.Table:
    """Group by columns of which all are of types that Arrow can group by."""
    try:
        return table.group_by(list(by), use_threads=False).aggregate(list(aggregates))
    except pa.ArrowNotImplementedError as error:
        types = {name: str(table.schema.field(of).type) for name, of in zip(names, by, strict=True)}
        raise SchemaError(
            f"{who} cannot group by the columns {types}, or cannot aggregate others so: {error}; "
            "make numbers, texts or times of them"
        ) from error


def _names(batch: Any, key: Any, who: str) -> list[str]:
    """The names of the columns of `key`, which the batch must have."""
    if key is None or callable(key):
        raise ColumnError(
            f"{who} was given batches of {kind_of(batch).name} and the key {key!r}: name the "
            "columns of the key"
        )
    if type(batch) is list:
        check_rows_key(key, batch[0] if batch else None)
    if not isinstance(key, str) and not len(key):
        return []
    return column_names(key, _names_of(batch), who)


def _names_of(batch: Any) -> Sequence[str]:
    if isinstance(batch, Arrays):
        return batch.names
    if isinstance(batch, pa.RecordBatch):
        return batch.schema.names
    raise ContainerError(
        f"{kind_of(batch).name} ({type(batch).__name__}) cannot be grouped by columns; send Arrays "
        "or Arrow record batches"
    )


def _listed(column: Any) -> list[str]:
    return [column] if isinstance(column, str) else list(column)


def _arrow_column(batch: Any, name: str) -> Any:
    if isinstance(batch, Arrays):
        return arrow_array(batch[name])
    return batch.column(batch.schema.names.index(name))


def _key_column(batch: Any, name: str) -> Any:
    """A column to group by, in which -0.0 is 0.0: Arrow takes them for two keys, Python for one."""
    return one_zero(_arrow_column(batch, name))


def _take(batch: Any, rows: Any) -> Any:
    if isinstance(batch, Arrays):
        order = numbers(rows)
        return Arrays({name: column[order] for name, column in batch.items()})
    return batch.take(rows)


def _arrays(batch: Any) -> Arrays:
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return Arrays({name: column.to_numpy(zero_copy_only=False) for name, column in columns})
