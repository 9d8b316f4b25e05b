"""A source of the rows of a query, in the order of a key; a position is the last key.

Each batch is a query of its own, of the rows whose keys come after the last: so nothing is open
in the database between two batches, however long they take, and what was read can be left
and taken up anywhere. Rows of one key are not taken apart: a batch that may have but some of those
of its last key leaves them to the next.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.conform import conform
from pointstamp.errors import ColumnError, PositionError, SchemaError, SourceError, UsageError
from pointstamp.formats.connector_arguments import check_count, check_seconds, schema_of
from pointstamp.formats.databases import Connect, Database, is_sqlite, parts_of_table, quoted


class SqlSource:
    """Reads a database table or query, in the order of a key; a `Source`.

    Needs the extra `sql`, and a driver of ADBC.

    Parameters
    ----------
    place : str or callable
        "sqlite:///file.db", "postgresql://...", or a function that gives a new connection of
        ADBC's `dbapi`.
    query : str, or mapping of str to str
        The name of a table, such as `orders`, `shop.orders` or `"my orders"`, or a SELECT. A
        mapping has a query for each partition: they are read side by side, and by several workers.
    key : str
        A column of the result, by which rows are read. Rows without it (NULL) are left out.
    schema : pyarrow.Schema, text or StructType, optional
        Which columns to read, and of what types, as a `FileSource` takes them. Without it they
        are as the driver has them; SQLite's guesses by the values of each batch.
    batch_rows : int
        How many rows a batch has at most.
    follow_s : float, optional
        Look for rows of greater keys every so many seconds, and never end.

    Raises
    ------
    SourceError
        While it runs, if the database refuses; if more than `batch_rows` rows have one key.
    ColumnError, SchemaError
        If the result does not have the key, or its type is none of these; if it does not fit the
        schema.

    Notes
    -----
    Guarantees: each row whose key is greater than those before it, once. So a table that grows
    is read as a whole if keys become visible in their order: a number from a sequence, drawn by
    a transaction that commits after one that drew later, is passed over. What is changed or
    deleted in rows that were read is not seen. An index on the key makes each batch cheap.
    Keys are of what a driver takes back as it has given it: integers, texts, times. Cast others
    in the query, such as NUMERIC of PostgreSQL.

    Examples
    --------
    >>> import pathlib, sqlite3, tempfile
    >>> import pointstamp as ps
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "shop.db")
    ...     database = sqlite3.connect(file)
    ...     _ = database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, cents INTEGER)")
    ...     _ = database.execute("INSERT INTO orders VALUES (1, 30), (2, 10)")
    ...     database.commit()
    ...     database.close()
    ...     orders = SqlSource(f"sqlite:///{file}", "orders", key="id")
    ...     ps.testing.check_source(orders)
    ...     ps.testing.collect(lambda scope: scope.source(orders))
    [(0, (1, 30)), (0, (2, 10))]
    """

    def __init__(
        self,
        place: str | Connect,
        query: str | Mapping[str, str],
        *,
        key: str,
        schema: Any = None,
        batch_rows: int = 65_536,
        follow_s: float | None = None,
    ) -> None:
        check_count("batch_rows", batch_rows)
        if not isinstance(query, str | Mapping) or not query:
            raise UsageError(f"a query is a text, or a mapping with several; found {query!r}")
        for name, text in query.items() if isinstance(query, Mapping) else [("rows", query)]:
            if not isinstance(name, str) or not isinstance(text, str) or not text.strip():
                raise UsageError(f"a query is a text, with a name; found {name!r}: {text!r}")
        if not isinstance(key, str) or not key:
            raise UsageError(f"a key is the name of a column; found {key!r}")
        schema = schema_of(schema)
        check_seconds("follow_s", follow_s)
        self._database = Database(place)
        self._queries = {"rows": query} if isinstance(query, str) else dict(query)
        self._key = key
        self._schema = schema
        self._batch_rows = batch_rows
        self._follow_s = follow_s
        if follow_s is not None:
            self.poll_s = follow_s
        # A query may be written otherwise, and have the same rows.
        table = parts_of_table(query) if isinstance(query, str) else None
        rows = "rows" if table is None else f"rows of {'.'.join(table)}"
        self.positions_of = f"{rows} by {key}"
        if schema is None:
            self.schema_advice = (
                "without schema= the types of a SqlSource are those of its driver, and SQLite's "
                "guesses them by the values of each batch: give it schema="
            )

    def partitions(self) -> Sequence[str]:
        """The names of the queries; of one alone, "rows"."""
        self._database.check_is_there(SourceError)
        return list(self._queries)

    def open(self, partition: str, position: Any) -> Iterator[tuple[Any, Any] | None]:
        """The rows of greater keys than `position`; see `Source`."""
        if partition not in self._queries:
            raise PositionError(f"there is no query {partition!r}, but {list(self._queries)}")
        with self._database.connected(SourceError) as connection:
            options = {}
            if is_sqlite(connection):  # types are those of all of the batch
                options["adbc.sqlite.query.batch_rows"] = str(self._batch_rows + 1)
            next_at = 0.0
            while True:
                if time.monotonic() < next_at:
                    yield None
                    continue
                rows, is_end = self._page(connection, partition, position, options)
                if rows.num_rows:
                    position = rows.column(self._key)[-1].as_py()
                    yield self._chosen(rows), position
                if is_end and self._follow_s is None:
                    return
                next_at = time.monotonic() + self._follow_s if is_end and self._follow_s else 0.0

    def _page(
        self, connection: Any, partition: str, position: Any, options: Mapping[str, str]
    ) -> tuple[pa.Table, bool]:
        """The next rows, and whether there are no more for now."""
        if options:
            # Else the driver takes the columns of SQLite to be those that it has seen last.
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        rows = self._rows(connection, partition, position, None, options)
        if rows.num_rows <= self._batch_rows:
            connection.rollback()  # nothing has changed; the next batch sees what others have done
            return rows, True
        keys = rows.column(self._key)
        last = keys[-1].as_py()
        # The one row more says whether the others have all of their last key.
        if isinstance(last, str | bytes | UUID) or last != last:
            # Some of them may have come as bytes that are none, and the database says which texts
            # are one: case, accents or spaces may be nothing to it. NaNs are one to it as well.
            rows = self._rows(connection, partition, position, last, options)
        else:
            rows = rows.slice(0, pc.index(keys, keys[-1]).as_py())
        connection.rollback()
        if rows.num_rows == 0:
            raise SourceError(
                f"{self}: {len(keys)} rows at least have the key {last!r}: read by "
                "a key of fewer, or make batch_rows greater than that"
            )
        return rows, False

    def _rows(
        self,
        connection: Any,
        partition: str,
        position: Any,
        before: Any,
        options: Mapping[str, str],
    ) -> pa.Table:
        """The rows after a key: as many as are looked at at a time, or all before another key."""
        query = self._queries[partition]
        # What ends with a comment ends with its line.
        table = parts_of_table(query)
        inside = f"({query.strip().rstrip(';')}\n)" if table is None else quoted(*table)
        key = f"pointstamp_rows.{quoted(self._key)}"
        bounds = [(">", position), ("<", before)]
        given = [(sign, value) for sign, value in bounds if value is not None]
        where = [f"{key} {sign} ${n}" for n, (sign, _) in enumerate(given, 1)]
        # Before a key are no more than were looked at, but for what was inserted meanwhile.
        limit = f" LIMIT {self._batch_rows + 1}" if before is None else ""
        with connection.cursor(adbc_stmt_kwargs=options) as cursor:
            cursor.execute(
                f"SELECT * FROM {inside} AS pointstamp_rows "
                f"WHERE {' AND '.join(where or [f'{key} IS NOT NULL'])} "
                f"ORDER BY {key}{limit}",
                tuple(value for _, value in given) or None,
            )
            try:
                rows: pa.Table = cursor.fetch_arrow_table()
            except pa.ArrowException as error:
                raise SourceError(
                    f"{self}: the rows cannot be read: {error}; if columns were changed meanwhile, "
                    "run it again"
                ) from error
        if self._key not in rows.column_names:
            raise ColumnError(f"{self}: the result has no {self._key!r}, but {rows.column_names}")
        # Here, as a key that is not taken back would fail when there is more to read.
        if not _may_be_key(rows.schema.field(self._key).type):
            raise SchemaError(
                f"{self}: the key {self._key!r} is of type {rows.schema.field(self._key).type}, "
                "which a driver does not take back: cast it in the query, to a number or a text"
            )
        return rows

    def _chosen(self, rows: pa.Table) -> pa.Table:
        if self._schema is None:
            return rows
        names = self._schema.names
        if missing := [name for name in names if name not in rows.column_names]:
            raise ColumnError(f"{self}: has no columns {missing}; it has {rows.column_names}")
        try:
            batches = rows.select(names).to_batches()
            return pa.Table.from_batches(
                [conform(batch, self._schema, "the rows", repr(self)) for batch in batches],
                self._schema,
            )
        except SchemaError as error:
            raise SchemaError(f"{self}: {error}") from error

    def __repr__(self) -> str:
        return f"SqlSource({self._database!r}, {self._queries!r}, key={self._key!r})"


def _may_be_key(kind: pa.DataType) -> bool:
    """Whether a driver takes back values of a type as it has given them.

    >>> _may_be_key(pa.int64()), _may_be_key(pa.list_(pa.int64()))
    (True, False)
    """
    of = pa.types
    return bool(
        (of.is_primitive(kind) and not of.is_interval(kind))
        or of.is_null(kind)
        or of.is_decimal(kind)
        or of.is_string(kind)
        or of.is_large_string(kind)
        or of.is_string_view(kind)
        or of.is_binary(kind)
        or of.is_large_binary(kind)
        or of.is_binary_view(kind)
        or of.is_fixed_size_binary(kind)
        or of.is_dictionary(kind)
        or isinstance(kind, pa.UuidType)
    )
