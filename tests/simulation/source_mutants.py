"""Planted bugs in engines that random dataflows hardly reach, one line each.

Every mutant says which random program (`engines`) must catch it within `N_RUNS` runs. Texts
that are changed are those of the modules: where a module changes, its mutants follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.engines import (
    control_plane,
    epochs,
    flow,
    messages,
    progress,
    shared_memory,
    staging,
    windows,
)
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
            "        if waiting is not capability:\n            capability.drop()\n",
            "",
        ),
        (
            "A requirement that is complete when it is asked for is not late.",
            "        self._is_late = self._is_late or self._is_complete(requirement)\n",
            "",
        ),
        (
            "What is complete, and is not the least that is, is forgotten.",
            "            if self._is_line:\n"
            "                self._keep_in_line(found.time, found)\n"
            "            else:\n"
            "                self._put(found.time, found)\n",
            "            pass\n",
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
        "progress.staircase",
        progress.check_staircase,
        (
            "A pair that goes uncovers what the pair before it in the frontier covers still.",
            "            below = _inner(frontier[place - 1])\n",
            "            pass\n",
        ),
        (
            "A pair that goes uncovers what the pair after it in the frontier covers still.",
            "            until = _outer(frontier[place + 1])\n",
            "            pass\n",
        ),
        (
            "Of a block of pairs it is said that all are later than they are.",
            "        if after > 0 and inner < block.least:\n",
            "        if after > 0 and inner < block.least and not block.times:\n",
        ),
        (
            "A pair stays in the frontier when one comes that is before it in one coordinate.",
            "_inner(frontier[end]) >= inner:",
            "_inner(frontier[end]) > inner:",
        ),
        (
            "What has a count below zero is uncovered, too.",
            "if number <= 0:",
            "if number == 0:",
        ),
        (
            "When all of a block of pairs are gone, it stays.",
            "            if len(self._blocks) > 1:\n",
            "            if len(self._blocks) > 9:\n",
        ),
    ),
    *_of(
        "progress.few_counts",
        progress.check_few_counts,
        (
            "A time that has come in covers no other of the same round.",
            "                if below < inner:\n",
            "                if below <= inner:\n",
        ),
        (
            "A time is covered by one that has a count, and be it negative.",
            "        for other in range(place):\n"
            "            if self._entries[3 * other + 2] > 0 and",
            "        for other in range(place):\n"
            "            if self._entries[3 * other + 2] != 0 and",
        ),
        (
            "A time comes up when what covered it goes, though another covers it still.",
            "                below = self._entries[3 * other + 1]\n"
            "                if below < inner:",
            "                below = self._entries[3 * other + 1] + 1\n"
            "                if below < inner:",
        ),
        (
            "A time that is the same in one of its numbers is taken for another.",
            "if self._entries[3 * place] == outer and self._entries[3 * place + 1] == inner:\n"
            "                return self._entries[3 * place + 2]",
            "if self._entries[3 * place + 1] == inner:\n"
            "                return self._entries[3 * place + 2]",
        ),
        (
            "Of many that become few again, the last is lost.",
            "        for time, number in counts:\n            outer = 0",
            "        for time, number in counts[:-1]:\n            outer = 0",
        ),
    ),
    *_of(
        "progress.change_batch",
        progress.check_counts,
        (
            "The counts of numbers stay in their places when one before them has cancelled.",
            "            self.entries[to] = self.entries[to + 3]\n",
            "            if to % 3 < 2:\n                self.entries[to] = self.entries[to + 3]\n",
        ),
        (
            "An integer that comes to objects is taken for a pair.",
            "(n or self._many is not None):\n"
            "            self._update_object(_joined(outer, inner, is_pair), change)\n",
            "(n or self._many is not None):\n"
            "            self._update_object(_joined(outer, inner, True), change)\n",
        ),
        (
            "A fifth number is lost.",
            "            elif n == _FEW_NUMBERS:\n"
            "                self._update_object(_joined(outer, inner, is_pair), change)\n",
            "            elif n == _FEW_NUMBERS:\n                pass\n",
        ),
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
            "if at + n_whole > _RING_BYTES:",
            "if at + n_whole >= _RING_BYTES:",
        ),
        (
            "Skipped bytes are not counted when room is looked for.",
            "if tail + n_skipped + n_whole - self._head > _RING_BYTES:\n                return",
            "if tail + n_whole - self._head > _RING_BYTES:\n                return",
        ),
        (
            "A record's size is rounded down to words.",
            "self._head = head + (n_bytes + 15 & -8)",
            "self._head = head + (n_bytes + 8 & -8)",
        ),
        (
            "A reader takes what is put and not published.",
            "        if head == self._tail:\n            return False\n",
            "        if self._words[self._start + (head & _MASK) >> 3] == 0:\n"
            "            return False\n",
        ),
        (
            "The upper half of a channel's number is cut off.",
            "self.channel = word >> 32 & _MAX_CHANNEL",
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
    *_of(
        "communication.control_loop",
        control_plane.check_control,
        (
            "A request that is refused is answered with the refusal.",
            "        kind = FrameKind.REFUSAL\n",
            "",
        ),
        (
            "A request's answer goes to the one that was asked last.",
            "future = connection.requests.pop(found.channel, None)",
            "future = connection.requests.pop(max(connection.requests, default=0), None)",
        ),
        (
            "Requests that wait are not told that the connection has ended.",
            '        connection.fail_requests(reason or "it closed the connection")\n',
            "",
        ),
        (
            "A connection that is cut passes for one that was closed.",
            "if n_bytes == 0:\n                    self._lose(connection, NO_GOODBYE)",
            "if n_bytes == 0:\n                    self._close(connection, None)",
        ),
        (
            "The goodbye is said before what was sent.",
            "self.is_closing = self.put(frame(FrameKind.GOODBYE, 0, [])) or self.is_closing",
            "self.unsent.extendleft(frame(FrameKind.GOODBYE, 0, []))",
        ),
        (
            "Of what a socket took a part, the whole is sent again.",
            "        unsent[0] = memoryview(unsent[0])[n_bytes:]\n",
            "        pass\n",
        ),
    ),
    *_of(
        "dataflow.alignment",
        epochs.check_alignment,
        (
            "What is of the epoch of a snapshot has to wait for it as well.",
            "return self.limit is not None and self.epochs.of(time) > self.limit",
            "return self.limit is not None and self.epochs.of(time) >= self.limit",
        ),
        (
            "Batches of later epochs are let in while a snapshot is waited for.",
            "        if aligner.holds_back(item[0]):\n",
            "        if aligner.holds_back(item[0]) and aligner.limit == aligner.begun:\n",
        ),
        (
            "A snapshot is taken when the first input is complete.",
            "of(time) <= epoch for counts in self._counts for time in counts.frontier",
            "of(time) <= epoch for counts in self._counts[:1] for time in counts.frontier",
        ),
        (
            "A snapshot is taken although a capability of its epoch is held.",
            ") and not any(of(time) <= epoch for held in self._held for time in held)",
            ")",
        ),
        (
            "What waited for a snapshot is not looked at again where another one follows at once.",
            "if self._aside and self._aligner.limit != self._limit:",
            "if self._aside and self._aligner.limit is None:",
        ),
        (
            "The frontier shows the epoch after a snapshot as if nothing of it waited.",
            "        if super().less_than(time):\n            return True\n"
            "        return self.aligner is not None and self.aligner.holds_back(time)",
            "        return super().less_than(time)",
        ),
        (
            "A snapshot of which batches have begun what is later is not refused.",
            "begun = self.begun\n",
            "begun = BEFORE_ALL\n",
        ),
    ),
    *_of(
        "checkpoint.keyed_state",
        epochs.check_keyed_state,
        (
            "A key that was taken away is not told.",
            "        super().__delitem__(key)\n        self._changed.add(key)\n",
            "        super().__delitem__(key)\n",
        ),
        (
            "Of a table that is told whole, bins that are empty by now keep what they had.",
            "self._of(list(self), is_whole=True), is_whole=True)\n",
            "self._of(list(self), is_whole=True))\n",
        ),
        (
            "What is loaded has the keys of all workers.",
            "                if not is_ours:\n                    continue\n",
            "",
        ),
        (
            "Of batches that are told whole, bins that are empty by now keep what they had.",
            "return TableDelta(self.kind, changes, is_whole)\n",
            "return TableDelta(self.kind, changes)\n",
        ),
        (
            "Batches that grow only are told from the beginning again, as if they were new.",
            "for bin, batch in binned.items()}\n        self._added = []\n",
            "for bin, batch in binned.items()}\n",
        ),
    ),
    *_of(
        "checkpoint.input_log",
        epochs.check_log,
        (
            "An attempt that was committed is removed when it is aborted.",
            "            if attempt.name not in kept:\n",
            "            if attempt.name not in kept or attempt.rows:\n",
        ),
        (
            "How far an input went on is lost when its last record is pruned.",
            'reached = pruned["inputs"].get(input, {}).get("reached", BEFORE_ALL + 1)',
            "reached = BEFORE_ALL + 1",
        ),
        (
            "An input goes on with the next epoch, whatever its commit said.",
            "goes_on = epoch + 1 if until is None else until",
            "goes_on = epoch + 1",
        ),
        (
            "Pruning removes what the snapshot has not.",
            'record, attempts = of_input.get(epoch, ("", ()))\n',
            'record, attempts = of_input.get(epoch if epoch > upto + 1 else -1, ("", ()))\n',
        ),
        (
            "Records that were lost from the middle of the log are not missed.",
            "if record.previous == last and record.number == last.number + 1:",
            "if record.number > last.number:",
        ),
    ),
    *_of(
        "operators.window_state",
        windows.check_windows,
        (
            "Sessions that are a gap apart are one.",
            "(gaps >= np.uint64(self._gap))",
            "(gaps > np.uint64(self._gap))",
        ),
        (
            "A session that joins two is put with one of them.",
            "return slice(first, bisect_left(self.panes, end, first, key=_START))",
            "return slice(first, min(first + 1, bisect_left(self.panes, end, first, key=_START)))",
        ),
        (
            "A session that became part of another is released, too.",
            "        other.is_over = True\n",
            "",
        ),
        (
            "Records of a batch are put into the windows of those that stood there before.",
            "records, starts = records[order], starts[order]",
            "starts = starts[order]",
        ),
    ),
    *_of(
        "operators.window_assigners",
        windows.check_windows,
        (
            "Sliding windows leave out the earliest.",
            "steps = range(-(-size // slide))",
            "steps = range(size // slide)",
        ),
        (
            "The end of a window is in it.",
            "within = starts + size > times[records]",
            "within = starts + size >= times[records]",
        ),
    ),
    *_of(
        "operators.window_operator",
        windows.check_windows,
        (
            "A window is released when its end is reached, and not lateness later.",
            "held.downgrade(self._clock.timestamp(end + self._lateness))\n"
            "            if any(input_.frontier.less_than(held.time)",
            "held.downgrade(self._clock.timestamp(end + self._lateness))\n"
            "            if any(input_.frontier.less_than(held.time - self._lateness)",
        ),
        (
            "A window that ends before all that are open waits for those.",
            "if held is None or not self._timestamp.less_equal(held.time, wanted):",
            "if held is None:",
        ),
    ),
    *_of(
        "dataflow.backpressure",
        flow.check_backpressure,
        (
            "A channel that is over its limit is counted with each batch.",
            "if self._bytes[peer] > self._limit_bytes and not self._is_over[peer]:",
            "if self._bytes[peer] > self._limit_bytes:",
        ),
        (
            "Sources go on as soon as what is in flight is below the limit.",
            "self._bytes[peer] <= self._limit_bytes / 2:",
            "self._bytes[peer] <= self._limit_bytes:",
        ),
        (
            "Sources that wait are not told when they may go on.",
            "            self._notify(False)\n            self._go_on()\n",
            "            self._notify(False)\n",
        ),
        (
            "What was counted ahead is acknowledged again when it is taken.",
            "            self._ahead[sender] -= n_records\n            return\n",
            "            self._ahead[sender] -= n_records\n",
        ),
        (
            "What was acknowledged is acknowledged with the next again.",
            "        self._taken[sender], self._taken_bytes[sender] = 0, 0.0\n",
            "        self._taken_bytes[sender] = 0.0\n",
        ),
        (
            "An acknowledgement takes off the records, and not their bytes.",
            "        self._bytes[peer] *= left / self._records[peer]\n",
            "",
        ),
        (
            "One peer below its limit lets all sources go on.",
            "        self._n_over -= 1\n",
            "        self._n_over = 0\n",
        ),
    ),
    *_of(
        "service.worker_buffers",
        staging.check_staging,
        (
            "An attempt that is staged again replaces what it brought first.",
            "        return self._waiting.setdefault(handle.key, (handle, batches, n_bytes))[0]\n",
            "        self._waiting[handle.key] = handle, batches, n_bytes\n        return handle\n",
        ),
        (
            "An attempt that is named twice is taken twice.",
            "mine = {one.attempt: one for one in handles if one.worker == self._worker}",
            "mine = dict(enumerate(one for one in handles if one.worker == self._worker))",
        ),
        (
            "What is staged for the epoch that is decided is kept.",
            "if key[0] == input and key[1] <= epoch]:",
            "if key[0] == input and key[1] < epoch]:",
        ),
        (
            "What is decided for one input is dropped for all.",
            "if key[0] == input and key[1] <= epoch]:",
            "if key[1] <= epoch]:",
        ),
        (
            "A worker looks for what lies at others, too.",
            "for one in handles if one.worker == self._worker}",
            "for one in handles}",
        ),
    ),
    *_of(
        "service.worker_buffers",
        staging.check_feeding,
        (
            "An input that is throttled is fed on.",
            "while self._waiting and not self._handle.is_throttled:",
            "while self._waiting:",
        ),
        (
            "Of what a commit names, the first batch is sent.",
            "if next(self._waiting[0], True):\n                self._waiting.popleft()\n",
            "next(self._waiting.popleft(), None)\n",
        ),
    ),
    *_of(
        "service.worker_buffers",
        staging.check_outputs,
        (
            "The epoch after which one reads is read again.",
            "if after < epoch <= upto)",
            "if after <= epoch <= upto)",
        ),
        (
            "Discarding less than before makes what is gone look as if it was there.",
            "self.discarded = max(self.discarded, upto)\n        for epoch in",
            "self.discarded = upto\n        for epoch in",
        ),
    ),
    *_of(
        "service.flight_server",
        staging.check_flight,
        (
            "A token that begins as the right one does is let in.",
            "if hmac.compare_digest(text, self._expected):",
            "if self._expected.startswith(text):",
        ),
        (
            "A client gets the schema, and one worker to fetch from.",
            "for address in self._worker.endpoints]",
            "for address in self._worker.endpoints[:1]]",
        ),
        (
            "The error of a call is an error without its name.",
            'extra = json.dumps({"error": name, "message": str(error)}).encode()',
            'extra = b""',
        ),
        (
            "What a client brings is staged without its first batch.",
            "    for chunk in reader:\n",
            "    next(iter(reader), None)\n    for chunk in reader:\n",
        ),
        (
            "All batches of an output have the epoch of the first.",
            'json.dumps({"epoch": epoch}).encode())) for epoch, batch in pairs',
            'json.dumps({"epoch": pairs[0][0]}).encode())) for _, batch in pairs',
        ),
    ),
]
