"""Parts of epochs, which workers report at different moments, come to whole epochs."""

from __future__ import annotations

from typing import Any

from pointstamp.metrics.epoch_assembly import MOST_WAITING, EpochAssembly
from pointstamp.metrics.samples import DataflowSample, EndedEpoch, ProbeSample, WorkerSample


def part(epoch: int, records: int = 1) -> EndedEpoch:
    return EndedEpoch(
        epoch + 1, "flow", "End", "0/2", epoch, 10 * epoch, 10 * epoch + 5, 0, records
    )


def sample(
    index: int, frontier: int | None, *epochs: EndedEpoch, identity: str = "first"
) -> WorkerSample:
    is_done = frontier is None
    probe = ProbeSample("End", "0/2", frontier, is_done, None, 0, (), 0, 0)
    flow = DataflowSample("flow", 0, is_done, 0, 0, (), (), (), (probe,))
    counts: Any = (index, 2, True, 0, 0, 0, 0, None, None, {}, (flow,))
    return WorkerSample(*counts, identity=f"{identity} {index}", epochs=epochs)


def whole(found: Any) -> list[tuple[int, list[int]]]:
    return [(each.epoch, sorted(each.parts)) for each in found]


def test_an_epoch_is_whole_when_all_have_passed_it_as_of_the_reading_before() -> None:
    assembly = EpochAssembly(2)
    assert whole(assembly.take([sample(0, 2, part(0), part(1)), sample(1, 1, part(0))])) == []
    # Worker 1 has passed 0 as of the reading before, and 1 as of this one.
    assert whole(assembly.take([sample(0, 2), sample(1, 2, part(1))])) == [(0, [0, 1])]
    assert whole(assembly.take([sample(0, 2), sample(1, 2)])) == [(1, [0, 1])]
    assert assembly.rest() == []


def test_a_worker_that_had_nothing_to_do_with_an_epoch_is_not_waited_for() -> None:
    assembly = EpochAssembly(2)
    assembly.take([sample(0, 5, part(3)), sample(1, 5)])
    assert whole(assembly.take([sample(0, 5), sample(1, 5)])) == [(3, [0])]


def test_a_worker_that_does_not_answer_is_waited_for() -> None:
    assembly = EpochAssembly(2)
    for _ in range(3):
        assert whole(assembly.take([sample(0, 5, part(3))])) == []
    assembly.take([sample(0, 5), sample(1, 5, part(3))])
    assert whole(assembly.take([sample(0, 5)])) == []
    assert whole(assembly.take([sample(1, 5)])) == [(3, [0, 1])]


def test_where_nothing_more_comes_all_are_whole() -> None:
    assembly = EpochAssembly(2)
    assembly.take([sample(0, None, part(0)), sample(1, 0)])
    assert whole(assembly.rest()) == [(0, [0])]
    assert assembly.rest() == []


def test_a_worker_that_was_started_again_begins_anew() -> None:
    assembly = EpochAssembly(2)
    assembly.take([sample(0, 9), sample(1, 9)])
    assembly.take([sample(0, 9), sample(1, 9)])
    again = sample(0, 1, part(4), identity="second"), sample(1, 1, identity="second")
    assert whole(assembly.take(again)) == []
    assembly.take([sample(0, 6, identity="second"), sample(1, 6, part(4), identity="second")])
    last = sample(0, 6, identity="second"), sample(1, 6, identity="second")
    assert whole(assembly.take(last)) == [(4, [0, 1])]


def test_no_more_wait_than_can_be_kept() -> None:
    assembly = EpochAssembly(2)
    many = [part(epoch) for epoch in range(MOST_WAITING + 10)]
    found = assembly.take([sample(0, len(many), *many), sample(1, 0)])
    assert whole(found) == [(epoch, [0]) for epoch in range(10)]
