"""What in this process may hold numbers of texts, and does not say which.

While there is any, the dictionary of texts is not swept (`text_sweep.py`). It is each worker,
whatever it runs, until it ends, a view answers for it, or it has a collection and answers for
itself. Only the standard library is imported here: every worker begins with this.
"""

from __future__ import annotations

import weakref

_USERS: weakref.WeakSet[TextUser] = weakref.WeakSet()


class TextUser:
    """One of them, as long as it lives and has not ended.

    >>> before = n_users()
    >>> user = TextUser()
    >>> n_users() - before
    1
    >>> user.end()
    >>> n_users() - before
    0
    """

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        _USERS.add(self)

    def end(self) -> None:
        """It holds none any more, or something else answers for it. Again is as once."""
        _USERS.discard(self)


def n_users() -> int:
    """How many there are."""
    return len(_USERS)
