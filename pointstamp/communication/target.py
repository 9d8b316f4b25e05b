"""A worker's target: the function that it runs, between its start and its end."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from pointstamp.communication.communicator import Communicator
from pointstamp.errors import UsageError

Result = TypeVar("Result")
Target = Callable[[Communicator], Result]


def run_target(communicator: Communicator, target: Target[Result]) -> Result:
    """Run `target(communicator)`; close the communicator after it, or abort it.

    For communicators that were made by other means than `launch`: peers see this
    worker's end as a goodbye exactly where it has a result.
    """
    try:
        result = run_in_process(target, communicator)
        communicator.close()
    except BaseException as cause:
        communicator.abort(cause)
        raise
    return result


def run_in_process(function: Callable[..., Result], *args: Any) -> Result:
    """Call `function(*args)`; a process that was forked off inside of it ends with it.

    Such a process has the sockets and the memory of the worker, and would go on as a second
    one of the same number: its result, or its failure, is not the worker's.

    >>> run_in_process(max, 3, 7)
    7
    """
    process = os.getpid()
    try:
        result = function(*args)
    except BaseException as error:
        if os.getpid() != process:
            _end_fork(error)
        raise
    if os.getpid() != process:
        _end_fork(None)
    return result


def _end_fork(error: BaseException | None) -> NoReturn:
    """End a process that was forked off, as Python would: with its status, and its output."""
    status = 0
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        traceback.print_exception(error)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)


def check_workers(workers: Any) -> None:
    """Refuse a number of workers that cannot be."""
    if type(workers) is not int or workers < 1:
        raise UsageError(f"a computation needs at least one worker; {workers!r} were asked for")


def check_main(main: Callable[..., Any]) -> None:
    """Refuse what is no function, and one that does nothing when it is called.

    Raises
    ------
    UsageError
        For what cannot be called, for `async def`, and for a function with `yield`.
    """
    if not callable(main):
        raise UsageError(f"a worker needs a function to call, main(worker), and not {main!r}")
    form = deferred_form(main)
    if form is not None:
        remedy = "return, and do not yield, its result" if form == GENERATOR else _RUN_LOOP
        raise _refusal(main, f"is {form}", remedy)


def deferred_form(function: Callable[..., Any]) -> str | None:
    """What a function is that runs nothing when it is called; None if it runs.

    >>> deferred_form(lambda: (yield)), deferred_form(print)
    ('a generator', None)
    """
    while isinstance(function, functools.partial):
        function = function.func
    forms = (function, inspect.getattr_static(type(function), "__call__", None))
    for is_form, form in (
        (inspect.iscoroutinefunction, "an async function"),
        (inspect.isasyncgenfunction, "an asynchronous generator"),
        (inspect.isgeneratorfunction, GENERATOR),
    ):
        if any(map(is_form, forms)):
            return form
    return None


def check_result(main: Callable[..., Any], result: Any) -> None:
    """Refuse a result that shows that `main` only made something that was not run."""
    if inspect.iscoroutine(result):
        result.close()  # it is not forgotten, but refused
        raise _refusal(main, "returned a coroutine", _RUN_LOOP)
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise _refusal(main, "returned a generator", "return a list of what it yields")


GENERATOR = "a generator"
_RUN_LOOP = "make it a plain function, which may call asyncio.run"


def _refusal(main: Callable[..., Any], found: str, remedy: str) -> UsageError:
    name = getattr(main, "__qualname__", None) or repr(main)
    return UsageError(f"{name} {found}, of which a call by a worker runs nothing: {remedy}")
