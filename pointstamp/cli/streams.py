"""The standard streams, any of which may be closed, full, or without a reader.

Standard output carries the answer: where it cannot be written the command failed, and
says so in a line. Standard error is for the eyes: where it cannot be written, the answer is the
same.

Below are the statuses that a process ends with, too.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pointstamp import __version__
from pointstamp.compiled import build_info
from pointstamp.errors import UsageError

DONE, FAILED, MISUSED = 0, 1, 2
HUNG_UP, INTERRUPTED, TERMINATED = 129, 130, 143
"""When it was stopped, by which signal, as shells have it: 128 and the signal's number."""
UNHEARD = 141


def say(what: str) -> None:
    """Say it in a line on standard error."""
    print(f"pointstamp: {what}", file=sys.stderr, flush=True)


class _Forgiving(io.TextIOWrapper):
    """Text to a descriptor; what cannot be written is dropped."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def settle() -> None:
    """Make the streams what the rest relies on; called first.

    A closed descriptor is opened, on nothing. Otherwise the next socket or file of
    ours would get its number, and what is printed would go there. `sys.stdin` and
    `sys.stdout` stay None where they were closed, so that we can say it.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    # Without a buffer, as for `python -u`: so nothing that failed is tried again.
    sys.stderr = _Forgiving(
        io.FileIO(2, "wb", closefd=False),
        encoding=sys.stderr.encoding if sys.stderr is not None else "utf-8",
        errors="backslashreplace",
        write_through=True,
    )


def print_version() -> None:
    """Say which this is, and whether its core is compiled."""
    print(f"pointstamp {__version__} ({build_info()})", flush=True)


def is_unread() -> bool:
    """Whether standard output is a pipe that nothing reads any more."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def check_open(instead: str = "") -> None:
    """Raise if standard output is closed, before an answer is looked for that goes there.

    instead : what else there is to do
    """
    if sys.stdout is None:
        raise UsageError(
            "standard output is closed, and the answer would go there; open it (> FILE)" + instead
        )


@contextmanager
def answering() -> Iterator[None]:
    """Print in this block; where that cannot be written, say so and end with its status."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # What is left in its buffer must not be tried again at the end.
        sys.stdout = None
        if error.errno == errno.EPIPE:
            sys.exit(UNHEARD)  # its reader has seen enough
        say(f"standard output cannot be written: {error.strerror or error}")
        sys.exit(FAILED)
