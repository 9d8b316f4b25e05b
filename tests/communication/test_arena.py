"""Blocks are never handed out twice, and all come back; what is leased is returned at its end."""

from __future__ import annotations

import gc
import itertools
import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.communication import segment
from pointstamp.communication.arena import RETURNED, Arena
from pointstamp.communication.block_leases import BlockLeases
from pointstamp.communication.segment import ARENA_BYTES, N_BLOCKS, Segment

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd_create")


def mapped():
    fd = segment.create(2)
    memory = Segment(fd, 2)
    os.close(fd)
    return memory


@pytest.fixture
def memory():
    mapping = mapped()
    yield mapping
    gc.collect()
    mapping.close()


def give_back(memory, block):
    memory.memory[memory.layout.states_byte(0) + block.number] = RETURNED


@given(st.lists(st.integers(1, ARENA_BYTES // 3) | st.just("return"), max_size=60), st.randoms())
def test_blocks_do_not_overlap_and_all_come_back(actions, random):
    memory = mapped()
    arena, out = Arena(memory, 0), []
    for action in actions:
        if action == "return":
            if out:
                give_back(memory, out.pop(random.randrange(len(out))))
        elif (block := arena.take(action)) is not None:
            assert block.n_bytes >= action
            out.append(block)
            out.sort(key=lambda block: block.start)
            for one, other in itertools.pairwise(out):
                assert one.start + one.n_bytes <= other.start
            assert out[0].start >= memory.layout.arena_byte(0)
            assert out[-1].start + out[-1].n_bytes <= memory.layout.arena_byte(1)
    for block in out:
        give_back(memory, block)
    whole = arena.take(ARENA_BYTES)
    assert whole is not None
    assert whole.start == memory.layout.arena_byte(0)
    memory.close()


def test_an_arena_gives_no_more_than_it_has(memory):
    arena = Arena(memory, 0)
    assert arena.take(ARENA_BYTES + 1) is None
    blocks = [arena.take(ARENA_BYTES // 4) for _ in range(4)]
    assert arena.take(1) is None
    give_back(memory, blocks[2])
    assert arena.take(ARENA_BYTES // 4).start == blocks[2].start


def test_there_are_so_many_blocks_and_no_more(memory):
    arena = Arena(memory, 0)
    blocks = [arena.take(1) for _ in range(N_BLOCKS)]
    assert arena.take(1) is None
    give_back(memory, blocks[-1])
    assert arena.take(1).number == blocks[-1].number


def state(memory, block):
    return memory.memory[memory.layout.states_byte(0) + block.number]


def test_a_block_is_returned_when_its_last_view_is_gone(memory):
    block = Arena(memory, 0).take(5_000)
    memory.memory[block.start : block.start + 3] = b"abc"
    lender = BlockLeases(memory, 0, 2)
    column = np.frombuffer(lender.lease(block.number, block.start, 5_000), np.uint8)
    assert bytes(column[:3]) == b"abc"
    assert not column.flags.writeable
    part = column[1:3]
    del column
    lender.return_unused()
    assert state(memory, block) != RETURNED
    assert bytes(part) == b"bc"
    thread = threading.Thread(target=list.clear, args=([part],))
    del part
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert state(memory, block) != RETURNED  # noted, and done by the thread whose it is
    lender.return_unused()
    assert state(memory, block) == RETURNED
    assert lender.n_leased_bytes == 0


def test_who_keeps_too_much_gets_copies(memory):
    arena, lender = Arena(memory, 0), BlockLeases(memory, 0, 2)
    size, kept = ARENA_BYTES // 8, []
    for _ in range(6):
        block = arena.take(size)
        memory.memory[block.start] = 7
        kept.append((block, lender.lease(block.number, block.start, size)))
    assert [state(memory, block) == RETURNED for block, _ in kept] == [False] * 4 + [True] * 2
    assert all(view[0] == 7 and len(view) == size for _, view in kept)
    memory.memory[kept[5][0].start] = 8
    assert kept[5][1][0] == 7


def test_who_keeps_too_many_gets_copies(memory):
    arena, lender = Arena(memory, 0), BlockLeases(memory, 0, 2)
    kept = []
    for _ in range(N_BLOCKS):
        block = arena.take(10)
        kept.append((block, lender.lease(block.number, block.start, 10)))
    n_lent = sum(state(memory, block) != RETURNED for block, _ in kept)
    assert n_lent == N_BLOCKS // 2
