"""A name for the jobs that one thread runs, by which any thread can interrupt them.

With Spark Connect the jobs of a thread have a tag. Without, a tag is known only to the
thread that gave it, and no other can interrupt by it; a job group is known to all.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pointstamp.spark.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


INTERRUPT_S = 0.2
"""How often to interrupt what is to end: it may not have begun the last time."""


class JobName:
    """Names the jobs of the thread that calls `give`."""

    def __init__(self, session: SparkSession, what: str) -> None:
        self._session = session
        self._what = what
        self._tag = f"pointstamp-{uuid.uuid4().hex}"

    def give(self) -> None:
        """Name what this thread asks of Spark from now on."""
        context = context_of(self._session)
        if context is None:
            self._session.addTag(self._tag)
        else:
            context.setJobGroup(self._tag, self._what, interruptOnCancel=True)

    def interrupt(self) -> None:
        """Interrupt the jobs of that name that run now."""
        context = context_of(self._session)
        if context is None:
            self._session.interruptTag(self._tag)
        else:
            context.cancelJobGroup(self._tag)
