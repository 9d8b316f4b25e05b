"""Inputs of a service on Spark that are collections: they take DataFrames, and follow streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pointstamp.collections.schema import Schema
from pointstamp.collections.upserts import EventForm
from pointstamp.errors import UsageError
from pointstamp.service.collection_handles import CollectionFeed, CollectionFeeds
from pointstamp.service.upsert_feed import UpsertFeed
from pointstamp.spark.feed_forms import Append, form_of
from pointstamp.spark.frame_commits import COMPLETE_S, FrameCommits
from pointstamp.spark.upsert_forms import Upserts, upsert_form_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from pointstamp.spark.collection_service import SparkSide


class SparkFeed(CollectionFeed):
    """An input of a service on Spark that is a collection; it takes DataFrames, too."""

    def __init__(self, side: SparkSide, feeds: CollectionFeeds, name: str, schema: Schema) -> None:
        super().__init__(feeds, name, schema)
        self._commits = FrameCommits(side, feeds, name, schema)

    def load(
        self,
        frame: DataFrame,
        *,
        once: str | None = None,
        max_staged_bytes: int | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Insert the rows of a DataFrame, as one epoch of their own; which one.

        All tasks of the job that reads it send to the workers, in Arrow batches. What else was
        inserted waits for `advance`.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
            With the columns of the collection, of the same types, in any order.
        once : str, optional
            A name, under which the input loads once in all lives of the service's checkpoint:
            again, nothing is read, and it is the epoch that it was.
        max_staged_bytes : int, optional
            Wait until what was sent to the collections before, by any client, and has not entered
            the dataflow, is no more than so many bytes. How many the DataFrame has is not known.
        timeout_s : float, optional
            How long to wait for that; 0 not at all, None as long as it takes.

        Raises
        ------
        UsageError
            If it is a stream, or no DataFrame.
        SchemaError
            If its columns are others.
        DataError
            If a column that is not nullable has a null. Nothing is inserted then.
        StoppedError
            If the collections are closed.
        StagingError
            If there is not enough room in time.
        """
        return self._commits.load(frame, Append(), once, max_staged_bytes, timeout_s)

    def follow(
        self,
        stream: DataFrame,
        form: str,
        *,
        diff: str | None = None,
        name: str | None = None,
        trigger: Mapping[str, Any] | None = None,
        timeout_s: float = COMPLETE_S,
    ) -> StreamingQuery:
        """Have a query of Spark change the collection by a stream, each of its batches an epoch.

        Parameters
        ----------
        stream : pyspark.sql.DataFrame
            That is a stream, of the columns of the collection, of the same types, in any order.
        form : str
            What a row says. "append": it is inserted. "cdf": by `_change_type`, which is insert,
            delete, update_preimage or update_postimage; columns whose names begin with `_commit_`
            may be there, too. "diff": it comes as often as a column of integers says.
        diff : str, optional
            That column.
        name : str, optional
            Of the query's folder in the checkpoint of the service; that of the input, if not given.
            A second stream of an input needs one.
        trigger : mapping, optional
            As `DataStreamWriter.trigger` takes it: `{"availableNow": True}`.
        timeout_s : float
            How long a batch waits until its epoch is complete at the outputs.

        Returns
        -------
        pyspark.sql.streaming.StreamingQuery
            It is stopped when the service ends.

        Raises
        ------
        UsageError
            If it is no stream, or the service has no checkpoint, or the form is none, or another
            than "append" for an `AppendInput`; or the session is one of Spark Connect.
        SchemaError
            If its columns are others.

        Notes
        -----
        Exactly once: the batches of a query are known by its number and theirs, which the log of
        the service has with each epoch. One that Spark repeats, as it was killed before it had
        noted that the batch was committed, changes nothing. For that the query's
        `checkpointLocation` is below the service's checkpoint, and belongs to it: keep, copy or
        remove them together.

        A row that does not fit has the query fail, with a `DataError` that says the input, the
        query and the batch; nothing of the batch is committed.
        """
        if self.name in self.feeds.append_only and form != "append":
            raise UsageError(
                f'input {self.name!r} is append-only, and follows form="append" alone; given is '
                f"{form!r}, whose rows may be deletions: declare it by its schema"
            )
        found = form_of(form, f"input {self.name!r}", diff=diff)
        return self._commits.follow(stream, found, name, trigger, timeout_s)


class SparkUpsertFeed(UpsertFeed):
    """An input of a service on Spark that is an `UpsertInput`; it takes DataFrames, too."""

    def __init__(self, side: SparkSide, feeds: CollectionFeeds, name: str, form: EventForm) -> None:
        super().__init__(feeds, name, form)
        self._commits = FrameCommits(side, feeds, name, form.schema)

    def load(
        self,
        frame: DataFrame,
        *,
        once: str | None = None,
        max_staged_bytes: int | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Have each row of a DataFrame in the place of that of its key, as one epoch; which one.

        Of two rows of one key it is not said which counts. Parameters and errors are those of
        `SparkFeed.load`.
        """
        form = Upserts(self.form.keys, required_of(self.form))
        return self._commits.load(frame, form, once, max_staged_bytes, timeout_s)

    def follow(
        self,
        stream: DataFrame,
        form: str = "upserts",
        *,
        deleted: str | None = None,
        sequence: str | None = None,
        name: str | None = None,
        trigger: Mapping[str, Any] | None = None,
        timeout_s: float = COMPLETE_S,
    ) -> StreamingQuery:
        """Have a query of Spark change the collection by a stream, each of its batches an epoch.

        Parameters
        ----------
        stream : pyspark.sql.DataFrame
            That is a stream.
        form : str
            What a row says. "upserts": it is there instead of that of its key; its columns are
            those of the collection. "debezium": by `op`, which is c, r, u or d, and structs
            `before` and `after` with the columns of the collection; other columns may be there,
            too, and rows that are null in all three, which follow deletions. `before` is of use
            for the key of a deletion, and not compared with the row that is there.
        deleted : str, optional
            A column of booleans of upserts: where it is true, the key goes, and the columns beside
            the key may be null.
        sequence : str, optional
            A column of integers or timestamps: of the rows of one key in a batch, the one where
            it is greatest counts. Without it a key should be in a batch once: of several rows it
            is not said which counts.
        name, trigger, timeout_s
            As for `SparkFeed.follow`, and so are what it returns, raises, and guarantees.
        """
        found = upsert_form_of(
            form,
            f"input {self.name!r}",
            self.form.keys,
            required_of(self.form),
            deleted=deleted,
            sequence=sequence,
        )
        return self._commits.follow(stream, found, name, trigger, timeout_s)


def required_of(form: EventForm) -> list[str]:
    """The columns that have to be there in a row of upserts."""
    return [column.name for column in form.schema.columns if not column.nullable]
