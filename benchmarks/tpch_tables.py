"""The tables of TPC-H, made of a seed, by the rules of the specification that its queries need.

Columns that no query reads are left out, and texts that a query only looks into are words of our
own, among which those that it looks for are as frequent as they should be. Keys, dates, prices and
what follows of them are the specification's: which supplier has a part, what a line costs, when it
is shipped, and which orders are open.

Small scales have at least so many suppliers, parts and customers that the queries find something.

Source: the TPC Benchmark H standard specification, section 4.2.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.schema import schema_of
from pointstamp.containers.words import STRING

Ints = npt.NDArray[np.int64]
Columns = dict[str, Any]

SCHEMAS = {
    "region": "r_regionkey long, r_name string",
    "nation": "n_nationkey long, n_name string, n_regionkey long",
    "supplier": "s_suppkey long, s_name string, s_address string, s_nationkey long, "
    "s_phone string, s_acctbal decimal(15,2), s_comment string",
    "part": "p_partkey long, p_name string, p_mfgr string, p_brand string, p_type string, "
    "p_size long, p_container string",
    "partsupp": "ps_partkey long, ps_suppkey long, ps_availqty long, ps_supplycost decimal(15,2)",
    "customer": "c_custkey long, c_name string, c_address string, c_nationkey long, "
    "c_phone string, c_acctbal decimal(15,2), c_mktsegment string, c_comment string",
    "orders": "o_orderkey long, o_custkey long, o_orderstatus string, "
    "o_totalprice decimal(15,2), o_orderdate date, o_orderpriority string, "
    "o_shippriority long, o_comment string",
    "lineitem": "l_orderkey long, l_partkey long, l_suppkey long, l_linenumber long, "
    "l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2), "
    "l_tax decimal(15,2), l_returnflag string, l_linestatus string, l_shipdate date, "
    "l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string",
}

_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = {
    "ALGERIA": 0, "ARGENTINA": 1, "BRAZIL": 1, "CANADA": 1, "EGYPT": 4, "ETHIOPIA": 0, "FRANCE": 3,
    "GERMANY": 3, "INDIA": 2, "INDONESIA": 2, "IRAN": 4, "IRAQ": 4, "JAPAN": 2, "JORDAN": 4,
    "KENYA": 0, "MOROCCO": 0, "MOZAMBIQUE": 0, "PERU": 1, "CHINA": 2, "ROMANIA": 3,
    "SAUDI ARABIA": 4, "VIETNAM": 2, "RUSSIA": 3, "UNITED KINGDOM": 3, "UNITED STATES": 1,
}  # fmt: skip
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_TYPES = (
    ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD"),
    ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED"),
    ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN"),
)
_CONTAINERS = (
    ("JUMBO", "LG", "MED", "SM", "WRAP"),
    ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG"),
)
_COLOURS = (
    *("amber", "ash", "auburn", "beige", "black", "blue", "bronze", "brown", "buff", "carmine"),
    *("cerise", "cherry", "claret", "cobalt", "copper", "coral", "cream", "crimson", "cyan"),
    *("denim", "ebony", "ecru", "emerald", "fawn", "flax", "forest", "fuchsia", "gold", "green"),
    *("grey", "hazel", "heather", "indigo", "iris", "ivory", "jade", "jet", "khaki", "lemon"),
    *("lilac", "lime", "madder", "magenta", "maroon", "mauve", "mint", "moss", "navy", "ochre"),
    *("olive", "onyx", "orange", "orchid", "pansy", "peach", "pearl", "pine", "pink", "plum"),
    *("puce", "purple", "red", "rose", "ruby", "russet", "rust", "saffron", "sage", "salmon"),
    *("sand", "scarlet", "sepia", "silver", "sky", "slate", "snow", "straw", "tan", "taupe"),
    *("teal", "umber", "vanilla", "violet", "wheat", "white", "wine", "yellow", "zinc"),
)
_WORDS = ("barley", "cloud", "ferry", "gravel", "harbour", "kettle", "ladder", "meadow", "needle")

_FIRST_DAY = (dt.date(1992, 1, 1) - dt.date(1970, 1, 1)).days
_LAST_DAY = (dt.date(1998, 12, 31) - dt.date(1970, 1, 1)).days
_TODAY = (dt.date(1995, 6, 17) - dt.date(1970, 1, 1)).days


class Tables:
    """The eight tables, and orders beyond them.

    Parameters
    ----------
    scale : float
        1 is some 8.7 million records; orders, lines and the rest grow with it.
    seed : int
        The same seed and scale give the same tables.
    """

    def __init__(self, scale: float, seed: int = 1) -> None:
        self._draw = np.random.default_rng(seed)
        self.n_suppliers = max(100, round(10_000 * scale))
        self.n_parts = max(2_000, round(200_000 * scale))
        self.n_customers = max(300, round(150_000 * scale))
        self.n_orders = round(1_500_000 * scale)
        self._n_made = 0

    def all(self) -> dict[str, Any]:
        """Each table by name, a `pyarrow.RecordBatch` of its schema."""
        orders, lines = self.orders(self.n_orders)
        return {
            "region": self._table(
                "region", r_regionkey=np.arange(len(_REGIONS)), r_name=list(_REGIONS)
            ),
            "nation": self._table(
                "nation",
                n_nationkey=np.arange(len(_NATIONS)),
                n_name=list(_NATIONS),
                n_regionkey=np.array(list(_NATIONS.values())),
            ),
            "supplier": self._suppliers(),
            "part": self._parts(),
            "partsupp": self._offers(),
            "customer": self._customers(),
            "orders": orders,
            "lineitem": lines,
        }

    def orders(self, n: int) -> tuple[Any, Any]:
        """The next `n` orders, and their lines, which are those of the keys in their order."""
        draw = self._draw
        number = np.arange(self._n_made, self._n_made + n)
        self._n_made += n
        # Of 32 keys 8 are in use.
        keys = number // 8 * 32 + number % 8 + 1
        customers = draw.integers(1, self.n_customers, n)
        customers += customers % 3 == 0  # a third of the customers never order
        days = draw.integers(_FIRST_DAY, _LAST_DAY - 151 + 1, n)

        n_lines = draw.integers(1, 8, n)
        order = np.repeat(np.arange(n), n_lines)
        m = len(order)
        line_number = np.arange(m) - np.repeat(np.cumsum(n_lines) - n_lines, n_lines) + 1
        parts = draw.integers(1, self.n_parts + 1, m)
        quantity = draw.integers(1, 51, m)
        price = quantity * _retail_price(parts)
        discount, tax = draw.integers(0, 11, m), draw.integers(0, 9, m)
        shipped = days[order] + draw.integers(1, 122, m)
        committed = days[order] + draw.integers(30, 91, m)
        received = shipped + draw.integers(1, 31, m)
        is_open = shipped > _TODAY
        returned = np.where(received > _TODAY, 1, 2 * draw.integers(0, 2, m))
        lines = self._table(
            "lineitem",
            l_orderkey=keys[order],
            l_partkey=parts,
            l_suppkey=self._supplier_of(parts, draw.integers(0, 4, m)),
            l_linenumber=line_number,
            l_quantity=100 * quantity,
            l_extendedprice=price,
            l_discount=discount,
            l_tax=tax,
            l_returnflag=_taken(("A", "N", "R"), returned),
            l_linestatus=_taken(("F", "O"), is_open.astype(np.int64)),
            l_shipdate=shipped,
            l_commitdate=committed,
            l_receiptdate=received,
            l_shipinstruct=self._one_of(_INSTRUCTIONS, m),
            l_shipmode=self._one_of(_MODES, m),
        )
        total = np.bincount(order, price * (100 + tax) * (100 - discount) / 10_000, minlength=n)
        n_open = np.bincount(order, is_open, minlength=n)
        status = np.where(n_open == 0, 0, np.where(n_open == n_lines, 1, 2))
        orders = self._table(
            "orders",
            o_orderkey=keys,
            o_custkey=customers,
            o_orderstatus=_taken(("F", "O", "P"), status),
            o_totalprice=np.rint(total).astype(np.int64),
            o_orderdate=days,
            o_orderpriority=self._one_of(_PRIORITIES, n),
            o_shippriority=np.zeros(n, np.int64),
            o_comment=self._comments(n, "special", "requests", 0.01),
        )
        return orders, lines

    def _suppliers(self) -> Any:
        n = self.n_suppliers
        keys = np.arange(1, n + 1)
        nations = self._draw.integers(0, len(_NATIONS), n)
        return self._table(
            "supplier",
            s_suppkey=keys,
            s_name=[f"Supplier#{key:09}" for key in keys.tolist()],
            s_address=self._addresses(n),
            s_nationkey=nations,
            s_phone=self._phones(nations),
            s_acctbal=self._draw.integers(-99_999, 1_000_000, n),
            s_comment=self._comments(n, "Customer", "Complaints", max(5e-4, 2 / n)),
        )

    def _parts(self) -> Any:
        n = self.n_parts
        draw = self._draw
        # Five words, all different: each so many further than the one before.
        steps = np.cumsum(draw.integers(1, len(_COLOURS) // 5, (n, 5)), axis=1)
        steps += draw.integers(0, len(_COLOURS), n)[:, None]
        words = np.array(_COLOURS, object)[steps % len(_COLOURS)].tolist()
        maker = draw.integers(1, 6, n).tolist()
        brand = draw.integers(1, 6, n).tolist()
        return self._table(
            "part",
            p_partkey=np.arange(1, n + 1),
            p_name=[" ".join(name) for name in words],
            p_mfgr=[f"Manufacturer#{one}" for one in maker],
            p_brand=[f"Brand#{one}{other}" for one, other in zip(maker, brand, strict=True)],
            p_type=self._words(_TYPES, n),
            p_size=draw.integers(1, 51, n),
            p_container=self._words(_CONTAINERS, n),
        )

    def _offers(self) -> Any:
        parts = np.repeat(np.arange(1, self.n_parts + 1), 4)
        n = len(parts)
        return self._table(
            "partsupp",
            ps_partkey=parts,
            ps_suppkey=self._supplier_of(parts, np.arange(n) % 4),
            ps_availqty=self._draw.integers(1, 10_000, n),
            ps_supplycost=self._draw.integers(100, 100_001, n),
        )

    def _customers(self) -> Any:
        n = self.n_customers
        keys = np.arange(1, n + 1)
        nations = self._draw.integers(0, len(_NATIONS), n)
        return self._table(
            "customer",
            c_custkey=keys,
            c_name=[f"Customer#{key:09}" for key in keys.tolist()],
            c_address=self._addresses(n),
            c_nationkey=nations,
            c_phone=self._phones(nations),
            c_acctbal=self._draw.integers(-99_999, 1_000_000, n),
            c_mktsegment=self._one_of(_SEGMENTS, n),
            c_comment=self._comments(n, "", "", 0.0),
        )

    def _supplier_of(self, parts: Ints, which: Ints) -> Ints:
        """The supplier of a part, of four."""
        n = self.n_suppliers
        suppliers: Ints = (parts + which * (n // 4 + (parts - 1) // n)) % n + 1
        return suppliers

    def _phones(self, nations: Ints) -> list[str]:
        parts = self._draw.integers([100, 100, 1_000], [1_000, 1_000, 10_000], (len(nations), 3))
        numbers = zip((nations + 10).tolist(), parts.tolist(), strict=True)
        return [f"{country}-{a}-{b}-{c}" for country, (a, b, c) in numbers]

    def _addresses(self, n: int) -> list[str]:
        return [f"{a:x} {b:x}" for a, b in self._draw.integers(0, 1 << 40, (n, 2)).tolist()]

    def _comments(self, n: int, first: str, second: str, share: float) -> list[str]:
        """Words, and in a share of the comments two more that are not side by side."""
        chosen = np.array(_WORDS, object)[self._draw.integers(0, len(_WORDS), (n, 4))].tolist()
        numbers = self._draw.integers(0, 1 << 30, n).tolist()
        has_both = (self._draw.random(n) < share).tolist()
        return [
            f"{a} {first} {b} {second} {number}" if both else f"{a} {b} {c} {d} {number}"
            for (a, b, c, d), number, both in zip(chosen, numbers, has_both, strict=True)
        ]

    def _one_of(self, texts: Sequence[str], n: int) -> Any:
        return _taken(texts, self._draw.integers(0, len(texts), n))

    def _words(self, lists: Sequence[Sequence[str]], n: int) -> list[str]:
        """A word of each list."""
        places = [self._draw.integers(0, len(words), n).tolist() for words in lists]
        return [
            " ".join(words[at] for words, at in zip(lists, row, strict=True))
            for row in zip(*places, strict=True)
        ]

    def _table(self, name: str, **columns: Any) -> Any:
        """Columns of words, or of texts, as a record batch."""
        import pyarrow as pa

        schema = schema_of(SCHEMAS[name])
        arrays = []
        for column in schema.columns:
            values = columns[column.name]
            if column.type == STRING:
                arrays.append(pa.array(values, pa.string()) if isinstance(values, list) else values)
            else:
                arrays.append(column.type.column_of(np.ascontiguousarray(values, np.int64), None))
        return pa.RecordBatch.from_arrays(arrays, names=schema.names)


class Refreshes:
    """Epochs in each of which new orders come, and the oldest go, with their lines.

    Parameters
    ----------
    old, new : pairs of record batches
        Orders and their lines: those that are there, and those that come, in order.
    """

    def __init__(self, old: tuple[Any, Any], new: tuple[Any, Any]) -> None:
        self._old = old
        self._new = new
        self._ends = [_ends_of_lines(*pair) for pair in (old, new)]
        self._at = 0

    def take(self, n: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """The next `n` orders that come, and the next that go, each with the lines."""
        begin, self._at = self._at, self._at + n
        pairs = zip((self._new, self._old), reversed(self._ends), strict=True)
        come, gone = (
            (_cut(pair[0], begin, n), _lines(pair, ends, begin, n)) for pair, ends in pairs
        )
        return come, gone


def _ends_of_lines(orders: Any, lines: Any) -> Ints:
    """Behind the lines of each order, where the next ones begin, from the first one on."""
    keys = orders.column("o_orderkey").to_numpy()
    return np.append(0, np.searchsorted(lines.column("l_orderkey").to_numpy(), keys, "right"))


def _cut(orders: Any, begin: int, n: int) -> Any:
    if begin + n > len(orders):
        raise ValueError(f"there are {len(orders)} orders, and {begin + n} are asked for")
    return orders.slice(begin, n)


def _lines(pair: tuple[Any, Any], ends: Ints, begin: int, n: int) -> Any:
    first, beyond = ends[[begin, begin + n]].tolist()
    return pair[1].slice(first, beyond - first)


def _taken(texts: Sequence[str], places: Ints) -> Any:
    import pyarrow as pa

    return pa.array(texts, pa.string()).take(pa.array(places))


def _retail_price(parts: Ints) -> Ints:
    """In hundredths."""
    prices: Ints = 90_000 + parts // 10 % 20_001 + 100 * (parts % 1_000)
    return prices
