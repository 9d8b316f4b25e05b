"""What conditions of graphs come to is what Spark's SQL has, in the zone of the session."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.functions import col, hour, to_date

import pointstamp.spark
from pointstamp.errors import SchemaError
from pointstamp.graph.tables.sql_text import in_zone, parse_sql
from pointstamp.graph.tables.sql_values import column_of, values_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "GMT-3"]


@pytest.fixture(params=ZONES)
def zone(spark, request):
    """A time zone of the session."""
    key = "spark.sql.session.timeZone"
    before = spark.conf.get(key)
    spark.conf.set(key, request.param)
    yield request.param
    spark.conf.set(key, before)


EXPRESSIONS = [
    "year(at)",
    "quarter(at)",
    "month(at)",
    "day(at)",
    "dayofmonth(at)",
    "dayofyear(at)",
    "dayofweek(at)",
    "weekday(at)",
    "weekofyear(at)",
    "hour(at)",
    "minute(at)",
    "second(at)",
    "hour(clock)",
    "hour(day)",
    "year(clock) + month(day)",
    "cast(at as date)",
    "to_date(at)",
    "cast(at as date) = date '2026-11-01'",
    "cast(at as string)",
    "cast(clock as string)",
    "'at ' || at",
    "cast(at as bigint)",
    "cast(at as double)",
    "cast(at as decimal(20, 6))",
    "cast(at as timestamp_ntz)",
    "cast(day as timestamp_ntz)",
    "cast('2026-11-01 01:30:00' as timestamp_ntz) = clock",
    "cast(clock as timestamp_ltz) = at",
    "cast(cast(at as bigint) as timestamp)",
    "cast(clock as timestamp)",
    "cast(day as timestamp)",
    "cast('2026-11-01 01:30:00' as timestamp)",
    "timestamp '2026-03-08 02:30:00'",
    "hour(timestamp '2050-07-01 12:00:00')",
    "timestamp '2050-07-01 12:00:00' = cast('2050-07-01 12:00:00' as timestamp)",
    "date_trunc('quarter', date '2100-12-31')",
    "at >= timestamp '2026-11-01 01:30:00'",
    "at in (timestamp '2026-11-01 01:30:00', timestamp '2026-11-01 05:30:00+00:00')",
    "at between timestamp '2026-03-08 02:30:00' and date '2026-11-01'",
    "at > day",
    "at = clock",
    "clock < timestamp '2026-11-01 01:30:00'",
    "coalesce(at, timestamp '2026-01-01 00:00:00')",
    "coalesce(clock, at)",
    "greatest(at, day)",
    "case when hour(at) < 2 then at else clock end",
    "if(at > clock, at, day) > timestamp '2026-07-01 00:00:00'",
    *(f"date_trunc('{unit}', at)" for unit in ("year", "QUARTER", "mon", "week", "dd")),
    *(f"date_trunc('{unit}', at)" for unit in ("hour", "minute", "second", "millisecond")),
    "date_trunc('day', clock)",
    "date_trunc('hour', day)",
    "date_trunc('day', at) = timestamp '2026-11-01 00:00:00'",
    "date_trunc('hour', at) = at",
    "at > '2026-11-01 01:30:00'",
    "at >= ' 2026-11-01'",
    "at in ('2026-11-01 01:30:00', '2026-11-01T05:30:00Z')",
    "at between '2026-03-08 02:30:00.5' and '2026-11-01 00:00:00+02:00'",
    "clock < '2026-11-01 01:30:00'",
    "to_date(at) = '2026-11-01'",
    "day between '2026-03-01' and '2026-10-31'",
    "at = cast(clock as string)",
]

TIMES = """
    select at, cast(at as timestamp_ntz) as clock, cast(at as date) as day from (
        select timestamp_micros(1772929800123000 + id * 900000000) as at from range(100)
        union all select timestamp_micros(1793465100000000 + id * 900000000) from range(100)
        union all select timestamp_micros(2540000000000000 + id * 13000000000000) from range(9)
        union all select timestamp_micros(-86400500000) union all select null
    )"""
"""Before and after the nights in which the clocks of New York are set, after 2037, before 1970."""


def plain(column):
    """The values of a column, moments in UTC."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp("us", "UTC"))
    return column.to_pylist()


def test_times_are_those_that_spark_has_in_the_zone_of_the_session(spark, zone):
    frame = spark.sql(TIMES)
    expected = frame.selectExpr(*(f"{text} as c{i}" for i, text in enumerate(EXPRESSIONS)))
    expected, given = expected.toArrow(), frame.toArrow()
    moments = given.column("at").cast(pa.timestamp("us", "UTC"))
    given = given.set_column(0, "at", moments)
    for i, text in enumerate(EXPRESSIONS):
        tree = in_zone(parse_sql(text), zone)
        found = values_of(tree, column_of(given, "times"), given.num_rows)
        assert plain(found) == plain(expected.column(f"c{i}")), text


def test_text_that_is_no_time_is_refused_beside_one(spark):
    given = spark.sql(TIMES).toArrow()
    for text in ("at > 'noon'", "day = '1 May'"):
        with pytest.raises(
            SchemaError, match=r"cannot be computed of .*: write date '2020-01-31' or"
        ):
            values_of(in_zone(parse_sql(text), "UTC"), column_of(given, "times"), given.num_rows)


def test_conditions_on_times_find_what_spark_s_filter_does(spark, zone):
    times = spark.sql(TIMES).filter("at is not null")
    edges = times.selectExpr("row_number() over (order by at) as src", "at").selectExpr(
        "src", "src + 1 as dst", "at"
    )
    graph = pointstamp.spark.graph(edges, workers=1)
    for condition in (
        "cast({} as date) = date '2026-11-01' and hour({}) < 3",
        "date_trunc('day', {}) = timestamp '2026-03-08 00:00:00'",
    ):
        expected = edges.filter(condition.replace("{}", "at")).count()
        assert expected > 0
        assert graph.count("(a)-[e]->(b)", condition.replace("{}", "e.at")) == expected
    on_day = hour("e.at") == 1, to_date("e.at") == to_date("f.at")
    found = graph.count("(a)-[e]->(b); (b)-[f]->(c)", on_day[0] & on_day[1])
    pairs = edges.alias("e").join(edges.alias("f"), col("e.dst") == col("f.src"))
    assert found == pairs.filter(on_day[0] & on_day[1]).count() > 0
    first = (
        edges.filter("cast(at as date) = date '2026-11-01'").selectExpr("min(src)").collect()[0][0]
    )
    for begin, n in ((first, 1), (first - 1, 0)):
        paths = graph.bfs(f"id = {begin}", f"id = {first + 2}", "dayofyear(at) = 305")
        assert paths.count() == n


def test_expressions_of_programs_have_times_of_the_zone_of_the_session(spark, zone):
    at = "timestamp '2026-07-01 22:45:00+00:00'"
    vertices = spark.sql(f"select id, {at} as at from range(2)")
    edges = spark.sql("select 0L as src, 1L as dst")
    graph = pointstamp.spark.graph(vertices, edges, workers=1)
    columns = {
        "day": ("cast(at as date)", "coalesce(msg, day)"),
        "hour": ("hour(at)", "hour"),
        "since": ("timestamp '2026-07-01 00:00:00'", "since"),
    }
    found = graph.pregel(columns, "max(cast(msg as date))", send_to_dst="src.at", max_iter=1)
    [first, _] = found.orderBy("id").collect()
    expected = vertices.selectExpr(
        "id", "cast(at as date)", "hour(at)", "timestamp '2026-07-01 00:00:00'"
    )
    [row, _] = expected.orderBy("id").collect()
    assert (first.id, first.day, first.hour, first.since) == tuple(row)


WRITTEN = [
    *("2024", "2024-02", "2024-2-9", "+2024-02-09", "2024-02-09 1:2:3", "2024-02-09 01:02"),
    *("2024-02-09T01:02:03.5", "2024-02-09 01:02:03.123456789", " 2024-02-09 01:02:03 "),
    *("2024-02-09 01:02:03 UTC", "2024-02-09 01:02:03Z", "2024-02-09 01:02:03+01:00"),
    *("2024-02-09 01:02:03 Europe/Berlin", "2024-02-09 01:02:03 GMT+3", "2050-07-01 12:00:00"),
    *("2024-00-09", "2024-02-30", "2024-02-09 25:00:00", "2024-02-09 1", "noon", "", "20240209"),
    *("2024-02-09 01:02:03 Nowhere/Else", "2024-02-09 01:02:03 +", "1d", "-1.5e3F", "1e", "d"),
]


def test_texts_are_the_times_and_numbers_that_spark_takes_them_for(spark, zone):
    frame = spark.createDataFrame([(text,) for text in WRITTEN], "t string")
    casts = [f"try_cast(t as {kind})" for kind in ("timestamp", "timestamp_ntz", "date", "double")]
    expected = frame.selectExpr(*casts).toArrow()
    for cast, column in zip(casts, expected.columns, strict=True):
        tree = in_zone(parse_sql(cast), zone)
        found = values_of(tree, column_of(frame.toArrow(), "texts"), len(WRITTEN))
        differences = [
            each
            for each in zip(WRITTEN, plain(found), plain(column), strict=True)
            if each[1] != each[2]
        ]
        assert differences == [], cast


NUMBERS = """
    select * from values
        (1.255D, '1.255', 1.255BD, 7), (2.5D, ' 2.5 ', 2.500BD, -3),
        (-1.005D, '-1.005', -1.005BD, 0),
        (0.004999999D, '4.999999999999e-3', 0.005BD, 12345), (1e-30D, '1e-60', 0.999BD, null),
        (123456.785D, '123456.785', null, 1), (double('nan'), null, 99999.995BD, 2),
        (null, '0.00000000000000000000000000000000000000000005', -99.5BD, 3)
        as t(x, text, exact, n)"""

CASTS = [
    "cast(x as decimal(10, 2))",
    "cast(x as decimal(38, 30))",
    "cast(x as decimal(7))",
    "cast(cast(x as float) as decimal(12, 5))",
    "cast(text as decimal(10, 2))",
    "cast(text as decimal(20, 5))",
    "cast(text as decimal)",
    "cast(exact as decimal(10, 2))",
    "cast(exact as decimal(12, 1))",
    "cast(exact as numeric(6, 0))",
    "cast(exact as decimal(30, 10))",
    "cast(n as decimal(9, 3))",
    "cast(n > 1 as decimal(3, 1))",
    "cast(1.255 as decimal(10, 2))",
    "cast('1.255' as decimal(10,2)) = 1.26",
    "cast(coalesce(exact, 0) as int)",
    "cast(exact as bigint)",
    "cast(if(isnan(x), 0, x) as int)",
    "cast(text as double)",
    "cast(n as string)",
    "cast(x as string)",
    "cast(cast(x as float) as string)",
    "x * 1e10 || ' and ' || cast(n as double)",
    "cast(100.0 * n as double) || ''",
    "cast(cast('-Infinity' as double) as string)",
    "ceil(9007199254740993 + n) + floor(n)",
    "cast(exact as string)",
    "cast(cast(exact as decimal(38, 18)) as string)",
    "cast(exact - exact as decimal(20, 7)) || ' and ' || cast(exact * 0 as decimal(20, 6))",
    "cast(0.0000001 as string) || cast(cast(0.0000001 as decimal(30, 10)) as string)",
    "cast(-12345678901234567890.5 as decimal(38, 3))",
    "cast(1.50 as string) || ' ' || cast(-2.5 as int) || ' ' || cast(0.1 as double)",
    "cast(n as boolean)",
    "ceil(exact)",
    "floor(exact) || ''",
    "ceil(cast(exact as decimal(38, 18)))",
]


def test_casts_are_those_of_spark(spark):
    frame = spark.sql(NUMBERS)
    expected = frame.selectExpr(*(f"{text} as c{i}" for i, text in enumerate(CASTS))).toArrow()
    given = frame.toArrow()
    for i, text in enumerate(CASTS):
        tree = in_zone(parse_sql(text), "UTC")
        found = values_of(tree, column_of(given, "numbers"), given.num_rows)
        assert plain(found) == plain(expected.column(f"c{i}")), text


@pytest.mark.parametrize(
    ("cast", "says"),
    [
        ("cast(12345.5D as decimal(5, 2))", r"12345\.5 has more than 3 digits before the point"),
        ("cast('9.995' as decimal(3, 2))", r" 10 has more than 1 digit before the point"),
        ("cast('1e400' as decimal(9, 2))", r" 1e400 has more than 7 digits before the point"),
        ("cast('a' as decimal(9, 2))", r"'a' is no decimal\(9,2\)"),
        ("cast('abc' as int)", "'cast' of string as int cannot be computed: 'abc' is no int"),
        ("cast('1.5' as bigint)", "'cast' of string as bigint .* '1.5' is no bigint"),
        ("cast(300 as tinyint)", "'cast' of bigint as tinyint cannot be computed: .* 300 "),
    ],
)
def test_what_spark_s_ansi_mode_refuses_to_cast_is_refused(spark, cast, says):
    with pytest.raises(Exception, match=r"CAST_|OUT_OF_RANGE|NUMERIC"):
        spark.sql(f"select {cast}").collect()
    text = cast.replace("D as", " as")
    with pytest.raises(SchemaError, match=says):
        values_of(in_zone(parse_sql(text), "UTC"), column_of(pa.table({}), "nothing"), 1)


EXACT = [
    "exact + 1.123456789012345678 = 3.623456789012345678",
    "exact - 12345678901234567890.5",
    "full > 12345678901234567890.5 or full < -12345678901234567890.5",
    "exact in (2.5000000000000000001, 0.999)",
    "exact = -1.00500000000000000001",
    "exact % 0.1",
    "exact % n",
    "10 - full % 7",
    "10 - exact % 0.7",
    "x % 0.1",
    "n % 2.5",
    "exact * 1.1 = 2.75",
    "exact + 0.2",
    "exact in (0.999, 2.5)",
    "exact between -1.005 and 1.255",
    "full + 1",
    "full * 2",
    "full * full",
    "full - exact",
    "full * n < 20",
    "greatest(full, n)",
    "full = exact",
    "ln(n) is null",
    "ln(exact) is null",
    "case when n > 1 then n else x end",
    "trim('\t a ')",
]


def test_numbers_are_those_of_spark(spark):
    frame = spark.sql(NUMBERS).filter("n <> 0")
    frame = frame.withColumn("full", col("exact").cast("decimal(38, 18)"))
    expected = frame.selectExpr(*(f"{text} as c{i}" for i, text in enumerate(EXACT))).toArrow()
    given = frame.toArrow()
    for i, text in enumerate(EXACT):
        tree = in_zone(parse_sql(text), "UTC")
        found = values_of(tree, column_of(given, "numbers"), given.num_rows)
        assert str(plain(found)) == str(plain(expected.column(f"c{i}").cast(found.type))), text
    assert values_of(parse_sql("full * 2"), column_of(given, "numbers"), 1).type.scale == 16


TEXTS = [
    r"t like 'a\_%'",
    r"t like '%\\%'",
    r"t ilike '%B%'",
    r"t not ilike 'A%'",
    r"t rlike '^[0-9]+$'",
    r"t regexp '\\d'",
    r"t not rlike r'\d|\s'",
    "regexp_like(t, 'b$')",
    r"t = 'it\'s'",
    "t = 'it''s'",
    r't = "say \"a\""',
    r"'\\ \n\t\r\b\0\Z\q\u00e9\101\%\_' || t",
    r"t = r'a\b'",
    "t rlike '^[0-9]+$' and cast(t as int) > 10",
    "not (t rlike '^[0-9]+$') or cast(t as int) > 10",
    "case when t rlike '[^0-9]' or t = '' then -1 else cast(t as int) end",
    "if(t rlike '^[0-9]+$', cast(t as int), n)",
    "coalesce(n, cast(t as int))",
    "case when n < 100 then n * 9000000000000000000 when n is null then cast(t as bigint) end",
]


UNICODE = [
    "lower(t)",
    "upper(t) || lower(t)",
    "upper(t) = 'STRASSE'",
    "t ilike 'STRASSE'",
    "t ilike '_Δ%Σ'",
    "upper('ß') || t",
    "lower(null)",
]


def test_cases_of_letters_are_those_of_spark(spark):
    texts = ["Straße", "İi", "ΟΔΟΣ", "οδος", "ﬁ", "Ǆ", "ascii", "", "日本", None]
    frame = spark.createDataFrame([(text,) for text in texts], "t string")
    assert_same(frame, UNICODE)
    assert_same(frame.filter("t is null"), UNICODE)


SAID = [
    *("t", "T", "yes", " Y ", "1", "true", "f", "NO", "n", "0", "False", "on", "tru", ""),
    *("2026", "2026-3", "2026-11", "2026-3-1", "2026-11-1", " 2026-03-01 ", "2026-3-01 10:00"),
    *("2026-03-01T", "2026-03-01 x\ny", "026-01-01", "2026-13-01", "2026-02-30", "2026-3-1-"),
    *("2026/03/01", "20260301", "2026-003-01", "2026-", "2026-03-01x"),
]


def test_booleans_and_dates_are_read_of_all_texts_of_which_spark_reads_them(spark):
    frame = spark.createDataFrame([(text,) for text in SAID], "t string")
    assert_same(frame, ["try_cast(t as boolean)", "try_cast(t as date)"])


def assert_same(frame, expressions):
    """What expressions come to is what Spark has."""
    expected = frame.selectExpr(*(f"{text} as c{i}" for i, text in enumerate(expressions)))
    expected, given = expected.toArrow(), frame.toArrow()
    for i, text in enumerate(expressions):
        tree = in_zone(parse_sql(text), "UTC")
        found = values_of(tree, column_of(given, "records"), given.num_rows)
        assert plain(found) == plain(expected.column(f"c{i}")), text


def test_texts_and_what_conditions_guard_are_those_of_spark(spark):
    texts = ["a_b", "aXb", "a\\b", "it's", 'say "a"', "B", "", "7 7", "tab\t"]
    rows = [*((text, 1) for text in texts), ("12", None), ("7", None), (None, 0), ("40", -1)]
    frame = spark.createDataFrame(rows, "t string, n bigint")
    expected = frame.selectExpr(*(f"{text} as c{i}" for i, text in enumerate(TEXTS))).toArrow()
    given = frame.toArrow()
    for i, text in enumerate(TEXTS):
        tree = in_zone(parse_sql(text), "UTC")
        found = values_of(tree, column_of(given, "texts"), given.num_rows)
        assert plain(found) == plain(expected.column(f"c{i}")), text
