"""Operators on collections that look at each record by itself: columns, filters, functions.

What an expression or a function fails on follows their error policy (`row_errors.py`), by the
words and the argument of operators on streams.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, overload

from pointstamp.collections.casts import Bound
from pointstamp.collections.chosen_columns import by_name
from pointstamp.collections.exploding import exploding
from pointstamp.collections.expression import Expression, as_expression, col
from pointstamp.collections.linear import computing, keeping
from pointstamp.collections.over import with_window_columns
from pointstamp.collections.row_errors import tried
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.error_policy import OnError
from pointstamp.errors import BuildError, SchemaError
from pointstamp.operators.user_code import check_function, check_iterable

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection

RaiseOrDrop = Literal["raise", "drop"]


class RecordMethods:
    """What is done with each record of a collection by itself."""

    schema: Schema

    # The others have no `on_error`, so that `**named` may be of any type: it is checked below.

    @overload
    def select(
        self, *columns: str | Expression, on_error: Literal["route"], **named: Any
    ) -> tuple[Collection, Collection]: ...

    @overload
    def select(self, *columns: str | Expression, **named: Any) -> Collection: ...

    def select(self, *columns: str | Expression, on_error: OnError = "raise", **named: Any) -> Any:
        """The records with only these columns: by name, or computed, named by the argument.

        Parameters
        ----------
        on_error : {"raise", "route", "drop"}
            Where an expression fails on a record: stop everything (`OperatorError`); have the error
            in a second collection as long as the record is there; or leave the record out, and
            count each of its updates in `Worker.dropped`.

        Returns
        -------
        Collection, or a pair of collections
            With "route", (results, errors). Errors have the columns `operator`, `message` and
            `record`, all texts, and are a set. A column that is itself called "on_error" gets its
            name by `rename`.

        Raises
        ------
        BuildError
            If a policy is given for columns that window functions compute.

        >>> import pointstamp as ps
        >>> view = ps.View(lambda scope, t: t.select("a", b=ps.col("a") * 2), t="a long, c long")
        >>> view.insert("t", [(1, 7)])
        >>> view.advance()
        [((1, 2), 1)]
        >>> def build(scope, t):
        ...     results, errors = t.select(share=1 / ps.col("n"), on_error="route")
        ...     return {"results": results, "errors": errors.select("record")}
        >>> view = ps.View(build, t="n long")
        >>> view.insert("t", [(2,), (0,), (0,)])
        >>> view.advance()
        {'results': [((0.5,), 1)], 'errors': [(('(0,)',), 1)]}
        >>> view.delete("t", [(0,), (0,)])
        >>> view.advance()
        {'results': [], 'errors': [(('(0,)',), -1)]}
        """
        return _computed(self, by_name(columns, named), on_error, "Select")

    @overload
    def with_columns(
        self, *, on_error: Literal["route"], **named: Any
    ) -> tuple[Collection, Collection]: ...

    @overload
    def with_columns(self, **named: Any) -> Collection: ...

    def with_columns(self, *, on_error: OnError = "raise", **named: Any) -> Any:
        """The records with columns added or replaced.

        `on_error` is as of `select`.
        """
        kept = {column: col(column) for column in self.schema.names}
        return _computed(self, {**kept, **by_name((), named)}, on_error, "WithColumns")

    @overload
    def filter(
        self, *predicates: Expression, on_error: RaiseOrDrop = ..., name: str = ...
    ) -> Collection: ...

    @overload
    def filter(
        self, *predicates: Expression, on_error: Literal["route"], name: str = ...
    ) -> tuple[Collection, Collection]: ...

    def filter(
        self, *predicates: Expression, on_error: OnError = "raise", name: str = "Filter"
    ) -> Any:
        """The records for which all `predicates` are true; null is not true.

        `on_error` is as of `select`.
        """
        if not predicates:
            raise BuildError(f"operator {name!r} is given no predicate, such as col('n') > 0")
        predicate = reduce(operator.and_, map(as_expression, predicates))
        bound = as_expression(predicate).bind(self.schema)
        if bound.type.name != "boolean":
            raise SchemaError(f"operator {name!r}: {predicate} is {bound.type.name}, not boolean")
        collection: Any = self
        return tried(collection, name, keeping(bound), self.schema, on_error)

    def explode(self, column: str, *, outer: bool = False, name: str = "Explode") -> Collection:
        """Replace each record by one for each element of a list column.

        The column has the elements then, of which some may be null. What a change costs is the
        length of its lists.

        Parameters
        ----------
        column : str
            Of lists, such as `array<string>`.
        outer : bool
            Whether a record whose list is empty or null is there once, with a null, as by Spark's
            `explode_outer` and in Polars. Without it such a record is left out, as by Spark's
            `explode`.

        Raises
        ------
        SchemaError
            If the column is no list.

        >>> import pointstamp as ps
        >>> view = ps.View(lambda scope, t: t.explode("tags"), t="id long, tags array<string>?")
        >>> view.insert("t", [(1, ["a", None, "a"]), (2, []), (3, None)])
        >>> view.advance()
        [((1, None), 1), ((1, 'a'), 2)]
        >>> view.delete("t", [(1, ["a", None, "a"])])
        >>> view.advance()
        [((1, None), -1), ((1, 'a'), -2)]
        """
        change, schema = exploding(self.schema, column, outer, name)
        given: Any = self
        found: Collection = given.changed_by(name, change, schema)
        return found

    @overload
    def map(
        self,
        function: Callable[[tuple[Any, ...]], Any],
        schema: Any,
        *,
        on_error: RaiseOrDrop = ...,
        name: str = ...,
    ) -> Collection: ...

    @overload
    def map(
        self,
        function: Callable[[tuple[Any, ...]], Any],
        schema: Any,
        *,
        on_error: Literal["route"],
        name: str = ...,
    ) -> tuple[Collection, Collection]: ...

    def map(
        self,
        function: Callable[[tuple[Any, ...]], Any],
        schema: Any,
        *,
        on_error: OnError = "raise",
        name: str = "Map",
    ) -> Any:
        """Replace each record by `function(row)`, a row of `schema`.

        The function is called with each update, and has to give the same for the same row.
        `on_error` is as of `flat_map`.
        """
        check_function(function, name)
        return _mapped(self, lambda row: [function(row)], schema, on_error, name)

    @overload
    def flat_map(
        self,
        function: Callable[[tuple[Any, ...]], Iterable[Any]],
        schema: Any,
        *,
        on_error: RaiseOrDrop = ...,
        name: str = ...,
    ) -> Collection: ...

    @overload
    def flat_map(
        self,
        function: Callable[[tuple[Any, ...]], Iterable[Any]],
        schema: Any,
        *,
        on_error: Literal["route"],
        name: str = ...,
    ) -> tuple[Collection, Collection]: ...

    def flat_map(
        self,
        function: Callable[[tuple[Any, ...]], Iterable[Any]],
        schema: Any,
        *,
        on_error: OnError = "raise",
        name: str = "FlatMap",
    ) -> Any:
        """Replace each record by the rows of `function(row)`, of the given `schema`.

        The function is called with each update, and has to give the same for the same row.

        Parameters
        ----------
        on_error : {"raise", "route", "drop"}
            As of `select`, where `function` raises, or gives what is no row of `schema`. A record
            gives all of its rows or none. With "route" and "drop" the function is called again with
            the other records of a batch in which it fails, and has to fail alike for the same row.

        >>> import pointstamp as ps
        >>> def words(scope, lines):
        ...     split = lambda line: [(word,) for word in line[0].split()]
        ...     return lines.flat_map(split, "word string").group_by("word").count()
        >>> view = ps.View(words, lines="line string")
        >>> view.insert("lines", [("to be or not to be",)])
        >>> view.advance()[:2]
        [(('be', 2), 1), (('not', 1), 1)]
        """
        check_function(function, name, may_yield=True)
        return _mapped(self, function, schema, on_error, name)


def _computed(given: Any, columns: dict[str, Any], on_error: OnError, name: str) -> Any:
    """A collection with these columns, some of which may be over partitions."""
    wide, found = with_window_columns(given, columns)
    if on_error == "raise":
        return wide.computed(found, name)
    if wide is not given:
        raise BuildError(
            f"operator {name!r} is given on_error={on_error!r} and window functions: select what "
            "these compute first, and then what may fail"
        )
    bound, schema = bound_columns(given.schema, found, name)
    return tried(given, name, computing(bound, schema), schema, on_error)


def _mapped(
    given: Any, function: Callable[..., Iterable[Any]], schema: Any, on_error: OnError, name: str
) -> Any:
    result = schema_of(schema)

    def each(rows: Rows) -> Rows:
        pairs = zip(given.schema.to_rows(rows), rows[:, -1].tolist(), strict=True)
        changes = many_changes(function, pairs)
        return result.to_pairs(changes, f"operator {name!r}").rows

    return tried(given, name, each, result, on_error, is_code=True)


def many_changes(
    function: Callable[[Any], Iterable[Any]], updates: Iterable[tuple[Any, int]]
) -> Iterator[tuple[Any, int]]:
    """What the function gives of each record, with the record's difference."""
    for record, diff in updates:
        made = function(record)
        try:
            found = iter(made)
        except TypeError:
            check_iterable(made, function, record)
            raise
        for each in found:
            yield each, diff


def bound_columns(
    schema: Schema, columns: dict[str, Expression], name: str
) -> tuple[dict[str, Bound], Schema]:
    """Expressions bound to a schema, and the schema of what they compute."""
    if not columns:
        raise SchemaError(f"operator {name!r} leaves no column; a collection has one at least")
    bound = {column: expression.bind(schema) for column, expression in columns.items()}
    return bound, Schema(tuple(value.column(column) for column, value in bound.items()))
