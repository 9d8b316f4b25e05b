"""A running count by key, as a service keeps it and as Spark's streams do.

What the benchmarks of services measure: for each epoch, the count so far of every key
that came in it. State is in columns, 16 bytes a key, and lasts where there is a checkpoint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import pointstamp as ps

RECORD = pa.schema({"key": pa.int64()})
COUNT = pa.schema({"epoch": pa.int64(), "key": pa.int64(), "n": pa.int64()})
RECORD_DDL, COUNT_DDL = "key long", "epoch long, key long, n long"

Keys = npt.NDArray[np.int64]
Logic = Callable[[ps.Input, ps.Output, ps.Notificator], None]


def counts(scope: ps.Scope, records: ps.Stream[Any]) -> ps.Stream[Any]:
    """The dataflow: records to their keys' workers, and there an operator that counts."""
    return records.unary_notify(ps.Exchange("key"), "Count", _count)


def _count(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
    capability.drop()
    table = info.state_columns({"key": "int64", "n": "int64"})
    came: dict[int, list[Keys]] = defaultdict(list)

    def logic(input: ps.Input, output: ps.Output, notificator: ps.Notificator) -> None:
        for time, batch in input:
            came[time.time].append(batch.column("key").to_numpy())
            notificator.notify_at(time.retain())
        for cap in notificator:
            keys, n = np.unique(np.concatenate(came.pop(cap.time)), return_counts=True)
            rows = table.rows(keys)
            table["n"][rows] += n
            table.touch(rows)
            with cap, output.session(cap) as session:
                session.give_batch(_told(cap.time, keys, table["n"][rows]))

    return logic


def _told(epoch: int, keys: Keys, n: Keys) -> pa.RecordBatch:
    columns = [np.full(len(keys), epoch), keys, n]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=COUNT)


def records(n_records: int, n_keys: int, seed: int) -> pa.RecordBatch:
    """So many records of as many keys, drawn evenly."""
    keys = np.random.default_rng(seed).integers(0, n_keys, n_records)
    return pa.RecordBatch.from_arrays([pa.array(keys)], schema=RECORD)


def embedded(**options: Any) -> ps.Service:
    """The service, on two workers of this machine unless `options` say otherwise."""
    given: dict[str, Any] = {"workers": 2, **options}
    return ps.serve(counts, inputs={"records": RECORD}, outputs={"counts": COUNT}, **given)


def on_spark(spark: Any, **options: Any) -> ps.Service:
    """The service, on two tasks of a job of Spark unless `options` say otherwise."""
    from pointstamp.spark import serve

    given: dict[str, Any] = {"workers": 2, **options}
    inputs, outputs = {"records": RECORD_DDL}, {"counts": COUNT_DDL}
    return serve(counts, spark, inputs=inputs, outputs=outputs, **given)
