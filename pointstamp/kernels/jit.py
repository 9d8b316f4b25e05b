"""Compiles kernels when they are first called, or runs their plain twins.

Importing Numba takes longer than many programs run, so decorating a function
costs nothing here and the first call pays. Compiled code is cached on disk, so
that it pays once per machine.

    @kernel(plain=_sum_plain)
    def sum_of(values: npt.NDArray[np.int64]) -> int: ...

A kernel may call kernels, of its own file or imported: before it is compiled,
the kernels among its globals are, and take their places. Numba's disk cache
notices a changed file but not a changed callee or constant in another file, so
the cache's name of a kernel carries a digest of those.

`POINTSTAMP_NUMBA=0` (read at the first call of each kernel) runs the plain
twins. A helper that is called by kernels alone has no twin: it is its own.

Knows nothing of what the kernels compute.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import threading
import types
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

# Re-entrant, because compiling a kernel compiles those that it calls.
_preparing = threading.RLock()


def numba_wanted() -> bool:
    """Whether kernels are to be compiled: `POINTSTAMP_NUMBA` is not 0, and Numba is there."""
    return os.environ.get("POINTSTAMP_NUMBA", "1") != "0" and _numba() is not None


@functools.cache
def _numba() -> Any:
    try:
        return importlib.import_module("numba")
    except ImportError:
        return None


class Kernel(Generic[P, R]):
    """A function that is compiled on its first call; made by `kernel`.

    Attributes
    ----------
    function : the Python source of the compiled form.
    plain : the twin in NumPy, with the same arguments and result.
    """

    def __init__(self, function: Callable[P, R], plain: Callable[P, R] | None) -> None:
        self.function = function
        self.plain: Callable[P, R] = plain or function
        self._compiled: Any = None
        self._run: Callable[P, R] | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the compiled form, or the plain twin where there is none."""
        run = self._run or self._prepare()
        try:
            return run(*args, **kwargs)
        except OSError:
            # Numba compiles before it runs, so nothing has happened yet but
            # that the compiled code could not be written (disk full, gone).
            return self._prepare(cache=False)(*args, **kwargs)

    def compiled(self, cache: bool = True) -> Any:
        """Numba's form of this kernel; ImportError where Numba is not installed."""
        with _preparing:
            if self._compiled is None or not cache:
                self._compiled = _njit(self._linked(), cache)
            return self._compiled

    def compile(self, form: str) -> None:
        """Compile, or load, for arguments of the given types, without a call.

        `form` has a word per argument: `int`, `bool`, or the code of an array's dtype as
        NumPy has it, `i8`, and its dimension if it is not 1, `i8.2`; in capitals if it is
        read-only, as `hashing.contiguous` makes it.
        """
        self.compiled().compile(tuple(map(_type_of, form.split())))

    @property
    def forms(self) -> set[str]:
        """What it has been compiled for in this process, as `compile` has it."""
        signatures = [] if self._compiled is None else self._compiled.signatures
        return {" ".join(map(_word_of, types)) for types in signatures}

    @property
    def n_compiled(self) -> int:
        """How many forms had to be compiled in this process, since no cache had them."""
        return 0 if self._compiled is None else sum(self._compiled.stats.cache_misses.values())

    def digest(self) -> str:
        """A short name for the code of this kernel, its constants and its callees."""
        seen = hashlib.blake2b(digest_size=6)
        for part in _parts(self.function):
            seen.update(repr(part).encode())
        return seen.hexdigest()

    def _prepare(self, cache: bool = True) -> Callable[P, R]:
        with _preparing:
            if self._run is None or not cache:
                self._run = self.compiled(cache) if numba_wanted() else self.plain
            return self._run

    def _linked(self) -> Callable[P, R]:
        """The function with compiled kernels in place of those that it calls."""
        source = _as_function(self.function)
        names = _global_names(source)
        callees = {name: value for name, value in names.items() if isinstance(value, Kernel)}
        if not names:
            return self.function
        linked = types.FunctionType(
            source.__code__,
            {**source.__globals__, **{name: k.compiled() for name, k in callees.items()}},
            source.__name__,
            source.__defaults__,
            source.__closure__,
        )
        linked.__qualname__ = f"{source.__qualname__}_{self.digest()}"
        linked.__module__ = source.__module__
        return linked


@overload
def kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def kernel(*, plain: Callable[P, R] | None = None) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(function: Any = None, /, *, plain: Any = None) -> Any:
    """Make a function a kernel: compiled without the interpreter lock, and cached.

    Parameters
    ----------
    plain
        The twin, a function of the same arguments in NumPy. Without it the
        function itself is run where Numba is not, which suits small helpers.

    >>> @kernel
    ... def doubled(n: int) -> int:
    ...     return 2 * n
    >>> doubled.plain(21)
    42
    """
    if function is not None:
        return Kernel(function, plain)
    return lambda function: Kernel(function, plain)


def _njit(function: Callable[..., Any], cache: bool) -> Any:
    numba = importlib.import_module("numba")
    try:
        return numba.njit(nogil=True, cache=cache)(function)
    except RuntimeError:
        # No directory that the cache could be in, neither the package's nor the user's.
        return numba.njit(nogil=True)(function)


_SCALARS = {"int": "int64", "bool": "boolean"}


def _type_of(word: str) -> Any:
    """Numba's type for a word of a form."""
    numba = _numba()
    if word in _SCALARS:
        return getattr(numba.types, _SCALARS[word])
    code, _, dimension = word.partition(".")
    item = numba.from_dtype(np.dtype(code.lower()))
    return numba.types.Array(item, int(dimension or 1), "C", readonly=code.isupper())


def _word_of(numba_type: Any) -> str:
    """The word of a form for Numba's type; of what no form has, its own name."""
    if not hasattr(numba_type, "dtype"):
        return next((w for w, name in _SCALARS.items() if name == numba_type.name), numba_type.name)
    code = np.dtype(str(numba_type.dtype)).str[1:]
    code = code if numba_type.mutable else code.upper()
    return code if numba_type.ndim == 1 else f"{code}.{numba_type.ndim}"


def _as_function(function: Callable[..., Any]) -> types.FunctionType:
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"a kernel is made of a Python function, not of {function!r}")
    return function


def _global_names(function: types.FunctionType) -> dict[str, Any]:
    """The kernels and numbers among the globals that `function` names."""
    found = function.__globals__
    named = {name: found[name] for name in function.__code__.co_names if name in found}
    return {
        name: value
        for name, value in named.items()
        if isinstance(value, (Kernel, int, float)) or hasattr(value, "dtype")
    }


def _parts(function: Callable[..., Any]) -> list[object]:
    """What the compiled form of `function` depends on."""
    source = _as_function(function)
    code = source.__code__
    parts: list[object] = [code.co_code, code.co_names]
    parts += [const for const in code.co_consts if not isinstance(const, types.CodeType)]
    for name, value in _global_names(source).items():
        parts.append((name, value.digest() if isinstance(value, Kernel) else value))
    return parts
