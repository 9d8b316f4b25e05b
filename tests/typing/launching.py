"""What a checker of types says of what runs a program: `main` gets a worker and the arguments."""

# pyright: reportUnnecessaryTypeIgnoreComment=error

from __future__ import annotations

from typing import assert_type

import pointstamp as ps
from pointstamp.communication.communicator import Communicator


def rounds(worker: ps.Worker, n: int, name: str) -> float:
    """With two arguments."""
    return worker.index + n / len(name)


def alone(worker: ps.Worker) -> str:
    """With none."""
    return str(worker.index)


def optional(worker: ps.Worker, n: int = 3) -> int:
    """With one that may be left out."""
    return n


def calls() -> None:
    """Those that fit, and those that do not: `warn_unused_ignores` has each be an error."""
    assert_type(ps.execute(rounds, 3, "x", workers=2), ps.RunResults[float])
    assert_type(ps.execute(alone), ps.RunResults[str])
    assert_type(ps.execute(optional, 4), ps.RunResults[int])
    assert_type(ps.execute(optional), ps.RunResults[int])
    assert_type(ps.execute(lambda worker: worker.index), ps.RunResults[int])
    ps.execute(rounds, "3", "x")  # type: ignore[arg-type]  # n is an int
    ps.execute(rounds, 3)  # type: ignore[arg-type]  # the name is missing
    ps.execute(alone, 3)  # type: ignore[arg-type]  # it has no argument


def simulated() -> None:
    """The same, and how many workers there are has to be said."""
    assert_type(ps.simulate(rounds, 3, "x", workers=2, seed=7), list[float])
    assert_type(ps.simulate(alone, workers=2), list[str])
    assert_type(ps.simulate(optional, 4, workers=2), list[int])
    assert_type(ps.simulate(optional, workers=2), list[int])
    assert_type(ps.simulate(lambda worker: worker.index, workers=2), list[int])
    ps.simulate(rounds, "3", "x", workers=2)  # type: ignore[arg-type]  # n is an int
    ps.simulate(rounds, 3, workers=2)  # type: ignore[arg-type]  # the name is missing
    ps.simulate(alone, 3, workers=2)  # type: ignore[arg-type]  # it has no argument
    ps.simulate(alone)  # type: ignore[call-arg]  # of how many workers?


def as_one(communicator: Communicator) -> None:
    """The same of one worker, on its communicator; the result is that of `main`."""
    assert_type(ps.run_worker(communicator, rounds, 3, "x"), float)
    assert_type(ps.run_worker(communicator, alone, progress="eager"), str)
    assert_type(ps.run_worker(communicator, optional, 4), int)
    assert_type(ps.run_worker(communicator, optional), int)
    assert_type(ps.run_worker(communicator, lambda worker: worker.index), int)
    ps.run_worker(communicator, rounds, "3", "x")  # type: ignore[arg-type]  # n is an int
    ps.run_worker(communicator, rounds, 3)  # type: ignore[arg-type]  # the name is missing
    ps.run_worker(communicator, alone, 3)  # type: ignore[arg-type]  # it has no argument
    ps.run_worker(alone, alone)  # type: ignore[arg-type]  # no communicator
