"""What is no column yet, such as an aggregate: comparing it is refused.

Python would say False where nothing else is said, and a filter by that would be empty in silence.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pointstamp.errors import BuildError


class ComparisonRefused:
    """Refuses operators, and says by `instead` what to write."""

    instead = ""

    __hash__ = object.__hash__

    def _refuse(self, other: Any) -> NoReturn:
        raise BuildError(f"{self!r} is no column to compute with: {self.instead}")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __and__ = __rand__ = __or__ = __ror__ = _refuse
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _refuse
