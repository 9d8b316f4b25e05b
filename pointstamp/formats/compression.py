"""Buffers made smaller for a slow network, by the codecs that Arrow brings.

    n  codec  | for each buffer: bytes before, bytes after | padding | buffers

A buffer that would hardly get smaller (hashes, random numbers, what is compressed
already) travels as it is: `after` equals `before`. Each buffer begins at a
multiple of 64 bytes, so that one that was not compressed is read in place.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pointstamp.containers.kind import Buffer
from pointstamp.errors import SerializationError, UsageError

CODECS = {"lz4": 1, "zstd": 2}
"""The names that users give, and the numbers that stand for them."""

WORTH = 0.9
"""What a buffer must shrink to, to be worth unpacking."""

_ALIGNMENT = 64
_HEAD = struct.Struct("<II")
_SIZES = struct.Struct("<QQ")
# Any, since the stubs list the names that they know.
_ARROW_NAMES: dict[str, Any] = {"lz4": "lz4_raw", "zstd": "zstd"}


def available() -> dict[int, str]:
    """The codecs that this Arrow was built with, by number."""
    return {n: name for name, n in CODECS.items() if pa.Codec.is_available(_ARROW_NAMES[name])}


def check(name: str) -> None:
    """Raise `UsageError` unless `name` is a codec of this Arrow."""
    if name not in available().values():
        raise UsageError(
            f"cannot compress by {name!r}: there are {sorted(available().values())}, "
            "and None for no compression"
        )


def pack(buffers: Sequence[Buffer], name: str) -> list[Buffer]:
    """`buffers`, each compressed by the codec `name` if that makes it smaller.

    >>> packed = pack([bytes(1000), b"ab"], "lz4")
    >>> [bytes(buffer) for buffer in unpack(b"".join(packed))] == [bytes(1000), b"ab"]
    True
    >>> sum(map(len, packed)) < 300
    True
    """
    codec: Any = pa.Codec(_ARROW_NAMES[name])
    sizes: list[bytes] = []
    bodies: list[Buffer] = []
    for buffer in buffers:
        n_bytes = len(buffer)
        body = _compressed(codec, buffer) if n_bytes else buffer
        if len(body) > WORTH * n_bytes:
            body = buffer
        sizes.append(_SIZES.pack(n_bytes, len(body)))
        bodies += [body, bytes(-len(body) % _ALIGNMENT)]
    head = b"".join([_HEAD.pack(len(buffers), CODECS[name]), *sizes])
    return [head + bytes(-len(head) % _ALIGNMENT), *bodies]


def unpack(packed: Buffer) -> list[memoryview]:
    """The buffers that `pack` made `packed` of (its pieces joined).

    Raises
    ------
    SerializationError
        If these are not such bytes.
    """
    view = memoryview(packed).cast("B")
    try:
        return _unpacked(view)
    except (struct.error, KeyError, OSError, pa.ArrowException) as error:
        raise SerializationError(
            f"a compressed message of {view.nbytes} bytes cannot be read: {error!r}"
        ) from error


def _unpacked(view: memoryview) -> list[memoryview]:
    n_buffers, number = _HEAD.unpack_from(view)
    codec: Any = pa.Codec(_ARROW_NAMES[available()[number]])
    at = _HEAD.size + n_buffers * _SIZES.size
    if at > view.nbytes:
        raise SerializationError(
            f"a compressed message says that it has {n_buffers} buffers in {view.nbytes} bytes"
        )
    at += -at % _ALIGNMENT
    found = []
    for index in range(n_buffers):
        n_before, n_after = _SIZES.unpack_from(view, _HEAD.size + index * _SIZES.size)
        body = view[at : at + n_after]
        if len(body) != n_after:
            raise SerializationError(
                f"buffer {index} of a compressed message was cut off: {len(body)} of {n_after} "
                "bytes are there"
            )
        found.append(body if n_after == n_before else _decompressed(codec, body, n_before))
        at += n_after + -n_after % _ALIGNMENT
    return found


def _compressed(codec: Any, buffer: Buffer) -> Buffer:
    # The buffer that comes was cut to its size, and its memoryview has the length of
    # before; that of a slice has its own.
    packed = codec.compress(buffer)
    return memoryview(packed.slice(0, packed.size)).cast("B")


def _decompressed(codec: Any, body: memoryview, n_bytes: int) -> memoryview:
    return memoryview(codec.decompress(pa.py_buffer(body), n_bytes)).cast("B")
