"""A ring in shared memory from one worker to one other: records in, records out.

A record is a word, which says what it is and how long, and so many bytes; it lies
in one piece, and a record that has no room before the end of the ring goes to its
beginning, behind a mark. Tail and head count bytes since the beginning of time and
are never set back, so that full and empty cannot be confused:

    writer   puts records behind the tail, then says the new tail (`publish`)
    reader   takes records up to the tail, then says the new head (`release`)

Each says its own word and only reads that of the other. Neither ever waits: a
record that does not fit is refused, and a ring with nothing new gives nothing.

Knows nothing of what records mean, nor of which worker sleeps.
"""

from __future__ import annotations

from pointstamp.communication.segment import RING_BYTES, Segment

MAX_RECORD_BYTES = RING_BYTES // 4
"""Of what is put into one record; so that one always fits into an empty ring."""

RELEASE_BYTES = RING_BYTES // 8
"""So much room a reader makes at a time."""

MAX_CHANNEL = (1 << 24) - 1
_MASK = RING_BYTES - 1
_SIZE_MASK = (1 << 32) - 1
_SKIP = 0
"""The word of a mark that the rest of the ring is empty."""

# Compiled, numbers of C.
_RING_BYTES, _MAX_CHANNEL = RING_BYTES, MAX_CHANNEL


def described(kind: int, channel: int) -> int:
    """What a record is, as the upper half of its word; `kind` from 1 to 127."""
    return kind << 56 | channel << 32


class RingWriter:
    """The end of worker `source` of its ring to worker `target`."""

    def __init__(self, segment: Segment, source: int, target: int) -> None:
        self._words = segment.words
        self._memory = segment.memory
        self._fence = segment.fence
        self._start = segment.layout.ring_byte(source, target)
        self._tail_word = segment.layout.tail_word(source, target)
        self._head_word = segment.layout.head_word(source, target)
        self._starved_word = segment.layout.starved_word(source, target)
        self._tail = 0
        self._head = 0  # as last read
        self._published = 0
        self._reserved = 0
        self._at = 0

    def put(self, what: int, data: bytes | bytearray | memoryview) -> bool:
        """Add a record of `data`, whose `what` is `described`; False if it does not fit."""
        n_bytes = len(data)
        at = self.reserve(n_bytes)
        if at < 0:
            return False
        self._memory[at : at + n_bytes] = data
        self.commit(what, n_bytes)
        return True

    def reserve(self, n_bytes: int) -> int:
        """Where in the memory a record's bytes go, if they are that many at most; -1 for nowhere.

        It is a record with `commit`, and forgotten if another is reserved before.
        """
        n_whole = n_bytes + 15 & -8
        tail = self._tail
        at = tail & _MASK
        n_skipped = 0
        if at + n_whole > _RING_BYTES:
            n_skipped = _RING_BYTES - at
        if tail + n_skipped + n_whole - self._head > _RING_BYTES:
            self._head = self._words[self._head_word]
            if tail + n_skipped + n_whole - self._head > _RING_BYTES:
                return -1
            self._fence.between()
        if n_skipped:
            self._words[self._start + at >> 3] = _SKIP
            at = 0
        self._at = self._start + at
        self._reserved = tail + n_skipped
        return self._at + 8

    def commit(self, what: int, n_bytes: int) -> None:
        """Make a record of the first bytes of what was reserved."""
        self._words[self._at >> 3] = what | n_bytes
        self._tail = self._reserved + (n_bytes + 15 & -8)

    def has_room_for(self, n_bytes: int) -> bool:
        """Whether `put` would take that many bytes now."""
        n_whole = n_bytes + 15 & -8
        rest = _RING_BYTES - (self._tail & _MASK)
        needed = self._tail + n_whole + (rest if n_whole > rest else 0) - _RING_BYTES
        if needed > self._head:
            self._head = self._words[self._head_word]
            self._fence.between()
        return needed <= self._head

    def n_unpublished(self) -> int:
        """How many bytes the reader does not know of yet."""
        return self._tail - self._published

    def publish(self) -> None:
        """Let the reader have what was put."""
        self._fence.between()
        self._words[self._tail_word] = self._published = self._tail

    def starve(self) -> bool:
        """Ask the reader to say when it made room; True if it has some already."""
        self._words[self._starved_word] = 1
        self._fence.full()
        return self.has_more_room()

    def has_more_room(self) -> bool:
        """Whether the reader took something since a record did not fit."""
        return bool(self._words[self._head_word] != self._head)


class RingReader:
    """The end of worker `target` of the ring from worker `source`."""

    def __init__(self, segment: Segment, source: int, target: int) -> None:
        self._words = segment.words
        self._memory = segment.memory
        self._fence = segment.fence
        self._start = segment.layout.ring_byte(source, target)
        self._tail_word = segment.layout.tail_word(source, target)
        self._head_word = segment.layout.head_word(source, target)
        self._starved_word = segment.layout.starved_word(source, target)
        self._head = 0
        self._released = 0
        self._tail = 0  # as last read
        self.kind = 0
        """Of the record that was taken last."""
        self.channel = 0
        """Of the record that was taken last."""
        self.at = 0
        """Where the bytes of the record that was taken last lie in the memory."""
        self.n_bytes = 0
        """How many these are."""

    def has_records(self) -> bool:
        """Whether there is a record to take."""
        return bool(self._words[self._tail_word] != self._head)

    def look(self) -> None:
        """Find out up to where `take` may go."""
        self._tail = self._words[self._tail_word]
        self._fence.between()

    def take(self) -> bytes | None:
        """The bytes of the next record, or None if that is behind what `look` saw."""
        if not self.advance():
            return None
        return self.data()

    def data(self) -> bytes:
        """The bytes of the record that was taken last."""
        return self._memory[self.at : self.at + self.n_bytes]

    def advance(self) -> bool:
        """Take the next record, which stays where it is until `release`; False if there is none."""
        head = self._head
        if head == self._tail:
            return False
        at = head & _MASK
        word = self._words[self._start + at >> 3]
        if word == _SKIP:
            head += _RING_BYTES - at
            at = 0
            word = self._words[self._start >> 3]
        n_bytes = word & _SIZE_MASK
        self.kind = word >> 56
        self.channel = word >> 32 & _MAX_CHANNEL
        self.at = self._start + at + 8
        self.n_bytes = n_bytes
        self._head = head + (n_bytes + 15 & -8)
        return True

    def release(self) -> bool:
        """Give the room of what was taken to the writer; whether that waits for it.

        Little room is kept until there is more of it. A writer waits only where more
        than half of the ring is not released, of which it needs the other half at
        most: so a reader that takes all that is there has enough to release.
        """
        if self._head - self._released < RELEASE_BYTES:
            return False
        self._released = self._head
        self._fence.between()
        self._words[self._head_word] = self._head
        self._fence.full()
        if not self._words[self._starved_word]:
            return False
        self._words[self._starved_word] = 0
        return True
