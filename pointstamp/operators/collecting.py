"""Collections as methods of scopes and streams, by the names of the modules that know them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.stream_core import StreamCore

T = TypeVar("T")


class CollectionMethods(ScopeCore[Any]):
    """Collections. Methods of `Scope`."""

    def new_collection(self, schema: Any, *, name: str = "Input") -> tuple[Any, Any]:
        """A collection to be changed by this program: its input and the collection.

        Parameters
        ----------
        schema : str, pyarrow.Schema or Spark StructType
            As a text, names and types as in Spark's DDL, with `?` behind the type of a column
            that may be null.

        Returns
        -------
        input : CollectionInput
            With `insert`, `delete`, `update`, and `advance_to` and `close` as of `new_input`.
        collection : Collection

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
        made: tuple[Any, Any] = inputs.new_collection(self, schema, name)
        return made

    def variable(
        self,
        schema: Any,
        *,
        limit: int | None = None,
        expect: int | None = None,
        name: str = "Variable",
    ) -> Any:
        """A collection of a loop that is what it is `set` to, one round later; empty at first.

        Parameters
        ----------
        schema : str, pyarrow.Schema or Spark StructType
        limit : int, optional
            So many rounds at most.
        expect : int, optional
            Warn (`LoopWarning`) if something still changes after so many rounds.

        Returns
        -------
        Variable
            A `Collection` with `set(collection)`.

        Raises
        ------
        BuildError
            If the scope is no loop.

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
        """The collection of the records of this stream, at their times.

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
