"""Dataflows for tests of `pointstamp.spark.run`, and what a run of them fails of."""

from __future__ import annotations

import pyarrow as pa
import pytest

import pointstamp.spark


def same(scope, records):
    return records


def by_id(scope, records):
    return records.exchange("id")


def count_all(scope, records):
    """One row per worker: how many records it got, also where it got none."""

    def build(capability, info):
        held, found = [capability], [0]

        def logic(input, output):
            for _, batch in input:
                found[0] += batch.num_rows
            if held and not input.frontier.less_equal(0):
                row = {"worker": [info.index], "peers": [info.peers], "n": [found[0]]}
                with output.session(held[0]) as session:
                    session.give_batch(pa.RecordBatch.from_pydict(row))
                held.pop().drop()

        return logic

    return records.unary_frontier(pointstamp.Pipeline(), "CountAll", build)


COUNTS = "worker long, peers long, n long"


def run(build, inputs, schema, workers=2):
    return pointstamp.spark.run(build, inputs, schema, workers=workers)


def failure_of(frame):
    with pytest.raises(Exception, match="worker") as caught:
        frame.collect()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
