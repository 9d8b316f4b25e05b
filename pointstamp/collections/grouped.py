"""`GroupedCollection`: groups of records by the columns of a key, and reductions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.aggregate import aggregate
from pointstamp.collections.aggregates import Aggregate, count
from pointstamp.collections.arrange import Arrangement
from pointstamp.collections.expression import Expression, col
from pointstamp.collections.general_reduce import (
    GroupForm,
    Lasting,
    OfGroups,
    by_batch,
    by_group,
    reduced,
)
from pointstamp.collections.group_answers import arrange_in_order
from pointstamp.collections.linear import Change, changed, chosen_words, computing
from pointstamp.collections.order import RecordOrder, check_most, order_given
from pointstamp.collections.schema import Schema, column_names, schema_of
from pointstamp.collections.top_k import first_rows, first_rows_in_loops
from pointstamp.containers.updates import Rows
from pointstamp.errors import BuildError, ColumnError
from pointstamp.operators.names_elsewhere import OF_GROUPS, no_attribute

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection

_CONSTANT = np.zeros((1, 1), np.int64)
"""The key of the one group of a collection that is not grouped."""


class GroupedCollection:
    """The groups of a collection by the columns of a key; see `Collection.group_by`.

    lasting : of records of open windows, leaves out what of results goes when a window closes
    """

    def __init__(
        self, collection: Collection, keys: Sequence[str], lasting: Lasting | None = None
    ) -> None:
        self._collection = collection
        self._keys = tuple(keys)
        self._lasting = lasting

    if not TYPE_CHECKING:  # or every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            """Say of names that other libraries have for an operator what it is called here."""
            raise no_attribute(self, name, OF_GROUPS)

    def agg(self, *unnamed: Aggregate, **aggregates: Aggregate) -> Collection:
        """A row for each group: the columns of the key, and an aggregate for each argument.

        Raises
        ------
        BuildError
            If there is none, or one has no name.

        >>> import pointstamp as ps
        >>> def build(scope, sales):
        ...     return sales.group_by("shop").agg(n=ps.count(), cents=ps.sum("cents"))
        >>> view = ps.View(build, sales="shop long, cents long")
        >>> view.insert("sales", [(1, 30), (2, 10), (1, 20)])
        >>> view.advance()
        [((1, 2, 50), 1), ((2, 1, 10), 1)]
        """
        check_named(unnamed)
        if not aggregates:
            raise BuildError(
                "agg is given no aggregate, such as agg(n=ps.count()); of the keys alone, "
                "select(...).distinct()"
            )
        return self._results(aggregated(self._collection, self._keys, aggregates, "Aggregate"))

    def count(self) -> Collection:
        """A row for each group: the columns of the key, and `count`."""
        return self.agg(count=count())

    def top_k(
        self,
        k: int,
        by: str | Sequence[str],
        *,
        descending: bool | Sequence[bool] = True,
        name: str = "TopK",
    ) -> Collection:
        """The first `k` records of each group: those with the greatest `by`, or the least.

        Parameters
        ----------
        k : int
            How many records of each group, 1 or more. One that is there twice counts twice.
        by : str or sequence of str
            Columns, of which the first decides; texts are ordered by their bytes.
        descending : bool or sequence of bool
            Whether the greatest comes first, in all columns or in each. Nulls are before all
            values, so last where the greatest comes first.

        Among records of equal `by`, those with the least other columns come first.

        >>> import pointstamp as ps
        >>> def build(scope, sales):
        ...     by_cents = ["cents", "item"]
        ...     return sales.group_by("shop").top_k(1, by_cents, descending=[True, False])
        >>> view = ps.View(build, sales="shop long, item string, cents long")
        >>> view.insert("sales", [(1, "tea", 30), (1, "ink", 30), (1, "pen", 20)])
        >>> view.advance()
        [((1, 'ink', 30), 1)]
        """
        check_most(k, name)
        schema = self._collection.schema
        order = RecordOrder(
            schema, self._keys, order_given(schema, by, descending, self._keys, name)
        )
        if not self._collection.scope.timestamp.total:
            rows = first_rows_in_loops(self._collection.stream, k, order, name)
            return self._collection.of(rows, schema)
        arranged = arrange_in_order(self._collection.stream, order, name)
        first = first_rows(arranged, k, order, name)
        rows = changed(first, f"{name}Rows", order.decode, schema.texts)
        return self._results(self._collection.of(rows, schema))

    def reduce(
        self,
        function: Callable[[tuple[Any, ...], list[tuple[Any, ...]]], Iterable[Any]],
        schema: Any,
        *,
        name: str = "Reduce",
    ) -> Collection:
        """The rows of `function(key, rows)` for each group that has records.

        The function is called with the whole group whenever one of its records changes, so a
        change costs what the group is long; `agg` and `top_k` cost what changes.

        Parameters
        ----------
        function : callable
            Is given the values of the key, and the records of the group as tuples, each as often
            as it is there, sorted, nulls first. It returns rows of `schema`, and has to give the
            same for the same records.
        schema : schema of the rows that are returned
            The columns of the key are among them if they are to be.

        A function that fails, or returns rows of another form, is an error with the key.

        >>> import pointstamp as ps
        >>> def build(scope, sales):
        ...     def items(shop, rows):
        ...         return [(*shop, ", ".join(item for _, item in rows))]
        ...     return sales.group_by("shop").reduce(items, "shop long, items string")
        >>> view = ps.View(build, sales="shop long, item string")
        >>> view.insert("sales", [(1, "tea"), (1, "ink")])
        >>> view.advance()
        [((1, 'ink, tea'), 1)]
        """
        form = self._form(function, schema, name)
        return self._reduced(form, by_group(form, function, name), name)

    def reduce_batches(
        self, function: Callable[[Any, Any], Any], schema: Any, *, name: str = "ReduceBatches"
    ) -> Collection:
        """The rows that `function(batch, offsets)` gives of each group, of many in one call.

        As `reduce`, but called once for all groups that a time touches, with columns: for
        functions of NumPy or Arrow.

        Parameters
        ----------
        function : callable
            Is given the records of the groups as a `pyarrow.RecordBatch`, each as often as it is
            there, and offsets int64[g + 1]: group `i` is the rows from `offsets[i]` up to
            `offsets[i + 1]`, at least one. Which groups are together, and the order of a group's
            records, may differ from call to call; the answer for a group may depend on its records
            alone. It returns columns of `schema` (a `RecordBatch`, a `Table`, or a frame of pandas
            or polars) with one row for each group, in their order; or a pair of these and of
            offsets as those that were given, for any number of rows.
        schema : schema of the rows that are returned
            The columns of the key are among them if they are to be.

        A function that fails, or returns rows of another form, is an error.

        >>> import numpy as np
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def share(batch, offsets):
        ...     cents = batch.column("cents").to_numpy()
        ...     totals = np.add.reduceat(cents, offsets[:-1])
        ...     shares = cents / np.repeat(totals, np.diff(offsets))
        ...     return pa.table({"item": batch.column("item"), "share": shares}), offsets
        >>> def build(scope, sales):
        ...     return sales.group_by("shop").reduce_batches(share, "item string, share double")
        >>> view = ps.View(build, sales="shop long, item string, cents long")
        >>> view.insert("sales", [(1, "tea", 30), (1, "ink", 10), (2, "pen", 7)])
        >>> view.advance()
        [(('ink', 0.25), 1), (('pen', 1.0), 1), (('tea', 0.75), 1)]
        """
        form = self._form(function, schema, name)
        return self._reduced(form, by_batch(form, function, name), name)

    def _form(self, function: Any, schema: Any, name: str) -> GroupForm:
        result = schema_of(schema)
        if not callable(function):
            raise BuildError(f"operator {name!r} is given {function!r}, which is no function")
        return GroupForm(self._collection.schema, self._keys, result)

    def _reduced(self, form: GroupForm, of_groups: OfGroups, name: str) -> Collection:
        collection = self._collection
        # An index leaves out nulls, which are a group here; in a loop it has other times.
        is_shared = collection.scope.timestamp.total and not any(
            collection.schema.column(key).nullable for key in self._keys
        )
        arranged = collection.arranged(self._keys) if is_shared else None
        assert arranged is None or isinstance(arranged, Arrangement)
        rows = reduced(collection.stream, form, of_groups, name, arranged, self._lasting)
        return collection.of(rows, form.result)

    def _results(self, rows: Collection) -> Collection:
        """Rows of a reduction that have the columns of the key: those that last."""
        if self._lasting is None:
            return rows
        schema = rows.schema
        return rows.of(self._lasting(rows.stream, schema.places, schema.texts), schema)


def with_keys(given: Any, keys: Sequence[Any]) -> tuple[Any, list[str]]:
    """A collection, with a column for each key that is an expression, and what the keys are called.

    Raises
    ------
    BuildError
        If there are none, or something else is given.
    ColumnError
        If there is no such column, or an expression has no name, or that of another column.
    """
    if not keys:
        raise BuildError("group_by is given no column; agg alone has one row for all records")
    computed = {}
    names = []
    for key in keys:
        if not isinstance(key, Expression):
            names += column_names([key], "group_by")
            continue
        if key.name is None:
            raise ColumnError(f"group_by is given {key}, which has no name: add .alias('name')")
        if key.column != key.name:
            if key.name in given.schema.names:
                raise ColumnError(
                    f"group_by is given {key} as {key.name!r}, and there is a column of that name: "
                    "add .alias() with another one"
                )
            computed[key.name] = key
        names.append(key.name)
    keyed = given.with_columns(**computed) if computed else given
    for name in names:
        keyed.schema.column(name, "group_by")
    return keyed, names


def check_named(unnamed: Sequence[Any]) -> None:
    """Raise `BuildError` for an aggregate that is given without a name for its column."""
    for given in unnamed:
        raise BuildError(
            f"agg is given {given!r} without a name: each aggregate is a column of the result, "
            'such as agg(total=ps.sum("cents"))'
        )


def aggregated(
    collection: Collection, keys: Sequence[str], aggregates: dict[str, Aggregate], name: str
) -> Collection:
    """A row of aggregates for each group; without keys one row for all records."""
    schema = collection.schema
    for given, value in aggregates.items():
        if not isinstance(value, Aggregate):
            raise BuildError(
                f"operator {name!r} is given {given}={value!r}, which is no aggregate such as "
                'ps.count() or ps.sum("cents")'
            )
    bound = [value.bind(schema, given) for given, value in aggregates.items()]
    if not keys:
        # There may be no records, so what is null of none may be null.
        bound = [replace(b, column=replace(b.column, nullable=b.null_of_none)) for b in bound]
    key_columns = [schema.column(key) for key in keys]
    result = Schema((*key_columns, *[b.column for b in bound]))
    values = {
        f"value {n}, {m}": value
        for n, b in enumerate(bound)
        for m, value in enumerate((b.value, b.beside))
        if value is not None
    }
    inner = Schema((*key_columns, *[value.column(n) for n, value in values.items()]))
    compute = computing({**{key: col(key).bind(schema) for key in keys}, **values}, inner)
    if keys:
        n_key = sum(column.n_words for column in key_columns)
        stream = collection.stream
        columns = [*keys, *[b.column_of for b in bound if b.value is not None]]
        choose: Change | None = compute
        if all(column is not None for column in columns):
            # Columns as they are, which may be the very words that are there.
            words = [word for column in columns for word in schema.words(str(column))]
            choose = chosen_words(words, schema.n_words)
        if choose is not None:
            stream = changed(stream, f"{name}Values", choose, inner.texts)
        rows = aggregate(
            stream, n_key, bound, result.texts, name, None, collection.append_only, key_columns
        )
        return collection.of(rows, result)

    # All records are one group, of a key that is 0.
    def with_key(rows: Rows) -> Rows:
        return np.column_stack([np.zeros(len(rows), np.int64), compute(rows)])

    texts = tuple(place + 1 for place in inner.texts)
    stream = changed(collection.stream, f"{name}Values", with_key, texts)
    texts_of_row = tuple(place + 1 for place in result.texts)
    rows = aggregate(stream, 1, bound, texts_of_row, name, _CONSTANT, collection.append_only)
    without_key = chosen_words(list(range(1, result.n_words + 1)), result.n_words + 1)
    assert without_key is not None
    return collection.of(changed(rows, f"{name}Row", without_key, result.texts), result)
