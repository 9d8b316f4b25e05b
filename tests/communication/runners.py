"""Ways to run workers for the tests of communicators: by TCP, and simulated.

Both have the signature that `check_communicator` asks for. What starts the
workers of a TCP mesh is `run_threads` or `run_processes`, whose own communicator
serves to exchange the addresses, as Spark's barrier does.
"""

from __future__ import annotations

import functools
import random

import greenlet

from pointstamp.communication import tcp
from pointstamp.communication.authentication import new_secret
from pointstamp.communication.failure import Failure, failure, first_cause
from pointstamp.communication.segment_sharing import ALONE
from pointstamp.communication.simulated import SimulatedNetwork
from pointstamp.communication.target import run_target


def all_gather(communicator, value):
    """The `value` of every worker, by index."""
    channel = communicator.channel()
    for peer in range(communicator.peers):
        channel.send(peer, None, [value])
    communicator.flush()
    values = {}
    while len(values) < communicator.peers:
        communicator.receive()
        message = channel.pull()
        if message is None:
            communicator.park()
        else:
            values[message.sender] = message.batch[0]
    return [values[index] for index in range(communicator.peers)]


def run_tcp(run, target, workers, compression=None, certificates=None, n_machines=0):
    """Run `target` on workers that `run` starts and that TCP connects.

    With `n_machines`, they are as if on so many, and share memory on each.
    """
    secret = new_secret()

    def main(started):
        listener = tcp.listen()
        addresses = all_gather(started, listener.address)
        mesh = tcp.connect(
            started.index,
            addresses,
            secret,
            listener=listener,
            compression=compression,
            certificates=certificates,
            machine=b"%016d" % (started.index % n_machines) if n_machines else ALONE,
        )
        return run_target(mesh, target)

    return run(main, workers)


def run_simulated(target, workers, *, seed=0, serialize=False):
    """Run `target` on simulated workers, one greenlet each, which `seed` schedules."""
    rng = random.Random(seed)
    hub = greenlet.getcurrent()
    network = SimulatedNetwork(workers, rng, on_park=lambda *_: hub.switch(), serialize=serialize)
    outcomes = {}

    def live(index):
        try:
            outcomes[index] = run_target(network.communicator(index), target)
        except Exception as error:  # noqa: BLE001  (raised below, if it was the first)
            outcomes[index] = failure(index, error, len(outcomes))

    lives = [greenlet.greenlet(functools.partial(live, index)) for index in range(workers)]
    while alive := [life for life in lives if not life.dead]:
        if rng.random() < 0.2 or not network.deliver_any():
            rng.choice(alive).switch()
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, Failure)]
    if failures:
        found = first_cause(failures)
        raise found.as_error() from found.cause
    return [outcomes[index] for index in range(workers)]
