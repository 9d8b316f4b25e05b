"""What an expression can be: nulls, chains of any length, exact decimals, texts, dates, numbers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest

import pointstamp as ps
from pointstamp import col
from pointstamp.collections.schema import schema_of
from pointstamp.errors import BuildError, ColumnError, DataError, OperatorError, SchemaError


def values(expression: Any, schema: str, *rows: Any) -> list[Any]:
    """What it is of each row."""
    view = ps.View(lambda scope, t: t.select("place", x=expression), t=f"place long, {schema}")
    view.insert("t", [(place, *row) for place, row in enumerate(rows)])
    view.advance()
    return [x for _, x in view.snapshot()]


def type_of(expression: Any, schema: str) -> str:
    """Its type, with a ? if it may be null."""
    types: list[str] = []
    ps.View(
        lambda scope, t: types.append(str(t.select(x=expression).schema)) or t,  # type: ignore[func-returns-value]  # it is None
        t=schema,
    )
    return types[0].removeprefix("x ")


# Names of what cannot be, and quotients.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: col("v") < 2**63, r"\(col\('v'\) < 9223372036854775808\): .* is beyond long"),
        (lambda: 2**63 - col("v"), r"\(9223372036854775808 - col\('v'\)\): .* is beyond long"),
        (lambda: col("v") & {}, r"\(col\('v'\) & \{\}\): \{\} of type dict is no value"),
        (lambda: col("v") ** 2, r"\(col\('v'\) \*\* 2\) is not defined .*: write a product"),
        (lambda: 2 ** col("v"), r"\(2 \*\* col\('v'\)\) is not defined"),
        (lambda: col("v") ^ True, "write != of two booleans"),
        (lambda: ps.sum("v") % 2, "is no column to compute with"),
    ],
)  # fmt: skip
def test_what_is_no_expression_is_named(make: Any, message: str) -> None:
    with pytest.raises((BuildError, DataError, SchemaError), match=message):
        make()


def test_quotients_are_rounded_down_as_those_of_python() -> None:
    pairs = [
        (a, b) for a in (-7, 0, 7, -(2**63)) for b in (-2, -1, 2, 3) if (a, b) != (-(2**63), -1)
    ]
    assert values(col("a") // col("b"), "a long, b int", *pairs) == [a // b for a, b in pairs]
    assert values(col("a") % col("b"), "a long, b int", *pairs) == [a % b for a, b in pairs]
    assert values(7 % col("b"), "b long?", (None,), (-4,)) == [None, -1]
    assert values(7.5 // col("b"), "b double?", (None,), (-2.0,)) == [None, -4.0]
    assert values(col("a") % -1, "a long", (-(2**63),)) == [0]


@pytest.mark.parametrize(
    ("expression", "schema", "row", "message"),
    [
        (col("a") % col("b"), "a long, b long", (3, 0), "3 is divided by 0, in"),
        (col("a") // col("b"), "a double, b long", (3.0, 0), r"3\.0 is divided by 0, in"),
        (col("a") // -1, "a long", (-(2**63),), "divided by -1 does not fit 64 bits"),
    ],
    ids=str,
)
def test_a_quotient_that_is_none_is_refused(
    expression: Any, schema: str, row: Any, message: str
) -> None:
    with pytest.raises(OperatorError, match=message):
        values(expression, schema, row)


@pytest.mark.parametrize("kind", ["decimal(9,2)", "uint64", "string"])
def test_quotients_of_other_types_are_refused(kind: str) -> None:
    with pytest.raises(SchemaError, match=r"% .* is not defined"):
        values(col("a") % 2, f"a {kind}")


def test_booleans_are_integers_of_any_type() -> None:
    for kind in ("byte", "long", "uint8", "uint64"):
        assert values(col("b").cast(kind), "b boolean?", (True,), (None,), (False,)) == [1, None, 0]


def test_uint64_is_cast_to_other_numbers_and_back() -> None:
    far = (1 << 64) - 1
    assert values(col("a").cast("long"), "a uint64?", (5,), (None,), (0,)) == [5, None, 0]
    assert values(col("a").cast("double"), "a uint64", (far,), (1,)) == [float(far), 1.0]
    assert values(col("a").cast("decimal(9,2)"), "a uint64", (7,)) == [Decimal("7.00")]
    assert values(col("a").cast("uint64"), "a long?", (2**63 - 1,), (None,)) == [2**63 - 1, None]
    assert values(col("a").cast("uint64"), "a double", (2.7,)) == [2]
    for kind, schema, value in [("long", "a uint64", far), ("uint64", "a int", -1)]:
        with pytest.raises(OperatorError, match=f"{value} does not fit {kind}"):
            values(col("a").cast(kind), schema, (value,))
    with pytest.raises(SchemaError, match=r"uint64 goes into no arithmetic.*cast it to long"):
        values(col("a") + 1, "a uint64")


def test_filter_takes_several_predicates() -> None:
    view = ps.View(lambda scope, t: t.filter(col("a") > 1, col("a") < 4), t="a long")
    view.insert("t", [(n,) for n in range(6)])
    assert view.advance() == [((2,), 1), ((3,), 1)]
    with pytest.raises(BuildError, match="'Filter' is given no predicate"):
        ps.View(lambda scope, t: t.filter(), t="a long")


def test_groups_of_expressions() -> None:
    def build(scope: Any, t: Any) -> Any:
        half = (col("a") // 2).alias("half")
        return {
            "sums": t.group_by(half, "b").agg(n=ps.count(), a=ps.sum("a")),
            "plain": t.group_by(col("b")).count(),
            "windows": t.window(ps.Tumbling(4), time="a")
            .group_by("window_start", (col("a") % 2).alias("odd"))
            .count(),
        }

    view = ps.View(build, t="a long, b string")
    view.insert("t", [(2, "x"), (3, "x"), (4, "y")])
    found = view.advance()
    assert found["sums"] == [((1, "x", 2, 5), 1), ((2, "y", 1, 4), 1)]
    assert found["plain"] == [(("x", 2), 1), (("y", 1), 1)]
    assert found["windows"] == [((0, 0, 1), 1), ((0, 1, 1), 1), ((4, 0, 1), 1)]
    for key, message in [
        (col("a") // 2, "which has no name: add .alias"),
        ((col("a") // 2).alias("b"), "there is a column of that name"),
    ]:
        with pytest.raises(ColumnError, match=message):
            ps.View(lambda scope, t, key=key: t.group_by(key).count(), t="a long, b string")


def test_a_decimal_sum_that_does_not_fit_names_its_group() -> None:
    view = ps.View(lambda scope, t: t.group_by("k").agg(s=ps.sum("d")), t="k long, d decimal(18,2)")
    most = Decimal("9999999999999999.99")
    view.insert("t", [(1, most), (7, most), (7, most)])
    with pytest.raises(OperatorError, match=r"more digits .* the group of the key \(7,\): 19999"):
        view.advance()


# Nulls.


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (ps.when(col("n") > 1).then(col("n")).otherwise(None), [None, 2]),
        (ps.when(col("n") > 1).then(None).when(col("n") > 0).then("a").otherwise(None),
         ["a", None]),
        (ps.lit(None).cast("decimal(9,2)"), [None, None]),
        (col("n") + None, [None, None]),
        (col("n") == ps.lit(None), [None, None]),
        (ps.lit(None) != col("n"), [None, None]),
        ((col("n") == 1) | ps.lit(None), [True, None]),
        (ps.lit(None).fill_null(3), [3, 3]),
        (ps.lit(None).is_null(), [True, True]),
        (ps.lit(None).is_in([1]), [None, None]),
        (col("n").is_in([1, None]), [True, None]),
        (~col("n").is_in([1, None]), [False, None]),
        (col("n").is_in([None, col("n") + 0]), [True, True]),
        (ps.coalesce(None, ps.when(col("n") == 2).then(7).otherwise(None), col("n")), [1, 7]),
        (ps.coalesce(col("n"), 1 / (col("n") - col("n"))), [1.0, 2.0]),
    ],
    ids=str,
)  # fmt: skip
def test_a_null_takes_the_type_of_its_context(expression: Any, expected: list[Any]) -> None:
    assert values(expression, "n long", (1,), (2,)) == expected


def test_a_comparison_with_none_is_refused_with_what_is_meant() -> None:
    with pytest.raises(
        SchemaError, match=r"\(col\('n'\) == None\) .*: write col\('n'\)\.is_null\(\)"
    ):
        col("n") == None  # noqa: B015, E711  (an expression)
    with pytest.raises(SchemaError, match=r"write \(col\('n'\) \+ 1\)\.is_not_null\(\)"):
        None != col("n") + 1  # noqa: B015, E711, SIM300
    for sign, make in [
        ("<", lambda: col("n") < None),
        (">", lambda: col("n") > None),
        ("<=", lambda: col("n").between(1, None)),
        (">=", lambda: col("n").between(None, 1)),
    ]:
        with pytest.raises(SchemaError, match=rf"\(col\('n'\) {sign} None\) would be null"):
            make()


def test_what_is_of_two_types_is_told_of_a_cast_only_where_there_is_one() -> None:
    at = dt.datetime(2026, 1, 1, 12)
    in_utc = at.replace(tzinfo=dt.UTC)
    schema = "a timestamp?, b timestamp_utc"
    rows = [(at, in_utc), (None, in_utc)]
    assert values(col("a").cast("timestamp_utc"), schema, *rows) == [in_utc, None]
    assert values(col("b").cast("timestamp"), schema, *rows) == [at, at]
    assert values(col("a").cast("timestamp_utc") == col("b"), schema, *rows) == [True, None]

    def view(make: Any, a: str, b: str) -> ps.View:
        return ps.View(lambda scope, a, b: make(a, b), a=f"k {a}", b=f"k {b}")

    for make in [
        lambda a, b: a.join(b, on="k"),
        lambda a, b: a.concat(b),
        lambda a, b: ps.delta_join([a, b], ["k"]),
        lambda a, b: a.join(b.rename({"k": "x"}), how="cross").filter(col("k") == col("x")),
    ]:
        for one, two in [("timestamp", "timestamp_utc"), ("date", "timestamp"), ("boolean", "int")]:
            with pytest.raises(SchemaError, match="; cast one"):
                view(make, one, two)
        for one, two in [("string", "long"), ("duration", "timestamp"), ("double", "boolean")]:
            with pytest.raises(SchemaError, match=r"; no cast makes them one: .* map\(function"):
                view(make, one, two)
    with pytest.raises(SchemaError, match=r"cannot be cast to long; map\(function, schema\)"):
        values(col("a").cast("long"), "a string")


TYPES = "n int?, s short, b long, u uint8, f float, d double"


@pytest.mark.parametrize(
    ("kind", "expressions"),
    [
        ("long", [col("n") + 1, 1 - col("s"), col("s") * col("s"), col("u") - col("u")]),
        ("long", [col("s") // 2, col("s") % 2, -col("n"), col("n").abs()]),
        ("long", [col("n").fill_null(0), ps.coalesce(col("n"), col("s"))]),
        ("long", [ps.when(col("s") > 0).then(col("s")).otherwise(0)]),
        ("int", [(col("n") + 1).cast("int"), col("n").round(), ps.coalesce(col("n"), col("n"))]),
        ("float", [col("f") + col("f"), col("f") // col("f"), col("f").abs(), col("f").floor()]),
        ("double", [col("f") + 1, col("f") * 2.5, col("f") + col("s"), col("f") - col("d")]),
        ("double", [col("s") / 2, col("f") / col("f"), col("f").sqrt(), col("f").fill_null(0)]),
    ],
)
def test_the_type_of_a_result_is_as_documented(kind: str, expressions: list[Any]) -> None:
    assert [each.bind(schema_of(TYPES)).type.name for each in expressions] == [kind] * len(
        expressions
    )


def test_a_null_without_a_context_is_refused_by_name() -> None:
    for make in (
        lambda t: t.select(x=ps.lit(None)),
        lambda t: t.with_columns(x=ps.coalesce(None, None)),
        lambda t: t.group_by("n").agg(x=ps.count(ps.lit(None))),
    ):
        with pytest.raises(SchemaError, match=r"null, of no type; give it one, as in ps\.lit"):
            ps.View(lambda scope, t, make=make: make(t), t="n long")
    with pytest.raises(SchemaError, match="null is not defined; cast the null"):
        ps.View(lambda scope, t: t.select(x=ps.lit(None) * None), t="n long")
    with pytest.raises(BuildError, match="no value"):
        ps.coalesce()


# Chains.


def test_chains_of_thousands_are_no_deeper_than_others() -> None:
    n = 2_000
    cases = ps.when(col("n") == 0).then(0)
    for k in range(1, 400):
        cases = cases.when(col("n") == k).then(k * k)
    assert values(cases.otherwise(None), "n long", (399,), (0,), (1_000,)) == [399**2, 0, None]
    nested = reduce(
        lambda rest, k: ps.when(col("n") == k).then(k * k).otherwise(rest), range(600), ps.lit(-1)
    )
    assert values(nested, "n long", (599,), (700,)) == [599**2, -1]
    total = reduce(lambda one, _: one + 1, range(n), col("n"))
    assert values(total, "n long", (1,)) == [n + 1]
    total = reduce(lambda one, _: 1 - one, range(n), col("n"))
    assert values(total, "n long", (1,)) == [1]
    either = reduce(lambda one, k: (col("n") == k) | one, range(1_000), col("n") < 0)
    assert values(either, "n long", (999,), (1_000,)) == [True, False]
    assert len(repr(total)) > 5 * n


# Decimals.


@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
def test_decimals_of_other_places_are_compared_exactly(sign: str) -> None:
    compare = {
        "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    }[sign]  # fmt: skip
    most = 10**18 - 1
    whole = [Decimal(n) for n in (0, 1, -1, 12, -12, most, -most)]
    parts = [Decimal(n).scaleb(-4) for n in (0, 1, -1, 120_000, -120_001, -119_999, most, -most)]
    rows = [(a, b) for a in whole for b in parts]
    found = values(compare(col("a"), col("b")), "a decimal(18,0), b decimal(18,4)", *rows)
    assert found == [compare(a, b) for a, b in rows]
    found = values(compare(col("b"), col("a")), "a decimal(18,0), b decimal(18,4)", *rows)
    assert found == [compare(b, a) for a, b in rows]
    longs = [(n, b) for n in (2**63 - 1, -(2**63), 12, 0) for b in parts]
    found = values(compare(col("a"), col("b")), "a long, b decimal(18,4)", *longs)
    assert found == [compare(a, b) for a, b in longs]


def test_the_types_of_decimals_are_those_that_are_written() -> None:
    schema = "a decimal(15,2), b decimal(15,2), c decimal(15,2), n long?"
    price = col("a") * (1 - col("b")) * (1 + col("c"))
    assert type_of(price, schema) == "decimal(18,6)"
    assert values(price, "a decimal(15,2), b decimal(15,2), c decimal(15,2)",
                  (Decimal("104949.50"), Decimal("0.07"), Decimal("0.08"))) == [
        Decimal("104949.50") * Decimal("0.93") * Decimal("1.08")
    ]  # fmt: skip
    assert type_of(col("a") + col("b"), schema) == "decimal(16,2)"
    assert type_of(col("a") - col("n"), schema) == "decimal(18,2)?"
    assert type_of(col("a") / col("b"), schema) == "double"
    assert type_of(col("a").round(1), schema) == "decimal(15,1)"
    assert type_of(col("a").floor(), schema) == "decimal(14,0)"
    with pytest.raises(SchemaError, match="20 places behind the point"):
        type_of(reduce(lambda one, other: one * other, [col("a")] * 10), schema)
    for one, said in [(10**11, r"does not fit decimal\(18,4\)"), (10**12, "does not fit 64 bits")]:
        with pytest.raises(OperatorError, match=said):
            values(
                col("a") * col("b"),
                "a decimal(15,2), b decimal(15,2)",
                (Decimal(one), Decimal(10**3)),
            )


def test_an_average_of_decimals_is_the_nearest_double() -> None:
    view = ps.View(lambda scope, t: t.agg(x=ps.avg("d")), t="d decimal(15,2)")
    view.insert("t", [(Decimal("0.10"),), (Decimal("0.20"),), (Decimal("0.20"),)])
    view.advance()
    assert view.snapshot() == [(0.5 / 3,)]


def test_constants_that_a_column_cannot_have_are_not_among_its_values() -> None:
    found = col("d").is_in([Decimal("0.125"), 1, Decimal("2.50"), 0.75, 10**17])
    rows = [(Decimal(text),) for text in ("0.12", "1.00", "2.50", "0.75", "0.80")]
    assert values(found, "d decimal(9,2)", *rows) == [False, True, True, True, False]


def test_the_values_of_a_set_are_in_one_order_in_every_process() -> None:
    """Workers and checkpoints compare window functions by what they are called."""
    values_of = [f"value {n}" for n in range(10, 30)]
    assert str(col("t").is_in(set(values_of))) == str(col("t").is_in(values_of))
    assert str(col("n").is_in(frozenset([3, 1]))) == "col('n').is_in([1, 3])"
    assert values(col("n").is_in({3, None}), "n long?", (3,), (1,)) == [True, None]


# Texts.


def test_texts_of_any_script() -> None:
    rows = [("Äpfel",), ("",), ("100% 'tea'",)]
    for expression, expected in [
        (col("t").length(), [5, 0, 10]),
        (col("t").lower(), ["äpfel", "", "100% 'tea'"]),
        (col("t").upper(), ["ÄPFEL", "", "100% 'TEA'"]),
        (col("t").slice(1, 3), ["pfe", "", "00%"]),
        (col("t").slice(-2), ["el", "", "a'"]),
        (col("t").slice(-2, 1), ["e", "", "a"]),
        (col("t").like(r"%\%%"), [False, False, True]),
        (col("t").like("_pf%"), [True, False, False]),
        (col("t").contains("%"), [False, False, True]),
        (col("t").starts_with("Ä"), [True, False, False]),
        (col("t").ends_with(""), [True, True, True]),
        ("<" + col("t") + ">", ["<Äpfel>", "<>", "<100% 'tea'>"]),
        (col("t").slice(0, 1).is_in(["Ä", "1"]), [True, False, True]),
    ]:
        assert values(expression, "t string", *rows) == expected


def test_a_text_is_computed_once_for_each_that_is_distinct(monkeypatch: Any) -> None:
    from pointstamp.containers import text_functions

    seen: list[int] = []
    upper = text_functions._FUNCTIONS["upper"]

    def counted(texts: Any) -> Any:
        seen.append(len(texts))
        return upper(texts)

    monkeypatch.setitem(text_functions._FUNCTIONS, "upper", counted)
    found = values(col("t").upper(), "t string?", *([("a",), ("b",), (None,)] * 50))
    assert found == ["A", "B", None] * 50
    assert seen == [3]  # a null has the empty text in its place


def test_binaries_have_bytes() -> None:
    rows = [("é".encode(),), (b"",)]
    assert values(col("b").length(), "b binary", *rows) == [2, 0]
    assert values(col("b").slice(1), "b binary", *rows) == [b"\xa9", b""]
    assert values(col("b").starts_with("\u00e9"), "b binary", *rows) == [True, False]
    assert values(col("b") + b"!", "b binary", *rows) == ["é!".encode(), b"!"]
    with pytest.raises(SchemaError, match="asked of binary, which is no text"):
        values(col("b").upper(), "b binary")


def test_what_is_asked_wrongly_is_refused_when_it_is_written() -> None:
    for make, said in [
        (lambda: col("t").like(5), "like is given 5, and needs a text"),
        (lambda: col("t").slice("a"), "slice is given 'a' and None"),
        (lambda: col("t").slice(0, -1), "slice is given 0 and -1"),
        (lambda: col("x").round(-1), "round is given -1"),
        (lambda: col("x").truncate("fortnight"), "truncate is given 'fortnight'; there are year"),
    ]:
        with pytest.raises(BuildError, match=said):
            make()  # type: ignore[no-untyped-call]  # one of these


@pytest.mark.parametrize(
    "expression",
    [
        col("n").upper(), col("n").year(), col("t").abs(), col("day").hour(),
        col("day").truncate("hour"), col("t").sqrt(), col("at").round(), col("day") + col("at"),
        col("gap") - col("at"), col("t") * "a", col("t") + 1,
    ],
    ids=str,
)  # fmt: skip
def test_what_a_type_has_not_is_refused_when_it_is_bound(expression: Any) -> None:
    with pytest.raises(SchemaError):
        type_of(expression, "n long, t string, day date, at timestamp, gap duration")


@pytest.mark.parametrize(
    ("expression", "row", "said"),
    [
        (col("n").abs(), (-(2**63), 0.0, dt.date(1, 1, 1)), "without its sign is beyond long"),
        (col("x").sqrt(), (0, -1.0, dt.date(1, 1, 1)), "-1.0 has no value, in col"),
        (col("x").log2(), (0, 0.0, dt.date(1, 1, 1)), "0.0 has no value, in col"),
        (
            col("day") + dt.timedelta(hours=36),
            (0, 0.0, dt.date(2026, 1, 1)),
            "no whole number of days",
        ),
        (col("day") - dt.timedelta(1), (0, 0.0, dt.date(1, 1, 1)), "beyond the years 1 to 9999"),
    ],
)
def test_what_has_no_answer_is_an_error(expression: Any, row: Any, said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        values(expression, "n long, x double, day date", row)


# Dates at the edges of the calendar.


def test_parts_of_dates_at_the_edges_of_the_calendar() -> None:
    days = [dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(1969, 12, 31),
            dt.date(2000, 2, 29), dt.date(1900, 3, 1)]  # fmt: skip
    rows = [(day,) for day in days]
    for name in ("year", "month", "day"):
        assert values(getattr(col("d"), name)(), "d date", *rows) == [
            getattr(d, name) for d in days
        ]
    assert values(col("d").weekday(), "d date", *rows) == [d.weekday() for d in days]
    assert values(col("d").truncate("week"), "d date", *rows) == [
        d - dt.timedelta(d.weekday()) for d in days
    ]
    moment = dt.datetime(1969, 12, 31, 23, 59, 58, 7)
    parts = ["hour", "minute", "second", "microsecond"]
    assert [values(getattr(col("a"), part)(), "a timestamp", (moment,)) for part in parts] == [
        [23], [59], [58], [7]
    ]  # fmt: skip
    assert values(col("a").truncate("second"), "a timestamp", (moment,)) == [
        moment.replace(microsecond=0)
    ]
