"""Operators that keep state, begun again from a snapshot on any number of workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.containers import Arrays, kind_of
from tests.checkpoint.restarts import (
    Build,
    Epochs,
    Run,
    check_restart,
    in_processes,
    in_threads,
    ran,
    simulated,
)

N_EPOCHS = 9
CUT = 4

Records = list[tuple[int, int]]
Make = Callable[[Records], Any]


def as_rows(records: Records) -> Any:
    return records


def as_columns(records: Records) -> Any:
    keys, values = ([r[i] for r in records] for i in (0, 1))
    return pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64()), "v": values})


def as_texts(records: Records) -> Any:
    keys = [f"key {key}" for key, _ in records]
    return pa.RecordBatch.from_pydict({"k": keys, "v": [value for _, value in records]})


def as_arrays(records: Records) -> Any:
    keys, values = (np.array([r[i] for r in records], np.int64) for i in (0, 1))
    return Arrays(k=keys, v=values)


CONTAINERS = [pytest.param(make, id=make.__name__) for make in (as_rows, as_columns, as_arrays)]


def key_of(make: Make) -> Any:
    return (lambda record: record[0]) if make is as_rows else "k"


def epochs_of(make: Make) -> Epochs:
    """Each key at most once an epoch, so that no answer depends on an order."""
    return [
        {
            "a": make([(key, epoch + key) for key in range(epoch % 3, 12, 2)]),
            "b": make([(key, 100 * epoch + key) for key in range(epoch % 4, 12, 3)]),
        }
        for epoch in range(N_EPOCHS)
    ]


# Programs. Each keeps something from one epoch to the next.


def sums_of_rows(scope: Any, streams: Any) -> Any:
    def add(key: Any, value: int, state: int) -> Any:
        return state + value, [(key, state + value)]

    return streams["a"].state_machine(add, default=0)


def sums_of_columns(scope: Any, streams: Any) -> Any:
    def add(key: Any, records: Any, state: int) -> Any:
        total = state + sum(value for _, value in kind_of(records).records(records))
        # A key that has come three times is forgotten, and begins anew.
        return None if total > 20 else total, Arrays(k=[hash(key) % 97], total=[total])

    return streams["a"].state_machine(add, "k", default=0)


def totals_so_far(scope: Any, streams: Any) -> Any:
    aggregates = [("v", "sum"), ("v", "mean"), ("v", "max")]
    return streams["a"].running_aggregate(aggregates, "k")


def joined(make: Make) -> Build:
    return lambda scope, streams: streams["a"].join(streams["b"], key_of(make), retain=True)


def tumbling(make: Make) -> Build:
    windows = ps.Tumbling(3, offset=1)
    key = key_of(make)
    return lambda scope, streams: _flat(streams["a"].window(windows, key=key, lateness=1)[0])


def sliding_of_all(make: Make) -> Build:
    return lambda scope, streams: _flat(streams["a"].window(ps.Sliding(4, 2))[0])


def sessions(make: Make) -> Build:
    key = key_of(make)
    return lambda scope, streams: _flat(streams["a"].window(ps.Sessions(3), key=key)[0])


def counted(make: Make) -> Build:
    key = key_of(make)
    return lambda scope, streams: streams["a"].count_window(ps.Tumbling(4), key=key, lateness=2)[0]


def counted_sessions(make: Make) -> Build:
    key = key_of(make)
    return lambda scope, streams: streams["a"].count_window(ps.Sessions(3), key=key)[0]


def folded(scope: Any, streams: Any) -> Any:
    def add(key: Any, record: Any, values: Any) -> Any:
        return (*values, record[1])

    windows = ps.Sliding(4, 2)
    return streams["a"].fold_window(add, windows, key=lambda r: r[0], default=())[0]


def joined_windows(make: Make) -> Build:
    key = key_of(make)
    return lambda scope, streams: streams["a"].join_window(
        streams["b"], ps.Tumbling(3), key=key, how="left"
    )[0]


def by_records(scope: Any, streams: Any) -> Any:
    """Windows of a clock that records advance; what is late depends on all epochs before."""
    done, late = streams["a"].window(
        ps.Tumbling(3), lambda r: r[1], lambda r: r[0], lateness=6, clock=ps.EventClock()
    )
    # Those that are open when the input ends are released at a time that is not determined.
    sure = done.filter(lambda w: w.end + 6 <= N_EPOCHS + 9)
    return _flat(sure).map(lambda r: ("done", r)).concat(late.map(lambda r: ("late", r)))


def joined_outer(scope: Any, streams: Any) -> Any:
    return streams["a"].join(streams["b"], "k", how="full")


def _flat(windows: Any) -> Any:
    """Of rows, whose records are in no order, the records."""

    def flat(batch: Any) -> Any:
        if type(batch) is not list:
            return batch
        return [(w.key, w.start, w.end, record) for w in batch for record in w.records]

    return windows.map_batches(flat)


def delayed(make: Make) -> Build:
    def later(scope: Any, streams: Any) -> Any:
        if make is as_rows:
            return streams["a"].delay(lambda record, time: time + record[0] % 4)
        return streams["a"].delay_batch(lambda time: time + time % 4)

    return later


def in_turn(apply: Callable[[dict[Any, Any], Any, list[Any]], list[Any]], route: Any = None) -> Any:
    """The build of an operator of the user's: `apply(table, time, records)`, time by time."""

    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        table = info.state("table", route=route)
        held: dict[Any, list[Any]] = {}

        def logic(input: Any, output: Any, notificator: Any) -> None:
            for time, batch in input:
                held.setdefault(time.time, []).extend(batch)
                notificator.notify_at(time.retain())
            for cap in notificator:
                with cap, output.session(cap) as session:
                    session.give_many(apply(table, cap.time, held.pop(cap.time)))

        return logic

    return build


def running_counts(scope: Any, streams: Any) -> Any:
    def count(counts: dict[Any, Any], time: Any, records: list[Any]) -> list[Any]:
        for key, _ in records:
            counts[key] = counts.get(key, 0) + 1
        return [(key, counts[key]) for key, _ in records]

    return streams["a"].unary_notify(ps.Exchange(lambda r: r[0]), "Count", in_turn(count))


def counts_of_columns(scope: Any, streams: Any) -> Any:
    """Running counts in arrays."""

    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        counts = info.state_columns({"k": "int64", "n": "int64"})
        held: dict[Any, list[Any]] = {}

        def logic(input: Any, output: Any, notificator: Any) -> None:
            for time, batch in input:
                held.setdefault(time.time, []).append(batch["k"])
                notificator.notify_at(time.retain())
            for cap in notificator:
                with cap, output.session(cap) as session:
                    keys = np.concatenate(held.pop(cap.time))
                    rows = counts.rows(keys)
                    np.add.at(counts["n"], rows, 1)
                    counts.touch(rows)
                    session.give_batch(Arrays(k=keys, n=counts["n"][rows]))

        return logic

    return streams["a"].unary_notify(ps.Exchange("k"), "Count", build)


def distinct(scope: Any, streams: Any) -> Any:
    def new(seen: dict[Any, Any], time: Any, records: list[Any]) -> list[Any]:
        found = set(records).difference(seen)
        seen.update(dict.fromkeys(found, True))
        return list(found)

    keys = streams["a"].concat(streams["b"]).map(lambda r: r[0] + r[1] % 3)
    return keys.unary_notify(ps.Exchange(), "Distinct", in_turn(new))


def union_find(scope: Any, streams: Any) -> Any:
    """Components with edges that come: who is whose root, at one worker, when an epoch ends."""

    def connect(parents: dict[Any, Any], time: Any, edges: list[Any]) -> list[Any]:
        def root(vertex: int) -> int:
            while parents.setdefault(vertex, vertex) != vertex:
                vertex = parents[vertex]
            return vertex

        for edge in edges:
            low, high = sorted(map(root, edge))
            parents[high] = low
        return [(vertex, root(vertex)) for vertex in list(parents)]

    edges = streams["a"].map(lambda r: (r[0], r[0] + r[1] % 5))
    build = in_turn(connect, route=lambda vertex: 0)
    return edges.unary_notify(ps.Exchange(lambda edge: 0), "Components", build)


def in_a_loop(scope: Any, streams: Any) -> Any:
    """Keys that count down from epoch to epoch anew: how often each came at each round."""

    def count(passed: dict[Any, Any], time: Any, records: list[Any]) -> list[Any]:
        for _, key, _ in records:
            passed[key, time[1]] = passed.get((key, time[1]), 0) + 1
        told = [("told", key, (time[1], passed[key, time[1]])) for _, key, _ in records]
        return told + [("on", key, value - 1) for _, key, value in records if value]

    with scope.iterative() as inner:
        loop, again = inner.feedback(1)
        numbers = streams["a"].map(lambda r: ("on", r[0], r[0] % 4)).enter(inner)
        build = in_turn(count, route=lambda key: key[0])
        by_key = ps.Exchange(lambda r: r[1])
        answers = numbers.concat(again).unary_notify(by_key, "Pass", build)
        on, told = answers.branch(lambda r: r[0] == "told")
        loop.connect(on)
        return told.leave()


PROGRAMS: list[Any] = [
    pytest.param(sums_of_rows, as_rows, id="state machine of rows"),
    pytest.param(sums_of_columns, as_columns, id="state machine of columns"),
    pytest.param(sums_of_columns, as_texts, id="state machine of texts"),
    *(
        pytest.param(totals_so_far, make, id=f"running aggregates {make.__name__}")
        for make in (as_columns, as_texts, as_arrays)
    ),
    pytest.param(running_counts, as_rows, id="counts"),
    pytest.param(counts_of_columns, as_arrays, id="counts of columns"),
    pytest.param(distinct, as_rows, id="distinct"),
    pytest.param(union_find, as_rows, id="components"),
    pytest.param(in_a_loop, as_rows, id="in a loop"),
    pytest.param(sliding_of_all(as_rows), as_rows, id="windows of all rows"),
    pytest.param(sliding_of_all(as_columns), as_columns, id="windows of all columns"),
    pytest.param(folded, as_rows, id="folds of windows"),
    pytest.param(joined_windows(as_rows), as_rows, id="joins of windows"),
    pytest.param(by_records, as_rows, id="windows of a clock by records"),
    pytest.param(joined_outer, as_columns, id="outer joins"),
    *(
        pytest.param(program(make), make, id=f"{program.__name__} {make.__name__}")
        for program in (counted, counted_sessions)
        for make in (as_rows, as_columns)
    ),
    *(
        pytest.param(program(make), make, id=f"{program.__name__} {make.__name__}")
        for program in (joined, tumbling, sessions, delayed)
        for make in (as_rows, as_columns, as_arrays)
    ),
]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(("build", "make"), PROGRAMS)
def test_a_restart_gives_what_was_still_to_come(
    build: Build, make: Make, workers: int, tmp_path: Path
) -> None:
    ran = check_restart(
        build,
        epochs_of(make),
        Checkpoint(tmp_path),
        first=in_threads(3 - workers % 2),
        then=in_threads(workers),
        cut=CUT,
        earlier=frozenset({1, 2}),
    )
    assert ran.manifest is not None
    assert ran.manifest.structure


FALLING = [{"a": [(0, last), (1, 1)], "b": [(0, 0)]} for last in (0, 50, 0, 0, 0, 0)]
"""The first worker has the largest event time, once, and all that comes after it is late."""


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    ("build", "epochs"),
    [
        pytest.param(delayed(as_rows), epochs_of(as_rows), id="delayed"),
        pytest.param(by_records, FALLING, id="windows of a clock by records"),
    ],
)
def test_two_restarts_give_what_was_still_to_come(
    build: Build, epochs: Epochs, workers: int, tmp_path: Path
) -> None:
    """What a worker keeps without a key goes back to another one, and to that alone."""
    checkpoint, runner = Checkpoint(tmp_path), in_threads(workers)
    expected = ran(Run(build, epochs), runner)
    manifest = None
    for cut in (0, 1, 2):
        run = Run(build, epochs, Durable(checkpoint, manifest), frozenset({cut}))
        manifest = ran(run, runner, checkpoint).manifest
    again = ran(Run(build, epochs, Durable(checkpoint, manifest)), runner)
    assert again.records == {t: r for t, r in expected.records.items() if t > 2}


def test_keys_of_records_that_are_not_exchanged_are_not_kept_twice(tmp_path: Path) -> None:
    def main(worker: ps.Worker, durable: Durable, epoch: int) -> tuple[list[int], Any]:
        def build(capability: Any, info: Any) -> Any:
            held = info.state("held")
            begun.extend(held)

            def logic(input_: Any, output: Any) -> None:
                for _, batch in input_:
                    held.update({record: 0 for record in batch if record >= 0})
                    for record in [n for n in held if -1 in batch and n % 100 < 10]:
                        del held[record]

            return logic

        begun: list[int] = []
        with worker.dataflow("program", durable=durable) as scope:
            input, stream = scope.new_input()
            stream.unary(ps.Pipeline(), "Held", build)
        snapshot = worker.snapshot(epoch, background=False)
        input.advance_to(epoch)
        own = range(100 * worker.index, 100 * worker.index + 100)
        input.send_batch(list(own) if epoch == 0 else [-1])
        input.close()
        worker.run()
        return begun, snapshot.part

    checkpoint, manifest = Checkpoint(tmp_path), None
    found = []
    for epoch in range(3):
        ends = ps.execute(main, Durable(checkpoint, manifest), epoch, workers=2, threads=True)
        found.append(sorted(key for begun, _ in ends for key in begun))
        manifest = checkpoint.commit_manifest(epoch, [part for _, part in ends], {})
    # What came to one worker is the other's after the restart, which lets go of it then.
    assert found == [[], list(range(200)), [n for n in range(200) if n % 100 >= 10]]


@pytest.mark.parametrize(("build", "make"), PROGRAMS)
@pytest.mark.parametrize("seed", [1])
def test_epochs_may_overtake_each_other_before_the_cut(
    build: Build, make: Make, seed: int, tmp_path: Path
) -> None:
    """Workers and links of very different speed, and all epochs under way at once."""
    check_restart(
        build,
        epochs_of(make),
        Checkpoint(tmp_path),
        first=simulated(3, seed),
        then=simulated(2, seed + 10),
        cut=CUT,
        ahead=N_EPOCHS,
        earlier=frozenset({0, 3}),
    )


@pytest.mark.parametrize("program", [joined, tumbling])
@pytest.mark.parametrize("seed", range(3))
def test_an_input_may_be_far_ahead_of_another(
    program: Callable[[Make], Build], seed: int, tmp_path: Path
) -> None:
    """What it has sent of later epochs waits until the other has come to the cut."""

    def build(scope: Any, streams: Any) -> Any:
        made = program(as_rows)(scope, streams).map(lambda r: ("made", r))
        return made.concat(streams["b"].map(lambda r: ("b", r)))

    check_restart(
        build,
        epochs_of(as_rows),
        Checkpoint(tmp_path),
        first=simulated(2, seed),
        then=simulated(3, seed),
        cut=CUT,
        lag=6,
        earlier=frozenset({1}),
    )


def test_workers_may_be_processes_and_keep_a_log(tmp_path: Path) -> None:
    check_restart(
        joined(as_rows),
        epochs_of(as_rows),
        Checkpoint(tmp_path / "checkpoint"),
        first=in_processes(2, ps.Log(tmp_path / "log")),
        then=in_processes(2),
        cut=CUT,
    )
