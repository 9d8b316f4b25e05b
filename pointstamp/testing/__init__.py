"""Tools for testing dataflows, operators, timestamp types and communicators of your own.

- `collect` runs a small dataflow and returns its records, with their times: for tests of
  operators and of what is built from them.
- `Oracle` observes a simulation and compares the frontiers of each operator, scope and probe
  with the outstanding pointstamps: for operators that hold capabilities, and for those
  that implement `pointstamp.progress.operate.Operate` themselves (scopes of other runtimes).
- `check_timestamp` searches for values that violate a law of a `Timestamp`.
- `check_communicator` is the conformance suite of communicators.
- `check_source` and `check_sink` are the conformance suites of sources and sinks.

Random dataflows and planted bugs, which test Pointstamp itself, are in `tests/simulation`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointstamp.testing.collect import collect

if TYPE_CHECKING:
    from pointstamp.testing.check_connectors import ConnectorLawError as ConnectorLawError
    from pointstamp.testing.check_connectors import check_sink as check_sink
    from pointstamp.testing.check_connectors import check_source as check_source
    from pointstamp.testing.communicators import check_communicator as check_communicator
    from pointstamp.testing.oracle import LivenessError as LivenessError
    from pointstamp.testing.oracle import Oracle as Oracle
    from pointstamp.testing.oracle import SafetyError as SafetyError
    from pointstamp.testing.timestamps import LawError as LawError
    from pointstamp.testing.timestamps import check_timestamp as check_timestamp

_HOMES = {
    "ConnectorLawError": "pointstamp.testing.check_connectors",
    "LawError": "pointstamp.testing.timestamps",
    "LivenessError": "pointstamp.testing.oracle",
    "Oracle": "pointstamp.testing.oracle",
    "SafetyError": "pointstamp.testing.oracle",
    "check_communicator": "pointstamp.testing.communicators",
    "check_sink": "pointstamp.testing.check_connectors",
    "check_source": "pointstamp.testing.check_connectors",
    "check_timestamp": "pointstamp.testing.timestamps",
}

__all__ = [*sorted(_HOMES), "collect"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pointstamp.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
