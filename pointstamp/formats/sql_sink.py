"""A sink that inserts rows into a table of a database: an epoch's rows are there when it counts.

What an epoch has is kept in its token, which is part of the snapshot. When that counts, one
transaction of the database inserts the rows and notes, in a table of commits, which epoch they are
of. So a program that commits again finds in the database itself whether they are there.

What the database refuses then, it refuses each time a program begins with that snapshot. So the
same transaction is tried before, when the epoch is complete, and rolled back.

A database could keep rows that are not committed (a staging table, `PREPARE TRANSACTION`), but not
every one does, and what a program that was lost has left there would have to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from pointstamp.errors import SinkError
from pointstamp.formats.connector_arguments import check_text
from pointstamp.formats.databases import (
    Connect,
    Database,
    execute,
    is_sqlite,
    parts_of_table,
    quoted,
)
from pointstamp.formats.filled_columns import filled_by
from pointstamp.formats.sink_claims import claim, release
from pointstamp.formats.table_columns import TableColumns

FOREIGN_KEY = "23503"
"""SQL's state of a foreign key that is violated; SQLite has none, and says it in words."""

MAX_TRIED = 100_000
"""How many rows of epochs before an epoch are tried with it: where snapshots are rare, to try all
of them with each would cost ever more."""

Token = dict[str, Any]
"""What is prepared: run, epoch and worker, and the rows as record batches."""


class SqlSink:
    """Inserts records into a database table; a `TransactionalSink`.

    Needs the extra `sql`, and a driver of ADBC.

    Parameters
    ----------
    place : str or callable
        "sqlite:///file.db", "postgresql://...", or a function that gives a new connection of
        ADBC's `dbapi`.
    table : str
        Which has to be there, with the columns of what comes; `schema.table` where there are
        schemas, and in double quotes, as SQL has it, what has a dot in its name. Of SQLite and
        PostgreSQL, dictionaries and batches may be without columns that the database fills: those
        with a default, computed ones, and those that may be null.
    name : str, optional
        Of this sink, the same each time the program begins, and of no other that writes to the
        database; the table's, if not given.
    commits : str
        The table that has a row for each worker, with the epoch that was committed last. It is
        made if it is not there.

    Raises
    ------
    SinkError
        When the dataflow is built, if the database or the table is not there, or another sink of
        the run has this name; later, if a record does not fit the table, or is without a column
        that the database cannot fill, before any is written; or if the database refuses.

    Notes
    -----
    Guarantees: with a checkpoint exactly once: an epoch's rows are there, all of a worker at
    once, when it counts. Until then they are in memory, and in the snapshot. Without a checkpoint
    they are there when the epoch is complete. Records are dictionaries, tuples in the order of the
    table's columns, or batches with columns; they are cast to the types of the table, but for
    SQLite, which has values of any.

    With a checkpoint the rows of an epoch are inserted twice: to try it, in a transaction that is
    rolled back, and when the epoch counts. What the table refuses (a key that is there, NULL, a
    check) so ends the program while the snapshot before is the last, and a program that is mended
    goes on with that. Not seen before it counts is what is refused because of rows that are not
    there yet: the same key from two workers, in two sinks, or more than some 100,000 rows apart
    between two snapshots. Have records of one key on one worker (`exchange`). Where it happens,
    the program goes on once the table takes the rows.

    Examples
    --------
    >>> import pathlib, sqlite3, tempfile
    >>> import pointstamp as ps
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "shop.db")
    ...     database = sqlite3.connect(file)
    ...     _ = database.execute("CREATE TABLE totals (shop TEXT, cents INTEGER)")
    ...     def main(worker):
    ...         with worker.dataflow() as scope:
    ...             totals = scope.to_stream([("north", 30), ("south", 10)])
    ...             totals.sink(SqlSink(f"sqlite:///{file}", "totals"))
    ...     _ = ps.execute(main)
    ...     print(database.execute("SELECT * FROM totals").fetchall())
    ...     database.close()
    [('north', 30), ('south', 10)]
    """

    def __init__(
        self,
        place: str | Connect,
        table: str,
        *,
        name: str | None = None,
        commits: str = "pointstamp_commits",
    ) -> None:
        check_text("table", table, "'totals'")
        check_text("commits", commits, "'pointstamp_commits'")
        if name is not None:
            check_text("name", name, "'totals of shops'")
        self._database = Database(place)
        parts = parts_of_table(table) or table.split(".")
        self._schema_name, self._table = ".".join(parts[:-1]), parts[-1]
        self._name = table if name is None else name
        self._commits = quoted(*(parts_of_table(commits) or commits.split(".")))

    def open(self, context: Any) -> SqlSinkWriter:
        """The writer of a worker; see `Sink`."""
        with self._database.connected(SinkError) as connection:
            connection.adbc_connection.set_autocommit(False)
            schema = self._schema_of_table(connection)
            filled = filled_by(connection, *filter(None, (self._schema_name, self._table)))
            self._make_commits(connection)
            has_types = not is_sqlite(connection)
        trial = self._try if context.commits_later else None
        columns = TableColumns(repr(self), schema, filled, has_types)
        writer = SqlSinkWriter(repr(self), context.index, context.run, columns, trial)
        claim(
            writer,
            context,
            ("rows", self._database.one_place, self._commits, self._name),
            f"{self}: two sinks of this run have the name {self._name!r}, by which the database "
            "knows what is committed: give each its own (name=)",
        )
        return writer

    def _schema_of_table(self, connection: Any) -> pa.Schema:
        from adbc_driver_manager import AdbcStatusCode, Error

        try:
            found: pa.Schema = connection.adbc_get_table_schema(
                self._table, db_schema_filter=self._schema_name or None
            )
            return found
        except Error as error:
            if error.status_code != AdbcStatusCode.NOT_FOUND:
                raise
            raise SinkError(f"{self}: there is no such table") from error

    def commit(self, tokens: Sequence[Token]) -> None:
        """Insert what is prepared, unless it is there; see `TransactionalSink`."""
        with self._database.connected(SinkError) as connection:
            self._insert_new(connection, tokens)
            connection.adbc_connection.commit()

    def abort(self, run: str) -> None:
        """Nothing is prepared but in tokens; see `TransactionalSink`."""

    def _try(self, tokens: Sequence[Token]) -> list[Token]:
        """Commit, but for the end of it; the tokens that are not committed yet."""
        from adbc_driver_manager import Error

        with self._database.connected(SinkError) as connection:
            try:
                return self._insert_new(connection, tokens)
            except Error as error:
                if error.sqlstate == FOREIGN_KEY or "FOREIGN KEY" in str(error):
                    return list(tokens)  # to rows that may come with another sink's
                raise
            finally:
                connection.adbc_connection.rollback()

    def _insert_new(self, connection: Any, tokens: Sequence[Token]) -> list[Token]:
        """Insert what is not there, in a transaction that goes on; what that was."""
        connection.adbc_connection.set_autocommit(False)  # whatever it does by itself
        new = []
        for token in tokens:
            if not self._is_committed(connection, token):
                self._insert(connection, token)
                new.append(token)
        return new

    def _make_commits(self, connection: Any) -> None:
        from adbc_driver_manager import Error

        probe = f"SELECT 1 FROM {self._commits} WHERE 1 = 0"
        try:
            execute(connection, probe)
        except Error:
            connection.adbc_connection.rollback()
            try:
                execute(
                    connection,
                    f"CREATE TABLE IF NOT EXISTS {self._commits} (sink TEXT, worker BIGINT, "
                    "run TEXT, epoch BIGINT, PRIMARY KEY (sink, worker))",
                )
                connection.adbc_connection.commit()
            except Error:
                # Another worker has made it at the same time; or else this says what is wrong.
                connection.adbc_connection.rollback()
                execute(connection, probe)

    def _is_committed(self, connection: Any, token: Token) -> bool:
        """Whether a token's rows are there; until this transaction ends no other adds them."""
        place = self._name, token["worker"]
        # A write to begin with: it has the lock that is needed later. Where a read comes first,
        # SQLite refuses the write if another program has written between the two.
        execute(
            connection,
            f"UPDATE {self._commits} SET epoch = epoch WHERE sink = $1 AND worker = $2",
            place,
        )
        rows = execute(
            connection,
            f"SELECT run, epoch FROM {self._commits} WHERE sink = $1 AND worker = $2",
            place,
        )
        return any(run == token["run"] and epoch >= token["epoch"] for run, epoch in rows)

    def _insert(self, connection: Any, token: Token) -> None:
        """The rows, and that they are there."""
        for batch in token["batches"]:
            with connection.cursor() as cursor:
                cursor.adbc_ingest(
                    self._table, batch, mode="append", db_schema_name=self._schema_name or None
                )
        place = self._name, token["worker"]
        execute(connection, f"DELETE FROM {self._commits} WHERE sink = $1 AND worker = $2", place)
        execute(
            connection,
            f"INSERT INTO {self._commits} (sink, worker, run, epoch) VALUES ($1, $2, $3, $4)",
            (*place, token["run"], token["epoch"]),
        )

    def __repr__(self) -> str:
        table = f"{self._schema_name}.{self._table}" if self._schema_name else self._table
        return f"SqlSink({self._database!r}, {table!r})"


class SqlSinkWriter:
    """What one worker writes with: keeps an epoch's rows until it is complete."""

    def __init__(
        self,
        sink: str,
        index: int,
        run: str,
        columns: TableColumns,
        trial: Callable[[Sequence[Token]], list[Token]] | None,
    ) -> None:
        self._sink = sink
        self._index = index
        self._run = run
        self._columns = columns
        self._trial = trial
        self._tried: list[Token] = []
        """What was prepared, and may not be committed yet."""
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: Any) -> None:
        """Take a batch, of any container with columns, or of records."""
        self._batches += self._columns.of(batch)

    def prepare(self, epoch: int) -> Token | None:
        """All rows of the epoch are the token; see `TransactionalWriter`."""
        if not self._batches:
            return None
        batches: list[pa.RecordBatch] = []
        for _, alike in groupby(self._batches, lambda batch: batch.schema):
            batches += pa.Table.from_batches(list(alike)).combine_chunks().to_batches()
        self._batches = []
        token = {"run": self._run, "epoch": epoch, "worker": self._index, "batches": batches}
        if self._trial is not None:
            # With what comes before it, as that may be what refuses it.
            n_before = sum(batch.num_rows for each in self._tried for batch in each["batches"])
            before = self._tried if n_before <= MAX_TRIED else []
            try:
                self._tried = self._trial([*before, token])
            except SinkError as error:
                raise SinkError(
                    f"{self._sink}: epoch {epoch} does not count, as its rows are refused: {error}"
                ) from error
        return token

    def close(self) -> None:
        """Give up what is not prepared."""
        release(self)
        self._batches = []
        self._tried = []
