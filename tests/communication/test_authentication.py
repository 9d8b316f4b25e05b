"""The handshake: who knows the secret is let in, and nobody else is."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.communication import authentication
from pointstamp.communication.authentication import MAGIC, Handshake, Hello, new_secret
from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    RendezvousError,
    UsageError,
    VersionError,
)

SECRET = b"the secret of this test"


def pair(secret=SECRET, other_secret=SECRET, peers=(2, 2)):
    return (
        Handshake(secret, 1, peers[0], initiated=True),
        Handshake(other_secret, 0, peers[1], initiated=False),
    )


def talk(one, other, cuts=(1_000,)):
    """Carry bytes between two ends, in chunks of the sizes `cuts`; the error of each end."""
    ends = [one, other]
    to = [other.greeting, one.greeting]
    errors = [None, None]
    sizes = iter(())
    while any(to):
        for me in (0, 1):
            size = next(sizes, None)
            if size is None:
                sizes = iter(cuts)
                size = next(sizes)
            chunk, to[me] = to[me][:size], to[me][size:]
            while chunk and errors[me] is None and ends[me].n_missing:
                part, chunk = chunk[: ends[me].n_missing], chunk[ends[me].n_missing :]
                try:
                    to[1 - me] += ends[me].receive(part)
                except CommunicationError as error:
                    errors[me] = error
    return errors


@given(st.lists(st.integers(1, 90), min_size=1, max_size=20))
def test_two_ends_with_one_secret_learn_who_the_other_is(cuts):
    one, zero = pair()
    assert talk(one, zero, cuts) == [None, None]
    assert (one.peer, zero.peer) == (0, 1)
    assert one.n_missing == zero.n_missing == 0


@given(st.lists(st.integers(1, 90), min_size=1, max_size=20))
def test_a_wrong_secret_is_an_error_at_both_ends(cuts):
    one, zero = pair(other_secret=b"not the secret of this test")
    errors = talk(one, zero, cuts)
    assert [type(error) for error in errors] == [AuthenticationError, AuthenticationError]
    assert "says that it is worker 1, does not know the secret" in str(errors[1])
    assert one.peer is None
    assert zero.peer is None
    assert zero.claimed == 1


def test_each_end_learns_what_the_other_wants():
    one = Handshake(SECRET, 1, 2, initiated=True, wants=2)
    zero = Handshake(SECRET, 0, 2, initiated=False)
    assert talk(one, zero) == [None, None]
    assert (one.peer_wants, zero.peer_wants) == (0, 2)


def test_another_version_is_an_error_at_both_ends(monkeypatch):
    one, zero = pair()
    monkeypatch.setattr(one, "_own", Hello(1, 2, bytes(32), version=9))
    [_, at_zero] = talk(one, zero)
    assert isinstance(at_zero, VersionError)
    assert "speaks version 9 of the protocol, and this one 3" in str(at_zero)
    # The other way round: what the newer end, which is 9, makes of our hello.
    newer, zero = pair()
    monkeypatch.setattr(authentication, "VERSION", 9)
    with pytest.raises(VersionError, match="speaks version 3 of the protocol, and this one 9"):
        newer.receive(zero.greeting)


def test_another_number_of_peers_is_an_error_at_both_ends():
    errors = talk(*pair(peers=(2, 3)))
    assert [type(error) for error in errors] == [RendezvousError, RendezvousError]
    assert "is worker 1 of 2, and this one is worker 0 of 3" in str(errors[1])


def test_another_program_is_noticed_by_its_first_bytes():
    _, zero = pair()
    with pytest.raises(AuthenticationError, match=r"it began with b'GET / HT'"):
        zero.receive(b"GET / HTTP/1.1\r\n")


@given(st.binary(min_size=1, max_size=82))
def test_garbage_never_gets_in(garbage):
    _, zero = pair()
    while garbage and zero.n_missing:
        part, garbage = garbage[: zero.n_missing], garbage[zero.n_missing :]
        try:
            zero.receive(part)
        except CommunicationError:
            break
    assert zero.peer is None


@given(st.binary(min_size=32, max_size=32))
def test_an_invented_proof_never_gets_in(proof):
    _, zero = pair()
    zero.receive(Hello(1, 2, bytes(32)).encode())
    with pytest.raises(AuthenticationError):
        zero.receive(proof)
    assert zero.peer is None


def test_what_an_end_says_cannot_be_sent_back_to_it():
    _, zero = pair()
    proof = zero.receive(zero.greeting)
    with pytest.raises(AuthenticationError):
        zero.receive(proof)


def test_a_recorded_proof_fits_no_other_connection():
    one, zero = pair()
    greeting = one.greeting
    proof = one.receive(zero.greeting)
    _, again = pair()
    again.receive(greeting)
    with pytest.raises(AuthenticationError):
        again.receive(proof)


def test_nothing_is_unpickled(monkeypatch):
    def explode(*_):
        raise AssertionError("unpickled")

    monkeypatch.setattr(pickle, "loads", explode)
    _, zero = pair()
    with pytest.raises(AuthenticationError):
        zero.receive(pickle.dumps(explode.__name__)[: zero.n_missing])


def test_what_is_kept_of_a_peer_is_bounded():
    _, zero = pair()
    assert zero.n_missing == 67
    zero.receive(MAGIC)
    assert zero.n_missing == 59


def test_a_secret_that_can_be_guessed_is_refused():
    with pytest.raises(UsageError, match="at least 16 bytes, not 3"):
        Handshake(b"abc", 0, 1, initiated=True)


def test_secrets_differ():
    assert new_secret() != new_secret()
    assert len(new_secret()) == 32
