"""An exchange to the workers that the records name: where they come out, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers.splitting import split_by_worker
from pointstamp.errors import BuildError, RouteError, SchemaError, WorkerError


def arrived(batch: Any, to: Any, workers: int) -> list[list[Any]]:
    """What each worker takes of a batch that worker 0 sends."""

    def main(worker: Any) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            stream = scope.batches_to_stream([batch] if worker.index == 0 else [])

            def build(capability: Any, info: Any) -> Any:
                def logic(input: Any, output: Any) -> None:
                    for _, part in input:
                        found.extend(part if isinstance(part, list) else part["x"].to_pylist())

                return logic

            stream.unary(ps.Exchange(to=to), "Arrive", build)
        worker.run()
        return found

    return ps.execute(main, workers=workers, threads=True)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(
    ("make", "to"),
    [
        (list, lambda x: x),
        (lambda xs: pa.record_batch({"x": xs}), "x"),
        (lambda xs: pa.record_batch({"x": xs}), pc.field("x")),
        (lambda xs: pa.record_batch({"x": xs}), lambda batch: batch["x"]),
        (lambda xs: pa.record_batch({"x": xs}), lambda batch: batch["x"].to_numpy()),
    ],
    ids=["rows", "column", "expression", "arrow function", "numpy function"],
)
def test_numbers_of_workers_are_taken_modulo_their_number(make: Any, to: Any, workers: int) -> None:
    numbers = [0, 5, 1, 2, 7, 7, 3]
    found = arrived(make(numbers), to, workers)
    assert found == [[n for n in numbers if n % workers == w] for w in range(workers)]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("wrong", [-1, 0.5, "a", None])
def test_what_is_no_number_of_a_worker_is_refused_by_name(wrong: Any, workers: int) -> None:
    with pytest.raises(WorkerError, match=r"'Arrive' failed .*integer of 0 or more") as caught:
        arrived([("record", wrong)], lambda record: record[1], workers)
    assert f"('record', {wrong!r}) is to go to worker {wrong!r}" in str(caught.value)


def test_columns_that_name_no_worker_are_refused() -> None:
    with pytest.raises(RouteError, match=r"the record \(4, -2\) is to go to worker -2"):
        split_by_worker(pa.record_batch({"x": [3, 4], "w": [0, -2]}), "w", 2, "exchange")
    for column in (pa.array([0.5]), pa.array(["a"]), pa.array([None], pa.int64())):
        with pytest.raises(SchemaError, match="exchange needs"):
            split_by_worker(pa.record_batch({"w": column}), "w", 2, "exchange")


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 4))
def test_records_keep_their_order_and_sorted_ones_are_not_copied(
    numbers: list[int], peers: int
) -> None:
    for chosen in (numbers, sorted(number % peers for number in numbers)):
        batch = pa.record_batch({"x": np.array(chosen, np.int64)})
        parts = split_by_worker(batch, "x", peers, "exchange")
        expected = [[n for n in chosen if n % peers == peer] for peer in range(peers)]
        assert [part["x"].to_pylist() for part in parts] == expected
        assert split_by_worker(chosen, lambda n: n, peers, "exchange") == expected
    addresses = {part["x"].buffers()[1].address for part in parts if len(part)}
    assert addresses <= {batch["x"].buffers()[1].address}


def test_a_key_and_a_worker_at_once_are_refused() -> None:
    with pytest.raises(BuildError, match=r"the key 'a' and to='b'"):
        ps.Exchange("a", to="b")
    with pytest.raises(BuildError, match="cannot send records to 3"):
        ps.Exchange(to=3)


def test_a_pact_describes_itself_the_same_on_all_workers() -> None:
    pacts = [ps.Exchange("a"), ps.Exchange(to="a"), ps.Exchange(to=pc.field("a") + 1)]
    assert [pact.describe() for pact in pacts] == [
        "exchange by 'a'",
        "exchange to 'a'",
        "exchange to add_checked(a, 1)",
    ]
    assert ps.Exchange(to=lambda x: x).describe() == "exchange to"
