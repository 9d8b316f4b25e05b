"""Durable dataflows: who may be in one, what a snapshot needs, and programs that changed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.errors import (
    BuildError,
    CheckpointError,
    CheckpointStructureError,
    UndeclaredStateError,
    UsageError,
    WorkerError,
)
from pointstamp.testing import collect
from tests.dataflow.foreign_scope import foreign_scope


def add(key: Any, value: int, state: int) -> Any:
    return state + value, [(key, state + value)]


def nothing(capability: Any, info: Any) -> Any:
    capability.drop()
    return lambda *ports: None


def built(build: Callable[[Any, Any], Any], folder: Any = None) -> None:
    """Build a durable dataflow of one input."""

    def main(worker: Any) -> None:
        with worker.dataflow("program", durable=Durable(Checkpoint(folder or "nowhere"))) as scope:
            build(scope, scope.new_input()[1])

    try:
        ps.execute(main)
    except WorkerError as error:
        raise error.__cause__ or error from None


async def ticks(input: Any) -> Any:
    yield 1


def looped(scope: Any, stream: Any) -> None:
    loop, again = scope.feedback(1, limit=3)
    loop.connect(stream.concat(again))


def joined_in_a_loop(scope: Any, stream: Any) -> None:
    with scope.iterative() as inner:
        inside = stream.enter(inner)
        inside.join(inside, lambda r: r, retain=True)


def foreign(scope: Any, stream: Any) -> None:
    foreign_scope(stream, local=True)


def user_operator(scope: Any, stream: Any) -> None:
    builder = scope.operator("Mine")
    builder.new_input(stream, ps.Pipeline())
    builder.build(lambda capabilities, info: lambda inputs, outputs: None)


REFUSED = [
    pytest.param(lambda scope, _: scope.source(nothing), "Source", id="source"),
    pytest.param(lambda scope, _: scope.async_source(ticks), "AsyncSource", id="async_source"),
    pytest.param(lambda scope, _: scope.unordered_input(), "UnorderedInput", id="unordered_input"),
    pytest.param(
        lambda scope, _: scope.flow_controlled([], ps.Probe()), "FlowControlled", id="flow"
    ),
    pytest.param(lambda scope, _: scope.replay([[]]), "Replay", id="replay"),
    pytest.param(lambda scope, stream: stream.reclock(stream), "Reclock", id="reclock"),
    pytest.param(lambda scope, stream: stream.capture(), "Capture", id="capture"),
    pytest.param(
        lambda scope, stream: stream.command(["cat"], marker="end"), "Command", id="command"
    ),
    pytest.param(looped, "Feedback", id="feedback"),
    pytest.param(joined_in_a_loop, "Join", id="join in a loop"),
    pytest.param(user_operator, "Mine", id="operator"),
    pytest.param(foreign, "", id="foreign scope"),
    *(
        pytest.param(
            lambda scope, stream, how=how: getattr(stream, how)(ps.Pipeline(), "Mine", nothing),
            "Mine",
            id=how,
        )
        for how in ("unary", "unary_frontier", "unary_notify")
    ),
    pytest.param(
        lambda scope, stream: stream.binary(stream, ps.Pipeline(), ps.Pipeline(), "Mine", nothing),
        "Mine",
        id="binary",
    ),
]


@pytest.mark.parametrize(("build", "name"), REFUSED)
def test_who_might_lose_what_it_keeps_is_refused(build: Any, name: str) -> None:
    with pytest.raises(UndeclaredStateError, match=rf"operator 'program/.*{name}'"):
        built(build)


def test_a_log_is_not_read_in_a_durable_dataflow(tmp_path: Path) -> None:
    def main(worker: Any) -> None:
        durable = Durable(Checkpoint(tmp_path / "checkpoint"))
        with worker.dataflow("program", logged=False, durable=durable) as scope:
            scope.log_stream("texts")

    with pytest.raises(WorkerError, match="'program/Log of texts' cannot be in a durable dataflow"):
        ps.execute(main, log=ps.Log(tmp_path / "log"))


def test_who_keeps_nothing_may_say_so() -> None:
    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        info.keeps_nothing()
        return lambda input, output: None

    built(lambda scope, stream: stream.unary(ps.Pipeline(), "Mine", build))


def test_a_table_is_declared_while_its_operator_is_built(tmp_path: Path) -> None:
    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        info.keeps_nothing()

        def logic(input: Any, output: Any) -> None:
            for _ in input:
                info.state("late")

        return logic

    def main(worker: Any) -> None:
        with worker.dataflow("program", durable=Durable(Checkpoint(tmp_path))) as scope:
            input_, stream = scope.new_input()
            stream.unary(ps.Pipeline(), "Mine", build)
        input_.send(1)
        input_.close()
        worker.run()

    with pytest.raises(WorkerError, match=r"'program/Mine' declares table 'late' after it was"):
        ps.execute(main)


def test_operators_that_keep_nothing_need_not_say_so() -> None:
    def build(scope: Any, stream: Any) -> None:
        with scope.iterative() as inner:
            loop, again = inner.feedback(1, limit=3)
            loop.connect(stream.enter(inner).concat(again).map(lambda x: x))
        counts = stream.exchange().count().accumulate(0, lambda total, batch: total)
        stream.join(counts, lambda r: r).inspect(lambda r: None).probe()
        stream.aggregate(lambda key, value, state: state, default=0)
        stream.iterate(lambda records: records, limit=2)

    built(build)


def test_a_state_is_a_dictionary_where_nothing_is_durable() -> None:
    found = []

    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        found.append(type(info.state("counts")))
        return lambda input, output: None

    collect(lambda scope: scope.empty().unary(ps.Pipeline(), "Mine", build))
    assert found == [dict]


def test_a_table_is_declared_once() -> None:
    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        info.state("counts")
        info.state("counts")

    with pytest.raises(BuildError, match=r"'program/Mine' declares table 'counts' twice"):
        built(lambda scope, stream: stream.unary(ps.Pipeline(), "Mine", build))


@pytest.mark.parametrize("is_second_of_columns", [False, True])
def test_a_table_is_declared_once_where_nothing_is_durable_too(
    is_second_of_columns: bool, first_cause: Any
) -> None:
    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        info.state("counts")
        if is_second_of_columns:
            info.state_columns({"key": "i8", "n": "i8"}, "counts")
        else:
            info.state("counts")

    with pytest.raises(WorkerError, match=r"'Mine' declares table 'counts' twice") as raised:
        collect(lambda scope: scope.empty().unary(ps.Pipeline(), "Mine", build))
    assert isinstance(first_cause(raised.value), BuildError)


def test_tables_of_two_operators_may_have_one_name() -> None:
    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        info.state("counts")
        return lambda input, output: None

    def both(scope: Any) -> Any:
        return scope.empty().unary(ps.Pipeline(), "Mine", build).unary(ps.Pipeline(), "Too", build)

    assert collect(both) == []


def test_epochs_are_integers() -> None:
    def main(worker: Any) -> None:
        durable = Durable(Checkpoint("nowhere"))
        with worker.dataflow("pairs", ps.Product(ps.Int, ps.Int), durable=durable) as scope:
            scope.new_input()[1].state_machine(add)

    with pytest.raises(WorkerError, match=r"'pairs' has times of .*; snapshots are at epochs"):
        ps.execute(main)


# Snapshots that cannot be.


def in_a_worker(use: Callable[[Any, Any, Any], Any], *, durable: bool = True) -> Any:
    """What `use(worker, input, probe)` gives, of a running sum."""

    def main(worker: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            how = Durable(Checkpoint(folder)) if durable else None
            with worker.dataflow("program", durable=how) as scope:
                input, stream = scope.new_input()
                probe = stream.state_machine(add, default=0).probe()
            result = use(worker, input, probe)
            input.close()
            worker.run()
            return result

    return ps.execute(main)[0]


def test_a_snapshot_is_asked_for_before_its_epoch_is_past() -> None:
    def use(worker: Any, input: Any, probe: Any) -> None:
        input.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))
        with pytest.raises(UsageError, match="too late: operator 'program/StateMachine' is at 3"):
            worker.snapshot(2, background=False)
        worker.snapshot(5, background=False)
        with pytest.raises(UsageError, match="is at 5"):
            worker.snapshot(5, background=False)

    in_a_worker(use)


def test_a_snapshot_is_asked_for_before_anything_later_was_begun() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow("program", durable=Durable(Checkpoint("nowhere"))) as scope:
            handles, streams = zip(*(scope.new_input() for _ in range(2)), strict=True)
            streams[0].join(streams[1], lambda r: r, retain=True)
        handles[0].advance_to(4)
        handles[0].send(1)
        handles[0].advance_to(5)
        for _ in range(9):
            worker.step()
        with pytest.raises(UsageError, match="'program/Join' is at 5"):
            worker.snapshot(3, background=False)

    ps.execute(main)


def test_a_snapshot_is_at_an_epoch_of_something_durable() -> None:
    def not_durable(worker: Any, input: Any, probe: Any) -> None:
        with pytest.raises(UsageError, match="worker 0 has no durable dataflow"):
            worker.snapshot(0)

    def at_no_epoch(worker: Any, input: Any, probe: Any) -> None:
        for epoch in (-1, "0", None):
            with pytest.raises(UsageError, match="at an integer epoch from 0 on"):
                worker.snapshot(epoch)

    in_a_worker(not_durable, durable=False)
    in_a_worker(at_no_epoch)


def test_a_dataflow_is_not_dropped_before_its_snapshot_is_done() -> None:
    def use(worker: Any, input: Any, probe: Any) -> None:
        worker.snapshot(0, background=False)
        with pytest.raises(UsageError, match="before its snapshot at 0 is done"):
            worker.drop_dataflow("program")
        input.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        worker.drop_dataflow("program")
        with pytest.raises(UsageError, match="no durable dataflow"):
            worker.snapshot(1)

    in_a_worker(use)


# Writing.


def test_a_part_is_written_on_a_thread_while_the_worker_goes_on() -> None:
    def use(worker: Any, input: Any, probe: Any) -> Any:
        parts = []
        for epoch in range(4):
            written = worker.snapshot(epoch)
            for key in range(100 if epoch == 0 else 1):
                input.send((key, 1))
            input.advance_to(epoch + 1)
            worker.step_while(lambda: not written.done)  # noqa: B023
            parts.append(written.part)
        return parts

    parts = in_a_worker(use)
    assert [part.epoch for part in parts] == [0, 1, 2, 3]
    # What did not change is where it was.
    assert set(parts[0].files) < set(parts[1].files) < set(parts[2].files)
    assert all(part.n_bytes < parts[0].n_bytes / 10 for part in parts[1:])


def test_a_simulation_waits_for_what_is_written(tmp_path: Path) -> None:
    def main(worker: Any) -> Any:
        with worker.dataflow("program", durable=Durable(Checkpoint(tmp_path))) as scope:
            input, stream = scope.new_input()
            stream.state_machine(add, default=0)
        snapshot = worker.snapshot(0)
        input.send((worker.index, 1))
        input.close()
        worker.run()
        worker.step_while(lambda: not snapshot.done)
        return snapshot.part

    parts = ps.simulate(main, workers=3, seed=5)
    assert [part.worker for part in parts] == [0, 1, 2]


def test_several_snapshots_may_be_under_way() -> None:
    def use(worker: Any, input: Any, probe: Any) -> Any:
        snapshots = [worker.snapshot(epoch) for epoch in (1, 3, 4)]
        for epoch in range(6):
            input.send((epoch, 1))
            input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(6) or not snapshots[-1].done)
        return [
            sum(t.bins[b][0].rows for t in s.part.tables.values() for b in t.bins)
            for s in snapshots
        ]

    assert in_a_worker(use) == [2, 4, 5]


def test_a_part_that_cannot_be_written_stops_the_worker() -> None:
    def fail(epoch: int, tables: Any) -> None:
        raise CheckpointError(f"no room for {len(tables)} tables")

    for background in (True, False):

        def use(worker: Any, input: Any, probe: Any) -> None:
            worker.snapshot(0, fail, background=background)  # noqa: B023

        with pytest.raises(WorkerError, match="no room for 1 tables"):
            in_a_worker(use)


# Programs that changed.


def snapshot_of(names: list[str], folder: Path, allow: dict[str, list[str]] | None = None) -> Any:
    """A program of operators with these names, from the last snapshot on, if there is one."""
    checkpoint = Checkpoint(folder)
    manifest = checkpoint.latest()
    durable = Durable(checkpoint, manifest, **(allow or {}))
    epoch = durable.epoch + 1

    def main(worker: Any) -> Any:
        seen: list[Any] = []
        with worker.dataflow("program", durable=durable) as scope:
            input, stream = scope.new_input()
            assert input.time == epoch
            for name in names:
                scoped, _, own = name.rpartition("/")
                inner = scope.region(scoped) if scoped else scope
                entered = stream.enter(inner) if scoped else stream
                sums = entered.unary(ps.Exchange(lambda r: r[0]), own, counting)
                (sums.leave() if scoped else sums).inspect(lambda r, n=name: seen.append((n, r)))
                if scoped:
                    inner.close()
            given = scope.to_stream([("given", 1)]).inspect(lambda r: seen.append(r)).probe()
        snapshot = worker.snapshot(epoch, background=False)
        input.send(("k", 1))
        input.close()
        worker.run()
        assert given.done
        return sorted(seen), snapshot.part

    ((seen, part),) = ps.execute(main)
    checkpoint.commit_manifest(epoch, [part], {})
    return seen


def counting(capability: Any, info: Any) -> Any:
    capability.drop()
    counts = info.state("counts")

    def logic(input: Any, output: Any) -> None:
        for time, batch in input:
            for key, _ in batch:
                counts[key] = counts.get(key, 0) + 1
                output.session(time).give(counts[key])

    return logic


def test_operators_are_found_again_by_name(tmp_path: Path) -> None:
    names = ["A", "inner/A", "A", "a/b#2"]
    first = snapshot_of(names, tmp_path)
    assert first == sorted([("given", 1), *((name, 1) for name in names)])
    manifest = Checkpoint(tmp_path).latest()
    assert manifest is not None
    assert set(manifest.structure) == {
        "program/A",
        "program/inner/A",
        "program/A#2",
        "program/a/b%232",
    }
    # In another order, but for those of one name, and what was given is not given again.
    assert snapshot_of(["a/b#2", "A", "A", "inner/A"], tmp_path) == sorted((n, 2) for n in names)


def test_an_operator_that_is_new_is_said_and_refused_unless_allowed(tmp_path: Path) -> None:
    snapshot_of(["A"], tmp_path)
    with pytest.raises(
        WorkerError,
        match=r"of what 'program/B' keeps in 'counts'.* say so: allow_new=\['program/B'",
    ) as e:
        snapshot_of(["A", "B"], tmp_path)
    assert isinstance(e.value.__cause__, CheckpointStructureError)
    found = snapshot_of(["A", "B"], tmp_path, {"allow_new": ["program/B"]})
    assert found == [("A", 2), ("B", 1)]


def test_an_operator_that_is_missing_is_said_and_refused_unless_allowed(tmp_path: Path) -> None:
    snapshot_of(["A", "B"], tmp_path)
    with pytest.raises(
        WorkerError, match=r"'program/B' kept in 'counts'.* dataflow has \['program/A'\]"
    ):
        snapshot_of(["A"], tmp_path)
    found = snapshot_of(["A"], tmp_path, {"allow_missing": ["program/B"]})
    assert found == [("A", 2)]


def test_all_that_is_new_and_all_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    snapshot_of(["A", "B", "C"], tmp_path)
    with pytest.raises(
        WorkerError,
        match=r"at 0: it has nothing of what 'program/D' keeps in 'counts', 'program/E' keeps .* "
        r"allow_new=\['program/D', 'program/E'\]; .* allow_missing=\['program/B', 'program/C'\]\. ",
    ):
        snapshot_of(["A", "D", "E"], tmp_path)
    allowed = {"allow_new": ["program/D"], "allow_missing": ["program/B"]}
    with pytest.raises(WorkerError, match=r"what 'program/E' keeps .* have: 'program/C' kept"):
        snapshot_of(["A", "D", "E"], tmp_path, allowed)


def test_a_kind_of_which_an_earlier_version_said_less_is_the_same(tmp_path: Path) -> None:
    snapshot_of(["A"], tmp_path)
    durable = Durable(Checkpoint(tmp_path), Checkpoint(tmp_path).latest())
    assert durable.stored("program/A", "counts", "keys and values: sums")
    with pytest.raises(CheckpointStructureError, match="has keys; the snapshot at 0 has keys and"):
        durable.stored("program/A", "counts", "keys")


def _joined(*keys: Any) -> Any:
    return lambda a, b: a.join(b, *keys, retain=True)


def _in_windows(windows: Any, time: Any = "t", key: Any = "k") -> Any:
    return lambda a, b: a.window(windows, time=time, key=key)[0]


def _folded(*aggregates: str) -> Any:
    named = [("t", each) for each in aggregates]
    return lambda a, b: a.fold_window(named, ps.Tumbling(9), "t", "k", name="Window")[0]


def _counted(a: Any, b: Any) -> Any:
    return a.count_window(ps.Tumbling(9), "t", "k", name="Window")[0]


def _folded_records(a: Any, b: Any) -> Any:
    fold = ps.Tumbling(9), "t", "k"
    return a.fold_window(lambda key, batch, n: n + len(batch), *fold, default=0, name="Window")[0]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (_joined("k"), _joined("t"), "by t; .*batches: by k there"),
        (_joined("k"), _joined(["k", "t"]), "by k, t; .*batches: by k there"),
        (_in_windows(ps.Tumbling(9)), _in_windows(ps.Tumbling(4)), r"size=4\) of t by k; .*size=9"),
        (_in_windows(ps.Sessions(9)), _in_windows(ps.Sessions(4)), r"gap=4\) of t by k; .*gap=9"),
        (_in_windows(ps.Tumbling(9)), _in_windows(ps.Tumbling(9), "k"), "of k by k; .* of t by k"),
        (_in_windows(ps.Tumbling(9)), _in_windows(ps.Tumbling(9), key="t"), "of t by t; .* by k "),
        (
            _folded("sum"),
            _folded("max"),
            r"'max'\)\] in .*'sum'\)\] in Tumbling\(size=9\) of t by k",
        ),
        (_folded("sum"), _folded("sum", "max"), r"'sum'\), \('t', 'max'\)\] in .*'sum'\)\] in "),
        (_folded("mean"), _folded("sum"), r"'sum'\)\] in .*columns \['k', 't'\] in "),
        (_counted, _folded("sum"), r"'sum'\)\] in .*counts in "),
        (_in_windows(ps.Tumbling(9)), _counted, "counts in .*records in "),
        (_in_windows(ps.Tumbling(9)), _folded_records, "records by time in .*records in "),
    ],
)
def test_windows_and_joins_of_streams_of_something_else_are_refused(
    before: Any, after: Any, said: str, tmp_path: Path
) -> None:
    checkpoint = Checkpoint(tmp_path)
    columns = pa.record_batch({"k": [1, 2], "t": [3, 4]})

    def main(worker: ps.Worker, build: Any) -> None:
        durable = Durable(checkpoint, checkpoint.latest())
        with worker.dataflow("program", durable=durable) as scope:
            (left, a), (right, b) = scope.new_input(), scope.new_input()
            build(a, b)
        epoch = durable.epoch + 1
        snapshot = worker.snapshot(epoch)
        for input in (left, right):
            input.send_batch(columns)
            input.advance_to(epoch + 1)
        worker.step_while(lambda: not snapshot.done)
        checkpoint.commit_manifest(epoch, [snapshot.part], {})
        worker.close_inputs()
        worker.run()

    for _ in range(2):
        ps.execute(main, before)
    with pytest.raises(WorkerError, match=f"CheckpointStructureError: .* has batches: .*{said}"):
        ps.execute(main, after)


def test_a_table_of_another_kind_is_refused(tmp_path: Path) -> None:
    snapshot_of(["Join"], tmp_path)

    def main(worker: Any) -> None:
        durable = Durable(Checkpoint(tmp_path), Checkpoint(tmp_path).latest(), ["program/Join"])
        with worker.dataflow("program", durable=durable) as scope:
            stream = scope.new_input()[1]
            stream.unary(ps.Pipeline(), "Join", build)

    def build(capability: Any, info: Any) -> Any:
        from pointstamp.checkpoint.keyed_state import KeyedBatches, by_key

        capability.drop()
        info.states.keep("counts", KeyedBatches(list, print, by_key(None)))

    with pytest.raises(WorkerError, match="has batches; the snapshot at 0 has keys and values"):
        ps.execute(main)
