"""How a user's `build(scope, edges)` is called: its streams by name, or by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp.communication.target import deferred_form
from pointstamp.errors import BuildError

if TYPE_CHECKING:
    from pointstamp.operators.scope import Scope
    from pointstamp.operators.stream import Stream


def check_build(build: Callable[..., Any], names: Sequence[str]) -> None:
    """Raise `BuildError` for what is no function that builds a dataflow of these inputs."""
    if not callable(build):
        raise BuildError(
            "what builds a dataflow should be a function of a scope and the inputs "
            f"{', '.join(names) or '(none)'}, and is {build!r}"
        )
    form = deferred_form(build)
    if form is not None:
        raise BuildError(
            f"{name_of(build)} runs nothing when it is called, as it is {form}; what builds a "
            "dataflow is a plain function that returns its streams"
        )


def takes_names(build: Callable[..., Any], names: Sequence[str]) -> bool:
    """Whether `build` gets its inputs by name; else by position, in this order.

    Raises
    ------
    BuildError
        If it cannot be called with them either way.

    Examples
    --------
    >>> takes_names(lambda scope, edges: edges, ["edges"])
    True
    >>> takes_names(lambda scope, e: e, ["edges"])
    False
    """
    check_build(build, names)
    try:
        signature = inspect.signature(build)
    except ValueError:
        return False  # written in C, without a signature
    for by_name in (True, False):
        try:
            if by_name:
                signature.bind(None, **dict.fromkeys(names))
            else:
                signature.bind(None, *names)
        except TypeError as error:
            reason = error
        else:
            return by_name
    raise BuildError(
        f"{name_of(build)}{signature} cannot be called with a scope and "
        f"the inputs {', '.join(names) or '(none)'}: {reason}"
    )


def built(
    build: Callable[..., Any],
    scope: Scope,
    names: Sequence[str],
    streams: Sequence[Stream[Any]],
    by_name: bool,
) -> Any:
    """What `build` makes of a stream per name; `by_name` is what `takes_names` said."""
    if by_name:
        return build(scope, **dict(zip(names, streams, strict=True)))
    return build(scope, *streams)


def name_of(build: Callable[..., Any]) -> str:
    """What messages, logs and traces call the function: as the caller knows it.

    >>> name_of(partial(built, by_name=True))
    'built'
    """
    while isinstance(build, partial):
        build = build.func
    return getattr(build, "__qualname__", repr(build))
