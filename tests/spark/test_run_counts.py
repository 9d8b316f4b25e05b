"""Counts of workers that are put together: those of one attempt, each once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pointstamp.spark.run_counts import LOGGER, RunCounts, WorkerCounts


def counts(task, records_in, workers=2, stage=3):
    return WorkerCounts("run", stage, task, workers, {"edges": records_in}, 1, 10, 100)


@pytest.fixture
def logged(caplog):
    """A function that has workers of a group report, and gives what is logged in the end."""
    made = RunCounts()
    caplog.set_level("INFO", LOGGER.name)

    def report(*reports, group="a"):
        for worker, message in reports:
            made.note(SimpleNamespace(group=group, worker=worker), message)
        return [record.getMessage() for record in caplog.records]

    return report


def test_nothing_is_logged_before_all_workers_have_reported(logged):
    assert logged((0, counts(7, 10))) == []
    assert logged((1, counts(8, 5))) == [
        "run: 15 records in (15 edges), 2 out; 200 bytes exchanged; at most 10 steps of a worker"
    ]


def test_what_a_worker_of_an_attempt_before_had_counted_is_forgotten(logged):
    assert logged((0, counts(7, 1000)), (1, counts(10, 5))) == []
    assert logged((0, counts(9, 10)))[0].startswith("run: 15 records in")


def test_stages_and_groups_are_apart(logged):
    assert logged((0, counts(7, 1)), (1, counts(8, 1, stage=4))) == []
    assert logged((1, counts(8, 1)), group="b") == []
    assert len(logged((1, counts(8, 1)))) == 1


def test_each_run_of_a_stage_is_logged(logged):
    assert len(logged((0, counts(7, 1)), (1, counts(8, 1)))) == 1
    assert len(logged((1, counts(10, 1)), (0, counts(9, 1)))) == 2


def test_a_run_without_inputs_says_so(logged):
    message = WorkerCounts("run", 1, 1, 1, {}, 0, 1, 0)
    assert logged((0, message))[0].startswith("run: 0 records in (no input), 0 out; 0 bytes")
