"""Scopes that are told of everything, to be compared with ours.

A scope is told what is held outside of it, and adds what itself holds by the summaries
of the paths outside. The plain way is to tell it the whole frontier of its inputs, like
an operator. Then it has to ask, in a way: what it lets go of inside is reported, and
the answer comes with the next visit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pointstamp.progress.subgraph import Subgraph


@contextmanager
def told_of_all() -> Iterator[None]:
    """Have all scopes that are built meanwhile told so; of the sources, not compiled."""
    was = Subgraph.wants_outside
    Subgraph.wants_outside = False
    try:
        yield
    finally:
        Subgraph.wants_outside = was
