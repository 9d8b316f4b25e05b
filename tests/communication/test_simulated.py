"""The simulated network: what waits, what arrives when, and that a seed says it all."""

from __future__ import annotations

import random

import pytest

from pointstamp.communication.simulated import SimulatedNetwork
from pointstamp.errors import (
    InternalError,
    PeerFailedError,
    PeerLostError,
    SerializationError,
    UsageError,
    WorkerError,
)
from tests.communication.runners import run_simulated


def network_of(workers, **options):
    network = SimulatedNetwork(workers, random.Random(0), **options)
    return network, [network.communicator(index) for index in range(workers)]


def test_channels_of_one_pair_are_independent():
    network, (zero, one) = network_of(2)
    data, progress = zero.channel(), zero.channel()
    data.send(1, "data", [])
    progress.send(1, "progress", [])
    ends = [one.channel(), one.channel()]
    assert network.pending() == [(0, 1, 0, 1), (0, 1, 1, 1)]
    network.deliver(0, 1, 1)
    assert one.receive() == [1]
    assert ends[0].pull() is None
    assert ends[1].pull().tag == "progress"
    assert network.pending() == [(0, 1, 0, 1)]


def test_a_message_to_oneself_waits_too():
    network, (zero,) = network_of(1)
    channel = zero.channel()
    channel.send(0, 1, [])
    channel.send(0, 2, [])
    assert zero.receive() == []
    network.deliver(0, 0, 0, count=2)
    assert zero.receive() == [0]
    assert [channel.pull().tag, channel.pull().tag] == [1, 2]


def test_more_than_waits_cannot_be_delivered():
    network, _ = network_of(2)
    with pytest.raises(UsageError, match=r"0 to 1 on channel 5: 0 wait there; waiting are \[\]"):
        network.deliver(0, 1, 5)


def test_a_crash_loses_what_is_under_way_and_is_noticed():
    network, (zero, one, two) = network_of(3)
    channel = zero.channel()
    channel.send(1, "arrived", [])
    network.deliver(0, 1, 0)
    channel.send(1, "under way", [])
    two.channel().send(1, "of another", [])
    network.crash(0)
    assert network.pending() == [(2, 1, 0, 1)]
    for call in (one.receive, one.park, one.close, two.receive):
        with pytest.raises(PeerLostError, match="worker 0 was lost") as lost:
            call()
        assert lost.value.peer == 0
    assert one.channel().pull().tag == "arrived"


def test_an_abort_is_noticed_with_its_cause():
    _, (zero, one) = network_of(2)
    zero.abort(LookupError("boom"))
    with pytest.raises(PeerFailedError, match="worker 0 failed: LookupError: boom"):
        one.receive()


def test_park_gives_the_driver_its_turn_unless_there_is_something():
    turns = []
    network, (zero, _) = network_of(2, on_park=lambda *turn: turns.append(turn))
    zero.park(1.5)
    assert turns == [(0, 1.5)]
    zero.unpark()
    zero.park()
    zero.channel().send(0, None, [])
    network.deliver(0, 0, 0)
    zero.park()
    assert turns == [(0, 1.5)]


def test_waiting_without_a_driver_is_an_error():
    _, (zero, _) = network_of(2)
    with pytest.raises(InternalError, match="simulated worker 0 waits"):
        zero.park()


def test_batches_go_by_reference_or_through_the_codec():
    for serialize in (False, True):
        network, (zero, one) = network_of(2, serialize=serialize)
        batch = [1, [2]]
        zero.channel().send(1, (1, 2), batch)
        network.deliver(0, 1, 0)
        message = one.channel().pull()
        assert message == (0, (1, 2), batch)
        assert (message.batch is batch) is not serialize


def test_what_cannot_be_encoded_is_found_at_the_send():
    _, (zero, _) = network_of(2, serialize=True)
    with pytest.raises(SerializationError):
        zero.channel().send(1, None, [(number for number in range(3))])


def test_a_seed_gives_one_run_and_another_seed_another():
    def arrivals(seed):
        network = SimulatedNetwork(3, random.Random(seed))
        for sender in range(3):
            channel = network.communicator(sender).channel()
            for receiver in range(3):
                for number in range(5):
                    channel.send(receiver, (sender, number), [])
        order = []
        while network.pending():
            before = network.pending()
            network.deliver_any()
            order.append(set(before) - set(network.pending()))
        assert not network.deliver_any()
        return order

    assert arrivals(1) == arrivals(1)
    assert arrivals(1) != arrivals(2)


def test_some_links_lag_far_behind():
    network, (zero, _) = network_of(2)
    channels = [zero.channel() for _ in range(20)]
    for channel in channels:
        for number in range(50):
            channel.send(1, number, [])
    for _ in range(300):
        network.deliver_any()
    left = {count for *_, count in network.pending()}
    assert 50 in left or 49 in left
    assert min(left) < 40


def test_the_first_cause_is_reported():
    def target(communicator):
        if communicator.index == 1:
            raise LookupError("boom")
        communicator.close()

    with pytest.raises(WorkerError, match="worker 1 failed: LookupError: boom"):
        run_simulated(target, 3, seed=4)
