"""The bytes of a few rows of plain values, written where they are read: without a pickle.

Most messages between workers are of a few small tuples: records of a stream that is worked on
as it comes, and changes of counts. To pickle such a message and to read it takes
longer than all that a round of coordination does beside it. Here a value is a byte that says
what it is, and what it needs beyond that; compiled code writes it into the memory in which
the receiver reads it.

    64 to 255                an integer, from -64 to 127
    NULL, TRUE, FALSE        nothing more
    SHORT, LONG              an integer of 4 bytes, or of 8
    REAL                     a double
    TEXT, OCTETS             the number of bytes, in 2 bytes, and those; text is UTF-8
    TUPLE                    the number of values, in 1 byte, and those

all little-endian. A message is the tag's value, the number of records in 4 bytes, and theirs.
What is no such value (a list, an object, an integer of more than 64 bits) has a message
pickled, as does what has no room: that is what `pack_rows` finds out.

A message of a small batch of columns has, behind the tag, the name of its kind and what such
batches have in common, both as OCTETS, and then the rest of it, to the end: what the kind makes
of it (`Kind.pack_small`), as it is.

Values are immutable, so that two that were one object may be two after it.

Knows nothing of what carries the bytes.
"""

from __future__ import annotations

from struct import Struct
from types import FunctionType
from typing import Any

from pointstamp.errors import SerializationError

_NULL, _TRUE, _FALSE, _SHORT, _LONG, _REAL, _TEXT, _OCTETS, _TUPLE = range(9)

_MAX_DEPTH = 20
_MAX_LENGTH = (1 << 16) - 1
_MAX_PARTS = 255

_LEAST_LONG = -(1 << 63)
_MOST_LONG = (1 << 63) - 1
_DOUBLE = Struct("<d")
_pack_double = _DOUBLE.pack
_unpack_double = _DOUBLE.unpack


def pack_rows(octets: Any, at: int, stop: int, tag: Any, batch: list[Any]) -> int:
    """Write a message; where it ends, or -1 if it is to be pickled, or has no room.

    octets : uint8[n], of which only those from `at` up to `stop` are written
    """
    at = _pack(octets, at, stop, tag, 0)
    if at < 0 or at + 4 > stop:
        return -1
    _put(octets, at, len(batch), 4)
    at += 4
    for record in batch:
        at = _pack(octets, at, stop, record, 0)
        if at < 0:
            return -1
    return at


def pack_columns_head(octets: Any, at: int, stop: int, tag: Any, kind: bytes, header: bytes) -> int:
    """Write a message of a batch of columns up to its block; where it ends, or -1 as `pack_rows`.

    kind : the name of the kind of container that made the header and the block
    """
    at = _pack(octets, at, stop, tag, 0)
    if at >= 0:
        at = _pack_octets(octets, at, stop, _OCTETS, kind)
    return at if at < 0 else _pack_octets(octets, at, stop, _OCTETS, header)


def is_quicker() -> bool:
    """Whether this is compiled; where it is not, `pickle`, which is, is quicker."""
    return not _IS_PLAIN


def _pack(octets: Any, at: int, stop: int, value: Any, depth: int) -> int:
    """Write a value; where it ends, or -1. Every value begins with at most 9 bytes."""
    if at + 9 > stop:
        return -1
    kind = type(value)
    if kind is int:
        return _pack_int(octets, at, value)
    if kind is tuple:
        return _pack_tuple(octets, at, stop, value, depth)
    if kind is str:
        try:
            text = value.encode()
        except UnicodeEncodeError:
            return -1
        return _pack_octets(octets, at, stop, _TEXT, text)
    if kind is float:
        octets[at] = _REAL
        return _copy(octets, at + 1, _pack_double(value), 8)
    if value is None or kind is bool:
        octets[at] = _NULL if value is None else _TRUE if value else _FALSE
        return at + 1
    if kind is bytes:
        return _pack_octets(octets, at, stop, _OCTETS, value)
    return -1


def _pack_int(octets: Any, at: int, value: Any) -> int:
    try:
        number = value  # compiled, this raises beyond 64 bits
        if _IS_PLAIN and not _LEAST_LONG <= value <= _MOST_LONG:
            return -1
    except OverflowError:
        return -1
    if -64 <= number < 128:
        octets[at] = number + 128
        return at + 1
    if -0x80000000 <= number <= 0x7FFFFFFF:
        octets[at] = _SHORT
        _put(octets, at + 1, number, 4)
        return at + 5
    octets[at] = _LONG
    _put(octets, at + 1, number, 8)
    return at + 9


def _pack_tuple(octets: Any, at: int, stop: int, parts: tuple[Any, ...], depth: int) -> int:
    n_parts = len(parts)
    if n_parts > _MAX_PARTS or depth >= _MAX_DEPTH:
        return -1
    octets[at] = _TUPLE
    octets[at + 1] = n_parts
    at += 2
    for i in range(n_parts):
        at = _pack(octets, at, stop, parts[i], depth + 1)
        if at < 0:
            return -1
    return at


def _pack_octets(octets: Any, at: int, stop: int, code: int, data: bytes) -> int:
    n_bytes = len(data)
    if n_bytes > _MAX_LENGTH or at + 3 + n_bytes > stop:
        return -1
    octets[at] = code
    _put(octets, at + 1, n_bytes, 2)
    return _copy(octets, at + 3, data, n_bytes)


def _put(octets: Any, at: int, number: int, n_bytes: int) -> None:
    for i in range(n_bytes):
        octets[at + i] = (number >> 8 * i) & 255


def _copy(octets: Any, at: int, data: bytes, n_bytes: int) -> int:
    for i in range(n_bytes):
        octets[at + i] = data[i]
    return at + n_bytes


class RowsReader:
    """Reads messages that `pack_rows` wrote into `memory`.

    memory : what gives bytes for a slice, and has a writable buffer
    """

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._octets = memoryview(memory)
        self._at = 0
        self._stop = 0

    def read(self, at: int, stop: int) -> tuple[Any, list[Any]]:
        """The (tag, batch) of the message from `at` up to `stop`; it refers to nothing there.

        Raises
        ------
        SerializationError
            If there is no such message.

        >>> memory = bytearray(100)
        >>> end = pack_rows(memoryview(memory), 10, 100, (0, 7), ["a", 1.5, None])
        >>> RowsReader(memory).read(10, end)
        ((0, 7), ['a', 1.5, None])
        """
        self._at = at
        self._stop = stop
        tag = self._value()
        batch = self._values(self._number(4))
        if self._at != stop:
            raise SerializationError(
                f"a message of rows in {stop - at} bytes ends {stop - self._at} before their end"
            )
        return tag, batch

    def read_columns(self, at: int, stop: int) -> tuple[Any, bytes, bytes, bytes]:
        """The (tag, name of a kind, header, block) of the message from `at` up to `stop`.

        Raises
        ------
        SerializationError
            If there is no such message.

        >>> memory = bytearray(100)
        >>> end = pack_columns_head(memoryview(memory), 10, 100, 7, b"arrays", b"names")
        >>> memory[end : end + 6] = b"values"
        >>> RowsReader(memory).read_columns(10, end + 6)
        (7, b'arrays', b'names', b'values')
        """
        self._at = at
        self._stop = stop
        tag = self._value()
        kind = self._value()
        header = self._value()
        if type(kind) is not bytes or type(header) is not bytes:
            raise SerializationError(
                f"a message of columns names its kind {kind!r} and what they are {header!r}"
            )
        return tag, kind, header, self._data(stop - self._at)

    def _values(self, n: int) -> list[Any]:
        return [self._value() for _ in range(n)]

    def _value(self) -> Any:
        code = self._number(1)
        if code >= 64:
            return code - 128
        if code == _TUPLE:
            return tuple(self._values(self._number(1)))
        if code == _SHORT:
            return self._signed(4)
        if code == _LONG:
            return self._signed(8)
        if code == _TEXT:
            return self._data(self._number(2)).decode()
        if code == _REAL:
            return _unpack_double(self._data(8))[0]
        if code == _OCTETS:
            return self._data(self._number(2))
        if code == _NULL:
            return None
        if code in (_TRUE, _FALSE):
            return code == _TRUE
        raise SerializationError(f"a message of rows has a value of the unknown code {code}")

    def _number(self, n_bytes: int) -> int:
        """The next bytes as an integer that is not negative."""
        at = self._at
        self._pass(n_bytes)
        number = 0
        for i in range(n_bytes):
            number = number << 8 | self._octets[at + n_bytes - 1 - i]
        return number

    def _signed(self, n_bytes: int) -> int:
        number = self._number(n_bytes)
        sign = 1
        sign <<= 8 * n_bytes - 1  # of the variable: a constant is an int of C, of 32 bits
        return (number ^ sign) - sign

    def _data(self, n_bytes: int) -> bytes:
        at = self._at
        self._pass(n_bytes)
        return bytes(self._memory[at : at + n_bytes])

    def _pass(self, n_bytes: int) -> None:
        if n_bytes > self._stop - self._at:
            raise SerializationError("a message of rows was cut off in a value")
        self._at += n_bytes


_IS_PLAIN = isinstance(pack_rows, FunctionType)
