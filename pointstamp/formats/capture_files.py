"""Captured streams in files: a folder with a file for each worker that captured.

`part-00002-of-00004.arrows` is what worker 2 of 4 captured; its bytes are described in
`event_streams.py`. Files are written where they stay, as the stream flows: what a
capture leaves that was interrupted is there, and known to be cut off, since only the
end of the stream completes a file.

A reader of a file that is still being written finds it cut off where it is just then:
what flows while it is captured is to be replayed from memory or a socket.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pointstamp.errors import FileFormatError, TruncatedError
from pointstamp.formats.event_streams import EventStreamReader, EventStreamWriter
from pointstamp.formats.events import CapturedPart, Event, Progress

_NAME = re.compile(r"part-(\d{5})-of-(\d{5})\.arrows")


class CaptureFolder:
    """A folder to capture to, which is made if it is not there.

    Raises
    ------
    FileFormatError
        If it holds parts of a capture by another number of workers, which would be
        mixed with this one's; parts of the same number are replaced. Also if another
        capture is being written there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def writer(self, part: CapturedPart, wake: Callable[[], None]) -> FileWriter:
        """Begins this worker's file."""
        folder = self._path
        try:
            folder.mkdir(parents=True, exist_ok=True)
            others = [file.name for file, of in _parts_in(folder) if of.peers != part.peers]
            if others:
                raise FileFormatError(
                    f"{folder}: holds a capture by another number of workers than {part.peers} "
                    f"({others[0]}); remove it, or capture to another folder"
                )
            return FileWriter(folder / f"part-{part.worker:05}-of-{part.peers:05}.arrows", part)
        except OSError as error:
            raise FileFormatError(f"{folder}: cannot be captured to: {error.strerror}") from error


class FileWriter:
    """Writes one part to its file."""

    def __init__(self, path: Path, part: CapturedPart) -> None:
        self._path = path
        # Not emptied by the opening: another may be writing it.
        self._file = path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise FileFormatError(
                f"{path}: another capture writes this file at the moment; give each a folder of "
                "its own"
            ) from None
        except OSError:
            pass  # a file system without locks
        self._file.truncate(0)
        self._events = EventStreamWriter(self._file, part)

    def push(self, event: Event) -> None:
        """Write an event; a move of the frontier also has the system take what was written."""
        try:
            self._events.write(event)
            if isinstance(event, Progress):
                self._file.flush()
            if self._events.is_complete:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise FileFormatError(f"{self._path}: cannot be written: {error.strerror}") from error

    def has_room(self) -> bool:
        """True: writing waits for the disk."""
        return True

    def is_finished(self) -> bool:
        """Whether the end was written."""
        return self._events.is_complete

    def close(self) -> None:
        """Close the file, as it is."""
        self._file.close()


class CaptureFile:
    """One captured part in a file, to be replayed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def reader(self, times: str | None, wake: Callable[[], None] = lambda: None) -> FileReader:
        """Reads from the file's first event on."""
        return FileReader(self.path, times)


class FileReader:
    """Gives the events of a file."""

    def __init__(self, path: Path, times: str | None) -> None:
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from error
        self._events = EventStreamReader(self._file, str(path), times)
        self._is_ended = False

    def take(self) -> Event | None:
        """The next event, or None at the end."""
        if self._is_ended:
            return None
        event = self._events.read()
        if event is None:
            self._is_ended = True
            self._events.expect_end()
            self.close()
        return event

    def is_ended(self) -> bool:
        """Whether all was given."""
        return self._is_ended

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def captured_files(path: str | os.PathLike[str]) -> list[CaptureFile]:
    """The parts in a folder, in the order of their workers; or the one that a file is.

    Raises
    ------
    FileFormatError
        If a part is missing, or there are parts of several captures, or none.
    """
    path = Path(path)
    if not path.is_dir():
        return [CaptureFile(path)]
    parts = _parts_in(path)
    peers = {part.peers for _, part in parts}
    if len(peers) != 1:
        counts = " and ".join(map(str, sorted(peers)))
        held = f"those of captures by {counts} workers" if counts else "none"
        raise FileFormatError(
            f"{path}: a folder with the parts of one capture is needed, and there are {held}"
        )
    missing = set(range(*peers)) - {part.worker for _, part in parts}
    if missing:
        raise FileFormatError(
            f"{path}: {len(missing)} of the {max(peers)} parts of the capture are missing, "
            f"part {min(missing)} for one"
        )
    return [CaptureFile(file) for file, _ in parts]


def frontier_at_end(file: CaptureFile) -> Sequence[tuple[object, int]] | None:
    """What the changes of the frontier in a file add up to; None if it is complete.

    The least time, with which every capture begins, is not among them.
    """
    reader = file.reader(None)
    changes: list[tuple[object, int]] = []
    try:
        while (event := reader.take()) is not None:
            if isinstance(event, Progress):
                changes.extend(event.changes)
    except TruncatedError:
        return changes
    finally:
        reader.close()
    return None


def _parts_in(folder: Path) -> list[tuple[Path, CapturedPart]]:
    found = []
    for file in sorted(folder.iterdir()):
        match = _NAME.fullmatch(file.name)
        if match:
            found.append((file, CapturedPart(int(match[1]), int(match[2]), "")))
    return found
