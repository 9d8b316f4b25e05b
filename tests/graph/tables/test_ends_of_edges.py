"""Vertices that the workers find as the ends of edges, which are spread over them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import WorkerError
from pointstamp.graph.tables import ends_of_edges
from pointstamp.graph.tables.ends_of_edges import IdsOnce, SeenIds, ends_of
from tests.conftest import examples

quick = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))

IDS = {
    "string": st.text("abé", max_size=3),
    "integer": st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5),
    "date": st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 9)),
    "decimal": st.integers(-5, 5).map(lambda n: Decimal(n).scaleb(-2)),
    "boolean": st.booleans(),
    "binary": st.binary(max_size=2),
}


def spread_over(workers, times):
    """The ids that each worker has of each of `times`, lists of pieces of edges."""

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            given_edges, edges = scope.new_input()
            ends_of(edges).inspect_batch(
                lambda time, batch: found.extend((time, one) for one in batch["id"].to_pylist())
            )
        for time, pieces in enumerate(times):
            given_edges.advance_to(time)
            for piece in pieces[worker.index :: worker.peers]:
                given_edges.send_batch(piece)
        given_edges.close()
        worker.run()
        return found

    return ps.execute(main, workers=workers, threads=True)


def batch_of(pairs, kind=None):
    sources, targets = zip(*pairs, strict=True)
    return pa.RecordBatch.from_pydict(
        {"src": pa.array(sources, kind), "dst": pa.array(targets, kind), "more": [0] * len(pairs)}
    )


@quick
@given(data=st.data(), kind=st.sampled_from(sorted(IDS)), workers=st.integers(1, 3))
def test_each_end_is_a_vertex_once_at_each_time(data, kind, workers):
    pairs = st.lists(st.tuples(IDS[kind], IDS[kind]), min_size=1, max_size=6)
    times = data.draw(st.lists(st.lists(pairs, max_size=4), max_size=3))
    decimal = pa.decimal128(5, 2) if kind == "decimal" else None
    batches = [[batch_of(piece, decimal) for piece in pieces] for pieces in times]
    found = [one for part in spread_over(workers, batches) for one in part]
    assert sorted(map(repr, found)) == sorted(
        repr((time, one))
        for time, pieces in enumerate(times)
        for one in {end for piece in pieces for pair in piece for end in pair}
    )


def test_what_a_worker_has_seen_it_does_not_send_again():
    seen = SeenIds()
    many = batch_of([(i % 100, i % 70) for i in range(1000)])
    assert seen.new_ends(many).num_rows == 100
    assert seen.new_ends(many).num_rows == 0
    few = batch_of([(200, 3)])
    sent = sum(seen.new_ends(few).num_rows for _ in range(1000))
    assert 1 <= sent <= 100 // ends_of_edges._GROWTH + 1


@pytest.mark.parametrize("workers", [1, 3])
def test_vertices_are_found_where_no_worker_may_keep_many(workers, monkeypatch):
    monkeypatch.setattr(ends_of_edges, "_MOST", 100)
    monkeypatch.setattr(ends_of_edges, "_FEW", 0)
    pieces = [batch_of([(f"v{i % 40}", f"v{i * j % 50}") for i in range(60)]) for j in range(20)]
    found = [one for part in spread_over(workers, [pieces]) for _, one in part]
    assert sorted(found) == sorted({f"v{i}" for i in range(50)})


def test_a_worker_that_knows_many_ids_sends_others_and_does_not_keep_them(monkeypatch):
    monkeypatch.setattr(ends_of_edges, "_MOST", 1000)
    seen = SeenIds()
    for low in range(0, 2000, 100):
        piece = batch_of([(i, i + 1) for i in range(low, low + 100)])
        assert seen.new_ends(piece).num_rows >= 100
        assert seen.new_ends(piece).num_rows == 101 or low < 500
    assert len(seen._ids) < 500
    assert seen.new_ends(batch_of([(1, 2)])).num_rows == 0


def test_copies_of_ids_from_other_workers_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(ends_of_edges, "_FEW", 0)
    ids = IdsOnce()
    sent = SeenIds().new_ends(batch_of([(f"v{i}", f"v{i + 1}") for i in range(100)]))
    for _ in range(100):
        ids.add(sent)
        assert sum(records.num_rows for records in ids._records) <= 4 * 101
    assert ids.all().num_rows == 101


@pytest.mark.parametrize("pieces", [["ab", "ac"], ["aa", "bb", "cc"], ["abac"]])
def test_of_ids_with_one_number_none_is_lost_so_that_they_are_refused(pieces, monkeypatch):
    def length(column, what):
        return pa.compute.binary_length(column).cast(pa.int64()).to_numpy()

    monkeypatch.setattr(ends_of_edges, "hashed_ids", length)
    batches = [batch_of(list(zip(ends[::2], ends[1::2], strict=True))) for ends in pieces]
    for workers in (1, 2):
        found = spread_over(workers, [batches])
        assert {one for part in found for _, one in part} == {*"".join(pieces)}


def test_a_null_is_no_end():
    with pytest.raises(WorkerError, match="'dst' of the edges"):
        spread_over(2, [[batch_of([("a", None)])]])
