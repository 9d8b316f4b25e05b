"""A queue and a list of containers, which go to disk where they do not fit into the budget.

Both keep the order of what they are given. What is on disk is bytes as a message has them
(`containers.codec`), so all that can be sent can be spilled, and what comes back is what
would have come from another worker: rows are copies, columns are views that are not written.

Theory of operation. A queue has three parts: its *head* in memory, *blocks* on disk, and a
*tail* in memory. As long as there are neither blocks nor a tail, and the budget has room,
what comes goes to the head. Otherwise it goes to the tail, which is written as a block when
it is large enough, or when there is no room for it. What is taken comes from the head, then
from the first block, message by message, then from the tail. So of a queue on disk there is in
memory the tail, at most a block, and what each block has of each time: how many records.

A list has two parts: what fits is in memory, the rest is on disk, in blocks of the same kind.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pointstamp.communication.link import Unsent
from pointstamp.communication.mailbox import message
from pointstamp.containers.codec import decode, encode
from pointstamp.containers.kind import Buffer, Kind
from pointstamp.containers.registry import is_container, n_records, register
from pointstamp.dataflow.mapped_files import MappedFiles
from pointstamp.dataflow.memory_budget import (
    LIST_PART,
    QUEUE_PART,
    MemoryBudget,
    bytes_in,
)
from pointstamp.dataflow.spill_files import SpilledBytes
from pointstamp.errors import SerializationError, SpillError


class OnDisk:
    """Stands for a container that is on disk, where only its size is asked for."""

    __slots__ = ("n_bytes", "n_records")

    def __init__(self, n_records: int, n_bytes: int) -> None:
        self.n_records = n_records
        self.n_bytes = n_bytes

    def __repr__(self) -> str:
        return f"OnDisk({self.n_records} records)"


class _OnDiskKind(Kind[OnDisk]):
    """It has sizes, and no records."""

    name = "on disk"
    is_internal = True

    def length(self, batch: OnDisk) -> int:
        """How many records are on disk."""
        return batch.n_records

    def n_bytes(self, batch: OnDisk) -> int:
        """How many bytes they take there."""
        return batch.n_bytes


register(OnDisk, _OnDiskKind())


class Codec(NamedTuple):
    """What a queue has to know of its items."""

    size: Callable[[Any], int]
    """About how many bytes an item takes in memory."""
    encode: Callable[[Any], list[Buffer]]
    decode: Callable[[memoryview], Any]
    place: Callable[[Any], Any]
    """What an item is distinguished by for `stands_for`, hashable."""
    length: Callable[[Any], int]
    """How many records it has."""
    stands_for: Callable[[Any, OnDisk], Any]
    """The item that stands for those of a place."""


def _size(item: Any) -> int:
    return bytes_in(item[-1])


def _length(item: Any) -> int:
    return n_records(item[-1])


TIMED = Codec(
    _size,
    lambda item: encode(item[1], item[0]),
    lambda data: decode([data]),
    lambda item: item[0],
    _length,
    lambda time, batch: (time, batch),
)
"""Of (time, batch)."""

ARRIVED = Codec(
    _size,
    lambda item: encode(item[2], (item[0], item[1])),
    lambda data: _message(*decode([data])),
    lambda item: (item[0], item[1]),
    _length,
    lambda place, batch: message(place[0], place[1], batch),
)
"""Of messages."""


def _message(place: tuple[int, Any], batch: Any) -> Any:
    return message(place[0], place[1], batch)


_HEAD = struct.Struct("<IIQ")


def _unsent(data: memoryview) -> Unsent:
    kind, channel, n_bytes = _HEAD.unpack_from(data)
    return Unsent(kind, channel, [data[_HEAD.size :]], n_bytes)


UNSENT = Codec(
    lambda item: 64 + int(item.n_bytes),
    lambda item: [_HEAD.pack(item.kind, item.channel, item.n_bytes), *item.buffers],
    _unsent,
    lambda item: None,
    lambda item: 1,
    lambda place, batch: batch,
)
"""Of what waits for room in a link, which are bytes already."""


class _SpilledBlock:
    """Items on disk, one behind the other, with their sizes in front."""

    __slots__ = ("_at", "_budget", "_codec", "_next", "_place", "_sizes", "n_left", "of_place")

    def __init__(self, budget: MemoryBudget, codec: Codec, items: Sequence[Any]) -> None:
        self._budget = budget
        self._codec = codec
        self.n_left = len(items)
        self.of_place: dict[Any, list[int]] = {}
        """By place: how many records are left, and bytes."""
        sizes = np.empty(len(items), np.uint64)
        buffers: list[Buffer] = [sizes.data.cast("B")]
        for number, item in enumerate(items):
            encoded = _encoded(codec, item)
            sizes[number] = n_bytes = sum(memoryview(buffer).nbytes for buffer in encoded)
            buffers += encoded
            count = self.of_place.setdefault(codec.place(item), [0, 0])
            count[0] += codec.length(item)
            count[1] += n_bytes
        self._place: SpilledBytes | None = budget.files.write(buffers)
        self._sizes: list[int] | None = None  # read when the first item is
        self._next = 0
        self._at = 8 * len(items)

    def take(self) -> Any:
        """The next item; with the last one the disk is freed."""
        assert self._place is not None
        item, self._at = self._read(self._next, self._at)
        self._next += 1
        self.n_left -= 1
        place = self._codec.place(item)
        count = self.of_place[place]
        count[0] -= self._codec.length(item)
        if not self.n_left:
            self.free()
        return item

    def __iter__(self) -> Iterator[Any]:
        """All that is left, which stays."""
        at = self._at
        for number in range(self._next, self._next + self.n_left):
            item, at = self._read(number, at)
            yield item

    def standing_for(self) -> Iterator[Any]:
        """What is left, without reading it."""
        for place, (n, n_bytes) in self.of_place.items():
            if n:
                yield self._codec.stands_for(place, OnDisk(n, n_bytes))

    def free(self) -> None:
        """Give it up; again does nothing."""
        place, self._place, self._sizes = self._place, None, None
        if place is not None:
            self._budget.files.free(place)

    def _read(self, number: int, at: int) -> tuple[Any, int]:
        files, place = self._budget.files, self._place
        assert place is not None
        if self._sizes is None:
            n_items = self._next + self.n_left
            self._sizes = list(struct.unpack(f"={n_items}Q", files.read(place, 0, 8 * n_items)))
        n_bytes = self._sizes[number]
        return self._codec.decode(files.read(place, at, n_bytes)), at + n_bytes


def _encoded(codec: Codec, item: Any) -> list[Buffer]:
    try:
        return codec.encode(item)
    except SerializationError as error:
        raise SpillError(
            "records that do not fit into memory_limit= go to disk, and these cannot: "
            f"{error}; or raise the limit"
        ) from error


class SpillableQueue:
    """What is first in is first out, with the methods of a `deque` that channels use.

    Iterating does not read what is on disk: of each block there is an item with an
    `OnDisk` for each time.
    """

    __slots__ = (
        "_aside_bytes",
        "_blocks",
        "_budget",
        "_codec",
        "_head",
        "_n",
        "_tail",
        "_tail_bytes",
    )

    def __init__(self, budget: MemoryBudget, codec: Codec = TIMED) -> None:
        self._budget = budget
        self._codec = codec
        self._head: deque[tuple[Any, int]] = deque()  # with each item what it counts
        self._blocks: deque[_SpilledBlock] = deque()
        self._tail: list[tuple[Any, int]] = []
        self._tail_bytes = 0
        self._aside_bytes = 0
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def is_small(self) -> bool:
        """Whether all of it is in memory, and there is room for as much again."""
        return not self._blocks and 2 * self._budget.held_bytes <= self._budget.limit_bytes

    def set_aside(self, items: Iterable[Any]) -> None:
        """Count these as well, instead of those of the last call: they wait elsewhere."""
        n_bytes = sum(map(self._codec.size, items))
        self._budget.release(self._aside_bytes)
        self._budget.hold(n_bytes)
        self._aside_bytes = n_bytes

    def append(self, item: Any) -> None:
        """Put an item behind the others."""
        n_bytes = self._codec.size(item)
        budget = self._budget
        if not self._blocks and not self._tail and budget.fits(n_bytes, QUEUE_PART):
            self._head.append((item, n_bytes))
        elif budget.fits(n_bytes):
            self._tail.append((item, n_bytes))
            self._tail_bytes += n_bytes
            if self._tail_bytes >= budget.block_bytes:
                self._write([])
        else:
            self._write([item])
        self._n += 1

    def extend(self, items: Iterable[Any]) -> None:
        """Put items behind the others."""
        for item in items:
            self.append(item)

    def extendleft(self, items: Iterable[Any]) -> None:
        """Put items that were taken before the others, each before the one before it."""
        for item in items:
            n_bytes = self._codec.size(item)
            self._budget.hold(n_bytes)
            self._head.appendleft((item, n_bytes))
            self._n += 1

    def popleft(self) -> Any:
        """Take the first item."""
        if not self._head:
            self._refill()
        if self._head:
            item, n_bytes = self._head.popleft()
            self._budget.release(n_bytes)
        else:
            block = self._blocks[0]
            item = block.take()
            if not block.n_left:
                self._blocks.popleft()
        self._n -= 1
        return item

    def __getitem__(self, place: int) -> Any:
        """The first item, which stays: `queue[0]`."""
        if place:
            raise IndexError("only the first item can be looked at")
        if not self._head and self._blocks:
            item = self.popleft()
            self.extendleft([item])
        elif not self._head:
            self._refill()
        return self._head[0][0]

    def __iter__(self) -> Iterator[Any]:
        """What is in memory, and what stands for the rest."""
        yield from [item for item, _ in self._head]
        for block in list(self._blocks):
            yield from block.standing_for()
        yield from [item for item, _ in self._tail]

    def clear(self) -> None:
        """Throw everything away."""
        self._budget.release(sum(n for _, n in self._head) + self._tail_bytes)
        for block in self._blocks:
            block.free()
        self._head.clear()
        self._blocks.clear()
        self._tail, self._tail_bytes = [], 0
        self._n = 0

    def _refill(self) -> None:
        """With nothing on disk, what was the last is now the first."""
        if not self._blocks:
            self._head.extend(self._tail)
            self._tail, self._tail_bytes = [], 0

    def _write(self, more: list[Any]) -> None:
        """Write the tail, and `more`, which is not counted."""
        items = [*(item for item, _ in self._tail), *more]
        self._blocks.append(_SpilledBlock(self._budget, self._codec, items))
        self._budget.release(self._tail_bytes)
        self._tail, self._tail_bytes = [], 0


def _as_batch(item: Any) -> tuple[Any, str]:
    """An item as a container, and what it was."""
    # A program may put what it likes into a stash: a number, or a pair of batches.
    return (item, "batch") if is_container(item) else ([item], "value")


def _item_bytes(item: Any) -> int:
    return bytes_in(_as_batch(item)[0])


def _encode_item(item: Any) -> list[Buffer]:
    return encode(*_as_batch(item))


def _decode_item(data: memoryview) -> Any:
    what, batch = decode([data])
    return batch if what == "batch" else batch[0]


_ITEM = Codec(
    _item_bytes,
    _encode_item,
    _decode_item,
    lambda item: None,
    lambda item: 1,
    lambda place, batch: batch,
)
"""Of batches, and of what else is put into a stash."""


class Parts:
    """What a list has, in memory and on disk; outlives it only to be given up."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.budget = budget
        self.held: list[Any] = []
        self.blocks: list[_SpilledBlock] = []
        self.tail: list[Any] = []
        self.held_bytes = 0
        self.tail_bytes = 0

    def clear(self) -> None:
        """Give all of it up."""
        self.budget.release(self.held_bytes + self.tail_bytes)
        for block in self.blocks:
            block.free()
        self.held, self.blocks, self.tail = [], [], []
        self.held_bytes = self.tail_bytes = 0


class SpillableList(Sequence[Any]):
    """Batches in the order in which they were appended; those on disk are read when asked for.

    Iterating reads one batch at a time, again each time. The memory, and the disk, is
    given back by `clear`, or when nothing refers to the list any more.

    >>> with WorkerMemory(400) as memory:
    ...     batches = memory.list()
    ...     batches.extend([[1, 2], [3] * 50, [4]])
    ...     len(batches), batches[-1], [len(batch) for batch in batches]
    (3, [4], [2, 50, 1])
    """

    __slots__ = ("_n", "_parts")

    def __init__(self, budget: MemoryBudget) -> None:
        self._parts = Parts(budget)
        self._n = 0

    def append(self, batch: Any) -> None:
        """Put a batch behind the others."""
        parts = self._parts
        budget = parts.budget
        n_bytes = _item_bytes(batch)
        if not parts.blocks and not parts.tail and budget.fits(n_bytes, LIST_PART):
            parts.held.append(batch)
            parts.held_bytes += n_bytes
        elif budget.fits(n_bytes, QUEUE_PART):
            parts.tail.append(batch)
            parts.tail_bytes += n_bytes
            if parts.tail_bytes >= budget.block_bytes:
                self._write([])
        else:
            self._write([batch])
        self._n += 1

    def extend(self, batches: Iterable[Any]) -> None:
        """Put batches behind the others."""
        for batch in batches:
            self.append(batch)

    def clear(self) -> None:
        """Throw everything away."""
        self._parts.clear()
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Any]:
        yield from self._parts.held
        for block in self._parts.blocks:
            yield from block
        yield from self._parts.tail

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return list(self)[place]
        number = place + self._n if place < 0 else place
        if not 0 <= number < self._n:
            raise IndexError(f"batch {place} of {self._n}")
        for batch in self:
            if not number:
                return batch
            number -= 1
        raise AssertionError("it has as many batches as it says")

    def __repr__(self) -> str:
        return f"SpillableList({self._n} batches)"

    def __del__(self) -> None:
        if self._n:
            self._parts.budget.end(self._parts)

    def _write(self, more: list[Any]) -> None:
        parts = self._parts
        parts.blocks.append(_SpilledBlock(parts.budget, _ITEM, [*parts.tail, *more]))
        parts.budget.release(parts.tail_bytes)
        parts.tail, parts.tail_bytes = [], 0


class WorkerMemory(MemoryBudget):
    """The budget of a worker, and what makes the queues and lists that keep to it.

    >>> with WorkerMemory(800) as memory:
    ...     queue = memory.queue()
    ...     for time in range(3):
    ...         queue.append((time, list(range(10))))
    ...     [queue.popleft() == (time, list(range(10))) for time in range(3)], len(queue)
    ([True, True, True], 0)
    >>> memory.spilled_bytes > 0, memory.held_bytes
    (True, 0)
    """

    def __init__(self, limit_bytes: int, directory: str | None = None) -> None:
        super().__init__(limit_bytes, directory)
        self.mapped = MappedFiles(self.files, limit_bytes // 4)
        """What is kept, and does not fit."""

    def queue(self) -> SpillableQueue:
        """A queue of (time, batch)."""
        return SpillableQueue(self, TIMED)

    def arrivals(self) -> SpillableQueue:
        """A queue of messages that have arrived."""
        return SpillableQueue(self, ARRIVED)

    def unsent(self) -> SpillableQueue:
        """A queue of what a link has no room for."""
        return SpillableQueue(self, UNSENT)

    def list(self) -> SpillableList:
        """A list of batches."""
        return SpillableList(self)

    def __reduce__(self) -> tuple[type[WorkerMemory], tuple[int, str | None]]:
        """Another one in another process, with the same limit and directory."""
        return WorkerMemory, (self.limit_bytes, self.files.directory)

    def __enter__(self) -> WorkerMemory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
