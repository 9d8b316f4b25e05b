"""Streams, with all operators that read one as methods.

Each operator module owns its methods (signature, documentation and code in one place);
here they are put together. An operator that is not here is a function of a stream.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.operators.batching import BatchMethods
from pointstamp.operators.capture import CaptureMethods
from pointstamp.operators.collecting import AsCollectionMethods
from pointstamp.operators.command import CommandMethods
from pointstamp.operators.counting import CountMethods
from pointstamp.operators.delays import DelayMethods
from pointstamp.operators.distinct import DistinctMethods
from pointstamp.operators.exchanging import ExchangeMethods
from pointstamp.operators.flattening import FlattenMethods
from pointstamp.operators.folds import FoldMethods
from pointstamp.operators.generic import GenericMethods
from pointstamp.operators.inspecting import InspectMethods
from pointstamp.operators.iterate import IterateMethods
from pointstamp.operators.names_elsewhere import no_attribute
from pointstamp.operators.probe import ProbeMethods
from pointstamp.operators.reductions import ReduceMethods
from pointstamp.operators.routing import RoutingMethods
from pointstamp.operators.running import RunningMethods
from pointstamp.operators.sink import SinkMethods
from pointstamp.operators.spark_job import SparkMethods
from pointstamp.operators.split_merge import SplitMergeMethods
from pointstamp.operators.stateless import MapMethods
from pointstamp.operators.stream_joins import JoinMethods
from pointstamp.operators.windows import WindowMethods

if TYPE_CHECKING:
    from pointstamp.operators.scope import Scope


class Stream(
    MapMethods[T],
    InspectMethods[T],
    CountMethods[T],
    ExchangeMethods[T],
    SplitMergeMethods[T],
    RoutingMethods[T],
    DelayMethods[T],
    ReduceMethods[T],
    FoldMethods[T],
    RunningMethods[T],
    BatchMethods[T],
    FlattenMethods[T],
    DistinctMethods[T],
    JoinMethods[T],
    WindowMethods[T],
    IterateMethods[T],
    CaptureMethods[T],
    ProbeMethods[T],
    CommandMethods[T],
    SparkMethods[T],
    SinkMethods[T],
    AsCollectionMethods[T],
    GenericMethods[T],
    StreamCore[T],
):
    """A stream of records of type `T`, in batches at timestamps.

    Attributes
    ----------
    scope : Scope
        Where it flows.
    source : tuple of int
        (operator, output) that it comes from.
    """

    scope: Scope

    if not TYPE_CHECKING:  # or every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            """Say of names that other libraries have for an operator what it is called here."""
            raise no_attribute(self, name)


def _named_as_here() -> None:
    """Name the methods for the stream that has them, and not for the class where they are written.

    Python's error of a wrong argument would name that class, which no program knows.
    """
    for owner in Stream.__bases__:
        for name, method in vars(owner).items():
            if isinstance(method, FunctionType) and not name.startswith("_"):
                method.__qualname__ = f"{Stream.__name__}.{name}"


_named_as_here()
