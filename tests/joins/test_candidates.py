"""Prefixes with lists obey the laws of a container, and lists follow their prefixes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import Arrays, decode, encode, kind_of
from pointstamp.joins.candidates import LIST, PrefixesWithCandidates, size


@st.composite
def batches(draw):
    lists = draw(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=5))
    numbers = draw(st.lists(st.integers(-1, len(lists) - 1), max_size=12))
    vertices = [draw(st.integers(0, 9)) for _ in numbers]
    starts = np.cumsum([0, *map(len, lists)])
    values = np.array([v for one in lists for v in one], np.int64)
    columns = {"v": np.array(vertices, np.int64), LIST: np.array(numbers, np.int64)}
    return PrefixesWithCandidates(Arrays(columns), starts, values)


def seen(batch):
    """Each prefix with its list, or with None."""
    found = []
    for vertex, number in zip(
        batch.prefixes["v"].tolist(), batch.prefixes[LIST].tolist(), strict=True
    ):
        begin, end = (batch.starts[number], batch.starts[number + 1]) if number >= 0 else (0, 0)
        found.append((vertex, batch.values[begin:end].tolist() if number >= 0 else None))
    return found


@given(batches(), st.integers(0, 12))
def test_cut_and_put_together_it_is_what_it_was(batch, cut):
    kind = kind_of(batch)
    cut = min(cut, len(batch))
    parts = [kind.slice(batch, 0, cut), kind.slice(batch, cut, len(batch))]
    assert [kind.length(part) for part in parts] == [cut, len(batch) - cut]
    assert seen(parts[0]) + seen(parts[1]) == seen(batch)
    assert seen(kind.concat(parts)) == seen(batch)
    assert kind.schema(kind.concat(parts)) == kind.schema(batch)


@given(batches(), st.integers(1, 4))
def test_split_each_worker_has_its_prefixes_with_their_lists_and_no_others(batch, peers):
    kind = kind_of(batch)
    hashes = kind.hashes(batch, "v")
    parts = kind.split(batch, hashes, peers)
    assert len(parts) == peers
    for peer, part in enumerate(parts):
        mine = [
            row for row, h in zip(seen(batch), hashes.tolist(), strict=True) if h % peers == peer
        ]
        assert seen(part) == mine
        if peers > 1:
            named = set(part.prefixes[LIST].tolist()) - {-1}
            assert named == set(range(len(part.starts) - 1))


@given(batches())
def test_what_is_decoded_is_what_was_encoded(batch):
    tag, decoded = decode([b"".join(bytes(part) for part in encode(batch, "tag"))])
    assert tag == "tag"
    assert seen(decoded) == seen(batch)
    assert list(kind_of(batch).records(decoded)) == list(batch.prefixes)


def test_lists_count_for_the_size_of_a_batch():
    batch = PrefixesWithCandidates(Arrays(v=[1], list=[0]), np.array([0, 400]), np.arange(400))
    assert size(batch) == 100
    assert size(batch.prefixes) == 1
    assert kind_of(batch).n_bytes(batch) == 16
