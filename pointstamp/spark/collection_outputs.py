"""Outputs of a service on Spark that are collections: as DataFrames, streams, and tables by key.

    to_spark        a DataFrame of what is there as of an epoch
    change_feed     a stream: each epoch once, with the columns of Delta's change data feed
    upserts         a stream: one row for each key and epoch, for foreachBatch
    merge_into      a query that keeps a table up to date by MERGE

The streams read `format("pointstamp")`, whose offsets are epochs: a query that is started again
with its checkpoint goes on with the epoch after the last that it is through with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pointstamp.collections.schema import Schema, column_names
from pointstamp.errors import EpochError, StoppedError, UsageError
from pointstamp.service.collection_handles import CollectionOutput
from pointstamp.service.conversions import epoch_of
from pointstamp.service.protocol import NEVER
from pointstamp.spark.frame_checks import check_all_names
from pointstamp.spark.mapped_columns import NamedBatches, numbered
from pointstamp.spark.merging import Merge, check_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from pointstamp.service.service import Service
    from pointstamp.spark.collection_service import SparkSide


class SparkOutput(CollectionOutput):
    """An output of a service on Spark that is a collection; it gives DataFrames, too."""

    def __init__(self, side: SparkSide, service: Service, name: str, schema: Schema) -> None:
        super().__init__(service, name, schema)
        self._side = side

    def to_spark(self, epoch: int | None = None) -> DataFrame:
        """A DataFrame of the records as of the end of an epoch, each as often as it is there.

        Lazy: what is discarded before it is computed cannot be read any more.

        Parameters
        ----------
        epoch : int, optional
            The last that is complete now, if not given.

        Raises
        ------
        EpochError
            If it is not complete, or is before what is discarded; has both bounds. Without
            `epoch`, if none is complete.
        DataError
            From what runs an action: if more copies of a row were deleted than there were.
        """
        from pyspark.sql import functions
        from pyspark.sql.pandas.types import from_arrow_schema

        from pointstamp.service.changes_columns import columns_of_changes
        from pointstamp.spark.collection_source import SNAPSHOT

        columns = from_arrow_schema(columns_of_changes(self.schema))
        if self._fetched is not None:
            import pyarrow as pa

            table = pa.Table.from_batches([self.snapshot(epoch).to_arrow()])
            return self._side.spark.createDataFrame(table, _records(columns))
        epoch = self._readable(epoch)
        options = {**self._options(SNAPSHOT), "epoch": str(epoch)}
        # Columns by their places, as Spark may not find two of them by their names.
        of_workers = numbered(self._side.spark.read.format("pointstamp").options(**options).load())
        # A worker of a service that began again may have what was there before, and another one
        # what has changed since.
        *names, diff = of_workers.columns
        added_up = of_workers.groupBy(*names).agg(functions.sum(diff).alias(diff))
        copies = NamedBatches(_Copies(self.schema, self.name), columns.names)
        return added_up.mapInArrow(copies, _records(columns))

    def change_feed(self, *, discard: bool = True) -> DataFrame:
        """A stream of what changes, each epoch once, with the columns of Delta's change data feed.

        Beside those of the collection: `_change_type`, "insert" or "delete"; `_commit_version`,
        the epoch; `_commit_timestamp`, when that was committed. A diff of n is n rows.

        Parameters
        ----------
        discard : bool
            Have the workers add up an epoch when the query is through with it: nothing else can
            read its changes then. Of several queries of one output, all but one say False, or
            all, and the program discards by `discard`.

        Raises
        ------
        SchemaError
            If a column is called like one of those.
        StoppedError
            If the service has stopped.

        Notes
        -----
        A query that begins when epochs are discarded, gets the collection as of the last of those
        first, as rows that are inserted then. One that is started again with its checkpoint gets
        nothing twice, but a batch that it was not through with.
        """
        from pointstamp.service.feed_columns import feed_schema
        from pointstamp.spark.collection_source import CDF

        feed_schema(self.schema, self.name)  # which raises if it has none
        return self._stream(CDF, discard)

    def upserts(self, key: str | Sequence[str], *, discard: bool = True) -> DataFrame:
        """A stream with one row for each key and epoch, for foreachBatch.

        Beside the columns of the collection, it has `_deleted`, whether there is no row of the key
        any more, and then the others are those that it had; `_commit_version`, the epoch; and
        `_commit_timestamp`, when that was committed.

        Parameters
        ----------
        key : str or sequence of str
            Columns of which each row has values for itself.
        discard : bool
            As for `change_feed`, and so is with what a query begins.

        Raises
        ------
        ColumnError, SchemaError
            If there is no such column, or one is called like those beside.
        DataError
            From the query: if there is a second row of a key in an epoch; names the key.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        from pointstamp.service.upsert_rows import upsert_schema
        from pointstamp.spark.collection_source import DIFF

        names = column_names(key, f"upserts of {self.name}")
        columns = from_arrow_schema(upsert_schema(self.schema, names, self.name))
        changes = self._stream(DIFF, discard)
        task = NamedBatches(_ToUpserts(self.schema, tuple(names), self.name), changes.columns)
        # All changes of a key to one task, as two of them may be of two workers.
        places = [self.schema.names.index(name) for name in names]
        changes = numbered(changes)
        by_key = changes.repartition(
            self._service.workers, *(changes.columns[place] for place in places)
        )
        return by_key.mapInArrow(task, columns)

    def merge_into(
        self, table: str, key: str | Sequence[str], *, discard: bool = True, name: str | None = None
    ) -> StreamingQuery:
        """Start a query that keeps a table up to date, by MERGE with a key.

        Each batch is one MERGE, of the last row of each key: it is updated, inserted or deleted.
        Keys are equal by `<=>`, so that null is a key, too. A batch that is repeated changes
        nothing. The query has its checkpoint below that of the service, goes on where
        it was when it is started again, and is stopped when the service ends.

        Parameters
        ----------
        table : str
            Of a catalog whose tables have MERGE, such as Delta's or Iceberg's; as in SQL. It
            is there, and has the columns of the collection.
        key : str or sequence of str
            As for `upserts`.
        discard : bool
            As for `change_feed`.
        name : str, optional
            By which the query knows what it has done; one of the output and the table, if not
            given.

        Returns
        -------
        StreamingQuery

        Raises
        ------
        UsageError
            If the service has no checkpoint, such a query runs already, or there is no such
            table, or one without these columns.
        ColumnError, SchemaError
            As for `upserts`.
        """
        if not isinstance(table, str) or not table.strip():
            raise UsageError(f"merge_into needs the name of a table, as in SQL, and not {table!r}")
        names = column_names(key, f"merge_into of {self.name}")
        upserts = self.upserts(names, discard=discard)
        wanted_by = f"output {self.name!r} merged into {table}"
        folder = self._side.query_folder("merge", name or f"{self.name} into {table}", wanted_by)
        check_all_names(upserts, f"rows of {wanted_by}")
        check_table(self._side.spark, table, self.schema.names, wanted_by)
        merge = Merge(table, tuple(self.schema.names), tuple(names))
        return self._side.start(upserts.writeStream.foreachBatch(merge), folder, wanted_by)

    def _stream(self, form: str, discard: bool) -> DataFrame:
        if self._service.is_over:
            raise StoppedError(f"the service has stopped: nothing more comes of {self.name!r}")
        options = {**self._options(form), "discard": str(discard).lower()}
        return self._side.spark.readStream.format("pointstamp").options(**options).load()

    def _options(self, form: str) -> dict[str, str]:
        return {"service": self._service.name, "output": self.name, "form": form}

    def _readable(self, epoch: int | None) -> int:
        """An epoch as of which the workers can give the records."""
        first = max(self._service.discarded_of(self.name), 0)  # before the status, as both grow
        status = self._service.status()
        last = status.last_complete(self.name)
        if epoch is None:
            if last < first:
                raise EpochError(
                    f"output {self.name!r} cannot be read yet: no epoch is complete; wait for one "
                    "with service.probe.wait(epoch)"
                )
            # Once the inputs are closed, all epochs are complete, also those that there are not.
            return last if last < NEVER else max(status.end - 1, first)
        epoch = epoch_of(epoch)
        if not first <= epoch <= last:
            raise EpochError(
                f"output {self.name!r} cannot be read as of epoch {epoch}: it can be as of the "
                f"epochs from {first}, as what came before is added up, to {last}, the last that "
                "is complete"
            )
        return epoch


@dataclass(frozen=True)
class _Copies:
    """The function for `mapInArrow`: rows with diffs in, each as often as it is there out."""

    schema: Schema
    output: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pointstamp.service.feed_columns import copies

        for batch in batches:
            yield from copies(self.schema, batch, self.output)


@dataclass(frozen=True)
class _ToUpserts:
    """The function for `mapInArrow`: all changes of some keys in, upserts out."""

    schema: Schema
    key: Sequence[str]
    output: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pointstamp.service.upsert_rows import upserts_of

        yield upserts_of(self.schema, self.key, self.output, batches)


def _records(changes: StructType) -> StructType:
    """The columns of a collection, of those of its changes."""
    return type(changes)(changes.fields[:-1])
