"""Tasks that wait until there are slots for the workers; `test_clusters` has them on a cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from pointstamp.communication.authentication import new_secret
from pointstamp.communication.control import ControlServer, WorkerConfig
from pointstamp.errors import SparkSetupError
from pointstamp.spark import awaited_slots
from pointstamp.spark.awaited_slots import (
    AwaitedSlots,
    CountSlots,
    SlotCount,
    await_slots,
    count,
)
from tests.free_ports import free_port


@contextmanager
def driver(answers: list[SlotCount | None]) -> Iterator[tuple[WorkerConfig, list[Any]]]:
    """A control server that gives these answers in turn, and what it is asked."""
    asked: list[Any] = []

    def answer(connection: Any, message: CountSlots) -> SlotCount | None:
        asked.append((connection.group, connection.worker, message))
        return answers.pop(0)

    secret = new_secret()
    with ControlServer(secret, handlers={CountSlots: answer}) as server:
        yield WorkerConfig(server.address, secret, group="job"), asked


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaited_slots, "LOOK_S", 0.01)
    monkeypatch.setattr(awaited_slots, "_unreachable", set())


def test_a_task_waits_until_there_are_slots() -> None:
    with driver([SlotCount(2, 5.0), SlotCount(3, 4.0), SlotCount(4, 0.0)]) as (config, asked):
        AwaitedSlots(config, 4).wait(7)
    assert asked == [("job inputs", 7, CountSlots(4))] * 3


def test_a_task_gives_up_as_spark_would() -> None:
    too_few = pytest.raises(SparkSetupError, match=r"4 workers need 4 slots .* Spark had 2 for as")
    with driver([SlotCount(2, 5.0), SlotCount(2, -0.1)]) as (config, _), too_few:
        AwaitedSlots(config, 4).wait(0)


def test_a_task_does_without_what_the_driver_does_not_know() -> None:
    with driver([None]) as (config, asked):
        AwaitedSlots(config, 4).wait(0)
    assert len(asked) == 1


def test_a_driver_that_cannot_be_reached_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config = WorkerConfig(("127.0.0.1", free_port()), new_secret())
    monkeypatch.setattr(awaited_slots, "REACH_S", 0.05)
    AwaitedSlots(config, 2).wait(0)
    assert awaited_slots._unreachable == {config.control}
    monkeypatch.delattr(awaited_slots, "ControlClient")
    AwaitedSlots(config, 2).wait(1)


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many a session has that looks twice, 10 s apart."""
    pyspark = pytest.importorskip("pyspark")
    now = [2]
    conf = SimpleNamespace(
        getTimeAsSeconds=lambda key, default: {awaited_slots.INTERVAL: 10}[key],
        getInt=lambda key, default: {awaited_slots.CHECKS: 2}[key],
    )
    scheduler = SimpleNamespace(
        resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: "profile"),
        maxNumConcurrentTasks=lambda profile: now[0],
        conf=lambda: conf,
    )
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scheduler))
    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", context)
    monkeypatch.setattr(awaited_slots, "_short", {})
    return now


def test_the_driver_counts_from_when_there_were_too_few(
    slots: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(awaited_slots, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    asking: Any = SimpleNamespace(group="job inputs")
    with caplog.at_level(logging.WARNING, "pointstamp.spark"):
        assert count(asking, CountSlots(4)) == SlotCount(2, 20.0)
        now_s[0] = 130.0
        assert count(asking, CountSlots(4)) == SlotCount(2, -10.0)
        slots[0] = 4
        assert count(asking, CountSlots(4)) == SlotCount(4, 20.0)
        slots[0] = 3
        assert count(asking, CountSlots(4)) == SlotCount(3, 20.0)
        now_s[0] = 185.0
        assert count(asking, CountSlots(4)) == SlotCount(3, -35.0)
        now_s[0] = 300.0  # another action
        assert count(asking, CountSlots(4)) == SlotCount(3, 20.0)
    assert [record.getMessage() for record in caplog.records] == [
        "4 workers need 4 slots at once, and Spark has 2 now: waiting for executors",
        "4 workers need 4 slots at once, and Spark has 3 now: waiting for executors",
        "4 workers need 4 slots at once, and Spark has 3 now: waiting for executors",
    ]


def test_the_driver_waits_for_slots_until_there_are_or_nothing_needs_them(
    slots: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster: Any = SimpleNamespace(
        sparkContext=object(), conf={"spark.master": "spark://host:7077"}
    )
    asked: list[float] = []

    def is_over(timeout_s: float) -> bool:
        asked.append(timeout_s)
        if len(asked) == 3:
            slots[0] = 4
        return len(asked) == 5

    await_slots(cluster, 4, is_over)
    assert len(asked) == 3
    await_slots(cluster, 6, is_over)
    assert len(asked) == 5
    now_s = iter([0.0, 0.0, 19.0, 21.0])
    monkeypatch.setattr(awaited_slots, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    await_slots(cluster, 6, lambda timeout_s: False)
    assert next(now_s, None) is None
    slots[0] = 6
    await_slots(cluster, 6)
    await_slots(
        SimpleNamespace(sparkContext=object(), conf={"spark.master": "local[2]"}), 6, is_over
    )


def test_a_driver_whose_session_is_over_does_not_know(
    slots: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark

    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", None)
    asking: Any = SimpleNamespace(group="job inputs")
    assert count(asking, CountSlots(4)) is None
