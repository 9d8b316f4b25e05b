"""What a run gives: a list of what `main` returned on each worker, and one table of it."""

from __future__ import annotations

from typing import Any, TypeVar

Result = TypeVar("Result")


class RunResults(list[Result]):
    """The return values of `main`, by worker index; behaves as a list.

    >>> import pointstamp as ps
    >>> ps.execute(lambda worker: worker.index, workers=2, threads=True)
    [0, 1]
    """

    def table(self) -> Any:
        """One table of what the workers returned, in the order of their indices.

        Each has returned a table, a record batch, a data frame, columns by name (a dict), a
        list of such, or None. Numbers of columns that differ in type become the wider one.

        Returns
        -------
        pyarrow.Table
            Columns of one name are one; where a worker has none of that name, nulls.

        Raises
        ------
        ContainerError
            If a worker returned something else, or none returned anything.
        SchemaError
            If columns of one name are of types that do not go together.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     found = []
        ...     with worker.dataflow() as scope:
        ...         numbers = pa.table({"n": [1, 2, 3] if worker.index == 0 else []})
        ...         scope.to_stream(numbers).exchange("n").inspect_batch(
        ...             lambda time, batch: found.append(batch))
        ...     worker.run()
        ...     return found
        >>> ps.execute(main, workers=2, threads=True).table().sort_by("n").to_pydict()
        {'n': [1, 2, 3]}
        """
        # Here and not above: it imports Arrow, and few programs ask for a table.
        from pointstamp.containers.frames import merged_table

        return merged_table(
            [(f"what worker {index} returned", result) for index, result in enumerate(self)]
        )
