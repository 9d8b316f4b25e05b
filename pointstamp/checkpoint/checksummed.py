"""Small records of a checkpoint: JSON with a version, and a checksum over the rest.

They are read by eye where something went wrong, which is why they are text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
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
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in data:
        digest.update(part)
    return digest.hexdigest()


def seal(version: int, body: dict[str, Any]) -> bytes:
    """The bytes of a record; what `unseal` reads.

    >>> unseal(seal(2, {"epoch": 3}), "an example", versions=(1, 2))
    (2, {'epoch': 3})
    """
    text = _text(body)
    record = {"version": version, "checksum": checksum([text.encode()]), "body": body}
    return _text(record).encode() + b"\n"


def unseal(data: bytes, place: str, versions: Iterable[int]) -> tuple[int, dict[str, Any]]:
    """The version and the body of a record.

    Raises
    ------
    TruncatedCheckpointError
        If the end is missing.
    CorruptCheckpointError
        If it is not what was written.
    CheckpointVersionError
        If the version is not one of `versions`.
    """
    if not data.endswith(b"\n"):
        raise TruncatedCheckpointError(
            f"{place}: ends after {len(data)} bytes in the middle of a record"
        )
    try:
        record = json.loads(data)
        version, expected, body = record["version"], record["checksum"], record["body"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptCheckpointError(
            f"{place}: is no record of a checkpoint ({type(error).__name__}: {error})"
        ) from error
    known = sorted(versions)
    if version not in known:
        raise CheckpointVersionError(
            f"{place}: is of version {version!r}; this Pointstamp reads {known}: use the one that "
            "wrote it, or a later one"
        )
    if checksum([_text(body).encode()]) != expected:
        raise CorruptCheckpointError(f"{place}: its checksum is not that of what it says")
    return version, body


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
