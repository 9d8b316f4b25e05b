"""What `worker.dataflow()` gives: a block of `with`, which says so where it is used otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec

from pointstamp.errors import BuildError, UsageError
from pointstamp.operators.scope import Scope

P = ParamSpec("P")


class DataflowBlock(AbstractContextManager[Scope]):
    """A dataflow that is built in a `with` block; it is not the scope yet."""

    def __init__(self, block: AbstractContextManager[Scope]) -> None:
        self._block = block

    def __enter__(self) -> Scope:
        return self._block.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._block.__exit__(kind, error, traceback)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"worker.dataflow() is to be opened, and has no attribute {name!r}: write "
            "`with worker.dataflow() as scope:`, and build with that scope in the block"
        )


def in_with_block(
    build: Callable[P, Iterator[Scope]],
) -> Callable[P, AbstractContextManager[Scope]]:
    """`contextmanager`, for a method that gives a scope."""
    make = contextmanager(build)

    @wraps(build)
    def begin(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[Scope]:
        name: object = args[1] if len(args) > 1 else kwargs.get("name")
        if callable(name):  # as in Rust's timely; it would never be called
            raise BuildError(
                f"worker.dataflow() is given {name!r}, and calls no function: write "
                "`with worker.dataflow() as scope:`, and build with that scope in the block"
            )
        return DataflowBlock(make(*args, **kwargs))

    return begin


def check_condition(condition: Any) -> None:
    """Refuse for `step_while` what cannot be asked again after each step."""
    if not callable(condition):
        raise UsageError(
            f"step_while() is given {condition!r}, and needs a function, which it calls before "
            "each step: step_while(lambda: probe.less_than(input.time))"
        )
