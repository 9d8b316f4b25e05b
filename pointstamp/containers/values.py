"""Hashable values of Python as words: numbers of the dictionary, which has a value as it is.

Equal values are one, by Python's `==` and `hash`, of which the first that the process saw stands
for all: 1, 1.0 and True, as in a set; but a named tuple for the tuple that equals it. What is
exchanged goes by a hash that is the same in every process (`keys.py`), and travels by pickle. All
NaN are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.keys import hash_key
from pointstamp.containers.words import WordType
from pointstamp.errors import DataError, KeyHashError, SchemaError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ValueType(WordType):
    """Values of any type that is hashable, with a hash that is the same on every worker."""

    is_text = True
    """As far as words go: they are numbers of the dictionary. They have no order."""

    def to_word(self, value: Any) -> int:
        """The number of the value, which is entered if it is new.

        Raises
        ------
        DataError
            If it has no stable hash.

        >>> ANY.to_word((1, "a")) == ANY.to_word((True, "a")), ANY.to_word(1) == ANY.to_word("1")
        (True, False)
        """
        try:
            number = TEXTS.number_of_known(value)
            return self._entered(value) if number is None else number
        except TypeError as error:
            raise DataError(f"{value!r} cannot be a record, or its key: {error}") from None

    def to_value(self, word: int) -> Any:
        """The value."""
        return TEXTS.value(word)

    def words(self, values: list[Any]) -> Ints:
        """The word of each value, int64[n]; raises as `to_word` does."""
        return np.array(list(map(self.to_word, values)), np.int64)

    def values(self, words: Ints) -> list[Any]:
        """The value of each word."""
        return TEXTS.values(words.tolist())

    def arrow(self) -> NoReturn:
        """Raises `SchemaError`: Arrow has no such columns."""
        raise SchemaError(
            "records without a schema are values of Python, of which there are no columns for "
            "Arrow, services and snapshots: map(function, schema) gives them some"
        )

    def words_of(self, column: Any) -> NoReturn:
        """Raises as `arrow` does."""
        self.arrow()

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> NoReturn:
        """Raises as `arrow` does."""
        self.arrow()

    def _entered(self, value: Any) -> int:
        try:
            hash_key(value)
        except KeyHashError as error:
            raise DataError(f"{value!r} cannot be a record, or its key: {error}") from None
        return TEXTS.number_of(value)


ANY = ValueType("any")
