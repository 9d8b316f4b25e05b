"""Tools for testing dataflows, and for testing what Pointstamp is extended with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointstamp.testing.collect import collect

if TYPE_CHECKING:
    from pointstamp.testing.communicators import check_communicator as check_communicator

__all__ = ["check_communicator", "collect"]

_HOMES = {"check_communicator": "pointstamp.testing.communicators"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pointstamp.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
