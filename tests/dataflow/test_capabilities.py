"""What capabilities allow, and what is refused, at the line that asks for it."""

from __future__ import annotations

import gc
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.errors import (
    CapabilityError,
    ColumnError,
    ContainerError,
    InputError,
    KeyHashError,
    SchemaError,
    TimestampError,
    WorkerError,
)
from pointstamp.testing import collect


def cause_of(main: Any, **options: Any) -> tuple[WorkerError, BaseException]:
    with pytest.raises(WorkerError) as caught:
        ps.execute(main, **options)
    assert caught.value.__cause__ is not None
    return caught.value, caught.value.__cause__


def with_logic(logic: Any) -> Any:
    """A program with one operator, called "Under test", that receives one record at 3."""

    def main(worker: Any) -> None:
        def build(capability: Any, info: Any) -> Any:
            state: dict[str, Any] = {"initial": capability}
            return lambda input, output: logic(state, input, output)

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.unary_frontier(ps.Pipeline(), "Under test", build)
        input.advance_to(3)
        input.send("x")
        worker.step()
        input.advance_to(4)
        worker.step()

    return main


def send_after_drop(state: Any, input: Any, output: Any) -> None:
    for time, _ in input:
        cap = time.retain()
        cap.drop()
        output.session(cap)


def send_in_a_session_after_drop(state: Any, input: Any, output: Any) -> None:
    for time, _ in input:
        cap = time.retain()
        with output.session(cap) as session:
            session.give(1)
            cap.drop()
            session.give(2)


def delay_backwards(state: Any, input: Any, output: Any) -> None:
    for time, _ in input:
        time.delayed(2)


def downgrade_backwards(state: Any, input: Any, output: Any) -> None:
    for time, _ in input:
        time.retain().downgrade(1)


def keep_the_time_of_a_batch(state: Any, input: Any, output: Any) -> None:
    if "kept" in state:
        state["kept"].retain()
    for time, _ in input:
        state["kept"] = time


def an_output_that_is_not_there(state: Any, input: Any, output: Any) -> None:
    for time, _ in input:
        time.retain(1)


@pytest.mark.parametrize(
    ("logic", "words"),
    [
        (send_after_drop, "it was dropped"),
        (send_in_a_session_after_drop, "it was dropped"),
        (delay_backwards, "cannot delay its capability from 3 to 2"),
        (downgrade_backwards, "cannot downgrade its capability from 3 to 1"),
        (keep_the_time_of_a_batch, "was consumed when the operator returned"),
        (an_output_that_is_not_there, "it has 1 outputs"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_misuse_of_a_capability_is_named(logic: Any, words: str) -> None:
    error, cause = cause_of(with_logic(logic))
    assert isinstance(cause, CapabilityError)
    assert words in str(cause)
    assert "'Under test'" in str(cause)
    assert error.operator == "Under test"
    assert logic.__name__ in error.original


def test_a_capability_of_another_operator_is_refused() -> None:
    lent: list[Any] = []

    def main(worker: Any) -> None:
        def lend(capability: Any, info: Any) -> Any:
            lent.append(capability)
            return lambda input, output: None

        def borrow(capability: Any, info: Any) -> Any:
            return lambda input, output: output.session(lent[0])

        with worker.dataflow() as scope:
            stream = scope.to_stream([1])
            stream.unary(ps.Pipeline(), "Lender", lend)
            stream.unary(ps.Pipeline(), "Borrower", borrow)
        worker.step()

    _, cause = cause_of(main)
    lent.clear()
    assert isinstance(cause, CapabilityError)
    assert "'Borrower'" in str(cause)
    assert "'Lender'" in str(cause)


def test_a_time_of_the_wrong_type_is_refused() -> None:
    def wrong_delay(state: Any, input: Any, output: Any) -> None:
        for time, _ in input:
            time.delayed("later")

    _, cause = cause_of(with_logic(wrong_delay))
    assert isinstance(cause, TimestampError)
    assert "'later'" in str(cause)


def test_capabilities_are_counted_until_the_last_is_gone() -> None:
    """Dropped by hand, by `with`, by being collected: the time is complete after the last."""

    def main(worker: Any) -> list[Any]:
        kept: dict[str, Any] = {}

        def build(capability: Any, info: Any) -> Any:
            kept["by hand"] = capability
            kept["with"] = capability.delayed(1)
            kept["collected"] = capability.delayed(2)
            return lambda input, output: None

        with worker.dataflow() as scope:
            probe = scope.to_stream([]).unary(ps.Pipeline(), "Keeper", build).probe()
        seen = []

        def settle() -> None:
            for _ in range(5):
                worker.step()
            seen.append(probe.elements)

        settle()
        kept["by hand"].drop()
        settle()
        with kept["with"]:
            pass
        settle()
        del kept["collected"]
        gc.collect()
        settle()
        return seen

    assert ps.execute(main) == [[[0], [1], [2], []]]


def test_a_downgraded_capability_lets_time_pass() -> None:
    def main(worker: Any) -> list[Any]:
        kept: list[Any] = []
        with worker.dataflow() as scope:
            stream = scope.to_stream([])
            probe = stream.unary(
                ps.Pipeline(), "Keeper", lambda cap, info: kept.append(cap) or (lambda i, o: None)
            ).probe()
        worker.step()
        kept[0].downgrade(7)
        worker.step()
        worker.step()
        seen = probe.elements
        kept.clear()
        return list(seen)

    assert ps.execute(main) == [[7]]


def test_equal_capabilities_are_one_key() -> None:
    def main(worker: Any) -> int:
        sizes = []

        def build(capability: Any, info: Any) -> Any:
            held: dict[Any, int] = {}

            def logic(input: Any, output: Any) -> None:
                for time, _ in input:
                    held[time.retain()] = held.get(time.retain(), 0) + 1
                sizes.append(len(held))
                if input.frontier.is_empty():
                    held.clear()

            return logic

        with worker.dataflow() as scope:
            scope.batches_to_stream([[1], [2], [3]]).unary_frontier(ps.Pipeline(), "Hold", build)
        worker.run()
        return max(sizes)

    assert ps.execute(main) == [1]


def test_an_input_goes_forward_only_and_not_after_its_end() -> None:
    def backwards(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, _ = scope.new_input("Numbers")
        input.advance_to(5)
        input.advance_to(4)

    def after_close(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, _ = scope.new_input("Numbers")
        input.close()
        input.close()
        input.send(1)

    def left_open(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.new_input("Numbers")
        worker.run()

    for main, words in (
        (backwards, "is at 5 and cannot go back to 4"),
        (after_close, "is closed and cannot send"),
        (left_open, "is still open, at 0"),
    ):
        _, cause = cause_of(main)
        assert isinstance(cause, InputError)
        assert "'Numbers'" in str(cause)
        assert words in str(cause)


def test_inputs_left_open_are_closed_at_the_end() -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.inspect(out.append)
        input.send("last")
        return out

    assert ps.execute(main) == [["last"]]


def batch(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in columns.items()})


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (
            lambda s: s.batches_to_stream([batch(x=[1]), batch(y=[1])]),
            SchemaError,
            ["x: int64", "y: int64", "'FromBatches'"],
        ),
        (
            lambda s: s.batches_to_stream([[1], batch(y=[1])]),
            SchemaError,
            ["rows", "record batches"],
        ),
        (lambda s: s.batches_to_stream([{1}]), ContainerError, ["set", "known here (list"]),
        (lambda s: s.batches_to_stream([batch(x=[1])]).map(len), ContainerError, ["map_batches"]),
        (lambda s: s.batches_to_stream([batch(x=[1])]).exchange("z"), ColumnError, ["'z'", "x"]),
        (lambda s: s.to_stream([object()]).exchange(), KeyHashError, ["object"]),
    ],
    ids=["schema", "kind", "container", "map on columns", "column", "key"],
)
def test_data_that_does_not_fit_is_named(build: Any, kind: Any, words: list[str]) -> None:
    with pytest.raises(WorkerError) as caught:
        collect(build, workers=2)
    assert isinstance(caught.value.__cause__, kind)
    for word in words:
        assert word in str(caught.value)


def test_what_may_not_be_delayed_or_downgraded_can_be_tried() -> None:
    capabilities = CapabilityCounts("op", 0, ps.Product(ps.Int, ps.Int), lambda: None)
    capability = capabilities.add((1, 1))
    assert capability.try_delayed((0, 5)) is None
    assert not capability.try_downgrade((5, 0))
    assert (capability.time, capabilities.n_held) == ((1, 1), 1)
    later = capability.try_delayed((1, 2))
    assert later is not None
    assert later.time == (1, 2)
    assert later.try_downgrade((3, 2))
    assert (later.time, capabilities.n_held) == ((3, 2), 2)
    with pytest.raises(TimestampError):
        capability.try_delayed(3)
    capability.drop()
    with pytest.raises(CapabilityError, match="it was dropped"):
        capability.try_downgrade((2, 2))
    later.drop()
