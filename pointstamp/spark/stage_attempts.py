"""Whether the tasks of a barrier stage's attempt can still meet, by what the driver knows of them.

Spark starts all of them at once, and ends the others where one fails, but for one that misses a
part of its input, as when the executor that had it is lost. That task may fail before its Python
begins; the others then wait for it, as long as `spark.barrier.sync.timeout`, which is a year,
while the next attempt waits for their slots. So a task that waits for long asks the driver.

Source: `FetchFailed` in `handleTaskCompletion` of Spark 4.3's `DAGScheduler`, and in
`handleFailedTask` of its `TaskSetManager`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pointstamp.spark.session import java_context

if TYPE_CHECKING:
    from pointstamp.communication.control import ControlConnection


@dataclass(frozen=True)
class AttemptCheck:
    """A request: whether a task can still meet all others of its attempt of a stage.

    The answer is False only where it is known that it cannot.

    Attributes
    ----------
    stage : int
    task : int
        By which Spark knows the attempt of the task.
    """

    stage: int
    task: int


def can_meet(connection: ControlConnection, message: AttemptCheck) -> bool:
    """Answer a task; in the driver."""
    try:
        store = java_context().statusStore()
        last = store.lastStageAttempt(message.stage)
        # Those of one attempt meet before any ends.
        if last.numFailedTasks() or last.numKilledTasks() or last.numCompleteTasks():
            return False
        for attempt in range(last.attemptId()):
            former = store.taskList(message.stage, attempt, last.numTasks())
            if any(former.apply(n).taskId() == message.task for n in range(former.size())):
                return False
    except Exception:  # noqa: BLE001  (it is stopped, or of a version that has no such methods)
        return True
    return True
