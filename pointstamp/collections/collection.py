"""`Collection`: a multiset of records that changes, with the operators on it.

A collection has a schema, and a stream of updates whose times are the scope's. What its
operators do with the words is in the modules beside; here columns become words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pointstamp.collections.aggregate import aggregate
from pointstamp.collections.aggregates import Aggregate, count
from pointstamp.collections.arrange import Arrangement, arrange, as_updates
from pointstamp.collections.arranged import ArrangedCollection
from pointstamp.collections.assertions import AssertionMethods
from pointstamp.collections.beside import beside_of
from pointstamp.collections.by_record import RecordMethods, bound_columns
from pointstamp.collections.casts import Bound, made_equal
from pointstamp.collections.chosen_columns import plain_words
from pointstamp.collections.counted import counted
from pointstamp.collections.event_windows import WindowColumns, WindowedMethods, open_windows
from pointstamp.collections.expression import Expression, col
from pointstamp.collections.fixpoint import LoopMethods, brought_together
from pointstamp.collections.grouped import GroupedCollection, aggregated, check_named, with_keys
from pointstamp.collections.linear import Change, changed, chosen_words, computing
from pointstamp.collections.negated import negated
from pointstamp.collections.schema import Column, Schema, column_names
from pointstamp.collections.stats import CollectionStats, IndexedColumns, stats_of
from pointstamp.collections.temporal import present
from pointstamp.collections.trace_arrange import TraceArrangement, arrange_trace
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, DataError, SchemaError
from pointstamp.operators.names_elsewhere import OF_COLLECTIONS, no_attribute, of_other_words
from pointstamp.operators.probe import probe_with
from pointstamp.operators.split_merge import concatenate
from pointstamp.operators.transform import transform
from pointstamp.operators.user_code import check_function

if TYPE_CHECKING:
    from pointstamp.collections.clock_input import Clock
    from pointstamp.collections.session_windows import SessionColumns
    from pointstamp.operators.probe import Probe
    from pointstamp.operators.stream import Stream
    from pointstamp.operators.window_assigners import Sessions, Sliding

How = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]
_HOWS = ("inner", "left", "right", "full", "semi", "anti", "cross")


class Collection(RecordMethods, LoopMethods, AssertionMethods):
    """A multiset of records of one schema that changes over time; updates are incremental.

    Made by `Scope.new_collection`, and by operators on collections.

    Attributes
    ----------
    schema : Schema
        Names and types of the columns.
    append_only : bool
        Whether it is known that no record is ever deleted: of an input that is so, and of what is
        made of such collections record by record, by `concat`, `distinct`, and inner joins.
    """

    def __init__(
        self, stream: StreamCore[Any], schema: Schema, *, append_only: bool = False
    ) -> None:
        self._stream = stream
        self.schema = schema
        self.append_only = append_only
        self._arrangements: dict[Any, Arrangement | TraceArrangement] = {}
        self._indexes: dict[tuple[str, ...], ArrangedCollection] = {}
        self._entered: dict[Any, Collection] = {}
        self._explained = None
        texts_held = stream.scope.environment.texts_held
        if texts_held is not None and not texts_held.has_collections:
            texts_held.begin(TEXTS.pinning())

    @property
    def stream(self) -> StreamCore[Any]:
        """Its updates, in containers of words."""
        return self._stream

    if not TYPE_CHECKING:  # or every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            """Say of names that other libraries have for an operator what it is called here."""
            schema = self.__dict__.get("schema")  # which may not be there yet
            raise no_attribute(self, name, OF_COLLECTIONS, schema.names if schema else ())

        def __getitem__(self, key: Any) -> Any:
            raise TypeError(f"a collection has no items: a column is written ps.col({key!r})")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.schema})"

    # Columns and signs.

    def rename(self, mapping: dict[str, str]) -> Collection:
        """The same records with renamed columns."""
        given: Any = mapping  # of any type, until it is looked at
        if not isinstance(given, Mapping) or not all(isinstance(n, str) for n in given.values()):
            raise BuildError(f"rename is given {given!r}, and needs a dict of new names by the old")
        for old in mapping:
            self.schema.column(old, "rename")
        columns = [
            Column(mapping.get(c.name, c.name), c.type, c.nullable) for c in self.schema.columns
        ]
        return self.kept(self.stream, Schema(tuple(columns)))

    def drop(self, *columns: str, name: str = "Drop") -> Collection:
        """The records without some columns."""
        for column in column_names(columns, name):
            self.schema.column(column, name)
        kept = {column: col(column) for column in self.schema.names if column not in columns}
        return self.computed(kept, name)

    def concat(self, *others: Collection, name: str = "Concat") -> Collection:
        """The multiset union of collections; columns match by name."""
        columns = list(self.schema.columns)
        for other in others:
            _check_collection(other, name)
            if sorted(other.schema.names) != sorted(self.schema.names):
                raise SchemaError(
                    f"operator {name!r} is given collections of ({self.schema}) and "
                    f"({other.schema}): their columns should have the same names"
                )
            for place, column in enumerate(columns):
                fellow = other.schema.column(column.name)
                if fellow.type != column.type:
                    raise SchemaError(
                        f"operator {name!r}: column {column.name!r} is {column.type.name} and "
                        f"{fellow.type.name}; {made_equal(fellow.type, column.type)}"
                    )
                nullable = column.nullable or fellow.nullable
                columns[place] = Column(column.name, column.type, nullable)
        schema = replace(self.schema, columns=tuple(columns))
        parts = brought_together((self, *others))
        streams = [part.as_schema(schema, name).stream for part in parts]
        found = self.of(concatenate(streams), schema)
        found.append_only = all(part.append_only for part in parts)
        return found

    def negate(self, *, name: str = "Negate") -> Collection:
        """The same records with their diffs negated; a `DataError` of the least of 64 bits."""
        return self.of(changed(self.stream, name, negated, self.schema.texts), self.schema)

    # Records together.

    def consolidate(self, *, name: str = "Consolidate") -> Collection:
        """The same collection, with at most one update per record and time, and no diff of 0."""
        n_words = self.schema.n_words
        return self.kept(as_updates(self.stream, n_words, self.schema.texts, name), self.schema)

    def distinct(self, *, name: str = "Distinct") -> Collection:
        """The distinct records: each once."""
        # A group for each record, of which there are no aggregates.
        schema, only = self.schema, self.append_only
        columns = schema.columns
        rows = aggregate(self.stream, schema.n_words, (), schema.texts, name, None, only, columns)
        return self.kept(rows, self.schema)

    def threshold(self, function: Callable[[Any], Any], *, name: str = "Threshold") -> Collection:
        """Each record with the count `function(counts)`, of its current counts.

        function : of int64[n], how often each of n records is there, above 0; gives int64[n]
        """
        check_function(function, name)

        def multiplicity(count: Any) -> Any:
            wanted = np.asarray(function(np.maximum(count, 1)))
            if wanted.shape != count.shape or wanted.dtype.kind not in "iu":
                raise DataError(
                    f"operator {name!r}: of {len(count)} counts the function gave "
                    f"{wanted.dtype}{list(wanted.shape)}, and should give as many integers"
                )
            return np.where(count > 0, wanted, 0)

        return self._counted([self], multiplicity, name, "threshold")

    def intersect(self, other: Collection, *, name: str = "Intersect") -> Collection:
        """The multiset intersection: each record with the lesser of its two counts."""
        return self._counted(
            [self, other], lambda one, two: np.maximum(np.minimum(one, two), 0), name, "intersect"
        )

    def subtract(self, other: Collection, *, name: str = "Subtract") -> Collection:
        """The multiset difference: each record with its count minus that in `other`."""
        return self._counted(
            [self, other],
            lambda one, two: np.maximum(np.maximum(one, 0) - np.maximum(two, 0), 0),
            name,
            "subtract",
        )

    def temporal_filter(
        self, start: Any, end: Any, *, clock: Clock | None = None, name: str = "TemporalFilter"
    ) -> Collection:
        """Each record while a clock is in its interval, from `start` and before `end`.

        What has left is not kept; the state is the records that will enter or leave.

        Parameters
        ----------
        start, end : str, Expression or None
            Columns, or expressions, of the type of the clock. None is open; a record whose start
            or end is null is never there, as the comparison is not true.
        clock : Clock, optional
            Of `Scope.new_clock`, or of an input `ps.ClockInput()`. Before it has a value nothing
            is there. Without it the epoch is the clock, and the columns are integers.

        Raises
        ------
        SchemaError
            If start or end is not of the clock's type.
        BuildError
            In a loop, or of something that is no clock.

        >>> import pointstamp as ps
        >>> def build(scope, bookings):
        ...     return bookings.temporal_filter("begins", "ends").select("room")
        >>> view = ps.View(build, bookings="room string, begins long, ends long")
        >>> view.insert("bookings", [("blue", 0, 2), ("red", 1, 9)])
        >>> view.advance(), view.advance(), view.advance()
        ([(('blue',), 1)], [(('red',), 1)], [(('blue',), -1)])
        """
        return self.of(present(self.stream, self.schema, start, end, clock, name), self.schema)

    def window(
        self,
        windows: Sliding | Sessions,
        *,
        time: str | Expression,
        key: str | Sequence[str] | None = None,
        lateness: Any = 0,
        clock: Clock | None = None,
        name: str = "Window",
    ) -> WindowedCollection:
        """Assign records to event-time windows, with columns `window_start` and `window_end`.

        A window closes when the clock is `lateness` past its end. What comes for it then is left
        out, and is in `late()` of the collection. Where `group_by` with one of both columns
        follows, what is kept of a window is let go when it closes, and its result stays.

        Parameters
        ----------
        windows : Tumbling, Sliding or Sessions
            Of timedeltas, or of integers where the clock is an integer. They begin at whole
            multiples of their step from 1970 on; sessions with their first record.
        time : str or Expression
            When a record happened: of the type of the clock. Of null it is in no window.
        key : str or sequence of str, optional
            Of sessions: the columns whose records follow each other. Sessions are let go where
            `group_by` has these and both bounds.
        lateness : timedelta or int
        clock : Clock, optional
            As of `temporal_filter`: without it the epoch is the clock. A clock without a value
            closes nothing.

        Returns
        -------
        WindowedCollection

        The state is the records of the open windows, each in each of its windows, and what follows
        keeps of them.

        Raises
        ------
        SchemaError
            If `time` is not of the clock's type, or the windows are not of its scale.
        BuildError
            In a loop, or of something that is no clock, or no such windows.
        UsageError
            If `lateness` is negative, or not of the scale of the windows.

        While it runs, a record whose window begins or ends beyond what the clock's type has is a
        `DataError`.

        >>> import pointstamp as ps
        >>> def build(scope, clicks):
        ...     tens = clicks.window(ps.Tumbling(10), time="at", lateness=2)
        ...     return {"counts": tens.group_by("window_start").count(), "late": tens.late()}
        >>> view = ps.View(build, clicks="page string, at long")
        >>> view.insert("clicks", [("a", 3), ("b", 7)])
        >>> view.advance()["counts"]
        [((0, 2), 1)]
        >>> for epoch in range(1, 12):
        ...     assert view.advance() == {"counts": [], "late": []}
        >>> view.insert("clicks", [("c", 9), ("c", 10)])
        >>> view.advance()  # at 12 the window that ended at 10 closes
        {'counts': [((10, 1), 1)], 'late': [(('c', 9, 0, 10), 1)]}
        """
        return WindowedCollection(*open_windows(self, windows, time, key, lateness, clock, name))

    def group_by(self, *keys: str | Expression) -> GroupedCollection:
        """Group records by columns or expressions (nulls are equal); `agg` or `top_k` follows.

        keys : columns, or expressions with names, `col("day").truncate("month").alias("month")`,
            which are then columns of the records
        """
        return GroupedCollection(*with_keys(self, keys))

    def agg(self, *unnamed: Aggregate, **aggregates: Aggregate) -> Collection:
        """One row of aggregates over all records, even if there are none.

        Raises
        ------
        BuildError
            If an aggregate has no name.
        """
        check_named(unnamed)
        return aggregated(self, (), aggregates, "Aggregate")

    def count(self) -> Collection:
        """One row, with `count`: the number of records."""
        return self.agg(count=count())

    @of_other_words("collections", {"key": "on=", "other_key": "left_on= and right_on="})
    def join(
        self,
        other: Collection | ArrangedCollection,
        on: str | Sequence[str] | None = None,
        *,
        left_on: str | Sequence[str] | None = None,
        right_on: str | Sequence[str] | None = None,
        how: How = "inner",
        null_equal: bool = False,
        name: str = "Join",
    ) -> Collection:
        """Join with `other` on equal keys: inner, outer, semi, anti or cross.

        Parameters
        ----------
        other : Collection or ArrangedCollection
        on, left_on, right_on : str or sequence of str
            The columns of the key: of both, or of each. None for how="cross".
        how : {"inner", "left", "right", "full", "semi", "anti", "cross"}
            "left", "right", "full" have the records without a partner, too, with nulls in its
            place; "semi" has the records of this collection that have a partner, as often as
            they are here, and "anti" the others.
        null_equal : bool
            Whether a null of the key is equal to a null. Without it, it is equal to nothing.

        Returns
        -------
        Collection
            The columns of the key, by their names here, then the others of this one and of
            `other`, with `_right` behind a name that is there already.

        >>> import pointstamp as ps
        >>> def build(scope, sales, shops):
        ...     return sales.join(shops, on="shop", null_equal=True)
        >>> view = ps.View(build, sales="shop long?, cents long", shops="shop long?, city string")
        >>> view.insert("sales", [(1, 30), (None, 10)])
        >>> view.insert("shops", [(1, "Rome"), (None, "unknown")])
        >>> view.advance()
        [((None, 10, 'unknown'), 1), ((1, 30, 'Rome'), 1)]
        """
        from pointstamp.collections.join_forms import joined

        if isinstance(other, ArrangedCollection):
            other = other.collection
        _check_collection(other, name)
        if how not in _HOWS:
            raise BuildError(f"operator {name!r} is given how={how!r}; there are {_HOWS}")
        keys = _join_keys(self, other, on, left_on, right_on, how, name)
        if null_equal and how == "cross":
            raise BuildError(f"operator {name!r}: a cross join has no key, and none of null_equal=")
        left, right = brought_together((self, other))
        return joined(left, right, keys, how, name, null_equal)

    def arrange(self, *key: str) -> ArrangedCollection:
        """Arrange this collection: an index by some columns, shared by its readers.

        The index is made once. `join` by these columns and `group_by(...).reduce` use it by
        themselves, as `ps.delta_join` and `ps.generic_join` do; `trace` reads it from outside.

        Parameters
        ----------
        key : str
            The columns, one at least. A record with a null in one of them is not in the index.

        >>> import pointstamp as ps
        >>> def two_hops(scope, edges):
        ...     return edges.arrange("dst").join(edges.arrange("src"))
        >>> view = ps.View(two_hops, edges="src long, dst long")
        >>> view.insert("edges", [(1, 2), (2, 3)])
        >>> view.advance()
        [((2, 1, 3), 1)]
        """
        if not key:
            raise BuildError("arrange is given no column, and needs one at least")
        names = tuple(column_names(key, "arrange"))
        for column in names:
            self.schema.column(column, "arrange")
        if names not in self._indexes:
            self._indexes[names] = ArrangedCollection(self, names)
        return self._indexes[names]

    # What leaves.

    def inspect(
        self, function: Callable[[tuple[Any, ...], Any, int], object], *, name: str = "Inspect"
    ) -> Collection:
        """Call `function(row, time, diff)` with each update."""
        check_function(function, name)
        schema = self.schema

        def look(time: Any, batch: Updates) -> None:
            for row, diff in zip(
                schema.to_rows(batch.rows), batch.rows[:, -1].tolist(), strict=True
            ):
                function(row, time, diff)

        return self.kept(_looked_at(self.stream, name, look, True), schema)

    def probe(self) -> Probe:
        """A probe that observes the frontier of this collection."""
        return _operators_of(self.stream).probe()

    def probe_with(self, probe: Probe, *, name: str = "Probe") -> Collection:
        """Have an existing probe observe this collection, too."""
        return self.kept(_operators_of(self.stream).probe_with(probe, name=name), self.schema)

    def each_batch(
        self, function: Callable[[Any, Updates], object], *, name: str = "Inspect"
    ) -> Collection:
        """Call `function(time, batch)` with each batch of updates."""
        is_own = str(getattr(function, "__module__", "")).startswith("pointstamp.")
        return self.kept(_looked_at(self.stream, name, function, is_own), self.schema)

    def watched_by(self, probe: Probe, on_batch: Callable[[Any, Updates], object]) -> None:
        """Have a probe follow this collection, and call `on_batch(time, batch)` with updates."""
        probe_with(self.stream, probe, "Result", on_batch)

    def updates(self) -> Stream[Any]:
        """The stream of its updates, as records (row, diff)."""
        schema = self.schema

        def rows(batch: Updates) -> list[tuple[tuple[Any, ...], int]]:
            return list(zip(schema.to_rows(batch.rows), batch.rows[:, -1].tolist(), strict=True))

        return _operators_of(self.stream).map_batches(rows, name="Updates")

    # For the modules beside.

    def arranged(
        self, key: Sequence[str], with_nulls: Sequence[bool] = ()
    ) -> Arrangement | TraceArrangement:
        """Arranged by columns, without the records that have a null there; made once.

        Whether there is a null is not part of the key, so that a key that may be null meets one
        that may not. It is of the columns for which `with_nulls`, by their places, is true.
        """
        nulls = tuple(with_nulls) or (False,) * len(key)
        known = (tuple(key), nulls)
        if known not in self._arrangements:
            words = arranged_words(self.schema, key, nulls)
            n_key = len(key) + sum(nulls)
            flags = [
                self.schema.places[column] - 1
                for column, is_kept in zip(key, nulls, strict=True)
                if self.schema.column(column).nullable and not is_kept
            ]
            change = _keyed(flags, chosen_words(words, self.schema.n_words))
            texts = self.schema.texts_among(words)
            stream, named = self.stream, f"({self.schema}) by ({', '.join(key)})"
            if change is not None:
                stream = changed(stream, "ArrangeKey", change, texts)
            self._arrangements[known] = (
                arrange(stream, n_key, texts, "Arrange", what=named)
                if self.scope.timestamp.total
                else arrange_trace(stream, n_key, len(words), texts, "Arrange", what=named)
            )
            index = IndexedColumns(self.schema, known[0], self._arrangements[known])
            beside_of(self.scope).indexes.append(index)
        return self._arrangements[known]

    def stats(self) -> CollectionStats:
        """How much this worker keeps of its arrangements, made by `arrange` or for joins.

        To be asked outside of the dataflow, by its worker: between steps.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         edges, graph = scope.new_collection("src long, dst long")
        ...         probe = graph.arrange("dst").join(graph.arrange("src")).probe()
        ...     edges.insert([(1, 2), (2, 3)])
        ...     edges.advance_to(1)
        ...     worker.step_while(lambda: probe.less_than(1))
        ...     stats = graph.stats()
        ...     edges.close()
        ...     worker.run()
        ...     return stats.updates, [(index.key, index.upper) for index in stats.indexes]
        >>> ps.execute(main)
        [(4, [(('dst',), (1,)), (('src',), (1,))])]
        """
        return stats_of(
            [
                IndexedColumns(self.schema, key, arrangement)
                for (key, _), arrangement in self._arrangements.items()
            ]
        )

    def has_arranged(self, key: Sequence[str], arrangement: Arrangement) -> None:
        """It is arranged by columns already, elsewhere."""
        self._arrangements[tuple(key), (False,) * len(key)] = arrangement

    def support(self) -> Collection:
        """Each record once whose count is not 0; the library's."""
        return self._counted(
            [self], lambda count: (count != 0).astype(np.int64), "Support", "support"
        )

    def computed(self, columns: dict[str, Expression], name: str) -> Collection:
        """Records of these columns, by name."""
        bound, schema = bound_columns(self.schema, columns, name)
        plain = plain_words(self.schema, columns)
        if plain is not None:
            change = chosen_words(plain, self.schema.n_words)
            if change is None:
                return self.kept(self.stream, schema)
            return self.changed_by(name, change, schema)
        return self.changed_by(name, computing(bound, schema), schema)

    def as_schema(self, schema: Schema, name: str) -> Collection:
        """With the columns in the order of `schema`, and nullable where it says so."""
        if self.schema == schema:
            return self
        bound = {}
        for column in schema.columns:
            value = col(column.name).bind(self.schema)
            bound[column.name] = Bound(column.type, column.nullable, value.evaluate)
        return self.changed_by(f"{name}Order", computing(bound, schema), schema)

    def _counted(
        self, inputs: list[Collection], multiplicity: Any, name: str, what: str
    ) -> Collection:
        for other in inputs[1:]:
            _check_collection(other, name)
            types = [[(c.name, c.type) for c in part.schema.columns] for part in (self, other)]
            if types[0] != types[1]:
                raise SchemaError(
                    f"operator {name!r} is given collections of ({self.schema}) and "
                    f"({other.schema}); select the same columns of both"
                )
        columns = [
            Column(c.name, c.type, any(part.schema.column(c.name).nullable for part in inputs))
            for c in self.schema.columns
        ]
        schema = replace(self.schema, columns=tuple(columns))
        streams = [part.as_schema(schema, name).stream for part in brought_together(inputs)]
        counts = counted(streams, schema.n_words, schema.texts, multiplicity, name, what)
        return self.of(counts, schema)

    def with_bound(self, bound: dict[str, Bound], schema: Schema, name: str) -> Collection:
        """With each column computed by what is bound to this schema."""
        return self.changed_by(name, computing(bound, schema), schema)

    def changed_by(self, name: str, change: Change, schema: Schema) -> Collection:
        """With the rows of each batch replaced by `change(rows)`, of another schema."""
        return self.kept(changed(self.stream, name, change, schema.texts), schema)

    def kept(self, stream: StreamCore[Any], schema: Schema) -> Collection:
        """A collection in which something is deleted only where something is here."""
        found = self.of(stream, schema)
        found.append_only = self.append_only
        return found

    def of(self, stream: StreamCore[Any], schema: Schema) -> Collection:
        """A collection of the scope."""
        return Collection(stream, schema)


class WindowedCollection(WindowedMethods, Collection):
    """A collection whose records are assigned to event-time windows, while these are open.

    Made by `Collection.window`, and by `filter`, `select`, `with_columns`, `drop` and `rename` of
    one, as long as `window_start` or `window_end` is left. It is the records that were not late,
    and they stay.
    """

    def __init__(
        self,
        open_: Collection,
        columns: WindowColumns | SessionColumns,
        late: Callable[[], Collection],
    ) -> None:
        super().__init__(open_.stream, open_.schema)
        self._open = open_
        self._columns = columns
        self._late = late
        self._made = None

    @property
    def stream(self) -> StreamCore[Any]:
        """Updates of the records that were not late; made when it is asked for."""
        # Most often a group by windows is all that follows, and that needs the open ones alone.
        return self.made()

    def of_windows(
        self,
        open_: Collection,
        columns: WindowColumns | SessionColumns,
        late: Callable[[], Collection],
    ) -> WindowedCollection:
        """A collection of the same windows."""
        return WindowedCollection(open_, columns, late)


def arranged_words(
    schema: Schema, key: Sequence[str], with_nulls: Sequence[bool] = ()
) -> list[int]:
    """The words of a record that is arranged by `key`, as those of `schema`: first the key's.

    with_nulls : for each column of the key, whether the word that says if it is null is there, too

    >>> from pointstamp.collections.schema import schema_of
    >>> arranged_words(schema_of("a long, b long?, c long"), ["b"])
    [2, 0, 3]
    """
    rest = [word for name in schema.names if name not in key for word in schema.words(name)]
    known = []
    for name, is_kept in zip(key, with_nulls or [False] * len(key), strict=True):
        known += schema.words(name) if is_kept else [schema.places[name]]
    return [*known, *rest]


def _keyed(flags: list[int], choose: Change | None) -> Change | None:
    """Leave out records with a 0 in one of `flags`, and choose words of the others."""
    if not flags:
        return choose

    def keep(rows: Rows) -> Rows:
        there = rows[(rows[:, flags] != 0).all(axis=1)]
        return there if choose is None else choose(there)

    return keep


def _check_collection(other: Any, name: str) -> None:
    if not isinstance(other, Collection):
        hint = "; its .collection is one" if isinstance(other, ArrangedCollection) else ""
        raise BuildError(f"operator {name!r} is given {other!r}, which is no collection{hint}")


def _join_keys(
    left: Collection, right: Collection, on: Any, left_on: Any, right_on: Any, how: str, name: str
) -> tuple[list[str], list[str]]:
    if how == "cross":
        if on is not None or left_on is not None or right_on is not None:
            raise BuildError(f"operator {name!r}: a cross join has no key")
        return [], []
    if (on is None) == (left_on is None and right_on is None) or (
        (left_on is None) != (right_on is None)
    ):
        raise BuildError(f"operator {name!r} needs on=, or both left_on= and right_on=")
    keys = [
        column_names(on if left_on is None else left_on, name),
        column_names(on if right_on is None else right_on, name),
    ]
    if not keys[0] or not keys[1]:
        raise BuildError(f"operator {name!r} is given no column as its key, and needs one at least")
    if len(keys[0]) != len(keys[1]):
        raise BuildError(f"operator {name!r} has keys of other lengths: {keys[0]} and {keys[1]}")
    for one, two in zip(*keys, strict=True):
        types = left.schema.column(one, name).type, right.schema.column(two, name).type
        if types[0] != types[1] and not all(kind.is_signed for kind in types):
            raise SchemaError(
                f"operator {name!r}: the keys {one!r} and {two!r} are {types[0].name} and "
                f"{types[1].name}; {made_equal(*types)}"
            )
    return keys[0], keys[1]


def _looked_at(
    stream: StreamCore[Any], name: str, function: Callable[[Any, Updates], object], is_own: bool
) -> StreamCore[Any]:
    """The same updates, each batch given to a function; of the library, or it may keep them."""
    check_function(function, name)

    def look(time: Any, batch: Updates) -> Updates:
        function(time, batch)
        return batch

    return transform(stream, name, look, of_updates=is_own)


def _operators_of(stream: StreamCore[Any]) -> Stream[Any]:
    """It is one with all operators, whatever made it."""
    return stream  # type: ignore[return-value]
