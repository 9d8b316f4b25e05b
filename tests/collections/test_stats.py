"""What is said of arrangements and loops: sizes, times, and changed records per round."""

from __future__ import annotations

from typing import Any

import pytest

import pointstamp as ps
from pointstamp import col
from pointstamp.collections import explained_loop
from pointstamp.errors import BuildError, DataError, InputError


def joined(scope: Any, a: Any, b: Any) -> Any:
    return a.join(b, on="k").join(b.select(k="k", y2="y"), on="k")


def test_sums_are_those_of_the_indexes_and_follow_what_is_there() -> None:
    view = ps.View(joined, a="k long, x string?", b="k long, y long")
    assert view.stats().updates == view.stats().bytes == view.stats().batches == 0
    view.insert("a", [(k, "x") for k in range(100)])
    view.insert("b", [(k, k) for k in range(50)])
    view.advance()
    stats = view.stats()
    # Two words and a flag, or two words, beside the diff; 8 bytes each.
    by_columns = {index.columns: index for index in stats.indexes}
    assert by_columns["k long, x string?"].updates == 100
    assert by_columns["k long, x string?"].bytes == 100 * 4 * 8
    assert by_columns["k long, y long"].bytes == 50 * 3 * 8
    assert len(by_columns) == 4
    for what in ("updates", "bytes", "batches", "apart", "merging"):
        assert getattr(stats, what) == sum(getattr(index, what) for index in stats.indexes) >= 0
    view.delete("a", [(k, "x") for k in range(100)])
    view.delete("b", [(k, k) for k in range(50)])
    view.advance()
    assert view.stats().updates == view.stats().bytes == 0
    assert all(index.upper == (2,) for index in view.stats().indexes)
    view.close()
    assert all(index.upper == () for index in view.stats().indexes)


def test_merges_in_progress_are_counted() -> None:
    with ps.View(joined, a="k long, x string?", b="k long, y long") as view:
        seen = set()
        for size in (8_000, *[1_000] * 5, *[100] * 40):
            first = view.stats().updates
            view.insert("b", [(first + k, k) for k in range(size)])
            view.advance()
            seen.add(view.stats("b").indexes[0].merging)
    # It goes on with each update that comes, by four rows.
    assert seen == {0, 1}


def test_of_one_input_or_result_its_own_indexes_count() -> None:
    view = ps.View(joined, a="k long, x string?", b="k long, y long")
    view.insert("a", [(1, "x"), (2, None)])
    view.advance()
    of_a = view.stats("a")
    assert (of_a.updates, [index.key for index in of_a.indexes]) == (2, [("k",)])
    assert view.stats("result").indexes == ()
    with pytest.raises(InputError, match=r"no input or result 'c'; there are .*'result', 'a', 'b'"):
        view.stats("c")


def test_times_are_those_that_can_be_read() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            edges, graph = scope.new_collection("src long, dst long")
            handle = graph.arrange("src").trace()
            probe = graph.arrange("src").collection.arrange("dst").join(graph, how="semi").probe()
        found: list[Any] = []

        def say() -> None:
            by_key = {index.key: index for index in graph.stats().indexes}
            index = by_key["src",]
            assert index.since[0] <= handle.since
            found.append((index.since, index.upper, index.batches, index.apart))

        edges.insert([(1, 2), (2, 3)])
        say()
        for epoch in range(3):
            edges.insert([(epoch, 7)])
            edges.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(epoch + 1))  # noqa: B023
        say()
        handle.allow_compaction(2)
        say()
        edges.close()
        worker.run()
        say()
        return found

    (found,) = ps.execute(main)
    # A handle has each epoch apart until it allows that it is not.
    assert found == [
        ((0,), (0,), 0, 0),
        ((0,), (3,), 3, 3),
        ((1,), (3,), 2, 1),
        ((1,), (), 2, 1),
    ]


def reach(scope: Any, edges: Any, roots: Any) -> Any:
    def step(found: Any) -> Any:
        further = found.join(edges, left_on="node", right_on="src").select(node="dst")
        return further.concat(roots).distinct()

    return roots.iterate(step, explain=True, name="Reach")


def test_the_records_that_change_are_counted_by_round() -> None:
    view = ps.View(reach, edges="src long, dst long", roots="node long")
    view.insert("edges", [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5)])
    view.insert("roots", [(1,)])
    view.advance()
    # By hand: of the start 1 round 0 makes 2 and 3, then 4 comes, then 5.
    assert view.explain() == {"Reach": {0: [2, 1, 1]}}
    view.advance()
    view.delete("edges", [(4, 5)])
    view.advance()
    assert view.explain() == {"Reach": {0: [2, 1, 1], 2: [0, 0, 1]}}


def test_in_a_loop_what_is_arranged_has_times_of_a_loop() -> None:
    view = ps.View(reach, edges="src long, dst long", roots="node long")
    view.insert("edges", [(1, 2), (2, 3)])
    view.insert("roots", [(1,)])
    view.advance()
    by_columns = {index.columns: index for index in view.stats().indexes}
    assert by_columns["src long, dst long"].updates == 2
    # A node at each round from which on it is there, once.
    assert by_columns["node long"].updates == 3
    assert by_columns["node long"].since == by_columns["node long"].upper == ((1, 0),)
    view.close()


def test_loops_of_one_name_and_in_one_another_are_told_apart() -> None:
    def build(scope: Any, t: Any) -> Any:
        def step(found: Any) -> Any:
            return found.iterate(less, explain=True).concat(t.negate()).concat(t)

        def less(found: Any) -> Any:
            return found.select(n=ps.when(col("n") > 0).then(col("n") - 1).otherwise(0))

        outer = t.iterate(step, explain=True)
        assert outer.changed_rounds() == {}
        return outer

    view = ps.View(build, t="n long")
    view.insert("t", [(2,)])
    assert view.advance() == [((0,), 1)]
    explained = view.explain()
    # 2 becomes 1 and then 0; the loop around has that at once, in place of 2.
    assert explained["Iterate 2"] == {0: [2]}
    assert explained["Iterate"][0, 0] == [2, 2]


def test_old_epochs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explained_loop, "MOST_EPOCHS", 3)
    view = ps.View(reach, edges="src long, dst long", roots="node long")
    view.insert("roots", [(0,)])
    for node in range(5):
        view.insert("edges", [(node, node + 1)])
        view.advance()
    assert list(view.explain()["Reach"]) == [2, 3, 4]


def test_a_loop_that_is_not_explained_has_no_counts() -> None:
    def build(scope: Any, t: Any) -> Any:
        found = t.iterate(lambda found: found.distinct())
        with pytest.raises(BuildError, match="explain=True"):
            found.changed_rounds()
        return found

    view = ps.View(build, t="n long")
    assert view.explain() == {}
    view.close()


def test_an_idle_view_merges_what_was_deleted_away() -> None:
    def joined(scope: Any, a: Any, b: Any) -> Any:
        return a.join(b, on="k")

    view = ps.View(joined, a="k long, x long", b="k long")
    rows = [(n % 50, n) for n in range(30_000)]
    view.insert("a", rows)
    view.advance()
    for row in rows[100:140]:
        view.delete("a", [row])
        view.advance()
    view.delete("a", rows[140:])
    view.advance()
    before = view.stats("a").updates
    assert before > 30_000, "fuel has merged but a part"
    assert view.idle(0.0), "a piece of the merge is done, and more is left"
    assert not view.idle()
    assert view.stats("a").updates == 100
    assert not view.idle(), "there is nothing more"
    view.insert("b", [(7,)])
    assert view.advance() == [((7, 7), 1), ((7, 57), 1)]
    view.close()


def test_a_merge_that_fails_when_idle_ends_the_view() -> None:
    view = ps.View(lambda scope, a: a, a="k long")

    def work(budget: int) -> bool:
        raise DataError("it broke")

    view._worker.environment.idle.add(work)
    with pytest.raises(DataError, match="it broke"):
        view.idle()
    with pytest.raises(DataError, match="it broke"):
        view.advance()
