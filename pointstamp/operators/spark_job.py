"""Spark jobs as an operator, by the name of the module that knows Spark."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.stream_core import StreamCore, T

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class SparkMethods(StreamCore[T]):
    """Spark jobs. Methods of `Stream`."""

    def spark(
        self, function: Callable[[Any], Any], *, schema: Any = None, name: str = "Spark"
    ) -> Stream[Any]:
        """Run a Spark job on the records of each time, once it is complete.

        See `pointstamp.spark.spark_operator.spark`, which says where it runs and what it needs.
        """
        # By name: what imports PySpark is below this layer.
        operator = import_module("pointstamp.spark.spark_operator")
        result: Stream[Any] = operator.spark(self, function, schema=schema, name=name)
        return result
