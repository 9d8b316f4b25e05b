"""Window functions: a column of each record that depends on its place among others.

`rank().over("shop", order_by="cents")` numbers the records of each shop. The records of a
partition are arranged in order; when some of them change, the columns of the whole partition are
computed anew, and what differs leaves.

Source: window functions of SQL, with the names of Polars and PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.aggregate import beyond
from pointstamp.collections.aggregates import Aggregate, BoundAggregate, expression_given
from pointstamp.collections.casts import Bound
from pointstamp.collections.comparison_refused import ComparisonRefused
from pointstamp.collections.copies import copied
from pointstamp.collections.durable_rows import StoredForm
from pointstamp.collections.expression import Expression, col, lit
from pointstamp.collections.group_answers import (
    TouchedGroups,
    answers_in_loops,
    answers_kept,
    arrange_in_order,
    is_first,
)
from pointstamp.collections.linear import changed
from pointstamp.collections.order import ALL, Ints, RecordOrder, beside, from_first, order_given
from pointstamp.collections.schema import Column, Schema, column_names
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import LONG
from pointstamp.errors import BuildError
from pointstamp.kernels.group_sums import SumOverflow
from pointstamp.kernels.matches import read_groups

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection


@dataclass(frozen=True)
class SortedPartitions:
    """The records of some partitions, each partition in order, a copy of a record like another."""

    rows: Rows
    """int64[n, w + 1], of the schema."""
    begins: Ints
    """int64[n]: where the partition of each begins."""
    ends: Ints
    """int64[n]: where it ends."""
    is_new: Any
    """bool[n]: whether it differs in the columns of the order from the one before it."""

    @property
    def places(self) -> Ints:
        """int64[n]: 0, 1, 2 and so on."""
        return np.arange(len(self.rows))


Compute = Callable[[SortedPartitions], Rows]
"""The words of a column of each record, int64[n, its number of words]."""


class PartitionFunction(ComparisonRefused):
    """What is computed of a record and those around it. Made by `rank`, `lag` and others.

    >>> lag("cents").over("shop", order_by="day")
    lag(col('cents'), 1).over(['shop'], order_by=['day'])
    """

    instead = "write .over(keys, order_by=...) behind it, and name that in with_columns(n=...)"

    def __init__(self, text: str, bind: Callable[[Schema, str], tuple[Column, Compute]]) -> None:
        self._text = text
        self.bind = bind
        """Of a schema and a name: the column, and how it is computed."""

    def over(
        self,
        keys: str | Sequence[str] = (),
        *,
        order_by: str | Sequence[str],
        descending: bool | Sequence[bool] = False,
    ) -> WindowColumn:
        """The column of it, for `select` and `with_columns`.

        Parameters
        ----------
        keys : str or sequence of str
            The columns of a partition, in which nulls are equal; none for one of all records.
        order_by : str or sequence of str
            The columns of the order, texts by their bytes. The least other columns break ties.
        descending : bool or sequence of bool
            Whether the greatest comes first, in all columns of the order or in each. Nulls are
            before all values, so last where the greatest comes first.
        """
        return WindowColumn(self, column_names(keys, self._text), order_by, descending)

    def __repr__(self) -> str:
        return self._text


class WindowColumn(ComparisonRefused):
    """A window function over partitions, as a column."""

    instead = (
        "name it in with_columns(n=...), and use that column behind, as in filter(col('n') == 1)"
    )

    def __init__(
        self,
        function: PartitionFunction,
        keys: list[str],
        order_by: str | Sequence[str],
        descending: bool | Sequence[bool],
    ) -> None:
        self.function = function
        self.keys = keys
        self._order_by = order_by
        self._descending = descending

    def order(self, schema: Schema) -> list[tuple[str, bool]]:
        """The columns of the order, and whether the greatest comes first."""
        for key in self.keys:
            schema.column(key, str(self))
        return order_given(schema, self._order_by, self._descending, self.keys, str(self))

    def __repr__(self) -> str:
        order_by = [self._order_by] if isinstance(self._order_by, str) else self._order_by
        return f"{self.function}.over({self.keys}, order_by={order_by})"


def row_number() -> PartitionFunction:
    """The number of a record in its partition: 1, 2, 3; each copy of a record has its own.

    >>> import pointstamp as ps
    >>> def build(scope, sales):
    ...     n = ps.row_number().over("shop", order_by="cents", descending=True)
    ...     return sales.with_columns(n=n)
    >>> view = ps.View(build, sales="shop long, cents long")
    >>> view.insert("sales", [(1, 30), (1, 40), (2, 50)])
    >>> view.advance()
    [((1, 30, 2), 1), ((1, 40, 1), 1), ((2, 50, 1), 1)]
    """
    return PartitionFunction("row_number()", _of_places(lambda p: p.places - p.begins))


def rank() -> PartitionFunction:
    """The rank of a record in its partition, with gaps: 1, 1, 3 if two tie."""

    def ranks(p: SortedPartitions) -> Ints:
        first: Ints = np.maximum.accumulate(np.where(p.is_new, p.places, 0))
        return first - p.begins

    return PartitionFunction("rank()", _of_places(ranks))


def dense_rank() -> PartitionFunction:
    """The rank of a record in its partition without gaps: 1, 1, 2 if two tie."""

    def ranks(p: SortedPartitions) -> Ints:
        n_values = np.cumsum(p.is_new)
        dense: Ints = n_values - n_values[p.begins]
        return dense

    return PartitionFunction("dense_rank()", _of_places(ranks))


def lag(of: str | Expression, n: int = 1) -> PartitionFunction:
    """The value of the record `n` places earlier in the partition; null if there is none.

    >>> import pointstamp as ps
    >>> def build(scope, t):
    ...     return t.select("day", before=ps.lag("cents").over(order_by="day"))
    >>> view = ps.View(build, t="day long, cents long")
    >>> view.insert("t", [(1, 30), (2, 40), (4, 50)])
    >>> view.advance()
    [((1, None), 1), ((2, 30), 1), ((4, 40), 1)]
    >>> view.insert("t", [(3, 70)])
    >>> view.advance()
    [((3, 40), 1), ((4, 40), -1), ((4, 70), 1)]
    """
    return _shifted("lag", of, n, -1)


def lead(of: str | Expression, n: int = 1) -> PartitionFunction:
    """The value of the record `n` places later in the partition; null if there is none."""
    return _shifted("lead", of, n, 1)


def rolling(aggregate: Aggregate, n_rows: int) -> PartitionFunction:
    """An aggregate of a record and up to `n_rows - 1` records before it in its partition.

    Any aggregate of `agg`, such as `ps.sum("cents")`; nulls are skipped as there.

    >>> import pointstamp as ps
    >>> def build(scope, t):
    ...     return t.select("day", s=ps.rolling(ps.sum("cents"), 2).over(order_by="day"))
    >>> view = ps.View(build, t="day long, cents long")
    >>> view.insert("t", [(1, 30), (2, 40), (3, 50)])
    >>> view.advance()
    [((1, 30), 1), ((2, 70), 1), ((3, 90), 1)]
    """
    if not isinstance(aggregate, Aggregate):
        raise BuildError(
            f'rolling is given {aggregate!r}, which is no aggregate such as ps.sum("cents")'
        )
    _check_count("rolling", n_rows)

    def bind(schema: Schema, name: str) -> tuple[Column, Compute]:
        bound = aggregate.bind(schema, name)
        return bound.column, lambda partitions: _rolled(bound, partitions, n_rows)

    return PartitionFunction(f"rolling({aggregate}, {n_rows})", bind)


def with_window_columns(
    collection: Collection, columns: dict[str, Any]
) -> tuple[Collection, dict[str, Expression]]:
    """The collection with a column more for each of `columns` that is over partitions.

    Returns it, and `columns` as expressions of its columns.
    """
    expressions: dict[str, Expression] = {}
    alike: dict[Any, dict[str, WindowColumn]] = {}
    taken = set(collection.schema.names)
    for name, column in columns.items():
        if not isinstance(column, WindowColumn):
            expressions[name] = column
            continue
        made = _free(f"window {name}", taken)
        expressions[name] = col(made)
        spec = tuple(column.keys), tuple(column.order(collection.schema))
        alike.setdefault(spec, {})[made] = column
    for (keys, order), windows in alike.items():
        collection = _over(collection, keys, order, windows)
    return collection, expressions


def _over(
    collection: Collection,
    keys: tuple[str, ...],
    by: tuple[tuple[str, bool], ...],
    windows: dict[str, WindowColumn],
) -> Collection:
    """With columns that have their partitions and order in common."""
    name = "Over"
    if not keys:
        # One partition of all records, of a key that is 0.
        key = _free("key", {*collection.schema.names, *windows})
        with_key = collection.with_columns(**{key: lit(0)})
        return _over(with_key, (key,), by, windows).drop(key, name=f"{name}All")
    schema = collection.schema
    bound = [window.function.bind(schema, made) for made, window in windows.items()]
    result = Schema((*schema.columns, *(column for column, _ in bound)))
    order = RecordOrder(schema, keys, by)
    n_words = order.words.n_words
    n_more = result.n_words - schema.n_words
    functions = ", ".join(str(window.function) for window in windows.values())

    def answer(touched: TouchedGroups) -> Rows:
        rows, _ = read_groups(touched.batches, touched.keys, from_first(touched.keys), ALL)
        return with_columns(order.words.sorted(rows))

    def with_columns(rows: Rows) -> Rows:
        if not len(rows):
            return np.empty((0, n_words + n_more + 1), np.int64)
        copies = copied(rows, rows[:, -1], "partitions")
        copies[:, -1] = 1
        partitions = _partitions(copies, order)
        computed = [compute(partitions) for _, compute in bound]
        return np.concatenate([copies[:, :-1], *computed, copies[:, -1:]], axis=1)

    def restored(rows: Rows) -> Rows:
        return beside(rows, n_words, order.decode)

    more = [place for place in result.texts if place >= schema.n_words]
    if not collection.scope.timestamp.total:
        added = (n_more, tuple(place - schema.n_words for place in more))
        rows = answers_in_loops(collection.stream, order, with_columns, added, name, functions)
        return collection.of(rows, result)
    arranged = arrange_in_order(collection.stream, order, name)
    texts = (*order.texts, *(place - schema.n_words + n_words for place in more))
    stored, what = _stored(order, n_more, texts), f"({result}), {functions} of {order.named}"
    answers = answers_kept(arranged, n_words + n_more, texts, answer, name, stored, what)
    return collection.of(changed(answers, f"{name}Rows", restored, result.texts), result)


def _stored(order: RecordOrder, n_more: int, texts: tuple[int, ...]) -> StoredForm:
    """Records by key in place of those in order, each with the words of its columns behind it."""
    n_ordered, n_given = order.words.n_words, order.words.n_given

    more = [place - n_ordered + n_given for place in texts if place >= n_ordered]
    return StoredForm(
        lambda rows: beside(rows, n_given, order.encode),
        lambda rows: beside(rows, n_ordered, order.decode_by_key),
        (*order.given_texts, *more),
    )


def _partitions(copies: Rows, order: RecordOrder) -> SortedPartitions:
    """Of records in order, each of a diff of 1."""
    is_begin = is_first(copies, order.n_key)
    number = np.cumsum(is_begin) - 1
    begins = np.flatnonzero(is_begin)
    ends = np.append(begins[1:], len(copies))
    is_new = is_first(copies, order.n_by)
    return SortedPartitions(order.decode(copies), begins[number], ends[number], is_new)


def _of_places(
    function: Callable[[SortedPartitions], Ints],
) -> Callable[[Schema, str], tuple[Column, Compute]]:
    """A column of numbers from 1 on, of what the function counts from 0 on."""

    def bind(schema: Schema, name: str) -> tuple[Column, Compute]:
        return Column(name, LONG), lambda partitions: function(partitions)[:, None] + 1

    return bind


def _shifted(name: str, of: str | Expression, n: int, direction: int) -> PartitionFunction:
    expression = expression_given(name, of)
    _check_count(name, n)

    def bind(schema: Schema, column_name: str) -> tuple[Column, Compute]:
        value = expression.bind(schema)

        def compute(partitions: SortedPartitions) -> Rows:
            at = partitions.places + direction * n
            there = (at >= partitions.begins) & (at < partitions.ends)
            values = _words(Bound(value.type, True, value.evaluate), partitions.rows)
            found: Rows = values[np.where(there, at, 0)]
            found[~there] = 0
            return found

        return Column(column_name, value.type, True), compute

    return PartitionFunction(f"{name}({expression}, {n})", bind)


def _rolled(bound: BoundAggregate, partitions: SortedPartitions, n_rows: int) -> Rows:
    """The aggregate of each record's frame; the frames are groups, numbered as the records are."""
    places = partitions.places
    lengths = np.minimum(places - partitions.begins + 1, n_rows)
    frames = places.repeat(lengths)
    within = np.arange(len(frames)) - (np.cumsum(lengths) - lengths).repeat(lengths)
    members = (places - lengths + 1).repeat(lengths) + within
    kept = bound.new_accumulator(1, lambda rows: rows[:, 0].astype(np.int32))
    kept.grow(len(places))
    if bound.value is not None:
        words = _words(bound.value, partitions.rows)
        there = words[:, 0] != 0 if bound.value.nullable else np.ones(len(words), np.bool_)
        if bound.beside is not None:
            words = np.concatenate([words[:, -1:], _words(bound.beside, partitions.rows)], axis=1)
        else:
            words = words[:, -1]
        chosen = there[members]
        frames, members = frames[chosen], members[chosen]
    else:
        words = places
    numbers, diffs = frames.astype(np.int32), np.ones(len(frames), np.int64)
    kept.add(numbers, frames[:, None], words[members], diffs)
    try:
        answers, is_there = kept.answers(places, places[:, None])
    except SumOverflow as error:
        raise beyond(bound, error.total, f"a frame of {n_rows} records or less") from None
    if bound.column.nullable:
        return np.column_stack([is_there.astype(np.int64), answers])
    return answers[:, None]


def _words(bound: Bound, rows: Rows) -> Rows:
    """The words of an expression for some records."""
    n_words = bound.column("value").n_words
    words = np.empty((len(rows), n_words), np.int64)
    bound.write(rows, words, n_words - 1)
    return words


def _check_count(name: str, n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise BuildError(f"{name} is given {n!r} rows, and should be given 1 or more")


def _free(name: str, taken: set[str]) -> str:
    """The name with so many underscores that no column has it; it is taken from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
