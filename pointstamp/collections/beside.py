"""What a dataflow of collections has beside its results: checks that a view waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pointstamp.dataflow.stream_core import StreamCore


@dataclass
class BesideResults:
    """Of one dataflow, by what its collections were asked for while it was built."""

    checks: list[StreamCore[Any]] = field(default_factory=list)
    """Streams of the outermost scope, whose times are over when what is checked was looked at."""


_BY_SCOPE: WeakKeyDictionary[Any, BesideResults] = WeakKeyDictionary()


def outermost(scope: Any) -> Any:
    """The scope of a dataflow in which `scope` is."""
    while scope.parent is not None:
        scope = scope.parent
    return scope


def beside_of(scope: Any) -> BesideResults:
    """Of the dataflow of a scope."""
    return _BY_SCOPE.setdefault(outermost(scope), BesideResults())
