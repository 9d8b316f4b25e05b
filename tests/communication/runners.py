"""Ways to run workers for the tests of communicators: by TCP, and simulated.

Both have the signature that `check_communicator` asks for. What starts the
workers of a TCP mesh is `run_threads` or `run_processes`, whose own communicator
serves to exchange the addresses, as Spark's barrier does; or they are `Members`,
which run one mesh after the other.
"""

from __future__ import annotations

import functools
import pickle
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import greenlet

from pointstamp.communication import tcp
from pointstamp.communication.authentication import new_secret
from pointstamp.communication.failure import Failure, dump, failure, first_cause, load
from pointstamp.communication.segment_sharing import ALONE
from pointstamp.communication.simulated import SimulatedNetwork
from pointstamp.communication.target import run_target


def all_gather(communicator, value):
    """The `value` of every worker, by index."""
    if isinstance(communicator, Member):
        return communicator.all_gather(value)
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


def run_tcp(
    run, target, workers, compression=None, certificates=None, n_machines=0, n_hosts=0, **options
):
    """Run `target` on workers that `run` starts and that TCP connects.

    With `n_machines`, they are as if on so many, and share memory on each; with `n_hosts`, they
    have one connection for each two of so many hosts.
    """
    secret = new_secret()

    def main(started):
        listener = tcp.listen(f"127.0.0.{1 + started.index % max(n_hosts, 1)}")
        addresses = all_gather(started, listener.address)
        mesh = tcp.connect(
            started.index,
            addresses,
            secret,
            listener=listener,
            compression=compression,
            certificates=certificates,
            machine=b"%016d" % (started.index % n_machines) if n_machines else ALONE,
            connections="machine" if n_hosts else "worker",
            **options,
        )
        return run_target(mesh, target)

    return run(main, workers)


@dataclass(frozen=True)
class Member:
    """One of some processes, which can tell each other their addresses once in a run."""

    index: int
    peers: int
    pipe: Connection

    def all_gather(self, value: Any) -> list[Any]:
        """The `value` of every one, by index."""
        self.pipe.send(value)
        return self.pipe.recv()


@contextmanager
def members(most: int) -> Iterator[Callable[..., list[Any]]]:
    """A function that runs targets as `run_processes` does, each in the same processes.

    To start a process, which imports NumPy and Arrow, takes longer than most of what is
    asked of it. Each of its calls has every worker `all_gather` once.
    """
    context = get_context("spawn")
    with ExitStack() as started:
        pipes = []
        for index in range(most):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(index, there), daemon=True)
            process.start()
            there.close()
            started.callback(process.join)
            pipes.append(here)
        for pipe in pipes:
            started.callback(pipe.close)  # which is how a process learns that it may end
        yield functools.partial(_run_on, pipes)


def _run_on(pipes, target, workers):
    pipes = pipes[:workers]
    for pipe in pipes:
        pipe.send_bytes(cloudpickle.dumps((workers, target)))
    values = [pipe.recv() for pipe in pipes]
    for pipe in pipes:
        pipe.send(values)
    outcomes = [pipe.recv() for pipe in pipes]
    failures = [load(outcome) for has_failed, outcome in outcomes if has_failed]
    if failures:
        found = first_cause(failures)
        raise found.as_error() from found.cause
    return [outcome for _, outcome in outcomes]


def _serve(index, pipe):
    while True:
        try:
            workers, target = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        try:
            outcome = (False, target(Member(index, workers, pipe)))
        except Exception as error:  # noqa: BLE001  (raised by `_run_on`, if it was the first)
            outcome = (True, dump(failure(index, error, time.monotonic())))
        pipe.send(outcome)


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
