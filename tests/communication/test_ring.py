"""A ring gives back what was put, in order, whatever the sizes; and never more than fits."""

from __future__ import annotations

import os
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.communication import segment
from pointstamp.communication.ring import (
    MAX_CHANNEL,
    MAX_RECORD_BYTES,
    RELEASE_BYTES,
    RingReader,
    RingWriter,
    described,
)
from pointstamp.communication.segment import RING_BYTES, Segment

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd_create")


@pytest.fixture
def ring():
    memory, *ends = open_ring()
    yield ends
    ends.clear()  # compiled, they hold on to the memory
    memory.close()


def open_ring():
    fd = segment.create(2)
    memory = Segment(fd, 2)
    os.close(fd)
    return memory, RingWriter(memory, 0, 1), RingReader(memory, 0, 1)


def taken(reader):
    reader.look()
    got = []
    while (data := reader.take()) is not None:
        got.append((reader.kind, reader.channel, data))
    reader.release()
    return got


def test_what_was_put_is_there_once_it_is_published(ring):
    writer, reader = ring
    assert writer.put(described(1, 7), b"seven")
    assert writer.put(described(127, MAX_CHANNEL), b"")
    assert not reader.has_records()
    assert taken(reader) == []
    writer.publish()
    assert reader.has_records()
    assert taken(reader) == [(1, 7, b"seven"), (127, MAX_CHANNEL, b"")]
    assert not reader.has_records()


def test_a_full_ring_refuses_until_room_is_made(ring):
    writer, reader = ring
    data = bytes(1_000)
    n_fitting = 0
    while writer.put(described(1, 0), data):
        n_fitting += 1
    assert n_fitting == RING_BYTES // 1_008
    writer.publish()
    assert not writer.starve()
    assert not writer.has_room_for(len(data))
    reader.look()
    assert reader.take() == data
    assert not reader.release()  # too little to tell of
    for _ in range(RELEASE_BYTES // len(data)):
        assert reader.take() == data
    assert not writer.has_more_room()  # taken, and not released yet
    assert reader.release()  # and the writer is to be told
    assert not reader.release()  # once
    assert writer.has_more_room()


def test_a_writer_that_starves_too_late_sees_the_room(ring):
    writer, reader = ring
    while writer.put(described(1, 0), bytes(1_000)):
        pass
    writer.publish()
    assert len(taken(reader)) == RING_BYTES // 1_008
    assert writer.starve()


ACTIONS = st.lists(
    st.integers(0, MAX_RECORD_BYTES) | st.integers(0, 100) | st.just("publish") | st.just("take"),
    max_size=200,
)


@given(ACTIONS)
def test_the_ring_is_a_queue(actions):
    memory, writer, reader = open_ring()
    put, published, number = deque(), deque(), 0
    for action in actions:
        if action == "publish":
            writer.publish()
            published += put
            put.clear()
        elif action == "take":
            assert taken(reader) == list(published)
            published.clear()
        else:
            number += 1
            record = (1 + number % 127, number, number.to_bytes(2, "little") * (action // 2))
            has_room = writer.has_room_for(len(record[2]))
            assert writer.put(described(*record[:2]), record[2]) == has_room
            if has_room:
                put.append(record)
            else:
                assert put or published  # what is empty takes everything
                writer.publish()
                published += put
                put.clear()
                assert not writer.starve()
                assert taken(reader) == list(published)
                published.clear()
                assert writer.has_more_room()
                assert writer.has_room_for(len(record[2]))
    writer.publish()
    assert taken(reader) == [*published, *put]
    del writer, reader
    memory.close()
