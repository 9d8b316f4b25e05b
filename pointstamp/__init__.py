"""Timely dataflow for Python, with its data pipeline on Apache Spark.

The names below are the public ones. Each is imported when it is first used, so
that `import pointstamp` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointstamp import compiled
from pointstamp.compiled import build_info as build_info

compiled.choose()

if TYPE_CHECKING:
    from pointstamp import errors as errors
    from pointstamp import graph as graph
    from pointstamp import observability as observability
    from pointstamp import spark as spark
    from pointstamp import testing as testing
    from pointstamp.communication.communicator import Communicator as Communicator
    from pointstamp.containers import Arrays as Arrays
    from pointstamp.dataflow.capability import Capability as Capability
    from pointstamp.dataflow.operators.probe import Probe as Probe
    from pointstamp.dataflow.pact import Broadcast as Broadcast
    from pointstamp.dataflow.pact import Exchange as Exchange
    from pointstamp.dataflow.pact import Pipeline as Pipeline
    from pointstamp.dataflow.scope import Scope as Scope
    from pointstamp.dataflow.stream import Stream as Stream
    from pointstamp.observability.log import Log as Log
    from pointstamp.progress.timestamp import Int as Int
    from pointstamp.progress.timestamp import Product as Product
    from pointstamp.progress.timestamp import Timestamp as Timestamp
    from pointstamp.progress.timestamp import Unit as Unit
    from pointstamp.runtime.execute import execute as execute
    from pointstamp.runtime.simulate import simulate as simulate
    from pointstamp.runtime.worker import Worker as Worker
    from pointstamp.runtime.worker import run_worker as run_worker

__version__ = "0.1.0"

_HOMES = {
    "Arrays": "pointstamp.containers",
    "Broadcast": "pointstamp.dataflow.pact",
    "Capability": "pointstamp.dataflow.capability",
    "Communicator": "pointstamp.communication.communicator",
    "Exchange": "pointstamp.dataflow.pact",
    "Int": "pointstamp.progress.timestamp",
    "Log": "pointstamp.observability.log",
    "Pipeline": "pointstamp.dataflow.pact",
    "Probe": "pointstamp.dataflow.operators.probe",
    "Product": "pointstamp.progress.timestamp",
    "Scope": "pointstamp.dataflow.scope",
    "Stream": "pointstamp.dataflow.stream",
    "Timestamp": "pointstamp.progress.timestamp",
    "Unit": "pointstamp.progress.timestamp",
    "Worker": "pointstamp.runtime.worker",
    "execute": "pointstamp.runtime.execute",
    "run_worker": "pointstamp.runtime.worker",
    "simulate": "pointstamp.runtime.simulate",
}
_MODULES = ("errors", "graph", "observability", "spark", "testing")

__all__ = [*sorted(_HOMES), *_MODULES, "build_info"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"pointstamp.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'pointstamp' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
