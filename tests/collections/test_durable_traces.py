"""Handles and imports of arrangements in durable dataflows: what is begun again goes on."""

from __future__ import annotations

import gc
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.errors import AsOfError, WorkerError
from tests.collections.lives import longer
from tests.collections.programs import Program, programs
from tests.collections.trace_lives import (
    ANYTHING,
    SHARED_LIVES,
    SharedLife,
    SharedRun,
    check_shared_lives,
    multisets,
)
from tests.conftest import examples

EDGES = "src long, dst long"

GRAPH = [
    [((1, 2), 1), ((2, 3), 1), ((3, 4), 1)],
    [((2, 3), -1), ((4, 5), 2), ((5, 1), 1)],
    [],
    [((1, 2), -1), ((2, 3), 1), ((4, 5), -1)],
    [((7, 1), 1), ((5, 1), -1), ((1, 7), 1)],
    [((2, 3), -1), ((1, 2), 1)],
]
"""Changes of edges, by epoch."""


class TwoHops:
    """Paths of two edges, and beside them how many edges leave a vertex and the last of them."""

    n_inputs = 1

    def __init__(self) -> None:
        self.epochs = [[changes] for changes in GRAPH]

    def build(self, inputs: Any) -> Any:
        (edges,) = inputs
        hops = edges.arrange("dst").join(edges.arrange("src")).select("src", "dst")
        degrees = edges.group_by("src").agg(n=ps.count()).select("src", dst=ps.col("n") * 100)
        last = edges.group_by("src").top_k(1, by="dst", descending=True)
        listed = edges.group_by("src").reduce(lambda key, rows: [(*key, -len(rows))], EDGES)
        return hops.concat(degrees, last, listed)


def lived(
    folder: Path, life: SharedLife, allow_new: Any = ()
) -> tuple[list[Any], list[Any], list[Any]]:
    """A life of a program: updates of the second dataflow and of the third, and what was read."""
    checkpoint = Checkpoint(str(folder))
    durable = Durable(checkpoint, checkpoint.latest(), allow_new=allow_new)
    cuts = tuple(sorted(life.cuts))
    run = SharedRun(TwoHops(), 0, life, durable, cuts, EDGES, "src")
    ran = ps.simulate(run, workers=life.workers, seed=3)
    for number, cut in enumerate(cuts):
        checkpoint.commit_manifest(cut, [seen.parts[number] for seen in ran], {})
    second = sorted((time, row, diff) for seen in ran for row, time, diff in seen.second)
    third = sorted((time, row, diff) for seen in ran for row, time, diff in seen.third)
    read: dict[int, Counter[Any]] = {}
    for seen in ran:
        for time, rows in {time: rows for _, time, rows in seen.read}.items():
            read.setdefault(time, Counter()).update(rows)
    return second, third, sorted(read.items())


def accumulated(updates: list[Any], time: int) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for at, row, diff in updates:
        if at <= time:
            found[row] += diff
    return {row: n for row, n in found.items() if n}


@pytest.mark.parametrize("cut", range(len(GRAPH) - 1))
def test_a_run_that_is_cut_twice_gives_what_one_without_a_cut_gives(
    cut: int, tmp_path: Path
) -> None:
    end = len(GRAPH)
    whole, third, read = lived(tmp_path / "whole", SharedLife(1, 7, frozenset()))
    assert third == whole
    assert [time for time, _ in read] == list(range(end))
    assert [rows for _, rows in read] == multisets(TwoHops(), 0)
    folder = tmp_path / "cut"
    first = lived(folder, SharedLife(1, 1, frozenset([cut])))
    later = frozenset(range(cut + 1, min(cut + 2, end - 1)))
    second = lived(folder, SharedLife(2, 1, later))
    last = cut + len(later)
    third_life = lived(folder, SharedLife(1, 7, frozenset()))
    assert first == (whole, whole, read)
    for (updates, others, rows), after in ((second, cut), (third_life, last)):
        assert updates == [update for update in whole if update[0] > after]
        assert rows == read[after:]
        assert min(time for time, _, _ in others) == after
        for time in range(after, end):
            assert accumulated(others, time) == accumulated(whole, time)


@settings(max_examples=examples(25))
@given(programs(), SHARED_LIVES, st.sampled_from([1, 5]), st.sampled_from([0, 4]))
def test_a_program_on_imports_gives_what_recomputing_gives_in_each_life(
    program: Program, lives: list[SharedLife], dead_part: int, few: int
) -> None:
    check_shared_lives(longer(program), lives, dead_part, few)


@pytest.mark.soak
@settings(max_examples=2_000)
@given(programs(), SHARED_LIVES, st.sampled_from([1, 5]), st.integers(0, 9))
def test_many_programs_on_imports_give_what_recomputing_gives(
    program: Program, lives: list[SharedLife], dead_part: int, few: int
) -> None:
    check_shared_lives(longer(program), lives, dead_part, few)


def in_one_worker(main: Any, *args: Any) -> Any:
    (result,) = ps.simulate(main, *args, workers=1)
    return result


def begun(
    worker: ps.Worker, durable: Durable | None, changes: Any = (), cut: int | None = None
) -> tuple[Any, ps.ArrangedCollection, ps.TraceHandle, Any]:
    """A dataflow with an arrangement; with `cut` in a run that ends with a snapshot of that."""
    with worker.dataflow("first", durable=durable) as scope:
        input_, edges = scope.new_collection(EDGES)
        by_src = edges.arrange("src")
        handle = by_src.trace()
    snapshot = None if cut is None else worker.snapshot(cut, background=False)
    input_.update(changes)
    if snapshot is not None:
        input_.close()
        worker.run()
        return snapshot.part, by_src, handle, None
    return input_, by_src, handle, None


def snapshot_of(folder: Path, changes: Any, cut: int) -> Durable:
    """A snapshot of the first dataflow alone."""
    checkpoint = Checkpoint(str(folder))

    def main(worker: ps.Worker) -> Any:
        return begun(worker, Durable(checkpoint), changes, cut)[0]

    checkpoint.commit_manifest(cut, [in_one_worker(main)], {})
    return Durable(checkpoint, checkpoint.latest())


def test_what_a_snapshot_has_can_be_read_before_anything_moves(tmp_path: Path) -> None:
    durable = snapshot_of(tmp_path, [((7, 1), 1), ((7, 2), 2)], 4)

    def main(worker: ps.Worker) -> None:
        input_, by_src, handle, _ = begun(worker, durable)
        assert (handle.since, handle.upper) == (4, 5)
        worker.step()
        assert handle.upper == 5
        assert handle.as_of(4).lookup(src=7) == [(7, 1), (7, 2), (7, 2)]
        with pytest.raises(AsOfError, match=r"time 3 .* since, 4, and before upper, 5"):
            handle.as_of(3)
        with pytest.raises(AsOfError, match=r"time 5 .* since, 4, and before upper, 5"):
            handle.as_of(5)
        input_.delete([(7, 2)])
        input_.advance_to(6)
        worker.step_while(lambda: handle.upper < 6)
        assert handle.as_of(5).lookup(src=7) == [(7, 1), (7, 2)]
        assert handle.as_of(4).lookup(src=7) == [(7, 1), (7, 2), (7, 2)]
        assert by_src.trace().since == 5  # what is there may be merged
        input_.close()

    in_one_worker(main)


def test_a_worker_that_has_nothing_of_a_snapshot_does_not_say_what_was_before(
    tmp_path: Path,
) -> None:
    durable = snapshot_of(tmp_path, [((7, 1), 1), ((7, 1), -1)], 4)

    def main(worker: ps.Worker) -> None:
        _, _, handle, _ = begun(worker, durable)
        assert (handle.since, handle.upper) == (4, 5)
        assert not handle.as_of(4).snapshot()
        with pytest.raises(AsOfError, match=r"since, 4"):
            handle.as_of(0)
        worker.close_inputs()

    in_one_worker(main)


def test_of_a_dataflow_that_is_not_durable_nothing_durable_is_imported(tmp_path: Path) -> None:
    durable = Durable(Checkpoint(str(tmp_path)))

    def main(worker: ps.Worker) -> None:
        _, _, handle, _ = begun(worker, None)
        with worker.dataflow("second", durable=durable) as scope:
            handle.import_into(scope)

    with pytest.raises(
        WorkerError, match=r"UndeclaredStateError: .*durable dataflow 'second': 'first' is not dur"
    ):
        in_one_worker(main)


def test_an_import_that_is_new_has_to_be_allowed_by_name(tmp_path: Path) -> None:
    lived(tmp_path, SharedLife(1, 1, frozenset([2]), has_second=False))
    with pytest.raises(WorkerError, match=r"allow_new=\['second/Aggregate', .* 'second/Import0',"):
        lived(tmp_path, SharedLife(1, 1, frozenset()))


@pytest.mark.parametrize("late", [0, 1, 2])
def test_what_is_imported_anew_comes_in_one_piece_at_the_first_epoch(
    late: int, tmp_path: Path
) -> None:
    whole, _, _ = lived(tmp_path / "whole", SharedLife(1, 7, frozenset()))
    lived(tmp_path, SharedLife(2, 1, frozenset([2]), has_second=False))
    again, _, _ = lived(tmp_path, SharedLife(1, 7, frozenset([5]), late=late), ANYTHING)
    assert min(time for time, _, _ in again) == 3
    for time in range(3, len(GRAPH)):
        # What came before the second dataflow was built comes at its times, or at the handle's.
        assert accumulated(again, time) == accumulated(whole, time)
    # The snapshot of the last epoch has all of it: nothing comes any more.
    assert lived(tmp_path, SharedLife(2, 1, frozenset()))[0] == []


class OwnEdges:
    """Pairs of what is imported and of the second dataflow's own, which had an input alone."""

    def __init__(self, join: Any) -> None:
        self.join = join

    def life(self, folder: Path, cut: int | None, *, imports: bool) -> list[Any]:
        checkpoint = Checkpoint(str(folder))
        new = ["second/Import"]
        durable = Durable(checkpoint, checkpoint.latest(), allow_new=new)
        ran = ps.simulate(self, durable, cut, imports, workers=2, seed=5)
        if cut is not None:
            checkpoint.commit_manifest(cut, [part for _, part in ran], {})
        return sorted(update for seen, _ in ran for update in seen)

    def __call__(self, worker: ps.Worker, durable: Durable, cut: int | None, imports: bool) -> Any:
        seen: list[Any] = []
        with worker.dataflow("first", durable=durable) as scope:
            input_, edges = scope.new_collection(EDGES)
            handle = edges.arrange("src").trace()
        with worker.dataflow("second", durable=durable) as scope:
            other_input, others = scope.new_collection("src long, n long")
            by_src = others.arrange("src")
            found = by_src.join(by_src) if not imports else self.join(handle, scope, by_src)
            if imports:
                found.inspect(lambda row, time, diff: seen.append((time, row, diff)))
        snapshot = None if cut is None else worker.snapshot(cut, background=False)
        for epoch in range(durable.epoch + 1, len(GRAPH)):
            input_.update(GRAPH[epoch][worker.index :: worker.peers])
            other_input.update([((epoch, 1), 1), ((1, epoch), 1)][worker.index :: worker.peers])
            for each in (input_, other_input):
                each.advance_to(epoch + 1)
        worker.close_inputs()
        worker.run()
        return seen, None if snapshot is None else snapshot.part


JOINS = {
    "left": lambda handle, scope, own: (
        handle.import_into(scope).join(own).select("src", "dst", "n")
    ),
    "right": lambda handle, scope, own: own.join(handle.import_into(scope)).select(
        "src", "dst", "n"
    ),
    "delta": lambda handle, scope, own: ps.delta_join(
        [own.collection, handle.import_into(scope).collection], "src"
    ).select("src", "dst", "n"),
    "delta, the other way": lambda handle, scope, own: ps.delta_join(
        [handle.import_into(scope).collection, own.collection], "src"
    ).select("src", "dst", "n"),
}


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_what_is_imported_anew_meets_what_its_dataflow_had(
    name: str, cut: int, tmp_path: Path
) -> None:
    check_new_import(name, cut, tmp_path)


def check_new_import(name: str, cut: int, tmp_path: Path) -> None:
    """What is made of an import that is new behind a snapshot is what an unbroken run makes."""
    program = OwnEdges(JOINS[name])
    whole = program.life(tmp_path / "whole", None, imports=True)
    program.life(tmp_path, cut, imports=False)
    again = program.life(tmp_path, cut + 1, imports=True)
    assert min(time for time, _, _ in again) == cut + 1
    for time in range(cut + 1, len(GRAPH)):
        assert accumulated(again, time) == accumulated(whole, time)
    later = program.life(tmp_path, None, imports=True)
    assert later == [update for update in again if update[0] > cut + 1]


def test_an_import_of_another_arrangement_is_another_import(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path))

    def main(worker: ps.Worker, durable: Durable, key: str) -> Any:
        with worker.dataflow("first", durable=durable) as scope:
            input_, edges = scope.new_collection(EDGES)
            handles = {name: edges.arrange(name).trace() for name in ("src", "dst")}
        with worker.dataflow("second", durable=durable) as scope:
            handles[key].import_into(scope)
        snapshot = worker.snapshot(durable.epoch + 1, background=False)
        input_.close()
        worker.run()
        return snapshot.part

    part = in_one_worker(main, Durable(checkpoint), "src")
    manifest = checkpoint.commit_manifest(0, [part], {})
    assert "imported" in manifest.structure["second/Import"]
    in_one_worker(main, Durable(checkpoint, manifest), "src")
    with pytest.raises(
        WorkerError, match=r"a note that it is of 'first/Arrange#2'; .* of 'first/Arrange' there"
    ):
        in_one_worker(main, Durable(checkpoint, manifest), "dst")


def test_an_import_without_what_it_is_of_is_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path))

    def main(worker: ps.Worker, durable: Durable, drops: bool) -> Any:
        input_, _, handle, _ = begun(worker, durable)
        with worker.dataflow("second", durable=durable) as scope:
            handle.import_into(scope)
        if drops:
            input_.close()
            worker.run()
            worker.drop_dataflow("first")
        snapshot = worker.snapshot(durable.epoch + 1, background=False)
        worker.close_inputs()
        worker.run()
        return snapshot.part

    part = in_one_worker(main, Durable(checkpoint), True)
    manifest = checkpoint.commit_manifest(0, [part], {})
    with pytest.raises(WorkerError, match="first/Arrange' by the import 'Import', and not"):
        in_one_worker(main, Durable(checkpoint, manifest, allow_new=["first/Arrange"]), False)


def test_an_import_that_goes_on_after_a_snapshot_needs_all_that_came_since(tmp_path: Path) -> None:
    lived(tmp_path, SharedLife(1, 1, frozenset([2])))
    checkpoint = Checkpoint(str(tmp_path))
    durable = Durable(checkpoint, checkpoint.latest())

    def main(worker: ps.Worker, since: int) -> None:
        input_, _, handle, _ = begun(worker, durable)
        input_.advance_to(9)
        handle.allow_compaction(since)
        with worker.dataflow("second", durable=durable) as scope:
            TwoHops().build([handle.import_into(scope, name="Import0").collection])
        worker.close_inputs()
        worker.run()

    in_one_worker(main, 3)
    with pytest.raises(WorkerError, match=r"after the snapshot at 2, .* up to since, 4: import"):
        in_one_worker(main, 4)


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("changes", [[], [((3, 0), 1)]])
def test_a_handle_that_is_made_late_goes_on_or_is_refused(
    changes: list[Any], is_kept: bool, tmp_path: Path
) -> None:
    """Where no other handle keeps what came apart from what the snapshot has, if it has any."""
    checkpoint = Checkpoint(str(tmp_path))

    def main(worker: ps.Worker, durable: Durable, changes: Any, n_late: int) -> Any:
        seen: list[Any] = []
        input_, by_src, handle, _ = begun(worker, durable)
        if not is_kept:
            handle.close()
        for epoch in range(durable.epoch + 1, durable.epoch + 1 + n_late):
            input_.insert([(2, epoch)])
            input_.advance_to(epoch + 1)
            worker.step_while(partial(lambda until: by_src.trace().upper < until, epoch + 1))
        with worker.dataflow("second", durable=durable) as scope:
            found = by_src.trace().import_into(scope).collection
            found.inspect(lambda row, time, diff: seen.append((time, row, diff)))
        snapshot = worker.snapshot(durable.epoch + 1 + n_late, background=False)
        input_.update(changes)
        input_.close()
        worker.run()
        return seen, snapshot.part

    _, part = in_one_worker(main, Durable(checkpoint), changes, 0)
    durable = Durable(checkpoint, checkpoint.commit_manifest(0, [part], {}))
    if changes and not is_kept:
        with pytest.raises(WorkerError, match="what that has is merged with what came since"):
            in_one_worker(main, durable, [((4, 2), 1)], 1)
    else:
        again, _ = in_one_worker(main, durable, [((4, 2), 1)], 1)
        assert again == [(1, (2, 1), 1), (2, (4, 2), 1)]


@pytest.mark.parametrize("way", ["closed", "forgotten"])
def test_without_a_handle_a_snapshot_has_all_and_little_is_kept(way: str, tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path))

    def main(worker: ps.Worker) -> Any:
        input_, by_src, handle, _ = begun(worker, Durable(checkpoint))
        probe = None
        if way == "closed":
            handle.close()
        else:
            del handle
            gc.collect()
        snapshot = worker.snapshot(29, background=False)
        for epoch in range(30):
            input_.insert([(1, epoch)])
            input_.delete([(1, epoch - 1)] if epoch else [])
            input_.advance_to(epoch + 1)
            for _ in range(20):
                worker.step()
        assert probe is None
        assert by_src.n_updates <= 4
        input_.close()
        worker.run()
        return snapshot.part

    manifest = checkpoint.commit_manifest(29, [in_one_worker(main)], {})

    def again(worker: ps.Worker) -> None:
        _, _, handle, _ = begun(worker, Durable(checkpoint, manifest))
        assert handle.as_of(29).snapshot() == [(1, 29)]
        worker.close_inputs()

    in_one_worker(again)


@pytest.mark.parametrize("is_durable", [False, True])
def test_what_a_dropped_dataflow_read_is_not_kept_for_it(is_durable: bool, tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> int:
        durable = Durable(Checkpoint(str(tmp_path))) if is_durable else None
        input_, by_src, handle, _ = begun(worker, durable)
        with worker.dataflow("second") as scope:
            graph = handle.import_into(scope)
            graph.join(graph)
        for epoch in range(30):
            input_.insert([(1, epoch)])
            input_.delete([(1, epoch - 1)] if epoch else [])
            input_.advance_to(epoch + 1)
            worker.step_while(partial(lambda until: handle.upper < until, epoch + 1))
            if epoch == 5:
                worker.drop_dataflow("second")
            handle.allow_compaction(epoch)
        kept = by_src.n_updates
        input_.close()
        worker.run()
        return kept

    assert in_one_worker(main) <= 4


@pytest.mark.parametrize("is_durable", [False, True])
def test_in_its_own_dataflow_an_import_is_what_is_arranged(
    is_durable: bool, tmp_path: Path
) -> None:
    def main(worker: ps.Worker) -> Any:
        seen: list[Any] = []
        durable = Durable(Checkpoint(str(tmp_path))) if is_durable else None
        with worker.dataflow(durable=durable) as scope:
            input_, edges = scope.new_collection("src long?, dst long")
            by_src = edges.arrange("src")
            again = by_src.trace().import_into(scope)
            assert [c.nullable for c in again.collection.schema.columns] == [False, False]
            found = again.join(by_src).select("src")
            found.inspect(lambda row, time, diff: seen.append((row, diff)))
            again.collection.inspect(lambda row, time, diff: seen.append((row, diff)))
        assert scope.leads_to(edges.stream, found.stream)
        input_.insert([(1, 2), (None, 3)])
        input_.close()
        worker.run()
        return sorted(seen)

    assert in_one_worker(main) == [((1,), 1), ((1, 2), 1)]


@pytest.mark.parametrize("n_new", [0, 1, 2])
def test_what_is_imported_can_be_imported_again(n_new: int, tmp_path: Path) -> None:
    """So many of the two imports, the last ones, are new behind the snapshot."""
    checkpoint = Checkpoint(str(tmp_path))

    def main(worker: ps.Worker, cut: int, n_imports: int) -> Any:
        new = ["second/Import", "third/Import"]
        durable = Durable(checkpoint, checkpoint.latest(), allow_new=new)
        seen: list[Any] = []
        input_, _, handle, _ = begun(worker, durable)
        if n_imports:
            with worker.dataflow("second", durable=durable) as scope:
                handle = handle.import_into(scope).trace()
        if n_imports > 1:
            with worker.dataflow("third", durable=durable) as scope:
                third = handle.import_into(scope)
                found = third.join(third).select("src")
                found.inspect(lambda row, time, diff: seen.append((time, row[0], diff)))
        snapshot = worker.snapshot(cut, background=False)
        for epoch in range(durable.epoch + 1, cut + 2):
            input_.insert([(1, epoch), (epoch, 1)])
            input_.advance_to(epoch + 1)
        input_.close()
        worker.run()
        return sorted(seen), snapshot.part

    first, part = in_one_worker(main, 1, 2 - n_new)
    checkpoint.commit_manifest(1, [part], {})
    again, _ = in_one_worker(main, 3, 2)
    sources = Counter(source for epoch in range(5) for source in (1, epoch))
    before = Counter(source for epoch in range(2) for source in (1, epoch))
    pairs = {source: n**2 - (0 if n_new else before[source] ** 2) for source, n in sources.items()}
    assert accumulated(again, 9) == {source: n for source, n in pairs.items() if n}
    assert min(time for time, _, _ in again) == 2
    assert bool(first) == (n_new == 0)


def paths(scope: Any, edges: ps.Collection) -> Any:
    """Two hops, of an import, and what a handle says of the epoch before at each change."""
    by_src = edges.arrange("src")
    handle = by_src.trace()
    imported = handle.import_into(scope)

    def before(row: Any, time: int, diff: int) -> None:
        READ.append((time, handle.since, handle.upper))

    hops = edges.arrange("dst").join(imported).select("src", "dst")
    hops.inspect(before)
    return {"hops": hops, "degrees": imported.collection.group_by("src").agg(n=ps.count())}


READ: list[tuple[int, int, int]] = []
"""(epoch of a change, since, upper) of what the service's handle says."""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_with_an_import_goes_on_from_its_snapshot(workers: int, tmp_path: Path) -> None:
    def serve(n: int, folder: Path, every: int) -> Any:
        schemas = {"edges": EDGES}
        options = {"checkpoint": str(folder), "snapshot_every": every, "threads": True}
        return ps.serve(paths, n, collections=schemas, **options)

    def send(service: Any, epochs: range) -> dict[int, Any]:
        found = {}
        for epoch in epochs:
            service.input("edges").update(GRAPH[epoch])
            at = service.advance()
            found[at] = [service.output(name).changes(at) for name in ("hops", "degrees")]
        return found

    with serve(1, tmp_path / "whole", 100) as service:
        whole = send(service, range(len(GRAPH)))
    READ.clear()
    service = serve(workers, tmp_path, 2)
    found = send(service, range(3))
    assert service.await_snapshot(1, timeout_s=60)
    service.abort()
    assert any(since == 0 for _, since, _ in READ)
    READ.clear()
    with serve(3 - workers, tmp_path, 2) as service:
        found.update(send(service, range(3, len(GRAPH))))
    assert found == whole
    assert all(since >= 1 for _, since, _ in READ), "it has begun with a snapshot"
    assert READ
