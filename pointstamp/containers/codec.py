"""The bytes of a message, and back: the only place that serializes.

A message is a tag and a container. As bytes it is a header (which names the kind
of the container, so that a user's own kind travels like ours, and holds the tag)
and the buffers that the kind makes of the batch, each padded to 64 bytes so that
columns can be read where they arrived, without a copy:

    magic  version  n_name  n_tag  n_payloads | sizes of payloads | name | tag | padding
    payload  padding   payload  padding   ...

A message of rows, as all updates of progress are, has no buffers worth aligning and is
one pickle of (tag, rows), behind a mark of its own and its size: most messages are
small, and what they cost is what a round of coordination costs.

Integers are little-endian. The pickled parts run code when decoded: bytes come
here only from peers that proved to know the secret of the computation.

Knows nothing of what carries the bytes, nor of what a tag means.
"""

from __future__ import annotations

import pickle
import reprlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from pointstamp.containers.kind import Buffer
from pointstamp.containers.registry import kind_named, kind_of
from pointstamp.containers.rows import dump, dump_records
from pointstamp.errors import ContainerError, PointstampError, SerializationError

_MAGIC = b"ptSt"
_VERSION = 1
_HEAD = struct.Struct("<4sIIII")
_ALIGNMENT = 64
_ROWS_MAGIC = b"ptRw"
_ROWS_HEAD = struct.Struct("<4sQ")


def encode(batch: Any, tag: Any) -> list[Buffer]:
    """The buffers of a message, to be sent in order; joined, they decode too.

    Raises
    ------
    ContainerError
        If no kind is registered for the type of `batch`.
    SerializationError
        If a record, or the tag, cannot be pickled.
    """
    if type(batch) is list:
        rows = encode_rows(batch, tag)
        return [_ROWS_HEAD.pack(_ROWS_MAGIC, len(rows)) + rows]
    kind = kind_of(batch)
    name = kind.name.encode()
    packed = _dump_tag(tag)
    payloads = [memoryview(payload).cast("B") for payload in kind.encode(batch)]
    sizes = struct.pack(f"<{len(payloads)}Q", *(payload.nbytes for payload in payloads))
    head = _HEAD.pack(_MAGIC, _VERSION, len(name), len(packed), len(payloads))
    buffers: list[Buffer] = [_padded(b"".join((head, sizes, name, packed)))]
    for payload in payloads:
        buffers.append(payload)
        if payload.nbytes % _ALIGNMENT:
            buffers.append(bytes(-payload.nbytes % _ALIGNMENT))
    return buffers


def decode(buffers: Sequence[Buffer]) -> tuple[Any, Any]:
    """The (tag, batch) of a message, whose columns may be views of `buffers`.

    Parameters
    ----------
    buffers : those of `encode`, each whole; or one, with all of them joined.

    Raises
    ------
    SerializationError
        If these are not the bytes of one whole message, or name a kind or class
        that this process does not know.

    >>> decode(encode([1, 2], tag="round 3"))
    ('round 3', [1, 2])
    """
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    if not views:
        raise SerializationError("no bytes came where a message should be")
    if views[0][: len(_ROWS_MAGIC)] == _ROWS_MAGIC:
        return decode_rows(_rows_in(views))
    name, packed, sizes, n_header = _read_header(views[0])
    payloads = list(_payloads(views, sizes, n_header))
    try:
        kind = kind_named(bytes(name).decode())
        return pickle.loads(packed), kind.decode(payloads)
    except ContainerError as error:
        raise SerializationError(f"a message cannot be read: {error}") from error
    except PointstampError:
        raise
    except Exception as error:  # foreign bytes may fail in any way inside pickle and Arrow
        raise SerializationError(
            f"a message of kind {bytes(name)!r} with payloads of {list(sizes)} bytes cannot be "
            f"read: {error!r}; either the bytes are damaged, or this process cannot import what "
            "the sender could"
        ) from error


def encode_rows(batch: list[Any], tag: Any) -> bytes:
    """A message of rows, for a carrier that keeps its size and that it is one.

    Raises `SerializationError` as `encode` does.
    """
    try:
        return pickle.dumps((tag, batch), protocol=5)
    except Exception:  # noqa: BLE001  (pickling runs code of the records' classes)
        # In two parts, either of which says what is wrong with it.
        return pickle.dumps((_Parts, (_dump_tag(tag), dump_records(batch))), protocol=5)


def decode_rows(data: Buffer) -> tuple[Any, list[Any]]:
    """The (tag, batch) that `encode_rows` made `data` of; nothing refers to `data` after.

    >>> decode_rows(encode_rows([1, 2], tag="round 3"))
    ('round 3', [1, 2])
    """
    try:
        tag, batch = pickle.loads(data)
        if tag is _Parts:
            tag, batch = map(pickle.loads, batch)
    except Exception as error:  # foreign bytes may fail in any way inside pickle
        raise SerializationError(
            f"a message of rows in {len(data)} bytes cannot be read: {error!r}; either the bytes "
            "are damaged, or this process cannot import what the sender could"
        ) from error
    return tag, batch


class _Parts:
    """Stands for the tag of a message whose tag and batch were pickled each for itself."""


def _rows_in(views: list[memoryview]) -> memoryview:
    """The pickle of a message of rows, if that is what these buffers are."""
    view = views[0]
    if len(views) == 1 and view.nbytes >= _ROWS_HEAD.size:
        _, n_bytes = _ROWS_HEAD.unpack_from(view)
        if view.nbytes == _ROWS_HEAD.size + n_bytes:
            return view[_ROWS_HEAD.size :]
    raise SerializationError(
        f"a message of rows came as {sum(v.nbytes for v in views)} bytes in {len(views)} buffers, "
        "which are not those that its header names"
    )


def _dump_tag(tag: Any) -> bytes:
    try:
        return dump(tag)
    except Exception as error:
        raise SerializationError(
            f"the tag {reprlib.repr(tag)} of a message cannot be pickled: {error!r}"
        ) from error


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


def _read_header(view: memoryview) -> tuple[memoryview, memoryview, tuple[int, ...], int]:
    """Kind name, pickled tag, sizes of payloads, and bytes of the header itself."""
    if view.nbytes < _HEAD.size:
        raise SerializationError(f"a message was cut off in its header, after {view.nbytes} bytes")
    magic, version, n_name, n_tag, n_payloads = _HEAD.unpack_from(view)
    if magic != _MAGIC or version != _VERSION:
        raise SerializationError(
            f"these bytes are no message of pointstamp (version {_VERSION}): they start with "
            f"{bytes(view[:8])!r}"
        )
    name_at = _HEAD.size + 8 * n_payloads
    stop = name_at + n_name + n_tag
    if view.nbytes < stop:
        raise SerializationError(
            f"a message was cut off in its header: {view.nbytes} of {stop} bytes are there"
        )
    sizes = struct.unpack_from(f"<{n_payloads}Q", view, _HEAD.size)
    tag_at = name_at + n_name
    return view[name_at:tag_at], view[tag_at:stop], sizes, stop + -stop % _ALIGNMENT


def _payloads(
    views: list[memoryview], sizes: tuple[int, ...], n_header: int
) -> Iterator[memoryview]:
    """Each payload, out of a list like that of `encode` or of one joined buffer."""
    padded = [size + -size % _ALIGNMENT for size in sizes]
    expected = n_header + sum(padded)
    found = sum(view.nbytes for view in views)
    if found != expected:
        raise SerializationError(f"a message of {expected} bytes came as {found} bytes")
    joined = views[0] if len(views) == 1 else None
    position, index = n_header, 1
    for size, whole in zip(sizes, padded, strict=True):
        if joined is not None:
            yield joined[position : position + size]
            position += whole
            continue
        # An empty payload may have been dropped by what skips empty buffers.
        if size and (index >= len(views) or views[index].nbytes != size):
            raise SerializationError(
                f"buffer {index} of a message should have {size} bytes; the buffers have "
                f"{[view.nbytes for view in views]}"
            )
        yield views[index] if size else memoryview(b"")
        index += _n_buffers(views, index, size, whole)


def _n_buffers(views: list[memoryview], index: int, size: int, whole: int) -> int:
    """How many buffers a payload takes: itself, unless empty and dropped, and its padding."""
    if not size:
        return int(index < len(views) and not views[index].nbytes)
    return 2 if whole > size else 1
