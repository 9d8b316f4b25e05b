"""Arrow expressions as predicates on columns.

An expression says which records it is true for; where it is null it is not true.
Arrow is imported only when there is an expression, which is an Arrow value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.errors import ColumnError, ContainerError

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
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(batch, pa.RecordBatch):
        raise ContainerError(
            f"the expression {expression} needs Arrow record batches; this stream carries "
            f"{type(batch).__name__}: give a function of one record instead"
        )
    if not keep:
        expression = ~pc.coalesce(expression, pc.scalar(False))
    try:
        return batch.filter(expression)
    except pa.ArrowInvalid as error:
        if "No match for FieldRef" not in str(error):
            raise
        raise ColumnError(
            f"the expression {expression} names a column that is not there; "
            f"there are {batch.schema.names}"
        ) from error
