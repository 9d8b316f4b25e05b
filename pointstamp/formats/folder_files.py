"""The files in a folder and its subfolders, on any file system; hidden ones are left out.

Arrow follows symbolic links, also one to a folder in which the link is, some forty times: each
file would be there as often, and of two such links there would be no end. So on this machine each
folder is listed by itself, and such a link is not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyarrow import fs


def files_below(filesystem: fs.FileSystem, folder: str) -> Iterator[fs.FileInfo]:
    """Each file in a folder that is there, and in its subfolders, in no order.

    Left out is what has, itself or in a folder between, a name that begins with `.` or `_`; and
    links to folders in which they are themselves.

    Raises
    ------
    OSError
        If a folder cannot be listed.
    UnicodeDecodeError
        If a name is not UTF-8.
    """
    root = local_path(filesystem, folder)
    if root is not None:
        yield from _followed(filesystem, folder, root, ())
        return
    for found in filesystem.get_file_info(fs.FileSelector(folder, recursive=True)):
        if found.type == fs.FileType.File and not _is_hidden(found.path[len(folder) :]):
            yield found


def local_path(filesystem: fs.FileSystem, path: str) -> str | None:
    """Where a path of a file system is on this machine; None of one that is elsewhere.

    >>> local_path(fs.SubTreeFileSystem("/data", fs.LocalFileSystem()), "sales/new")
    '/data/sales/new'
    """
    if isinstance(filesystem, fs.SubTreeFileSystem):
        below = f"{filesystem.base_path.rstrip('/')}/{path.lstrip('/')}"
        return local_path(filesystem.base_fs, below)
    return path if isinstance(filesystem, fs.LocalFileSystem) else None


def one_path(filesystem: fs.FileSystem, path: str) -> str:
    """A path by a name that is the same however it is given: on this machine that of its place.

    >>> one_path(fs.SubTreeFileSystem("/", fs.LocalFileSystem()), "/sys/../proc/")
    '/proc'
    """
    place = local_path(filesystem, path)
    return path.rstrip("/") if place is None else os.path.realpath(place)


def _followed(
    filesystem: fs.FileSystem, folder: str, place: str, outer: tuple[str, ...]
) -> Iterator[fs.FileInfo]:
    """Those of a folder of this machine, at `place`; `outer` are the real ones it was found in."""
    real = os.path.realpath(place)
    within = (*outer, real)
    # Not the first: a folder may be gone since it was found.
    selector = fs.FileSelector(folder, allow_not_found=bool(outer))
    for found in filesystem.get_file_info(selector):
        if _is_hidden(found.base_name):
            continue
        if found.type == fs.FileType.File:
            yield found
        elif found.type == fs.FileType.Directory:
            below = os.path.join(place, found.base_name)  # noqa: PTH118  (a text, as Arrow's are)
            is_link = os.path.islink(below)  # noqa: PTH114
            if not (is_link and _is_around(os.path.realpath(below), within)):
                yield from _followed(filesystem, found.path, below, within)


def _is_around(folder: str, within: tuple[str, ...]) -> bool:
    """Whether a folder is one of these, or has one of them in it."""
    return any(f"{each}/".startswith(f"{folder.rstrip('/')}/") for each in within)


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split("/"))
