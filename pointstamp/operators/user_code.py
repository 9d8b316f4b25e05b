"""Whether the code that an operator was given is code, and whether a call of it runs it.

Apart from the operators that run such code, as they import asyncio, which most programs
do without.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from pointstamp.containers.expressions import is_expression
from pointstamp.errors import BuildError, DataError

_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def is_async(function: Any) -> bool:
    """Whether `function` is an `async def`, with `yield` or without, or an object that calls one.

    >>> async def load(record): ...
    >>> is_async(load), is_async(len)
    (True, False)
    """
    if (
        type(function) is FunctionType and not function.__dict__
    ):  # most often, and said by its flags
        return bool(function.__code__.co_flags & _ASYNC)
    called = getattr(function, "__call__", None)  # noqa: B004  (it is the method that counts)
    return any(
        inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code)
        for code in (function, called)
    )


def refuse_generator(function: Any, operator: str, instead: str) -> None:
    """A call of a generator function runs none of it, and what it gives counts as true."""
    if inspect.isgeneratorfunction(function):
        raise BuildError(
            f"operator {operator!r} is given {function!r}, which has a yield: a call of it is a "
            f"generator, and runs nothing; {instead}"
        )


def refuse_deferred(function: Any, operator: str) -> None:
    """For operators that cannot wait: what an `async def` gives would count as true."""
    refuse_generator(function, operator, "return what it is to give")
    if is_async(function):
        raise BuildError(
            f"operator {operator!r} cannot wait for {function!r}, which is an async def; await it "
            "in a map before, and give an ordinary function here"
        )


def refuse_deferred_of(operator: str, *functions: Any) -> None:
    """`refuse_deferred`, of all that an operator is given."""
    for function in functions:
        refuse_deferred(function, operator)


def check_function(
    function: Any, operator: str, *, or_columns: bool = False, may_yield: bool = False
) -> None:
    """Refuse what is no function to be called, or with `or_columns` no column or expression."""
    if not or_columns or not (isinstance(function, str) or is_expression(function)):
        check_callable(function, operator, or_columns=or_columns)
        if not (may_yield and inspect.isgeneratorfunction(function)):
            refuse_deferred(function, operator)


def check_takes(function: Any, operator: str, *given: str) -> None:
    """Refuse a function that cannot be called with `given`, when the dataflow is built.

    Of a `def` and a lambda alone: what classes and compiled functions take cannot be seen at once.
    """
    if type(function) is not FunctionType:
        return
    code = function.__code__
    most = code.co_argcount
    least = most - len(function.__defaults__ or ())
    if least <= len(given) and (len(given) <= most or code.co_flags & inspect.CO_VARARGS):
        return
    takes = ", ".join(code.co_varnames[:most]) or "nothing"
    raise BuildError(
        f"operator {operator!r} calls its function with ({', '.join(given)}), and {function!r} "
        f"takes {takes}"
    )


def check_iterable(made: Any, function: Any, record: Any) -> None:
    """Refuse what a function gave if no records can be taken of it; called when that failed."""
    if hasattr(type(made), "__iter__") or hasattr(type(made), "__getitem__"):
        return
    given = "None" if made is None else f"{made!r:.100} ({type(made).__name__})"
    raise DataError(
        f"{function!r} is to give an iterable of records, such as a list, which is empty for none; "
        f"it gave {given} for {record!r:.200}"
    ) from None


def check_callable(function: Any, operator: str, *, or_columns: bool = False) -> None:
    """Refuse what cannot be called, when the dataflow is built."""
    if not callable(function):
        more = ", the name of a column or an Arrow expression" if or_columns else ""
        raise BuildError(
            f"operator {operator!r} needs a function{more}; found {function!r}{_hint(function)}"
        )


def _hint(function: Any) -> str:
    """What to write in place of an expression of a collection, which looks like one of Arrow."""
    if type(function).__module__.startswith("pointstamp.collections."):
        return (
            ", which is for collections; of a stream of columns write pyarrow.compute.field('name')"
        )
    return ""
