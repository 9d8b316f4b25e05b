"""The loops of folds over rows: one look at each record, and two at what its key has.

Of the keyed operators these are all that is done for each record, but for the program's own
functions. Of columns the records are pairs already (`Kind.to_fold`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from pointstamp.containers.key_hashes import is_its_own_key
from pointstamp.containers.keys import check_rows_key, checked_pair
from pointstamp.containers.rows import found_key
from pointstamp.dataflow.error_policy import FAILED
from pointstamp.dataflow.handles import Session
from pointstamp.errors import DataError


class Nothing:
    """What a reduction starts from: the class itself, of which a copy is the same."""


_NONE_TO_SEND = ()
"""The one empty tuple that there is; what else is empty is found out when it is sent."""


def fold_rows(
    batch: list[Any],
    key: Any,
    fold: Callable[[Any, Any, Any], Any],
    aggregates: dict[Any, Any],
    default: Any,
    operator: str,
) -> None:
    """Fold each record into the aggregate of its key, which begins as a copy of `default`."""
    failed, nothing = FAILED, Nothing
    is_shared = deepcopy(default) is default
    for record in batch:
        pair = _pair_of(record, key, operator)
        of = pair[0]
        aggregate = aggregates.get(of, nothing)
        if aggregate is nothing:
            aggregate = default if is_shared else deepcopy(default)
        aggregate = fold(of, pair[1], aggregate)
        if aggregate is not failed:
            aggregates[of] = aggregate


def reduce_rows(
    batch: list[Any], key: Any, function: Callable[[Any, Any], Any], operator: str
) -> list[tuple[Any, Any]]:
    """A pair of key and value for each key."""
    check_rows_key(key, batch[0] if batch else None)
    values: dict[Any, Any] = {}
    nothing = Nothing
    for record in batch:
        pair = _pair_of(record, key, operator)
        of = pair[0]
        before = values.get(of, nothing)
        values[of] = pair[1] if before is nothing else function(before, pair[1])
    return list(values.items())


def reduction(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The fold of a reduction, which begins with `Nothing`."""
    nothing = Nothing

    def fold(of: Any, value: Any, so_far: Any) -> Any:
        return value if so_far is nothing else function(so_far, value)

    return fold


def take_turns(
    batch: Iterable[Any],
    key: Any,
    turn: Callable[[Any, Any, Any], Any],
    states: dict[Any, Any],
    default: Any,
    session: Session,
    operator: str,
    of_columns: bool,
) -> None:
    """Give each record its turn at the state of its key, and send what comes of it.

    Of columns these are pairs of a key and its records, and what comes of them is a batch.
    """
    failed, nothing = FAILED, Nothing
    is_shared = deepcopy(default) is default
    for record in batch:
        pair = _pair_of(record, key, operator)
        of = pair[0]
        state = states.get(of, nothing)
        if state is nothing:
            state = default if is_shared else deepcopy(default)
        turned = turn(of, pair[1], state)
        if turned is failed:
            states[of] = state  # which may have been changed in place
            continue
        state, answers = checked_turn(turned, of, operator)
        if state is None:
            states.pop(of, None)
        else:
            states[of] = state
        if answers is None:
            continue
        if of_columns:
            session.give_batch(answers)
        elif answers is not _NONE_TO_SEND:
            _give(session, answers, of, operator)


def checked_turn(turned: Any, of: Any, operator: str) -> Any:
    """What a fold gave, if that is a state and what to send."""
    if not isinstance(turned, (tuple, list)) or len(turned) != 2:
        raise DataError(
            f"{operator}: the function gave {turned!r:.200} for the key {of!r:.200}; give (state, "
            "records to send): None forgets the key, and [] sends nothing"
        )
    return turned


def _give(session: Session, answers: Any, of: Any, operator: str) -> None:
    """Send each of what a fold gave; refuse it if it is no iterable."""
    try:
        session.give_many(answers)
    except TypeError:
        if not hasattr(type(answers), "__iter__"):
            raise DataError(
                f"{operator}: the function gave {answers!r:.200} to be sent for the key "
                f"{of!r:.200}; give an iterable of records, such as a list: [] sends nothing"
            ) from None
        raise


def _pair_of(record: Any, key: Any, operator: str) -> tuple[Any, Any]:
    """The key and the value of a record: it is a pair of them, or `key` is a function of it."""
    if key is None:
        if type(record) is tuple and len(record) == 2 and is_its_own_key(record[0]):
            return record
        return checked_pair(record, operator)
    return (found_key(key(record)), record)
