"""Connections to databases by ADBC: of an address, or as a program makes them itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from pointstamp.errors import MissingExtraError, PointstampError, UsageError
from pointstamp.formats.extras import is_installed, require_extra

BUSY_MS = 60_000
"""How long to wait for a writer of a database of SQLite, of which there is one at a time."""

Connect = Callable[[], Any]
"""Gives a new connection of ADBC's `dbapi`."""

_DRIVERS = {
    "sqlite": "adbc_driver_sqlite",
    "postgresql": "adbc_driver_postgresql",
    "postgres": "adbc_driver_postgresql",
}

_PART = r'[^\W\d]\w*|"(?:[^"]|"")+"'
_NAME = re.compile(rf"({_PART})(?:\.({_PART}))?")


class Database:
    """Where connections come from; it may be sent to other processes.

    Parameters
    ----------
    place : str or callable
        "sqlite:///file.db" (four slashes for a path from the root), "postgresql://...", or a
        function that gives a new connection of ADBC's `dbapi`, of any driver.

    Raises
    ------
    UsageError
        If it is none of these.
    MissingExtraError
        If the driver manager is not installed, or the driver of the address.

    >>> Database("sqlite:///orders.db")
    Database('sqlite:///orders.db')
    """

    def __init__(self, place: str | Connect) -> None:
        require_extra("adbc_driver_manager", "sql", "databases are read by adbc-driver-manager")
        self.place = place
        if callable(place):
            return
        scheme, separator, rest = str(place).partition("://")
        driver = _DRIVERS.get(scheme)
        if driver is None or not separator or (scheme == "sqlite" and not rest.strip("/")):
            raise UsageError(
                f"{place!r} is no database: give 'sqlite:///FILE', 'postgresql://...', or a "
                "function that gives a connection of ADBC"
            )
        if not is_installed(driver):
            raise MissingExtraError(
                f"{place!r} needs a driver of ADBC: pip install {driver.replace('_', '-')}"
            )

    @contextmanager
    def connected(self, refusal: type[PointstampError]) -> Iterator[Any]:
        """A connection, which is closed at the end; what goes wrong is a `refusal`."""
        from adbc_driver_manager import Error

        self.check_is_there(refusal)
        connection = None
        try:
            connection = self._connected()
            if is_sqlite(connection):
                # Else what comes while another writes is refused at once.
                with connection.cursor() as cursor:
                    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}").fetchall()
            yield connection
        except Error as error:
            lines = str(error).strip().splitlines() or [repr(error)]
            raise refusal(f"{self!r}: {' '.join(line.strip() for line in lines[:2])}") from error
        finally:
            if connection is not None:
                connection.close()

    def check_is_there(self, refusal: type[PointstampError]) -> None:
        """Raise if it is a file that is not there, of which SQLite would make an empty database."""
        path = self._path()
        if path is None or path.startswith(("file:", ":memory:")) or Path(path).exists():
            return
        raise refusal(
            f"{self!r}: there is no such file (looked from {Path.cwd()}); a path from the root has "
            "four slashes"
        )

    @property
    def one_place(self) -> Any:
        """The place by a name that is the same however the file of a database is given."""
        path = self._path()
        is_file = path is not None and not path.startswith(("file:", ":memory:"))
        return Path(path).resolve() if path is not None and is_file else self.place

    def _path(self) -> str | None:
        """Of a database of SQLite."""
        scheme, _, rest = ("" if callable(self.place) else self.place).partition("://")
        return rest.removeprefix("/") if scheme == "sqlite" else None

    def _connected(self) -> Any:
        if callable(self.place):
            return self.place()
        module = import_module(f"{_DRIVERS[self.place.partition('://')[0]]}.dbapi")
        return module.connect(self._path() or self.place)

    def __repr__(self) -> str:
        shown = self.place
        if isinstance(shown, str):
            shown = re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:...@", shown)  # without the password
        return f"Database({shown!r})"


def is_sqlite(connection: Any) -> bool:
    """Whether a connection is to SQLite, which has no types of columns."""
    return vendor_of(connection) == "SQLite"


def vendor_of(connection: Any) -> str | None:
    """What the database is called, such as "PostgreSQL"; None if its driver does not say."""
    name: str | None = connection.adbc_get_info().get("vendor_name")
    return name


def execute(
    connection: Any, statement: str, values: tuple[Any, ...] | None = None
) -> list[tuple[Any, ...]]:
    """Have a statement run; the rows that it gives."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def parts_of_table(text: str) -> list[str] | None:
    """The schema, if there is one, and the name of a table; None of a text that is a query.

    A part that is no word is within double quotes, as SQL has it.

    >>> parts_of_table("shop.orders"), parts_of_table('"my orders"'), parts_of_table("SELECT 1")
    (['shop', 'orders'], ['my orders'], None)
    """
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    return [
        part[1:-1].replace('""', '"') if part.startswith('"') else part
        for part in found.groups()
        if part is not None
    ]


def quoted(*parts: str) -> str:
    """A name as SQL has it, part by part.

    >>> print(quoted("shop", "my orders"))
    "shop"."my orders"
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
