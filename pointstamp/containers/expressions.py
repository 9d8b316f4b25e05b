"""Arrow expressions over columns: predicates, and values computed for each record.

An expression says which records it is true for; where it is null it is not true.
Arrow is imported only when there is an expression, which is an Arrow value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp.errors import ColumnError, ContainerError, SchemaError

if TYPE_CHECKING:
    from pyarrow.compute import Expression as Expression  # for the signatures of operators


def is_expression(value: Any) -> bool:
    """Whether `value` is an Arrow expression rather than a function."""
    return type(value).__module__.partition(".")[0] == "pyarrow"


def filter_batch(batch: Any, expression: Any, *, keep: bool = True) -> Any:
    """The records of `batch` for which `expression` is true (or, not `keep`, is not).

    Raises
    ------
    ContainerError
        If `batch` is no Arrow record batch.
    ColumnError
        If the expression names a column that is not there.
    SchemaError
        If Arrow computes no such thing of columns of these types.
    """
    import pyarrow.compute as pc

    with _explained(batch, expression):
        if not keep:
            expression = ~pc.coalesce(expression, pc.scalar(False))
        return batch.filter(expression)


def evaluate(batch: Any, expression: Any) -> Any:
    """The values of `expression`, as a record batch with one column named as it is written.

    Raises
    ------
    ContainerError
        If `batch` is no Arrow record batch.
    ColumnError
        If the expression names a column that is not there.
    SchemaError
        As `filter_batch`.

    >>> import pyarrow as pa
    >>> import pyarrow.compute as pc
    >>> batch = pa.RecordBatch.from_pydict({"x": [1, 2]})
    >>> evaluate(batch, pc.field("x") + 1).column(0).to_pylist()
    [2, 3]
    """
    import pyarrow as pa
    from pyarrow import acero

    with _explained(batch, expression):
        table = acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
        values = acero.ProjectNodeOptions([expression], [str(expression)])
        plan = acero.Declaration.from_sequence(
            [acero.Declaration("table_source", table), acero.Declaration("project", values)]
        )
        # With threads the records could come out in another order.
        return plan.to_table(use_threads=False).combine_chunks().to_batches()[0]


@contextmanager
def _explained(batch: Any, expression: Any) -> Iterator[None]:
    """Say what is wrong with an expression on a batch in our words."""
    import pyarrow as pa

    if not isinstance(batch, pa.RecordBatch):
        is_rows = type(batch) is list
        what = "rows" if is_rows else f"batches of {type(batch).__name__}"
        instead = "give a function of one record" if is_rows else "name a column"
        raise ContainerError(
            f"the expression {expression} needs Arrow record batches; this stream carries "
            f"{what}: {instead} instead"
        )
    try:
        yield
    except pa.ArrowInvalid as error:
        if "No match for FieldRef" not in str(error):
            raise
        raise ColumnError(
            f"the expression {expression} names a column that is not there; "
            f"there are {batch.schema.names}"
        ) from error
    except pa.ArrowNotImplementedError as error:
        types = ", ".join(f"{field.name}: {field.type}" for field in batch.schema)
        raise SchemaError(
            f"the expression {expression} cannot be computed of the columns {types}: {error}"
        ) from error
