"""Random traffic over frames and meshes, against what was sent."""

from __future__ import annotations

import itertools
import os
import socket
from collections import defaultdict, deque
from contextlib import ExitStack
from random import Random
from typing import Any

import numpy as np

from pointstamp.communication import segment
from pointstamp.communication.framing import AREA_BYTES, COPY_BYTES, FrameKind, FrameReader, frame
from pointstamp.communication.mesh import MeshCommunicator
from pointstamp.communication.segment import ARENA_BYTES, RING_BYTES, Segment
from pointstamp.communication.shared_link import INLINE_BYTES
from pointstamp.containers import Arrays
from pointstamp.errors import FileFormatError, PeerFailedError, PeerLostError

SIZES = (0, 1, 15, 300, COPY_BYTES, COPY_BYTES + 1, AREA_BYTES // 2 - 16, AREA_BYTES // 2 - 15)
LARGE_SIZES = (AREA_BYTES - 16, AREA_BYTES, 3 * AREA_BYTES + 5)


def check_frames(seed: int) -> None:
    """Frames come out as they went in, however the stream is cut, each with memory of its own."""
    rng = Random(seed)
    kinds = list(FrameKind)
    sent = []
    stream = bytearray()
    for _ in range(rng.choice([1, 5, 60])):
        size = rng.choice([*SIZES, *SIZES, *LARGE_SIZES]) + rng.randrange(3)
        body = rng.randbytes(20).ljust(size, b"\x01")[:size]
        at = rng.randint(0, size)
        kind, channel = rng.choice(kinds), rng.choice([0, 7, (1 << 32) - 1])
        pieces = frame(kind, channel, [body[:at], body[at:]])
        assert sum(map(len, pieces)) == size + 16
        stream += b"".join(pieces)
        sent.append((kind, channel, body))
    reader, got = FrameReader(), []
    step = rng.choice([1 << 12, 1 << 16, 1 << 20]) if len(stream) > 1 << 14 else rng.choice([1, 17])
    at = 0
    while at < len(stream):
        space = reader.space()
        assert len(space)
        n_bytes = min(rng.randint(1, step), len(space), len(stream) - at)
        if rng.random() < 0.2 and 1 < len(space) <= len(stream) - at:
            n_bytes = len(space) - 1  # all of a large body but one byte
        space[:n_bytes] = stream[at : at + n_bytes]
        got += reader.advance(n_bytes)
        at += n_bytes
    assert [(f.kind, f.channel, bytes(f.body)) for f in got] == sent
    assert reader.is_between_frames
    _check_refused(rng, bytes(stream[:16]))


def _check_refused(rng: Random, header: bytes) -> None:
    """A header with one wrong byte is refused, and one that is cut is no end of a stream."""
    bad = bytearray(header)
    place = rng.choice([0, 1, 2, 3, 15])
    bad[place] = (bad[place] + rng.randint(100, 150)) % 256
    try:
        FrameReader().feed(bad)
    except FileFormatError:
        pass
    else:
        raise AssertionError(f"a frame with the header {bad.hex(' ')} was taken")
    reader = FrameReader()
    reader.feed(header[: rng.randint(1, 15)])
    assert not reader.is_between_frames
    try:
        FrameReader(max_frame_bytes=1000).feed(frame(FrameKind.DATA, 0, [bytes(1001)])[0])
    except FileFormatError:
        return
    raise AssertionError("a frame was taken that is longer than it may be")


def check_mesh(seed: int) -> None:
    """What workers send each other arrives once, in order per pair and channel, with its bytes.

    All ends are in this thread, over sockets or shared memory; some batches are kept until
    the end. Then one of the workers fails, and the others raise that: not that it is gone.
    """
    rng = Random(seed)
    workers = rng.choice([2, 2, 3])
    with ExitStack() as stack:
        ends = _meshed(stack, workers, is_shared=rng.random() < 0.7)
        channels = [[end.channel() for _ in range(2)] for end in ends]
        # The third is made when there is something for it already.
        for each, end in zip(channels[1:], ends[1:], strict=True):
            each.append(end.channel())
        sent: dict[tuple[int, int, int], deque[Any]] = defaultdict(deque)
        kept: list[tuple[Any, Any]] = []
        named: list[set[int]] = [set() for _ in ends]
        for end in ends:
            if end._arena is not None and rng.random() < 0.3:
                end._arena.take(ARENA_BYTES)  # so that what is large goes in pieces
        for _ in range(60):
            worker = rng.randrange(workers)
            end = ends[worker]
            for _ in range(rng.choice([0, 1, 1, 5, 30])):
                number = rng.randrange(len(channels[worker]))
                peer = rng.randrange(workers)
                batch, copy = _batch(rng)
                channels[worker][number].send(peer, (seed, len(kept)), batch)
                sent[worker, peer, number].append(((seed, len(kept)), copy))
            if rng.random() < 0.6:
                end.flush()
            _receive(rng, ends, channels, rng.randrange(workers), named, sent, kept)
        channels[0].append(ends[0].channel())
        for _ in range(300):
            for worker, end in enumerate(ends):
                end.flush()
                _receive(rng, ends, channels, worker, named, sent, kept)
            if not any(sent.values()):
                break
        assert not any(sent.values()), {key: len(left) for key, left in sent.items() if left}
        for batch, copy in kept:
            assert batch == copy
        kept.clear()
        _check_failure(rng, ends)


def _batch(rng: Random) -> tuple[Any, Any]:
    size = rng.choice([1, 3, 100, 100, INLINE_BYTES // 8 - 40, INLINE_BYTES // 8 + 1])
    if rng.random() < 0.03:
        size = rng.choice([RING_BYTES // 8, RING_BYTES])
    if rng.random() < 0.5:
        return [size, bytes([size % 251]) * size * 8], [size, bytes([size % 251]) * size * 8]
    values = np.arange(size) * rng.randrange(1, 9)
    return Arrays(v=values), Arrays(v=values.copy())


def _receive(
    rng: Random,
    ends: list[MeshCommunicator],
    channels: list[list[Any]],
    worker: int,
    named: list[set[int]],
    sent: dict[tuple[int, int, int], deque[Any]],
    kept: list[tuple[Any, Any]],
) -> None:
    """Pull from the channels that were named; later, perhaps."""
    named[worker].update(ends[worker].receive())
    for number, channel in enumerate(channels[worker]):
        if number not in named[worker] or rng.random() < 0.3:
            continue
        named[worker].remove(number)
        while (message := channel.pull()) is not None:
            tag, copy = sent[message.sender, worker, number].popleft()
            assert (message.tag, message.batch) == (tag, copy)
            if rng.random() < 0.2:
                kept.append((message.batch, copy))


def _check_failure(rng: Random, ends: list[MeshCommunicator]) -> None:
    """One worker fails: each other raises that, and names it."""
    failing = rng.randrange(len(ends))
    ends[failing].abort(ValueError("planned"))
    for worker, end in enumerate(ends):
        if worker == failing:
            continue
        try:
            for _ in range(3):
                end.park(0.0)
                end.receive()
        except PeerFailedError as error:
            said = str(error)
        except PeerLostError as error:
            raise AssertionError(f"a failure was taken for a loss: {error}") from error
        else:
            raise AssertionError(f"worker {worker} did not notice that {failing} failed")
        assert "planned" in said
        assert f"worker {failing}" in said


def _meshed(stack: ExitStack, workers: int, is_shared: bool) -> list[MeshCommunicator]:
    sockets: list[dict[int, socket.socket]] = [{} for _ in range(workers)]
    for one, other in itertools.combinations(range(workers), 2):
        sockets[one][other], sockets[other][one] = socket.socketpair()
    segments: list[Segment | None] = [None] * workers
    if is_shared:
        fd = segment.create(workers)
        assert fd is not None
        segments = [Segment(fd, workers) for _ in range(workers)]
        os.close(fd)
    ends = [MeshCommunicator(i, workers, sockets[i], segments[i]) for i in range(workers)]
    for end in ends:
        stack.callback(end.abort)
    return ends
