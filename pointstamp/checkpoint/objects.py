"""Whole objects by name, in a folder of this machine or in an object store.

An object is written at once and not changed afterwards, and a reader finds all of it
or none. On this machine that takes a temporary file, which is synced to the disk and
renamed; an object store does it by itself, and cannot rename, which is why nothing here
relies on renaming.

They differ in what a write that has failed means. On this machine it has not happened. In an
object store it may have, as the answer may be what was lost, and it may happen later.

Names are relative to the root, with `/` between their parts.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, wraps
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import parse_qs, urlsplit, urlunsplit
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from pointstamp.checkpoint.descriptor_reserve import with_reserve
from pointstamp.containers import Buffer
from pointstamp.errors import CheckpointError, TruncatedCheckpointError, UsageError

Method = TypeVar("Method", bound=Callable[..., Any])

TEMPORARY = "."
"""What the name of a file begins with that is still being written."""

_DELAYED = "allow_delayed_open"

IN_MEMORY_BYTES = 8 << 20
"""Of an object that is made piece by piece, how much is put together in memory for a store."""


class Objects(Protocol):
    """Objects below a root."""

    @property
    def fails_cleanly(self) -> bool:
        """Whether a write that fails has not happened and never will, and `create` is exclusive."""

    def put(self, name: str, data: Iterable[Buffer]) -> None:
        """Write an object of all of `data`; one that is there is replaced.

        Where it has to begin again, it iterates over `data` again.
        """

    def create(self, name: str, data: Sequence[Buffer]) -> bool:
        """Write an object unless there is one; whether it was written."""

    def get(self, name: str) -> pa.Buffer:
        """The bytes of an object; `TruncatedCheckpointError` if there is none."""

    def size(self, name: str) -> int | None:
        """How many bytes an object has; None if there is none."""

    def folders(self, name: str) -> list[str]:
        """The names, without what is before them, of the folders in one."""

    def files(self, name: str) -> list[str]:
        """The same of the objects in a folder, what an interrupted writer left among them."""

    def files_below(self, name: str) -> list[str]:
        """The names, without the folder's own and in order, of all objects in it at any depth."""

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens if there is none."""

    def delete_folder(self, name: str) -> None:
        """Remove a folder that is empty, where there are such things."""

    def below(self, name: str) -> Objects:
        """The objects in a folder."""


def objects_at(place: str | os.PathLike[str], filesystem: fs.FileSystem | None = None) -> Objects:
    """The objects at a path, or at the URI of a file system that Arrow knows.

    Parameters
    ----------
    place : str or path
        Of a folder, which need not be there. With a `filesystem` it is a path there.
    filesystem : pyarrow.fs.FileSystem, optional
    """
    if not isinstance(place, str | os.PathLike) or not str(place):
        raise UsageError(
            f"a checkpoint is kept in a folder: a path or a URI is wanted, and not {place!r}"
        )
    if filesystem is None:
        if "://" not in str(place):
            return LocalObjects(_folder(Path(place).absolute()))
        try:
            filesystem, path = fs.FileSystem.from_uri(_in_one_request(str(place)))
        except (pa.ArrowException, OSError) as cause:
            raise UsageError(f"a checkpoint cannot be kept at {str(place)!r}: {cause}") from cause
    else:
        path = os.fspath(place)
    if isinstance(filesystem, fs.LocalFileSystem):
        return LocalObjects(_folder(Path(path).absolute()))
    return StoredObjects(filesystem, path.rstrip("/"))


def _folder(path: Path) -> Path:
    """A folder that is there, or can be made: what is there on the way to it is one."""
    with contextlib.suppress(OSError):  # it may not be looked at; what is done there says so
        for place in (path, *path.parents):
            if place.is_dir():
                break
            if place.exists():
                raise UsageError(f"a checkpoint is kept in a folder, and {place} is a file")
    return path


def _with_reserve(method: Method) -> Method:
    """Have a method that opens files find descriptors where all others are in use."""

    @wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return with_reserve(partial(method, *args, **kwargs))

    return cast(Method, wrapped)


class LocalObjects:
    """Objects as files of this machine, or of a disk that it has mounted."""

    fails_cleanly = True

    def __init__(self, root: Path) -> None:
        self.root = root
        """The folder."""

    def __repr__(self) -> str:
        return str(self.root)

    @_with_reserve
    def put(self, name: str, data: Iterable[Buffer]) -> None:
        """By a temporary file, which is renamed."""
        with _explained(self.root / name), self._written(name, data) as (temporary, place):
            temporary.replace(place)

    @_with_reserve
    def create(self, name: str, data: Sequence[Buffer]) -> bool:
        """By a link, which is not made where there is something."""
        with _explained(self.root / name), self._written(name, data) as (temporary, place):
            try:
                os.link(temporary, place)
            except FileExistsError:
                return False
        return True

    @contextlib.contextmanager
    def _written(self, name: str, data: Iterable[Buffer]) -> Iterator[tuple[Path, Path]]:
        """A temporary file on the disk, and its place; what was done with it is kept, too."""
        place = self.root / name
        _make_folder(place.parent)
        temporary = place.with_name(f"{TEMPORARY}{place.name}.{uuid4().hex}")
        try:
            with temporary.open("xb") as file:
                for part in data:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            yield temporary, place
            _sync_folder(place.parent)
        finally:
            temporary.unlink(missing_ok=True)

    @_with_reserve
    def get(self, name: str) -> pa.Buffer:
        """Mapped, so that what is not looked at is not read."""
        path = self.root / name
        with _explained(path):
            if not path.exists():
                raise _gone(path)
            if not path.stat().st_size:
                return pa.py_buffer(b"")
            with pa.memory_map(str(path)) as file:
                return file.read_buffer()

    def size(self, name: str) -> int | None:
        """Of the file."""
        path = self.root / name
        with _explained(path):
            try:
                return path.stat().st_size
            except FileNotFoundError:
                return None

    def folders(self, name: str) -> list[str]:
        """Of the folder."""
        return self._listed(name, folders=True)

    def files(self, name: str) -> list[str]:
        """Of the folder."""
        return self._listed(name, folders=False)

    @_with_reserve
    def _listed(self, name: str, *, folders: bool) -> list[str]:
        path = self.root / name
        with _explained(path):
            try:
                with os.scandir(path) as entries:
                    return sorted(e.name for e in entries if e.is_dir() == folders)
            except FileNotFoundError:
                return []

    def files_below(self, name: str) -> list[str]:
        """Of the folder, and those in it."""
        folder = self.root / name
        with _explained(folder):
            found = (path for path in folder.rglob("*") if path.is_file())
            return sorted(path.relative_to(folder).as_posix() for path in found)

    def delete(self, name: str) -> None:
        """The file."""
        with _explained(self.root / name):
            (self.root / name).unlink(missing_ok=True)

    def delete_folder(self, name: str) -> None:
        """If it is empty: else another program has written to it since."""
        with contextlib.suppress(OSError):
            (self.root / name).rmdir()

    def below(self, name: str) -> LocalObjects:
        """Of the folder, which need not be there."""
        return LocalObjects(self.root / name)


class StoredObjects:
    """Objects of an object store, or of any file system that Arrow can write to.

    What is written once and for all has to have a name of its own for each try (`terms.py`):
    `create` looks first and then writes, so of two at once both may find that they wrote, and
    a try that has failed may still arrive.

    Arrow tries a request that fails again by itself; how often, and what it waits for, is up to
    the file system that is given. What is raised here is what it raises after that.
    """

    fails_cleanly = False

    def __init__(self, filesystem: fs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root
        # Of S3 folders are no more than parts of names, and each would be an object, too.
        self._has_folders = filesystem.type_name != "s3"

    def __repr__(self) -> str:
        return f"{self._filesystem.type_name}:{self._root}"

    def put(self, name: str, data: Iterable[Buffer]) -> None:
        """In one stream, which is the object when it is closed."""
        path = self._path(name)
        with _explained(path):
            # Arrow closes a stream whatever ends it: an error between two writes would leave an
            # object of the first. So there is one write, which has all or fails.
            whole = _in_one_buffer(data)
            if self._has_folders:
                self._filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            with self._filesystem.open_output_stream(path, compression=None) as stream:
                stream.write(whole)

    def create(self, name: str, data: Sequence[Buffer]) -> bool:
        """See the note of the class."""
        if self.size(name) is not None:
            return False
        self.put(name, data)
        return True

    def get(self, name: str) -> pa.Buffer:
        """All of it."""
        path = self._path(name)
        with _explained(path):
            try:
                with self._filesystem.open_input_file(path) as file:
                    n_bytes, data = file.size(), file.read_buffer()
            except FileNotFoundError as error:
                raise _gone(path) from error
        if data.size != n_bytes:
            # It is as it was written, for all that is known: so this is no damage.
            raise CheckpointError(
                f"{path}: cannot be read: {data.size} bytes came of {n_bytes}; try again"
            )
        return data

    def size(self, name: str) -> int | None:
        """As the store says."""
        with _explained(self._path(name)):
            info = self._filesystem.get_file_info(self._path(name))
        return info.size if info.type == fs.FileType.File else None

    def folders(self, name: str) -> list[str]:
        """As the store says."""
        return self._listed(name, fs.FileType.Directory)

    def files(self, name: str) -> list[str]:
        """As the store says."""
        return self._listed(name, fs.FileType.File)

    def files_below(self, name: str) -> list[str]:
        """As the store says: of many at a time, where folders were asked for one by one."""
        start = len(self._path(name)) + 1
        infos = self._infos(name, recursive=True)
        return sorted(info.path[start:] for info in infos if info.type == fs.FileType.File)

    def _listed(self, name: str, kind: fs.FileType) -> list[str]:
        return sorted(info.base_name for info in self._infos(name) if info.type == kind)

    def _infos(self, name: str, *, recursive: bool = False) -> list[fs.FileInfo]:
        path = self._path(name)
        selector = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
        with _explained(path):
            return list(self._filesystem.get_file_info(selector))

    def delete(self, name: str) -> None:
        """If it is there."""
        with _explained(self._path(name)), contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(self._path(name))

    def delete_folder(self, name: str) -> None:
        """If it is empty."""
        with contextlib.suppress(OSError):
            if not self._filesystem.get_file_info(
                fs.FileSelector(self._path(name), allow_not_found=True)
            ):
                self._filesystem.delete_dir(self._path(name))

    def below(self, name: str) -> StoredObjects:
        """Of the folder, which need not be there."""
        return StoredObjects(self._filesystem, self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if self._root else name


def _in_one_request(uri: str) -> str:
    """The URI, and for S3 what has Arrow write a small object in one request, and not in three.

    A large one is sent in parts as before; of neither is there anything before there is all.
    """
    parts = urlsplit(uri)
    if parts.scheme != "s3" or _DELAYED in parse_qs(parts.query):
        return uri
    return urlunsplit(
        parts._replace(query="&".join(filter(None, [parts.query, f"{_DELAYED}=true"])))
    )


def _in_one_buffer(data: Iterable[Buffer]) -> Buffer:
    """All of `data`: in memory, or mapped from a file without a name if that would take much."""
    if isinstance(data, Sequence):
        return data[0] if len(data) == 1 else b"".join(data)
    parts: list[Buffer] = []
    n_bytes, remaining = 0, iter(data)
    for part in remaining:
        parts.append(part)
        n_bytes += memoryview(part).nbytes
        if n_bytes > IN_MEMORY_BYTES:
            return _on_disk(chain(parts, remaining))
    return b"".join(parts)


def _on_disk(data: Iterable[Buffer]) -> memoryview:
    """The same, in a file that is gone when nothing has the map any more."""
    with tempfile.TemporaryFile() as file:
        for part in data:
            file.write(part)
        file.flush()
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


@contextlib.contextmanager
def _explained(path: object) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be read or written: {error.strerror or error}"
        ) from error


def _gone(path: object) -> TruncatedCheckpointError:
    return TruncatedCheckpointError(f"{path}: is not there, and is part of this checkpoint")


def _make_folder(folder: Path) -> None:
    """Have a folder, and those around it: of each that is new, the one around it is synced."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Have a new name outlast the machine; a system that cannot do it does it by itself."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
