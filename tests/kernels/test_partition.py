"""One pass that routes: stable, complete, and equal to its twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.partition import order_by_peer, partition

hashes_ = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**32 - 1, 2**63, 2**64 - 1]))
hash_lists = st.lists(hashes_, max_size=60)
numbers_of_workers = st.one_of(
    st.integers(1, 9), st.integers(1, 2**20), st.sampled_from([64, 1000, 2**20 - 1, 2**20])
)


@given(hash_lists, st.integers(1, 9))
def test_each_record_goes_where_its_hash_says_in_order(hashes, peers):
    order, starts = partition(np.array(hashes, np.uint64), peers)
    assert starts[0] == 0
    assert starts[-1] == len(hashes)
    for peer in range(peers):
        expected = [i for i, hash in enumerate(hashes) if hash % peers == peer]
        assert order[starts[peer] : starts[peer + 1]].tolist() == expected


@given(hash_lists, numbers_of_workers)
def test_partition_agrees_with_its_twin(hashes, peers):
    array = np.array(hashes, np.uint64)
    plain = order_by_peer.plain(array, peers)
    for ours, theirs in zip(partition(array, peers), plain, strict=True):
        assert ours.dtype == theirs.dtype == np.int64
        assert ours.tolist() == theirs.tolist()
