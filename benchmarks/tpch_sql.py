"""The 22 queries of TPC-H in SQL, for engines that recompute them.

They ask what the specification asks, in the words of DuckDB, and give the columns of
`tpch_queries` in their order. In braces stand arguments, those of the functions there.
"""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from inspect import signature
from typing import Any

from benchmarks.tpch_queries import BUILDS

_PRICE = "l_extendedprice * (1 - l_discount)"

_SQL = {
    1: f"""
        select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum({_PRICE}),
            sum({_PRICE} * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount),
            count(*)
        from lineitem where l_shipdate <= date '1998-12-01' - interval 90 day
        group by all""",
    2: """
        with offers as (
            select * from partsupp
            join part on p_partkey = ps_partkey
            join supplier on s_suppkey = ps_suppkey
            join nation on n_nationkey = s_nationkey
            join region on r_regionkey = n_regionkey
            where p_size = 15 and p_type like '%BRASS' and r_name = 'EUROPE')
        select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        from offers
        where ps_supplycost = (
            select min(ps_supplycost) from offers as others
            where others.ps_partkey = offers.ps_partkey)
        order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    3: f"""
        select l_orderkey, sum({_PRICE}) as revenue, o_orderdate, o_shippriority
        from lineitem
        join orders on o_orderkey = l_orderkey
        join customer on c_custkey = o_custkey
        where c_mktsegment = 'BUILDING'
            and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority
        order by revenue desc, o_orderdate, l_orderkey limit 10""",
    4: """
        select o_orderpriority, count(*) from orders
        where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-10-01'
            and exists (
                select 1 from lineitem
                where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by all""",
    5: f"""
        select n_name, sum({_PRICE}) from lineitem
        join orders on o_orderkey = l_orderkey
        join customer on c_custkey = o_custkey
        join supplier on s_suppkey = l_suppkey and s_nationkey = c_nationkey
        join nation on n_nationkey = s_nationkey
        join region on r_regionkey = n_regionkey
        where r_name = 'ASIA'
            and o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01'
        group by all""",
    6: """
        select sum(l_extendedprice * l_discount) from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
            and l_discount between 0.05 and 0.07 and l_quantity < 24""",
    7: f"""
        select sellers.n_name, buyers.n_name, year(l_shipdate), sum({_PRICE}) from lineitem
        join supplier on s_suppkey = l_suppkey
        join orders on o_orderkey = l_orderkey
        join customer on c_custkey = o_custkey
        join nation as sellers on sellers.n_nationkey = s_nationkey
        join nation as buyers on buyers.n_nationkey = c_nationkey
        where (sellers.n_name, buyers.n_name) in (('FRANCE', 'GERMANY'), ('GERMANY', 'FRANCE'))
            and l_shipdate between date '1995-01-01' and date '1996-12-31'
        group by all""",
    8: f"""
        select year(o_orderdate) as o_year,
            sum(case when sellers.n_name = 'BRAZIL' then {_PRICE} else 0 end) / sum({_PRICE})
        from lineitem
        join part on p_partkey = l_partkey
        join supplier on s_suppkey = l_suppkey
        join orders on o_orderkey = l_orderkey
        join customer on c_custkey = o_custkey
        join nation as buyers on buyers.n_nationkey = c_nationkey
        join region on r_regionkey = buyers.n_regionkey
        join nation as sellers on sellers.n_nationkey = s_nationkey
        where r_name = 'AMERICA' and p_type = '{{kind}}'
            and o_orderdate between date '1995-01-01' and date '1996-12-31'
        group by o_year""",
    9: f"""
        select n_name, year(o_orderdate), sum({_PRICE} - ps_supplycost * l_quantity)
        from lineitem
        join part on p_partkey = l_partkey
        join supplier on s_suppkey = l_suppkey
        join partsupp on ps_partkey = l_partkey and ps_suppkey = l_suppkey
        join orders on o_orderkey = l_orderkey
        join nation on n_nationkey = s_nationkey
        where p_name like '%green%'
        group by all""",
    10: f"""
        select c_custkey, c_name, sum({_PRICE}) as revenue, c_acctbal, n_name, c_address, c_phone,
            c_comment
        from lineitem
        join orders on o_orderkey = l_orderkey
        join customer on c_custkey = o_custkey
        join nation on n_nationkey = c_nationkey
        where o_orderdate >= date '1993-10-01' and o_orderdate < date '1994-01-01'
            and l_returnflag = 'R'
        group by all
        order by revenue desc, c_custkey limit 20""",
    11: """
        with stock as (
            select ps_partkey, ps_supplycost * ps_availqty as value from partsupp
            join supplier on s_suppkey = ps_suppkey
            join nation on n_nationkey = s_nationkey
            where n_name = 'GERMANY')
        select ps_partkey, sum(value) as total from stock
        group by ps_partkey
        having total > (select sum(value) * {fraction} from stock)""",
    12: """
        select l_shipmode,
            count(*) filter (o_orderpriority in ('1-URGENT', '2-HIGH')),
            count(*) filter (o_orderpriority not in ('1-URGENT', '2-HIGH'))
        from lineitem
        join orders on o_orderkey = l_orderkey
        where l_shipmode in ('MAIL', 'SHIP')
            and l_commitdate < l_receiptdate and l_shipdate < l_commitdate
            and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1995-01-01'
        group by all""",
    13: """
        select c_count, count(*) from (
            select c_custkey, count(o_orderkey) as c_count from customer
            left join orders
                on o_custkey = c_custkey and o_comment not like '%special%requests%'
            group by c_custkey)
        group by c_count""",
    14: f"""
        select 100 * sum(case when p_type like 'PROMO%' then {_PRICE} else 0 end) / sum({_PRICE})
        from lineitem
        join part on p_partkey = l_partkey
        where l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'""",
    15: f"""
        with sold as (
            select l_suppkey, sum({_PRICE}) as total_revenue from lineitem
            where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-04-01'
            group by l_suppkey)
        select s_suppkey, s_name, s_address, s_phone, total_revenue from sold
        join supplier on s_suppkey = l_suppkey
        where total_revenue = (select max(total_revenue) from sold)""",
    16: """
        select p_brand, p_type, p_size, count(distinct ps_suppkey) from partsupp
        join part on p_partkey = ps_partkey
        where p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
            and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
            and ps_suppkey not in (
                select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
        group by all""",
    17: """
        select sum(l_extendedprice) / 7 from lineitem
        join part on p_partkey = l_partkey
        where p_brand = 'Brand#23' and p_container = 'MED BOX'
            and l_quantity < (
                select 0.2 * avg(l_quantity) from lineitem as others
                where others.l_partkey = p_partkey)""",
    18: """
        select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        from lineitem
        join orders on o_orderkey = l_orderkey
        join customer on c_custkey = o_custkey
        where o_orderkey in (
            select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > {quantity})
        group by all
        order by o_totalprice desc, o_orderdate, o_orderkey limit 100""",
    19: f"""
        select sum({_PRICE}) from lineitem
        join part on p_partkey = l_partkey
        where l_shipmode in ('AIR', 'REG AIR') and l_shipinstruct = 'DELIVER IN PERSON'
            and ((p_brand = 'Brand#12' and l_quantity between 1 and 11 and p_size between 1 and 5
                    and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG'))
                or (p_brand = 'Brand#23' and l_quantity between 10 and 20
                    and p_size between 1 and 10
                    and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK'))
                or (p_brand = 'Brand#34' and l_quantity between 20 and 30
                    and p_size between 1 and 15
                    and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')))""",
    20: """
        select s_name, s_address from supplier
        join nation on n_nationkey = s_nationkey
        where n_name = 'CANADA' and s_suppkey in (
            select ps_suppkey from partsupp
            where ps_partkey in (select p_partkey from part where p_name like 'forest%')
                and ps_availqty > (
                    select 0.5 * sum(l_quantity) from lineitem
                    where l_partkey = ps_partkey and l_suppkey = ps_suppkey
                        and l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'))""",
    21: """
        select s_name, count(*) as numwait from lineitem
        join supplier on s_suppkey = l_suppkey
        join orders on o_orderkey = l_orderkey
        join nation on n_nationkey = s_nationkey
        where o_orderstatus = 'F' and n_name = 'SAUDI ARABIA' and l_receiptdate > l_commitdate
            and exists (
                select 1 from lineitem as others
                where others.l_orderkey = lineitem.l_orderkey
                    and others.l_suppkey <> lineitem.l_suppkey)
            and not exists (
                select 1 from lineitem as others
                where others.l_orderkey = lineitem.l_orderkey
                    and others.l_suppkey <> lineitem.l_suppkey
                    and others.l_receiptdate > others.l_commitdate)
        group by s_name
        order by numwait desc, s_name limit 100""",
    22: """
        with chosen as (
            select c_custkey, c_acctbal, substring(c_phone, 1, 2) as code from customer
            where code in ('13', '31', '23', '29', '30', '18', '17'))
        select code, count(*), sum(c_acctbal) from chosen
        where c_acctbal > (select avg(c_acctbal) from chosen where c_acctbal > 0)
            and not exists (select 1 from orders where o_custkey = c_custkey)
        group by code""",
}


def sql_of(number: int, **given: Any) -> str:
    """The query of a number, with its arguments, those that are not given as validated.

    >>> "having sum(l_quantity) > 250" in sql_of(18, quantity=250)
    True
    """
    parameters = signature(BUILDS[number]).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    return _SQL[number].format(**{**defaults, **given})


class Recomputed:
    """The tables in DuckDB, which answers each query anew.

    Parameters
    ----------
    tables : the record batches of all, by name
    """

    def __init__(self, tables: dict[str, Any]) -> None:
        import duckdb

        self._connection = duckdb.connect()
        for name, table in tables.items():
            self._with(table, f"create table {name} as select * from given")

    def refresh(self, come: tuple[Any, Any], gone: tuple[Any, Any]) -> None:
        """Add orders and their lines, and remove others."""
        for place, (name, key) in enumerate((("orders", "o_orderkey"), ("lineitem", "l_orderkey"))):
            self._with(come[place], f"insert into {name} select * from given")
            chosen = "select o_orderkey from given"
            self._with(gone[0], f"delete from {name} where {key} in ({chosen})")

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query in SQL."""
        rows: list[tuple[Any, ...]] = self._connection.execute(query).fetchall()
        return rows

    def _with(self, given: Any, statement: str) -> None:
        import pyarrow as pa

        self._connection.register("given", pa.Table.from_batches([given]))
        self._connection.execute(statement)
        self._connection.unregister("given")


def differences(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> list[str]:
    """What two answers have not in common, floats but for their last digits.

    >>> differences([(1, 0.1 + 0.2)], [(1, 0.3)]), differences([(1,)], [])
    ([], ['1 rows for 0'])
    """
    if len(found) != len(expected):
        return [f"{len(found)} rows for {len(expected)}"]
    pairs = zip(sorted(found, key=_exact), sorted(expected, key=_exact), strict=True)
    return [
        f"{one} for {other}"
        for one, other in pairs
        if len(one) != len(other) or not all(map(_is_near, one, other))
    ]


_SHOWN = 10
"""So many rows of an answer are written to a file of results."""


def summary(rows: list[tuple[Any, ...]]) -> list[list[str]]:
    """An answer in texts, floats with six digits, so that two that are near are equal.

    Of a long one the first rows, and a hash of the others.
    """
    found = sorted(
        [f"{v:.6g}" if isinstance(v, float) else "".join(_exact((v,))) for v in row] for row in rows
    )
    shown, others = found[:_SHOWN], found[_SHOWN:]
    if others:
        shown.append([f"and {len(others)} more", sha256(repr(others).encode()).hexdigest()])
    return shown


def _exact(row: tuple[Any, ...]) -> list[str]:
    """An order by all but floats."""
    return [
        f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
        for value in row
        if not isinstance(value, float)
    ]


def _is_near(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, (float, Decimal)):
        return abs(one - float(other)) <= 1e-9 * max(1.0, abs(one))
    return bool(one == other)
