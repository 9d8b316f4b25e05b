"""Which sinks of a run are written to: two that are one to the outside would lose records.

Whatever a sink writes to knows what is committed by the run, the epoch, the worker, and what the
sink is called there. Of two sinks that agree in all of these the second one finds its epochs
committed, or writes over those of the first.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakValueDictionary

from pointstamp.errors import SinkError

_WRITERS: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
"""By run, worker and what the sink is called: the writer, while it is there."""

_LOCK = threading.Lock()


def claim(writer: Any, context: Any, called: tuple[Any, ...], refusal: str) -> None:
    """Have a writer be the only one of its run and worker that writes to a place.

    Parameters
    ----------
    called : tuple
        By what the place knows the sink.
    refusal : str
        What to say of a second one.

    Raises
    ------
    SinkError
        If there is another one.

    >>> import pointstamp as ps
    >>> class Writer: pass
    >>> one, other = Writer(), Writer()
    >>> claim(one, ps.SinkContext(0, 2, "run"), ("totals",), "totals is written to already")
    >>> claim(other, ps.SinkContext(1, 2, "run"), ("totals",), "totals is written to already")
    >>> try:
    ...     claim(other, ps.SinkContext(0, 2, "run"), ("totals",), "totals is written to already")
    ... except SinkError as error:
    ...     print(error)
    totals is written to already
    """
    key = (context.run, context.index, *called)
    with _LOCK:
        if _WRITERS.get(key, writer) is not writer:
            raise SinkError(refusal)
        _WRITERS[key] = writer


def release(writer: Any) -> None:
    """Let others write to the places of a writer that is closed, though something still holds it.

    As the traceback of an error does, which a notebook keeps, and in which the program is begun
    again.

    >>> import pointstamp as ps
    >>> class Writer: pass
    >>> one, other, context = Writer(), Writer(), ps.SinkContext(0, 2, "run")
    >>> claim(one, context, ("closed",), "closed is written to already")
    >>> release(one)
    >>> claim(other, context, ("closed",), "closed is written to already")
    """
    with _LOCK:
        for key in [key for key, other in _WRITERS.items() if other is writer]:
            del _WRITERS[key]
