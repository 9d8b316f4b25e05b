"""Rolling aggregates: each record at once with the totals of its key so far.

Source: the rolling aggregations of keyed streams in Apache Flink, and SQL's window functions
over all rows up to the current one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.containers.keys import check_key
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.generic import operator
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.containers.running_totals import RunningTotals
    from pointstamp.operators.stream import Stream


class RunningMethods(StreamCore[T]):
    """Aggregates of what has come so far. Methods of `Stream`."""

    def running_aggregate(
        self,
        aggregates: Sequence[tuple[str, str]],
        key: str | Sequence[str],
        *,
        name: str = "RunningAggregate",
    ) -> Stream[T]:
        """Add to each record the aggregates of its key so far, this record included.

        Of columns: for each aggregate there is one more column, `{column}_{function}`. Records have
        their turn in the order of their times, each as soon as none of an earlier time can come,
        and those of one time as they come, or of two times of which neither is earlier (see
        `state_machine`). For the aggregates of each time alone see `aggregate`;
        for rows, and for any other function, `state_machine`.

        Parameters
        ----------
        aggregates : sequence of (column, function)
            Functions are `count`, `sum`, `mean`, `min` and `max`. Nulls are passed over; before
            the first value all but the count are null.
        key : str or sequence of str
            The column of the key, or several. Records of equal key meet on one worker.

        Raises
        ------
        BuildError
            If an aggregate is no such pair, or the key is a function.
        ColumnError
            If a column is not there, as of rows. When it runs.
        SchemaError
            If a column cannot be aggregated so. When it runs.
        DataError
            If a sum of integers is beyond 64 bits. When it runs.

        Notes
        -----
        Keeps a total for each key and aggregate for good, also from one start of a durable
        dataflow to the next.

        Examples
        --------
        >>> import pointstamp as ps
        >>> import pyarrow as pa
        >>> def build(scope):
        ...     batch = pa.record_batch({"user": [7, 9, 7], "spent": [1, 2, 3]})
        ...     return scope.batches_to_stream([batch]).running_aggregate(
        ...         [("spent", "sum")], "user"
        ...     )
        >>> ps.testing.collect(build)
        [(0, (7, 1, 1)), (0, (7, 3, 4)), (0, (9, 2, 2))]
        """
        check_key(key, name)
        if key is None or callable(key):
            raise BuildError(
                f"{name} is keyed by columns, found {key!r}; name one or several, or use "
                "state_machine, whose key is a function of a record"
            )
        pairs = _checked(aggregates, name)

        def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
            capability.drop()
            stash: Stash[list[Any]] = Stash(info, early=True)
            # Named by what it is of, so that one of other aggregates is not gone on from.
            of = ", ".join(f"{column}_{function}" for column, function in pairs)
            states = info.state(f"{of} by {key if isinstance(key, str) else ', '.join(key)}")
            is_durable = type(states) is not dict
            totals: RunningTotals | None = None

            def logic(input: Input, output: Output) -> None:
                nonlocal totals
                for time, batch in input:
                    stash.add(time, batch)
                for right, batches in stash:
                    if totals is None:
                        totals = _made(key, pairs, name)
                        totals.restore(states.items())
                    for batch in batches:
                        output.session(right).give_batch(totals.extended(batch))
                        if is_durable:
                            states.update(totals.touched())

            return logic

        return operator([self], [Exchange(key)], name, build, Interest.IF_CAPABILITY)


def _made(key: Any, pairs: list[tuple[str, str]], name: str) -> RunningTotals:
    # Here and not above: programs without columns do not need it.
    from pointstamp.containers.running_totals import RunningTotals

    return RunningTotals(key, pairs, name)


def _checked(aggregates: Any, name: str) -> list[tuple[str, str]]:
    from pointstamp.containers.running_totals import FUNCTIONS

    pairs = list(aggregates) if isinstance(aggregates, (list, tuple)) else []
    for pair in pairs:
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str)
        if not is_pair or pair[1] not in FUNCTIONS:
            raise BuildError(
                f"{name} cannot aggregate by {pair!r}; give (column, function) with a function of "
                f"{list(FUNCTIONS)}"
            )
    if not pairs:
        raise BuildError(
            f"{name} takes a list of aggregates of columns such as [('spent', 'sum')]; found "
            f"{aggregates!r}"
        )
    if len(set(map(tuple, pairs))) < len(pairs):
        raise BuildError(f"{name} was given an aggregate twice: {pairs}")
    return [(column, function) for column, function in pairs]
