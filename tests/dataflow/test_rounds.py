"""Records of a loop's later rounds wait for those that are behind, and go on with them."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.dataflow.channels import MERGED_RECORDS, Queue
from pointstamp.progress.change_batch import ChangeBatch


def filled(*items: tuple[Any, Any]) -> Queue:
    queue = Queue(lambda: None, ChangeBatch())
    for item in items:
        queue.push(*item)
    return queue


def activations(queue: Queue) -> list[list[Any]]:
    """What each activation takes, until none is asked for."""
    found = []
    again = True
    while again:
        again = queue.put_off_later_rounds()
        taken = []
        while (item := queue.pull()) is not None:
            taken.append(item)
        found.append(taken)
        queue.renew()
    return found


def test_the_least_round_goes_first_and_all_go_in_the_end() -> None:
    queue = filled(((0, 7), ["a"]), ((0, 5), ["b"]), ((0, 6), ["c"]), ((0, 5), ["d", "e"]))
    assert activations(queue) == [
        [((0, 5), ["b", "d", "e"])],
        [((0, 6), ["c"])],
        [((0, 7), ["a"])],
    ]
    assert sorted(queue.consumed.drain()) == [((0, 5), 3), ((0, 6), 1), ((0, 7), 1)]
    assert queue.waiting() == []


def test_what_comes_meanwhile_may_go_before() -> None:
    queue = filled(((0, 5), ["a"]), ((0, 9), ["b"]))
    assert queue.put_off_later_rounds()
    assert queue.pull() == ((0, 5), ["a"])
    assert queue.waiting() == [((0, 9), 1)]
    queue.push((0, 6), ["c"])
    queue.push((0, 9), ["d"])
    assert activations(queue) == [[((0, 6), ["c"])], [((0, 9), ["b", "d"])]]


def test_other_epochs_do_not_wait() -> None:
    queue = filled(((1, 9), ["a"]), ((0, 3), ["b"]), ((0, 2), ["c"]), ((1, 9), ["d"]))
    assert activations(queue) == [
        [((1, 9), ["a", "d"]), ((0, 2), ["c"])],
        [((0, 3), ["b"])],
    ]


def test_lists_that_are_not_short_are_left_as_they_are() -> None:
    half = list(range(MERGED_RECORDS // 2))
    assert activations(filled(((0, 1), half), ((0, 1), half))) == [[((0, 1), half + half)]]
    queue = filled(((0, 1), half), ((0, 1), [*half, 0]))
    assert activations(queue) == [[((0, 1), half), ((0, 1), [*half, 0])]]


def test_columns_are_left_as_they_are() -> None:
    batch = pa.record_batch({"a": [1]})
    queue = filled(((0, 1), batch), ((0, 1), batch))
    assert activations(queue) == [[((0, 1), batch), ((0, 1), batch)]]


def test_a_dropped_dataflow_forgets_what_was_put_off() -> None:
    queue = filled(((0, 5), ["a"]), ((0, 9), ["b"]))
    assert queue.put_off_later_rounds()
    queue.abandon()
    assert activations(queue) == [[]]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_all_records_go_round_as_often_as_they_should(workers: int, seed: int) -> None:
    """Each with its own number of rounds, in epochs that overlap, on any schedule."""

    def main(worker: ps.Worker) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            with scope.iterative() as inner:
                loop, again = inner.feedback(1)
                done, rest = (
                    stream.enter(inner)
                    .concat(again)
                    .exchange(lambda x: x[0] * 7 + x[1])
                    .branch(lambda x: x[1] > 0)
                )
                loop.connect(rest.map(lambda x: (x[0], x[1] - 1, x[2] + 1)))
                done.leave().inspect_batch(
                    lambda time, batch: found.extend((time, x[0], x[2]) for x in batch)
                )
        for epoch in range(4):
            for number in range(epoch, 9):
                input.send((number, number * (epoch + 1), 0))
            input.advance_to(epoch + 1)
            worker.step()
        input.close()
        worker.run()
        return found

    found = sorted(chain.from_iterable(ps.simulate(main, workers=workers, seed=seed)))
    expected = [(e, n, n * (e + 1)) for e in range(4) for n in range(e, 9)]
    assert found == sorted(expected * workers)
