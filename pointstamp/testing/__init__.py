"""Tools for testing dataflows, and for testing what Pointstamp is extended with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointstamp.testing.collect import collect

if TYPE_CHECKING:
    from pointstamp.testing.communicators import check_communicator as check_communicator
    from pointstamp.testing.oracle import LivenessError as LivenessError
    from pointstamp.testing.oracle import Oracle as Oracle
    from pointstamp.testing.oracle import SafetyError as SafetyError
    from pointstamp.testing.timestamps import LawError as LawError
    from pointstamp.testing.timestamps import check_timestamp as check_timestamp

_HOMES = {
    "LawError": "pointstamp.testing.timestamps",
    "LivenessError": "pointstamp.testing.oracle",
    "Oracle": "pointstamp.testing.oracle",
    "SafetyError": "pointstamp.testing.oracle",
    "check_communicator": "pointstamp.testing.communicators",
    "check_timestamp": "pointstamp.testing.timestamps",
}

__all__ = [*sorted(_HOMES), "collect"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pointstamp.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
