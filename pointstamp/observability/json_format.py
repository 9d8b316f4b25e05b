"""Log records as lines of JSON, for what collects logs."""

from __future__ import annotations

import datetime as dt
import json
import logging

_KNOWN = frozenset([*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"])
"""The attributes that every record has; what others it has was given as `extra=`."""


class JsonFormatter(logging.Formatter):
    """A logging formatter: one JSON object per record, with its fields.

    Records of Pointstamp have among others, where they apply, `worker`, `dataflow`, `epoch`,
    `seconds`, `n_bytes` and `checkpoint`; so does what is given as `extra=` elsewhere.

    >>> record = logging.makeLogRecord(
    ...     {"name": "pointstamp.runtime", "levelname": "INFO", "msg": "worker %d begins",
    ...      "args": (1,), "created": 0.25, "process": 7, "worker": 1})
    >>> print(JsonFormatter().format(record))
    {"time": "1970-01-01T00:00:00.250000+00:00", "level": "INFO", "logger": "pointstamp.runtime", \
"message": "worker 1 begins", "process": 7, "worker": 1}
    """

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        at = dt.datetime.fromtimestamp(record.created, dt.UTC)
        found = {
            "time": at.isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        found |= {key: value for key, value in record.__dict__.items() if key not in _KNOWN}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            found["exception"] = record.exc_text
        return json.dumps(found, default=str)
