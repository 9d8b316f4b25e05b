"""How often the loops of a dataflow went round, on one worker.

What closes a loop counts by itself (`feedback`); here it is asked, by way of the outermost scope,
also when the dataflow has ended.
"""

from __future__ import annotations

from typing import Any


class LoopRounds:
    """What closes the loops of one dataflow, by the names of loops."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[Any]] = {}

    @classmethod
    def beside(cls, scope: Any) -> LoopRounds:
        """Those of the dataflow that `scope` is in."""
        while scope.parent is not None:
            scope = scope.parent
        found: LoopRounds = scope.beside.setdefault(cls, cls())
        return found

    def add(self, name: str, closes: Any) -> None:
        """Have a loop asked for its `n_rounds`."""
        self._by_name.setdefault(name, []).append(closes)

    def most(self) -> dict[str, int]:
        """The most rounds of any time, by loop; of loops of one name, those of the deepest.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([20, 7]).iterate(
        ...             lambda stream: stream.map(lambda x: x // 2), limit=3, name="Halve"
        ...         )
        ...     worker.run()
        ...     return LoopRounds.beside(scope).most()
        >>> ps.execute(main)
        [{'Halve': 3}]
        """
        return {name: max(each.n_rounds for each in loops) for name, loops in self._by_name.items()}
