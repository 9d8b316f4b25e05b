"""What type each operator gives, as mypy and pyright see it: `make check` reads this.

Nothing here runs. Where a line has a `type: ignore`, the checker must complain: an
ignore that is not needed is an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any, TypeAlias, assert_type

import pyarrow as pa
import pyarrow.compute as pc

import pointstamp as ps

TextsOrFailed: TypeAlias = tuple[ps.Stream[str], ps.Stream[ps.Failed[str]]]


def parsed(text: str) -> int:
    return int(text)


def words(text: str) -> list[str]:
    return text.split()


def letters(text: str) -> Iterator[str]:
    yield from text


async def loaded(text: str) -> bytes:
    return text.encode()


async def loaded_words(text: str) -> list[bytes]:
    return [text.encode()]


async def loaded_parts(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


async def ticks(input: ps.AsyncInput) -> AsyncIterator[float]:
    input.advance_to(1)
    yield 1.0


def untyped(x):  # type: ignore[no-untyped-def]
    return x


def total(key: int, value: int, so_far: float) -> float:
    return so_far + value


def total_turn(key: int, value: int, state: float) -> tuple[float, list[float]]:
    return state + value, [state]


def turn(key: int, text: str, n: int) -> tuple[int, list[bytes]]:
    return n + 1, [text.encode()]


def shown(key: int, n: int) -> str:
    return f"{key} {n}"


def lengths(texts: ps.Stream[str], factor: int) -> ps.Stream[int]:
    return texts.map(lambda text: factor * len(text))


def longest(one: str, other: str) -> str:
    return max(one, other, key=len)


def longer(key: int, text: str, n: int) -> int:
    return key + n + len(text)


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def counts(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
    def logic(output: ps.Output) -> bool:
        return False

    return logic


def sources(scope: ps.Scope) -> None:
    assert_type(scope.to_stream(["a"]), ps.Stream[str])
    assert_type(scope.to_stream(range(3)), ps.Stream[int])
    assert_type(scope.to_stream("abc"), ps.Stream[str])
    assert_type(scope.batches_to_stream([[1, 2]]), ps.Stream[Any])
    assert_type(scope.new_input()[1], ps.Stream[Any])
    assert_type(scope.new_collection("a long"), tuple[Any, Any])
    assert_type(scope.new_collection(), tuple[Any, Any])
    assert_type(scope.new_clock(), tuple[Any, Any])
    assert_type(scope.from_upserts(scope.new_input()[1], "a long", "a"), Any)
    assert_type(scope.from_debezium(scope.new_input()[1], "a long", "a"), Any)
    assert_type(scope.from_cdf(scope.new_input()[1], "a long"), Any)
    assert_type(scope.variable("a long"), Any)
    assert_type(scope.async_source(ticks), ps.Stream[float])
    texts: ps.Stream[str] = scope.new_input()[1]
    assert_type(texts, ps.Stream[str])
    assert_type(scope.source(ticks), ps.Stream[float])
    assert_type(scope.source(counts), ps.Stream[Any])
    assert_type(scope.source(ps.FileSource("folder"), epoch_s=2.0), ps.Stream[Any])
    assert_type(scope.source(ps.KafkaSource("a:1", "orders")), ps.Stream[Any])
    assert_type(scope.source(ps.SqlSource("sqlite:///a.db", "t", key="n")), ps.Stream[Any])
    assert_type(scope.empty(), ps.Stream[Any])
    assert_type(scope.log_stream("parks"), ps.Stream[Any])
    (handle, capability), _ = scope.unordered_input()
    assert_type(capability, ps.Capability)
    handle.send(capability, "a")
    probe = ps.Probe()
    assert_type(scope.flow_controlled([(0, ["a"])], probe, ahead=2), ps.Stream[Any])
    assert_type(scope.iterator_source(lambda time: None, probe), ps.Stream[Any])


def record_by_record(texts: ps.Stream[str]) -> None:
    assert_type(texts.map(parsed), ps.Stream[int])
    assert_type(texts.map(lambda text: len(text)), ps.Stream[int])
    assert_type(texts.map(lambda text: text.upper(), on_error="drop"), ps.Stream[str])
    assert_type(texts.map(untyped), ps.Stream[Any])
    assert_type(texts.map(int), ps.Stream[int])
    assert_type(texts.flat_map(words), ps.Stream[str])
    assert_type(texts.flat_map(letters), ps.Stream[str])
    assert_type(texts.flat_map(str.split), ps.Stream[str])
    assert_type(texts.flat_map(lambda text: [len(text)]), ps.Stream[int])
    assert_type(texts.filter(lambda text: text.isdigit()), ps.Stream[str])
    assert_type(texts.filter(pc.field("x") > 1), ps.Stream[str])
    assert_type(texts.filter("is_wanted"), ps.Stream[str])
    assert_type(texts.inspect(print), ps.Stream[str])
    assert_type(texts.inspect(lambda text: text.upper()), ps.Stream[str])
    assert_type(texts.inspect_time(print), ps.Stream[str])
    assert_type(texts.inspect_frontier(print), ps.Stream[str])
    assert_type(texts.distinct(), ps.Stream[str])
    assert_type(texts.pipe(lengths, 2), ps.Stream[int])
    assert_type(texts.count(), ps.Stream[int])


def batch_by_batch(texts: ps.Stream[str]) -> None:
    assert_type(texts.map_batches(doubled), ps.Stream[Any])
    assert_type(texts.as_collection("a string"), Any)
    assert_type(texts.map_batches(sorted), ps.Stream[Any])
    assert_type(texts.inspect_batch(lambda time, batch: print(time, batch)), ps.Stream[str])


def awaited(texts: ps.Stream[str]) -> None:
    assert_type(texts.map(loaded), ps.Stream[bytes])
    assert_type(texts.map(loaded, concurrency=8), ps.Stream[bytes])
    assert_type(texts.map(lambda text: loaded(text), concurrency=8), ps.Stream[bytes])
    assert_type(texts.flat_map(loaded_words), ps.Stream[bytes])
    assert_type(texts.flat_map(loaded_parts, concurrency=8), ps.Stream[bytes])
    assert_type(
        texts.map(loaded, on_error="route"), tuple[ps.Stream[bytes], ps.Stream[ps.Failed[str]]]
    )
    assert_type(
        texts.flat_map(loaded_words, on_error="route"),
        tuple[ps.Stream[bytes], ps.Stream[ps.Failed[str]]],
    )
    assert_type(
        texts.flat_map(loaded_parts, on_error="route"),
        tuple[ps.Stream[bytes], ps.Stream[ps.Failed[str]]],
    )


def errors_as_data(texts: ps.Stream[str]) -> None:
    numbers, failed = texts.map(parsed, on_error="route")
    assert_type(numbers, ps.Stream[int])
    assert_type(failed, ps.Stream[ps.Failed[str]])
    assert_type(failed.map(lambda f: f.record), ps.Stream[str])
    assert_type(failed.map(lambda f: f.operator), ps.Stream[str])
    assert_type(failed.map(lambda f: f.error), ps.Stream[Exception])
    assert_type(texts.flat_map(words, on_error="route"), TextsOrFailed)
    assert_type(texts.filter(lambda text: text.isdigit(), on_error="route"), TextsOrFailed)
    assert_type(texts.filter(lambda text: text.isdigit(), on_error="drop"), ps.Stream[str])
    assert_type(
        texts.map_batches(doubled, on_error="route"),
        tuple[ps.Stream[Any], ps.Stream[ps.Failed[Any]]],
    )


def errors_in_state(texts: ps.Stream[str]) -> None:
    anything = texts.aggregate(lambda key, text, n: n + 1, key=len, on_error="route")
    assert_type(anything, tuple[ps.Stream[Any], ps.Stream[ps.Failed[Any]]])
    machine = texts.state_machine(lambda key, text, n: (n, [n]), key=len, on_error="drop")
    assert_type(machine, ps.Stream[Any])
    numbers, _ = texts.accumulate(0, lambda n, batch: n + len(batch), on_error="route")
    assert_type(numbers, ps.Stream[int])
    joined = texts.join(texts, len, on_error="route")
    assert_type(joined, tuple[ps.Stream[Any], ps.Stream[ps.Failed[Any]]])
    _, late, untimed = texts.window(ps.Tumbling(10), time=len, on_error="route")
    assert_type(late, ps.Stream[str])
    assert_type(untimed, ps.Stream[ps.Failed[str]])


def to_other_workers(texts: ps.Stream[str]) -> None:
    assert_type(texts.exchange(), ps.Stream[str])
    assert_type(texts.exchange(lambda text: text[0]), ps.Stream[str])
    assert_type(texts.exchange("column"), ps.Stream[str])
    assert_type(texts.exchange(["a", "b"]), ps.Stream[str])
    assert_type(texts.broadcast(), ps.Stream[str])
    assert_type(texts.distribute(lambda time, batch: 0), ps.Stream[str])


def streams_from_streams(scope: ps.Scope, texts: ps.Stream[str]) -> None:
    assert_type(texts.concat(texts, texts), ps.Stream[str])
    assert_type(scope.concatenate([texts, texts]), ps.Stream[str])
    assert_type(texts.branch(lambda text: text > "m"), tuple[ps.Stream[str], ps.Stream[str]])
    assert_type(texts.branch(pc.field("x") > 1), tuple[ps.Stream[str], ps.Stream[str]])
    with scope.iterative() as inner:
        assert_type(inner, ps.Scope)
        assert_type(texts.enter(inner), ps.Stream[str])
        assert_type(inner.enter(texts).leave(), ps.Stream[str])
        loop, again = inner.feedback(1)
        loop.connect(again)
        assert_type(inner.leave(texts.enter(inner)), ps.Stream[str])


def to_later_times(texts: ps.Stream[str]) -> None:
    assert_type(texts.delay(lambda text, time: time + len(text)), ps.Stream[str])
    assert_type(texts.delay_total("moment"), ps.Stream[str])
    assert_type(texts.delay_batch(lambda time: time + 1), ps.Stream[str])
    assert_type(texts.reclock(texts.map(parsed)), ps.Stream[str])


def routed(texts: ps.Stream[str]) -> None:
    assert_type(texts.partition(2, len), list[ps.Stream[str]])
    halves = texts.branch_when(lambda time: time > 3)
    assert_type(halves, tuple[ps.Stream[str], ps.Stream[str]])
    fine, bad = texts.ok_err(lambda text: ps.Ok(text) if text else ps.Err(0))
    assert_type(fine.concat(bad), ps.Stream[Any])


def grouped(texts: ps.Stream[str]) -> None:
    assert_type(texts.accumulate(0, lambda n, batch: n + len(batch)), ps.Stream[int])
    counts = texts.aggregate(longer, key=len, default=0)
    assert_type(counts, ps.Stream[tuple[int, int]])
    assert_type(counts.aggregate(total, default=0.5), ps.Stream[tuple[int, float]])
    assert_type(texts.aggregate(longer, shown, len, 0), ps.Stream[str])
    assert_type(texts.aggregate([("spent", "sum")], key="user"), ps.Stream[Any])
    assert_type(texts.running_aggregate([("spent", "sum")], "user"), ps.Stream[str])
    assert_type(texts.state_machine(turn, key=len, default=0), ps.Stream[bytes])
    assert_type(texts.state_machine(turn, "user"), ps.Stream[Any])
    assert_type(counts.state_machine(total_turn, default=0.5), ps.Stream[float])


def reduced(texts: ps.Stream[str]) -> None:
    pairs = texts.map(lambda text: (text, len(text)))
    assert_type(pairs.reduce(max), ps.Stream[tuple[str, int]])
    assert_type(texts.reduce(longest, key=len), ps.Stream[tuple[int, str]])
    assert_type(texts.reduce("sum", key="user"), ps.Stream[str])
    assert_type(texts.top_k(3, by=len, key=len), ps.Stream[str])
    assert_type(texts.batch(10, timeout=timedelta(seconds=1)), ps.Stream[list[str]])
    assert_type(texts.map(words).flatten(), ps.Stream[str])
    assert_type(texts.flatten("items"), ps.Stream[Any])


def loops(texts: ps.Stream[str]) -> None:
    assert_type(texts.iterate(lambda again: again.map(str.lower), limit=3), ps.Stream[str])


def through_programs(texts: ps.Stream[str]) -> None:
    assert_type(texts.command(["grep", "x"], ok=(0, 1)), ps.Stream[Any])
    assert_type(texts.spark(lambda frame: frame), ps.Stream[Any])
    texts.sink(ps.Pipeline(), "Sink", lambda input: None)
    texts.sink(ps.FileSink("folder"))


def watching(worker: ps.Worker, texts: ps.Stream[str]) -> None:
    assert_type(texts.probe(), ps.Probe)
    assert_type(texts.probe_with(ps.Probe()), ps.Stream[str])
    assert_type(worker.dropped, dict[str, int])


def counting(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
    def logic(input: ps.Input, output: ps.Output) -> None:
        for time, batch in input:
            with time.retain() as kept, output.session(kept) as session:
                session.give(len(batch))

    return logic


def unary_logic(input: ps.Input, output: ps.Output) -> None: ...
def binary_logic(left: ps.Input, right: ps.Input, output: ps.Output) -> None: ...
def notify_logic(input: ps.Input, output: ps.Output, notificator: ps.Notificator) -> None: ...


def own_code(texts: ps.Stream[str]) -> None:
    here = ps.Pipeline()
    assert_type(texts.unary(here, "A", counting), ps.Stream[Any])
    assert_type(texts.unary(here, "A", lambda capability, info: unary_logic), ps.Stream[Any])
    assert_type(texts.unary_frontier(here, "A", counting), ps.Stream[Any])
    texts.unary(here, "A", lambda capability, info: binary_logic)  # type: ignore[arg-type, return-value]
    texts.unary_notify(here, "A", lambda capability, info: notify_logic, initial=[0])
    texts.binary(texts, here, ps.Exchange("a"), "A", lambda capability, info: binary_logic)
    texts.binary_frontier(texts, here, ps.Broadcast(), "A", lambda capability, info: binary_logic)

    def notify(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
        def logic(
            left: ps.Input, right: ps.Input, output: ps.Output, notificator: ps.Notificator
        ) -> None: ...

        return logic

    assert_type(texts.binary_notify(texts, here, here, "A", notify), ps.Stream[Any])


def captured(scope: ps.Scope, texts: ps.Stream[str]) -> None:
    assert_type(texts.capture(), ps.Events)
    assert_type(texts.capture("folder"), str)
    assert_type(scope.replay("folder", partial=True), ps.Stream[Any])
    assert_type(scope.replay([ps.Events()]), ps.Stream[Any])


def of_event_time(texts: ps.Stream[str]) -> None:
    done, late = texts.window(ps.Tumbling(10), time=len, key=words, lateness=1)
    assert_type(done, ps.Stream[ps.Window[list[str], str]])
    assert_type(late, ps.Stream[str])
    counts, _ = texts.count_window(ps.Sessions(timedelta(1)), "when", parsed)
    assert_type(counts, ps.Stream[ps.WindowResult[int, int]])
    folded, _ = texts.fold_window(longer, ps.Tumbling(10), len, parsed, default=0)
    assert_type(folded, ps.Stream[ps.WindowResult[int, int]])
    by_name, _ = texts.fold_window([("spent", "sum")], ps.Tumbling(10), "when", "user")
    assert_type(by_name, ps.Stream[Any])
    reduced, _, failed = texts.reduce_window(max, ps.Tumbling(10), len, on_error="route")
    assert_type(reduced, ps.Stream[ps.WindowResult[Any, str]])
    assert_type(failed, ps.Stream[ps.Failed[str]])
    numbers = texts.map(parsed)
    _, late, late_numbers = texts.join_window(numbers, ps.Tumbling(10), len, how="left")
    assert_type(late_numbers, ps.Stream[int])
    assert_type(late, ps.Stream[str])


def joined(texts: ps.Stream[str]) -> None:
    numbers = texts.map(parsed)
    assert_type(texts.join(numbers, words, str, retain=True), ps.Stream[tuple[str, int]])
    assert_type(texts.join(numbers), ps.Stream[tuple[str, int]])
    assert_type(texts.join(numbers, "key"), ps.Stream[Any])
    assert_type(texts.join(numbers, ["key", "day"], how="full"), ps.Stream[Any])
    assert_type(texts.join(numbers, len, how="left"), ps.Stream[tuple[str, int | None]])
    assert_type(texts.join(numbers, len, how="right"), ps.Stream[tuple[str | None, int]])
    assert_type(texts.join(numbers, how="full"), ps.Stream[tuple[str | None, int | None]])
    assert_type(texts.join(numbers, len, how="semi"), ps.Stream[str])
    assert_type(texts.join(numbers, "key", how="anti"), ps.Stream[str])


def wrong(texts: ps.Stream[str]) -> None:
    numbers = texts.map(parsed)
    numbers.map(parsed)  # type: ignore[arg-type]
    numbers.concat(texts)  # type: ignore[arg-type]
    texts.map(parsed, on_error="ignore")  # type: ignore[call-overload]
    texts.join(numbers, how="outer")  # type: ignore[call-overload]
    texts.filter(1)  # type: ignore[call-overload]
    texts.inspect(print, concurrency=2)  # type: ignore[call-arg]
    texts.exchange(len, on_error="drop")  # type: ignore[call-arg]


def executing() -> None:
    def main(worker: ps.Worker, upto: int) -> list[int]:
        with worker.dataflow("name") as scope:
            assert_type(scope, ps.Scope)
            assert_type(scope.drawing(), Any)
        return [worker.index]

    assert_type(ps.execute(main, 10, workers=2), ps.RunResults[list[int]])
    assert_type(ps.simulate(main, 10, workers=2, seed=1), list[list[int]])
    found = ps.testing.collect(lambda scope: scope.to_stream("ab"))
    assert_type(found, list[tuple[Any, Any]])
