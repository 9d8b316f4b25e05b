"""Searches that led to a click, in sessions. After Bytewax's `examples/search_session.py`."""

from collections.abc import Iterator
from typing import Any

import pointstamp as ps

EVENTS = [  # user, second, what, of what
    (1, 0, "open", None),
    (1, 1, "search", "dogs"),
    (1, 3, "click", "rover"),
    (1, 4, "search", "cats"),
    (1, 6, "click", "fluffy"),
    (2, 7, "open", None),
    (2, 9, "search", "fruit"),
    (1, 10, "close", None),
    (2, 11, "close", None),
]


def searches(session: ps.Window[int, Any]) -> Iterator[tuple[int, str, bool]]:
    """Of each search of a session: the user, the words, and whether a click followed."""
    found: dict[str, bool] = {}
    last = None
    for _, _, what, of in sorted(session.records, key=lambda event: event[1]):
        if what == "search":
            last, found[of] = of, False
        elif what == "click" and last is not None:
            found[last] = True
    return ((session.key, words, clicked) for words, clicked in found.items())


def clicks(scope: ps.Scope) -> Any:
    events = scope.to_stream(EVENTS)
    sessions, _ = events.window(ps.Sessions(5), lambda event: event[1], lambda event: event[0])
    return sessions.flat_map(searches)


def main() -> None:
    for _, (user, words, clicked) in ps.testing.collect(clicks):
        print(user, words, clicked)


if __name__ == "__main__":
    main()
