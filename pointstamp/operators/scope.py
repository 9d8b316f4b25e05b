"""Scopes, with all operators that begin streams as methods.

Each operator module owns its methods; here they are put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.operators.collecting import CollectionMethods
from pointstamp.operators.drawing import DrawingMethods
from pointstamp.operators.feedback import FeedbackMethods
from pointstamp.operators.flow_control import FlowControlMethods
from pointstamp.operators.log_source import LogMethods
from pointstamp.operators.names_elsewhere import OF_SCOPES, no_attribute
from pointstamp.operators.replay import ReplayMethods
from pointstamp.operators.sources import SourceMethods
from pointstamp.operators.split_merge import ConcatenateMethods
from pointstamp.operators.stream import Stream
from pointstamp.operators.unordered import UnorderedInputMethods


class Scope(
    SourceMethods,
    UnorderedInputMethods,
    FlowControlMethods,
    ReplayMethods,
    LogMethods,
    ConcatenateMethods,
    FeedbackMethods,
    CollectionMethods,
    DrawingMethods,
    ScopeCore[Stream[Any]],
):
    """A dataflow, or a part of one with its own type of times.

    Parameters
    ----------
    environment : Environment
        What it may know of the worker.
    name : str
        For messages to people.
    timestamp : Timestamp
        The type of its times.
    parent : Scope, optional
        The scope that it is an operator of.
    wake : callable, optional
        For the outermost scope: called when it has something to do.
    """

    stream_type = Stream

    if not TYPE_CHECKING:  # or every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            """Say of a worker's method where there is one: this is the dataflow already."""
            if name in ("dataflow", "run", "step", "step_while"):
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}, which is a method "
                    "of the worker that ps.execute gives to main(worker); ps.run, ps.serve and "
                    "ps.testing.collect call build(scope), in a dataflow"
                )
            raise no_attribute(self, name, OF_SCOPES)
