"""Orders of records by several columns, each ascending or descending, as orders of their words.

Words have the order of their values, and turned round (`~`) the other one; nulls are before
all values. But the numbers of texts have no order. So a text is the words that it is in order by
(`containers/text_order.py`), and then its number. Seldom those words are also another text's; then
records are *alike* up to there, and are put in order by all bytes when they are read.

Rows are those of `kernels/consolidation.py`: some words that are as they are, those of a key,
then those in order, and a diff.

Words in order are those of this process, so records are put in order where they are kept.

Source: keys that compare by bytes are RocksDB's and FoundationDB's; a prefix beside a number is
Umbra's "German string".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.schema import Column, Schema, column_names
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.text_order import N_WORDS, TEXT_ORDER
from pointstamp.containers.updates import Rows
from pointstamp.errors import BuildError
from pointstamp.kernels.matches import read_groups

Ints = npt.NDArray[np.int64]

ALL = (1 << 63) - 1
"""More copies than there are."""

_LEAST = -(1 << 63)


def check_most(k: Any, name: str) -> None:
    """Raise `BuildError` unless `k` may be how many records of a group come first."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= ALL:
        raise BuildError(
            f"operator {name!r} is given k={k!r}, and should be given 1 or more, of 64 bits"
        )


@dataclass(frozen=True)
class _Text:
    """A text among the words in order: those that it is in order by, then its number."""

    place: int
    turned: bool

    @property
    def number(self) -> int:
        """Where its number is."""
        return self.place + N_WORDS


class WordOrder:
    """An order of rows by columns.

    Parameters
    ----------
    n_before : int
        How many words of a row stay as they are: the key's.
    columns : sequence of (Column, bool)
        What the words behind those are, and whether the greatest comes first.

    >>> from pointstamp.containers.words import STRING
    >>> from pointstamp.kernels.consolidation import consolidate
    >>> order = WordOrder(0, [(Column("t", STRING), False)])
    >>> rows = np.array([[number, 1] for number in TEXTS.numbers([b"tea", b"ink"])])
    >>> in_order = order.sorted(consolidate(order.encode(rows)))
    >>> TEXTS.values(order.decode(in_order)[:, 0].tolist())
    [b'ink', b'tea']
    """

    def __init__(self, n_before: int, columns: Sequence[tuple[Column, bool]]) -> None:
        self.n_before = n_before
        self._sources: list[tuple[int, int]] = []
        """Of each word that is given: where it is from, and goes to."""
        self._turned: list[int] = []
        self._texts: list[_Text] = []
        source, place = n_before, n_before
        for column, descending in columns:
            begin = place
            if column.nullable:
                self._sources.append((source, place))
                source, place = source + 1, place + 1
            if column.type.is_text:
                self._texts.append(_Text(place, descending))
                place += N_WORDS
            if descending:
                self._turned += range(begin, place if column.type.is_text else place + 1)
            self._sources.append((source, place))
            source, place = source + 1, place + 1
        self.n_given = source
        """How many words a row has that is not in order."""
        self.n_words = place
        """How many it has in order."""
        self._is_plain = not self._turned and not self._texts
        self._from = np.array([*range(n_before), *(s for s, _ in self._sources), source])
        self._to = np.array([*range(n_before), *(p for _, p in self._sources), place])

    @property
    def texts(self) -> tuple[int, ...]:
        """Which of the words in order are numbers of texts."""
        return tuple(text.number for text in self._texts)

    def held_texts(
        self, batches: Iterable[Rows], key_texts: Iterable[int]
    ) -> list[tuple[Rows, tuple[int, ...]]]:
        """Of rows in order: which of their words are numbers of texts, with some of the key's."""
        texts = (*key_texts, *self.texts)
        return [(rows, texts) for rows in batches]

    def encode(self, rows: Rows) -> Rows:
        """Rows int64[n, n_given + 1] with their words in order, int64[n, n_words + 1]."""
        if self._is_plain:
            return rows
        encoded = np.empty((len(rows), self.n_words + 1), np.int64)
        encoded[:, self._to] = rows[:, self._from]
        for text in self._texts:
            encoded[:, text.place : text.number] = TEXT_ORDER.words(encoded[:, text.number])
        encoded[:, self._turned] = ~encoded[:, self._turned]
        return encoded

    def decode(self, rows: Rows) -> Rows:
        """What `encode` was given."""
        if self._is_plain:
            return rows
        rows = rows.copy()
        rows[:, self._turned] = ~rows[:, self._turned]
        decoded = np.empty((len(rows), self.n_given + 1), np.int64)
        decoded[:, self._from] = rows[:, self._to]
        return decoded

    def n_certain(self, rows: Rows) -> Ints:
        """How many words of each row are in order, up to the first text that shares its words."""
        certain = np.full(len(rows), self.n_words, np.int64)
        for text in reversed(self._texts):
            certain[TEXT_ORDER.are_shared(rows[:, text.number])] = text.number
        return certain

    def first_alike(self, rows: Rows) -> Rows:
        """The words of the first row that there could be that is alike to each."""
        words = rows[:, : self.n_words].copy()
        if self._texts:
            words[np.arange(self.n_words) >= self.n_certain(rows)[:, None]] = _LEAST
        return words

    def sorted(self, rows: Rows) -> Rows:
        """Consolidated rows in order; those of all words of the key before go together."""
        if not self._texts or (self.n_certain(rows) == self.n_words).all():
            return rows
        words = rows[:, : self.n_words].copy()
        for text in self._texts:
            ranks = TEXTS.ranks(words[:, text.number])
            words[:, text.number] = ~ranks if text.turned else ranks
        return rows[np.lexsort(words.T[::-1])]

    def read(self, batches: Sequence[Rows], keys: Rows, starts: Rows, most: int) -> Rows:
        """The first records of each group, and what is alike to the last one of them, in order.

        As `read_groups`, whose arguments these are; `starts` are those of `first_alike`.
        """
        rows, ends = read_groups(batches, keys, starts, most)
        if not self._texts or not len(rows):
            return rows
        last = rows[ends[np.diff(ends, prepend=0) > 0] - 1]
        certain = self.n_certain(last)
        parts = [rows]
        for n_words in np.unique(certain[certain < self.n_words]).tolist():
            heads = np.ascontiguousarray(last[certain == n_words][:, :n_words])
            parts.append(read_groups(batches, heads, from_first(heads), ALL)[0])
        return self.sorted(rows if len(parts) == 1 else np.unique(np.concatenate(parts), axis=0))


class RecordOrder:
    """An order of the records of a schema by a key, then some columns, then the other ones.

    Parameters
    ----------
    keys : sequence of str
        The columns of the key, whose words come first, as they are.
    by : sequence of (str, bool)
        Columns, and whether the greatest comes first; the least other columns break ties.
    """

    def __init__(self, schema: Schema, keys: Sequence[str], by: Sequence[tuple[str, bool]]) -> None:
        named = [name for name, _ in by]
        rest = [name for name in schema.names if name not in (*keys, *named)]
        given = [*keys, *named, *rest]
        words = [word for name in given for word in schema.words(name)]
        self.n_key = sum(schema.column(key).n_words for key in keys)
        """How many words the key has."""
        columns = [(schema.column(name), descending) for name, descending in by]
        self.words = WordOrder(
            self.n_key, [*columns, *((schema.column(name), False) for name in rest)]
        )
        """The order behind the key."""
        self.n_by = WordOrder(self.n_key, columns).n_words
        """How many words those of the key and of `by` are."""
        self.given_texts = schema.texts_among(words)
        """Which words of a record by key are numbers of texts."""
        key_texts = [place for place in self.given_texts if place < self.n_key]
        self.schema_texts = schema.texts
        """Which words of a record of the schema are."""
        self.n_given = self.words.n_given
        """How many words a record by key has."""
        self.texts = (*key_texts, *self.words.texts)
        """Which words of a record in order are numbers of texts."""
        each = [f"{name} descending" if descending else name for name, descending in by]
        in_order = f" in order of {', '.join(each)}" if each else ""
        self.named = f"({schema}) by ({', '.join(keys)}){in_order}"
        """What is in order, for snapshots."""
        self._to = np.array([*words, schema.n_words])
        self._back = np.argsort(self._to)

    def by_key(self, rows: Rows) -> Rows:
        """Rows of the schema with the words of the key first, which `encode` is given."""
        return np.ascontiguousarray(rows[:, self._to])

    def encode(self, rows: Rows) -> Rows:
        """Rows by key in order."""
        return np.ascontiguousarray(self.words.encode(rows))

    def by_schema(self, rows: Rows) -> Rows:
        """What `by_key` was given."""
        return np.ascontiguousarray(rows[:, self._back])

    def decode_by_key(self, rows: Rows) -> Rows:
        """What `encode` was given."""
        return np.ascontiguousarray(self.words.decode(rows))

    def decode(self, rows: Rows) -> Rows:
        """Rows of the schema."""
        return np.ascontiguousarray(self.words.decode(rows)[:, self._back])


def order_given(
    schema: Schema, by: Any, descending: bool | Sequence[bool], keys: Sequence[str], operator: str
) -> list[tuple[str, bool]]:
    """The columns of an order, and whether the greatest comes first.

    by : str or sequence of str · descending : for all, or of each
    Columns of `keys` are left out: they are equal within a group.

    Raises
    ------
    BuildError
        If `by` is no name and no names, is empty, has one twice, or `descending` does not fit.
    ColumnError
        If there is no such column.
    """
    names = column_names(by, operator)
    if not names or len(set(names)) < len(names):
        raise BuildError(
            f"operator {operator!r} is given the order {by!r}, and needs one column or more, each "
            "once"
        )
    for name in names:
        schema.column(name, operator)
    turned = [descending] * len(names) if isinstance(descending, bool) else descending
    if not isinstance(turned, (list, tuple)) or not all(isinstance(one, bool) for one in turned):
        raise BuildError(
            f"operator {operator!r} is given descending={descending!r}, and needs True or False, "
            "or a list of them"
        )
    if len(turned) != len(names):
        raise BuildError(
            f"operator {operator!r} is given {len(turned)} values of descending for "
            f"{len(names)} columns of the order: {names}"
        )
    return [(name, one) for name, one in zip(names, turned, strict=True) if name not in keys]


def beside(rows: Rows, n_words: int, change: Callable[[Rows], Rows]) -> Rows:
    """Rows whose first words are a record: that changed, with the words behind it as they are.

    >>> beside(np.array([[7, 8, 9, 1]]), 2, lambda rows: rows[:, [1, 0, 2]]).tolist()
    [[8, 7, 9, 1]]
    """
    records = change(np.ascontiguousarray(rows[:, [*range(n_words), -1]]))
    return np.concatenate([records[:, :-1], rows[:, n_words:]], axis=1)


def from_first(keys: Rows) -> Rows:
    """Where to begin in each group: with its first record."""
    return np.empty((len(keys), 0), np.int64)
