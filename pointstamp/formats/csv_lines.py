r"""Where lines of CSV end, if quoted values may have lines in them: as Arrow's parser has it.

A quotation mark opens a value only where a value begins; anywhere else in a value that is not
quoted it is a character like others (`5" pipe`). Lines end with `\n`, `\r\n` or `\r`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from pointstamp.errors import FileFormatError

BOM = b"\xef\xbb\xbf"
_QUOTE, _NEWLINE, _CR = b'"\n\r'
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*")
_LINE_END = re.compile(rb"\r\n?|\n")


@dataclass(frozen=True)
class CsvLines:
    r"""The lines of a piece of text that begins where a line begins.

    Attributes
    ----------
    data : bytes
    marks : int64[n], sorted
        Where a quoted value begins and where it ends, in turn: the places of quotation marks. Of
        two that stand for one inside of a value, one ends it and the other begins it again.

    >>> lines = csv_lines(b'a,b\n1,"x\ny"\n2,5" pipe\n3,"z\n', ",")
    >>> lines.first_end(), lines.last_end(), lines.open_at()
    (4, 22, 24)
    """

    data: bytes
    marks: np.ndarray

    def open_at(self) -> int | None:
        """Where the quoted value begins that has no end, if there is one."""
        if len(self.marks) % 2 == 0:
            return None
        at = int(self.marks[-1])
        marks = self.marks.tolist()
        while len(marks) > 1 and marks[-2] == at - 1:  # two that stand for one
            marks = marks[:-2]
            at = marks[-1]
        return at

    def check_closed(self, path: str, begin: int) -> None:
        """Raise if a file ends here within a quoted value, of which Arrow would make the rest.

        begin : where in the file the data begin
        """
        at = self.open_at()
        if at is not None:
            raise FileFormatError(
                f"{path}: the quotation mark at byte {begin + at} begins a value that has no end: "
                "another quotation mark was expected before the file ends"
            )

    def first_end(self) -> int:
        """Behind the first line that is not empty; the end of the data, if that does not end."""
        blank = _BLANK.match(self.data)
        begin = 0 if blank is None else blank.end()
        while (found := _LINE_END.search(self.data, begin)) is not None:
            begin = found.end()
            if not self._n_before(found.start()) % 2:
                return begin
        return len(self.data)

    def last_end(self) -> int:
        """Behind the last line that ends; 0 if none does."""
        return self._last_end(b"\n", len(self.data)) or self._last_end(
            b"\r",
            len(self.data) - 1,  # behind the last character may be the other half of an end
        )

    def _last_end(self, sign: bytes, stop: int) -> int:
        end = self.data.rfind(sign, 0, stop) + 1
        while end and (n := self._n_before(end)) % 2:
            end = self.data.rfind(sign, 0, int(self.marks[n - 1])) + 1
        return end

    def _n_before(self, place: int) -> int:
        return int(np.searchsorted(self.marks, place))


def csv_lines(data: bytes, delimiter: str, *, is_first: bool = True) -> CsvLines:
    """The lines of a piece of text that begins where a line begins: the first one, or another."""
    if b'"' not in data:
        return CsvLines(data, np.empty(0, np.int64))
    begin = len(BOM) if is_first and data.startswith(BOM) else 0
    signs = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero(signs == _QUOTE)
    if _are_at_borders(signs, marks, delimiter, begin):
        return CsvLines(data, marks)
    text = data[begin:]
    places: list[int] = []
    for value in _quoted_values(delimiter).finditer(text):
        places.append(value.start())
        if value.group(1):
            places.append(value.end() - 1)
    return CsvLines(data, np.array(places, np.int64) + begin)


def _are_at_borders(signs: np.ndarray, marks: np.ndarray, delimiter: str, begin: int) -> bool:
    """Whether each quotation mark is at an end of a value, or is one of two that stand for one.

    Then every second one begins a value, or goes on with it: without a look at what is between.
    """
    is_border = np.ones(len(signs) + 2, bool)  # one more on either side
    within = is_border[1:-1]
    np.equal(signs, ord(delimiter), out=within)
    within |= signs == _NEWLINE
    within |= signs == _CR
    is_border[begin] = True
    opens, closes = is_border.take(marks[::2]), is_border.take(marks[1::2] + 2)
    if not (opens.all() and closes.all()):
        is_twin = np.diff(marks) == 1
        opens[1:] |= is_twin[1::2]
        closes[: len(is_twin[1::2])] |= is_twin[1::2]
    return bool(opens.all() and closes.all())


@cache
def _quoted_values(delimiter: str) -> re.Pattern[bytes]:
    return re.compile(
        rb'"(?<![^%s\r\n]")(?:[^"]++|"")*+("?)' % re.escape(delimiter.encode()), re.DOTALL
    )
