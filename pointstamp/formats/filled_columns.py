"""Which columns of a table its database can fill where an inserted row does not have them."""

from __future__ import annotations

from typing import Any

from pointstamp.formats.databases import execute, is_sqlite, quoted, vendor_of

# Of a primary key only a single INTEGER is filled, but for tables without row ids; any other takes
# NULL in SQLite, which no key is meant to be.
_OF_SQLITE = """
    SELECT name, dflt_value IS NULL AND hidden = 0 AND pk = 0 FROM pragma_table_xinfo($1)
    WHERE dflt_value IS NOT NULL OR hidden IN (2, 3) OR ("notnull" = 0 AND pk = 0) OR (
        pk = 1 AND upper(type) = 'INTEGER'
        AND (SELECT max(pk) FROM pragma_table_xinfo($1)) = 1
        AND NOT EXISTS (SELECT 1 FROM pragma_table_list($1) WHERE wr)
    )
"""

_OF_POSTGRESQL = """
    SELECT attname, CAST(NOT atthasdef AND attidentity = '' AS integer) FROM pg_attribute
    WHERE attrelid = CAST($1 AS regclass) AND attnum > 0 AND NOT attisdropped
    AND (NOT attnotnull OR atthasdef OR attidentity <> '')
"""


def filled_by(connection: Any, *parts: str) -> dict[str, bool]:
    """The columns that a row of a table may be without: with a default, computed, or nullable.

    By name, whether it is null then.

    Of a database that is neither SQLite nor PostgreSQL none: DuckDB's driver, for one, inserts
    only whole rows.

    Parameters
    ----------
    parts : str
        The name of the table, after that of its schema if it is given.
    """
    if is_sqlite(connection):
        rows = execute(connection, _OF_SQLITE, (parts[-1],))
    elif vendor_of(connection) == "PostgreSQL":
        rows = execute(connection, _OF_POSTGRESQL, (quoted(*parts),))
    else:
        return {}
    return {name: bool(is_null) for name, is_null in rows}
