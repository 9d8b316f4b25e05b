"""Which of several failures came first, and how they are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.communication.failure import death, dump, failure, first_cause, load, notice
from pointstamp.errors import OperatorError, PeerFailedError, PeerLostError


def raised(error, cause=None):
    """`error` as it is when caught: with a traceback, and raised from `cause`."""
    try:
        raise error from cause
    except type(error) as caught:
        return caught


class NotPickled(Exception):
    def __reduce__(self):
        raise TypeError("no")


class NotLoaded(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


@given(st.permutations(range(4)))
def test_the_earliest_primary_failure_is_the_first_cause(order):
    failures = [
        failure(0, PeerFailedError("worker 2 failed", 2), 1.0),
        failure(1, PeerLostError("worker 3 was lost", 3), 2.0),
        failure(2, ValueError("boom"), 3.0),
        death(3, -9, 4.0),
    ]
    assert first_cause(failures[i] for i in order).worker == 2


def test_a_secondary_failure_is_named_where_nothing_else_is_known():
    assert first_cause([failure(0, PeerLostError("lost", 1), 1.0)]).worker == 0


@pytest.mark.parametrize("explicit", [True, False])
def test_an_error_raised_because_a_peer_failed_is_secondary(explicit):
    peer = raised(PeerFailedError("worker 1 failed", 1))
    error = ValueError("while cleaning up")
    if explicit:
        error.__cause__ = peer
    else:
        error.__context__ = peer
    assert failure(0, error, 1.0).secondary
    assert not failure(0, ValueError("mine"), 1.0).secondary


def test_an_operators_error_gives_its_name_time_and_cause():
    cause = raised(ValueError("boom"))
    error = raised(OperatorError("operator 'map' failed at time 3", "map", 3), cause)
    found = failure(1, error, 1.0)
    told = found.as_error()
    assert (told.worker, told.operator, told.time) == (1, "map", 3)
    assert str(told) == "worker 1 failed: operator 'map' failed at time 3: ValueError: boom"
    assert found.cause is cause
    assert "ValueError: boom" in told.original
    assert "test_failure.py" in told.original


def test_a_failure_survives_being_carried():
    error = raised(OperatorError("map failed", "map", (3, 4)), ValueError("boom"))
    found = load(dump(failure(1, error, 1.5)))
    assert (found.worker, found.at, found.operator, found.time) == (1, 1.5, "map", (3, 4))
    assert repr(found.cause) == "ValueError('boom')"
    [note] = found.as_error().__notes__
    assert "The traceback of worker 1" in note


@pytest.mark.parametrize("error", [NotPickled("odd"), NotLoaded(1, 2)])
def test_what_cannot_be_carried_is_told_as_text(error):
    found = load(dump(failure(1, raised(error), 1.0)))
    assert found.cause is None
    assert str(error) in str(found.as_error())
    assert type(error).__name__ in found.original


def test_a_time_that_cannot_be_carried_is_told_as_text():
    class Time:
        def __reduce__(self):
            raise TypeError("no")

        def __repr__(self):
            return "noon"

    found = load(dump(failure(1, raised(OperatorError("failed", "map", Time())), 1.0)))
    assert found.time == "noon"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (-9, "worker 2 was killed by SIGKILL"),
        (-11, "worker 2 was killed by SIGSEGV"),
        (-99, "worker 2 was killed by signal 99"),
        (0, "worker 2 exited with status 0 before it had a result"),
    ],
)
def test_a_death_is_told_by_signal_or_status(status, said):
    assert str(death(2, status, 1.0).as_error()) == said


def test_sys_exit_is_told_as_such():
    assert failure(0, SystemExit(3), 1.0).what == "called sys.exit(3) before it had a result"


def test_a_notice_that_is_passed_on_names_who_was_first():
    first = notice(2, ValueError("boom"))
    assert first.text == "worker 2 failed: ValueError: boom"
    passed_on = notice(1, first.as_error())
    assert passed_on == first
    assert notice(1, PeerLostError("lost", 0)).as_error().peer == 0
    assert isinstance(notice(1, PeerLostError("lost", 0)).as_error(), PeerLostError)
    assert notice(1, None).text == "worker 1 gave up"
