"""What many small batches cost to put in bins, and where the records of a batch go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.checkpoint import keyed_state
from pointstamp.checkpoint.bins import N_BINS, bins_of
from pointstamp.checkpoint.keyed_state import by_key, in_bins, of_worker
from pointstamp.containers import kind_of


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_each_record_is_in_the_bin_of_its_key_once_and_in_order(n: int) -> None:
    numbers = np.arange(n)
    for batch in (numbers.tolist(), pa.RecordBatch.from_pydict({"key": numbers})):
        hashes = by_key("key" if kind_of(batch).has_columns else None)
        found = []
        for bin, stored in in_bins([("tag", batch)], hashes).items():
            for tag, part, bins in of_worker(stored, hashes, 0, 1):
                assert tag == "tag"
                assert bins == {bin}
                places = list(kind_of(part).records(part))
                assert places == sorted(places)
                found += places
        assert len(found) == n


def test_a_batch_of_one_key_is_not_looked_for_in_all_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("sorts what has nothing to sort")

    batches = [(number, [(number, "x")] * 3) for number in range(N_BINS)]
    hashes = by_key(lambda pair: pair[0])
    expected = {int(bins_of(hashes(*pair))[0]) for pair in batches}
    monkeypatch.setattr(keyed_state.np, "argsort", refuse)
    assert in_bins(batches, hashes).keys() == expected
