"""Every communicator keeps the laws, and the check of the laws has teeth."""

from __future__ import annotations

import functools
from typing import ClassVar

import pyarrow as pa
import pytest

from pointstamp.communication import threads
from pointstamp.communication.failure import Notice
from pointstamp.communication.launch import run_threads
from pointstamp.communication.mailbox import Mailbox
from pointstamp.communication.processes import run_processes
from pointstamp.communication.threads import ThreadCommunicator
from pointstamp.testing import check_communicator, communicators
from tests.communication.runners import members, run_simulated, run_tcp

RUNS = {
    "threads": run_threads,
    "processes": run_processes,
    "tcp between threads": functools.partial(run_tcp, run_threads),
    "two machines, threads": functools.partial(run_tcp, run_threads, n_machines=2),
    "tcp, compressed": functools.partial(run_tcp, run_threads, compression="lz4"),
    "simulated": functools.partial(run_simulated, seed=1),
    "simulated, encoded": functools.partial(run_simulated, seed=2, serialize=True),
}

APART = {
    "tcp between processes": 0,
    "one machine, started apart": 1,
    "two machines": 2,
}
"""On how many machines processes are that TCP connects; 0 for each on one of its own."""

BATCHES = [
    pa.record_batch({"key": [1, 2, 3], "name": ["a", None, "c"]}),
    pa.record_batch({"key": pa.array([], pa.int64())}),
]


ONCE = {"processes", "tcp, compressed", "simulated", "simulated, encoded"}
"""Of these the sources show nothing that they do not show between threads."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.once] * (name in ONCE)) for name in RUNS]
)
def test_it_keeps_the_laws(name):
    check_communicator(RUNS[name], BATCHES)


@pytest.fixture(scope="module")
def run_apart():
    with members(3) as run:
        yield run


@pytest.mark.once
@pytest.mark.xdist_group("members")
@pytest.mark.parametrize("name", APART)
def test_it_keeps_the_laws_between_processes(run_apart, name):
    check_communicator(functools.partial(run_tcp, run_apart, n_machines=APART[name]), BATCHES)


@pytest.mark.once
def test_it_keeps_the_laws_encrypted(certificates):
    for n_machines in (0, 2):
        run = functools.partial(
            run_tcp, run_threads, certificates=certificates, n_machines=n_machines
        )
        check_communicator(run, BATCHES)


class Loses(ThreadCommunicator):
    """Does not send the last message."""

    def _carry(self, channel, peer, tag, batch):
        if tag != communicators.N_SMALL // 3 - 1:
            super()._carry(channel, peer, tag, batch)


class Repeats(ThreadCommunicator):
    """Sends it twice."""

    def _carry(self, channel, peer, tag, batch):
        super()._carry(channel, peer, tag, batch)
        if tag == 100:
            super()._carry(channel, peer, tag, batch)


class Overtakes(ThreadCommunicator):
    """Lets a message go before the one that was sent before it."""

    def _carry(self, channel, peer, tag, batch):
        super()._carry(channel, peer, tag, batch)
        inbox = self._group.inboxes[peer]
        if tag == 100 and len(inbox) > 1:
            last, former = inbox.pop(), inbox.pop()
            inbox += [last, former]


class ForgetsTheEarly(ThreadCommunicator):
    """Loses what comes for a channel that is not made yet."""

    def receive(self):
        kept = [item for item in self._inbox if item[0] < self._mailbox._n_made]
        self._inbox.clear()
        self._inbox.extend(kept)
        return super().receive()


class MixesUpChannels(ThreadCommunicator):
    """Delivers what is for the second channel to the third."""

    def _carry(self, channel, peer, tag, batch):
        super()._carry(2 if channel == 1 else channel, peer, tag, batch)


class ChangesBatches(ThreadCommunicator):
    """Turns rows into a copy without the last."""

    def _carry(self, channel, peer, tag, batch):
        super()._carry(channel, peer, tag, batch[:-1] if len(batch) == 3 else batch)


class SleepsThroughUnparks(ThreadCommunicator):
    def unpark(self):
        pass


class SleepsThroughMessages(ThreadCommunicator):
    def park(self, timeout_s=None):
        self._awake.clear()
        self._awake.wait(timeout_s)


class Spins(ThreadCommunicator):
    """Burns the processor while it parks."""

    def park(self, timeout_s=None):
        import time

        until = time.monotonic() + (timeout_s or 0)
        while time.monotonic() < until and not self._inbox and not self._awake.is_set():
            pass
        super().park(0)


class ClosesAtOnce(ThreadCommunicator):
    def close(self):
        self._group.closed.add(self.index)


class DiesSilently(ThreadCommunicator):
    dead: ClassVar = []

    def abort(self, cause=None):
        self.dead.append(self)


class BlamesAnother(ThreadCommunicator):
    def abort(self, cause=None):
        self._group.notices.append(Notice(0, False, "somebody"))
        super().abort(cause)


BROKEN = {
    Loses: "a message did not come",
    Repeats: "in the order of sending, each once",
    Overtakes: "in the order of sending, each once",
    ForgetsTheEarly: "a message did not come|arrives|message 0 was due",
    MixesUpChannels: "in the order of sending|channel",
    ChangesBatches: "a container arrives as it was sent",
    SleepsThroughUnparks: "unpark",
    SleepsThroughMessages: "park returns|did not come",
    Spins: "uses no processor",
    ClosesAtOnce: "close returns when all peers have closed too",
    DiesSilently: "stops the others",
    BlamesAnother: "worker 1 did, and they name",
}


class ForgetsTouchedChannels(Mailbox):
    """Never says that something has come."""

    def touched_channels(self):
        return []


@pytest.mark.once
@pytest.mark.parametrize("kind", BROKEN)
def test_a_communicator_that_breaks_a_law_is_caught(kind, monkeypatch):
    monkeypatch.setattr(communicators, "PATIENCE_S", 0.5)
    monkeypatch.setattr(communicators, "STOP_S", 0.25)
    monkeypatch.setattr(communicators, "N_SMALL", 600)
    monkeypatch.setattr(communicators, "N_BIG_BYTES", 1_000)
    monkeypatch.setattr(threads, "ThreadCommunicator", kind)
    with pytest.raises(AssertionError, match=BROKEN[kind]):
        check_communicator(run_threads)
    for communicator in DiesSilently.dead:  # or its peers would wait for ever
        ThreadCommunicator.abort(communicator)


def test_the_unbroken_one_passes_with_so_few_messages_too(monkeypatch):
    # With the patience of everybody: a machine may stand still for half a second.
    monkeypatch.setattr(communicators, "N_SMALL", 600)
    monkeypatch.setattr(communicators, "N_BIG_BYTES", 1_000)
    check_communicator(run_threads)


def test_a_mailbox_that_forgets_which_channels_were_touched_is_caught(monkeypatch):
    monkeypatch.setattr(communicators, "PATIENCE_S", 0.5)
    monkeypatch.setattr(threads, "Mailbox", ForgetsTouchedChannels)
    with pytest.raises(AssertionError, match="arrives, and receive"):
        check_communicator(run_threads)
