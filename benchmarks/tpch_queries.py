"""The 22 queries of TPC-H as collections: `build(scope, **tables)` each, kept up to date.

Each takes the tables that it reads by their names; `BUILDS` has them by number. What the
specification varies is an argument, with the value by which answers are validated. Rows that
are ordered and cut off are those of the order, further columns breaking ties; others have none.

Subqueries become joins: `exists` a semi join, `not exists` an anti join, a value of a group a
join with the groups, and a value of all records a cross join with the one row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from inspect import signature
from typing import Any

import pointstamp as ps
from pointstamp import Collection, col

PRICE = col("l_extendedprice") * (1 - col("l_discount"))


def q1(scope: Any, lineitem: Collection) -> Collection:
    """What was shipped until a day, by state."""
    lines = lineitem.filter(col("l_shipdate") <= dt.date(1998, 12, 1) - dt.timedelta(90))
    return lines.group_by("l_returnflag", "l_linestatus").agg(
        sum_qty=ps.sum("l_quantity"),
        sum_base_price=ps.sum("l_extendedprice"),
        sum_disc_price=ps.sum(PRICE),
        sum_charge=ps.sum(PRICE * (1 + col("l_tax"))),
        avg_qty=ps.avg("l_quantity"),
        avg_price=ps.avg("l_extendedprice"),
        avg_disc=ps.avg("l_discount"),
        count_order=ps.count(),
    )


def q2(
    scope: Any,
    part: Collection,
    supplier: Collection,
    partsupp: Collection,
    nation: Collection,
    region: Collection,
) -> Collection:
    """The suppliers of a region that have a part for the least cost."""
    here = _of_region(nation, region, "EUROPE")
    suppliers = supplier.join(here, left_on="s_nationkey", right_on="n_nationkey")
    parts = part.filter((col("p_size") == 15) & col("p_type").ends_with("BRASS"))
    parts = parts.select("p_mfgr", ps_partkey="p_partkey")
    offers = partsupp.select("ps_partkey", "ps_suppkey", "ps_supplycost")
    offers = offers.join(parts, on="ps_partkey")
    offers = offers.join(suppliers, left_on="ps_suppkey", right_on="s_suppkey")
    least = offers.group_by("ps_partkey").agg(ps_supplycost=ps.min("ps_supplycost"))
    found = offers.join(least, on=["ps_partkey", "ps_supplycost"], how="semi")
    columns = [
        *("s_acctbal", "n_name", "s_name", "p_partkey", "p_mfgr"),
        *("s_address", "s_phone", "s_comment"),
    ]
    ordered = found.rename({"ps_partkey": "p_partkey"}).select(*columns)
    return _first(ordered, 100, by="s_acctbal").select(
        "s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment"
    )


def q3(scope: Any, customer: Collection, orders: Collection, lineitem: Collection) -> Collection:
    """The open orders that are worth most."""
    day = dt.date(1995, 3, 15)
    customers = customer.filter(col("c_mktsegment") == "BUILDING").select(o_custkey="c_custkey")
    early = orders.filter(col("o_orderdate") < day).join(customers, on="o_custkey")
    early = early.select("o_orderdate", "o_shippriority", l_orderkey="o_orderkey")
    lines = lineitem.filter(col("l_shipdate") > day).select("l_orderkey", price=PRICE)
    found = lines.join(early, on="l_orderkey")
    found = found.group_by("o_orderdate", "l_orderkey", "o_shippriority").agg(
        revenue=ps.sum("price")
    )
    return _first(found, 10, by="revenue").select(
        "l_orderkey", "revenue", "o_orderdate", "o_shippriority"
    )


def q4(scope: Any, orders: Collection, lineitem: Collection) -> Collection:
    """How many orders of a quarter have a line that came late."""
    chosen = _within(orders, "o_orderdate", dt.date(1993, 7, 1), dt.date(1993, 10, 1))
    chosen = chosen.select("o_orderpriority", l_orderkey="o_orderkey")
    late = lineitem.filter(col("l_commitdate") < col("l_receiptdate")).select("l_orderkey")
    found = chosen.join(late, on="l_orderkey", how="semi")
    return found.group_by("o_orderpriority").agg(order_count=ps.count())


def q5(
    scope: Any,
    customer: Collection,
    orders: Collection,
    lineitem: Collection,
    supplier: Collection,
    nation: Collection,
    region: Collection,
) -> Collection:
    """What suppliers sold to customers of their own nation."""
    here = _of_region(nation, region, "ASIA").rename({"n_nationkey": "nation"})
    suppliers = supplier.select(l_suppkey="s_suppkey", nation="s_nationkey")
    suppliers = suppliers.join(here, on="nation")
    customers = customer.select(o_custkey="c_custkey", nation="c_nationkey")
    customers = customers.join(here.select("nation"), on="nation")
    chosen = _within(orders, "o_orderdate", dt.date(1994, 1, 1), dt.date(1995, 1, 1))
    chosen = chosen.select("o_custkey", l_orderkey="o_orderkey").join(customers, on="o_custkey")
    lines = lineitem.select("l_orderkey", "l_suppkey", price=PRICE)
    found = lines.join(chosen.select("l_orderkey", "nation"), on="l_orderkey")
    found = found.join(suppliers, on=["l_suppkey", "nation"])
    return found.group_by("n_name").agg(revenue=ps.sum("price"))


def q6(scope: Any, lineitem: Collection) -> Collection:
    """What would have come in without small discounts."""
    lines = _within(lineitem, "l_shipdate", dt.date(1994, 1, 1), dt.date(1995, 1, 1))
    lines = lines.filter(
        col("l_discount").between(Decimal("0.05"), Decimal("0.07")) & (col("l_quantity") < 24)
    )
    return lines.agg(revenue=ps.sum(col("l_extendedprice") * col("l_discount")))


def q7(
    scope: Any,
    supplier: Collection,
    lineitem: Collection,
    orders: Collection,
    customer: Collection,
    nation: Collection,
) -> Collection:
    """What two nations sold each other, by year."""
    two = nation.filter(col("n_name").is_in(["FRANCE", "GERMANY"])).select("n_nationkey", "n_name")
    suppliers = supplier.select("s_nationkey", l_suppkey="s_suppkey")
    suppliers = suppliers.join(two, left_on="s_nationkey", right_on="n_nationkey")
    customers = customer.select("c_nationkey", o_custkey="c_custkey")
    customers = customers.join(two, left_on="c_nationkey", right_on="n_nationkey")
    sold = orders.select("o_custkey", l_orderkey="o_orderkey").join(customers, on="o_custkey")
    lines = lineitem.filter(
        col("l_shipdate").between(dt.date(1995, 1, 1), dt.date(1996, 12, 31))
    ).select("l_orderkey", "l_suppkey", l_year=col("l_shipdate").year(), volume=PRICE)
    found = lines.join(suppliers.select("l_suppkey", supp_nation="n_name"), on="l_suppkey")
    found = found.join(sold.select("l_orderkey", cust_nation="n_name"), on="l_orderkey")
    found = found.filter(col("supp_nation") != col("cust_nation"))
    return found.group_by("supp_nation", "cust_nation", "l_year").agg(revenue=ps.sum("volume"))


def q8(
    scope: Any,
    part: Collection,
    supplier: Collection,
    lineitem: Collection,
    orders: Collection,
    customer: Collection,
    nation: Collection,
    region: Collection,
    kind: str = "ECONOMY ANODIZED STEEL",
) -> Collection:
    """A nation's share of what its region bought, by year."""
    here = _of_region(nation, region, "AMERICA").select(c_nationkey="n_nationkey")
    customers = customer.select("c_nationkey", o_custkey="c_custkey").join(here, on="c_nationkey")
    bought = orders.filter(col("o_orderdate").between(dt.date(1995, 1, 1), dt.date(1996, 12, 31)))
    bought = bought.select(
        "o_custkey", l_orderkey="o_orderkey", o_year=col("o_orderdate").year()
    ).join(customers, on="o_custkey")
    parts = part.filter(col("p_type") == kind).select(l_partkey="p_partkey")
    lines = lineitem.select("l_orderkey", "l_partkey", "l_suppkey", volume=PRICE)
    found = lines.join(parts, on="l_partkey")
    found = found.join(bought.select("l_orderkey", "o_year"), on="l_orderkey")
    found = found.join(_nation_of(supplier, nation), on="l_suppkey")
    own = ps.when(col("nation") == "BRAZIL").then(col("volume")).otherwise(0)
    shares = found.group_by("o_year").agg(own=ps.sum(own), total=ps.sum("volume"))
    return shares.select("o_year", mkt_share=col("own") / col("total"))


def q9(
    scope: Any,
    part: Collection,
    supplier: Collection,
    lineitem: Collection,
    partsupp: Collection,
    orders: Collection,
    nation: Collection,
) -> Collection:
    """What was earned with some parts, by nation and year."""
    parts = part.filter(col("p_name").contains("green")).select(l_partkey="p_partkey")
    costs = partsupp.select("ps_supplycost", l_partkey="ps_partkey", l_suppkey="ps_suppkey")
    lines = lineitem.select("l_orderkey", "l_partkey", "l_suppkey", "l_quantity", price=PRICE)
    found = lines.join(parts, on="l_partkey").join(costs, on=["l_partkey", "l_suppkey"])
    found = found.select(
        "l_orderkey",
        "l_suppkey",
        amount=col("price") - col("ps_supplycost") * col("l_quantity"),
    )
    found = found.join(_nation_of(supplier, nation), on="l_suppkey")
    years = orders.select(l_orderkey="o_orderkey", o_year=col("o_orderdate").year())
    found = found.join(years, on="l_orderkey")
    return found.group_by("nation", "o_year").agg(sum_profit=ps.sum("amount"))


def q10(
    scope: Any,
    customer: Collection,
    orders: Collection,
    lineitem: Collection,
    nation: Collection,
) -> Collection:
    """The customers that sent back most."""
    chosen = _within(orders, "o_orderdate", dt.date(1993, 10, 1), dt.date(1994, 1, 1))
    chosen = chosen.select(l_orderkey="o_orderkey", c_custkey="o_custkey")
    lines = lineitem.filter(col("l_returnflag") == "R").select("l_orderkey", price=PRICE)
    found = lines.join(chosen, on="l_orderkey")
    found = found.group_by("c_custkey").agg(revenue=ps.sum("price"))
    found = _first(found, 20, by="revenue").join(customer, on="c_custkey")
    found = found.join(nation, left_on="c_nationkey", right_on="n_nationkey")
    return found.select(
        *("c_custkey", "c_name", "revenue", "c_acctbal"),
        *("n_name", "c_address", "c_phone", "c_comment"),
    )


def q11(
    scope: Any,
    partsupp: Collection,
    supplier: Collection,
    nation: Collection,
    fraction: Decimal = Decimal("0.0001"),
) -> Collection:
    """The parts in stock in a nation that are worth more than a fraction of all."""
    here = nation.filter(col("n_name") == "GERMANY").select(s_nationkey="n_nationkey")
    suppliers = supplier.select("s_nationkey", ps_suppkey="s_suppkey").join(here, on="s_nationkey")
    stock = partsupp.join(suppliers, on="ps_suppkey")
    stock = stock.select("ps_partkey", value=col("ps_supplycost") * col("ps_availqty"))
    values = stock.group_by("ps_partkey").agg(value=ps.sum("value"))
    found = values.join(stock.agg(total=ps.sum("value")), how="cross")
    return found.filter(col("value") > col("total") * fraction).select("ps_partkey", "value")


def q12(scope: Any, orders: Collection, lineitem: Collection) -> Collection:
    """How many lines came late, of urgent orders and of others, by the way of shipping."""
    lines = _within(lineitem, "l_receiptdate", dt.date(1994, 1, 1), dt.date(1995, 1, 1))
    lines = lines.filter(
        col("l_shipmode").is_in(["MAIL", "SHIP"])
        & (col("l_commitdate") < col("l_receiptdate"))
        & (col("l_shipdate") < col("l_commitdate"))
    ).select("l_orderkey", "l_shipmode")
    is_high = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    urgent = orders.select(l_orderkey="o_orderkey", high=ps.when(is_high).then(1).otherwise(0))
    found = lines.join(urgent, on="l_orderkey")
    return found.group_by("l_shipmode").agg(
        high_line_count=ps.sum("high"), low_line_count=ps.sum(1 - col("high"))
    )


def q13(scope: Any, customer: Collection, orders: Collection) -> Collection:
    """How many customers have how many orders, of which some do not count."""
    counted = orders.filter(~col("o_comment").like("%special%requests%"))
    counts = counted.select(c_custkey="o_custkey").group_by("c_custkey").agg(n=ps.count())
    of_each = customer.select("c_custkey").join(counts, on="c_custkey", how="left")
    of_each = of_each.select(c_count=ps.coalesce(col("n"), 0))
    return of_each.group_by("c_count").agg(custdist=ps.count())


def q14(scope: Any, lineitem: Collection, part: Collection) -> Collection:
    """The share of promoted parts in what came in in a month."""
    lines = _within(lineitem, "l_shipdate", dt.date(1995, 9, 1), dt.date(1995, 10, 1))
    lines = lines.select("l_partkey", price=PRICE)
    parts = part.select(l_partkey="p_partkey", promoted=col("p_type").starts_with("PROMO"))
    promoted = ps.when(col("promoted")).then(col("price")).otherwise(0)
    sums = lines.join(parts, on="l_partkey").agg(one=ps.sum(promoted), all=ps.sum("price"))
    return sums.select(promo_revenue=100 * col("one") / col("all"))


def q15(scope: Any, lineitem: Collection, supplier: Collection) -> Collection:
    """The suppliers that sold most in a quarter."""
    lines = _within(lineitem, "l_shipdate", dt.date(1996, 1, 1), dt.date(1996, 4, 1))
    sold = lines.select(s_suppkey="l_suppkey", price=PRICE)
    sold = sold.group_by("s_suppkey").agg(total_revenue=ps.sum("price"))
    most = sold.agg(total_revenue=ps.max("total_revenue"))
    best = sold.join(most, on="total_revenue").join(supplier, on="s_suppkey")
    return best.select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")


def q16(scope: Any, partsupp: Collection, part: Collection, supplier: Collection) -> Collection:
    """How many suppliers without complaints have a kind of parts."""
    parts = part.filter(
        (col("p_brand") != "Brand#45")
        & ~col("p_type").starts_with("MEDIUM POLISHED")
        & col("p_size").is_in([49, 14, 23, 45, 19, 3, 36, 9])
    ).select("p_brand", "p_type", "p_size", ps_partkey="p_partkey")
    bad = supplier.filter(col("s_comment").like("%Customer%Complaints%"))
    offers = partsupp.select("ps_partkey", "ps_suppkey")
    offers = offers.join(bad.select(ps_suppkey="s_suppkey"), on="ps_suppkey", how="anti")
    found = offers.join(parts, on="ps_partkey").group_by("p_brand", "p_type", "p_size")
    return found.agg(supplier_cnt=ps.count_distinct("ps_suppkey"))


def q17(scope: Any, lineitem: Collection, part: Collection) -> Collection:
    """What small orders of some parts bring in a year."""
    parts = part.filter((col("p_brand") == "Brand#23") & (col("p_container") == "MED BOX"))
    lines = lineitem.select("l_partkey", "l_quantity", "l_extendedprice")
    lines = lines.join(parts.select(l_partkey="p_partkey"), on="l_partkey")
    usual = lines.group_by("l_partkey").agg(usual=ps.avg("l_quantity"))
    small = lines.join(usual, on="l_partkey").filter(col("l_quantity") < 0.2 * col("usual"))
    return small.agg(all=ps.sum("l_extendedprice")).select(avg_yearly=col("all") / 7)


def q18(
    scope: Any,
    customer: Collection,
    orders: Collection,
    lineitem: Collection,
    quantity: int = 300,
) -> Collection:
    """The dearest of the large orders."""
    large = lineitem.group_by("l_orderkey").agg(total=ps.sum("l_quantity"))
    large = large.filter(col("total") > quantity).rename({"l_orderkey": "o_orderkey"})
    found = orders.select("o_orderkey", "o_custkey", "o_totalprice", "o_orderdate")
    found = found.join(large, on="o_orderkey")
    found = found.join(customer.select("c_name", o_custkey="c_custkey"), on="o_custkey")
    columns = ["o_orderdate", "o_orderkey", "c_name", "o_custkey", "o_totalprice", "total"]
    found = _first(found.select(*columns), 100, by="o_totalprice")
    return found.select(
        *("c_name", "o_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "total")
    )


def q19(scope: Any, lineitem: Collection, part: Collection) -> Collection:
    """What small parts, and larger ones, brought in that were delivered by air."""

    def of(brand: str, size: str, containers: Sequence[str], largest: int) -> Any:
        boxes = [f"{size} {container}" for container in containers]
        is_size = col("p_size").between(1, largest)
        return (col("p_brand") == brand) & col("p_container").is_in(boxes) & is_size

    least = (
        ps.when(of("Brand#12", "SM", ["CASE", "BOX", "PACK", "PKG"], 5)).then(1)
        .when(of("Brand#23", "MED", ["BAG", "BOX", "PKG", "PACK"], 10)).then(10)
        .when(of("Brand#34", "LG", ["CASE", "BOX", "PACK", "PKG"], 15)).then(20)
        .otherwise(None)
    )  # fmt: skip
    parts = part.select(l_partkey="p_partkey", least=least).filter(col("least").is_not_null())
    lines = lineitem.filter(
        col("l_shipmode").is_in(["AIR", "REG AIR"]) & (col("l_shipinstruct") == "DELIVER IN PERSON")
    ).select("l_partkey", "l_quantity", price=PRICE)
    found = lines.join(parts, on="l_partkey")
    found = found.filter(col("l_quantity").between(col("least"), col("least") + 10))
    return found.agg(revenue=ps.sum("price"))


def q20(
    scope: Any,
    supplier: Collection,
    nation: Collection,
    partsupp: Collection,
    part: Collection,
    lineitem: Collection,
) -> Collection:
    """The suppliers of a nation that have more of a part than they need."""
    parts = part.filter(col("p_name").starts_with("forest")).select(l_partkey="p_partkey")
    lines = _within(lineitem, "l_shipdate", dt.date(1994, 1, 1), dt.date(1995, 1, 1))
    lines = lines.select("l_partkey", "l_suppkey", "l_quantity").join(parts, on="l_partkey")
    sold = lines.group_by("l_partkey", "l_suppkey").agg(sold=ps.sum("l_quantity"))
    offers = partsupp.select("ps_availqty", l_partkey="ps_partkey", l_suppkey="ps_suppkey")
    more = offers.join(sold, on=["l_partkey", "l_suppkey"])
    more = more.filter(col("ps_availqty") > Decimal("0.5") * col("sold"))
    here = nation.filter(col("n_name") == "CANADA").select(s_nationkey="n_nationkey")
    found = supplier.join(here, on="s_nationkey")
    found = found.join(more, left_on="s_suppkey", right_on="l_suppkey", how="semi")
    return found.select("s_name", "s_address")


def q21(
    scope: Any,
    supplier: Collection,
    lineitem: Collection,
    orders: Collection,
    nation: Collection,
) -> Collection:
    """The suppliers that alone held up the most orders of several."""
    here = nation.filter(col("n_name") == "SAUDI ARABIA").select(s_nationkey="n_nationkey")
    suppliers = supplier.select("s_nationkey", "s_name", l_suppkey="s_suppkey")
    suppliers = suppliers.join(here, on="s_nationkey").select("l_suppkey", "s_name")
    done = orders.filter(col("o_orderstatus") == "F").select(l_orderkey="o_orderkey")
    is_late = col("l_receiptdate") > col("l_commitdate")
    lines = lineitem.select("l_orderkey", "l_suppkey", late=is_late)
    late_supplier = ps.when(col("late")).then(col("l_suppkey")).otherwise(None)
    alone = lines.group_by("l_orderkey").agg(
        suppliers=ps.count_distinct("l_suppkey"), late=ps.count_distinct(late_supplier)
    )
    alone = alone.filter((col("suppliers") > 1) & (col("late") == 1)).select("l_orderkey")
    found = lines.filter(col("late")).select("l_orderkey", "l_suppkey")
    found = found.join(suppliers, on="l_suppkey").select("l_orderkey", "s_name")
    found = found.join(done, on="l_orderkey").join(alone, on="l_orderkey")
    return _first(found.group_by("s_name").agg(numwait=ps.count()), 100, by="numwait")


def q22(scope: Any, customer: Collection, orders: Collection) -> Collection:
    """The customers with money that never order, by country."""
    code = col("c_phone").slice(0, 2)
    chosen = customer.select("c_custkey", "c_acctbal", cntrycode=code)
    chosen = chosen.filter(col("cntrycode").is_in(["13", "31", "23", "29", "30", "18", "17"]))
    usual = chosen.filter(col("c_acctbal") > 0).agg(usual=ps.avg("c_acctbal"))
    rich = chosen.join(usual, how="cross").filter(col("c_acctbal") > col("usual"))
    found = rich.join(orders.select(c_custkey="o_custkey"), on="c_custkey", how="anti")
    return found.group_by("cntrycode").agg(numcust=ps.count(), totacctbal=ps.sum("c_acctbal"))


_ALL = (
    *(q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19),
    *(q20, q21, q22),
)
BUILDS: dict[int, Callable[..., Collection]] = dict(enumerate(_ALL, start=1))


def tables_of(build: Callable[..., Collection]) -> list[str]:
    """The tables that a query reads.

    >>> tables_of(q4)
    ['orders', 'lineitem']
    """
    _, *parameters = signature(build).parameters.values()
    return [each.name for each in parameters if each.default is each.empty]


def _within(table: Collection, column: str, first: dt.date, beyond: dt.date) -> Collection:
    """The records from a day on, and before another."""
    return table.filter((col(column) >= first) & (col(column) < beyond))


def _of_region(nation: Collection, region: Collection, name: str) -> Collection:
    """The nations of a region."""
    chosen = region.filter(col("r_name") == name).select(n_regionkey="r_regionkey")
    return nation.join(chosen, on="n_regionkey").select("n_nationkey", "n_name")


def _nation_of(supplier: Collection, nation: Collection) -> Collection:
    """The nation of each supplier, by name."""
    names = nation.select(s_nationkey="n_nationkey", nation="n_name")
    found = supplier.select("s_nationkey", l_suppkey="s_suppkey").join(names, on="s_nationkey")
    return found.select("l_suppkey", "nation")


def _first(table: Collection, k: int, by: str) -> Collection:
    """The records with the greatest value of a column, of all; ties by the others, in order."""
    whole = table.with_columns(all=ps.lit(0)).group_by("all")
    return whole.top_k(k, by=by).select(*table.schema.names)
