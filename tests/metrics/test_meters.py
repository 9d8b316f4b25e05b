"""Epochs that inputs leave and probes complete, against a list of them."""

from __future__ import annotations

import random

import pytest

from pointstamp.metrics.meters import (
    LATENCY_BUCKETS_S,
    MOST_PENDING,
    EpochMeter,
    InputMeter,
    LeftEpoch,
    LeftEpochs,
    ProbeMeter,
    StreamMeter,
)
from pointstamp.metrics.tick_clock import LONG_ENOUGH_NS, TickLength, now_ns, ticks
from pointstamp.progress.input_frontier import InputFrontier
from pointstamp.progress.timestamp import Int, Product


class Place:
    """A probe, whose frontier a test moves."""

    def __init__(self, epochs: EpochMeter, timestamp=Int) -> None:
        self.ended: list[LeftEpoch] = []
        self.at = timestamp.minimum
        self.counts = InputFrontier(timestamp, [(self.at, 1)])
        self.meter = ProbeMeter(
            "p",
            "0/2",
            self.counts,
            timestamp,
            epochs.left,
            lambda left, now: self.ended.append(left),
        )
        epochs.probes.append(self.meter)

    def move(self, time) -> None:
        if time is not None:
            self.counts.change(time, 1)
        self.counts.change(self.at, -1)
        self.at = time
        self.meter.look()


def begun() -> tuple[EpochMeter, InputMeter]:
    epochs = EpochMeter()
    epochs.inputs.append(InputMeter("in", "0/1", epochs))
    epochs.inputs[0].move(0)
    return epochs, epochs.inputs[0]


@pytest.mark.parametrize("seed", range(5))
def test_probes_see_each_epoch_once_and_in_order(seed: int) -> None:
    draw = random.Random(seed)
    epochs, input = begun()
    places = [Place(epochs) for _ in range(3)]
    left: list[int] = []
    time = 0
    for _ in range(400):
        if draw.random() < 0.6:
            time += draw.choice([1, 1, 1, 5])
            input.move(time)
            left.append(time)
        else:
            place = draw.choice(places)
            place.move(draw.randint(place.at, time))
        for place in places:
            complete = [until for until in left if until <= place.at]
            assert [each.until for each in place.ended] == complete
            assert place.meter.count == sum(place.meter.buckets) == len(complete)
            assert (place.meter.waits_since_ns is None) == (len(complete) == len(left))
    input.close()
    for place in places:
        place.move(None)
        assert [each.until for each in place.ended] == [*left, time + 1]
        assert place.ended[-1].is_end
        assert place.meter.frontier == []


@pytest.mark.once
def test_of_too_many_epochs_the_eldest_are_not_timed() -> None:
    epochs, input = begun()
    slow, quick = Place(epochs), Place(epochs)
    n = MOST_PENDING + 100
    for time in range(1, n + 1):
        input.move(time)
        if time % 50 == 0:
            quick.move(time)
    slow.move(n)
    quick.move(n)
    assert quick.meter.count == n
    assert slow.meter.count == MOST_PENDING
    assert slow.ended[0].until == 101


def test_a_latency_is_in_the_bucket_of_the_first_bound_that_it_does_not_exceed() -> None:
    left = LeftEpochs()
    counts = InputFrontier(Int)  # empty: all are complete
    probe = ProbeMeter("p", "0/1", counts, Int, left)
    latencies_ns = [0, 100_000, 100_001, 60_000_000_000, 60_000_000_001]
    for number, latency_ns in enumerate(latencies_ns):
        left.add(number + 1, 1000, number, 0, 0, False)
        probe.look(1000 + latency_ns)
    expected = [0] * (len(LATENCY_BUCKETS_S) + 1)
    expected[0], expected[1], expected[-2], expected[-1] = 2, 1, 1, 1
    assert list(probe.buckets) == expected
    assert probe.sum_ns == sum(latencies_ns)


def test_epochs_that_are_none_are_not_timed() -> None:
    epochs, input = begun()
    of_rounds = Place(epochs, Product(Int, Int))
    input.move(1)
    of_rounds.move((0, 5))
    assert of_rounds.meter.count == 0  # its times are pairs
    of_rounds.move(None)
    assert of_rounds.meter.count == 1
    input.move(2**70)  # of more than 64 bits
    input.close()
    assert epochs.left.n == 1


def test_sizes_of_short_lists_are_those_of_lists_before() -> None:
    stream = StreamMeter("a", "b", "0/1.0", "pipeline")
    stream.sent([1] * 10)
    once = stream.n_bytes
    stream.sent(["x" * 1000] * 10)
    assert stream.n_bytes == 2 * once
    stream.sent(["x" * 1000] * 100)
    assert stream.n_bytes > 2 * once + 100_000
    assert (stream.records, stream.batches) == (120, 3)


def test_ticks_are_as_long_as_the_clock_says_and_stay_so() -> None:
    length = TickLength()
    began_ns, began = now_ns(), ticks()
    while now_ns() <= began_ns + LONG_ENOUGH_NS:
        pass
    n, ns = ticks() - began, now_ns() - began_ns
    found = length.ns_of(n)
    assert abs(found - ns) < 0.2 * ns  # there may be a pause between two looks
    assert length.ns_of(n) == found
