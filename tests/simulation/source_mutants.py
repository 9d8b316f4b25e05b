"""Planted bugs in engines that random dataflows hardly reach, one line each.

Every mutant says which random program (`engines`) must catch it within `N_RUNS` runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.engines import messages, progress, shared_memory
from tests.simulation.planting import Planting

N_RUNS = 40
"""How many runs a mutant may survive at most."""


@dataclass(frozen=True)
class SourceMutant:
    """A planted bug: what it is, where it is, and the random program that finds it."""

    what: str
    program: Callable[[int], None]
    planting: Planting


def hunt_source(mutant: SourceMutant, n_runs: int = N_RUNS) -> tuple[int, Exception] | None:
    """After how many runs a mutant is caught, and by what; None if it survives them."""
    with mutant.planting.planted():
        for seed in range(n_runs):
            try:
                mutant.program(seed)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is not silence)
                return seed + 1, error
    return None


def _of(
    module: str, program: Callable[[int], None], *changes: tuple[str, str, str]
) -> list[SourceMutant]:
    return [
        SourceMutant(what, program, Planting(f"pointstamp.{module}", old, new))
        for what, old, new in changes
    ]


SOURCE_MUTANTS = [
    *_of(
        "dataflow.notificator",
        progress.check_notifications,
        (
            "A late notification is forgotten with the next request.",
            "self._is_late = self._is_late or self._is_complete(time)",
            "self._is_late = self._is_complete(time)",
        ),
        (
            "A request before the least one takes its place, and that is lost.",
            "            self._put(self._first_time, first)\n",
            "",
        ),
        (
            "A second request of a time keeps its capability for ever.",
            "                if first is not capability:\n                    capability.drop()\n",
            "",
        ),
        (
            "The times that were passed over are not put back.",
            "        for entry in passed:\n            heappush(heap, entry)\n",
            "",
        ),
        (
            "Only the first input's frontier is looked at.",
            "for frontier in self._frontiers:",
            "for frontier in self._frontiers[:1]:",
        ),
    ),
    *_of(
        "progress.antichain",
        progress.check_counts,
        (
            "Counts are shifted by one when the free places at the beginning are used.",
            "numbers[:n] = numbers[self._first : self._end]",
            "numbers[:n] = numbers[self._first - 1 : self._end - 1]",
        ),
        (
            "A place is free at the beginning, and a time that comes there is put one too late.",
            "self._first = place = place - 1",
            "self._first = place - 1",
        ),
        (
            "The next time of a frontier is the next that has a count, and be it negative.",
            "while place < end and numbers[place] <= 0:",
            "while place < end and numbers[place] == 0:",
        ),
        (
            "A change by several that makes a count positive from below zero goes unseen.",
            "if before <= 0 < after:",
            "if before == 0 < after:",
        ),
    ),
    *_of(
        "progress.change_batch",
        progress.check_counts,
        (
            "The change that makes many of few is lost.",
            "            self._make_many()\n            self._update_many(item, change)\n",
            "            self._make_many()\n",
        ),
    ),
    *_of(
        "communication.ring",
        shared_memory.check_rings,
        (
            "A record that ends where the ring ends is put behind a mark, though it fits.",
            "if at + n_whole > RING_BYTES:",
            "if at + n_whole >= RING_BYTES:",
        ),
        (
            "Skipped bytes are not counted when room is looked for.",
            "if tail + n_skipped + n_whole - self._head > RING_BYTES:\n                return",
            "if tail + n_whole - self._head > RING_BYTES:\n                return",
        ),
        (
            "A record's size is rounded down to words.",
            "self._head = head + (n_bytes + 15 & -8)",
            "self._head = head + (n_bytes + 8 & -8)",
        ),
        (
            "A reader takes what is put and not published.",
            "        if head == self._tail:\n            return None\n",
            "        if self._words[self._start + (head & _MASK) >> 3] == 0:\n"
            "            return None\n",
        ),
        (
            "The upper half of a channel's number is cut off.",
            "self.channel = word >> 32 & MAX_CHANNEL",
            "self.channel = word >> 32 & 0xFFFF",
        ),
        (
            "A reader makes room and does not say so to a writer that waits.",
            "        self._words[self._starved_word] = 0\n        return True",
            "        self._words[self._starved_word] = 0\n        return False",
        ),
        (
            "Room is looked up only once.",
            "            self._head = self._words[self._head_word]\n"
            "            if tail + n_skipped",
            "            if tail + n_skipped",
        ),
    ),
    *_of(
        "communication.arena",
        shared_memory.check_blocks,
        (
            "A block that was returned is not joined with the free piece before it.",
            "if place and self._ends[place - 1] == start:",
            "if place > 1 and self._ends[place - 1] == start:",
        ),
        (
            "A block is as long as its message, and the next begins in its last page.",
            "n_whole = n_bytes + -n_bytes % PAGE_BYTES",
            "n_whole = n_bytes - n_bytes % PAGE_BYTES",
        ),
        (
            "A block that is not returned is freed all the same.",
            "== RETURNED:",
            ">= RETURNED:",
        ),
        (
            "A block that is still out is forgotten when it was looked at.",
            "            else:\n                self._out.append(block)\n",
            "",
        ),
    ),
    *_of(
        "communication.block_leases",
        shared_memory.check_blocks,
        (
            "A block goes back while a view of it is alive.",
            "        self._leases[id(lease)] = lease\n",
            "        self._leases[id(lease)] = lease\n        self._return(number)\n",
        ),
        (
            "What was leased stays counted when it goes back.",
            "            self.n_leased_bytes -= lease.n_bytes\n",
            "",
        ),
        (
            "A copy is given out as new memory, and nothing is copied there.",
            "        own[:] = array.data\n",
            "",
        ),
        (
            "A peer may lease the whole arena, and the others nothing.",
            "self._max_bytes = ARENA_BYTES // 2 // max(1, peers - 1)",
            "self._max_bytes = ARENA_BYTES",
        ),
    ),
    *_of(
        "communication.framing",
        messages.check_frames,
        (
            "A frame that is complete with the last byte read is given out with the next one.",
            "if end - body < n_body:",
            "if end - body <= n_body:",
        ),
        (
            "What came of a large body together with its header is left out.",
            "        self._body[: self._filled] = self._area[start:end]\n",
            "",
        ),
        (
            "Bodies share the memory of the area, which is written to again.",
            "memoryview(bytes(area[body:start]))",
            "area[body:start]",
        ),
        (
            "A body is taken to be complete one byte early.",
            "if self._filled < len(self._body):",
            "if self._filled < len(self._body) - 1:",
        ),
        (
            "Where the area is full its rest is moved, and its end is not.",
            "            start, end = 0, end - start\n",
            "            start = 0\n",
        ),
        (
            "The unused bytes of a header are not checked.",
            "if kind is None or mark != _MARK or unused:",
            "if kind is None or mark != _MARK:",
        ),
    ),
    *_of(
        "communication.shared_link",
        messages.check_mesh,
        (
            "A small message overtakes large ones that wait for room.",
            "if self.n_unsent or not self._writer.put(",
            "if not self._writer.put(",
        ),
        (
            "The rest of a message in pieces is lost where its first piece was cut.",
            "self._pieces[0] = piece[MAX_RECORD_BYTES:]",
            "self._pieces.popleft()",
        ),
        (
            "The second buffer of a message is put over the first in its block.",
            "            at += len(buffer)\n",
            "",
        ),
        (
            "A link that was blocked does not try again.",
            "        if self.n_unsent:\n            self._put_unsent()\n",
            "        if self.n_unsent and not self.is_blocked:\n            self._put_unsent()\n",
        ),
    ),
    *_of(
        "communication.stream_link",
        messages.check_mesh,
        (
            "What a socket took of a piece is sent again.",
            "            self.unsent[0] = memoryview(self.unsent[0])[n_bytes:]\n",
            "            self.unsent[0] = memoryview(self.unsent[0])\n",
        ),
    ),
    *_of(
        "communication.mailbox",
        messages.check_mesh,
        (
            "What came for a channel before it was made is thrown away.",
            "arrived = self._queues.setdefault(id, deque())",
            "arrived = self._queues[id] = deque()",
        ),
        (
            "A channel that got messages is named by the next call only, if that is made at once.",
            "        touched = sorted(self._touched)\n",
            "        touched = sorted(self._touched)[:1]\n",
        ),
    ),
    *_of(
        "communication.mesh",
        messages.check_mesh,
        (
            "The silence of a peer counts more than its word.",
            "if self._failure is None or (self._failure.lost and not found.lost):",
            "if self._failure is None or found.lost:",
        ),
    ),
]
