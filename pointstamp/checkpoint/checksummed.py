"""Small records of a checkpoint: JSON with a version, and a checksum over the rest.

They are read by eye where something went wrong, which is why they are text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pointstamp.containers import Buffer
from pointstamp.errors import (
    CheckpointVersionError,
    CorruptCheckpointError,
    TruncatedCheckpointError,
)

DIGEST_BYTES = 16


def checksum(data: Iterable[Buffer]) -> str:
    """Of all of `data`, one after the other; the same on every machine.

    >>> checksum([b"ab", b"c"]) == checksum([b"abc"])
    True
    """
    digest = Checksum()
    for part in data:
        digest.update(part)
    return digest.text()


class Checksum:
    """The same of what comes part by part.

    >>> digest = Checksum()
    >>> digest.update(b"abc")
    >>> digest.text() == checksum([b"ab", b"c"])
    True
    """

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def update(self, part: Buffer) -> None:
        """The next part."""
        self._digest.update(part)

    def text(self) -> str:
        """Of all that came."""
        return self._digest.hexdigest()


def checksummed(version: int, body: Mapping[str, Any]) -> bytes:
    """The bytes of a record; what `verified` reads.

    >>> verified(checksummed(2, {"epoch": 3}), "an example", version=2)
    {'epoch': 3}
    """
    text = _text(body)
    record = {"version": version, "checksum": checksum([text.encode()]), "body": body}
    return _text(record).encode() + b"\n"


def verified(data: bytes, place: str, version: int) -> dict[str, Any]:
    """The body of a record.

    Raises
    ------
    TruncatedCheckpointError
        If the end is missing.
    CorruptCheckpointError
        If it is not what was written.
    CheckpointVersionError
        If it is of another version.
    """
    if not data.endswith(b"\n"):
        raise TruncatedCheckpointError(
            f"{place}: ends after {len(data)} bytes in the middle of a record"
        )
    try:
        record = json.loads(data)
        found, expected, body = record["version"], record["checksum"], record["body"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptCheckpointError(
            f"{place}: is no record of a checkpoint ({type(error).__name__}: {error})"
        ) from error
    if found != version:
        raise CheckpointVersionError(
            f"{place}: is of version {found!r}; this Pointstamp reads version {version}: use the "
            "one that wrote it"
        )
    if checksum([_text(body).encode()]) != expected:
        raise CorruptCheckpointError(f"{place}: its checksum is not that of what it says")
    if not isinstance(body, dict):
        raise CorruptCheckpointError(f"{place}: is no record of a checkpoint: {body!r}")
    return body


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
