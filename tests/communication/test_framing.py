"""Frames: whatever is written is read back, however the stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.communication import framing
from pointstamp.communication.framing import AREA_BYTES, Frame, FrameKind, FrameReader, frame
from pointstamp.errors import FileFormatError, SerializationError

HEADER = bytes([1, 0xA7, 0, 0]) + (7).to_bytes(4, "little")

bodies = st.lists(st.binary(max_size=50), max_size=4)
sizes = st.sampled_from([0, 1, 100, AREA_BYTES // 2, AREA_BYTES - 16, AREA_BYTES, 3 * AREA_BYTES])


def written(*frames: tuple[FrameKind, int, list[bytes]]) -> bytes:
    return b"".join(bytes(piece) for each in frames for piece in frame(*each))


def plain(frames: list[Frame]) -> list[tuple[FrameKind, int, bytes]]:
    return [(kind, channel, bytes(body)) for kind, channel, body in frames]


def test_the_bytes_of_a_frame_are_as_documented():
    assert (
        written((FrameKind.DATA, 7, [b"ab", b"c"])) == HEADER + (3).to_bytes(8, "little") + b"abc"
    )


@given(
    st.lists(st.tuples(st.sampled_from(FrameKind), st.integers(0, 2**32 - 1), bodies), max_size=8),
    st.lists(st.integers(1, 40), max_size=60),
)
def test_any_chunks_give_the_same_frames(frames, cuts):
    stream, reader, found = written(*frames), FrameReader(), []
    for size in [*cuts, len(stream)]:
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert plain(found) == [(kind, channel, b"".join(body)) for kind, channel, body in frames]
    assert reader.is_between_frames


@given(st.lists(sizes, max_size=6), st.integers(1, 2 * AREA_BYTES))
def test_frames_around_the_size_of_the_area_come_whole(sizes, step):
    frames = [(FrameKind.DATA, n, [bytes([n + 1]) * size]) for n, size in enumerate(sizes)]
    stream, reader, found = written(*frames), FrameReader(), []
    for start in range(0, len(stream), step):
        found += reader.feed(stream[start : start + step])
    assert plain(found) == [(kind, channel, body[0]) for kind, channel, body in frames]


def test_a_stream_that_ends_within_a_frame_is_noticed():
    reader = FrameReader()
    assert reader.feed(written((FrameKind.DATA, 0, [b"abc"]))[:-1]) == []
    assert not reader.is_between_frames
    large = FrameReader()
    assert large.feed(written((FrameKind.DATA, 0, [bytes(AREA_BYTES)]))[:-1]) == []
    assert not large.is_between_frames


def test_frames_do_not_share_memory_with_what_comes_later():
    reader = FrameReader()
    [first] = reader.feed(written((FrameKind.DATA, 0, [b"first"])))
    reader.feed(written((FrameKind.DATA, 0, [b"later"])))
    assert bytes(first.body) == b"first"


def test_a_large_body_is_read_into_aligned_memory_of_its_own():
    reader = FrameReader()
    pieces = frame(FrameKind.DATA, 0, [bytes(10 * AREA_BYTES)])
    reader.feed(pieces[0])
    assert len(reader.space()) == 10 * AREA_BYTES
    [whole] = reader.feed(pieces[1])
    import numpy as np

    assert np.frombuffer(whole.body, np.uint8).ctypes.data % framing.BODY_ALIGNMENT == 0


def test_large_buffers_are_not_copied_on_their_way_out():
    large = bytes(framing.COPY_BYTES + 1)
    assert frame(FrameKind.DATA, 0, [large])[1] is large


def test_small_frames_are_one_piece():
    assert len(frame(FrameKind.DATA, 0, [b"a", b"b", b"c"])) == 1


@given(st.binary(min_size=16, max_size=200))
def test_garbage_is_an_error_or_a_frame_and_takes_no_memory(garbage):
    reader = FrameReader(max_frame_bytes=1_000)
    try:
        reader.feed(garbage)
    except FileFormatError:
        return
    assert len(reader.space()) <= AREA_BYTES


def test_a_length_that_cannot_be_is_refused_before_memory_is_taken():
    with pytest.raises(FileFormatError, match=f"says that it has {2**63} bytes"):
        FrameReader().feed(HEADER + (2**63).to_bytes(8, "little"))


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_wrong_byte_at_the_front_is_refused(place):
    header = bytearray(HEADER + bytes(8))
    header[place] ^= 0x55
    with pytest.raises(FileFormatError, match="a frame was expected"):
        FrameReader().feed(header)


def test_a_frame_too_large_to_send_says_so(monkeypatch):
    monkeypatch.setattr(framing, "MAX_FRAME_BYTES", 100)
    with pytest.raises(SerializationError, match="101 bytes is too large to send: at most 100"):
        frame(FrameKind.DATA, 0, [bytes(101)])
