"""Arguments of sources and sinks, looked at when they are given: what is refused is named.

A wrong one would be noticed by a library, when something is read or written for the first time,
and called by what the library knows of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pointstamp.containers.column_texts import columns_named
from pointstamp.errors import SchemaError, UsageError

_ASCII = "".join(map(chr, range(128)))


def check_text(name: str, found: Any, example: str) -> None:
    """Raise unless an argument is a text that is not empty.

    >>> check_text("servers", "a:9092", "'host:9092'")
    >>> check_text("servers", "", "'host:9092'")
    Traceback (most recent call last):
    ...
    pointstamp.errors.UsageError: servers is a text, such as 'host:9092'; found ''
    """
    if not isinstance(found, str) or not found:
        raise UsageError(f"{name} is a text, such as {example}; found {found!r}")


def check_count(name: str, found: Any) -> None:
    """Raise unless an argument is an integer of at least 1.

    >>> check_count("batch_rows", 0)
    Traceback (most recent call last):
    ...
    pointstamp.errors.UsageError: batch_rows is an integer of at least 1; found 0
    """
    if type(found) is not int or found < 1:
        raise UsageError(f"{name} is an integer of at least 1; found {found!r}")


def check_seconds(name: str, found: Any) -> None:
    """Raise unless an argument is a number of seconds above 0, or None.

    >>> check_seconds("follow_s", None)
    >>> check_seconds("follow_s", float("nan"))
    Traceback (most recent call last):
    ...
    pointstamp.errors.UsageError: follow_s is a number of seconds above 0; found nan
    """
    is_number = isinstance(found, int | float) and type(found) is not bool
    if found is not None and not (is_number and found > 0):
        raise UsageError(f"{name} is a number of seconds above 0; found {found!r}")


def check_encoding(found: Any) -> None:
    """Raise unless an argument is an encoding in which the characters of ASCII are their bytes.

    >>> check_encoding("latin-1")
    >>> check_encoding("utf-16")
    Traceback (most recent call last):
    ...
    pointstamp.errors.UsageError: encoding is one such as 'utf-8', 'latin-1' or 'cp1252', in \
which characters of ASCII are their bytes; found 'utf-16'
    """
    try:
        if _ASCII.encode(found) == _ASCII.encode():
            return
    except (LookupError, TypeError, UnicodeError):
        pass
    raise UsageError(
        "encoding is one such as 'utf-8', 'latin-1' or 'cp1252', in which characters of ASCII are "
        f"their bytes; found {found!r}"
    )


def check_delimiter(found: Any) -> None:
    """Raise unless an argument is a character that can stand between two values of CSV, or None.

    >>> check_delimiter(";")
    >>> check_delimiter(", ")
    Traceback (most recent call last):
    ...
    pointstamp.errors.UsageError: delimiter is a character of ASCII, such as ';' or '|', no \
quotation mark and no end of a line; found ', '
    """
    is_text = found is None or isinstance(found, str)
    if not is_text or found not in (None, *_ASCII) or found in ('"', "\n", "\r", "\0"):
        raise UsageError(
            "delimiter is a character of ASCII, such as ';' or '|', no quotation mark and no end "
            f"of a line; found {found!r}"
        )


def schema_of(found: Any) -> pa.Schema | None:
    """A schema that is given as one, as a text or as a `StructType`; None stays None.

    Raises
    ------
    UsageError
        If it is none of these.
    SchemaError
        If a text is none, or has a type that there is not; if it names a column twice.

    >>> schema_of("n long, word string?")
    n: int64 not null
    word: string
    >>> schema_of({"n": int})
    Traceback (most recent call last):
    ...
    pointstamp.errors.UsageError: schema is a pyarrow.Schema, a text such as \
'shop long, item string?' or a Spark StructType; found {'n': <class 'int'>}
    """
    if found is None or isinstance(found, pa.Schema):
        return found
    named = columns_named(found)
    if named is None:
        raise UsageError(
            "schema is a pyarrow.Schema, a text such as 'shop long, item string?' or a Spark "
            f"StructType; found {found!r}"
        )
    names = [name for name, _, _ in named]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaError(f"two columns are called {twice!r}, in schema={found!r}; rename one")
    return pa.schema([pa.field(name, kind.arrow(), null) for name, kind, null in named])


def place_of(name: str, found: Any) -> str:
    """A path or a URI as a text; an empty one is the top of a file system.

    Raises
    ------
    UsageError
        If it is neither.

    >>> place_of("folder", 5)
    Traceback (most recent call last):
    ...
    pointstamp.errors.UsageError: folder is a path or a URI; found 5
    """
    if not isinstance(found, str | os.PathLike) or not isinstance(os.fspath(found), str):
        several = isinstance(found, list | tuple)
        hint = "; a folder has several files, and concat puts several streams together" * several
        raise UsageError(f"{name} is a path or a URI; found {found!r}{hint}")
    return os.fspath(found)


def headers_of(found: Mapping[str, str] | None) -> dict[str, str]:
    """The headers of a request.

    Raises
    ------
    UsageError
        If they are no mapping of texts to texts of one line.

    >>> headers_of({"authorization": "Bearer abc"})
    {'authorization': 'Bearer abc'}
    >>> headers_of({"authorization": 5})
    Traceback (most recent call last):
    ...
    pointstamp.errors.UsageError: headers are texts of one line by name; found 'authorization': 5
    """
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise UsageError(
            f"headers are a mapping, such as {{'authorization': 'Bearer ...'}}; found {found!r}"
        )
    for name, value in found.items():
        texts = [text for text in (name, value) if isinstance(text, str)]
        if len(texts) < 2 or not name or any(c in text for text in texts for c in "\r\n"):
            raise UsageError(f"headers are texts of one line by name; found {name!r}: {value!r}")
    return dict(found)
