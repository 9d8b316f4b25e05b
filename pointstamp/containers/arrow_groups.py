"""Record batches grouped by the values of key columns, and aggregates of columns by name.

By Arrow, whatever the types of the keys. Records of one group keep their order. Groups of
records are in the order of their first ones, and those of aggregates only nearly so. Null is a key
like others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.containers.convert import arrow_array, numbers, one_batch, one_zero
from pointstamp.containers.keys import canonical_key, column_names
from pointstamp.errors import BuildError, ColumnError, SchemaError

_ROW = "row"

_AGAIN = {name: name for name in ("sum", "product", "min", "max", "any", "all")} | {"count": "sum"}
"""What makes of the aggregates of parts the aggregate of the whole."""

_DISTINCT = ("count_distinct", "distinct")


def grouped(batch: pa.RecordBatch, key: Any, operator: str) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """Each distinct key of a batch, in the order of their first records, and its records.

    Parameters
    ----------
    key : str or sequence of str
        Of one name keys are the values of that column, of several tuples of values.
    operator : str
        What groups, for the message of an error.

    Raises
    ------
    ColumnError
        For a column that is not there.

    >>> batch = pa.RecordBatch.from_pydict({"k": [7, 9, 7], "x": [1, 2, 3]})
    >>> [(key, part["x"].to_pylist()) for key, part in grouped(batch, "k", "an example")]
    [(7, [1, 3]), (9, [2])]
    """
    names = _names(batch, key, operator)
    if not batch.num_rows:
        return
    # Arrow takes the two zeros for two keys, and Python for one.
    columns = [one_zero(batch.column(name)) for name in names]
    places = list(map(str, range(len(names))))
    table = pa.Table.from_arrays(
        [*columns, arrow_array(np.arange(batch.num_rows))], names=[*places, _ROW]
    )
    found = _aggregate(table, places, [(_ROW, "list")], names, operator)
    rows: Any = pa.concat_arrays(found[f"{_ROW}_list"].chunks)
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(numbers(rows.value_lengths()), out=starts[1:])
    order = rows.flatten()
    ordered = batch.take(order)
    lists = [found[place].to_pylist() for place in places]
    keys = lists[0] if isinstance(key, str) else zip(*lists, strict=True)
    groups = list(zip(keys, itertools.pairwise(starts.tolist()), strict=True))
    firsts = numbers(order)[starts[:-1]]
    if (firsts[1:] < firsts[:-1]).any():
        # Of several columns Arrow gives keys in an order of its own.
        groups = [groups[group] for group in np.argsort(firsts).tolist()]
    for value, (start, stop) in groups:
        yield canonical_key(value), ordered.slice(start, stop - start)


def aggregated(
    batch: pa.RecordBatch, key: Any, aggregates: Sequence[Any], operator: str
) -> pa.RecordBatch:
    """One record for each distinct key: the key, and the named aggregates.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, not empty
    key : str or sequence of str
        None of the names: all records are one group.
    aggregates : sequence of (column, function) or (column, function, options)
        As for `pyarrow.TableGroupBy.aggregate`.

    Returns
    -------
    pyarrow.RecordBatch
        The columns of the key, then `{column}_{function}` for each aggregate.

    >>> batch = pa.RecordBatch.from_pydict({"k": [7, 9, 7], "x": [1, 2, 3]})
    >>> aggregated(batch, "k", [("x", "sum")], "an example").to_pydict()
    {'k': [7, 9], 'x_sum': [4, 2]}
    """
    names = _names(batch, key, operator)
    if named := named_columns(key, aggregates):
        column_names(named, batch.schema.names, operator, "aggregate")
    table = pa.Table.from_batches([batch])
    # To Arrow these are of two zeros, and of several NaNs, as well.
    distinct = [of for of, how, *_ in aggregates if how in _DISTINCT and isinstance(of, str)]
    for name in (name for of, how, *_ in aggregates if how == "distinct" for name in listed(of)):
        if pa.types.is_null(batch.column(name).type):
            # Arrow would end the process, with no word.
            raise SchemaError(
                f"{operator} cannot aggregate the column {name!r} by 'distinct': it is of type "
                "null; cast it to the type that its values would have"
            )
    for name in dict.fromkeys([*names, *distinct]):
        column = batch.column(name)
        if (zeros := one_zero(column)) is not column:
            table = table.set_column(batch.schema.names.index(name), name, zeros)
    for name in {of for of, how, *_ in aggregates if how == "count_distinct"}:
        if isinstance(name, str) and name not in names:
            column = counted_nulls(table.column(name))
            table = table.set_column(table.schema.names.index(name), name, column)
    found = _aggregate(table, names, list(aggregates), names, operator)
    return found.combine_chunks().to_batches()[0]


def counted_nulls(column: Any) -> Any:
    """A column of nulls without a type as one of integers, any other as it is.

    Of such Arrow says that they have one distinct value, and of all others that they have none.
    """
    return column.cast(pa.int64()) if pa.types.is_null(column.type) else column


def named_columns(key: Any, aggregates: Sequence[Any]) -> list[str]:
    """The columns that `aggregated` reads, each once: those of the key come first.

    >>> named_columns("k", [("x", "sum"), ("x", "max"), ("k", "count")])
    ['k', 'x']
    """
    wanted = (name for column, *_ in aggregates for name in listed(column))
    return list(dict.fromkeys([*listed(key), *wanted]))


def can_combine(key: Any, aggregates: Sequence[Any]) -> bool:
    """Whether the answers of `aggregated` for parts of the records make the one for all.

    So it is for sums and counts, and not for means or with options.
    """
    if not all(len(pair) == 2 and isinstance(pair[0], str) for pair in aggregates):
        return False
    names = [*listed(key), *map(_answer_name, aggregates)]
    return len(set(names)) == len(names) and all(how in _AGAIN for _, how in aggregates)


def combined(
    answers: Sequence[pa.RecordBatch], key: Any, aggregates: Sequence[Any], operator: str
) -> pa.RecordBatch:
    """What `aggregated` gives for all records, from its answers for parts of them.

    >>> parts = [{"k": [7, 9], "x_count": [2, 1]}, {"k": [7], "x_count": [3]}]
    >>> answers = [pa.RecordBatch.from_pydict(part) for part in parts]
    >>> combined(answers, "k", [("x", "count")], "an example").to_pydict()
    {'k': [7, 9], 'x_count': [5, 1]}
    """
    answer = aggregated(one_batch(answers), key, again(aggregates), operator)
    return answer.rename_columns([*listed(key), *map(_answer_name, aggregates)])


def again(aggregates: Sequence[Any]) -> list[tuple[str, str]]:
    """What makes of the columns of parts those of the whole.

    >>> again([("x", "count"), ("y", "max")])
    [('x_count', 'sum'), ('y_max', 'max')]
    """
    return [(_answer_name(pair), _AGAIN[pair[1]]) for pair in aggregates]


def _answer_name(aggregate: tuple[str, str]) -> str:
    """As Arrow names the column."""
    return "_".join(aggregate)


_ELSEWHERE = {
    "avg": "mean",
    "average": "mean",
    "std": "stddev",
    "var": "variance",
    "nunique": "count_distinct",
    "collect_list": "list",
    "collect_set": "distinct",
    "size": "count_all",
    "median": "approximate_median",
}
"""What Arrow calls aggregates that SQL, Spark or pandas have under another name."""


def check_aggregates(aggregates: Sequence[Any], operator: str) -> None:
    """Raise unless each is a (column, function), or one with options, that Arrow can group by.

    Raises
    ------
    BuildError
        With the functions that there are.
    """
    import pyarrow.compute as pc

    if not isinstance(aggregates, (list, tuple)):
        raise BuildError(
            f"{operator} folds by a function, or by a list of aggregates of columns such as "
            f"[('spent', 'sum')]; found {aggregates!r}"
        )
    if len(aggregates) > 1 and all(isinstance(part, str) for part in aggregates):
        raise BuildError(
            f"{operator} folds by a list of aggregates of columns; for the one write "
            f"[{tuple(aggregates)!r}]"
        )
    known = [name.removeprefix("hash_") for name in pc.list_functions() if name[:5] == "hash_"]
    for aggregate in aggregates:
        is_pair = isinstance(aggregate, (tuple, list)) and len(aggregate) in (2, 3)
        if not is_pair or aggregate[1] not in known or not _are_names(aggregate[0]):
            function = aggregate[1] if is_pair else None
            here = _ELSEWHERE.get(function) if isinstance(function, str) else None
            raise BuildError(
                f"{operator} cannot aggregate by {aggregate!r}; "
                + (f"{function!r} is {here!r} here, and " if here else "")
                + f"give (column, function) with a function of {sorted(known)}"
            )
        n_columns = pc.get_function(f"hash_{aggregate[1]}").arity - 1  # but for that of the groups
        if len(listed(aggregate[0])) != n_columns:
            given = ("[]", "a column", "a list of 2 columns")[n_columns]
            raise BuildError(
                f"{operator} cannot aggregate by {aggregate!r}: {aggregate[1]!r} is of {given}"
                + (f", as ([], {aggregate[1]!r})" if not n_columns else "")
            )
        if not isinstance([*aggregate, None][2], (pc.FunctionOptions, type(None))):
            raise BuildError(
                f"{operator} cannot aggregate by {aggregate!r}: options are those of "
                "pyarrow.compute, such as ScalarAggregateOptions(min_count=1)"
            )


def _are_names(column: Any) -> bool:
    """Whether it is the name of a column, or a list of names: empty for what counts records."""
    is_list = isinstance(column, (list, tuple))
    return isinstance(column, str) or (is_list and all(isinstance(name, str) for name in column))


def _aggregate(
    table: pa.Table,
    by: Sequence[str],
    aggregates: Sequence[Any],
    names: Sequence[str],
    operator: str,
) -> pa.Table:
    """Group by columns of which all are of types that Arrow can group by."""
    try:
        return table.group_by(list(by), use_threads=False).aggregate(list(aggregates))
    except pa.ArrowNotImplementedError as error:
        types = {name: str(table.schema.field(of).type) for name, of in zip(names, by, strict=True)}
        raise SchemaError(
            f"{operator} cannot group by the columns {types}, or cannot aggregate others so: "
            f"{error}; make numbers, texts or times of them"
        ) from error


def _names(batch: pa.RecordBatch, key: Any, operator: str) -> list[str]:
    """The names of the columns of `key`, which the batch must have."""
    if key is None or callable(key):
        raise ColumnError(
            f"{operator} was given record batches and the key {key!r}: name the columns of the key"
        )
    if not isinstance(key, str) and not len(key):
        return []
    return column_names(key, batch.schema.names, operator)


def listed(column: Any) -> list[str]:
    """A name, or several, as a list."""
    return [column] if isinstance(column, str) else list(column)
