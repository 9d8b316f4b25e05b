"""Dataflows on Spark: DataFrames in, DataFrames out, workers as tasks of a barrier stage.

Nothing here imports PySpark before it is used, so that the command line can say
what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.spark.installation import install_on_executors
from pointstamp.spark.known_schemas import with_schema
from pointstamp.spark.maintain import maintain
from pointstamp.spark.maintain_stream import maintain_stream
from pointstamp.spark.prepared_home import prepare
from pointstamp.spark.run import run
from pointstamp.spark.serve import serve
from pointstamp.spark.session import is_active, session

if TYPE_CHECKING:
    from pointstamp.spark.graph_of_frames import SparkGraph, graph

__all__ = [
    "SparkGraph",
    "graph",
    "install_on_executors",
    "is_active",
    "maintain",
    "maintain_stream",
    "prepare",
    "run",
    "serve",
    "session",
    "with_schema",
]


def __getattr__(name: str) -> Any:
    # What commits a stream's batch imports this package, and needs no dataflow.
    if name not in ("SparkGraph", "graph"):
        raise AttributeError(f"module 'pointstamp.spark' has no attribute {name!r}")
    from pointstamp.spark import graph_of_frames

    return getattr(graph_of_frames, name)
