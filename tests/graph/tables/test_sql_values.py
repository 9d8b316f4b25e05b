"""What expressions come to, as Spark's SQL has it, and what is said of those that come to none."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from pointstamp.errors import SchemaError, UsageError
from pointstamp.graph.tables.sql_text import Computed, Named, in_zone, parse_sql
from pointstamp.graph.tables.sql_values import column_of, values_of

LAST = datetime(2021, 1, 1, tzinfo=UTC)
JUNE = datetime(2020, 6, 1, tzinfo=UTC)
TABLE = pa.table(
    {
        "text": ["abcdé", None, "x"],
        "n": pa.array([1, None, -3]),
        "x": [1.5, float("nan"), None],
        "ok": [True, None, False],
        "at": pa.array([datetime(2020, 1, 1, tzinfo=UTC), None, LAST], pa.timestamp("us", "UTC")),
        "day": pa.array([date(2020, 1, 1)] * 3),
    }
)


def values(text):
    return values_of(parse_sql(text), column_of(TABLE, "an example"), 3).to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("substring(text, 1, 2)", ["ab", None, "x"]),
        ("substring(text, 0, 2)", ["ab", None, "x"]),
        ("substring(text, -2)", ["dé", None, "x"]),
        ("substring(text, -2, 1)", ["d", None, ""]),
        ("substring(text, -7, 3)", ["a", None, ""]),
        ("substr(text, 2, -1)", ["", None, ""]),
        ("substring(text, null)", [None, None, None]),
        ("startswith(text, 'ab')", [True, None, False]),
        ("endswith(text, 'é')", [True, None, False]),
        ("contains(text, 'c')", [True, None, False]),
        ("contains(text, null)", [None, None, None]),
        ("isnan(x)", [False, True, False]),
        ("isnull(n)", [False, True, False]),
        ("isnotnull(n)", [True, False, True]),
        ("nvl(n, 0)", [1, 0, -3]),
        ("power(n, 2)", [1.0, None, 9.0]),
        ("greatest(at, timestamp '2020-06-01 00:00:00Z')", [JUNE, JUNE, LAST]),
        ("least(ok, true)", [True, True, False]),
        ("greatest(n, 2)", [2, 2, 2]),
        ("cast(n as smallint)", [1, None, -3]),
        ("cast(n as decimal(10, 2))", [Decimal("1.00"), None, Decimal("-3.00")]),
        ("cast('7' as decimal(3,1))", [Decimal("7.0")] * 3),
        ("cast(n as decimal)", [Decimal(1), None, Decimal(-3)]),
        ("cast(1.255 as decimal(10,2))", [Decimal("1.26")] * 3),
        ("cast(x as decimal(5, 1))", [Decimal("1.5"), None, None]),
        ("cast(' -2.5 ' as decimal(3))", [Decimal(-3)] * 3),
        ("cast(1.99 as int)", [1] * 3),
        ("cast(' 7 ' as int)", [7] * 3),
        ("year(at)", [2020, None, 2021]),
        ("hour(at) + quarter(day)", [1, None, 1]),
        ("dayofweek(day) * 10 + weekday(day)", [42] * 3),
        ("to_date(at)", [date(2020, 1, 1), None, date(2021, 1, 1)]),
        ("date_trunc('month', timestamp '2020-02-03 04:05:06')", [datetime(2020, 2, 1)] * 3),
        ("cast(at as bigint)", [1577836800, None, 1609459200]),
        ("cast(timestamp '2020-02-03 04:05:06.70' as string)", ["2020-02-03 04:05:06.7"] * 3),
    ],
)
def test_functions_are_those_of_spark(text, expected):
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("text > 1", SchemaError, "^'>' cannot be computed of string, int64: cast one to the type"),
        ("day < '2020-01-01'", SchemaError, "^'<' .*: write date '2020-01-31' or timestamp"),
        ("at = timestamp '2020-01-01 00:00:00'", SchemaError, "a time with a zone is a moment"),
        ("upper(n)", SchemaError, "^'upper' cannot be computed of int64$"),
        ("startswith(text, text)", SchemaError, "what is looked for is one text"),
        ("substring(text, n)", SchemaError, "position and length are numbers"),
        ("cast(n as numeral)", UsageError, r"no type 'numeral'; .* decimal\(digits,places\)"),
        ("pi(n)", UsageError, "no function 'pi'; there are abs, cast, ceil"),
        ("isnan(n, n)", UsageError, "^'isnan' takes 1 argument, and 2 are given$"),
        ("greatest()", UsageError, "^'greatest' takes at least 2 arguments, and none are given$"),
        ("least(n)", UsageError, "^'least' takes at least 2 arguments, and 1 is given$"),
        ("substr(text)", UsageError, "^'substr' takes 2 or 3 arguments, and 1 is given$"),
        ("nvl(n, 1, 2)", UsageError, "^'nvl' takes 2 arguments, and 3 are given$"),
        ("coalesce()", UsageError, "^'coalesce' takes at least 1 argument, and none are given$"),
        ("if(ok, n)", UsageError, "^'if' takes 3 arguments, and 2 are given$"),
        ("year()", UsageError, "^'year' takes 1 argument, and none are given$"),
        ("n in ()", UsageError, "^a value was expected here, one of those that it may be"),
        ("date_trunc('eon', at)", UsageError, "^'date_trunc' takes a unit, 'year', .* 'eon'$"),
        ("date_trunc(text, at)", UsageError, "^'date_trunc' takes a unit, .* found a column$"),
        ("cast(text as int)", SchemaError, "^'cast' of string as int .*: '(x|abcdé)' is no int$"),
        ("cast(n as decimal(40, 2))", UsageError, "a decimal has 1 to 38 digits"),
        ("cast(x * 1e9 as decimal(5,2))", SchemaError, "1500000000.* more than 3 digits before"),
    ],
)
def test_what_cannot_be_computed_is_said_in_the_words_of_the_text(text, error, says):
    with pytest.raises(error, match=says):
        values(text)


TEXTS = pa.table({"t": ["7", "seven", None, "-2"], "k": [5, 0, 2**62, None]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t rlike '^-?[0-9]+$' and cast(t as int) > 0", [True, False, None, False]),
        ("t = 'seven' or cast(t as int) > 0", [True, True, None, False]),
        ("case when t = 'seven' then 7 else cast(t as int) end", [7, 7, None, -2]),
        ("case when t <> 'seven' then cast(t as int) end", [7, None, None, -2]),
        ("case when k = 0 then 0 when cast(t as int) = 7 then 1 else 2 end", [1, 0, 2, 2]),
        ("if(k < 10, k * 4, 0)", [20, 0, 0, 0]),
        ("coalesce(if(k = 0, 0, null), cast(t as int))", [7, 0, None, -2]),
        ("nvl(k, cast(t as int))", [5, 0, 2**62, -2]),
        ("if(t = 'seven', 0, cast(t as int)) + 1", [8, 1, None, -1]),
        ("not (t <> 'seven' and cast(t as int) > 0)", [False, True, None, True]),
        ("1 = 1 or cast(t as int) > 0", [True] * 4),
        ("1 = 2 and cast(t as int) > 0", [False] * 4),
        ("coalesce(1, cast(t as int))", [1] * 4),
        ("if(1 = 1, 1, cast(t as int))", [1] * 4),
        ("case when null then cast(t as int) when true then 1 else cast(t as int) end", [1] * 4),
    ],
)
def test_what_a_condition_guards_is_computed_where_it_is_asked_for(text, expected):
    found = values_of(parse_sql(text), column_of(TEXTS, "an example"), 4)
    if isinstance(found, pa.Scalar):  # no column has a part in it
        found = pa.array([found.as_py()] * 4)
    assert found.to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("t <> '7' and cast(t as int) > 0", "'seven' is no int"),
        ("cast(t as int) > 0 and t <> 'seven'", "'seven' is no int"),
        ("k > 0 and cast('x' as int) > 0", "'x' is no int"),
        ("k = 1 and t + k > 0", "'\\+' cannot be computed of string, int64"),
        ("coalesce(k, 0) * 4 > 0", "overflow"),
    ],
)
def test_what_no_condition_guards_is_an_error(text, says):
    with pytest.raises(SchemaError, match=says):
        values_of(parse_sql(text), column_of(TEXTS, "an example"), 4)


def test_a_backslash_begins_what_another_character_stands_for():
    assert parse_sql(r"'it\'s \\ \u00e9\U0001F600 \101\q'").value == "it's \\ é😀 Aq"
    assert parse_sql(r"'a\%\_\n\t\0'").value == "a\\%\\_\n\t\0"
    assert parse_sql(r"x = r'\d+\'").operands[1].value == "\\d+\\"
    for text, says in [
        (r"x = '\UFFFFFFFF'", "stands for no character"),
        (r"x = 'a\'", "begins nothing"),
        (r"x = '\ud800'", "the text .* is none"),
    ]:
        with pytest.raises(UsageError, match=says):
            values_of(parse_sql(text), column_of(pa.table({"x": ["a"]}), "an example"), 1)


def test_dates_and_hours_of_a_table_are_in_the_zone_of_the_column():
    night = datetime(2020, 1, 1, 23, 30, tzinfo=UTC)
    table = pa.table({"at": pa.array([night], pa.timestamp("us", "Europe/Berlin"))})
    for text, expected in (
        ("cast(at as date)", date(2020, 1, 2)),
        ("hour(at)", 0),
        ("day(at)", 2),
        ("date_trunc('day', at)", datetime(2020, 1, 1, 23, tzinfo=UTC)),
        ("cast(at as timestamp)", night.replace(tzinfo=None)),
    ):
        assert values_of(parse_sql(text), column_of(table, "an example"), 1).to_pylist() == [
            expected
        ]


def one(text, **columns):
    """The values of an expression in a session of Berlin."""
    table = pa.table(columns)
    tree = in_zone(parse_sql(text), "Europe/Berlin")
    return values_of(tree, column_of(table, "an example"), table.num_rows).to_pylist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_as_text_keep_the_zeros_of_whole_seconds(unit):
    times = [datetime(2026, 7, 1, 12), datetime(2026, 7, 1, 12, 0, 10)]
    expected = ["2026-07-01 12:00:00", "2026-07-01 12:00:10"]
    assert one("cast(t as string)", t=pa.array(times, pa.timestamp(unit))) == expected


def test_numbers_with_a_point_keep_all_their_digits_beside_decimals():
    exact = pa.array([Decimal("1.123456789012345678"), Decimal("-1e15")], pa.decimal128(38, 18))
    assert one("x = 1.123456789012345678", x=exact) == [True, False]
    assert one("x in (0.5, 1.123456789012345678)", x=exact) == [True, False]
    assert one("x < -999999999999999.999999999999999999", x=exact) == [False, True]
    with pytest.raises(UsageError, match="a number with a point has at most 38 digits"):
        parse_sql(f"x = 1.{'1' * 38}")


def test_years_after_2037_have_summers():
    at = pa.array([datetime(2050, 7, 1, 12, tzinfo=UTC), None, datetime(2050, 1, 1, tzinfo=UTC)])
    assert one("hour(t)", t=at) == [14, None, 1]
    assert one("t = cast('2050-07-01 14:00:00' as timestamp)", t=at) == [True, None, False]
    far = pa.array([316_531_972_800], pa.timestamp("s", "UTC"))  # in a year that Python has not
    assert one("year(t) * 10000 + month(t) * 100 + hour(t)", t=far) == [120_000_714]


def test_decimals_as_text_have_all_their_places_and_no_exponent():
    exact = pa.array([Decimal(0), Decimal("-0.00000012"), None], pa.decimal128(38, 8))
    expected = ["0.00000000", "-0.00000012", None]
    assert one("cast(x as string)", x=exact) == expected
    assert one("'is ' || x", x=exact)[:2] == ["is 0.00000000", "is -0.00000012"]


def test_a_decimal_is_equal_to_the_number_that_it_is_written_as():
    amounts = [Decimal(cents) / 100 for cents in range(170_000, 171_500)]
    column = pa.array(amounts, pa.decimal128(10, 2))
    floats = pa.array([float(amount) for amount in amounts])
    assert one("amount = x", amount=column, x=floats) == [True] * len(amounts)
    assert one("cast(amount as double) = x", amount=column, x=floats) == [True] * len(amounts)


def test_constants_have_a_summer_after_2037():
    assert one("timestamp '2050-07-01 12:00:00'", n=[1]) == [datetime(2050, 7, 1, 10, tzinfo=UTC)]


def test_decimals_are_times_to_the_microsecond():
    seconds = [Decimal("1785000000.123457"), Decimal("-1.000001"), None]
    found = one("cast(s as timestamp)", s=pa.array(seconds, pa.decimal128(20, 6)))
    micros = [1_785_000_000_123_457, -1_000_001]
    assert found == [
        *(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=m) for m in micros),
        None,
    ]


@pytest.mark.parametrize("text", ["cast(x as timestamp)", "to_timestamp(x)"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_no_time(text, value):
    with pytest.raises(SchemaError, match="NaN and infinity are no times"):
        one(text, x=[value])


def test_texts_are_numbers_as_in_sql():
    assert one("cast(t as int)", t=["+7", " -3 "]) == [7, -3]
    with pytest.raises(SchemaError, match="'0x1F' is no int"):
        one("cast(t as int)", t=["0x1F"])
    with pytest.raises(SchemaError, match="'1_000' is no decimal"):
        one("cast(t as decimal(10,0))", t=["1_000"])


def test_integers_are_the_nearest_floats():
    assert one("cast(n as float)", n=[16_777_217]) == [16_777_216.0]
    assert one("cast(n as double)", n=[9_007_199_254_740_993]) == [9_007_199_254_740_992.0]


def test_nothing_is_in_an_empty_list():
    tree = Computed("in", (Named(("n",)),))
    assert values_of(tree, column_of(pa.table({"n": [1]}), "an example"), 1).to_pylist() == [False]


def test_hours_that_clocks_show_twice_are_counted_once_each():
    twice = [datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)]
    table = pa.table({"t": pa.array(twice, pa.timestamp("us", "Europe/Berlin"))})
    lookup = column_of(table, "an example")
    seconds = values_of(parse_sql("cast(t as bigint)"), lookup, 2).to_pylist()
    assert seconds == [int(time.timestamp()) for time in twice]
    minutes = values_of(parse_sql("date_trunc('minute', t)"), lookup, 2)
    assert minutes.cast(pa.int64()).to_pylist() == [1_000_000 * second for second in seconds]


def test_try_cast_has_null_where_cast_fails():
    assert one("try_cast(t as int) > 3", t=["7", "x", None, "1"]) == [True, None, None, False]
    assert one("try_cast('x' as int)", t=["7"]) == [None]
    with pytest.raises(UsageError, match="there is no type 'number'"):
        one("try_cast(t as number)", t=["7"])


def test_numbers_with_a_point_are_decimals_beside_decimals():
    amount = pa.array([Decimal("3.00"), Decimal("0.10"), None], pa.decimal128(10, 2))
    assert one("amount * 1.1 = 3.3", amount=amount) == [True, False, None]
    assert one("amount + 0.2 = 0.3", amount=amount) == [False, True, None]
    assert one("amount in (0.1, 3.0)", amount=amount) == [True, True, None]
    assert one("amount >= -0.1 * amount", amount=amount) == [True, True, None]
    assert one("amount * 1e-1", amount=amount) == [3.0 * 0.1, 0.1 * 0.1, None]
    assert one("amount + 0.5 * x", amount=amount, x=[1.0, 0.0, 1.0]) == [3.5, 0.1, None]
    assert one("greatest(amount, 0.5)", amount=amount)[:2] == [Decimal("3.00"), Decimal("0.50")]


def test_decimals_of_all_digits_are_computed_with():
    """As Spark has those that are made of Python's decimals."""
    of = pa.decimal128(38, 18)
    w, v = pa.array([Decimal("2.5"), None], of), pa.array([Decimal(1), Decimal(2)], of)
    d = pa.array([Decimal("2.50"), Decimal(7)], pa.decimal128(10, 2))
    zero = pa.array([Decimal(2), Decimal(7)], pa.decimal128(38, 0))
    for text, expected in {
        "w + 1": Decimal("3.5"),
        "w * 2": 5,
        "w + v": Decimal("3.5"),
        "v - w < 0": True,
        "w * v": Decimal("2.5"),
        "w * w * w": Decimal("15.625"),
        "w * 1.1 = 2.75": True,
        "w + d": 5,
        "zero < d": True,
        "zero + d": Decimal("4.5"),
        "zero * n": 6,
        "greatest(w, 0)": Decimal("2.5"),
        "least(w, d, 3, n)": Decimal("2.5"),
        "w in (1, 2.5)": True,
    }.items():
        found = one(text, w=w, v=v, d=d, zero=zero, n=[3, 3])
        assert found[0] == expected, text
    third = pa.array([Decimal("0.333333333333333333")], of)
    assert one("w * w", w=third) == [Decimal("0.111111")]  # in so many places as Spark
    with pytest.raises(SchemaError, match=r"'\*' cannot be computed of decimal128\(38, 18\)"):
        one("w * w", w=pa.array([Decimal(10) ** 19], of))


def test_remainders_are_exact():
    amount = pa.array([Decimal("0.30"), Decimal("-0.35"), None, Decimal(1)], pa.decimal128(10, 2))
    assert one("amount % 0.1", amount=amount) == [
        Decimal("0.00"),
        Decimal("-0.05"),
        None,
        Decimal("0.00"),
    ]
    assert one("7 % amount = 0.1", amount=amount) == [True, False, None, False]
    assert one("amount % 0", amount=amount) == [None] * 4
    assert one("x % 0.1", x=[1.5, 1e17, None]) == [math.fmod(1.5, 0.1), math.fmod(1e17, 0.1), None]
    assert one("x % y", x=[1.0, math.inf], y=[0.0, 2.0])[0] is None
    assert one("-7.5 % 2", n=[1]) == [-1.5]
    assert one("n % 0.1 = 0", n=[1, -3, None]) == [True, True, None]


def test_trim_removes_spaces_alone():
    assert one("trim(t)", t=[" a\t ", None]) == ["a\t", None]


def test_functions_of_floats_take_all_integers():
    wide = [2**62, -1, 0, None]
    assert one("ln(n)", n=wide) == [math.log(2**62), None, None, None]
    assert one("sqrt(n)", n=[2**62]) == [2.0**31]
    assert one("exp(n)", n=[2**62, 0]) == [math.inf, 1.0]
    assert one("case when n > 0 then n else 0.5 end", n=wide) == [2.0**62, 0.5, 0.5, 0.5]
    assert one("if(n > 0, n, x)", n=wide, x=[None, 1.5, 2.5, 3.5]) == [2.0**62, 1.5, 2.5, 3.5]
