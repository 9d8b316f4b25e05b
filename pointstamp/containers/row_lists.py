"""The loops over rows that make lists of records by key, and look them up.

What is found by its key knows nothing of NaNs but that a key with one is not kept, so that nothing
finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pointstamp.containers.key_hashes import is_its_own_key
from pointstamp.containers.keys import has_nan, hashable_key


def is_without_partner(key: Any) -> bool:
    """Whether nothing equals a key, as it has a NaN."""
    return not is_its_own_key(key) and has_nan(key)


def add_to_list(lists: dict[Any, list[Any]], key: Any, item: Any) -> None:
    """Put one more item into the list of a key."""
    items = lists.get(key)
    if items is None:
        lists[key] = [item]
    else:
        items.append(item)


def keep_rows(
    lists: dict[Any, list[tuple[Any, Any]]], keys: list[Any], records: list[Any], time: Any
) -> None:
    """Put each record, and the time at which it came, into the list of its key."""
    for i in range(len(keys)):
        key = keys[i]
        if not is_without_partner(key):
            add_to_list(lists, key, (time, records[i]))


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


def joined_rows(
    left: list[Any],
    left_keys: list[Any],
    right: list[Any],
    right_keys: list[Any],
    keeps_left: bool,
    keeps_right: bool,
) -> list[tuple[Any, Any]]:
    """The pairs of two batches, and of each side that is kept what has no partner, beside None."""
    places: dict[Any, list[int]] = {}
    for i in range(len(right_keys)):
        key = right_keys[i]
        if not is_without_partner(key):
            add_to_list(places, key, i)
    has_partner = [False] * len(right)
    found: list[tuple[Any, Any]] = []
    for i in range(len(left_keys)):
        key, record = left_keys[i], left[i]
        of_key = None if is_without_partner(key) else places.get(key)
        if of_key is not None:
            for place in of_key:
                found.append((record, right[place]))
                has_partner[place] = True
        elif keeps_left:
            found.append((record, None))
    if keeps_right:
        found += [(None, right[i]) for i in range(len(right)) if not has_partner[i]]
    return found


def rows_with_partners(
    left: list[Any], left_keys: list[Any], right_keys: list[Any], has: bool
) -> list[Any]:
    """The records of the left side whose key is one of the right side's; or the others."""
    known = set(right_keys)
    found: list[Any] = []
    for i in range(len(left_keys)):
        key = left_keys[i]
        if (not is_without_partner(key) and key in known) == has:
            found.append(left[i])
    return found


def rows_with_values(batch: list[Any], by: Any, key: Any) -> dict[Any, list[Any]]:
    """By key, each record after its value, in one list; not those whose value is None or NaN.

    Pairs would be objects, of which the garbage collector looks at each.

    by : of the value, None: the record itself · key : None: there is one, which is None
    """
    groups: dict[Any, list[Any]] = {}
    of = None
    for record in batch:
        value = record if by is None else by(record)
        if value is None or value != value:
            continue
        if key is not None:
            of = key(record)
            if not is_its_own_key(of):
                of = hashable_key(of)
        group = groups.get(of)
        if group is None:
            groups[of] = [value, record]
        else:
            group.append(value)
            group.append(record)
    return groups
