"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

LOOK_S = 0.02


def wait_for(condition: Callable[[], Any], limit_s: float = 60.0, what: str = "") -> Any:
    """What a condition gives, once it is something; fails after `limit_s`, saying `what`."""
    end = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(LOOK_S)
    return found
