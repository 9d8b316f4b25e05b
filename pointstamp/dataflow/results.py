"""What a function gives that may fail on a record: `Ok(value)`, or `Err(value)`.

`Stream.ok_err` sends the values of the two to streams of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    """A value returned by a function for a record that it processed."""

    value: T


@dataclass(frozen=True, slots=True)
class Err(Generic[T]):
    """An error returned by a function for a record that it could not process."""

    value: T
