"""Random traffic through rings, arenas and leases of shared memory, against plain queues."""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from pointstamp.communication import segment
from pointstamp.communication.arena import BUSY, Arena
from pointstamp.communication.block_leases import BlockLeases
from pointstamp.communication.ring import (
    MAX_CHANNEL,
    MAX_RECORD_BYTES,
    RELEASE_BYTES,
    RingReader,
    RingWriter,
    described,
)
from pointstamp.communication.segment import ARENA_BYTES, N_BLOCKS, RING_BYTES, Segment


@contextmanager
def mapped(workers: int) -> Iterator[Segment]:
    """Shared memory of so many workers, in this process."""
    fd = segment.create(workers)
    assert fd is not None
    memory = Segment(fd, workers)
    os.close(fd)
    try:
        yield memory
    finally:
        gc.collect()
        memory.close()


def check_rings(seed: int) -> None:
    """A ring gives what was put, in order; it refuses what does not fit, and nothing else."""
    rng = Random(seed)
    with mapped(3) as memory:
        ends = [
            (RingWriter(memory, source, target), RingReader(memory, source, target))
            for source, target in [(0, 1), (1, 0), (1, 2)]
        ]
        models = [_Ring() for _ in ends]
        for _ in range(150):
            which = rng.randrange(3)
            _use_ring(rng, *ends[which], models[which])
        for (writer, reader), model in zip(ends, models, strict=True):
            writer.publish()
            model.published = model.tail
            _take(rng, reader, model, 1 << 30)
            assert not model.records
            assert not reader.has_records()


class _Ring:
    """What is in a ring, and how its bytes are counted."""

    def __init__(self) -> None:
        self.records: deque[tuple[int, int, bytes, int]] = deque()
        self.tail = self.published = self.head = self.released = 0
        self.is_starved = False


def _use_ring(rng: Random, writer: RingWriter, reader: RingReader, model: _Ring) -> None:
    for _ in range(rng.choice([0, 1, 3, 40])):
        largest = rng.choice([0, 9, 300, 300, MAX_RECORD_BYTES])
        data = rng.randbytes(rng.randint(0, 50)).ljust(rng.randint(0, largest), b"\x07")
        kind, channel = rng.randint(1, 127), rng.choice([0, 1, 77, MAX_CHANNEL])
        rest = RING_BYTES - model.tail % RING_BYTES
        if rng.random() < 0.3 and 8 <= rest <= MAX_RECORD_BYTES:
            data = bytes(rest - 8)  # it ends where the ring ends
        n_whole = len(data) + 15 & -8
        end = model.tail + n_whole + (rest if n_whole > rest else 0)
        fits = end - model.released <= RING_BYTES
        if rng.random() < 0.5:
            assert writer.has_room_for(len(data)) == fits
        assert writer.put(described(kind, channel), data) == fits
        if not fits:
            break
        model.tail = end
        model.records.append((kind, channel, data, end))
    if rng.random() < 0.7:
        writer.publish()
        model.published = model.tail
    assert writer.n_unpublished() == model.tail - model.published
    if rng.random() < 0.3:
        assert not writer.starve() or model.head
        model.is_starved = True
    assert reader.has_records() == (model.published != model.head)
    _take(rng, reader, model, rng.choice([0, 1, 30, 1000]))
    must_release = model.head - model.released >= RELEASE_BYTES
    is_told = reader.release()
    assert is_told == (must_release and model.is_starved)
    if must_release:
        model.released = model.head
    if is_told:
        assert writer.has_more_room()
        model.is_starved = False


def _take(rng: Random, reader: RingReader, model: _Ring, n_records: int) -> None:
    reader.look()
    for _ in range(n_records):
        data = reader.take()
        if data is None:
            assert not model.records or model.records[0][3] > model.published
            return
        *expected, model.head = model.records.popleft()
        assert [reader.kind, reader.channel, data] == expected


def check_blocks(seed: int) -> None:
    """Blocks of an arena do not overlap, all come back, and one is refused only for want of room.

    What is leased of them keeps its bytes as long as any view of it is alive, and no longer.
    """
    rng = Random(seed)
    with mapped(3) as memory:
        arena, leases = Arena(memory, 1), BlockLeases(memory, 1, 3)
        first = memory.layout.arena_byte(1)
        states = memory.layout.states_byte(1)
        out: dict[int, tuple[Any, memoryview | None, bytes]] = {}
        for _ in range(rng.choice([60, 60, 60, 300])):
            n_bytes = rng.choice([1, 4096, 5000, 1 << 16, rng.randrange(1, ARENA_BYTES // 3)])
            if rng.random() < 0.6:
                block = arena.take(n_bytes)
                spans = sorted((b.start, b.start + b.n_bytes) for b, _, _ in out.values())
                if block is None:
                    edges = [first, *(edge for span in spans for edge in span), first + ARENA_BYTES]
                    gaps = [b - a for a, b in zip(edges[::2], edges[1::2], strict=True)]
                    assert len(out) == N_BLOCKS or max(gaps) < n_bytes
                    continue
                assert block.n_bytes >= n_bytes
                assert first <= block.start
                assert block.start + block.n_bytes <= first + ARENA_BYTES
                assert all(e <= block.start or block.start + block.n_bytes <= s for s, e in spans)
                assert block.number not in out
                assert memory.memory[states + block.number] == BUSY
                mark = rng.randbytes(16)
                memory.memory[block.start : block.start + 16] = mark
                # Of what is large a part: the limit of what is leased is then met by numbers, too.
                view: memoryview | None = leases.lease(block.number, block.start, max(16, n_bytes))
                if memory.memory[states + block.number] == BUSY:
                    out[block.number] = (block, view, mark)
                else:
                    assert view is not None
                    assert bytes(view[:16]) == mark  # a copy
            elif out:
                number = rng.choice([*out])
                _, view, mark = out.pop(number)
                assert view is not None
                assert bytes(view[:16]) == mark
                del view
                assert memory.memory[states + number] == BUSY  # until the worker looks
                leases.return_unused()
                assert memory.memory[states + number] != BUSY
            assert leases.n_leased_bytes <= ARENA_BYTES // 2 // 2
            assert leases.n_leased_bytes == sum(
                len(view) for _, view, _ in out.values() if view is not None
            )
        for _, view, mark in out.values():
            assert view is not None
            assert bytes(view[:16]) == mark
        view = None
        out.clear()
        leases.return_unused()
        whole = arena.take(ARENA_BYTES)
        assert whole is not None
        assert whole.start == first
