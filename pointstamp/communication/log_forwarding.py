"""Log records of worker processes, handed to the logging of the process that started them.

A worker's process is a fresh interpreter, in which nothing has configured logging. What the library
logs there goes over the control connection, and there to the handlers of the logger of that name,
as if it had been logged there. Levels travel the other way, when the workers begin. A program that
configures logging in its workers has the records there instead.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pointstamp.communication import publishing

ROOT = "pointstamp"
"""The logger above all of the library's."""


@dataclass(frozen=True)
class ForwardedRecord:
    """A message: what was logged in a worker's process."""

    fields: Mapping[str, Any]
    """The attributes of the record, with its message complete."""


def levels() -> dict[str, int]:
    """The levels of the library's loggers here, by name.

    >>> logging.getLogger("pointstamp.example").setLevel(logging.DEBUG)
    >>> levels()["pointstamp.example"], levels()["pointstamp"] == logging.WARNING
    (10, True)
    >>> logging.getLogger("pointstamp.example").setLevel(logging.NOTSET)
    """
    found = {ROOT: logging.getLogger(ROOT).getEffectiveLevel()}
    for name, logger in list(logging.root.manager.loggerDict.items()):
        is_ours = name.startswith(f"{ROOT}.") and isinstance(logger, logging.Logger)
        if is_ours and logger.level:  # type: ignore[union-attr]  # it is a logger
            found[name] = logger.level  # type: ignore[union-attr]  # likewise
    return found


def forward(of_loggers: Mapping[str, int]) -> None:
    """Have what the library logs in this process, a worker's, go to the one that started it."""
    for name, level in of_loggers.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger(ROOT).addHandler(_ForwardingHandler())


class _ForwardingHandler(logging.Handler):
    """Publishes records, unless the program has handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        if logging.getLogger().handlers:
            return
        try:
            publishing.publish(ForwardedRecord(_fields(record)))
        except Exception:  # noqa: BLE001  (as handlers do it)
            self.handleError(record)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """What of a record can be carried anywhere: plain values, and texts of the others."""
    fields = dict(record.__dict__)
    fields["msg"], fields["args"] = record.getMessage(), None
    if record.exc_info:
        fields["exc_text"] = logging.Formatter().formatException(record.exc_info)
        fields["exc_info"] = None
    plain = (str, int, float, bool, type(None))
    return {
        key: value if isinstance(value, plain) else repr(value) for key, value in fields.items()
    }


def _take(connection: object, message: ForwardedRecord) -> None:
    record = logging.makeLogRecord(dict(message.fields))
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)


publishing.handlers[ForwardedRecord] = _take
