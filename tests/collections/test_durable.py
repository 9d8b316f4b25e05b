"""Collections in snapshots: what is begun again goes on as if nothing had happened."""

from __future__ import annotations

import tempfile
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.errors import WorkerError
from pointstamp.kernels.consolidation import consolidate, values_by_key
from pointstamp.kernels.group_sums import GroupSums, PlainGroupSums, SumForm
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest
from tests.collections import ordered_programs  # noqa: F401  (its steps are drawn, too)
from tests.collections.lives import (
    PLANS,
    LifePlan,
    Run,
    check_lives,
    check_updates,
    longer,
    renewed_texts,
)
from tests.collections.loops import Loop, LoopProgram, loop_programs
from tests.collections.programs import Program, Step, programs
from tests.collections.trace_lives import ANYTHING
from tests.conftest import examples


def check_restart(program: Program, before: int, after: int, cut: int, at_a_time: int) -> None:
    """A program that goes on from a snapshot gives what recomputing gives."""
    expected = program.expected()
    cut %= len(expected)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        run = Run(program, Durable(checkpoint), (cut,), at_a_time)
        ran = ps.simulate(run, workers=before, seed=cut)
        check_updates([seen for seen, _ in ran], Counter(), -1, expected)
        manifest = checkpoint.commit_manifest(cut, [part for _, (part,) in ran], {})
        run = Run(program, Durable(checkpoint, manifest), (), at_a_time)
        with renewed_texts():
            again = ps.simulate(run, workers=after, seed=cut)
        check_updates([seen for seen, _ in again], expected[cut], cut, expected)


WORKERS = st.sampled_from([1, 2, 3])


@settings(max_examples=examples(80))
@given(programs(), WORKERS, WORKERS, st.integers(0, 9), st.sampled_from([1, 7]))
def test_a_program_that_is_begun_again_gives_what_recomputing_gives(
    program: Program, before: int, after: int, cut: int, at_a_time: int
) -> None:
    check_restart(program, before, after, cut, at_a_time)


@settings(max_examples=examples(40))
@given(loop_programs(), WORKERS, WORKERS, st.integers(0, 9), st.sampled_from([1, 7]))
def test_a_program_with_loops_that_is_begun_again_gives_what_recomputing_gives(
    program: Program, before: int, after: int, cut: int, at_a_time: int
) -> None:
    check_restart(program, before, after, cut, at_a_time)


@pytest.mark.soak
@settings(max_examples=5_000)
@given(
    st.one_of(programs(), loop_programs()), WORKERS, WORKERS, st.integers(0, 9), st.integers(1, 7)
)
def test_many_programs_that_are_begun_again_give_what_recomputing_gives(
    program: Program, before: int, after: int, cut: int, at_a_time: int
) -> None:
    check_restart(program, before, after, cut, at_a_time)


@settings(max_examples=examples(25))
@given(programs(), PLANS, st.sampled_from([1, 5]), st.sampled_from([0, 4]))
def test_a_program_goes_on_from_a_chain_of_snapshots_in_each_life(
    program: Program, plans: list[LifePlan], dead_part: int, few: int
) -> None:
    check_lives(longer(program), plans, dead_part, few)


@settings(max_examples=examples(10))
@given(loop_programs(), PLANS, st.sampled_from([1, 5]), st.sampled_from([0, 4]))
def test_a_program_with_loops_goes_on_from_a_chain_of_snapshots_in_each_life(
    program: Program, plans: list[LifePlan], dead_part: int, few: int
) -> None:
    check_lives(longer(program), plans, dead_part, few)


@pytest.mark.soak
@settings(max_examples=2_000)
@given(st.one_of(programs(), loop_programs()), PLANS, st.sampled_from([1, 5]), st.integers(0, 9))
def test_many_programs_go_on_from_chains_of_snapshots(
    program: Program, plans: list[LifePlan], dead_part: int, few: int
) -> None:
    check_lives(longer(program), plans, dead_part, few)


class Everything:
    """Each reduction, window function and form of join, of the same rows."""

    n_inputs = 1

    def __init__(self, build: Any) -> None:
        self._build = build
        rows = [
            [
                (1, v, t, "1.50", v / 8 if v else None)
                for v, t in ((3, "b"), (None, "a"), (7, None))
            ],
            [(1, 4, "long enough to share its first bytes, a", "0.25", -1e300)],
            [(2, 4, "long enough to share its first bytes, b", "0.25", 1e-300)],
            [(1, 9, "b", "2.00", float("nan")), (2, 5, "a", "2.00", None)],
        ]
        inserted = [[((k, v, t, Decimal(d), f), 1) for k, v, t, d, f in epoch] for epoch in rows]
        removed = [[(row, -diff) for row, diff in epoch] for epoch in inserted]
        self.epochs = [[epoch] for epoch in [*inserted, *removed]]

    def build(self, inputs: Any) -> Any:
        return self._build(inputs[0])


AGGREGATES = {
    "count": ps.count("v"),
    "sum": ps.sum("v"),
    "exact sum": ps.sum("f"),
    "avg": ps.avg("d"),
    "avg of floats": ps.avg("f"),
    "stddev": ps.stddev("v"),
    "var of floats": ps.var("f"),
    "all": ps.bool_and(ps.col("v") > 3),
    "distinct texts": ps.count_distinct("t"),
    "least text": ps.min("t"),
    "greatest": ps.max("f"),
    "text by": ps.min_by("t", "v"),
    "by text": ps.max_by("v", "t"),
    "median": ps.median("v"),
    "third": ps.quantile("v", 0.34, discrete=True),
    "mode of texts": ps.mode("t"),
    "list of texts": ps.collect_list("t"),
    "set of lists": ps.collect_set("v"),
    "a sum of one's own": ps.linear_aggregate(
        ("v", "f"),
        zero=(0, 0, 0),
        add=lambda s, pair, n: (
            s[0] + n,
            s[1] + n * pair[0] * (1 << 90),
            s[2] + n * (Fraction(pair[1]) if pair[1] == pair[1] else 0),
        ),
        emit=lambda s: f"{s[1]} and {s[2]} of {s[0]}",
        type="string",
    ),
}

FORMS = {
    **{name: lambda t, a=a: t.group_by("k").agg(a=a) for name, a in AGGREGATES.items()},
    "by text, summed": lambda t: t.group_by("t").agg(n=ps.count(), v=ps.sum("v"), d=ps.avg("d")),
    "of all": lambda t: t.agg(n=ps.count(), least=ps.min("t")),
    "top": lambda t: t.group_by("k").top_k(2, ["t", "v"], descending=[True, False]),
    "reduce": lambda t: t.group_by("t").reduce(
        lambda key, rows: [(*key, len(rows))], "t string?, n long"
    ),
    "reduce by batches": lambda t: t.group_by("t").reduce_batches(
        lambda batch, offsets: pa.table(
            {"t": batch["t"].take(offsets[:-1]), "n": np.diff(offsets)}
        ),
        "t string?, n long",
    ),
    "rank": lambda t: t.select("t", r=ps.rank().over("k", order_by="t", descending=True)),
    "lag": lambda t: t.select("v", before=ps.lag("t").over("t", order_by=["v", "f"])),
    "rolling": lambda t: t.select("v", s=ps.rolling(ps.sum("d"), 2).over(order_by="v")),
    "full": lambda t: t.join(t.select("k", other="t").distinct(), on="k", how="full"),
    "of texts": lambda t: t.join(t.select("t", w="v"), on="t"),
    "in a loop": lambda t: t.select("k", "t", "v").iterate(
        lambda s: s.group_by("k").agg(t=ps.min("t"), v=ps.max("v")).concat(s).distinct()
    ),
    "all in a loop": lambda t: t.agg(t=ps.max("t")).iterate(
        lambda s: s.concat(t.select("t")).agg(t=ps.min("t"))
    ),
}


def updates_of(program: Any, durable: Durable, cut: int | None, workers: int) -> Any:
    cuts = () if cut is None else (cut,)
    ran = ps.simulate(Run(program, durable, cuts, 2), workers=workers, seed=3)
    found = [(time, row, diff) for seen, _ in ran for row, time, diff in seen]
    return sorted(found, key=repr), [part for _, parts in ran for part in parts]


@pytest.mark.parametrize("name", FORMS)
def test_each_form_of_state_comes_back(name: str) -> None:
    program = Everything(FORMS[name])
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        whole, parts = updates_of(program, Durable(checkpoint), 3, 2)
        manifest = checkpoint.commit_manifest(3, parts, {})
        assert manifest.structure
        with renewed_texts():
            again, _ = updates_of(program, Durable(checkpoint, manifest), None, 3)
        # As texts, as NaN is not equal to itself.
        assert repr(again) == repr([update for update in whole if update[0] > 3])
        assert again, "the epochs after the snapshot change something"


def _later_total(
    worker: ps.Worker, durable: Durable, cut: int | None, total: Any, rows: list[list[int]]
) -> Any:
    """How a total changes that is there in a second life alone."""
    seen: list[Any] = []
    with worker.dataflow("program", durable=durable) as scope:
        input_, t = scope.new_collection("k long")
        t.group_by("k").count()
        if total is not None:
            total(t).inspect(lambda row, time, diff: seen.append((time, row, diff)))
    snapshot = None if cut is None else worker.snapshot(cut, background=False)
    for epoch in range(durable.epoch + 1, len(rows)):
        input_.insert([(k,) for k in rows[epoch][worker.index :: worker.peers]])
        input_.advance_to(epoch + 1)
    worker.close_inputs()
    worker.run()
    return seen, None if snapshot is None else snapshot.part


@pytest.mark.parametrize("first", [[], [7, 8]])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["Total", "Reduce"])
def test_a_total_that_is_new_behind_a_snapshot_begins_with_nothing(
    name: str, workers: int, first: list[int]
) -> None:
    def total(t: Any) -> Any:
        if name == "Total":
            return t.agg(n=ps.count())
        return t.iterate(lambda s: s.agg(k=ps.count()))

    rows = [[1, 2, 3], [4], first, [9]]
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        ran = ps.simulate(_later_total, Durable(checkpoint), 1, None, rows, workers=workers, seed=1)
        manifest = checkpoint.commit_manifest(1, [part for _, part in ran], {})
        durable = Durable(checkpoint, manifest, allow_new=ANYTHING)
        ran = ps.simulate(_later_total, durable, None, total, rows, workers=workers, seed=1)
    now: Counter[Any] = Counter()
    for epoch, n in ((2, len(first)), (3, len(first) + 1)):
        for time, row, diff in (update for seen, _ in ran for update in seen):
            if time == epoch:
                now[row] += diff
        expected = (n if name == "Total" else 1,)
        assert {row: diff for row, diff in now.items() if diff} == {expected: 1}
    assert {time for seen, _ in ran for time, _, _ in seen} <= {2, 3}


def test_what_is_kept_otherwise_is_another_program() -> None:
    program = Everything(FORMS["top"])
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        _, parts = updates_of(program, Durable(checkpoint), 3, 1)
        manifest = checkpoint.commit_manifest(3, parts, {})
        with pytest.raises(WorkerError, match=r"CheckpointStructureError: .* has state .*TopK"):
            updates_of(Everything(lambda t: t), Durable(checkpoint, manifest), None, 1)


def _in_a_loop(make: Any) -> Any:
    return lambda t: t.iterate(make, limit=2)


def _sizes(*key: str) -> Any:
    def sizes(_: Any, rows: Any) -> Any:
        return [(len(rows), len(rows), len(rows))]

    return lambda t: t.group_by(*key).reduce(sizes, "a long, b long, c long")


def _matched(*key: str) -> Any:
    return lambda t: t.join(t, on=key).select("a", b="b", c="c")


def _first(*key: str, by: str = "c", descending: bool = True) -> Any:
    return lambda t: t.group_by(*key).top_k(1, by=by, descending=descending)


def _placed(*key: str) -> Any:
    return lambda t: t.select("a", "b", c=ps.row_number().over(key, order_by="c"))


def _summed(of: Any, **options: Any) -> Any:
    return lambda t: t.group_by("a").agg(n=ps.sum(of, **options))


def _linear(*of: str) -> Any:
    functions = {"zero": (0, 0), "add": lambda state, value, diff: state, "emit": len}
    return lambda t: t.group_by("a").agg(n=ps.linear_aggregate(*of, **functions, type="long"))


def _windowed(windows: Any, time: str = "b", **options: Any) -> Any:
    return lambda t: t.window(windows, time=time, **options).group_by("window_start").count()


_FLOAT = ps.col("c").cast("double")


OTHERS = {
    "sum, expression": (_summed(ps.col("b") * 2), _summed(ps.col("c") * 2), r"col\('c'\) \* 2"),
    "sum, approximate": (
        _summed(_FLOAT),
        _summed(_FLOAT, approximate=True),
        r": approximate sum of .* has .*: sum of",
    ),
    "min_by, chosen": (
        lambda t: t.group_by("a").agg(n=ps.min_by("b", "c")),
        lambda t: t.group_by("a").agg(n=ps.min_by("a", "c")),
        "min_by of a, c for each a; .*min_by of b, c for",
    ),
    "linear_aggregate, columns": (_linear("b"), _linear("c"), "linear_aggregate of c for"),
    "window, size": (
        _windowed(ps.Tumbling(10)),
        _windowed(ps.Tumbling(4)),
        r"Tumbling\(size=4\) of b; .*Tumbling\(size=10\) of b",
    ),
    "window, time": (_windowed(ps.Tumbling(9)), _windowed(ps.Tumbling(9), "c"), "of c; .* of b"),
    "sessions, gap": (
        _windowed(ps.Sessions(3), key="a"),
        _windowed(ps.Sessions(9), key="a"),
        "sessions of b by a, gap 9; ",
    ),
    "sessions, key": (
        _windowed(ps.Sessions(3), key="a"),
        _windowed(ps.Sessions(3), key="c"),
        "sessions of b by c, gap 3; ",
    ),
    "temporal_filter": (
        lambda t: t.temporal_filter("b", "c"),
        lambda t: t.temporal_filter("a", "c"),
        "records from a up to c; ",
    ),
    "intersect, subtract": (
        lambda t: t.intersect(t, name="Both"),
        lambda t: t.subtract(t, name="Both"),
        "subtract; .* intersect ",
    ),
    "join, key": (_matched("a"), _matched("b"), r"by \(b\)"),
    "join, columns": (
        lambda t: t.drop("c").join(t, on="a").select("a", b="b", c="c"),
        lambda t: t.join(t, on="a").select("a", b="b", c="c"),
        r"a long, b long, c long\) by \(a\)",
    ),
    "reduce, key": (_sizes("a"), _sizes("b"), r"by \(b\)"),
    "top_k, key": (_first("a"), _first("b"), r"by \(b\) in order of c descending"),
    "top_k, order": (_first("a"), _first("a", by="b"), "in order of b descending"),
    "top_k, least": (_first("a"), _first("a", descending=False), "in order of c;"),
    "row_number, key": (_placed("a"), _placed("b"), r"by \(b\)"),
    "join in a loop": (
        _in_a_loop(lambda x: x.join(x, on="a", how="semi")),
        _in_a_loop(lambda x: x.join(x, on="b", how="semi")),
        "records for each b",
    ),
    "reduce in a loop": (_in_a_loop(_sizes("a")), _in_a_loop(_sizes("b")), r"by \(b\)"),
    "top_k in a loop": (_in_a_loop(_first("a")), _in_a_loop(_first("b")), r"by \(b\)"),
}


def _kept_of(worker: Any, durable: Durable, build: Any) -> Any:
    with worker.dataflow("kept", durable=durable) as scope:
        input_, t = scope.new_collection("a long, b long, c long")
        build(t).probe()
    snapshot = worker.snapshot(durable.epoch + 1, background=False)
    input_.insert([(1, 2, 3), (1, 3, 9), (2, 2, 5)])
    input_.close()
    worker.run()
    return snapshot.part


@pytest.mark.parametrize("name", OTHERS)
def test_rows_that_are_kept_by_another_key_or_of_other_columns_are_refused(name: str) -> None:
    before, after, said = OTHERS[name]
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        parts = ps.simulate(_kept_of, Durable(checkpoint), before, workers=1, seed=1)
        durable = Durable(checkpoint, checkpoint.commit_manifest(0, parts, {}))
        ps.simulate(_kept_of, durable, before, workers=1, seed=1)
        with pytest.raises(WorkerError, match=f"CheckpointStructureError: .* has rows .*{said}"):
            ps.simulate(_kept_of, durable, after, workers=1, seed=1)


def test_windows_go_on_with_another_lateness() -> None:
    before, after = (_windowed(ps.Tumbling(10), lateness=late) for late in (5, 50))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        parts = ps.simulate(_kept_of, Durable(checkpoint), before, workers=1, seed=1)
        durable = Durable(checkpoint, checkpoint.commit_manifest(0, parts, {}))
        ps.simulate(_kept_of, durable, after, workers=1, seed=1)


def test_a_semijoin_that_becomes_an_antijoin_is_another_program() -> None:
    before, after = (lambda t, how=how: t.join(t, on="a", how=how) for how in ("semi", "anti"))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        parts = ps.simulate(_kept_of, Durable(checkpoint), before, workers=1, seed=1)
        durable = Durable(checkpoint, checkpoint.commit_manifest(0, parts, {}))
        with pytest.raises(WorkerError, match=r"allow_new=\['kept/JoinAntiKeys'\]; it has .*Keys"):
            ps.simulate(_kept_of, durable, after, workers=1, seed=1)


def _upserted(worker: Any, durable: Durable, key: str) -> Any:
    with worker.dataflow("kept", durable=durable) as scope:
        input_, stream = scope.new_input()
        scope.from_upserts(stream, "a long, b long", key=key).probe()
    snapshot = worker.snapshot(durable.epoch + 1, background=False)
    input_.send((1, (1, 1)))
    input_.close()
    worker.run()
    return snapshot.part


def test_upserts_by_another_key_are_refused() -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        parts = ps.simulate(_upserted, Durable(checkpoint), "a", workers=1, seed=1)
        durable = Durable(checkpoint, checkpoint.commit_manifest(0, parts, {}))
        ps.simulate(_upserted, durable, "a", workers=1, seed=1)
        with pytest.raises(WorkerError, match=r"has rows .*: records by b; .*: records by a there"):
            ps.simulate(_upserted, durable, "b", workers=1, seed=1)


def test_an_operator_on_collections_that_does_not_say_what_it_keeps_is_refused() -> None:
    def build(capability: Any, info: Any) -> Any:
        return lambda input_, output: None

    build.__module__ = "pointstamp.collections.another"

    def odd(t: Any) -> Any:
        return t.of(operator([t.stream], [PIPELINE], "Odd", build, Interest.NEVER), t.schema)

    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(
            WorkerError, match="UndeclaredStateError: operator 'program/Odd' does not say"
        ),
    ):
        updates_of(Everything(odd), Durable(Checkpoint(folder)), None, 1)


PLAN = np.array(
    [
        [SumForm.RECORDS, 0, -1, 0, 0],
        [SumForm.SUM, 1, -1, 0, 0],
        [SumForm.VALUES, 2, -1, 0, 0],
        [SumForm.AVERAGE, 2, -1, 0, 1],
        [SumForm.FIRST, 2, -1, 1, -1],
    ]
)


@pytest.mark.parametrize("made", [PlainGroupSums, GroupSums])
@pytest.mark.parametrize("then", [PlainGroupSums, GroupSums])
def test_sums_of_groups_come_back(made: Any, then: Any) -> None:
    high = (1 << 61) - 1
    values = [high - k if k % 3 else k - high for k in range(100)]
    rows = np.array([[k % 40, value, k - 50, 1] for k, value in enumerate(values)])
    sums, other = made(1, 3, PLAN), then(1, 3, PLAN)
    values = BatchSeries()

    def kept(changes: Any) -> list[list[Any]]:
        values.insert(consolidate(values_by_key(changes, 1, 2, -1, -1)))
        return [values.rows]

    sums.update([rows], kept(rows))
    other.load(sums.dump())
    assert len(other) == 40
    assert sorted(other.dump().tolist()) == sorted(sums.dump().tolist())
    changes = rows[30:].copy()
    changes[:, -1] = -1
    more = np.array([[3, 5, 6, 2], [77, -1, 2, 1]])
    batches = kept(np.concatenate([changes, more]))
    found = [sorted(each.update([changes, more], batches).tolist()) for each in (sums, other)]
    assert found[0] == found[1] != []
    with pytest.raises(ValueError, match="groups have 11 words, and not 3"):
        other.load(np.zeros((1, 3), np.int64))


def test_a_worker_of_whose_keys_all_have_cancelled_begins_with_nothing() -> None:
    """Two batches that stay apart, as the one is short, may be of one key on a worker to come."""
    program = Everything(FORMS["top"])
    rows = [(k, 7, "a", Decimal("1.00"), None) for k in range(9)]
    program.epochs = [
        [[(row, 1) for row in rows]],
        [[(row, -1) for row in rows[:3]]],
        [[(row, 1) for row in rows[:3]]],
    ]
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        whole, parts = updates_of(program, Durable(checkpoint), 1, 1)
        manifest = checkpoint.commit_manifest(1, parts, {})
        again, _ = updates_of(program, Durable(checkpoint, manifest), None, 8)
        assert again == [update for update in whole if update[0] > 1]


@pytest.mark.parametrize("cut", [1, 2])
def test_what_is_kept_for_inputs_that_close_is_in_a_snapshot_of_an_epoch_before(cut: int) -> None:
    """They close at once behind the last epoch, before the snapshot is made."""
    row = (0, None, None, Decimal("0.00"), None)

    def epoch(left: int, right: int) -> list[list[Any]]:
        return [[(row, 1 if n > 0 else -1)] * abs(n) for n in (left, right)]

    totals, pairs = Step("aggregate", (0,), 0), Step("join", (1, 3), 0)
    loop = Loop((pairs,), 0, 3)
    epochs = [epoch(3, 6), epoch(6, -2), epoch(0, -2), epoch(3, -2)]
    check_restart(LoopProgram(2, [totals, loop], epochs), 1, 1, cut, 7)
