"""Files that are there whole or not at all.

A file is written beside its place under another name, and takes its place when it
is whole: a reader sees the old file, or none, or all of the new one. What
stands in the place already is replaced only if it is an ordinary file: a device or
a pipe has its own meaning. A link stays, and what it leads to is replaced.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pointstamp.errors import FileFormatError


def place_of(path: str | os.PathLike[str]) -> Path:
    """Where a file of this name is written: links followed.

    Raises
    ------
    FileFormatError
        If no file can be there: there is no name, or no directory, or something else
        than a file.
    """
    if Path(path) == Path():
        raise FileFormatError(f"'{path}': an empty name, or '.', names no file; name one to write")
    # Those of `os.path` and not of Path, which raise for links in a circle and long names.
    place = Path(os.path.realpath(path))
    if os.path.isdir(place):  # noqa: PTH112
        raise FileFormatError(f"{path}: this is a directory, and a file is needed")
    if not os.path.isdir(place.parent):  # noqa: PTH112
        raise FileFormatError(f"{path}: there is no directory {place.parent}")
    if os.path.lexists(place) and not os.path.isfile(place):  # noqa: PTH113
        raise FileFormatError(
            f"{path}: this is no ordinary file, and is not replaced by one; name another"
        )
    return place


@contextlib.contextmanager
def folder_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder for what is written on the way to a file, on the same disk; removed at the end.

    Raises
    ------
    FileFormatError
        If there is no writing in that place.
    """
    place = place_of(path)
    try:
        folder = tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent)
    except OSError as error:
        raise _unwritten(path, error) from error
    with folder as name:
        yield Path(name)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a file to write, which is renamed to `path` if the block succeeds.

    Raises
    ------
    FileFormatError
        If it cannot be written. What was there before stays.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a")) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a']
    """
    place = place_of(path)
    try:
        with folder_beside(place) as folder:
            temporary = folder / place.name
            yield temporary
            temporary.replace(place)
    except OSError as error:
        raise _unwritten(path, error) from error


def _unwritten(path: str | os.PathLike[str], error: OSError) -> FileFormatError:
    return FileFormatError(f"{path}: cannot be written: {error.strerror or error}")
