"""Times of a partial order as words: an epoch, and a round for each loop around.

Such times form a lattice: of two there is a least that is at or after both (their join), and
a greatest before both (their meet), coordinate by coordinate.

A user's type of times is one more if its times can be such coordinates, which it says by two
methods. Every finite lattice that is distributive has such coordinates: sets have one for each
member, 0 or 1.

Source: differential-dataflow `lattice.rs`. That these are the lattices that are sublattices of
products of chains is Birkhoff's theorem.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pointstamp.errors import BuildError, TimestampError
from pointstamp.progress.timestamp import Int, Product, Timestamp

TimeWords = tuple[int, ...]

_NEVER = (1 << 62) - 1
"""An epoch that is after all."""

_NEEDED = ("n_words", "encode", "decode")
"""What the times of a user's type need to be words."""


class TimeEncoding:
    """Times of a type to words and back.

    Parameters
    ----------
    timestamp : Timestamp
        `Int`, or a type of a user's with `n_words`, `encode` and `decode`; or products of such
        types. `encode(time)` gives `n_words` integers, 0 or more, and
        `decode(words)` gives the time back. One time is at or before another exactly if each of its
        words is at most the other's; and the greater, or the lesser, words of any two times are
        those of a time.
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
        self.n_rounds = 0
        self.outlasts = False
        """Whether what is kept at these times is in snapshots."""
        inner: Any = timestamp
        while isinstance(inner, Product) and inner.inner is Int:
            inner = inner.outer
            self.n_rounds += 1
        self.base = None if inner is Int else inner
        """Of what type the times outside of all rounds are, if not Int."""
        for part in _parts_of(inner):
            missing = [name for name in _NEEDED if part is not Int and not hasattr(part, name)]
            if missing:
                raise BuildError(
                    f"{where}: its times are of type {timestamp.name}; collections change at times "
                    "of type Int, in loops at products of it with Int, and where a type of the "
                    f"user's says how its times are words: {part.name} has no {', '.join(missing)}"
                )
        self.depth = self.n_rounds + sum(map(_n_words_of, _parts_of(inner)))

    def words(self, time: Any) -> TimeWords:
        """The coordinates, the epoch first.

        Raises
        ------
        TimestampError
            If a user's type gives other words than it should.
        """
        if self.depth == 2 and self.base is None:  # as most loops have them
            return time  # type: ignore[no-any-return]
        rounds = []
        for _ in range(self.n_rounds):
            time, last = time
            rounds.append(last)
        first = (time,) if self.base is None else _encoded(self.base, time)
        return (*first, *reversed(rounds))

    def time(self, words: TimeWords) -> Any:
        """The time of these coordinates."""
        if self.depth == 2 and self.base is None:
            return words
        n_first = self.depth - self.n_rounds
        time: Any = words[0] if self.base is None else _decoded(self.base, list(words[:n_first]))
        for word in words[n_first:]:
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


def _parts_of(timestamp: Any) -> list[Any]:
    """The types that a product is of, the outermost first; of another type itself."""
    if not isinstance(timestamp, Product):
        return [timestamp]
    return [*_parts_of(timestamp.outer), *_parts_of(timestamp.inner)]


def _n_words_of(timestamp: Any) -> int:
    return 1 if timestamp is Int else int(timestamp.n_words)


def _encoded(timestamp: Any, time: Any) -> TimeWords:
    """The words of a time of `Int`, of a user's type, or of a product of them."""
    if isinstance(timestamp, Product):
        return _encoded(timestamp.outer, time[0]) + _encoded(timestamp.inner, time[1])
    if timestamp is Int:
        return (time,)
    words: TimeWords = tuple(timestamp.encode(time))
    fits = all(type(word) is int and 0 <= word < _NEVER for word in words)
    if not fits or len(words) != timestamp.n_words:
        raise TimestampError(
            f"{timestamp.name} encodes the time {time!r} as {words!r}, and should as "
            f"{timestamp.n_words} integers from 0 on"
        )
    return words


def _decoded(timestamp: Any, words: list[int]) -> Any:
    """The time of the first of some words, which are taken from them."""
    if isinstance(timestamp, Product):
        outer = _decoded(timestamp.outer, words)
        return outer, _decoded(timestamp.inner, words)
    if timestamp is Int:
        return words.pop(0)
    found = timestamp.decode(tuple(words[: timestamp.n_words]))
    del words[: timestamp.n_words]
    return found
