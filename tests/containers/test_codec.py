"""Messages survive their bytes; anything less than a whole message is refused."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import Arrays, decode, encode
from pointstamp.errors import ContainerError, SerializationError

BATCHES = [
    [],
    [1, ("a", None), {"b": 2.5}],
    Arrays(a=np.arange(5), b=np.array([1.5, 2, 3, 4, 5], np.float32), c=np.array(list("abcde"))),
    Arrays(a=np.empty(0, np.int8), b=np.empty(0)),
    Arrays(),
    pa.record_batch({"a": [1, 2, None], "s": ["x", "yy", None]}),
    pa.record_batch({"a": pa.array([], pa.int64())}),
    pa.record_batch({"a": [1, 2, 3, 4]}).slice(1, 2),
]


@pytest.fixture(scope="module", params=BATCHES, ids=lambda batch: type(batch).__name__)
def batch(request):
    return request.param


def test_a_message_survives_as_buffers_and_joined(batch):
    for tag in (None, 7, (1, (2, 3)), "round"):
        buffers = encode(batch, tag)
        assert decode(buffers) == (tag, batch)
        assert decode([b"".join(buffers)]) == (tag, batch)
        assert decode([memoryview(bytearray(buffer)) for buffer in buffers]) == (tag, batch)


def test_empty_buffers_may_be_dropped_on_the_way(batch):
    kept = [buffer for buffer in encode(batch, 1) if len(buffer)]
    assert decode(kept) == (1, batch)


def test_columns_of_a_joined_message_are_aligned_for_kernels():
    batch = Arrays(a=np.arange(3_001, dtype=np.int16), b=np.arange(3_001))
    joined = b"".join(encode(batch, 0))
    copy = np.empty(len(joined) + 64, np.uint8)
    start = -copy.ctypes.data % 64
    copy[start : start + len(joined)] = np.frombuffer(joined, np.uint8)
    _, decoded = decode([copy[start : start + len(joined)].data])
    assert decoded == batch
    assert decoded["b"].flags.aligned
    assert np.shares_memory(decoded["b"], copy)


def test_lambdas_and_local_classes_travel():
    class Local:
        def __init__(self, n):
            self.n = n

    tag, (function, thing) = decode(encode([lambda x: x + 1, Local(5)], "t"))
    assert (tag, function(1), thing.n) == ("t", 2, 5)


def test_a_record_that_cannot_be_pickled_is_named():
    with pytest.raises(SerializationError, match=r"record 2 of a batch of 4 .*lock") as caught:
        encode([1, 2, threading.Lock(), 4], 0)
    assert isinstance(caught.value.__cause__, TypeError)
    column = np.array([1, threading.Lock()], object)
    with pytest.raises(SerializationError, match="record 1"):
        encode(Arrays(a=column), 0)


def test_a_tag_that_cannot_be_pickled_is_named():
    with pytest.raises(SerializationError, match=r"tag .*lock"):
        encode([1], threading.Lock())


def test_what_is_no_container_is_refused():
    with pytest.raises(ContainerError, match="range"):
        encode(range(3), 0)


def test_every_truncation_is_refused(batch):
    joined = b"".join(encode(batch, (1, 2)))
    for stop in range(len(joined)):
        with pytest.raises(SerializationError):
            decode([joined[:stop]])
    with pytest.raises(SerializationError):
        decode([joined + b"\0"])


def test_a_missing_or_short_buffer_is_refused():
    buffers = encode(Arrays(a=np.arange(8), b=np.arange(8)), 0)
    for index in range(len(buffers)):
        with pytest.raises(SerializationError):
            decode(buffers[:index] + buffers[index + 1 :])
    with pytest.raises(SerializationError):
        decode([])


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(data):
    with pytest.raises(SerializationError):
        decode([data])


@given(st.data())
def test_a_payload_that_is_garbage_is_refused(data):
    header, payload, *rest = encode(pa.record_batch({"a": [1, 2, 3]}), 0)
    garbage = data.draw(st.binary(min_size=len(payload), max_size=len(payload)))
    with pytest.raises(SerializationError, match="columns"):
        decode([header, garbage, *rest])
