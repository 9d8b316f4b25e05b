"""Python's cyclic garbage collector, off for as long as it has nothing to find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """Do without the collector in a `with` block, which makes much and lets go of little.

    Again and again it would look at all that there is: of a dataflow with thousands of ports
    that takes several times as long as to build it.

    >>> with collector_off():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    # One of several threads that found it on turns it on again; none that found it off.
    was_on = gc.isenabled()
    if was_on:
        gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
