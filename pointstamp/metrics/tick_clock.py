"""A clock for what is timed several times in a step: the processor's counter, where one can.

To look at the clock of the system takes as long as a hundred instructions, and an activation of an
operator hardly more than a few hundred. So what is summed up is counted in ticks, and becomes
nanoseconds when it is read. A tick is one of the processor's counter where the system itself takes
the time from that, as it does only where the counters of all processors agree and go on evenly;
elsewhere, and where nothing is compiled, it is a nanosecond.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns

from pointstamp.compiled import build_info

LONG_ENOUGH_NS = 100_000_000
"""When the counter was watched for so long it is known how long a tick is, to a part in 10**5."""

N_ATTEMPTS = 20

_CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

_IS_COMPILED = build_info() == "compiled"


def _is_of_counter() -> bool:
    if not _IS_COMPILED or not _HAS_COUNTER:  # type: ignore[name-defined]  # noqa: F821
        return False
    with suppress(OSError):
        return Path(_CLOCK_SOURCE).read_text().strip() == "tsc"
    return False


_COUNTS = _is_of_counter()


def now_ns() -> int:
    """As `perf_counter_ns`, without an object where it is called by what is compiled."""
    if _IS_COMPILED:
        # What `perf_counter_ns` calls. A name of the .pxd alone, as Cython has no function that is
        # another one where it is not compiled.
        return _perf_counter_in_c()  # type: ignore[name-defined,no-any-return]  # noqa: F821
    return perf_counter_ns()


def ticks() -> int:
    """The moment, in ticks."""
    if _COUNTS:
        return _counter_in_c()  # type: ignore[name-defined,no-any-return]  # noqa: F821
    return now_ns()


def is_counter() -> bool:
    """Whether a tick is one of the processor's counter; otherwise it is a nanosecond."""
    return bool(_COUNTS)


def look_at_both(other: Callable[[], int] = ticks) -> tuple[int, int]:
    """One moment by `now_ns` and by another clock: the looks with the least between them."""
    found = []
    for _ in range(N_ATTEMPTS):
        before = now_ns()
        at = other()
        found.append((now_ns() - before, before, at))
    _, ns, at = min(found)
    return ns, at


class TickLength:
    """How long a tick is: by the clock of the system, since this was made.

    Once it is known it stays, so that what was counted never seems to get less.
    """

    __slots__ = ("_began", "_ns")

    def __init__(self) -> None:
        self._began = look_at_both()
        self._ns = 0.0 if _COUNTS else 1.0
        """Of one tick; 0 as long as it is not known well."""

    def ns_of(self, n_ticks: int) -> int:
        """So many ticks in nanoseconds.

        >>> length, began, began_ns = TickLength(), ticks(), now_ns()
        >>> while now_ns() < began_ns + 1_000_000: pass
        >>> 0.9e6 < length.ns_of(ticks() - began) < 1e9
        True
        """
        if self._ns:
            return int(n_ticks * self._ns)
        (began_ns, began), (ns, at) = self._began, look_at_both()
        length = (ns - began_ns) / (at - began)
        if ns - began_ns > LONG_ENOUGH_NS:
            self._ns = length
        return int(n_ticks * length)


TICK = TickLength()
"""That of this process."""
