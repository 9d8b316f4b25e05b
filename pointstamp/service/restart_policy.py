"""How often a service starts its workers again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pointstamp.errors import UsageError


@dataclass(frozen=True)
class RestartPolicy:
    """How often, and with what delay, a service restarts its workers when one is lost.

    Attributes
    ----------
    attempts : int
        How many times within `within_s`; beyond that the service ends with the first cause.
    within_s : float
        Seconds. An earlier restart does not count any more.
    delay_s : float
        How long to wait before each but the first, in seconds: what was lost by chance is back at
        once, and what is lost again and again does not have the machine at work.

    Examples
    --------
    >>> RestartPolicy(attempts=5, within_s=60.0)
    RestartPolicy(attempts=5, within_s=60.0, delay_s=1.0)
    """

    attempts: int = 3
    within_s: float = 600.0
    delay_s: float = 1.0

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            raise UsageError(
                f"attempts= of a RestartPolicy is a number of at least 1, and not "
                f"{self.attempts!r}; restart=None never starts workers again"
            )
        for name in ("within_s", "delay_s"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise UsageError(
                    f"{name}= of a RestartPolicy is a number of seconds, and not {value!r}"
                )


DEFAULT_RESTART = RestartPolicy()


def check_restart(restart: Any) -> None:
    """Raise `UsageError` unless this is a policy, or None."""
    if restart is not None and not isinstance(restart, RestartPolicy):
        raise UsageError(f"restart= is a RestartPolicy, or None for never, and not {restart!r}")
