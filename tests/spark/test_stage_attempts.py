"""What the driver knows of the attempt of a stage whose tasks wait for each other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pointstamp.spark.stage_attempts import AttemptCheck, can_meet


class Store:
    """What Spark has noted: of the last attempt, how many tasks have ended; those of all."""

    def __init__(self) -> None:
        self.failed = self.killed = self.complete = 0
        self.tasks = [[1, 2, 3], [4, 5, 6], []]

    def lastStageAttempt(self, stage: int) -> Any:  # noqa: N802  (Spark's name)
        assert stage == 3
        return SimpleNamespace(
            attemptId=lambda: len(self.tasks) - 1,
            numTasks=lambda: 3,
            numFailedTasks=lambda: self.failed,
            numKilledTasks=lambda: self.killed,
            numCompleteTasks=lambda: self.complete,
        )

    def taskList(self, stage: int, attempt: int, most: int) -> Any:  # noqa: N802  (Spark's name)
        assert (stage, most) == (3, 3)
        found = [SimpleNamespace(taskId=lambda task=task: task) for task in self.tasks[attempt]]
        return SimpleNamespace(size=lambda: len(found), apply=found.__getitem__)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    pyspark = pytest.importorskip("pyspark")
    found = Store()
    scheduler = SimpleNamespace(statusStore=lambda: found)
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scheduler))
    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", context)
    return found


def can(task: int) -> bool:
    connection: Any = None
    return can_meet(connection, AttemptCheck(3, task))


def test_tasks_of_the_last_attempt_may_meet_before_spark_has_noted_them(store: Store) -> None:
    assert can(7)
    store.tasks[2] = [7, 8, 9]
    assert can(7)


@pytest.mark.parametrize("task", [2, 5])
def test_tasks_of_a_former_attempt_cannot_meet(store: Store, task: int) -> None:
    assert not can(task)


@pytest.mark.parametrize("how", ["failed", "killed", "complete"])
def test_where_one_has_ended_the_others_cannot_meet(store: Store, how: str) -> None:
    setattr(store, how, 1)
    assert not can(7)


def test_where_nothing_is_known_tasks_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "lastStageAttempt", lambda self, stage: 1 / 0)
    assert can(7)
