"""What arrived, by channel, and the communicator of one worker that is made of it."""

from __future__ import annotations

import threading

import pytest

from pointstamp.communication.communicator import Message
from pointstamp.communication.mailbox import Mailbox
from pointstamp.communication.single import SingleCommunicator
from pointstamp.errors import UsageError


def test_messages_for_a_channel_not_made_yet_are_news_once_it_is():
    mailbox = Mailbox()
    mailbox.put(1, Message(0, "early", []))
    assert not mailbox.has_touched()
    mailbox.make(1, lambda *_: None)
    assert mailbox.touched_channels() == []
    end = mailbox.make(1, lambda *_: None)
    assert mailbox.has_touched()
    assert mailbox.touched_channels() == [1]
    assert end.pull() == (0, "early", [])
    assert end.pull() is None


def test_news_names_each_channel_once_and_in_order():
    mailbox = Mailbox()
    for _ in range(3):
        mailbox.make(1, lambda *_: None)
    for channel in (2, 0, 2):
        mailbox.put(channel, Message(0, None, []))
    assert mailbox.touched_channels() == [0, 2]
    assert mailbox.touched_channels() == []


@pytest.mark.parametrize("peer", [-1, 2])
def test_a_peer_that_is_not_there_is_an_error(peer):
    end = Mailbox().make(2, lambda *_: None)
    with pytest.raises(UsageError, match=f"cannot send to worker {peer}: there are workers 0 to 1"):
        end.send(peer, None, [])


def test_a_lone_worker_is_woken_from_another_thread():
    alone = SingleCommunicator()
    thread = threading.Thread(target=alone.unpark)
    thread.start()
    alone.park()  # for ever, if that did not end it
    thread.join()


def test_a_lone_worker_does_not_park_with_something_to_receive():
    alone = SingleCommunicator()
    alone.channel().send(0, None, [])
    alone.park()
    assert alone.receive() == [0]


def test_a_closed_channel_keeps_nothing_and_is_no_news():
    mailbox = Mailbox()
    ends = [mailbox.make(1, lambda *_: None) for _ in range(2)]
    for id in (0, 1):
        mailbox.put(id, Message(0, "early", []))
    ends[0].close()
    mailbox.put(0, Message(0, "late", []))
    assert ends[0].pull() is None
    assert mailbox.touched_channels() == [1]
    assert not mailbox.has_touched()
    ends[0].close()  # twice is once
