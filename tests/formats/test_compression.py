"""Packed buffers come back as they were; damaged ones are refused."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import SerializationError, UsageError
from pointstamp.formats import compression
from pointstamp.formats.compression import CODECS, available, check, pack, unpack


@given(
    st.lists(st.binary(max_size=300) | st.integers(0, 5_000).map(bytes)), st.sampled_from([*CODECS])
)
def test_buffers_come_back_as_they_were(buffers, codec):
    assert [bytes(buffer) for buffer in unpack(b"".join(pack(buffers, codec)))] == buffers


@pytest.mark.parametrize("codec", CODECS)
def test_what_repeats_gets_small_and_what_does_not_stays_as_it_is(codec):
    repeats = np.arange(100_000) % 7
    noise = np.random.default_rng(1).integers(0, 1 << 62, 10_000)
    _, first, _, second, _ = pack([repeats.data.cast("B"), noise.data.cast("B")], codec)
    assert len(first) < repeats.nbytes / 10
    assert second is not first
    assert len(second) == noise.nbytes
    assert np.shares_memory(np.frombuffer(second, np.uint8), noise.view(np.uint8))


def test_what_was_not_compressed_is_read_in_place_and_aligned():
    noise = np.random.default_rng(1).bytes(1_000)
    joined = np.frombuffer(b"".join(pack([noise, bytes(1_000), noise], "lz4")), np.uint8)
    own = np.empty(len(joined) + 64, np.uint8)
    start = -own.ctypes.data % 64
    own[start : start + len(joined)] = joined
    found = unpack(own[start : start + len(joined)].data)
    for buffer in (found[0], found[2]):
        array = np.frombuffer(buffer, np.uint8)
        assert np.shares_memory(array, own)
        assert array.ctypes.data % 64 == 0


def test_every_truncation_is_refused():
    joined = b"".join(pack([b"abc" * 100, b"xyz" * 50], "zstd")).rstrip(b"\0")
    for stop in range(len(joined)):
        with pytest.raises(SerializationError):
            unpack(joined[:stop])


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused_or_are_buffers(data):
    with contextlib.suppress(SerializationError):
        assert isinstance(unpack(data), list)


def test_an_unknown_codec_is_refused_with_those_that_are_known():
    with pytest.raises(UsageError, match=r"cannot compress by 'gzip'.*\['lz4', 'zstd'\]"):
        check("gzip")


def test_a_codec_that_this_arrow_lacks_is_not_available(monkeypatch):
    codec = SimpleNamespace(is_available=lambda name: name == "zstd")
    monkeypatch.setattr(compression, "pa", SimpleNamespace(Codec=codec))
    assert available() == {2: "zstd"}
