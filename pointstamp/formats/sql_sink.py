"""A sink that inserts rows into a table of a database: an epoch's rows are there when it counts.

What an epoch has is kept in its token, which is part of the snapshot. When that counts, one
transaction of the database inserts the rows and notes, in a table of commits, which epoch they are
of. So a program that commits again finds in the database itself whether they are there.

A database could keep rows that are not committed (a staging table, `PREPARE TRANSACTION`), but not
every one does, and what a program that was lost has left there would have to be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from pointstamp.containers.registry import kind_of
from pointstamp.errors import SinkError
from pointstamp.formats.databases import Connect, Database, is_sqlite, quoted
from pointstamp.formats.sink_claims import claim
from pointstamp.formats.sink_columns import columns_of, values_of

Token = dict[str, Any]
"""What is prepared: run, epoch and worker, and the rows as record batches."""


class SqlSink:
    """Inserts records into a table of a database; a `TransactionalSink`.

    Needs the extra `sql`, and a driver of ADBC.

    Parameters
    ----------
    place : str or callable
        "sqlite:///file.db", "postgresql://...", or a function that gives a new connection of
        ADBC's `dbapi`.
    table : str
        Which has to be there, with the columns of what comes; `schema.table` where there are
        schemas.
    name : str, optional
        Of this sink, the same each time the program begins, and of no other that writes to the
        database; the table's, if not given.
    commits : str
        The table that has a row for each worker, with the epoch that was committed last. It is
        made if it is not there.

    Raises
    ------
    SinkError
        If a record does not fit the table; if the database refuses; if another sink of the run
        has this name.

    Notes
    -----
    Guarantees: with a checkpoint exactly once: an epoch's rows are there, all of a worker at
    once, when it counts. Until then they are in memory, and in the snapshot. Without a checkpoint
    they are there when the epoch is complete. Records are dictionaries, tuples in the order of the
    table's columns, or batches with columns; they are cast to the types of the table, but for
    SQLite, which has values of any.

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
        self._database = Database(place)
        self._schema_name, _, self._table = table.rpartition(".")
        self._name = table if name is None else name
        self._commits = quoted(commits)

    def open(self, context: Any) -> SqlSinkWriter:
        """The writer of a worker; see `Sink`."""
        with self._database.connected(SinkError) as connection:
            connection.adbc_connection.set_autocommit(False)
            self._make_commits(connection)
            schema = connection.adbc_get_table_schema(
                self._table, db_schema_filter=self._schema_name or None
            )
            has_types = not is_sqlite(connection)
        writer = SqlSinkWriter(repr(self), context.index, context.run, schema, has_types)
        claim(
            writer,
            context,
            ("rows", self._database.place, self._commits, self._name),
            f"{self}: two sinks of this run have the name {self._name!r}, by which the database "
            "knows what is committed: give each its own (name=)",
        )
        return writer

    def commit(self, tokens: Sequence[Token]) -> None:
        """Insert what is prepared, unless it is there; see `TransactionalSink`."""
        with self._database.connected(SinkError) as connection:
            connection.adbc_connection.set_autocommit(False)  # whatever it does by itself
            for token in tokens:
                if not self._is_committed(connection, token):
                    self._insert(connection, token)
            connection.adbc_connection.commit()

    def abort(self, run: str) -> None:
        """Nothing is prepared but in tokens; see `TransactionalSink`."""

    def _make_commits(self, connection: Any) -> None:
        from adbc_driver_manager import Error

        probe = f"SELECT 1 FROM {self._commits} WHERE 1 = 0"
        try:
            _execute(connection, probe)
        except Error:
            connection.adbc_connection.rollback()
            try:
                _execute(
                    connection,
                    f"CREATE TABLE IF NOT EXISTS {self._commits} (sink TEXT, worker BIGINT, "
                    "run TEXT, epoch BIGINT, PRIMARY KEY (sink, worker))",
                )
                connection.adbc_connection.commit()
            except Error:
                # Another worker has made it at the same time; or else this says what is wrong.
                connection.adbc_connection.rollback()
                _execute(connection, probe)

    def _is_committed(self, connection: Any, token: Token) -> bool:
        """Whether a token's rows are there; until this transaction ends no other adds them."""
        place = self._name, token["worker"]
        # A write to begin with: it has the lock that is needed later. Where a read comes first,
        # SQLite refuses the write if another program has written between the two.
        _execute(
            connection,
            f"UPDATE {self._commits} SET epoch = epoch WHERE sink = $1 AND worker = $2",
            place,
        )
        rows = _execute(
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
        _execute(connection, f"DELETE FROM {self._commits} WHERE sink = $1 AND worker = $2", place)
        _execute(
            connection,
            f"INSERT INTO {self._commits} (sink, worker, run, epoch) VALUES ($1, $2, $3, $4)",
            (*place, token["run"], token["epoch"]),
        )

    def __repr__(self) -> str:
        table = f"{self._schema_name}.{self._table}" if self._schema_name else self._table
        return f"SqlSink({self._database!r}, {table!r})"


class SqlSinkWriter:
    """What one worker writes with: keeps an epoch's rows until it is complete."""

    def __init__(self, sink: str, index: int, run: str, schema: pa.Schema, has_types: bool) -> None:
        self._sink = sink
        self._index = index
        self._run = run
        self._schema = schema
        self._has_types = has_types
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: Any) -> None:
        """Take a batch, of any container with columns, or of records."""
        columns = self._columns(batch)
        if not self._has_types:
            # Here, as what is refused when the snapshot counts is so each time a program begins.
            for field in columns.schema:
                if _sqlite_refuses(field.type):
                    raise SinkError(
                        f"{self._sink}: column {field.name!r} is of type {field.type}, which the "
                        "driver of SQLite does not take: make it a number or a text before"
                    )
        self._batches.append(columns)

    def prepare(self, epoch: int) -> Token | None:
        """All rows of the epoch are the token; see `TransactionalWriter`."""
        if not self._batches:
            return None
        batches: list[pa.RecordBatch] = []
        for _, alike in groupby(self._batches, lambda batch: batch.schema):
            batches += pa.Table.from_batches(list(alike)).combine_chunks().to_batches()
        self._batches = []
        return {"run": self._run, "epoch": epoch, "worker": self._index, "batches": batches}

    def close(self) -> None:
        """Give up what is not prepared."""
        self._batches = []

    def _columns(self, batch: Any) -> pa.RecordBatch:
        if self._has_types:
            return columns_of(batch, self._schema, self._sink)
        names = self._schema.names
        if not kind_of(batch).has_columns:
            try:
                return pa.RecordBatch.from_pydict(values_of(batch, names, self._sink))
            except (pa.ArrowException, TypeError, OverflowError) as error:
                raise SinkError(f"{self._sink}: {str(error).splitlines()[0]}") from error
        columns = columns_of(batch, None, self._sink)
        if sorted(columns.schema.names) != sorted(names):
            raise SinkError(
                f"{self._sink}: the table has the columns {names}; found {columns.schema.names}"
            )
        return columns.select(names)


def _sqlite_refuses(kind: pa.DataType) -> bool:
    """Whether the driver of SQLite takes no column of a type.

    >>> _sqlite_refuses(pa.decimal128(5, 2)), _sqlite_refuses(pa.timestamp("us"))
    (True, False)
    """
    of = pa.types
    if of.is_dictionary(kind):
        return not (of.is_string(kind.value_type) or of.is_large_string(kind.value_type))
    return bool(
        of.is_decimal(kind)
        or of.is_time(kind)
        or of.is_duration(kind)
        or of.is_date64(kind)
        or of.is_nested(kind)
    )


def _execute(connection: Any, statement: str, values: tuple[Any, ...] | None = None) -> list[Any]:
    """Have a statement run; the rows that it gives."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: list[Any] = cursor.fetchall()
        return found
