"""Programs on workers and in services whose texts are swept whenever they may be.

See `sweeping`: what is freed and still read is an error, or another text.
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp import col
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.communication.single import SingleCommunicator
from pointstamp.containers.dictionary import TEXTS, Dictionary
from pointstamp.containers.text_sweep import SWEEPS
from pointstamp.dataflow.texts_under_way import rows_in
from pointstamp.errors import DataError, UsageError
from pointstamp.runtime.worker import Worker
from pointstamp.service import collection_handles
from tests.collections.checks import limits_of
from tests.collections.programs import SCHEMA, Program
from tests.collections.sweeping import ALONE, WHOLE, sweeping


def check_swept_worker(program: Program, steps: Sequence[int], piece: int, reuses: bool) -> None:
    """The updates of a worker add up to what recomputing gives, however far apart it steps.

    steps : after each epoch that is given so many steps, of which one need not end it
    """
    with limits_of(program), sweeping(piece, reuses):
        (found,) = ps.execute(run_swept, program, steps)
    check_updates(found, program)


def check_updates(found: list[tuple[Any, int, int]], program: Program) -> None:
    """The updates of all workers add up to what recomputing gives, at the end of each epoch."""
    now: Counter[Any] = Counter()
    for epoch, expected in enumerate(program.expected()):
        for row, time, diff in found:
            if time == epoch:
                now[row] += diff
        assert Counter({row: n for row, n in now.items() if n}) == expected


def run_swept(
    worker: ps.Worker, program: Program, steps: Sequence[int]
) -> list[tuple[Any, int, int]]:
    """(row, time, diff) of what leaves at this worker."""
    seen: list[tuple[Any, int, int]] = []
    with worker.dataflow() as scope:
        made = [scope.new_collection(SCHEMA) for _ in range(program.n_inputs)]
        result = program.build([collection for _, collection in made])
        result.inspect(lambda row, time, diff: seen.append((row, time, diff)))
    for epoch in range(len(program.epochs)):
        _give(worker, program, made, epoch, steps)
    for input_, _ in made:
        input_.close()
    worker.run()
    return seen


def _give(
    worker: ps.Worker, program: Program, made: list[Any], epoch: int, steps: Sequence[int]
) -> None:
    """Give this worker's part of an epoch, end it, and step."""
    for (input_, _), pairs in zip(made, program.epochs[epoch], strict=True):
        mine = pairs[worker.index :: worker.peers]
        for at in range(0, len(mine), 2):
            # In between, so that the epoch is not over when a sweep begins.
            input_.update(mine[at : at + 2])
            worker.step()
        input_.advance_to(epoch + 1)
    for _ in range(steps[epoch % len(steps)]):
        worker.step()


def check_swept_traces(program: Program, steps: Sequence[int], piece: int, reuses: bool) -> None:
    """The same where each input is arranged in another dataflow; as of each epoch, and at the end.

    What is read as of an epoch is looked at when all is over: what was overlooked is freed by then.
    """
    with limits_of(program), sweeping(piece, reuses) as sweeps:
        n_before = sweeps.stats().sweeps
        ((found, read),) = ps.execute(run_swept_traces, program, steps)
        assert piece < WHOLE or sweeps.stats().sweeps > n_before, sweeps.stats().refused
        check_updates(found, program)
        for number, epoch, rows in read:
            now: Counter[Any] = Counter()
            for changes in program.epochs[: epoch + 1]:
                for row, diff in changes[number]:
                    now[row] += diff
            # Texts are made of numbers here, not before.
            assert Counter(rows[:]) == Counter({row: n for row, n in now.items() if n})


def run_swept_traces(
    worker: ps.Worker, program: Program, steps: Sequence[int]
) -> tuple[list[tuple[Any, int, int]], list[tuple[int, int, Any]]]:
    """(row, time, diff) of what leaves; (input, epoch, rows) of what is read of its trace."""
    seen: list[tuple[Any, int, int]] = []
    with worker.dataflow() as scope:
        made = [scope.new_collection(SCHEMA) for _ in range(program.n_inputs)]
        handles = [collection.arrange("k").trace() for _, collection in made]
    with worker.dataflow() as scope:
        imported = [h.import_into(scope, name=f"{n}").collection for n, h in enumerate(handles)]
        result = program.build(imported)
        result.inspect(lambda row, time, diff: seen.append((row, time, diff)))
    read: list[tuple[int, int, Any]] = []
    for epoch in range(len(program.epochs)):
        _give(worker, program, made, epoch, steps)
        for number, handle in enumerate(handles):
            if handle.upper == epoch + 1 and epoch % 2:
                handle.allow_compaction(epoch)
                _read(handle, number, epoch, read)
    for input_, _ in made:
        input_.close()
    worker.run()
    for number, handle in enumerate(handles):
        assert handle.upper is None
        with worker.dataflow() as scope:
            # Its texts are all that is there now beside those of the traces.
            input_, given = scope.new_collection("t string")
            given.distinct().inspect(lambda row, time, diff: None)
        input_.insert([(f"behind all {number}",)])
        input_.close()
        worker.run()
        _read(handle, number, len(program.epochs) - 1, read)
    return seen, read


def _read(handle: Any, number: int, epoch: int, read: list[tuple[int, int, Any]]) -> None:
    with suppress(DataError):  # more copies of a row were deleted than there were
        read.append((number, epoch, handle.as_of(epoch).snapshot()))


def check_traces_are_let_go() -> None:
    """Texts of a trace stay as long as it can be read, also behind its dataflow, and go with it."""

    def main(worker: ps.Worker) -> list[int]:
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            handle = given.arrange("t").trace()
        with worker.dataflow() as scope:
            beside, others = scope.new_collection("o string")
            others.distinct().inspect(lambda *update: None)
        input_.insert(rows_of(1))
        input_.close()
        while handle.upper is not None:
            worker.step()
        n_entries = []
        for turn in range(6):
            if turn < 3:
                found = handle.as_of(0)
                assert sorted(found.snapshot()[:]) == sorted((t, k) for k, t in rows_of(1))
                for k, t in rows_of(1):
                    assert found.lookup(t=t)[:] == [(t, k)]
            elif turn == 3:
                handle.close()
                del handle, found, given
                gc.collect()
            beside.insert([(f"beside it {turn}",)])
            beside.advance_to(2 * turn + 1)
            worker.step()
            beside.delete([(f"beside it {turn}",)])
            beside.advance_to(2 * turn + 2)
            for _ in range(20):
                worker.step()
            n_entries.append(SWEEPS.stats().entries)
        return n_entries

    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        (n_entries,) = ps.execute(main)
        assert sweeps.stats().sweeps > n_before + 4, sweeps.stats().refused
    assert n_entries[-1] <= n_entries[2] - len(rows_of(1)), n_entries


def check_handles_are_forgotten() -> None:
    """A worker has nothing more to ask for however many dataflows with traces there were."""

    def main(worker: ps.Worker) -> list[int]:
        n_held = []
        for turn in range(12):
            with worker.dataflow() as scope:
                input_, given = scope.new_collection("k long, t string")
                handle = given.arrange("t").trace()
            input_.insert(rows_of(turn))
            input_.close()
            worker.run()
            handle.close()
            del handle, given, scope, input_
            gc.collect()
            assert worker.texts is not None
            n_held.append(len(worker.texts._held))
        return n_held

    (n_held,) = ps.execute(main)
    assert max(n_held) <= 2, n_held


def check_imports_outlast() -> None:
    """What an import reads stays when its source has ended, and no handle is left."""

    def main(worker: ps.Worker) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            handle = given.arrange("k").trace()
        with worker.dataflow() as scope:
            own, keys = scope.new_collection("k long, o string")
            joined = handle.import_into(scope).collection.join(keys, on="k")
            joined.inspect(lambda row, time, diff: found.append(row))
        input_.insert(rows_of(1))
        input_.close()
        while handle.upper is not None:
            worker.step()
        handle.close()
        del handle, given
        gc.collect()
        for turn in range(3):
            own.insert([(turn, f"beside it {turn}")])
            own.advance_to(turn + 1)
            for _ in range(20):
                worker.step()
        own.close()
        worker.run()
        return found

    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        (found,) = ps.execute(main)
        assert sweeps.stats().sweeps > n_before + 2, sweeps.stats().refused
    assert found == [(k, t, f"beside it {k}") for k, t in rows_of(1)[:3]]


def check_traces_of_a_view() -> None:
    """What is exported of a view may be read when the view is gone, so nothing is swept then."""
    handles = []

    def build(scope: Any, t: Any) -> Any:
        handles.append(t.arrange("t").trace())
        return t

    with sweeping() as sweeps:
        view = ps.View(build, t="k long, t string")
        view.insert("t", rows_of(1))
        view.advance()
        n_before = sweeps.stats().sweeps
        view.delete("t", rows_of(1))
        view.advance()
        view.advance()
        assert sweeps.stats().sweeps == n_before
        assert "which texts they keep: Export" in sweeps.stats().refused
        assert sorted(handles[0].as_of(0).snapshot()[:]) == sorted((t, k) for k, t in rows_of(1))


def check_traces_of_a_worker_that_has_ended() -> None:
    """They have no texts any more, and say so."""
    handles = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            handles.append(given.arrange("t").trace())
            handles.append(given.select("k").arrange("k").trace())
        input_.insert(rows_of(1))
        input_.close()
        worker.run()

    ps.execute(main)
    with pytest.raises(UsageError, match="of a worker that has ended cannot be read"):
        handles[0].as_of(0).snapshot()
    with pytest.raises(UsageError, match="of a worker that has ended cannot be read"):
        handles[0].as_of(0).lookup(t="a text")
    assert handles[1].as_of(0).snapshot()[:] == [(k,) for k, _ in rows_of(1)]


def run_all_swept(
    worker: ps.Worker, programs: Sequence[Program], steps: Sequence[int], reuses: bool
) -> tuple[list[list[tuple[Any, int, int]]], int, str]:
    """The same of several programs, one after the other; how many sweeps; why not more."""
    found = []
    with sweeping(reuses=reuses) as sweeps:
        n_before = sweeps.stats().sweeps
        for program in programs:
            with limits_of(program):
                found.append(run_swept(worker, program, steps))
        return found, sweeps.stats().sweeps - n_before, sweeps.stats().refused


def check_swept_service(program: Program, reuses: bool) -> None:
    """The outputs of a service are what recomputing gives, added up by it or not."""
    with limits_of(program), sweeping(reuses=reuses) as sweeps:
        n_before = sweeps.stats().sweeps
        drive_service(program, threads=True)
        assert sweeps.stats().sweeps > n_before, sweeps.stats().refused


def drive_service(program: Program, workers: int = 1, *, threads: bool = False) -> None:
    """Feed and read a service, of which every other epoch is discarded."""
    names = [f"in{number}" for number in range(program.n_inputs)]
    with ps.serve(
        partial(_built, program),
        workers,
        threads=threads,
        collections=dict.fromkeys(names, SCHEMA),
    ) as service:
        output = service.output("result")
        kept = []
        for epoch, (changes, expected) in enumerate(
            zip(program.epochs, program.expected(), strict=True)
        ):
            for name, pairs in zip(names, changes, strict=True):
                service.input(name).update(pairs)
            assert service.advance() == epoch
            kept.append(output.changes(epoch))
            if epoch % 2:
                output.discard(epoch)
            if min(expected.values(), default=1) > 0:
                assert Counter(output.snapshot(epoch)) == expected
        now: Counter[Any] = Counter()
        for came, expected in zip(kept, program.expected(), strict=True):
            for row, diff in came:
                now[row] += diff
            assert Counter({row: n for row, n in now.items() if n}) == expected


def _built(program: Program, scope: Any, **given: Any) -> Any:
    if SWEEPS.spare > 0:
        # A process of its own, where there is no adversary yet.
        SWEEPS.spare, SWEEPS.reuses = -WHOLE, False
    return program.build(list(given.values()))


def rows_of(turn: int, n: int = 4) -> list[tuple[int, str]]:
    """Rows of a turn, with texts that no other has."""
    return [(k, f"a text that is new in turn {turn}: {k}") for k in range(n)]


def check_alone_in_worker(name: str) -> None:
    """Texts that one operator alone keeps are known again, also when an epoch is not over."""
    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        (swept,) = ps.execute(_of_new_texts, ALONE[name])
        assert sweeps.stats().sweeps > n_before + 6, sweeps.stats().refused
    assert [swept] == ps.execute(_of_new_texts, ALONE[name])


def _of_new_texts(worker: ps.Worker, build: Callable[..., Any]) -> list[Any]:
    found: list[Any] = []
    with worker.dataflow() as scope:
        input_, given = scope.new_collection("k long, t string")
        result = build(scope, given)
        result.inspect(lambda row, time, diff: found.append((time, row, diff)))
        probe = result.probe()
    for epoch in range(9):
        input_.insert(rows_of(epoch))
        worker.step()
        worker.step()
        if epoch >= 3:
            input_.delete(rows_of(epoch - 3))
        input_.advance_to(epoch + 1)
        worker.step_while(partial(probe.less_than, epoch + 1))
    return sorted(found)


# What is under way.


def check_under_way() -> None:
    """What was given to an input, is in front of an operator or waits in one is found there."""
    worker = Worker(SingleCommunicator())
    with worker.dataflow() as scope:
        input_, given = scope.new_collection("k long, t string")
        given.distinct().inspect(lambda *update: None)
    assert worker.texts is not None
    input_.insert(rows_of(1))
    assert texts_held(worker) == {row[1].encode() for row in rows_of(1)}
    worker.step()  # it waits for the end of the epoch
    assert texts_held(worker) == {row[1].encode() for row in rows_of(1)}
    for row in rows_of(2):
        number = TEXTS.number(row[1].encode())
        reader = next(each for each in _operators(worker) if each.inputs)
        reader._inputs[0]._queue.push(0, given.schema.to_updates([row], 1, "it"))
        assert TEXTS.value(number) in texts_held(worker)
    worker.close()


def _operators(worker: Worker) -> list[Any]:
    assert worker.texts is not None
    return [operator for held in worker.texts._held for operator in held.operators]


def texts_held(worker: Worker) -> set[bytes]:
    assert worker.texts is not None
    return {
        TEXTS.value(number)
        for rows, places in worker.texts.held_texts()
        for place in places
        for number in rows[:, place].tolist()
        if number
    }


def check_rows_without_schema() -> None:
    """Each word of rows of which it is not known what they are is taken for a number."""
    number = TEXTS.number(b"a text that is in rows")
    given = np.array([[number, -7, 1 << 40, 1]])
    found = {word for rows, _ in rows_in([[(3, given)]], "it") for word in rows[:, 0].tolist()}
    assert found >= {number}
    assert min(found) > 0


def check_equal_pins() -> None:
    """Of two blocks that ask for the same each has what is asked for in it."""
    dictionary = Dictionary()
    first = dictionary.pinning()
    pins = first.__enter__()
    with dictionary.pinning():
        dictionary.number(b"one")
    dictionary.number(b"other")
    first.__exit__(None, None, None)
    assert pins == {1, 2}
    second, third = dictionary.pinning(), dictionary.pinning()
    one, other = second.__enter__(), third.__enter__()
    dictionary.number(b"one")
    third.__exit__(None, None, None)
    dictionary.number(b"other")
    second.__exit__(None, None, None)
    assert (one, other) == ({1, 2}, {1})


def check_steps_while_rows_are_given() -> None:
    """A program may step while it gives rows one by one."""

    def main(worker: ps.Worker) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            # Without a schema, so that each is numbered as it comes.
            input_, given = scope.new_collection(None)
            given.inspect(lambda row, time, diff: found.append(row))

        def rows() -> Any:
            for row in rows_of(1):
                yield row
                worker.step()
                worker.step()

        input_.insert(rows())
        worker.step()
        return found

    with sweeping():
        (found,) = ps.execute(main)
    assert sorted(found) == rows_of(1)


def check_views_inside_of_steps() -> None:
    """An operator's function may advance a view, whose sweep does not begin in the step."""

    def main(worker: ps.Worker) -> list[Any]:
        found: list[Any] = []
        with ps.View(lambda scope, t: t, t="t string") as view:

            def look(row: Any, time: Any, diff: int) -> None:
                for turn in range(2):
                    view.insert("t", [(f"in the view {row} {turn}",)])
                    view.advance()

            with worker.dataflow() as scope:
                input_, given = scope.new_collection("k long, t string")
                looked = given.inspect(look)
                looked.inspect(lambda row, time, diff: found.append(row))
            input_.insert(rows_of(1))
            worker.step()
        return found

    with sweeping():
        (found,) = ps.execute(main)
    assert sorted(found) == rows_of(1)


def check_views_beside() -> None:
    """A view that sweeps while rows were given to an input of a worker finds them."""

    def main(worker: ps.Worker) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            given.inspect(lambda row, time, diff: found.append(row))
        with ps.View(lambda scope, t: t, t="t string") as view:
            n_before = SWEEPS.stats().sweeps
            for turn in range(3):
                input_.insert(rows_of(turn))
                view.insert("t", [(f"in the view {turn}",)])
                view.advance()
                view.advance()
            assert SWEEPS.stats().sweeps > n_before, SWEEPS.stats().refused
        input_.close()
        worker.run()
        return found

    with sweeping():
        (found,) = ps.execute(main)
    assert sorted(found) == sorted(row for turn in range(3) for row in rows_of(turn))


# Snapshots.


def check_snapshots(folder: Path) -> None:
    """What is held back for a snapshot is not freed, nor what was handed out for it."""
    go_on = threading.Event()
    written: list[bytes] = []
    found: Counter[Any] = Counter()

    def write(epoch: int, tables: Any) -> None:
        assert go_on.wait(60)
        for delta in tables.values():
            for change in delta.changes.values():
                written.extend(change.batch.column(0).to_pylist())

    def look(row: Any, time: Any, diff: int) -> None:
        found[row, time] += diff

    def main(worker: ps.Worker) -> None:
        worker.environment.closers.callback(go_on.set)  # as it would wait, if this fails
        durable = Durable(Checkpoint(folder))
        with worker.dataflow("kept", durable=durable) as scope:
            input_, given = scope.new_collection("k long, t string")
            probe = given.distinct().inspect(look).probe()
        snapshot = worker.snapshot(0, write)
        for turn in range(3):
            input_.insert(rows_of(turn))
            input_.advance_to(turn + 1)
        for _ in range(4):
            worker.step()
        for turn in range(3, 9):
            input_.insert(rows_of(turn))
            input_.delete(rows_of(turn - 3))
            input_.advance_to(turn + 1)
            worker.step_while(partial(probe.less_than, turn + 1))
        go_on.set()
        worker.step_while(lambda: not snapshot.done)

    with sweeping():
        try:
            ps.execute(main)
        finally:
            go_on.set()
    for _, text in rows_of(0):
        assert sum(text.encode() in message for message in written) == 1
    came = {(row, turn): 1 for turn in range(9) for row in rows_of(turn)}
    assert found == came | {(row, turn + 3): -1 for turn in range(6) for row in rows_of(turn)}


def churned(scope: Any, t: Any) -> dict[str, Any]:
    """A result that keeps rows, and one of groups; both with state in snapshots."""
    return {"all": t.distinct(), "last": t.group_by("k").agg(last=ps.max("t"))}


def check_durable_service(folder: Path) -> None:
    """A service whose texts all change begins again with what it had; twice."""
    n, stays = 6, [(-1 - k, f"a text that stays {k}") for k in range(300)]
    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        for life in range(3):
            with ps.serve(
                churned,
                1,
                threads=True,
                collections={"t": "k long, t string"},
                checkpoint=folder,
                snapshot_every=2,
                restart=None,
            ) as service:
                for turn in range(life * n, (life + 1) * n):
                    service.input("t").insert(rows_of(turn))
                    # So that snapshots have what came since the last one, and not everything.
                    service.input("t").delete(rows_of(turn - 1) if turn else [])
                    service.input("t").insert([] if turn else stays)
                    epoch = service.advance()
                    now = sorted([*stays, *rows_of(turn)])
                    assert service.output("all").snapshot(epoch)[:] == now
                    assert service.output("last").snapshot(epoch)[:] == now
                    for output in ("all", "last"):
                        service.output(output).discard(epoch)
                    if turn % 2:
                        assert service.await_snapshot(epoch)
        assert sweeps.stats().sweeps > n_before + 2, sweeps.stats().refused


def check_service_that_is_given_rows() -> None:
    """What is given to a service by one thread stays, while its worker sweeps on another."""
    real = collection_handles.to_columns
    with (
        sweeping(),
        ps.serve(
            lambda scope, t, other: {"t": t.distinct(), "other": other.distinct()},
            1,
            threads=True,
            collections={"t": "k long, t string", "other": "o string"},
        ) as service,
    ):

        def slow(schema: Any, rows: Any) -> Any:
            if "t" in schema.names:
                for turn in range(3):
                    service.input("other").insert([(f"beside it {turn}",)])
                    service.output("other").probe.wait(service.advance())
            return real(schema, rows)

        collection_handles.to_columns = slow
        try:
            service.input("t").insert(rows_of(1))
        finally:
            collection_handles.to_columns = real
        assert service.output("t").snapshot(service.advance())[:] == rows_of(1)


def check_added_up() -> None:
    """What a service has added up of an output has texts that no operator keeps."""
    with (
        sweeping() as sweeps,
        ps.serve(
            lambda scope, t: t.filter(col("k") < 9),
            1,
            threads=True,
            collections={"t": "k long, t string"},
        ) as service,
    ):
        n_before, output = sweeps.stats().sweeps, service.output("result")
        for turn in range(4):
            service.input("t").insert(rows_of(turn))
            epoch = service.advance()
            output.probe.wait(epoch)
            output.discard(epoch)
        assert sweeps.stats().sweeps > n_before, sweeps.stats().refused
        assert output.snapshot(epoch)[:] == sorted(row for n in range(4) for row in rows_of(n))
