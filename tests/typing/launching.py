"""What a checker of types says of `execute`: `main` gets a worker and the arguments."""

from __future__ import annotations

from typing import assert_type

import pointstamp as ps


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
    assert_type(ps.execute(rounds, 3, "x", workers=2), list[float])
    assert_type(ps.execute(alone), list[str])
    assert_type(ps.execute(optional, 4), list[int])
    assert_type(ps.execute(optional), list[int])
    assert_type(ps.execute(lambda worker: worker.index), list[int])
    ps.execute(rounds, "3", "x")  # type: ignore[arg-type]  # n is an int
    ps.execute(rounds, 3)  # type: ignore[arg-type]  # the name is missing
    ps.execute(alone, 3)  # type: ignore[arg-type]  # it has no argument
