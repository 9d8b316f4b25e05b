"""The two forms of a kernel: a loop that Cython compiles, and its plain twin in NumPy.

    @kernel("graph_loops")
    def sum_lists(begins: Ints, ends: Ints, others: Numbers, values: Floats) -> Floats: ...

What is written here is the twin: it says what the kernel does, it is what the tests compare
the loop with, and it runs where nothing is compiled. Where the core is compiled
(`pointstamp.build_info`), the function of the same name in `graph_loops.pyx` takes its place,
with the twin as its attribute `plain`.

Loops take arrays that are contiguous and of the very dtype, and release the interpreter lock;
they do not look whether an index is in range, as their callers made it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from pointstamp.compiled import build_info

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


def kernel(loops: str) -> Callable[[F], F]:
    """Have the compiled function of the same name in the module `loops` run in place of a twin.

    >>> import numpy as np
    >>> from pointstamp.kernels.sums import sum_lists
    >>> lists = np.array([0, 2]), np.array([2, 3]), np.array([1, 2, 0], np.int32)
    >>> sum_lists(*lists, np.array([1.0, 2.0, 4.0])).tolist()
    [6.0, 1.0]
    >>> sum_lists.plain(*lists, np.array([1.0, 2.0, 4.0])).tolist()
    [6.0, 1.0]
    """

    def choose(plain: F) -> F:
        compiled = _compiled(loops)
        function: Any = plain if compiled is None else getattr(compiled, plain.__name__)
        if compiled is not None:
            functools.update_wrapper(function, plain)
        function.plain = plain
        chosen: F = function
        return chosen

    return choose


def class_of(loops: str, plain: type[C]) -> type[C]:
    """The compiled form of a class, named as its twin without "Plain"; the twin where it is not.

    Of loops over what stays from call to call in memory of its own.
    """
    compiled = _compiled(loops)
    chosen: type[C] = (
        plain if compiled is None else getattr(compiled, plain.__name__.removeprefix("Plain"))
    )
    return chosen


def _compiled(loops: str) -> Any:
    if build_info() != "compiled":
        return None
    return importlib.import_module(f"pointstamp.kernels.{loops}")
