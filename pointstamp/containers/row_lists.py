"""The loops of a hash index of rows: lists of records by key, filled and looked up.

Knows nothing of NaNs but that a key with one is not kept, so that nothing finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pointstamp.containers.key_hashes import is_its_own_key
from pointstamp.containers.keys import has_nan


def keep_rows(
    lists: dict[Any, list[tuple[Any, Any]]], keys: list[Any], records: list[Any], time: Any
) -> None:
    """Put each record, and the time at which it came, into the list of its key."""
    for i in range(len(keys)):
        key = keys[i]
        if not is_its_own_key(key) and has_nan(key):
            continue
        kept = lists.get(key)
        if kept is None:
            lists[key] = [(time, records[i])]
        else:
            kept.append((time, records[i]))


def matching_rows(
    lists: dict[Any, list[tuple[Any, Any]]],
    keys: list[Any],
    records: list[Any],
    arrive: Callable[[Any], Any],
) -> dict[Any, tuple[list[Any], list[Any]]]:
    """By the time of the pair, `arrive` of that of what was kept: records, and those kept."""
    found: dict[Any, tuple[list[Any], list[Any]]] = {}
    of_times: dict[Any, tuple[list[Any], list[Any]]] = {}
    last = lists
    for i in range(len(keys)):
        kept = lists.get(keys[i])
        if kept is None:
            continue
        record = records[i]
        for item in kept:
            time = item[0]
            if time is not last:
                last = time
                pairs = of_times.get(time)
                if pairs is None:
                    pairs = found.setdefault(arrive(time), ([], []))
                    of_times[time] = pairs
                own, others = pairs
            own.append(record)
            others.append(item[1])
    return found
