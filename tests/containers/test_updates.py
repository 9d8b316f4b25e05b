"""Batches of updates: to their workers, and as bytes of small messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers.arrays import BLOCK_BYTES
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.updates import ChosenWords, FirstWords, Updates, UpdatesKind
from pointstamp.errors import ContainerError

KIND = UpdatesKind()

batches = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(-3, 3)] * width, st.integers(-2, 2))).map(
        lambda rows: np.array(rows, np.int64).reshape(-1, width + 1)
    )
)


@given(rows=batches, peers=st.integers(1, 4), data=st.data())
def test_each_update_goes_where_the_hash_of_its_key_says(rows, peers, data):
    width = rows.shape[1] - 1
    n_key = data.draw(st.integers(1, width))
    words = range(width)
    texts = tuple(word for word in words if data.draw(st.booleans(), label=f"{word} is a text"))
    for word in texts:
        rows[:, word] = TEXTS.numbers([b"%d" % value for value in rows[:, word].tolist()])
    batch = Updates(rows, texts)
    parts = KIND.exchange(batch, FirstWords(n_key), peers)
    expected = KIND.split(batch, KIND.hashes(batch, FirstWords(n_key)), peers)
    assert [part.rows.tolist() for part in parts] == [part.rows.tolist() for part in expected]
    assert {part.texts for part in parts} == {texts}
    chosen = KIND.exchange(batch, ChosenWords(tuple(range(n_key))), peers)
    assert [part.rows.tolist() for part in chosen] == [part.rows.tolist() for part in expected]


@given(rows=batches)
def test_a_small_message_has_the_updates(rows):
    packed = KIND.pack_small(Updates(rows))
    assert packed is not None
    found = KIND.unpack_small(*packed)
    assert found.texts == ()
    assert found.rows.dtype == np.int64
    assert found.rows.tolist() == rows.tolist()
    assert found.rows.shape == rows.shape


def test_texts_and_what_is_not_small_go_otherwise():
    small = np.ones((2, 3), np.int64)
    assert KIND.pack_small(Updates(small, (1,))) is None
    assert KIND.pack_small(Updates(np.ones((BLOCK_BYTES // 24 + 1, 3), np.int64))) is None
    assert KIND.pack_small(Updates(np.ones((1, 64), np.int64))) is None


@pytest.mark.parametrize("width", [0, 2])
def test_a_block_of_no_whole_updates_is_refused(width):
    with pytest.raises(ContainerError, match=f"24 bytes has no whole updates of {width} words"):
        KIND.unpack_small(width.to_bytes(8, "little"), bytes(24))
