"""Several streams that one method gives: a tuple, whose errors say to take it apart.

Most methods give one stream, so that they are chained; a chain breaks at one that gives two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

Made = TypeVar("Made", bound=tuple[Any, ...])


class SeveralStreams(tuple[Any, ...]):  # noqa: SLOT001 - a tuple has no room for more
    """What a method gives that gives more than a stream.

    >>> windows, late = made = SeveralStreams(["1st", "2nd"], ["windows", "late"])
    >>> windows
    '1st'
    >>> made.upper()
    Traceback (most recent call last):
    AttributeError: these are (windows, late), and not one stream, of which 'upper' would be: \
take them apart, as in `windows, late = ...`, and go on with windows.upper
    """

    _names: tuple[str, ...]
    _main: int
    _instead: Mapping[str, str]

    def __new__(
        cls,
        made: Iterable[Any],
        names: Sequence[str] = (),
        main: int = 0,
        instead: Mapping[str, str] | None = None,
    ) -> SeveralStreams:
        """Make it of what there is, under names.

        main : which of them most go on with
        instead : by the name of a method what was probably meant
        """
        several = super().__new__(cls, made)
        several._names = tuple(names)
        several._main = main
        several._instead = instead or {}
        return several

    def __getattr__(self, name: str) -> Any:
        """Say that it is several."""
        if name.startswith("_") or not self._names:
            raise AttributeError(f"'tuple' object has no attribute {name!r}", name=name, obj=self)
        raise self._no(name)

    def __repr__(self) -> str:
        """As errors have it that were given it in the place of a stream."""
        return f"several streams ({', '.join(self._names)})" if self._names else super().__repr__()

    def count(self, *value: Any) -> int:
        """How often a value is there, as of any tuple; without one it is that of a stream."""
        if not value and self._names:
            raise self._no("count")
        return super().count(*value)

    def _no(self, name: str) -> AttributeError:
        names = self._names
        listed = ", ".join(names)
        said = (
            f"these are ({listed}), and not one stream, of which {name!r} would be: take them "
            f"apart, as in `{listed} = ...`"
        )
        if name in self._instead:
            return AttributeError(f"{said}; {self._instead[name]}")
        has_it = hasattr(self[self._main], name)
        return AttributeError(
            f"{said}, and go on with {names[self._main]}.{name}" if has_it else said
        )


def several(
    made: Made,
    names: Sequence[str],
    main: int = 0,
    instead: Mapping[str, str] | None = None,
) -> Made:
    """The same, to a type checker the tuple that is given."""
    found: Any = SeveralStreams(made, names, main, instead)
    answer: Made = found
    return answer
