"""The inputs of a Spark job by name, however they were given: by name, in order, or just one."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.errors import ColumnError, SparkSetupError, UsageError
from pointstamp.spark.known_schemas import columns_of_frame
from pointstamp.spark.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def inputs_by_name(build: Callable[..., Any], inputs: Any) -> dict[str, DataFrame]:
    """The DataFrames that `build` gets, in order, with the names that messages call them.

    Those given without a name have that of the parameter that they are for.

    Raises
    ------
    UsageError
        For what is no DataFrame, with its name and type, and for a stream.
    ColumnError
        For a DataFrame without columns, or with two of one name.
    """
    try:
        from pyspark.sql import DataFrame
    except ImportError as cause:
        raise SparkSetupError(
            "PySpark is not installed here: pip install 'pointstamp[spark]'"
        ) from cause
    if isinstance(inputs, DataFrame):
        inputs = [inputs]
    if isinstance(inputs, Mapping):
        named = dict(inputs)
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes):
        names = parameter_names(build, len(inputs))
        named = dict(zip(names, inputs, strict=True))
    else:
        raise UsageError(
            "the inputs of a dataflow on Spark are a DataFrame, several in a list, or a dict of "
            f"them by name, and not {_described(inputs)}"
        )
    for name, frame in named.items():
        if not isinstance(name, str):
            raise UsageError(f"an input's name is a str, and not {name!r}")
        if not isinstance(frame, DataFrame):
            raise UsageError(
                f"input {name!r} should be a DataFrame of Spark, and is {_described(frame)}; "
                "spark.createDataFrame makes one of tables and rows"
            )
        if is_known_stream(frame):
            raise UsageError(
                f"input {name!r} is a stream, which has no end, and a job takes whole DataFrames: "
                "foreachBatch gives one for each batch; maintain_stream and serve take in streams"
            )
        _check_columns(name, columns_of_frame(frame, f"input {name!r}").names)
    return named


def _check_columns(name: str, columns: Sequence[str]) -> None:
    """Refuse an input whose records would be lost, or with two columns of one name."""
    if not columns:
        # Spark's Arrow batches of no columns have no rows, however many records there are.
        raise ColumnError(
            f"input {name!r} has no columns, and Spark passes no records without columns to "
            "Python: select one"
        )
    repeated = [column for column, n in Counter(columns).items() if n > 1]
    if repeated:
        raise ColumnError(
            f"input {name!r} has several columns with the name {repeated[0]!r}, of "
            f"{list(columns)}: rename them before, as by toDF"
        )


def is_known_stream(frame: DataFrame) -> bool:
    """Whether a DataFrame is a stream, as far as that is known: Spark Connect is not asked."""
    return context_of(frame.sparkSession) is not None and bool(frame.isStreaming)


def parameter_names(build: Callable[..., Any], n: int) -> list[str]:
    """What `build` calls its inputs, which follow its scope; numbers where it does not say.

    >>> parameter_names(lambda scope, edges, seeds: edges, 2)
    ['edges', 'seeds']
    >>> parameter_names(lambda *streams: streams[1], 2)
    ['input 0', 'input 1']
    """
    try:
        parameters = list(inspect.signature(build).parameters.values())[1:]
    except (TypeError, ValueError):
        parameters = []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in plain]
    return names[:n] + [f"input {i}" for i in range(len(names[:n]), n)]


def _described(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}".replace("builtins.", "")
