"""Databases as sources and sinks: SQLite always, PostgreSQL where its server is installed."""

from __future__ import annotations

import datetime
import decimal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import (
    ColumnError,
    MissingExtraError,
    PositionError,
    SchemaError,
    SinkError,
    SourceError,
    UsageError,
    WorkerError,
)
from pointstamp.formats import sql_sink
from pointstamp.formats.databases import Database, quoted
from pointstamp.formats.sql_sink import SqlSink
from pointstamp.formats.sql_source import SqlSource
from pointstamp.testing import check_sink, check_source
from tests.connectors.crashing_flow import EndsAfterCommit, Fuse, expected, outlived
from tests.connectors.postgres import postgres, programs

pytestmark = pytest.mark.xdist_group("databases")  # one server for all

pytest.importorskip("adbc_driver_manager", reason="the extra sql")
pytest.importorskip("adbc_driver_sqlite", reason="a driver of ADBC")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of PostgreSQL's."""
    if programs() is None:
        pytest.skip("no server of PostgreSQL is installed here (Debian: postgresql)")
    pytest.importorskip("adbc_driver_postgresql", reason="a driver of ADBC")
    with postgres() as address:
        yield address


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def address_of_server(request: pytest.FixtureRequest) -> str | None:
    """That of a server, for the databases that have one."""
    # Of the module: what is begun for a test has to end with it.
    return request.getfixturevalue("server") if request.param == "postgresql" else None


@pytest.fixture
def place(address_of_server: str | None, tmp_path: Path) -> Iterator[str]:
    """The address of a database with nothing in it."""
    address = address_of_server
    if address is None:
        yield f"sqlite:///{tmp_path / 'test.db'}"
        return
    yield address
    tables = [
        name
        for (name,) in query(address, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    ]
    for table in tables:
        query(address, f"DROP TABLE {quoted(table)}")


def query(place: str, *statements: str) -> list[Any]:
    """What the last of some statements gives."""
    rows: list[Any] = []
    if place.startswith("sqlite:////"):
        Path(place.removeprefix("sqlite:///")).touch()  # an empty one is a database
    with Database(place).connected(AssertionError) as connection:  # type: ignore[arg-type]
        for statement in statements:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                rows = cursor.fetchall()
        connection.commit()
    return rows


def orders(place: str, keys: Any) -> None:
    """A table with these keys."""
    rows = ", ".join(f"({key}, 'text {n}')" for n, key in enumerate(keys))
    query(
        place,
        "CREATE TABLE orders (id INTEGER, text VARCHAR(20))",
        f"INSERT INTO orders VALUES {rows}",
    )


def read(source: SqlSource, position: Any = None, partition: str = "rows") -> list[Any]:
    return [row for item in source.open(partition, position) if item for row in item[0].to_pylist()]


@pytest.fixture(scope="module", autouse=True)
def manager() -> None:
    """What the driver manager opens once, and keeps: a pipe, by which calls are interrupted."""
    query("sqlite:///:memory:", "SELECT 1")


def test_rows_are_read_in_the_order_of_the_key_from_every_position(place: str) -> None:
    orders(place, [5, 3, 4, 1, 2, 2, "NULL"])
    for batch_rows in (2, 3, 100):
        source = SqlSource(place, "orders", key="id", batch_rows=batch_rows)
        assert [row["id"] for row in read(source)] == [1, 2, 2, 3, 4, 5]
        assert [row["id"] for row in read(source, 2)] == [3, 4, 5]
        assert all(len(item[0]) <= batch_rows for item in source.open("rows", None) if item)
        check_source(source, n_positions=2)
    chosen = SqlSource(
        place,
        "SELECT id, text FROM orders WHERE id > 3;",
        key="id",
        schema=pa.schema([("id", pa.float64())]),
    )
    assert read(chosen) == [{"id": 4.0}, {"id": 5.0}]


def test_keys_may_be_texts_and_several_queries_are_partitions(place: str) -> None:
    orders(place, range(10))
    source = SqlSource(
        place,
        {half: f"SELECT * FROM orders WHERE id % 2 = {n}" for n, half in enumerate("ab")},
        key="text",
        batch_rows=2,
    )
    assert source.partitions() == ["a", "b"]
    assert [row["id"] for row in read(source, "text 4", "a")] == [6, 8]
    check_source(source, n_positions=2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("place", 5),
        ("place", "sqlite:///"),
        ("query", 5),
        ("query", {}),
        ("query", {"all": 5}),
        ("key", 5),
        ("schema", {"id": int}),
        ("batch_rows", 0),
        ("follow_s", -1),
        ("follow_s", "x"),
    ],
)
def test_an_argument_of_another_type_is_refused_at_once(name: str, value: Any) -> None:
    arguments = {"place": "sqlite:///test.db", "query": "orders", "key": "id", name: value}
    with pytest.raises(UsageError, match="found" if name != "place" else "is no database"):
        SqlSource(**arguments)
    with pytest.raises(UsageError, match="table is a text, such as 'totals'; found 5"):
        SqlSink("sqlite:///test.db", 5)  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "missing.db"
    source = SqlSource(f"sqlite:///{file}", "orders", key="id")
    with pytest.raises(SourceError, match="there is no such file"):
        source.partitions()
    with pytest.raises(SourceError, match="there is no such file"):
        read(source)
    with pytest.raises(SinkError, match="there is no such file"):
        SqlSink(f"sqlite:///{file}", "orders").open(ps.SinkContext())
    assert not file.exists()


@pytest.mark.parametrize(
    "values",
    [
        [datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 5)],
        [datetime.date(2026, 1, 1), decimal.Decimal("1.5")],
        [datetime.date(2026, 1, 1), 5],
        [datetime.time(5), 5],
    ],
)
def test_values_that_would_be_another_in_a_column_of_sqlite_are_refused(
    tmp_path: Path, values: list[Any]
) -> None:
    place = f"sqlite:///{tmp_path / 'test.db'}"
    (tmp_path / "test.db").touch()
    query(place, "CREATE TABLE found (x)")
    writer = SqlSink(place, "found").open(ps.SinkContext())
    with pytest.raises(SinkError, match=r"column 'x': .* would be another value as"):
        writer.write([(value,) for value in values])
    writer.close()


def test_types_that_sqlite_guesses_are_to_be_given(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'test.db'}"
    query(
        place,
        "CREATE TABLE visits (n INTEGER, at)",
        "INSERT INTO visits VALUES (1, 2), (2, 3), (3, '')",
    )
    source = SqlSource(place, "visits", key="n", batch_rows=1)
    with pytest.raises(WorkerError, match=r"(?s)another schema .* give it schema="):
        ps.testing.collect(lambda scope: scope.source(source))


def test_texts_that_are_one_to_the_database_stay_together(tmp_path: Path) -> None:
    # What comes after 'b' there is not 'B', so that a batch which ends between them loses rows.
    place = f"sqlite:///{tmp_path / 'test.db'}"
    words = ["a", "A", "b", "B", "c"]
    query(
        place,
        "CREATE TABLE words (word TEXT COLLATE NOCASE)",
        f"INSERT INTO words VALUES {', '.join(f'({word!r})' for word in words)}",
    )
    for batch_rows in (2, 3, 4, 100):
        source = SqlSource(place, "SELECT * FROM words -- all", key="word", batch_rows=batch_rows)
        assert sorted(row["word"] for row in read(source)) == sorted(words), batch_rows
    with pytest.raises(SourceError, match="2 rows at least have the key"):
        read(SqlSource(place, "words", key="word", batch_rows=1))


def test_keys_may_be_times(server: str) -> None:
    begin = datetime.datetime(2024, 1, 1)
    values = ", ".join(f"('{begin + datetime.timedelta(hours=n)}')" for n in range(5))
    query(
        server,
        "CREATE TABLE visits (at TIMESTAMP)",
        f"INSERT INTO visits VALUES {values}",
    )
    source = SqlSource(server, "visits", key="at", batch_rows=2)
    assert [row["at"].hour for row in read(source, begin)] == [1, 2, 3, 4]
    check_source(source)
    query(server, "DROP TABLE visits")


def test_keys_may_be_infinite_or_no_numbers(server: str) -> None:
    values = ["-infinity", "-0.0", "0.0", "infinity", "nan", "nan"]
    rows = ", ".join(f"('{value}', {n})" for n, value in enumerate(values))
    query(
        server,
        "CREATE TABLE shares (share DOUBLE PRECISION, n INTEGER)",
        f"INSERT INTO shares VALUES {rows}",
    )
    for batch_rows in (2, 3, 100):
        source = SqlSource(server, "shares", key="share", batch_rows=batch_rows)
        assert sorted(row["n"] for row in read(source)) == list(range(6))
        check_source(source, n_positions=2)
    query(server, "DROP TABLE shares")


def test_keys_of_a_type_that_does_not_come_back_are_refused_at_once(server: str) -> None:
    # Where few rows have them, a later run would fail that goes on behind the last.
    query(
        server,
        "CREATE TABLE sums (cents NUMERIC, id UUID)",
        "INSERT INTO sums VALUES (1.5, gen_random_uuid()), (2.5, gen_random_uuid())",
    )
    with pytest.raises(SchemaError, match=r"the key 'cents' is of type .*: cast it in the query"):
        read(SqlSource(server, "sums", key="cents"))
    cast = SqlSource(server, "SELECT cents::FLOAT8 AS cents FROM sums", key="cents")
    assert read(cast) == [{"cents": 1.5}, {"cents": 2.5}]
    assert len(read(SqlSource(server, "sums", key="id", batch_rows=1))) == 2
    query(server, "DROP TABLE sums")


def test_keys_of_several_types_are_all_read(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'keys.db'}"
    query(
        place,
        "CREATE TABLE keys (id, n INTEGER)",
        "INSERT INTO keys VALUES (1, 0), (2.5, 1), ('10', 2), ('a', 3), (x'30', 4), (x'31', 5)",
    )
    for batch_rows in (1, 2, 3, 10):
        found = read(SqlSource(place, "keys", key="id", batch_rows=batch_rows))
        assert [row["n"] for row in found] == list(range(6))


def test_columns_that_are_changed_while_rows_are_read_are_read_as_they_are(place: str) -> None:
    orders(place, [1])
    reader = SqlSource(place, "orders", key="id", follow_s=1e-9).open("rows", None)

    def after(*statements: str) -> list[Any]:
        query(place, *statements)
        rows: list[Any] = next(item for item in reader if item)[0].to_pylist()
        return rows

    assert after() == [{"id": 1, "text": "text 0"}]
    rows = after("ALTER TABLE orders ADD n INTEGER", "INSERT INTO orders VALUES (2, 'b', 5)")
    assert rows == [{"id": 2, "text": "b", "n": 5}]
    rows = after("ALTER TABLE orders DROP COLUMN text", "INSERT INTO orders VALUES (3, 6)")
    assert rows == [{"id": 3, "n": 6}]
    reader.close()  # type: ignore[attr-defined]


def test_names_may_have_blanks_quotes_and_dots(place: str) -> None:
    columns = ["the.key", 'a "b"']
    for name in ('"my orders"', '"a.b"', '"q""q"', '"order"'):
        query(place, f'CREATE TABLE {name} ("the.key" INTEGER, "a ""b""" TEXT)')
        sink = SqlSink(place, name)
        writer = sink.open(ps.SinkContext())
        writer.write([(2, "x"), dict(zip(columns, (1, None), strict=True))])
        sink.commit([writer.prepare(0)])
        writer.close()
        for of in (name, f"SELECT * FROM {name}"):
            source = SqlSource(place, of, key="the.key", batch_rows=1)
            assert [tuple(row.values()) for row in read(source)] == [(1, None), (2, "x")]


def test_a_column_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'test.db'}"
    totals(place)
    writer = SqlSink(place, "totals").open(ps.SinkContext())
    for cents in (2**63, "\ud800", [1, "a"]):
        values = cents if isinstance(cents, list) else [cents]
        with pytest.raises(SinkError, match="column 'cents': "):
            writer.write([("a", value, 0.5) for value in values])
    writer.close()


def test_decimals_of_any_size_are_written(server: str) -> None:
    query(server, "CREATE TABLE sums (shop TEXT, cents NUMERIC)")
    sink = SqlSink(server, "sums")
    writer = sink.open(ps.SinkContext())
    writer.write([("a", decimal.Decimal("1.25")), ("b", None), ("c", 7), ("d", 2**70)])
    writer.write([{"cents": None, "shop": "e"}])
    writer.write(pa.RecordBatch.from_pydict({"cents": [decimal.Decimal("2.5")], "shop": ["f"]}))
    sink.commit([writer.prepare(0)])
    assert query(server, "SELECT shop, cents::TEXT FROM sums ORDER BY shop") == [
        *[("a", "1.25"), ("b", None), ("c", "7"), ("d", str(2**70)), ("e", None), ("f", "2.5")],
    ]
    ((rows, _),) = SqlSource(server, "sums", key="shop").open("rows", None)  # type: ignore[misc]
    query(server, "DELETE FROM sums")
    writer.write(rows.to_batches()[0])
    sink.commit([writer.prepare(1)])
    assert query(server, "SELECT string_agg(cents::TEXT, ' ' ORDER BY shop) FROM sums") == [
        (f"1.25 7 {2**70} 2.5",)
    ]
    for value in (1.5, "1.5", True):
        with pytest.raises(SinkError, match="'cents' is NUMERIC, and takes decimals and integers"):
            writer.write([("a", value)])
    with pytest.raises(SinkError, match="'cents' is NUMERIC, and takes decimals and integers"):
        writer.write([("a", decimal.Decimal(1)), ("b", 1.5)])
    writer.close()
    query(server, "DROP TABLE sums", "DROP TABLE pointstamp_commits")


def test_positions_in_another_table_or_by_another_key_are_refused(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/shop.db"
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        for table in ("one", "two"):
            connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, other INTEGER)")
            connection.execute(f"INSERT INTO {table} VALUES (1, 5), (2, 4)")
    connection.close()

    def seen(query: str, key: str) -> list[Any]:
        found: list[Any] = []

        def flow(scope: Any) -> None:
            scope.source(SqlSource(place, query, key=key)).inspect_batch(
                lambda time, batch: found.extend(batch.to_pylist())
            )

        ps.run(flow, threads=True, checkpoint=tmp_path / "checkpoint")
        return [row["id"] for row in found]

    assert seen("one", "id") == [1, 2]
    assert seen("one", "id") == []
    for query, key, now in (
        ("two", "id", "rows of two by id"),
        ("one", "other", "rows of one by other"),
        ("SELECT * FROM one", "id", "rows by id"),
    ):
        with pytest.raises(WorkerError, match=f"positions in {now}; .* positions in rows of one "):
            seen(query, key)


def test_a_table_that_is_followed_gives_what_is_inserted(place: str) -> None:
    orders(place, [1])
    reader = SqlSource(place, "orders", key="id", follow_s=0.01).open("rows", None)
    rows, position = next(item for item in reader if item)
    assert (rows.num_rows, position) == (1, 1)
    assert next(reader) is None
    query(place, "INSERT INTO orders VALUES (7, 'late')")
    rows, position = next(item for item in reader if item)
    assert (rows.column("text").to_pylist(), position) == (["late"], 7)
    reader.close()  # type: ignore[attr-defined]


def test_what_cannot_be_read_is_said(place: str) -> None:
    orders(place, [1, 2, 2, 2])
    with pytest.raises(SourceError, match=r"3 rows at least have the key 2: read by"):
        read(SqlSource(place, "orders", key="id", batch_rows=2))
    with pytest.raises(SourceError, match="nothing"):
        read(SqlSource(place, "nothing", key="id"))
    with pytest.raises((ColumnError, SourceError), match="number"):
        read(SqlSource(place, "orders", key="number"))
    with pytest.raises(ColumnError, match=r"has no columns \['m'\]; it has \['id', 'text'\]"):
        read(SqlSource(place, "orders", key="id", schema=pa.schema([("m", pa.int64())])))
    with pytest.raises(SchemaError, match="do not fit"):
        read(SqlSource(place, "orders", key="id", schema=pa.schema([("text", pa.int64())])))
    with pytest.raises(PositionError, match=r"there is no query 'x', but \['rows'\]"):
        read(SqlSource(place, "orders", key="id"), None, "x")


def test_what_is_no_database_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"'shop\.db' is no database: give 'sqlite:///FILE'"):
        Database("shop.db")
    assert repr(Database("postgresql://me:secret@host/x")) == (
        "Database('postgresql://me:...@host/x')"
    )
    missing = {"adbc_driver_sqlite"}
    monkeypatch.setattr(
        "pointstamp.formats.extras.find_spec", lambda name: None if name in missing else name
    )
    with pytest.raises(MissingExtraError, match="pip install adbc-driver-sqlite"):
        Database("sqlite:///shop.db")
    missing.add("adbc_driver_manager")
    with pytest.raises(MissingExtraError, match=r"pip install 'pointstamp\[sql\]'"):
        Database("sqlite:///shop.db")


def totals(place: str) -> None:
    query(place, "CREATE TABLE totals (shop VARCHAR(20), cents INTEGER, share REAL)")


def test_a_table_keeps_the_laws_of_a_transactional_sink(place: str) -> None:
    totals(place)
    batches: list[Any] = [
        [("a", 1, 0.5), {"cents": 2, "shop": "b", "share": None}],
        pa.RecordBatch.from_pydict({"cents": [3, None], "share": [0.25, 1.0], "shop": ["c", "d"]}),
    ]
    check_sink(SqlSink(place, "totals"), batches, lambda: query(place, "SELECT * FROM totals"))
    first = query(place, "SELECT * FROM totals WHERE cents = 3")[0]
    assert first == ("c", 3, 0.25)
    assert len(query(place, "SELECT * FROM pointstamp_commits")) == 2  # one of each worker


def test_what_does_not_fit_a_table_is_refused(place: str) -> None:
    totals(place)
    writer = SqlSink(place, "totals").open(ps.SinkContext())
    with pytest.raises(SinkError, match=r"a record has the columns \['shop', .*; found \('a', 1\)"):
        writer.write([("a", 1)])
    with pytest.raises(SinkError, match=r"the table has the columns .*; found \['shops'\]"):
        writer.write(pa.RecordBatch.from_pydict({"shops": ["a"]}))
    with pytest.raises(SinkError, match=r"found \['cents', 'cents'\]"):
        writer.write(pa.RecordBatch.from_arrays([pa.array([1])] * 2, ["cents", "cents"]))
    with pytest.raises(SinkError, match=r"found \['cent', 'shop'\] in \{'shop': 'a', 'cent': 1\}"):
        writer.write([{"shop": "a", "cent": 1}])
    with pytest.raises(SinkError, match=r"found \[\] in \{\}"):
        writer.write([{}])
    with pytest.raises(SinkError, match=r"'nothing'.*: there is no such table"):
        SqlSink(place, "nothing").open(ps.SinkContext())
    with pytest.raises(SinkError, match="nowhere"):
        SqlSink("sqlite:////nowhere/at/all.db", "totals").open(ps.SinkContext())
    writer.close()


def filling(place: str) -> None:
    """A table that can fill all but the shop."""
    key = "id SERIAL PRIMARY KEY" if place.startswith("postgres") else "id INTEGER PRIMARY KEY"
    query(
        place,
        f"CREATE TABLE totals ({key}, shop VARCHAR(20) NOT NULL, cents INTEGER, "
        "coin VARCHAR(3) DEFAULT 'EUR' NOT NULL, "
        "more INTEGER GENERATED ALWAYS AS (cents + 1) STORED)",
    )


def test_what_a_table_fills_may_be_absent(place: str) -> None:
    filling(place)
    sink = SqlSink(place, "totals")
    batches: list[Any] = [
        [{"shop": "a", "cents": 1}, {"shop": "b", "cents": 2}, {"shop": "c"}],
        [{"coin": "USD", "shop": "d"}, {"cents": None, "shop": "e"}],
        pa.RecordBatch.from_pydict({"cents": [5, None], "shop": ["f", "g"]}),
    ]
    rows = "SELECT shop, cents, coin, more FROM totals"
    check_sink(sink, batches, lambda: query(place, rows))
    found = {row[0]: row[1:] for row in query(place, rows)}
    assert found == {
        "a": (1, "EUR", 2),
        "b": (2, "EUR", 3),
        "c": (None, "EUR", None),
        "d": (None, "USD", None),
        "e": (None, "EUR", None),
        "f": (5, "EUR", 6),
        "g": (None, "EUR", None),
    }


def test_records_without_what_is_null_are_one_batch_with_those_that_have_it(place: str) -> None:
    totals(place)
    sink = SqlSink(place, "totals")
    writer = sink.open(ps.SinkContext())
    writer.write([("a", 1, 0.5), {"shop": "b"}, {"cents": 3, "shop": "c"}, {"share": 1.0}])
    token = writer.prepare(0)
    writer.close()
    assert token is not None
    assert [batch.num_rows for batch in token["batches"]] == [4]
    sink.commit([token])
    rows = [("a", 1, 0.5), ("b", None, None), ("c", 3, None), (None, None, 1.0)]
    assert query(place, "SELECT * FROM totals") == rows


def test_what_a_table_needs_is_asked_for_before_anything_is_written(place: str) -> None:
    filling(place)
    records = [{"shop": "a"}, {"cents": 2, "coin": "USD"}]
    with pytest.raises(WorkerError, match=r"\['shop'\] are needed; found \['cents', 'coin'\] in"):
        ps.run(once(place, records), threads=True)
    batch = pa.RecordBatch.from_pydict({"cents": [1]})
    with pytest.raises(SinkError, match=r"\['shop'\] are needed; found \['cents'\]"):
        SqlSink(place, "totals").open(ps.SinkContext()).write(batch)
    assert query(place, "SELECT * FROM totals") == []


def test_a_key_that_sqlite_does_not_fill_is_needed(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'test.db'}"
    keys = {
        "a": "k TEXT PRIMARY KEY",
        "b": "k INTEGER, n INTEGER, PRIMARY KEY (k, n)",
        "c": "k INTEGER PRIMARY KEY, n INTEGER) WITHOUT ROWID --",
    }
    for table, columns in keys.items():
        query(place, f"CREATE TABLE {table} ({columns}\n)".replace("--\n)", ""))
        writer = SqlSink(place, table).open(ps.SinkContext())
        with pytest.raises(SinkError, match=r"of which \['k'.*are needed"):
            writer.write([{"n": 1}])
        writer.close()


def test_decimals_may_be_absent(server: str) -> None:
    query(server, "CREATE TABLE sums (shop TEXT, cents NUMERIC, share NUMERIC DEFAULT 0.5)")
    try:
        writer = SqlSink(server, "sums").open(ps.SinkContext())
        writer.write([{"shop": "a", "cents": decimal.Decimal("1.25")}, {"shop": "b"}])
        SqlSink(server, "sums").commit([writer.prepare(0)])
        writer.close()
        found = query(server, "SELECT shop, cents::TEXT, share::TEXT FROM sums")
        assert found == [("a", "1.25", "0.5"), ("b", None, "0.5")]
    finally:
        query(server, "DROP TABLE sums")


@pytest.mark.parametrize(
    "value", [decimal.Decimal("1.5"), datetime.time(1), datetime.timedelta(1), [1], {"a": 1}]
)
def test_what_sqlite_does_not_take_is_refused_before_a_snapshot_has_it(
    value: Any, tmp_path: Path
) -> None:
    # A snapshot that has it would be refused by the database each time a program begins with it.
    place = f"sqlite:///{tmp_path / 'test.db'}"
    query(place, "CREATE TABLE totals (shop TEXT, cents)")
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(WorkerError, match=r"column 'cents' is of type .* SQLite does not take"):
        ps.run(once(place, [("a", value)]), threads=True, checkpoint=checkpoint)
    ps.run(once(place, [("a", 7)]), threads=True, checkpoint=checkpoint)
    assert query(place, "SELECT * FROM totals") == [("a", 7)]


def once(place: str, records: list[Any], **arguments: Any) -> Callable[[Any], None]:
    """A dataflow of some records to the table `totals`."""

    def flow(scope: Any) -> None:
        scope.source(Once(records)).sink(SqlSink(place, "totals", **arguments))

    return flow


CHECKED = (
    "CREATE TABLE totals (shop VARCHAR(20) PRIMARY KEY, cents INTEGER NOT NULL CHECK (cents < 100))"
)


def test_what_a_table_refuses_ends_the_program_before_a_snapshot_has_it(
    place: str, tmp_path: Path
) -> None:
    query(place, CHECKED, "INSERT INTO totals VALUES ('old', 1)")
    checkpoint = tmp_path / "checkpoint"
    refused: list[list[Any]] = [[("old", 2)], [("a", 1), ("a", 2)], [("a", None)], [("a", 100)]]
    for records in refused:
        with pytest.raises(WorkerError, match=r"epoch .* does not count, as its rows are refused"):
            ps.run(once(place, records), threads=True, checkpoint=checkpoint)
    ps.run(once(place, [("a", 7)]), threads=True, checkpoint=checkpoint)
    assert query(place, "SELECT * FROM totals") == [("old", 1), ("a", 7)]


def test_an_epoch_is_tried_with_those_before_it_that_are_not_committed(place: str) -> None:
    query(place, CHECKED)
    sink = SqlSink(place, "totals")
    writer = sink.open(ps.SinkContext())
    tokens = []
    for epoch, shop in enumerate("ab"):
        writer.write([(shop, 1)])
        tokens.append(writer.prepare(epoch))
    sink.commit(tokens[:1])
    writer.write([("b", 2)])
    with pytest.raises(SinkError, match="epoch 2 does not count"):
        writer.prepare(2)
    sink.commit(tokens)
    writer.write([("a", 2)])
    with pytest.raises(SinkError, match="epoch 3 does not count"):
        writer.prepare(3)
    writer.close()
    assert query(place, "SELECT * FROM totals ORDER BY shop") == [("a", 1), ("b", 1)]


def test_with_many_rows_before_it_an_epoch_is_tried_alone(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_sink, "MAX_TRIED", 1)
    query(place, CHECKED)
    writer = SqlSink(place, "totals").open(ps.SinkContext())
    for epoch, shop in enumerate(["a", "b", "a"]):  # of which the third has two before it
        writer.write([(shop, 1)])
        writer.prepare(epoch)
    writer.write([("a", 2)])
    with pytest.raises(SinkError, match="epoch 3 does not count"):
        writer.prepare(3)
    writer.close()


def test_rows_may_name_those_of_another_sink(place: str) -> None:
    query(
        place,
        "CREATE TABLE shops (shop VARCHAR(20) PRIMARY KEY)",
        "CREATE TABLE totals (shop VARCHAR(20) REFERENCES shops, cents INTEGER)",
    )
    sinks = {name: SqlSink(place, name) for name in ("shops", "totals")}
    writers = {name: sink.open(ps.SinkContext()) for name, sink in sinks.items()}
    writers["shops"].write([("a",)])
    writers["totals"].write([("a", 1)])
    tokens = {name: writer.prepare(1) for name, writer in writers.items()}
    for name, sink in sinks.items():
        sink.commit([tokens[name]])
    assert query(place, "SELECT * FROM totals") == [("a", 1)]
    for statement in ("DROP TABLE totals", "DROP TABLE shops"):
        query(place, statement)


def test_what_is_refused_when_it_counts_is_there_when_that_is_mended(
    place: str, tmp_path: Path
) -> None:
    query(place, CHECKED)

    def flow(scope: Any) -> None:
        for name in ("one", "other"):  # neither sees the rows of the other when it tries its own
            once(place, [("a", 1)], name=name)(scope)

    with pytest.raises(WorkerError, match=r"cannot commit epoch .*: mend what refuses it, and"):
        ps.run(flow, threads=True, checkpoint=tmp_path / "checkpoint")
    query(place, "UPDATE totals SET shop = 'b'")
    ps.run(flow, threads=True, checkpoint=tmp_path / "checkpoint")
    assert query(place, "SELECT shop FROM totals ORDER BY shop") == [("a",), ("b",)]


def test_two_sinks_of_one_name_are_refused(place: str) -> None:
    # The second one would find its epochs committed, and its rows would be lost.
    totals(place)

    def flow_of(*names: str | None) -> Callable[[Any], None]:
        def flow(scope: Any) -> None:
            for n, name in enumerate(names):
                rows = scope.source(Once([(f"shop {n}", n, 0.5)]))
                rows.sink(SqlSink(place, "totals", name=name))

        return flow

    with pytest.raises(WorkerError, match="two sinks of this run have the name 'totals'"):
        ps.run(flow_of(None, None), threads=True)
    assert query(place, "SELECT * FROM totals") == []
    ps.run(flow_of(None, "other"), threads=True)
    assert len(query(place, "SELECT * FROM totals")) == 2


def test_two_sinks_of_one_file_that_is_named_in_two_ways_are_refused(tmp_path: Path) -> None:
    totals(place := f"sqlite:///{tmp_path}/test.db")

    def flow(scope: Any) -> None:
        for folder in (tmp_path, tmp_path / ".." / tmp_path.name):
            rows = scope.source(Once([("shop", 1, 0.5)]))
            rows.sink(SqlSink(f"sqlite:///{folder}/test.db", "totals"))

    with pytest.raises(WorkerError, match="two sinks of this run have the name 'totals'"):
        ps.run(flow, threads=True)
    assert query(place, "SELECT * FROM totals") == []


class Once:
    """A source of some records."""

    def __init__(self, records: list[Any]) -> None:
        self.records = records

    def partitions(self) -> list[str]:
        return ["all"]

    def open(self, partition: str, position: int | None) -> Iterator[tuple[list[Any], int]]:
        if position is None:
            yield self.records, 1


def test_a_connection_that_commits_by_itself_is_made_one_that_does_not(tmp_path: Path) -> None:
    file = str(tmp_path / "test.db")
    totals(f"sqlite:///{file}")

    def connect() -> Any:
        from adbc_driver_sqlite import dbapi

        return dbapi.connect(file, autocommit=True)

    sink = SqlSink(connect, "totals")
    writer = sink.open(ps.SinkContext())
    tokens = []
    for epoch in (1, 2):
        writer.write([("a", epoch, 0.0)])
        tokens.append(writer.prepare(epoch))
    tokens[1]["batches"].append(pa.RecordBatch.from_pydict({"other": [1]}))
    with pytest.raises(SinkError):
        sink.commit(tokens)
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT count(*) FROM totals").fetchone() == (0,)
    database.close()
    sink.commit(tokens[:1])
    assert query(f"sqlite:///{file}", "SELECT cents FROM totals") == [(1,)]


class LostCommit(EndsAfterCommit, SqlSink):
    """Such a sink."""


def summed(place: str, sink: type[SqlSink]) -> Callable[[Any], None]:
    """From a table to another one: the running sums of each key."""

    def halved(batch: Any) -> Any:
        return [(f"half {n % 2}", n) for n in batch.column("id").to_pylist()]

    def add(key: str, n: int, total: int) -> Any:
        return total + n, [(key, total + n, 0.0)]

    def flow(scope: Any) -> None:
        halves = {str(n): f"SELECT * FROM orders WHERE id % 2 = {n}" for n in (0, 1)}
        rows = scope.source(SqlSource(place, halves, key="id", batch_rows=5))
        rows.map_batches(halved).state_machine(add, default=0).sink(sink(place, "totals"))

    return flow


def test_a_run_that_ends_after_a_commit_goes_on_exactly_once(place: str, tmp_path: Path) -> None:
    orders(place, range(60))
    totals(place)
    LostCommit.n_left = 1

    def run(workers: int) -> None:
        ps.run(
            summed(place, LostCommit),
            workers,
            threads=True,
            checkpoint=tmp_path / "checkpoint",
            epoch_s=0.01,
        )

    with pytest.raises(WorkerError, match="the program ends here"):
        run(2)
    assert query(place, "SELECT * FROM totals")  # some of it is committed
    run(1)
    query(place, "INSERT INTO orders VALUES (60, 'late')")
    run(2)
    expected, sums = [], [0, 0]
    for n in range(61):
        sums[n % 2] += n
        expected.append((f"half {n % 2}", sums[n % 2]))
    assert sorted(query(place, "SELECT shop, cents FROM totals")) == sorted(expected)


def test_workers_that_are_processes_write_to_one_file(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'test.db'}"
    orders(place, range(20))
    totals(place)
    ps.run(summed(place, SqlSink), 2, checkpoint=tmp_path / "checkpoint", epoch_s=0.01)
    assert len(query(place, "SELECT * FROM totals")) == 20


class FusedSql(SqlSink):
    """A table that outlives the workers, and crash points around its commits."""

    def __init__(self, fuse: Fuse, place: str) -> None:
        super().__init__(place, "sums")
        self._fuse = fuse
        self._where = place
        query(place, "CREATE TABLE sums (key TEXT, total INTEGER)")

    def open(self, context: Any) -> Any:
        self._fuse.burn()
        writer: Any = super().open(context)
        prepare = writer.prepare

        def prepare_with_points(epoch: int) -> Any:
            self._fuse.burn()
            token = prepare(epoch)
            self._fuse.burn()
            return token

        writer.prepare = prepare_with_points
        return writer

    def commit(self, tokens: Any) -> None:
        for token in tokens:  # one by one, so that the program can end between two
            self._fuse.burn()
            super().commit([token])
        self._fuse.burn()

    def seen(self) -> Counter[Any]:
        return Counter(query(self._where, "SELECT key, total FROM sums"))


class Forgetful(FusedSql):
    """Does not look whether an epoch is committed."""

    def _is_committed(self, connection: Any, token: Any) -> bool:
        super()._is_committed(connection, token)
        return False


@pytest.mark.parametrize("seed", range(12))
def test_a_flow_that_crashes_anywhere_has_its_rows_exactly_once(seed: int, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'test.db'}"
    assert outlived(seed, make_store=lambda fuse: FusedSql(fuse, place)) == expected()


def test_rows_that_are_inserted_again_are_found(tmp_path: Path) -> None:
    for seed in range(12):
        place = f"sqlite:///{tmp_path / str(seed)}.db"
        if (
            outlived(seed, make_store=lambda fuse, place=place: Forgetful(fuse, place))
            != expected()
        ):
            return
    pytest.fail("no crash was between a commit and the end of its run")


def test_a_table_that_is_locked_by_a_writer_is_waited_for(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'test.db'}"
    orders(place, [1])
    # By the same copy of SQLite: a process does not see its own locks of files.
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(str(tmp_path / "test.db"), autocommit=True) as writer:

        def run(statement: str) -> None:
            with writer.cursor() as cursor:
                cursor.execute(statement).fetchall()

        run("BEGIN EXCLUSIVE")
        run("INSERT INTO orders VALUES (2, 'late')")
        commit = threading.Timer(0.3, run, ["COMMIT"])
        commit.start()
        found = read(SqlSource(place, "orders", key="id"))
        commit.join()
    assert [row["id"] for row in found] == [1, 2]
