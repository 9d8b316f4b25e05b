"""Frames on a stream of bytes: what is written, and how it is read back.

A frame is a kind, a channel and a body. On the wire:

    kind     1 byte
    mark     1 byte     always 0xA7, so that a stream out of step is noticed
    unused   uint16     zero
    channel  uint32
    n_body   uint64     how many bytes follow

all little-endian. What a body means is up to the kind; that of a message is the
codec's buffers, one after the other, which it pads so that they can be read in place.

Nothing here knows a socket. Going out, `frame` gives pieces for a gathering
write: large buffers are not copied. Coming in, `FrameReader.space` says where
the next bytes go and `FrameReader.advance` which frames they complete: small
frames are cut out of a common area, which one read may fill with many, and the
body of a large one is read directly into memory of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from pointstamp.errors import FileFormatError, SerializationError

Buffer = bytes | bytearray | memoryview


class FrameKind(IntEnum):
    """What a frame says."""

    DATA = 1
    """A message of `channel`, as the codec's buffers."""
    GOODBYE = 2
    """The sender will send no more data."""
    RECEIVED = 3
    """The sender has read everything up to the receiver's goodbye."""
    ABORT = 4
    """The sender fails: which worker was first, whether it was lost, and the text."""
    TARGET = 5
    """To a process that was started: what to run."""
    RESULT = 6
    """From a process that was started: what its target returned."""
    FAILURE = 7
    """From a process that was started: why there is no result."""
    PACKED = 8
    """Like DATA, compressed: as `containers.compression` packs the codec's buffers."""
    BLOCK = 9
    """Like DATA, in shared memory: number, place and size of a block that has the buffers."""
    START = 10
    """The size of a message that follows in pieces, in shared memory."""
    PIECE = 11
    """The next piece of a message that was started."""
    ROWS = 12
    """A message of rows, without the codec's header."""
    MESSAGE = 13
    """In a control connection: an object, which its type's handler takes."""
    REQUEST = 14
    """In a control connection: an object that wants an answer; the channel is its number."""
    RESPONSE = 15
    """The answer to the request of that number."""
    REFUSAL = 16
    """The exception that answering the request of that number raised."""
    VALUES = 17
    """A message of a few rows of plain values, as `containers.small_rows` writes it."""
    COLUMNS = 18
    """A message of a small batch of columns, as `containers.small_rows` writes it."""
    RELAYED = 19
    """What one worker sends another by way of a third, see `relayed_link`."""


class Frame(NamedTuple):
    """One frame; the body has memory of its own, which nothing else writes to."""

    kind: FrameKind
    channel: int
    body: memoryview


MAX_FRAME_BYTES = 1 << 36
"""The longest body: no batch is as long as that, and no length is believed that is."""

AREA_BYTES = 1 << 16
COPY_BYTES = 1 << 13
"""Frames up to this size are copied into one piece: cheaper than a longer gather."""

BODY_ALIGNMENT = 64
"""Of the memory of large bodies, as Arrow recommends for its buffers."""

_MARK = 0xA7
_HEADER = struct.Struct("<BBHIQ")
_N_HEADER = _HEADER.size
_KINDS = {int(kind): kind for kind in FrameKind}


def frame(kind: FrameKind, channel: int, buffers: Sequence[Buffer]) -> list[Buffer]:
    """The pieces of a frame whose body is `buffers` (of bytes), to be written in order.

    Raises
    ------
    SerializationError
        For more than 64 GiB.

    Examples
    --------
    >>> [len(piece) for piece in frame(FrameKind.DATA, 0, [b"seven", b"77"])]
    [23]
    """
    n_body = sum(map(len, buffers))
    if n_body > MAX_FRAME_BYTES:
        raise SerializationError(
            f"a batch of {n_body} bytes is too large to send: at most {MAX_FRAME_BYTES} go into "
            f"one message; send it in slices"
        )
    header = _HEADER.pack(kind, _MARK, 0, channel, n_body)
    if n_body <= COPY_BYTES:
        return [b"".join((header, *buffers))]
    return [header, *buffers]


class FrameReader:
    """Cuts a stream of bytes into frames, however the stream was cut before.

    The bytes are put into `space()`, at most as many as fit, and `advance(n)`
    gives the frames that the `n` new ones complete.

    Raises `FileFormatError` for bytes that are no frame, and for a body above
    `max_frame_bytes`; memory is taken for a body only after that check.
    """

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._area = memoryview(bytearray(AREA_BYTES))
        self._start = 0
        self._end = 0
        # A large body that is being filled, and the header it belongs to.
        self._body: memoryview | None = None
        self._filled = 0
        self._header = (FrameKind.DATA, 0)

    def space(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._body is not None:
            return self._body[self._filled :]
        return self._area[self._end :]

    def advance(self, n_bytes: int) -> list[Frame]:
        """The frames that are complete now that `n_bytes` were put into `space()`."""
        if self._body is None:
            self._end += n_bytes
            return self._cut()
        self._filled += n_bytes
        if self._filled < len(self._body):
            return []
        complete = Frame(*self._header, self._body)
        self._body = None
        return [complete]

    def feed(self, data: Buffer) -> list[Frame]:
        """Put `data` in, in as many steps as it takes; the frames it completes."""
        rest, frames = memoryview(data), []
        while rest:
            space = self.space()
            n_bytes = min(len(rest), len(space))
            space[:n_bytes] = rest[:n_bytes]
            frames += self.advance(n_bytes)
            rest = rest[n_bytes:]
        return frames

    @property
    def is_between_frames(self) -> bool:
        """Whether the stream may end here without cutting a frame."""
        return self._body is None and self._start == self._end

    def _cut(self) -> list[Frame]:
        """Cut the complete frames out of the area; make room for the rest of the next."""
        frames = []
        area, start, end = self._area, self._start, self._end
        while end - start >= _N_HEADER:
            kind, channel, n_body = self._parsed(start)
            body = start + _N_HEADER
            if end - body < n_body:
                if _N_HEADER + n_body > AREA_BYTES // 2:
                    self._start_body((kind, channel), body, end, n_body)
                    start = end
                break
            start = body + n_body
            frames.append(Frame(kind, channel, memoryview(bytes(area[body:start]))))
        self._keep(start, end)
        return frames

    def _parsed(self, start: int) -> tuple[FrameKind, int, int]:
        """The header at `start`, checked."""
        number, mark, unused, channel, n_body = _HEADER.unpack_from(self._area, start)
        kind = _KINDS.get(number)
        if kind is None or mark != _MARK or unused:
            found = bytes(self._area[start : start + _N_HEADER]).hex(" ")
            raise FileFormatError(f"a frame was expected, and what came begins with {found}")
        if n_body > self._max_frame_bytes:
            raise FileFormatError(
                f"a frame says that it has {n_body} bytes; at most {self._max_frame_bytes} are read"
            )
        return kind, channel, n_body

    def _start_body(self, header: tuple[FrameKind, int], start: int, end: int, n_body: int) -> None:
        """Give a large body its own memory, and move there what has come of it."""
        self._header = header
        self._body = unset_bytes(n_body)
        self._filled = end - start
        self._body[: self._filled] = self._area[start:end]

    def _keep(self, start: int, end: int) -> None:
        """Keep the bytes from `start` to `end`, at the front if room runs out behind them."""
        if start == end:
            start = end = 0
        elif end > AREA_BYTES // 2:
            # Slices of a memoryview are copied as if by way of a copy: they may overlap.
            self._area[: end - start] = self._area[start:end]
            start, end = 0, end - start
        self._start, self._end = start, end


def unset_bytes(n_bytes: int) -> memoryview:
    """New memory that is not set to zero first, as a bytearray's would be.

    NumPy is imported here and not above: a process that was just started reads
    its small frames without it.
    """
    import numpy as np

    memory = np.empty(n_bytes + BODY_ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % BODY_ALIGNMENT
    return memory[start : start + n_bytes].data
