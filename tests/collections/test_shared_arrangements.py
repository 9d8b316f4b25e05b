"""Arrangements that several read: inside of a dataflow, from another one, as of a time."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import (
    AsOfError,
    BuildError,
    ColumnError,
    DataError,
    UsageError,
)
from tests.collections.delta_joins import spines
from tests.collections.trace_handles import check_as_of, check_flights, check_imports
from tests.conftest import examples

EDGES = "src long, dst long"


def in_one_worker(main: Any, *args: Any) -> Any:
    (result,) = ps.simulate(main, *args, workers=1)
    return result


def test_joins_and_reductions_by_the_same_columns_share_an_index() -> None:
    def build(scope: Any, edges: ps.Collection) -> Any:
        by_src, by_dst = edges.arrange("src"), edges.arrange("dst")
        kept.extend([by_src, by_dst])
        neighbours = lambda key, rows: [(*key, len(rows))]  # noqa: E731
        return {
            "hops": by_dst.join(by_src),
            "same hops": edges.join(edges, left_on="dst", right_on="src"),
            "out": by_src.group_by().reduce(neighbours, "src long, n long"),
            "in": edges.group_by("dst").reduce(neighbours, "dst long, n long"),
        }

    kept: list[ps.ArrangedCollection] = []
    others = spines()
    view = ps.View(build, edges=EDGES)
    view.insert("edges", [(n, n + 1) for n in range(50)])
    changes = view.advance()
    assert changes["hops"] == changes["same hops"] == [((n, n - 1, n + 1), 1) for n in range(1, 50)]
    assert [one.n_updates for one in kept] == [50, 50]
    # Beside the two, what both reductions gave is kept, and nothing else.
    assert [spine.n_updates for spine in spines() if spine not in others] == [50, 50]


def test_an_arrangement_is_made_once() -> None:
    def build(scope: Any, edges: ps.Collection) -> ps.Collection:
        assert edges.arrange("src") is edges.arrange("src")
        assert edges.arrange("src") is not edges.arrange("dst")
        return edges

    ps.View(build, edges=EDGES)


def test_a_group_of_nulls_is_not_lost_by_sharing() -> None:
    def build(scope: Any, t: ps.Collection) -> ps.Collection:
        t.arrange("a")
        return t.group_by("a").reduce(lambda key, rows: [(*key, len(rows))], "a long?, n long")

    view = ps.View(build, t="a long?, b long")
    view.insert("t", [(None, 1), (None, 2), (3, 1)])
    assert view.advance() == [((None, 2), 1), ((3, 1), 1)]


def test_what_cannot_be_arranged_is_refused() -> None:
    def by(*key: str) -> Any:
        return lambda scope, t: t.arrange(*key).collection

    with pytest.raises(BuildError, match="given no column"):
        ps.View(by(), t=EDGES)
    with pytest.raises(ColumnError, match="'x'; there are: src"):
        ps.View(by("x"), t=EDGES)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 7]))
def test_a_handle_reads_what_was_there_at_each_time(
    seed: int, workers: int, at_a_time: int
) -> None:
    check_as_of(seed, workers, at_a_time)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 7]))
def test_what_is_imported_is_what_recomputing_gives(
    seed: int, workers: int, at_a_time: int
) -> None:
    check_imports(seed, workers, at_a_time)


few = st.integers(0, 6)


@given(few, few, few, few)
def test_an_import_has_each_batch_once(
    n_seen: int, n_under_way: int, n_later: int, n_acknowledged: int
) -> None:
    check_flights(n_seen, n_under_way, n_later, n_acknowledged)


def exported(worker: ps.Worker) -> tuple[Any, ps.TraceHandle, Any]:
    with worker.dataflow("first") as scope:
        input_, edges = scope.new_collection(EDGES)
        by_src = edges.arrange("src")
        handle = by_src.trace()
        probe = edges.probe()
    return input_, handle, probe


def test_a_time_that_is_not_complete_or_compacted_is_refused_with_both() -> None:
    def main(worker: ps.Worker) -> None:
        input_, handle, probe = exported(worker)
        input_.insert([(7, 1)])
        input_.advance_to(5)
        worker.step_while(lambda: probe.less_than(5) or handle.upper < 5)
        assert (handle.since, handle.upper) == (0, 5)
        with pytest.raises(AsOfError, match=r"time 5 .* since, 0, and before upper, 5"):
            handle.as_of(5)
        old = handle.as_of(2)
        assert old.lookup(src=7) == [(7, 1)]
        handle.allow_compaction(3)
        with pytest.raises(AsOfError, match=r"time 2 .* since, 3, and before upper, 5"):
            old.lookup(src=7)
        with pytest.raises(AsOfError, match="up to 2 is allowed, but was up to 3"):
            handle.allow_compaction(2)
        assert handle.as_of(3).lookup(src=7) == [(7, 1)]
        with pytest.raises(UsageError, match=r"given \['dst'\], and needs .*\['src'\]"):
            handle.as_of(3).lookup(dst=1)
        with pytest.raises(DataError, match="None"):
            handle.as_of(3).lookup(src=None)
        handle.close()
        with pytest.raises(UsageError, match="was closed"):
            handle.as_of(3)
        input_.close()

    in_one_worker(main)


@pytest.mark.parametrize("is_complete", [False, True])
def test_of_what_was_let_go_there_is_no_new_handle(is_complete: bool) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input_, edges = scope.new_collection("src long, dst long")
            index = edges.arrange("src")
            index.trace().close()
            handle = index.trace()  # nothing has come
        input_.insert([(7, 1)])
        input_.advance_to(1)
        worker.step_while(lambda: handle.upper < 1)
        another = index.trace()
        handle.close()
        assert another.as_of(0).snapshot() == [(7, 1)]
        another.close()
        if is_complete:
            input_.close()
            worker.run()
        with pytest.raises(UsageError, match="was let go when its last reader was closed"):
            index.trace()
        input_.close()

    in_one_worker(main)


def test_what_was_deleted_too_often_is_an_error() -> None:
    def main(worker: ps.Worker) -> None:
        input_, handle, _ = exported(worker)
        input_.delete([(7, 1)])
        input_.close()
        worker.run()
        with pytest.raises(DataError, match=r"\(7, 1\) is there fewer than no times"):
            handle.as_of(0).snapshot()

    in_one_worker(main)


def test_what_is_kept_goes_with_the_last_that_reads_it() -> None:
    def main(worker: ps.Worker) -> None:
        input_, handle, _ = exported(worker)
        other = handle
        input_.insert([(n, n) for n in range(10)])
        input_.close()
        worker.run("first")
        # The dataflow has ended.
        assert other.n_updates == 10
        with worker.dataflow("second") as scope:
            graph = handle.import_into(scope)
            seen: list[Any] = []
            graph.join(graph).inspect(lambda row, time, diff: seen.append(row))
        worker.run("second")
        assert sorted(seen) == [(n, n, n) for n in range(10)]
        assert handle.n_updates == 10
        handle.close()
        assert handle.n_updates == 0

    in_one_worker(main)


def test_a_handle_that_nobody_has_any_more_keeps_nothing() -> None:
    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            input_, edges = scope.new_collection(EDGES)
            by_src = edges.arrange("src")
            handle = by_src.trace()
            joined = by_src.join(by_src)
            probe = joined.probe()
        assert handle.since == 0
        del handle
        gc.collect()
        for epoch in range(100):
            input_.insert([(1, 1)])
            input_.delete([(1, 1)])
            input_.insert([(epoch, 1)])
            input_.delete([(epoch - 1, 1)] if epoch else [])
            input_.advance_to(epoch + 1)
            worker.step_while(partial(probe.less_than, epoch + 1))
        return by_src.n_updates

    assert in_one_worker(main) <= 4


def test_compaction_lets_go_of_what_came_and_went() -> None:
    def main(worker: ps.Worker) -> list[int]:
        input_, handle, _ = exported(worker)
        kept = []
        for epoch in range(40):
            input_.insert([(epoch, 1)])
            if epoch:
                input_.delete([(epoch - 1, 1)])
            input_.advance_to(epoch + 1)
            worker.step_while(partial(lambda e: handle.upper <= e, epoch))
            if epoch >= 20:
                handle.allow_compaction(epoch)
            kept.append(handle.n_updates)
        input_.close()
        return kept

    kept = in_one_worker(main)
    assert kept[:20] == [2 * n + 1 for n in range(20)]
    assert max(kept[20:]) <= 4


def test_where_it_cannot_be_imported_it_is_refused() -> None:
    def main(worker: ps.Worker) -> None:
        input_, handle, _ = exported(worker)
        with worker.dataflow("second") as scope:
            with scope.iterative() as inner, pytest.raises(BuildError, match="has the same"):
                handle.import_into(inner)
            with pytest.raises(BuildError, match="given None, and needs the scope"):
                handle.import_into(None)
            handle.import_into(scope)
        input_.close()

    in_one_worker(main)


def test_after_the_dataflow_is_built_no_trace_is_made() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input_, edges = scope.new_collection(EDGES)
            by_src = edges.arrange("src")
        with pytest.raises(BuildError):
            by_src.trace()
        input_.close()

    in_one_worker(main)


def test_in_a_loop_there_is_no_trace() -> None:
    def body(found: ps.Collection) -> ps.Collection:
        found.arrange("src").trace()
        return found

    with pytest.raises(BuildError, match="by leave"):
        ps.View(lambda scope, edges: edges.iterate(body), edges=EDGES)
