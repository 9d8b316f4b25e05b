"""Collections as methods of scopes and streams, by the names of the modules that know them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pointstamp.dataflow.scope_core import ScopeCore


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
