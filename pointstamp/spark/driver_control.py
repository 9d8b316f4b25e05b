"""The control server of Spark's driver, to which the tasks of its jobs report.

One for each program, from its first dataflow on: a DataFrame may be computed again at any
time, and does not say when. Where tasks cannot reach the program, which may be a client of
Spark Connect on another machine, they do without: addresses go by Spark's `allGather`,
which takes a second, and what a worker raises names what its peers reported.
"""

from __future__ import annotations

import atexit
import socket
import threading
import uuid
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pointstamp.communication.authentication import new_secret
from pointstamp.communication.control import WorkerConfig
from pointstamp.communication.failure import Failure
from pointstamp.communication.job_control import JobControl
from pointstamp.spark.awaited_slots import CountSlots, count
from pointstamp.spark.cancelled_tasks import ActionFailed, TaskBegan
from pointstamp.spark.run_counts import RunCounts, WorkerCounts
from pointstamp.spark.session import context_of
from pointstamp.spark.stage_attempts import AttemptCheck, can_meet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pointstamp.communication.tls import Certificates

LOOPBACK = "127.0.0.1"

counts = RunCounts()
"""What the workers of all jobs counted."""

_failed: deque[str] = deque(maxlen=100)
"""Actions that failed lately: a task of one of them may begin only afterwards."""

_lock = threading.Lock()
_secret = new_secret()
_controls: dict[tuple[str, Certificates | None], JobControl] = {}
"""By the address that they listen at (the loopback interface, or all), and how they encrypt."""


def worker_config(spark: SparkSession, certificates: Certificates | None = None) -> WorkerConfig:
    """Where the workers of a new job report, and the group that they are."""
    name = _reachable_name(spark)
    control = control_at(LOOPBACK if name == LOOPBACK else "0.0.0.0", certificates)
    port = control.server.address[1]
    return WorkerConfig((name, port), _secret, certificates=certificates, group=uuid.uuid4().hex)


def control_of(config: WorkerConfig) -> JobControl | None:
    """The control server to which the workers of a job report; None if another program has it."""
    host = LOOPBACK if config.control[0] == LOOPBACK else "0.0.0.0"
    return _controls.get((host, config.certificates))


def first_cause(config: WorkerConfig) -> Failure | None:
    """What the last run of a job failed of, if one of its workers did."""
    control = control_of(config)
    return None if control is None else control.first_cause(config.group)


def end_tasks(config: WorkerConfig, action: str) -> None:
    """Have the tasks of a job end that are of an action which has failed, if any run."""
    control = control_of(config)
    if control is not None:
        _failed.append(action)
        control.server.broadcast(ActionFailed(action), config.group)


def _began(connection: Any, message: TaskBegan) -> None:
    """End a task that begins when its action has failed: it would wait for its peers in vain."""
    for action in list(_failed):
        if action in message.names:
            connection.send(ActionFailed(action))


def control_at(host: str, certificates: Certificates | None = None) -> JobControl:
    """The control server of this program at `host`, which it keeps."""
    with _lock:
        key = host, certificates
        if key not in _controls:
            _controls[key] = JobControl(_secret, host, certificates)
            _controls[key].server.handle(WorkerCounts, counts.note)
            _controls[key].server.handle(TaskBegan, _began)
            _controls[key].server.handle(CountSlots, count)
            _controls[key].server.handle(AttemptCheck, can_meet)
            atexit.register(_controls[key].close)
        return _controls[key]


def _reachable_name(spark: SparkSession) -> str:
    """By which name the tasks reach this program."""
    if context_of(spark) is None:
        address = _address_towards(spark)
        if address != LOOPBACK:
            return address or LOOPBACK
        # The server, which is the driver, is on this machine.
    if (spark.conf.get("spark.master", None) or "").startswith("local"):
        return LOOPBACK
    return str(spark.conf.get("spark.driver.host", LOOPBACK))


def _address_towards(spark: Any) -> str | None:
    """The address of this machine on the way to the server of Spark Connect, if that is known."""
    with suppress(Exception):  # it is not public how to ask; without it, tasks do without us
        host = spark.client.host
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.connect((host, 9))  # nothing is sent
            return str(way.getsockname()[0])
    return None
