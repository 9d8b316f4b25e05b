"""Whether rows are still themselves in a DataFrame: PySpark changes some values without a word.

It refuses a text where a column has integers. But where one has texts it makes a text of anything,
of a time a day, of a number with more digits than a decimal a rounded one, of a large one an
infinite float; and it leaves out what a dictionary has under names of no column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
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
    from pyspark.sql.types import MapType

    changed = _changed_fields(struct, "")
    # So PySpark calls the column of a schema that is no struct, and each row is its value.
    is_map = struct.names == ["value"] and isinstance(struct.fields[0].dataType, MapType)
    for row in rows:
        found = changed((row,) if is_map and isinstance(row, dict) else row)
        if found is not None:
            path, value, why = found
            raise DataError(
                f"operator {operator!r}: {path} does not keep {value!r:.200}: {why}; convert it "
                "before, or give another schema"
            )


Change = tuple[str, Any, str]
"""Where a value is changed, the value, and what becomes of it."""

Changed = Callable[[Any], Change | None]
"""The first change of a value that PySpark takes for one of a type; None if it is kept."""


def _changed(kind: DataType, path: str) -> Changed | None:
    """What is changed of values of a type; None if nothing ever is, and none is looked at."""
    from pyspark.sql import types

    if isinstance(kind, types.StructType):
        return _changed_fields(kind, path)
    if isinstance(kind, types.ArrayType):
        return _changed_parts(list | tuple, [(iter, _changed(kind.elementType, path))])
    if isinstance(kind, types.MapType):
        keys, values = _changed(kind.keyType, path), _changed(kind.valueType, path)
        return _changed_parts(dict, [(iter, keys), (dict.values, values)])
    why_of = _becomes(kind)
    if why_of is None:
        return None
    of = f"column {path!r}, which is {kind.simpleString()},"

    def changed(value: Any) -> Change | None:
        why = None if value is None else why_of(value)
        return None if why is None else (of, value, why)

    return changed


def _changed_parts(
    container: Any, parts: Sequence[tuple[Callable[[Any], Iterable[Any]], Changed | None]]
) -> Changed | None:
    """The same of what is in containers: `parts` are how to get at some of it, and its changes."""
    looked_at = [(of, changed) for of, changed in parts if changed is not None]

    def changed_part(value: Any) -> Change | None:
        if isinstance(value, container):
            for of, changed in looked_at:
                for part in of(value):
                    if (found := changed(part)) is not None:
                        return found
        return None

    return changed_part if looked_at else None


def _changed_fields(struct: StructType, path: str) -> Changed:
    """The same of structs, of which one that is a dictionary may have more names."""
    names = struct.names
    known, what = frozenset(names), f"the struct {path!r}" if path else "a row"
    each = [_changed(f.dataType, f"{path}.{f.name}".lstrip(".")) for f in struct.fields]
    looked_at = [
        (place, name, changed)
        for place, (name, changed) in enumerate(zip(names, each, strict=True))
        if changed is not None
    ]

    def changed_field(value: Any) -> Change | None:
        if isinstance(value, dict):
            if not known.issuperset(value):
                unknown = next(name for name in value if name not in known)
                return what, value, f"it has {unknown!r}, and columns are {', '.join(names)}"
            for _, name, changed in looked_at:
                if (found := changed(value.get(name))) is not None:
                    return found
        elif isinstance(value, list | tuple):
            for place, _, changed in looked_at:
                if place < len(value) and (found := changed(value[place])) is not None:
                    return found
        return None

    return changed_field


def _becomes(kind: DataType) -> Callable[[Any], str | None] | None:
    """What becomes of a value of a simple type, if that is another one; None of no value."""
    from pyspark.sql import types

    if isinstance(kind, types.StringType):
        return lambda value: None if isinstance(value, str) else "Spark makes a text of it"
    if isinstance(kind, types.DateType):
        return _date_becomes
    if isinstance(kind, types.TimestampNTZType):
        return _time_becomes
    if isinstance(kind, types.DecimalType):
        scale = kind.scale
        return lambda value: "Spark rounds it" if _has_more_digits(value, scale) else None
    return _float_becomes if isinstance(kind, types.FloatType) else None


def _date_becomes(value: Any) -> str | None:
    has_time = isinstance(value, datetime) and value.time() != datetime.min.time()
    return "Spark drops the time of the day" if has_time else None


def _time_becomes(value: Any) -> str | None:
    has_zone = isinstance(value, datetime) and value.tzinfo is not None
    return "Spark drops the zone" if has_zone else None


def _float_becomes(value: Any) -> str | None:
    is_large = isinstance(value, float) and math.isfinite(value) and abs(value) >= _LARGEST
    return "it is infinite as a float" if is_large else None


def _has_more_digits(value: Any, scale: int) -> bool:
    """Whether a decimal has digits other than 0 behind those of a scale."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return False
    # Not by arithmetic, which rounds to the digits of Python's context.
    _, digits, exponent = value.as_tuple()
    n_more = -int(exponent) - scale
    return n_more > 0 and any(digits[-n_more:])
