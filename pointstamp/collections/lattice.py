"""Times of a partial order as words: an epoch, and a round for each loop around.

Such times form a lattice: of two there is a least that is at or after both (their join), and
a greatest before both (their meet), coordinate by coordinate.

Source: differential-dataflow `lattice.rs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pointstamp.errors import BuildError
from pointstamp.progress.timestamp import Int, Product, Timestamp

TimeWords = tuple[int, ...]

_NEVER = (1 << 62) - 1
"""An epoch that is after all."""


class TimeEncoding:
    """Times of a type to words and back.

    Parameters
    ----------
    timestamp : Timestamp
        `Int`, or a product of such a type and `Int`.
    where : str
        What asks, for the message.

    Raises
    ------
    BuildError
        If it is another type.

    >>> nested = TimeEncoding(Product(Product(Int, Int), Int), "a test")
    >>> nested.words(((7, 2), 5)), nested.time((7, 2, 5))
    ((7, 2, 5), ((7, 2), 5))
    """

    def __init__(self, timestamp: Timestamp, where: str) -> None:
        self.depth = 1
        self.outlasts = False
        """Whether what is kept at these times is in snapshots."""
        inner: Any = timestamp
        while isinstance(inner, Product) and inner.inner is Int:
            inner = inner.outer
            self.depth += 1
        if inner is not Int:
            raise BuildError(
                f"{where}: its times are of type {timestamp.name}; collections change at times of "
                "type Int, and in loops at products of it with Int"
            )

    def words(self, time: Any) -> TimeWords:
        """The coordinates, the epoch first."""
        if self.depth == 2:  # as most loops have them
            return time  # type: ignore[no-any-return]
        rounds = []
        for _ in range(self.depth - 1):
            time, last = time
            rounds.append(last)
        return (time, *reversed(rounds))

    def time(self, words: TimeWords) -> Any:
        """The time of these coordinates."""
        if self.depth == 2:
            return words
        time: Any = words[0]
        for word in words[1:]:
            time = (time, word)
        return time

    def least(self, words: Iterable[TimeWords]) -> list[Any]:
        """The times of some words that none of the others is before.

        >>> TimeEncoding(Product(Int, Int), "a test").least([(3, 1), (2, 4), (3, 5)])
        [(2, 4), (3, 1)]
        """
        known = sorted({row for row in words if row[0] < _NEVER})
        return [
            self.time(row)
            for row in known
            if not any(other != row and less_equal(other, row) for other in known)
        ]

    def frontier(self, times: Iterable[Any]) -> list[TimeWords]:
        """Of some times; where state outlasts a program, also of an epoch to come.

        Otherwise rounds of which no more comes would be let go before a snapshot has them: an
        input that closes is open again in the program that begins with it.
        """
        found = [self.words(time) for time in times]
        if self.outlasts:
            found.append((_NEVER, *[0] * (self.depth - 1)))
        return found


def join_of(a: TimeWords, b: TimeWords) -> TimeWords:
    """The least time at or after both.

    >>> join_of((3, 1), (2, 4))
    (3, 4)
    """
    return tuple(map(max, a, b))


def less_equal(a: TimeWords, b: TimeWords) -> bool:
    """Whether `a` is at or before `b`, in each coordinate.

    >>> less_equal((3, 1), (3, 4)), less_equal((3, 1), (2, 4))
    (True, False)
    """
    return all(one <= two for one, two in zip(a, b, strict=True))
