"""Where lines of CSV end, against a machine of states that looks at each character."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.formats.csv_lines import BOM, csv_lines

TEXTS = st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"a"]), max_size=14).map(b"".join)


def machine(data: bytes) -> tuple[list[int], int | None]:
    """Behind which places lines end, and where a quoted value begins that has no end."""
    ends, opened, state, i = [], None, "begin", 0
    while i < len(data):
        sign = data[i : i + 1]
        if state == "quoted":
            if data[i : i + 2] == b'""':
                i += 1
            elif sign == b'"':
                state, opened = "within", None
        elif sign in b"\r\n":
            i += data[i : i + 2] == b"\r\n"
            ends.append(i + 1)
            state = "begin"
        elif sign == b'"' and state == "begin":
            state, opened = "quoted", i
        else:
            state = "begin" if sign == b"," else "within"
        i += 1
    return ends, opened


@given(TEXTS)
def test_lines_end_where_a_parser_has_them_end(data: bytes) -> None:
    lines = csv_lines(data, ",")
    ends, opened = machine(data)
    newlines = [end for end in ends if data[:end].endswith(b"\n")]
    returns = [end for end in ends if end not in newlines and end < len(data)]
    assert lines.open_at() == opened
    assert lines.last_end() == max(newlines or returns or [0])
    n_blank = len(data) - len(data.lstrip(b"\r\n"))
    assert lines.first_end() == min([end for end in ends if end > n_blank] or [len(data)])
    after_bom = csv_lines(BOM + data, ",")
    assert after_bom.open_at() == (None if opened is None else opened + len(BOM))


@given(TEXTS)
def test_arrow_has_the_same_lines(data: bytes) -> None:
    ends, opened = machine(data)
    borders = [0, *ends, len(data)]
    pieces = [data[begin:end] for begin, end in pairwise(borders)]
    try:
        table = pacsv.read_csv(
            BytesIO(data),
            pacsv.ReadOptions(use_threads=False, autogenerate_column_names=True),
            pacsv.ParseOptions(newlines_in_values=True),
        )
    except pa.ArrowInvalid:  # lines have not as many values each, or there is none
        return
    if opened is None:
        assert table.num_rows == sum(bool(piece.strip(b"\r\n")) for piece in pieces)


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_quotation_mark_within_a_value_opens_nothing(delimiter: str) -> None:
    text = '5" pipe|"two\nlines"\n'.replace("|", delimiter).encode()
    assert csv_lines(text, delimiter).first_end() == len(text)
    other = {",": "\t", "\t": ","}[delimiter]
    assert csv_lines(text, other).first_end() == text.index(b"\n") + 1
