"""Every operator, over rows and columns, and over 1, 2 and 4 workers."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import WorkerError
from pointstamp.testing import collect

NUMBERS = list(range(20))


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def rows(scope: Any) -> Any:
    """0 to 19 as rows, spread over the workers."""
    return scope.to_stream(NUMBERS[scope.index :: scope.peers])


def columns(scope: Any) -> Any:
    """0 to 19 as a column `x`, in batches of 3."""
    mine = NUMBERS[scope.index :: scope.peers]
    batch = pa.RecordBatch.from_pydict({"x": pa.array(mine, pa.int64())})
    return scope.batches_to_stream(batch.slice(i, 3) for i in range(0, len(mine), 3))


def arrays(scope: Any) -> Any:
    """The same as NumPy columns."""
    import numpy as np

    mine = np.array(NUMBERS[scope.index :: scope.peers], dtype=np.int64)
    return scope.batches_to_stream([Arrays(x=mine)])


def values(found: list[tuple[Any, Any]]) -> list[Any]:
    """The records, whatever they were carried in."""
    return sorted(record[0] if isinstance(record, tuple) else record for _, record in found)


CONTAINERS = [pytest.param(make, id=make.__name__) for make in (rows, columns, arrays)]


@pytest.mark.parametrize("make", CONTAINERS)
def test_a_stream_carries_every_container(make: Callable[..., Any], workers: int) -> None:
    assert values(collect(make, workers)) == NUMBERS


@pytest.mark.parametrize("make", CONTAINERS)
def test_exchange_brings_every_record_to_the_worker_of_its_key(
    make: Callable[..., Any], workers: int
) -> None:
    places: dict[Any, set[int]] = collections.defaultdict(set)

    def build(scope: Any) -> Any:
        key = "x" if make is not rows else None

        def note(time: Any, batch: Any) -> None:
            for value in values([(0, r) for r in ps.containers.kind_of(batch).records(batch)]):
                places[value].add(scope.index)

        return make(scope).exchange(key).inspect_batch(note)

    assert values(collect(build, workers)) == NUMBERS
    assert all(len(where) == 1 for where in places.values())
    assert len(set.union(*places.values())) == workers  # 20 keys reach 4 workers


def test_rows_and_columns_of_equal_keys_meet() -> None:
    """The hash does not depend on the container."""
    places: list[dict[int, int]] = []
    for make, key in ((rows, None), (columns, "x"), (arrays, "x")):
        place: dict[int, int] = {}

        def build(scope: Any, make: Any = make, key: Any = key, place: Any = place) -> Any:
            def note(time: Any, batch: Any) -> None:
                for r in ps.containers.kind_of(batch).records(batch):
                    place[r[0] if isinstance(r, tuple) else r] = scope.index

            return make(scope).exchange(key).inspect_batch(note)

        collect(build, 4)
        places.append(place)
    assert places[0] == places[1] == places[2]


@pytest.mark.parametrize("make", CONTAINERS)
def test_broadcast_brings_every_record_to_every_worker(
    make: Callable[..., Any], workers: int
) -> None:
    found = values(collect(lambda scope: make(scope).broadcast(), workers))
    assert found == sorted(NUMBERS * workers)


@pytest.mark.parametrize("make", CONTAINERS)
def test_concat_and_count(make: Callable[..., Any], workers: int) -> None:
    def build(scope: Any) -> Any:
        return make(scope).concat(make(scope), make(scope)).count()

    counts = [count for _, count in collect(build, workers)]
    assert sum(counts) == 60
    assert len(counts) == workers


def test_map_flat_map_filter(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = rows(scope).filter(lambda x: x % 2).map(lambda x: x // 2)
        return stream.flat_map(lambda x: [x, -x])

    expected = sorted([x // 2 for x in NUMBERS if x % 2] + [-(x // 2) for x in NUMBERS if x % 2])
    assert values(collect(build, workers)) == expected


def test_filter_and_branch_by_expression(workers: int) -> None:
    big = pc.field("x") >= 15
    assert values(collect(lambda s: columns(s).filter(big), workers)) == NUMBERS[15:]
    assert values(collect(lambda s: columns(s).branch(big)[0], workers)) == NUMBERS[:15]
    assert values(collect(lambda s: columns(s).branch(big)[1], workers)) == NUMBERS[15:]


def test_branch_gives_false_then_true(workers: int) -> None:
    def build(scope: Any) -> Any:
        small, large = rows(scope).branch(lambda x: x > 9)
        return small.map(lambda x: (x, "small")).concat(large.map(lambda x: (x, "large")))

    found = dict(record for _, record in collect(build, workers))
    assert found == {x: "large" if x > 9 else "small" for x in NUMBERS}


def test_null_is_not_true_in_filter_and_branch() -> None:
    batch = pa.RecordBatch.from_pydict({"x": pa.array([1, None, 3], pa.int64())})
    big = pc.field("x") > 2

    def build(side: int) -> Callable[[Any], Any]:
        return lambda scope: scope.batches_to_stream([batch]).branch(big)[side]

    assert [record for _, record in collect(build(1))] == [(3,)]
    assert sorted((r[0] is None, r) for _, r in collect(build(0))) == [
        (False, (1,)),
        (True, (None,)),
    ]


def test_map_batches_may_give_nothing() -> None:
    def build(scope: Any) -> Any:
        batches = [[1, 2], [3]]
        return scope.batches_to_stream(batches).map_batches(lambda b: b if sum(b) > 100 else None)

    assert collect(build) == []


@pytest.mark.parametrize("options", [{}, {"on_error": "drop"}])
@pytest.mark.parametrize(
    "change",
    [
        lambda batch: pa.concat_tables([pa.Table.from_batches([batch])] * 2),
        lambda batch: pd.concat([batch.to_pandas()] * 2),
    ],
)
def test_map_batches_may_give_a_table_or_a_data_frame(
    change: Callable[[Any], Any], options: dict[str, Any]
) -> None:
    batch = pa.record_batch({"n": [1, 2]})
    for n, expected in ((2, [1, 1, 2, 2]), (0, [])):
        found = collect(
            lambda scope, n=n: scope.batches_to_stream([batch]).map_batches(
                lambda batch: change(batch.slice(0, n)), **options
            )
        )
        assert sorted(values(found)) == expected


async def nothing_awaited(record: int) -> None:
    pass


@pytest.mark.parametrize("function", [lambda record: None, nothing_awaited])
def test_flat_map_says_what_its_function_gave_in_place_of_records(
    function: Callable[[Any], Any],
) -> None:
    with pytest.raises(WorkerError, match=r"operator 'Pairs'.*is to give an iterable.*None for 7"):
        collect(lambda scope: scope.to_stream([7]).flat_map(function, name="Pairs"))


def test_flat_map_leaves_the_error_of_a_generator_as_it_is() -> None:
    def fails(record: int) -> Any:
        yield record
        raise TypeError("of its own") from ValueError("deeper")

    def failures(scope: Any) -> Any:
        return scope.to_stream([7]).flat_map(fails, on_error="route")[1]

    [(_, failed)] = collect(failures)
    assert (str(failed.error), str(failed.error.__cause__)) == ("of its own", "deeper")


def test_a_state_machine_says_what_its_function_gave_in_place_of_records() -> None:
    def build(scope: Any) -> Any:
        return scope.to_stream([("a", 7)]).state_machine(lambda key, value, state: (state, value))

    with pytest.raises(WorkerError, match="gave 7 to be sent for the key 'a'; give an iterable"):
        collect(build)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda s: s.map(lambda key, value: key), r"\(record\), and .* takes key, value"),
        (lambda s: s.flat_map(lambda: (1,)), r"\(record\), and .* takes nothing"),
        (lambda s: s.filter(lambda key, value: key), r"\(record\), and .* takes key, value"),
        (lambda s: s.inspect(lambda time, record: None), r"\(record\), and .* takes time, record"),
        (
            lambda s: s.map_batches(lambda time, batch: batch),
            r"\(batch\), and .* takes time, batch",
        ),
        (lambda s: s.scope.source(lambda: iter([])), r"\(capability, info\), and .* takes nothing"),
    ],
)
def test_a_function_of_other_parameters_is_refused_when_the_dataflow_is_built(
    act: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(WorkerError, match=f"calls its function with {said}"):
        collect(lambda scope: act(scope.to_stream([("a", 1)])))


def test_a_generator_function_is_no_source() -> None:
    def numbers() -> Any:
        yield 1

    with pytest.raises(WorkerError, match="runs nothing; make it an async def, or give to_stream"):
        collect(lambda scope: scope.source(numbers))


def test_flatten_says_which_record_is_no_collection() -> None:
    with pytest.raises(WorkerError, match=r"a record is to be a collection.*found 7 \(int\)"):
        collect(lambda scope: scope.to_stream([[1], 7]).flatten())


def test_flat_map_takes_arrays_apart() -> None:
    found = collect(lambda scope: scope.to_stream([1, 2]).flat_map(lambda n: np.array([n, 10 * n])))
    assert sorted(values(found)) == [1, 2, 10, 20]


def test_a_large_batch_is_cut_and_all_of_it_arrives() -> None:
    sizes: list[int] = []

    def build(scope: Any) -> Any:
        big = pa.RecordBatch.from_pydict({"x": pa.array(range(200_000), pa.int64())})
        stream = scope.batches_to_stream([big])
        return stream.inspect_batch(lambda time, batch: sizes.append(len(batch))).count()

    assert collect(build) == [(0, 200_000)]
    assert max(sizes) <= 70_000


def test_unary_frontier_answers_once_per_time(workers: int) -> None:
    def word_count(capability: Any, info: Any) -> Any:
        held: dict[Any, list[str]] = {}

        def logic(input: Any, output: Any) -> None:
            for time, batch in input:
                held.setdefault(time.retain(), []).extend(batch)
            for cap in [c for c in held if not input.frontier.less_equal(c.time)]:
                with output.session(cap) as session:
                    for word, n in collections.Counter(held.pop(cap)).items():
                        session.give((word, n))
                cap.drop()

        return logic

    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            counted = stream.unary_frontier(ps.Exchange(lambda w: w), "WordCount", word_count)
            counted.inspect_batch(lambda time, batch: out.extend((time, *x) for x in batch))
        for epoch, line in enumerate(["a b a", "b", "c c c"]):
            for word in line.split():
                input.send(word)
            input.advance_to(epoch + 1)
            worker.step()
        return out

    found = sorted(x for part in ps.execute(main, workers=workers, threads=True) for x in part)
    assert found == [(0, "a", 2 * workers), (0, "b", workers), (1, "b", workers),
                     (2, "c", 3 * workers)]  # fmt: skip


def test_unary_notify_is_told_each_time_once_and_in_order(workers: int) -> None:
    def build(capability: Any, info: Any) -> Any:
        def logic(input: Any, output: Any, notificator: Any) -> None:
            for time, _ in input:
                notificator.notify_at(time.retain())
                notificator.notify_at(time.delayed(time.time + 10))
            for cap in notificator:
                with output.session(cap) as session:
                    session.give(cap.time)

        return logic

    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.unary_notify(ps.Pipeline(), "Notify", build).inspect(out.append)
        for epoch in range(3):
            input.send("x")
            input.send("y")
            input.advance_to(epoch + 1)
        return out

    for out in ps.execute(main, workers=workers, threads=True):
        assert out == [0, 1, 2, 10, 11, 12]


def test_a_notification_asked_for_late_still_comes() -> None:
    """The time is complete when it is asked for, so no frontier will move for it."""

    def build(capability: Any, info: Any) -> Any:
        times: list[Any] = []

        def logic(input: Any, output: Any, notificator: Any) -> None:
            times.extend(notificator)
            if len(times) == 1:
                notificator.notify_at(times[0].delayed(times[0].time))
            elif times:
                with output.session(times[0]) as session:
                    session.give(len(times))
                times.clear()

        return logic

    def main(worker: Any) -> list[int]:
        out: list[int] = []
        with worker.dataflow() as scope:
            stream = scope.to_stream([])
            stream.unary_notify(ps.Pipeline(), "Late", build, initial=[0]).inspect(out.append)
        worker.run()
        return out

    assert ps.execute(main) == [[2]]


def test_binary_frontier_joins_two_streams_per_time(workers: int) -> None:
    def join(capability: Any, info: Any) -> Any:
        held: dict[Any, tuple[list[Any], list[Any]]] = {}

        def logic(left: Any, right: Any, output: Any) -> None:
            for side, input in enumerate((left, right)):
                for time, batch in input:
                    held.setdefault(time.retain(), ([], []))[side].extend(batch)
            done = [
                c
                for c in held
                if not (left.frontier.less_equal(c.time) or right.frontier.less_equal(c.time))
            ]
            for cap in done:
                lefts, rights = held.pop(cap)
                with cap, output.session(cap) as session:
                    session.give_many((a, b) for a in lefts for b in rights if a[0] == b[0])

        return logic

    def build(scope: Any) -> Any:
        mine = NUMBERS[scope.index :: scope.peers]
        squares = scope.to_stream([(x, x * x) for x in mine])
        evens = scope.to_stream([(x, "even") for x in mine if x % 2 == 0])
        key = ps.Exchange(lambda pair: pair[0])
        return squares.binary_frontier(evens, key, key, "Join", join)

    found = [record for _, record in collect(build, workers)]
    assert sorted(found) == [((x, x * x), (x, "even")) for x in NUMBERS if x % 2 == 0]


def test_an_operator_of_any_shape(workers: int) -> None:
    """Two inputs, three outputs: what is on the left only, on both, on the right only."""

    def build(scope: Any) -> Any:
        mine = NUMBERS[scope.index :: scope.peers]
        builder = scope.operator("Compare")
        builder.new_input(scope.to_stream(mine[:]), ps.Exchange())
        builder.new_input(scope.to_stream([x + 5 for x in mine]), ps.Exchange())
        results = [builder.new_output() for _ in range(3)]

        def make_logic(capabilities: Any, info: Any) -> Any:
            sides: tuple[set[int], set[int]] = (set(), set())

            def logic(inputs: Any, outputs: Any) -> None:
                for side, input in zip(sides, inputs, strict=True):
                    for _, batch in input:
                        side.update(batch)
                if capabilities and all(input.frontier.is_empty() for input in inputs):
                    left, right = sides
                    parts = (left - right, left & right, right - left)
                    for cap, output, part in zip(capabilities, outputs, parts, strict=True):
                        with cap, output.session(cap) as session:
                            session.give_many(part)
                    capabilities.clear()

            return logic

        builder.build(make_logic)
        named = [s.map(lambda x, i=i: (i, x)) for i, s in enumerate(results)]
        return scope.concatenate(named)

    found = collections.defaultdict(list)
    for _, (side, x) in collect(build, workers):
        found[side].append(x)
    assert found == {0: list(range(5)), 1: list(range(5, 20)), 2: list(range(20, 25))}
