"""Whether what is to be the logic of an operator is code, and a call of it runs it."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from pointstamp.dataflow.handles import BuiltInLogic
from pointstamp.errors import BuildError

_DEFERRED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def check_code(make_logic: Any, name: str) -> None:
    """Refuse what cannot be called to make the logic."""
    if not callable(make_logic):
        raise BuildError(
            f"operator {name!r} is built with {make_logic!r:.200}: build() takes a function of its "
            "initial capabilities and its OperatorInfo, which returns its logic"
        )


def check_logic(logic: Any, name: str) -> None:
    """Refuse what cannot be called, and a function of which a call runs nothing.

    The records of an operator with such a logic would never be read, and its time never complete.
    """
    if isinstance(logic, BuiltInLogic):
        return
    if not callable(logic):
        raise BuildError(
            f"operator {name!r} is given {logic!r:.200} as its logic: return a function, which is "
            "called with its inputs and its outputs"
        )
    if type(logic) is FunctionType and logic.__code__.co_flags & _DEFERRED:
        raise BuildError(
            f"operator {name!r} is given {logic!r} as its logic, which has a yield or is an async "
            "def: a call of it runs nothing"
        )
