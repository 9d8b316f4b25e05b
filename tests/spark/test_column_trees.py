"""Columns as trees, of a session here and of Spark Connect: the same as of their text."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from pointstamp.errors import UsageError
from pointstamp.graph.tables.messages import parse_aggregate
from pointstamp.graph.tables.sql_text import Constant, parse_sql
from pointstamp.spark.column_trees import aggregate_tree, is_column, tree_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(params=["session", "connect"])
def functions(spark, request):
    """The functions that make Columns; those of Connect make them without a server."""
    if request.param == "session":
        from pyspark.sql import functions

        return functions
    pytest.importorskip("grpc")
    from pyspark.sql.connect import functions

    return functions


EXPRESSIONS = {
    "src.age + 1": lambda f: f.col("src.age") + 1,
    "1 - src.age * 2 / dst.age % 3": lambda f: 1 - f.col("src.age") * 2 / f.col("dst.age") % 3,
    "-x": lambda f: -f.col("x"),
    "case when a is null then b + 1 end": lambda f: f.when(f.col("a").isNull(), f.col("b") + 1),
    "case when a is null then 1 when not a is null then 2 else 'x' end": lambda f: (
        f.when(f.isnull("a"), 1).when(f.col("a").isNotNull(), 2).otherwise("x")
    ),
    "least(label, coalesce(msg, label))": lambda f: f.least(
        "label", f.coalesce(f.col("msg"), "label")
    ),
    "cast(age as double)": lambda f: f.col("age").cast("Double").alias("no_matter"),
    "cast(age as bigint)": lambda f: f.col("age").astype("bigint"),
    "try_cast(age as bigint)": lambda f: f.col("age").try_cast("bigint"),
    "name like 'a%'": lambda f: f.col("name").like("a%"),
    "x in (1, 2.5e0)": lambda f: f.col("x").isin(1, 2.5),
    "x >= 1 and x <= 2": lambda f: f.col("x").between(1, 2),
    "not x = 3 and y < 2 or z <=> null": lambda f: (
        ~(f.col("x") == 3) & (f.col("y") < 2) | f.col("z").eqNullSafe(None)
    ),
    "not x = 3": lambda f: f.col("x") != 3,
    "pow(x, 2) > sqrt(abs(y))": lambda f: f.pow("x", f.lit(2)) > f.sqrt(f.abs("y")),
    "concat(upper(a), lower(b), trim(c), 'z')": lambda f: f.concat(
        f.upper("a"), f.lower("b"), f.trim("c"), f.lit("z")
    ),
    "length(a) = year(b)": lambda f: f.length("a") == f.year("b"),
    "`a b`.c": lambda f: f.col("`a b`.c"),
    "src.place.name": lambda f: f.col("src")["place"].getField("name"),
    "src.age + 2 between 3 and 4": lambda f: f.expr("src.age + 2 between 3 and 4"),
    "true": lambda f: f.lit(True),
    "null": lambda f: f.lit(None),
    "1099511627776": lambda f: f.lit(2**40),
    "date '2020-01-02'": lambda f: f.lit(datetime.date(2020, 1, 2)),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_column_is_the_tree_of_its_text(functions, text):
    column = EXPRESSIONS[text](functions)
    assert is_column(column)
    assert not is_column(text)
    assert tree_of(column) == parse_sql(text)


def test_values_that_text_has_no_word_for_are_constants(functions):
    assert tree_of(functions.lit(Decimal("1.5"))) == Constant(Decimal("1.5"))
    moment = datetime.datetime(2020, 7, 2, 3, 4, 5, 678, tzinfo=datetime.UTC)
    found = tree_of(functions.lit(moment))
    assert found.kind == "timestamp"
    assert datetime.datetime.fromisoformat(found.value) == moment


AGGREGATES = {
    "sum(msg * 2) as total": lambda f: f.sum(f.col("msg") * 2).alias("total"),
    "min(msg) as m": lambda f: f.expr("min(msg) as m"),
    "count(*) as n": lambda f: f.count("*").alias("n"),
    "count_distinct(msg) as n": lambda f: f.count_distinct("msg").alias("n"),
    "avg(msg) as n": lambda f: f.avg("msg").alias("n"),
}


@pytest.mark.parametrize("text", AGGREGATES)
def test_an_aggregate_is_that_of_its_text(functions, text):
    assert aggregate_tree(AGGREGATES[text](functions)) == parse_aggregate(text)


def test_what_arrow_evaluates_nothing_of_is_refused(functions):
    x = functions.col("x")
    for wrong, column in {
        "a part of what is computed of": functions.array(x)[0],
        "a LambdaFunction of": functions.transform(x, lambda one: one + 1),
        "of .* is nothing that Arrow evaluates here": functions.lit(b"bytes"),
        "a UnresolvedStar of": functions.col("*"),
    }.items():
        with pytest.raises(UsageError, match=wrong):
            tree_of(column)
    for column in (x + 1, functions.sum_distinct("x"), functions.stddev("x")):
        with pytest.raises(UsageError, match="an aggregate of messages is one of"):
            aggregate_tree(column)


def test_a_column_of_a_dataframe_is_refused(spark):
    with pytest.raises(
        UsageError, match=r"^a function of Python, or a column that belongs to a Data"
    ):
        tree_of(spark.range(1)["id"] + 1)


def test_a_function_of_python_is_refused_in_a_line_that_can_be_read(functions):
    column = functions.udf(lambda x: x, "long")(functions.col("x"))
    with pytest.raises(UsageError, match=r"^a function of Python, or a column") as caught:
        tree_of(column)
    assert len(str(caught.value)) < 350
