"""Planting a bug into the source text of a module, for the length of a `with`.

The text of the whole module is changed and compiled, and the function in which the change
lies is given the code that came of it: so whatever has imported the function, or is bound to
it, has the bug too, and line numbers stay. A text that is not found exactly once, or that is
in no function, is a `StalePlanting`: the module has changed, and the mutant has to follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import getattr_static
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any


class StalePlanting(Exception):
    """The text that a mutant changes is not in its module any more, or several times."""


@dataclass(frozen=True)
class Planting:
    """A change of a module's text."""

    module: str
    old: str
    """Occurs once in the text, in the body of a function."""
    new: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have the change, until the end of the `with`."""
        with ExitStack() as undo:
            for function, code in self._changed():
                undo.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = code
            yield

    def _changed(self) -> list[tuple[FunctionType, CodeType]]:
        """The functions that the change is in, with their new code: one, as a rule."""
        module = import_module(self.module)
        path = Path(str(module.__file__))
        text = path.read_text()
        if text.count(self.old) != 1:
            raise StalePlanting(
                f"{self.module} has {text.count(self.old)} times what a mutant changes, and "
                f"should have it once: {self.old!r}"
            )
        before = _functions(compile(text, str(path), "exec"))
        after = _functions(compile(text.replace(self.old, self.new), str(path), "exec"))
        names = [name for name, code in after.items() if code != before.get(name)]
        found = [(_function(module, name), after[name]) for name in names]
        if not found:
            raise StalePlanting(f"{self.module}: not in a function, or no change: {self.new!r}")
        return found


def _functions(code: CodeType, prefix: str = "") -> dict[str, CodeType]:
    """The functions and methods of a module, by qualified name."""
    found = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            name = f"{prefix}{inner.co_name}"
            # Bodies of classes are executed, and have no variables of their own to be fast.
            if inner.co_flags & 0x2:
                found[name] = inner
            else:
                found |= _functions(inner, f"{name}.")
    return found


def _function(module: Any, name: str) -> FunctionType:
    found = module
    for part in name.split("."):
        found = getattr_static(found, part)
    while True:
        slots = ("__wrapped__", "fget", "__func__")
        inner = next((i for slot in slots if (i := getattr(found, slot, None)) is not None), None)
        if inner is None:
            break
        found = inner
    assert isinstance(found, FunctionType), found
    return found
