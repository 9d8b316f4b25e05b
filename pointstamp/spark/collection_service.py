"""What the inputs and outputs of a service on Spark know beyond others: session and workers.

A service without Spark has `CollectionFeed` and `CollectionOutput`. Those of a service on Spark are
made with a `SparkSide`, by which they have jobs of the session come to the service's workers, and
start queries that end with the service.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING
from urllib.parse import quote

from pointstamp.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from pointstamp.checkpoint.checkpoint import Checkpoint
    from pointstamp.spark.access import Access
    from pointstamp.spark.service_pool import Registration

QUERIES = "queries"
"""The folder of the checkpoint that has those of queries."""


class SparkSide:
    """The session that a service is in, how jobs of it reach the workers, and its queries."""

    def __init__(
        self, spark: SparkSession, registration: Registration, checkpoint: Checkpoint | None
    ) -> None:
        self.spark = spark
        self.registration = registration
        self.checkpoint = checkpoint
        """That of the service."""
        self.is_ending = threading.Event()
        """What a query is waiting for does not come any more."""
        self._queries: dict[str, StreamingQuery] = {}
        """By folder, those that may run."""

    @property
    def access(self) -> Access:
        """Of the workers as they are now: those that are started again may be elsewhere."""
        return self.registration.access

    def query_folder(self, kind: str, name: str, wanted_by: str) -> str:
        """The `checkpointLocation` of a query, below the checkpoint of the service.

        So that what both know of each other's batches and epochs lasts together. Raises
        `UsageError` if there is no such place.
        """
        if self.checkpoint is None:
            raise UsageError(
                f"{wanted_by} needs a service with a checkpoint, below which the query has its "
                "own: without one, what the query has sent is lost with the service, and Spark "
                "would not send it again; serve with checkpoint="
            )
        if self.checkpoint.uri is None:
            raise UsageError(
                f"{wanted_by} needs a checkpoint by a path or a URI that Spark knows as well, and "
                f"{self.checkpoint} is one in a file system that was given as an object"
            )
        return f"{self.checkpoint.uri}/{QUERIES}/{kind}/{quote(name, safe='')}"

    def start(self, writer: DataStreamWriter, folder: str, wanted_by: str) -> StreamingQuery:
        """Start a query with that `checkpointLocation`, which is stopped when the service ends.

        Raises `UsageError` if one is at work there, which Spark would stop.
        """
        self._queries = {at: query for at, query in self._queries.items() if query.isActive}
        if folder in self._queries:
            raise UsageError(
                f"{wanted_by}: a query is at work in {folder}: stop that, or give this one another "
                "name="
            )
        query = writer.option("checkpointLocation", folder).start()
        self._queries[folder] = query
        return query

    def stop_queries(self) -> None:
        """Stop those that run; a batch that is under way is repeated when they go on."""
        self.is_ending.set()
        while self._queries:
            # One that has failed, or whose Java has ended, is stopped.
            with contextlib.suppress(Exception):
                self._queries.popitem()[1].stop()
