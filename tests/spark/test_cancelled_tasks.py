"""A task of an action that has failed ends, also where it begins only afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pointstamp.communication.control import WorkerConfig
from pointstamp.spark import driver_control
from pointstamp.spark.cancelled_tasks import ACTION, ended_when_cancelled
from pointstamp.spark.driver_control import LOOPBACK
from pointstamp.spark.task import controlled


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerConfig]:
    """Where a task reports, at a control server that ends with the test."""
    monkeypatch.setattr(driver_control, "_controls", {})
    control = driver_control.control_at(LOOPBACK)
    port = control.server.address[1]
    yield WorkerConfig((LOOPBACK, port), driver_control._secret, group="a job")
    control.close()


def of_action(name: str) -> Any:
    """The context of a task, as far as it is looked at."""
    return SimpleNamespace(getLocalProperty={ACTION: name}.get)


def wait_as_a_task(config: WorkerConfig, action: str, fails: str | None) -> bool:
    """Wait as a task does for its peers, while an action fails; whether it has waited in vain."""
    with (
        controlled(config, 0, required=True) as control,
        ended_when_cancelled(of_action(action), control),
    ):
        if fails is not None:
            driver_control.end_tasks(config, fails)
        return not threading.Event().wait(0.3 if fails != action else 20)


def test_a_task_ends_when_its_action_fails(config: WorkerConfig) -> None:
    with pytest.raises(KeyboardInterrupt):
        wait_as_a_task(config, "the action", "the action")


def test_a_task_ends_that_begins_after_its_action_has_failed(config: WorkerConfig) -> None:
    driver_control.end_tasks(config, "the action")
    with pytest.raises(KeyboardInterrupt):
        wait_as_a_task(config, "the action", None)


def test_a_task_of_another_action_goes_on(config: WorkerConfig) -> None:
    driver_control.end_tasks(config, "the action")
    assert wait_as_a_task(config, "another", "a third")
