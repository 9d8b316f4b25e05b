"""Functions of texts and binaries, through Arrow: numbers of the dictionary in, numbers out.

Each is computed once for each distinct text of a batch, however many records have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.words import BOOLEAN, LONG, STRING, TextType, WordType
from pointstamp.errors import BuildError

Ints = npt.NDArray[np.int64]
Column = npt.NDArray[Any]


def of_texts(name: str, kind: TextType, given: tuple[Any, ...]) -> Callable[[Ints], Column]:
    """The function of that name: of numbers, int64[n], to numbers, longs, or booleans, [n].

    given : its other arguments
    """
    function = _FUNCTIONS[name]

    def compute(numbers: Ints) -> Column:
        import pyarrow as pa

        distinct, places = np.unique(numbers, return_inverse=True)
        texts = pa.array(TEXTS.values(distinct.tolist()), pa.binary()).cast(kind.arrow())
        found = function(texts, *given)
        return _values_of(found)[places]

    return compute


def result_of(name: str, kind: TextType) -> WordType:
    """The type of what the function of that name gives of texts of a type."""
    if name in ("like", "starts_with", "ends_with", "contains"):
        return BOOLEAN
    return LONG if name == "length" else kind


def check_arguments(name: str, given: tuple[Any, ...]) -> None:
    """Refuse arguments that are no text, or no place.

    Raises
    ------
    BuildError
    """
    if name == "slice":
        start, length = given
        if not _is_integer(start) or not (length is None or (_is_integer(length) and length >= 0)):
            raise BuildError(
                f"slice is given {start!r} and {length!r}, and needs an integer, where to begin, "
                "and how many characters, 0 or more"
            )
    elif not all(isinstance(one, str) for one in given):
        raise BuildError(f"{name} is given {given[0]!r}, and needs a text")


def joined_texts(one: Ints, other: Ints) -> Ints:
    """The numbers of texts with others behind them, int64[n] each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pairs, places = np.unique(np.stack([one, other]), axis=1, return_inverse=True)
    parts = [pa.array(TEXTS.values(numbers.tolist()), pa.binary()) for numbers in pairs]
    nothing: Any = b""
    return _values_of(pc.binary_join_element_wise(*parts, nothing))[places.ravel()]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _values_of(found: Any) -> Column:
    """An Arrow array without nulls as a column of expressions."""
    import pyarrow as pa

    if pa.types.is_boolean(found.type):
        return np.array(found.to_pylist(), np.bool_)
    if pa.types.is_integer(found.type):
        return found.to_numpy().astype(np.int64)  # type: ignore[no-any-return]  # of Arrow
    return np.array(TEXTS.numbers(found.cast(pa.binary()).to_pylist()), np.int64)


def _length(texts: Any) -> Any:
    import pyarrow.compute as pc

    is_text = texts.type == STRING.arrow()
    return pc.utf8_length(texts) if is_text else pc.binary_length(texts)


def _slice(texts: Any, start: int, length: int | None) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    stop = None if length is None else start + length
    if stop is not None and start < 0 <= stop:
        stop = None  # to the end, from which the start is counted
    if texts.type == STRING.arrow():
        return pc.utf8_slice_codeunits(texts, start, stop)
    # Arrow's own slice of binaries fails on empty ones (26.0).
    return pa.array([value[start:stop] for value in texts.to_pylist()], pa.binary())


def _arrow(name: str) -> Callable[..., Any]:
    """Arrow's function of that name, which is not imported before it is used."""

    def function(texts: Any, *given: str) -> Any:
        import pyarrow.compute as pc

        return getattr(pc, name)(texts, *given)

    return function


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "like": _arrow("match_like"),
    "starts_with": _arrow("starts_with"),
    "ends_with": _arrow("ends_with"),
    "contains": _arrow("match_substring"),
    "lower": _arrow("utf8_lower"),
    "upper": _arrow("utf8_upper"),
    "length": _length,
    "slice": _slice,
}
