"""Collections as methods of scopes and streams, by the names of the modules that know them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.stream_core import StreamCore

T = TypeVar("T")


class CollectionMethods(ScopeCore[Any]):
    """Collections. Methods of `Scope`."""

    def new_collection(
        self, schema: Any = None, *, append_only: bool = False, name: str = "Input"
    ) -> tuple[Any, Any]:
        """A collection changed by the program: its input and the collection.

        Parameters
        ----------
        schema : str, pyarrow.Schema or Spark StructType
            As a text, names and types as in Spark's DDL, with `?` behind the type of a column
            that may be null. None for records that are hashable values of Python.
        append_only : bool
            Whether nothing is ever deleted, so that some operators keep less. A deletion is a
            `DataError` at the input.

        Returns
        -------
        input : CollectionInput
            With `insert`, `delete`, `update`, and `advance_to` and `close` as of `new_input`.
        collection : Collection, or a RecordCollection without a schema

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         edges, graph = scope.new_collection("src long, dst long")
        ...         degrees = graph.group_by("src").agg(degree=ps.count())
        ...         degrees.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        ...     edges.insert([(0, 1), (0, 2)])
        ...     edges.advance_to(1)
        ...     edges.delete([(0, 2)])
        ...     edges.close()
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[((0, 2), 0, 1), ((0, 2), 1, -1), ((0, 1), 1, 1)]]
        """
        # By name: what knows collections is below this layer.
        inputs = import_module("pointstamp.collections.inputs")
        made: tuple[Any, Any] = inputs.new_collection(self, schema, name, append_only)
        return made

    def new_clock(self, type: str = "timestamp", *, name: str = "Clock") -> tuple[Any, Any]:
        """A clock set by the program, for `temporal_filter`: its handle and the clock.

        Parameters
        ----------
        type : str
            "timestamp", "timestamp_utc", "date", or an integer such as "long"; not "uint64".

        Returns
        -------
        input : ClockHandle
            With `set(value)`, and `advance_to` and `close` as of `new_input`.
        clock : Clock

        Raises
        ------
        SchemaError
            For another type.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         bookings, collection = scope.new_collection("begins long, ends long")
        ...         now, clock = scope.new_clock("long")
        ...         active = collection.temporal_filter("begins", "ends", clock=clock)
        ...         active.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        ...     bookings.insert([(10, 20)])
        ...     bookings.close()
        ...     for epoch, value in enumerate([9, 15, 20]):
        ...         now.advance_to(epoch)
        ...         now.set(value)
        ...     now.close()
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[((10, 20), 1, 1), ((10, 20), 2, -1)]]
        """
        module = import_module("pointstamp.collections.clock_input")
        made: tuple[Any, Any] = module.new_clock(self, type, name)
        return made

    def from_upserts(
        self,
        stream: Any,
        schema: Any,
        key: Any,
        *,
        sequence: Any = None,
        name: str = "Upserts",
    ) -> Any:
        """A collection of the current row of each key, from a stream of upserts (key, row).

        What is kept is the row of each key, by the worker of the key's hash.

        Parameters
        ----------
        stream : Stream
            Of (key, row): the key is a value, or a tuple of several; the row a tuple or dict of
            `schema`, with that key. None in its place deletes the row of the key.
        schema : str, pyarrow.Schema or Spark StructType
        key : str or sequence of str
            The columns of the key.
        sequence : callable, optional
            Of a record of the stream an integer of 64 bits: of an epoch's upserts of a key that of
            the greatest wins. Without it the last one that came, so a key should come from one
            worker then.

        Returns
        -------
        Collection

        While it runs, a record of another form is a `DataError`.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         input, stream = scope.new_input()
        ...         orders = scope.from_upserts(stream, "id long, state string", "id")
        ...         orders.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        ...     input.send((7, (7, "open")))
        ...     input.send((7, (7, "paid")))
        ...     input.advance_to(1)
        ...     input.send((7, None))
        ...     input.close()
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[((7, 'paid'), 0, 1), ((7, 'paid'), 1, -1)]]
        """
        module = import_module("pointstamp.collections.upserts")
        return module.from_upserts(stream, schema, key, sequence, name)

    def from_debezium(
        self,
        stream: Any,
        schema: Any,
        key: Any,
        *,
        sequence: Any = None,
        name: str = "Debezium",
    ) -> Any:
        """A collection of the current row of each key, from a stream of Debezium messages.

        Parameters
        ----------
        stream : Stream
            Of dicts with `op` (c, r, u or d), `before` and `after`, which are rows of `schema`;
            of None, the tombstone behind a deletion, nothing follows.
        schema, key, sequence
            As of `from_upserts`.

        Returns
        -------
        Collection

        While it runs, a `before` that differs from the row that is there is a `DataError`; without
        `before`, an op other than d replaces what is there.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         input, stream = scope.new_input()
        ...         orders = scope.from_debezium(stream, "id long, cents long", "id")
        ...         orders.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        ...     first, second = {"id": 7, "cents": 5}, {"id": 7, "cents": 6}
        ...     input.send({"op": "c", "before": None, "after": first})
        ...     input.advance_to(1)
        ...     input.send({"op": "u", "before": first, "after": second})
        ...     input.close()
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[((7, 5), 0, 1), ((7, 5), 1, -1), ((7, 6), 1, 1)]]
        """
        module = import_module("pointstamp.collections.upserts")
        return module.from_debezium(stream, schema, key, sequence, name)

    def from_cdf(self, stream: Any, schema: Any, *, name: str = "ChangeFeed") -> Any:
        """A collection from a stream of rows of a Delta change data feed.

        Parameters
        ----------
        stream : Stream
            Of dicts of the columns of `schema`, with `_change_type`: insert, delete,
            update_preimage or update_postimage. `_commit_version` and `_commit_timestamp` may be
            there, and are not looked at.
        schema : str, pyarrow.Schema or Spark StructType

        Returns
        -------
        Collection

        While it runs, a record of another form is a `DataError`.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         rows = [{"a": 1, "_change_type": "insert"}, {"a": 2, "_change_type": "delete"}]
        ...         changes = scope.from_cdf(scope.to_stream(rows), "a long")
        ...         changes.inspect(lambda row, time, diff: seen.append((row, diff)))
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[((1,), 1), ((2,), -1)]]
        """
        module = import_module("pointstamp.collections.upserts")
        return module.from_cdf(stream, schema, name)

    def variable(
        self,
        schema: Any = None,
        *,
        limit: int | None = None,
        expect: int | None = None,
        name: str = "Variable",
    ) -> Any:
        """A recursive collection in a loop: it has the value it is `set` to, one round later.

        Parameters
        ----------
        schema : str, pyarrow.Schema or Spark StructType, optional
            Without one, records are hashable values of Python, as of `new_collection(None)`.
        limit : int, optional
            So many rounds at most.
        expect : int, optional
            Warn (`LoopWarning`) if something still changes after so many rounds.

        Returns
        -------
        Variable, or RecordVariable
            A `Collection` with `set(collection)`, or a `RecordCollection` with it.

        Raises
        ------
        BuildError
            If the scope is no loop; or the dataflow is durable, and there is no schema.

        >>> import pointstamp as ps
        >>> def evens(scope, edges, seeds):
        ...     with scope.iterative() as inner:
        ...         even, odd = inner.variable("node long"), inner.variable("node long")
        ...         step = lambda found: found.join(edges, left_on="node", right_on="src")
        ...         odd.set(step(even).select(node="dst").distinct())
        ...         even.set(step(odd).select(node="dst").concat(seeds).distinct())
        ...         return even.leave()
        >>> view = ps.View(evens, edges="src long, dst long", seeds="node long")
        >>> view.insert("edges", [(1, 2), (2, 3), (3, 4)])
        >>> view.insert("seeds", [(1,)])
        >>> view.advance()
        [((1,), 1), ((3,), 1)]
        """
        module = import_module("pointstamp.collections.variable")
        return module.variable(self, schema, name, limit, expect)


class AsCollectionMethods(StreamCore[T]):
    """Streams whose records are updates. Methods of `Stream`."""

    def as_collection(
        self, schema: Any, *, diff: str | None = None, name: str = "AsCollection"
    ) -> Any:
        """Convert this stream to a collection of its records, at their times.

        Parameters
        ----------
        schema : str, pyarrow.Schema or Spark StructType
            Of the records: tuples in the order of its columns, dicts by name, or columns.
        diff : str, optional
            A further column (the last, in tuples), a long: how many copies a record adds, or
            removes if it is below 0. Without it each adds one.

        Returns
        -------
        Collection

        Raises
        ------
        BuildError
            If `diff` is one of the columns.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     changes = scope.to_stream([("tea", 2), ("ink", 1), ("ink", -1)])
        ...     return changes.as_collection("item string", diff="n").consolidate().updates()
        >>> ps.testing.collect(build)
        [(0, (('tea',), 2))]
        """
        module = import_module("pointstamp.collections.from_stream")
        return module.as_collection(self, schema, diff, name)
