"""Whether rows are still themselves in a DataFrame: PySpark changes some values without a word.

It refuses a text where a column has integers. But where one has texts it makes a text of anything,
of a time a day, of a number with more digits than a decimal a rounded one, of a large one an
infinite float; and it leaves out what a dictionary has under names of no column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

from pointstamp.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_LARGEST = 3.4028235677973366e38
"""From here on a number has no finite float of 32 bits."""


def check_kept(rows: Iterable[Any], struct: StructType, operator: str) -> None:
    """Refuse rows of which a DataFrame with these columns has other values.

    Parameters
    ----------
    rows : iterable of tuple, list or dict
        All others are left to PySpark.

    Raises
    ------
    DataError
        If one is changed; it names the column.
    """
    for row in rows:
        for path, value, why in _changed(row, struct, ""):
            raise DataError(
                f"operator {operator!r}: {path} does not keep {value!r:.200}: {why}; convert it "
                "before, or give another schema"
            )


Change = tuple[str, Any, str]
"""Where a value is changed, the value, and what becomes of it."""


def _changed(value: Any, kind: DataType, path: str) -> Iterator[Change]:
    """What is changed of a value that PySpark takes for one of a type."""
    from pyspark.sql import types

    if value is None:
        return
    if isinstance(kind, types.StructType):
        yield from _changed_fields(value, kind, path)
    elif isinstance(kind, types.ArrayType) and isinstance(value, list | tuple):
        yield from _of_each(value, kind.elementType, path)
    elif isinstance(kind, types.MapType) and isinstance(value, dict):
        of_items = _of_each(value.values(), kind.valueType, path)
        yield from chain(_of_each(value, kind.keyType, path), of_items)
    elif why := _becomes(value, kind):
        yield f"column {path!r}, which is {kind.simpleString()},", value, why


def _of_each(values: Iterable[Any], kind: DataType, path: str) -> Iterator[Change]:
    return chain.from_iterable(_changed(value, kind, path) for value in values)


def _changed_fields(value: Any, struct: StructType, path: str) -> Iterator[Change]:
    names: Sequence[str] = struct.names
    if isinstance(value, dict):
        if unknown := [name for name in value if name not in names]:
            what = f"the struct {path!r}" if path else "a row"
            yield what, value, f"it has {unknown[0]!r}, and columns are {', '.join(names)}"
        value = [value.get(name) for name in names]
    if isinstance(value, list | tuple):
        for field, part in zip(struct.fields, value, strict=False):
            yield from _changed(part, field.dataType, f"{path}.{field.name}".lstrip("."))


def _becomes(value: Any, kind: DataType) -> str | None:
    """What becomes of a value of a simple type, if that is another one."""
    from pyspark.sql import types

    if isinstance(kind, types.StringType):
        return None if isinstance(value, str) else "Spark makes a text of it"
    if isinstance(kind, types.DateType):
        has_time = isinstance(value, datetime) and (value.time() != datetime.min.time())
        return "Spark drops the time of the day" if has_time else None
    if isinstance(kind, types.TimestampNTZType):
        has_zone = isinstance(value, datetime) and value.tzinfo is not None
        return "Spark drops the zone" if has_zone else None
    if isinstance(kind, types.DecimalType):
        return "Spark rounds it" if _has_more_digits(value, kind.scale) else None
    if isinstance(kind, types.FloatType):
        is_large = isinstance(value, float) and math.isfinite(value) and abs(value) >= _LARGEST
        return "it is infinite as a float" if is_large else None
    return None


def _has_more_digits(value: Any, scale: int) -> bool:
    """Whether a decimal has digits other than 0 behind those of a scale."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return False
    exponent = value.normalize().as_tuple().exponent
    return isinstance(exponent, int) and -exponent > scale
