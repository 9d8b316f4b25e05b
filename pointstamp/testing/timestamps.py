"""Checks of the laws that every timestamp type keeps, for ours and for anyone else's.

Progress tracking believes what a type says of its times. A type that breaks a law
does not fail: it makes frontiers that are wrong, answers that come too early, or a
dataflow that never ends. `check_timestamp(type, times, summaries)` looks for values
that break one, among samples that are given, or drawn by Hypothesis, which also makes
them small; and says which law, and of which values.

The laws are those in the head of `pointstamp.progress.timestamp`, with what the rest
of the system takes for granted: that times are plain values, travel, and can be keys.
"""

from __future__ import annotations

import itertools
import pickle
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pointstamp.containers.codec import decode, encode
from pointstamp.containers.rows import dump
from pointstamp.errors import TimestampError, UsageError
from pointstamp.progress.timestamp import Refinement, Timestamp

N_TRIED = 2_000
"""How many combinations of samples a law is tried on; where there are more, some of them."""

N_DRAWN = 100
"""How many are drawn of strategies, for all laws of as many times and summaries."""


class LawError(AssertionError):
    """A timestamp type breaks a law of timestamp types.

    Attributes
    ----------
    law : str
        Which one.
    values : dict
        The times and summaries that it does not hold for, by their names in the message.
    """

    def __init__(self, message: str, law: str, values: dict[str, Any]) -> None:
        super().__init__(message)
        self.law = law
        self.values = values


def check_timestamp(
    timestamp: Timestamp,
    times: Any,
    summaries: Any = (),
    *,
    outer: Sequence[Timestamp] = (),
    wrong: Sequence[Any] = (),
) -> None:
    """Check that a timestamp type satisfies the laws of timestamp types.

    Parameters
    ----------
    timestamp : Timestamp
        The type.
    times : sequence, or Hypothesis strategy
        Times of it; the least one is always among them. All combinations of samples are
        tried, or of many a selection. What breaks a law and was drawn by a strategy is
        made small first.
    summaries : sequence, or Hypothesis strategy
        What `timestamp.summary` reads: summaries, or short forms. The identity is always
        among them.
    outer : sequence of Timestamp, optional
        Types that it refines, beside itself.
    wrong : sequence, optional
        Values that are no times of it; None and a bare object are always among them.

    Raises
    ------
    LawError
        With the law, and the values that break it.

    Examples
    --------
    >>> from pointstamp import Int, Product
    >>> check_timestamp(Int, range(5), [0, 1, 2], wrong=[-1, "1"])
    >>> check_timestamp(Product(Int, Int), [(0, 1), (1, 0)], [1, (1, 0)], outer=[Int])

    A type whose order is not its key's:

    >>> class Backwards(type(Int)):
    ...     def key(self, time):
    ...         return -time
    >>> try:
    ...     check_timestamp(Backwards(), [0, 1])
    ... except LawError as error:
    ...     error.law, error.values
    ('the key extends the order', {'a': 0, 'b': 1})
    """
    if isinstance(timestamp, type) or not hasattr(timestamp, "less_equal"):
        raise UsageError(
            f"a type of times is an instance of a subclass of ps.Timestamp, and {timestamp!r:.200} "
            "is none"
        )
    subject = _Subject(timestamp, [_crossing(timestamp, type_) for type_ in (timestamp, *outer)])
    for value in (None, object(), *wrong):
        _require_rejection(timestamp, value)
    if _is_strategy(times) or _is_strategy(summaries):
        alike: dict[tuple[int, int], list[_Law]] = {}
        for law in _LAWS:
            alike.setdefault((law.n_times, law.n_summaries), []).append(law)
        for laws in alike.values():
            _draw(laws, subject, times, summaries)
    else:
        for law in _LAWS:
            _try_samples(law, subject, [*times], [*summaries])


@dataclass(frozen=True)
class _Subject:
    """What is checked."""

    type: Timestamp
    crossings: Sequence[tuple[Timestamp, Refinement]]
    """The types that it refines, itself first, and how."""


Found = str | None
"""What was found where a law does not hold; None where it does."""


@dataclass(frozen=True)
class _Law:
    """A sentence, and what looks for values that it does not hold for."""

    sentence: str
    n_times: int
    n_summaries: int
    look: Callable[..., Found]

    def check(self, subject: _Subject, times: Sequence[Any], summaries: Sequence[Any]) -> None:
        """Raise unless the law holds for these."""
        values = dict(zip("abc", times, strict=False)) | dict(zip("stu", summaries, strict=False))
        try:
            read = [subject.type.summary(value) for value in summaries]
            found = self.look(subject, *times, *read)
        except Exception as error:
            what = f"there was {error!r}"
            raise _broken(subject.type, self.sentence, values, what) from error
        if found is not None:
            raise _broken(subject.type, self.sentence, values, found)


def _broken(timestamp: Timestamp, law: str, values: dict[str, Any], found: str) -> LawError:
    """The error that says which law is broken, and by what."""
    of = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    of = f"; with {of}: {found}" if values else f": {found}"
    return LawError(f"timestamp type {timestamp!r} breaks the law that {law}{of}", law, values)


_LAWS: list[_Law] = []


def _law(
    sentence: str, *, times: int = 0, summaries: int = 0
) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    def add(look: Callable[..., Found]) -> Callable[..., Found]:
        _LAWS.append(_Law(sentence, times, summaries, look))
        return look

    return add


# Where values come from.


def _is_strategy(values: Any) -> bool:
    # With a strategy Hypothesis is imported; nothing else needs it.
    hypothesis = sys.modules.get("hypothesis.strategies")
    return hypothesis is not None and isinstance(values, hypothesis.SearchStrategy)


def _try_samples(law: _Law, subject: _Subject, times: list[Any], summaries: list[Any]) -> None:
    """All combinations of samples, or, always the same, `N_TRIED` of them."""
    times = [subject.type.minimum, *times]
    summaries = [subject.type.identity, *summaries]
    combinations: Any = itertools.product(
        itertools.product(times, repeat=law.n_times),
        itertools.product(summaries, repeat=law.n_summaries),
    )
    if len(times) ** law.n_times * len(summaries) ** law.n_summaries > N_TRIED:
        rng = random.Random(law.sentence)
        combinations = (
            (rng.choices(times, k=law.n_times), rng.choices(summaries, k=law.n_summaries))
            for _ in range(N_TRIED)
        )
    for some_times, some_summaries in combinations:
        law.check(subject, some_times, some_summaries)


def _draw(laws: Sequence[_Law], subject: _Subject, times: Any, summaries: Any) -> None:
    """Draw from strategies for laws of as many values; what breaks one is made small."""
    n_times, n_summaries = laws[0].n_times, laws[0].n_summaries
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    def with_least(values: Any, least: Any) -> Any:
        if _is_strategy(values):
            return st.just(least) | values
        return st.sampled_from([least, *values])

    a_time = with_least(times, subject.type.minimum)
    a_summary = with_least(summaries, subject.type.identity)

    @settings(
        max_examples=N_DRAWN,
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*[a_time] * n_times), st.tuples(*[a_summary] * n_summaries))
    def holds(some_times: Any, some_summaries: Any) -> None:
        for law in laws:
            law.check(subject, some_times, some_summaries)

    holds()


# Times.


@_law("less_equal is reflexive", times=1)
def _reflexive(of: _Subject, a: Any) -> Found:
    return None if of.type.less_equal(a, a) else "less_equal(a, a) is not true"


@_law("less_equal is antisymmetric", times=2)
def _antisymmetric(of: _Subject, a: Any, b: Any) -> Found:
    if of.type.less_equal(a, b) and of.type.less_equal(b, a) and a != b:
        return "each is less or equal to the other, and they are not equal"
    return None


@_law("less_equal is transitive", times=3)
def _transitive(of: _Subject, a: Any, b: Any, c: Any) -> Found:
    less_equal = of.type.less_equal
    if less_equal(a, b) and less_equal(b, c) and not less_equal(a, c):
        return "a is less or equal to b, and b to c, but a is not to c"
    return None


@_law("less_than is less_equal of different times", times=2)
def _strict(of: _Subject, a: Any, b: Any) -> Found:
    expected = bool(of.type.less_equal(a, b)) and bool(a != b)
    found = bool(of.type.less_than(a, b))
    return None if found == expected else f"less_than(a, b) is {found}"


@_law("the minimum is below every time", times=1)
def _least(of: _Subject, a: Any) -> Found:
    least = of.type.minimum
    return None if of.type.less_equal(least, a) else f"the minimum {least!r} is not below a"


@_law("total says whether any two times are ordered", times=2)
def _total(of: _Subject, a: Any, b: Any) -> Found:
    if of.type.total and not (of.type.less_equal(a, b) or of.type.less_equal(b, a)):
        return "total is true, and neither is less or equal to the other"
    return None


@_law("the key extends the order", times=2)
def _key_extends(of: _Subject, a: Any, b: Any) -> Found:
    keys = of.type.key(a), of.type.key(b)
    if of.type.less_equal(a, b) and a != b and not keys[0] < keys[1]:
        return f"a is before b, and their keys are {keys[0]!r} and {keys[1]!r}"
    return None


@_law("different times have different keys, which are ordered", times=2)
def _key_is_total(of: _Subject, a: Any, b: Any) -> Found:
    first, second = of.type.key(a), of.type.key(b)
    if (first == second) != (a == b):
        return f"their keys are {first!r} and {second!r}"
    if a != b and (first < second) == (second < first):
        return f"neither of the keys {first!r} and {second!r} comes first"
    return None


@_law("natural says whether Python orders times as their keys", times=2)
def _natural(of: _Subject, a: Any, b: Any) -> Found:
    if not of.type.natural:
        return None
    found, expected = a < b, of.type.key(a) < of.type.key(b)
    return None if found == expected else f"natural is true, a < b is {found}, of keys {expected}"


@_law("equal times have equal hashes", times=2)
def _hashes(of: _Subject, a: Any, b: Any) -> Found:
    if a == b and hash(a) != hash(b):
        return f"they are equal, and their hashes are {hash(a)} and {hash(b)}"
    return None


@_law("a time arrives at another worker as it was sent", times=1)
def _travels(of: _Subject, a: Any) -> Found:
    (arrived, _) = decode([b"".join(bytes(piece) for piece in encode([], a))])
    if arrived != a or hash(arrived) != hash(a):
        return f"it arrives as {arrived!r}, with hash {hash(arrived)} in place of {hash(a)}"
    return None


@_law("check accepts times, and gives them back", times=1)
def _accepts(of: _Subject, a: Any) -> Found:
    checked = of.type.check(a)
    return None if checked == a else f"check(a) is {checked!r}"


@_law("the type is a value, equal to its copy")
def _is_value(of: _Subject) -> Found:
    copy = pickle.loads(dump(of.type))
    return None if copy == of.type else "a copy by pickle is not equal to it"


# Summaries. None as a result is the end of time: nothing arrives.


def _after(summary: Any, time: Any) -> Any:
    """The time after a summary, either of which may be None."""
    return None if summary is None or time is None else summary.results_in(time)


def _is_after(of: _Subject, time: Any, later: Any) -> bool:
    """Whether `later` is at or after `time`, where None is the end of time."""
    return later is None or (time is not None and bool(of.type.less_equal(time, later)))


@_law("a summary reads as itself", summaries=1)
def _reads(of: _Subject, s: Any) -> Found:
    again = of.type.summary(s)
    return None if again == s else f"summary(s) is {again!r}"


@_law("the identity leaves times as they are", times=1)
def _stays(of: _Subject, a: Any) -> Found:
    after = of.type.identity.results_in(a)
    return None if after == a else f"identity.results_in(a) is {after!r}"


@_law("what results is a time", times=1, summaries=1)
def _results(of: _Subject, a: Any, s: Any) -> Found:
    after = s.results_in(a)
    if after is not None:
        of.type.check(after)
    return None


@_law("a summary never goes back", times=1, summaries=1)
def _onward(of: _Subject, a: Any, s: Any) -> Found:
    after = s.results_in(a)
    return None if _is_after(of, a, after) else f"s.results_in(a) is {after!r}, not at or after a"


@_law("results_in is monotone", times=2, summaries=1)
def _monotone(of: _Subject, a: Any, b: Any, s: Any) -> Found:
    after_a, after_b = s.results_in(a), s.results_in(b)
    if of.type.less_equal(a, b) and not _is_after(of, after_a, after_b):
        return f"a is less or equal to b; they result in {after_a!r} and {after_b!r}"
    return None


@_law("advances says that every result is strictly later", times=1, summaries=1)
def _advances(of: _Subject, a: Any, s: Any) -> Found:
    if s.advances and s.results_in(a) == a:
        return "s.advances is true, and s.results_in(a) is a"
    return None


@_law("the identity, before or after, changes no summary", times=1, summaries=1)
def _neutral(of: _Subject, a: Any, s: Any) -> Found:
    identity = of.type.identity
    expected = s.results_in(a)
    for path in (identity.followed_by(s), s.followed_by(identity)):
        if _after(path, a) != expected:
            return f"s leads to {expected!r}; {path!r}, with the identity, to {_after(path, a)!r}"
    return None


@_law("followed_by is one after the other", times=1, summaries=2)
def _follows(of: _Subject, a: Any, s: Any, t: Any) -> Found:
    both, expected = s.followed_by(t), _after(t, s.results_in(a))
    found = _after(both, a)
    if found != expected:
        return f"first s, then t lead to {expected!r}; s.followed_by(t) = {both!r} to {found!r}"
    return None


@_law("followed_by is associative", times=1, summaries=3)
def _associative(of: _Subject, a: Any, s: Any, t: Any, u: Any) -> Found:
    first, last = s.followed_by(t), t.followed_by(u)
    left = None if first is None else first.followed_by(u)
    right = None if last is None else s.followed_by(last)
    if _after(left, a) != _after(right, a):
        return f"(s t) u leads to {_after(left, a)!r}, s (t u) to {_after(right, a)!r}"
    return None


@_law("a lesser summary is never later", times=1, summaries=2)
def _lesser(of: _Subject, a: Any, s: Any, t: Any) -> Found:
    sooner, later = s.results_in(a), t.results_in(a)
    if s.less_equal(t) and not _is_after(of, sooner, later):
        return f"s is less or equal to t; they lead to {sooner!r} and {later!r}"
    return None


@_law("a path is less or equal to itself, and to a longer one", summaries=2)
def _longer(of: _Subject, s: Any, t: Any) -> Found:
    # Around a loop there are ever longer paths: if none was the least, building it never ended.
    longer = s.followed_by(t)
    if not s.less_equal(s):
        return "s.less_equal(s) is not true"
    if longer is not None and not s.less_equal(longer):
        return f"s.less_equal(s.followed_by(t)) is not true; that is {longer!r}"
    return None


@_law("a summary is a value, equal to its copy", times=1, summaries=1)
def _copies(of: _Subject, a: Any, s: Any) -> Found:
    copy = pickle.loads(dump(s))
    if copy != s:
        return f"a copy of it by pickle is {copy!r}"
    if copy.results_in(a) != s.results_in(a):
        return f"s leads to {s.results_in(a)!r}, its copy to {copy.results_in(a)!r}"
    return None


# Refinements: of the type itself, and of those outside. Times outside are had from inside.


@_law("what enters and leaves is as it was", times=1)
def _in_and_out(of: _Subject, a: Any) -> Found:
    for _, refinement in of.crossings:
        outside = refinement.to_outer(a)
        again = refinement.to_outer(refinement.to_inner(outside))
        if again != outside:
            return f"{outside!r} enters and leaves by {refinement!r} as {again!r}"
    return None


@_law("what leaves and enters is not later", times=1)
def _out_and_in(of: _Subject, a: Any) -> Found:
    for _, refinement in of.crossings:
        again = refinement.to_inner(refinement.to_outer(a))
        if not of.type.less_equal(again, a):
            return f"by {refinement!r} it comes back as {again!r}"
    return None


@_law("to_outer is monotone", times=2)
def _leaves_in_order(of: _Subject, a: Any, b: Any) -> Found:
    for outer, refinement in of.crossings:
        outside = refinement.to_outer(a), refinement.to_outer(b)
        if of.type.less_equal(a, b) and not outer.less_equal(*outside):
            return f"a is less or equal to b; by {refinement!r} they leave as {outside}"
    return None


@_law("to_inner is monotone", times=2)
def _enters_in_order(of: _Subject, a: Any, b: Any) -> Found:
    for outer, refinement in of.crossings:
        outside = refinement.to_outer(a), refinement.to_outer(b)
        inside = refinement.to_inner(outside[0]), refinement.to_inner(outside[1])
        if outer.less_equal(*outside) and not of.type.less_equal(*inside):
            return f"outside they are {outside}, in order; by {refinement!r} they enter as {inside}"
    return None


@_law("summarize says what a path inside does outside", times=1, summaries=1)
def _summarized(of: _Subject, a: Any, s: Any) -> Found:
    after = s.results_in(a)
    if after is None:
        return None
    for _, refinement in of.crossings:
        expected = refinement.to_outer(after)
        found = refinement.summarize(s).results_in(refinement.to_outer(a))
        if found != expected:
            return (
                f"s leads to {after!r}, outside {expected!r}; summarize(s) by {refinement!r} leads "
                f"to {found!r}"
            )
    return None


# Checked once, without samples.


def _crossing(timestamp: Timestamp, outer: Timestamp) -> tuple[Timestamp, Refinement]:
    """How the type refines `outer`."""
    refinement = timestamp.refines(outer)
    if refinement is None:
        raise _broken(
            timestamp,
            "a type refines itself, and the types given",
            {"outer": outer},
            "refines(outer) is None",
        )
    return outer, refinement


def _require_rejection(timestamp: Timestamp, value: Any) -> None:
    """Raise unless `check` finds that `value` is no time."""
    cause: Exception | None = None
    try:
        found = f"check(value) is {timestamp.check(value)!r}"
    except TimestampError:
        return
    except Exception as error:  # noqa: BLE001  (code of the type: anything may come)
        cause, found = error, f"there was {error!r}"
    law = "check rejects what is no time, with a TimestampError"
    raise _broken(timestamp, law, {"value": value}, found) from cause
