"""Messages from workers to the process that started them, wherever that is.

A worker publishes a message without knowing how it was started: it travels over the
control connection of its process, or is handed over where the worker is in the process
itself, in a thread or alone. `receiving` takes messages by their type.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pointstamp.errors import CommunicationError

if TYPE_CHECKING:
    from concurrent.futures import Future


class Sender(Protocol):
    """What messages can be sent to, as a control connection."""

    def send(self, message: Any) -> None:
        """Send a message."""

    def request(self, message: Any) -> Future[Any]:
        """Ask for an answer."""


handlers: dict[type, Callable[[Any, Any], Any]] = {}
"""What `receiving` set; every control server of the process calls `handler(connection, message)`
for the types that it has no handler for."""

_own: Sender | None = None


@contextlib.contextmanager
def receiving(takers: Mapping[type, Callable[[Any], object]]) -> Iterator[None]:
    """Have `takers`, by type, take what workers `publish`, as long as the block lasts.

    They are called with the message alone, by any thread.

    >>> found = []
    >>> with receiving({int: found.append}):
    ...     publish(3)
    >>> found
    [3]
    """
    own = {kind: _of_message(taker) for kind, taker in takers.items()}
    handlers.update(own)
    try:
        yield
    finally:
        for kind in own:
            handlers.pop(kind, None)


def publish(message: Any) -> None:
    """Send `message` to the process that started this worker, for `receiving` to take.

    Dropped where nothing takes it, and where that process cannot be reached.
    """
    if _own is not None:
        _own.send(message)
    elif (handler := handlers.get(type(message))) is not None:
        handler(None, message)


def request(message: Any) -> Future[Any]:
    """Ask the process that started this one, by the control connection of this process."""
    if _own is None:
        raise CommunicationError(
            f"{message!r} can only be asked by a worker in a process of its own, and this process "
            "has no control connection"
        )
    return _own.request(message)


def set_own(connection: Sender | None) -> None:
    """Have this process publish over `connection`, its control connection."""
    global _own
    _own = connection


def is_connected() -> bool:
    """Whether this process has a control connection to the one that started it."""
    return _own is not None


def _of_message(taker: Callable[[Any], object]) -> Callable[[Any, Any], object]:
    return lambda _, message: taker(message)
