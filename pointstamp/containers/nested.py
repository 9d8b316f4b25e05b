"""Lists and structs as words: the number of their bytes in the dictionary, as texts are.

The bytes of a value are *canonical*: equal values have equal bytes, whatever Python or Arrow had
them as, and bytes are ordered as values are: lists as texts are, element by element, structs field
by field, with nulls first. So a nested column is whatever a text can be: a key, what a join goes
by, what is counted, ordered, exchanged and stored.

Elements and fields may always be null, as those of Spark and Arrow may unless it is said.

Source: such bytes are those of FoundationDB's tuple layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.words import TextType, WordType, type_named, type_of_arrow
from pointstamp.errors import DataError, SchemaError

Ints = npt.NDArray[np.int64]

_NULL, _VALUE = b"\x00", b"\x01"
"""Before an element or a field; the first ends a list, too."""
_END, _ESCAPED = b"\x00", b"\x00\xff"
"""Of a text, and a zero in it."""
_HIGHEST = 1 << 63

_LIST = re.compile(r"(?:array|list)\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_STRUCT = re.compile(r"struct\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_BARE = re.compile(r"(array|list|struct|map)\s*(?:\(.*\)|<.*>)?", re.IGNORECASE | re.DOTALL)
_INSIDE = {
    "array": "it needs the type of its elements, as in array<long>",
    "list": "it needs the type of its elements, as in array<long>",
    "struct": "it needs fields, as in struct<name: string, n: long>",
    "map": "have a list of structs, as array<struct<key: string, value: long>>",
}
_FIELD = re.compile(r"\s*([^\s:<>]+)(?:\s*:\s*|\s+)(.+?)\s*", re.DOTALL)


@dataclass(frozen=True)
class NestedType(WordType):
    """A type whose values are made of others; a word is the number of their canonical bytes."""

    is_text = True
    """As far as words go: they are numbers of the dictionary, and are ordered by its bytes."""

    def encoded(self, value: Any) -> bytes:
        """The canonical bytes of a value; raises `DataError` if it is none."""
        raise NotImplementedError

    def decoded(self, data: bytes, at: int) -> tuple[Any, int]:
        """The value whose bytes begin there, as tuples, and where they end."""
        raise NotImplementedError

    def for_arrow(self, value: Any) -> Any:
        """A value of tuples as Arrow takes it: lists and dicts."""
        raise NotImplementedError

    def to_word(self, value: Any) -> int:
        """The number of the bytes, which are entered if they are new."""
        return TEXTS.number(self.encoded(value))

    def to_value(self, word: int) -> Any:
        """As tuples, so that a row can be a key of a dict."""
        return self.decoded(TEXTS.value(word), 0)[0]

    def words_of(self, column: Any) -> Ints:
        """One by one; those of nulls are 0."""
        values = column.to_pylist()
        return np.array([0 if v is None else self.to_word(v) for v in values], np.int64)

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """By the distinct values."""
        import pyarrow as pa

        there = words if is_null is None else words[~is_null]
        distinct = np.unique(there)
        values = [self.for_arrow(self.to_value(word)) for word in distinct.tolist()]
        # The words of nulls are of no value, and have a place that is not looked at.
        places = np.searchsorted(distinct, words)
        return pa.array(values, self.arrow()).take(pa.array(places, pa.int64(), mask=is_null))


@dataclass(frozen=True)
class ListType(NestedType):
    """Lists of values of one type."""

    element: WordType

    def encoded(self, value: Any) -> bytes:
        """Each element behind a 1, and a 0 at the end."""
        if not isinstance(value, (list, tuple)):
            raise self.refuse(value)
        parts = [_VALUE + _encoded_or_null(self.element, one) for one in value]
        return b"".join(parts) + _NULL

    def to_word(self, value: Any) -> int:
        """The number of the bytes without those of the end, so that the empty list is 0."""
        return TEXTS.number(self.encoded(value)[: -len(_NULL)])

    def word_of_words(self, words: list[int]) -> int:
        """The word of the list of the elements of some words, from the least on."""
        values = sorted(
            _VALUE + _encoded_or_null(self.element, self.element.to_value(word)) for word in words
        )
        return TEXTS.number(b"".join(values))

    def decoded(self, data: bytes, at: int) -> tuple[Any, int]:
        """A tuple of the elements."""
        found = []
        while data[at : at + 1] == _VALUE:
            value, at = _decoded_or_null(self.element, data, at + 1)
            found.append(value)
        return tuple(found), at + 1

    def for_arrow(self, value: Any) -> Any:
        """A list."""
        return [_for_arrow(self.element, one) for one in value]

    def arrow(self) -> Any:
        """A list."""
        import pyarrow as pa

        return pa.list_(self.element.arrow())


@dataclass(frozen=True)
class StructType(NestedType):
    """Values by name, in order; in Python a tuple, or a dict where one is given."""

    fields: tuple[tuple[str, WordType], ...]

    def encoded(self, value: Any) -> bytes:
        """Each field."""
        if isinstance(value, Mapping):
            if value.keys() != {name for name, _ in self.fields}:
                raise DataError(f"{value!r} has the fields {list(value)}, and is no {self.name}")
            given = [value[name] for name, _ in self.fields]
        elif isinstance(value, (list, tuple)) and len(value) == len(self.fields):
            given = list(value)
        else:
            raise self.refuse(value)
        pairs = zip(self.fields, given, strict=True)
        return b"".join(_encoded_or_null(kind, one) for (_, kind), one in pairs)

    def to_value(self, word: int) -> Any:
        """As a tuple; None for the word of nulls, whose bytes are of no struct."""
        return super().to_value(word) if TEXTS.value(word) else None

    def decoded(self, data: bytes, at: int) -> tuple[Any, int]:
        """A tuple of the fields."""
        found = []
        for _, kind in self.fields:
            value, at = _decoded_or_null(kind, data, at)
            found.append(value)
        return tuple(found), at

    def for_arrow(self, value: Any) -> Any:
        """A dict."""
        pairs = zip(self.fields, value, strict=True)
        return {name: _for_arrow(kind, one) for (name, kind), one in pairs}

    def arrow(self) -> Any:
        """A struct."""
        import pyarrow as pa

        return pa.struct([(name, kind.arrow()) for name, kind in self.fields])


def column_type_named(text: str) -> WordType:
    """The type of a name as in Spark's DDL, which may be nested.

    Raises
    ------
    SchemaError
        If there is none of that name.

    >>> column_type_named("array<struct<at: timestamp, words array<string>>>").name
    'array<struct<at:timestamp,words:array<string>>>'
    """
    text = text.strip()
    matched = _LIST.fullmatch(text)
    if matched is not None and matched[1].strip():
        return list_type(column_type_named(matched[1]))
    matched = _STRUCT.fullmatch(text)
    if matched is None:
        if text.endswith("?"):
            raise SchemaError(f"elements and fields may be null as it is: write {text[:-1]!r}")
        bare = _BARE.fullmatch(text)
        if bare is not None:
            raise SchemaError(f"there is no type {text!r}: {_INSIDE[bare[1].lower()]}")
        return type_named(text)
    fields = [_FIELD.fullmatch(part) for part in split_at_commas(matched[1])]
    if not all(fields):
        raise SchemaError(f"{text!r} is no struct: write struct<name: type, ...>")
    return struct_type([(field[1], column_type_named(field[2])) for field in fields if field])


def column_type_of_arrow(kind: Any) -> WordType:
    """The type of a `pyarrow.DataType`, which may be nested.

    Raises
    ------
    SchemaError
        If a collection has no such columns.
    """
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return list_type(column_type_of_arrow(kind.value_type))
    if pa.types.is_struct(kind):
        return struct_type([(field.name, column_type_of_arrow(field.type)) for field in kind])
    return type_of_arrow(kind)


def list_type(element: WordType) -> ListType:
    """Lists of a type."""
    return ListType(f"array<{element.name}>", element)


def struct_type(fields: list[tuple[str, WordType]]) -> StructType:
    """Structs of some fields.

    Raises
    ------
    SchemaError
        If there are none, or two of one name.
    """
    names = [name for name, _ in fields]
    text = f"struct<{','.join(f'{name}:{kind.name}' for name, kind in fields)}>"
    if not names or len(set(names)) < len(names):
        raise SchemaError(f"{text} needs at least one field, and names that differ")
    return StructType(text, tuple(fields))


def split_at_commas(text: str) -> Iterator[str]:
    """Parts of a text between commas that are in no brackets.

    >>> list(split_at_commas("a decimal(9, 2), b struct<c: long, d: long>"))
    ['a decimal(9, 2)', ' b struct<c: long, d: long>']
    """
    begin = depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "(<") - (sign in ")>")
        if sign == "," and not depth:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def _encoded_or_null(kind: WordType, value: Any) -> bytes:
    if value is None:
        return _NULL
    if isinstance(kind, NestedType):
        return _VALUE + kind.encoded(value)
    word = kind.to_word(value)
    if isinstance(kind, TextType):
        text: bytes = TEXTS.value(word)
        return _VALUE + text.replace(_END, _ESCAPED) + _END
    # Words have the order of values, and are moved so that bytes have it, too.
    return _VALUE + (word + _HIGHEST).to_bytes(8, "big")


def _decoded_or_null(kind: WordType, data: bytes, at: int) -> tuple[Any, int]:
    if data[at : at + 1] == _NULL:
        return None, at + 1
    at += 1
    if isinstance(kind, NestedType):
        return kind.decoded(data, at)
    if not isinstance(kind, TextType):
        return kind.to_value(int.from_bytes(data[at : at + 8], "big") - _HIGHEST), at + 8
    parts = []
    while True:
        end = data.index(_END, at)
        parts.append(data[at:end])
        if data[end : end + 2] != _ESCAPED:
            break
        at = end + 2
    value = _END.join(parts)
    return (value if kind.is_binary else value.decode()), end + 1


def _for_arrow(kind: WordType, value: Any) -> Any:
    return kind.for_arrow(value) if isinstance(kind, NestedType) and value is not None else value
