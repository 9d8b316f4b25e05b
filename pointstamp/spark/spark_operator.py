"""A Spark job as an operator: what `Stream.spark` adds to a dataflow.

The other way round from `run`: here a dataflow runs, and asks Spark for a part of its
work. One worker, the first, gets all records and talks to Spark; a job spreads its work
over Spark's slots anyway, and one session does not let itself be used by processes at
once. A thread beside that worker runs the jobs, one after the other, so that the worker
goes on meanwhile. The capability of a time is held until its job has answered.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Distribute
from pointstamp.dataflow.stash import Stash
from pointstamp.errors import ContainerError, OperatorError, UsageError
from pointstamp.operators.stream import Stream
from pointstamp.progress.operate import Interest
from pointstamp.spark.call_sites import call_site, called_at
from pointstamp.spark.jobs import INTERRUPT_S, JobName
from pointstamp.spark.kept_rows import check_kept
from pointstamp.spark.session import is_active, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Job = Callable[["DataFrame"], "DataFrame"]

STOP_S = 5.0
"""How long to interrupt the job of a dataflow that is gone."""


def spark(
    stream: Stream[Any], function: Job, *, schema: Any = None, name: str = "Spark"
) -> Stream[Any]:
    """Run a Spark job on the records of each time, once it is complete.

    All records of a time, of all workers, become one DataFrame; what `function` makes of
    it is sent at that time, as Arrow record batches, by worker 0. A time at which there
    are no records has no job.

    Parameters
    ----------
    stream : Stream
        Of Arrow record batches; or of rows, which need a schema.
    function : callable
        From a DataFrame to a DataFrame. It is called in a thread beside worker 0.
    schema : str or StructType, optional
        Of rows: `"word string, n long"`. Values that Spark would change, such as a number where
        there is a text, fail the job.
    name : str
        Of the operator.

    Returns
    -------
    Stream
        Of Arrow record batches, all of them on worker 0; exchange them to go on.

    Raises
    ------
    SparkSetupError
        If there is no Spark session in the process of worker 0 and none can be started.
    OperatorError
        While it runs, if a job fails; it has the time, and Spark's error as its cause.

    Notes
    -----
    Worker 0 uses the Spark session that is active in its process. With one worker, and
    with `threads=True`, that is the caller's. Where workers are processes, and where there
    is no session, it starts one of its own on this machine while the dataflow is built,
    which takes seconds, and stops it when the dataflow goes.

    Jobs run one after the other, in the order in which their times are complete. If the
    dataflow goes while one runs, it is interrupted. A job has Spark's overhead, of some tenths
    of a second: ask for few times and many records.

    Examples
    --------
    >>> def build(scope):  # doctest: +SKIP
    ...     edges = scope.batches_to_stream([pa.RecordBatch.from_pydict({"src": [1, 1, 2]})])
    ...     return edges.spark(lambda df: df.groupBy("src").count())
    """
    scope = stream.scope
    builder = OperatorBuilder(scope, name)
    builder.new_input(stream, Distribute(_to_first), Interest.IF_CAPABILITY)
    result = builder.new_output(initial=False)

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., Any]:
        if info.index != 0:
            return _nothing
        jobs = _Jobs(function, schema, name, partial(scope.environment.call, info.activate))
        scope.environment.closers.callback(jobs.close)
        return _SparkJobLogic(Stash(info), jobs, name, schema).run

    builder.build(make_logic)
    return result


def _to_first(time: Any, batch: Any) -> int:
    """The worker that has Spark."""
    return 0


def _nothing(inputs: list[Input], outputs: list[Output]) -> None:
    """The logic on workers that get no records."""


class _SparkJobLogic:
    """Collects each time, has its job run when it is complete, and sends what comes back."""

    def __init__(self, stash: Stash[list[Any]], jobs: _Jobs, name: str, schema: Any) -> None:
        self._stash = stash
        self._jobs = jobs
        self._name = name
        self._takes_rows = schema is not None
        self._asked: deque[Capability] = deque()

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation."""
        input_ = inputs[0]
        for time, batch in input_:
            self._stash.add(time, self._checked(batch))
        for capability, batches in self._stash:
            self._jobs.ask(batches)
            self._asked.append(capability.delayed(capability.time))
        while self._jobs.answers:
            self._send(self._jobs.answers.popleft(), outputs[0])

    def _checked(self, batch: Any) -> Any:
        # A check of what the user asked for: Spark makes a frame of rows by a schema, and of
        # columns without one.
        kind = kind_of(batch)
        if kind.has_columns == self._takes_rows:
            wanted = (
                "rows, as it was given a schema"
                if self._takes_rows
                else "batches of columns; rows need a schema, as schema='a long, b string'"
            )
            raise ContainerError(
                f"operator {self._name!r} takes {wanted}; this stream carries {kind.called()}"
            )
        return kind.listed(batch, self._name) if self._takes_rows else kind.to_arrow(batch)

    def _send(self, answer: _Answer, output: Output) -> None:
        with self._asked.popleft() as capability:
            if answer.error is not None:
                # Without what the cause says, which is said behind it.
                raise OperatorError(
                    f"operator {self._name!r} failed at time {capability.time}: its Spark job "
                    "failed",
                    self._name,
                    capability.time,
                ) from answer.error
            with output.session(capability) as session_:
                for batch in answer.batches:
                    session_.give_batch(batch)


@dataclass(frozen=True)
class _Answer:
    """What a job gave, or why it gave nothing."""

    batches: list[pa.RecordBatch]
    error: BaseException | None = None


class _Jobs:
    """A Spark session, and a thread that runs jobs on it in the order of asking."""

    def __init__(self, function: Job, schema: Any, name: str, ring: Callable[[], None]) -> None:
        self.answers: deque[_Answer] = deque()
        self._function = function
        self._schema = schema
        self._operator = name
        self._ring = ring
        self._is_ours = not is_active()
        self._session: SparkSession = session()
        self._name = JobName(self._session, "an operator of pointstamp")
        self._asked_at = call_site(name)
        self._asked: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=f"pointstamp-{name}", daemon=True)
        self._thread.start()

    def ask(self, batches: list[Any]) -> None:
        """Have the job of one time run."""
        self._asked.put(batches)

    def close(self) -> None:
        """Interrupt the job that runs, end the thread, and stop the session if it is ours.

        Code that Spark cannot interrupt is left alone after `STOP_S`: its answer goes nowhere.
        """
        self._is_closed = True
        self._asked.put(None)
        until = monotonic() + STOP_S
        self._thread.join(INTERRUPT_S)
        while self._thread.is_alive() and monotonic() < until:
            # Again and again: it may not have begun the last time.
            self._name.interrupt()
            self._thread.join(INTERRUPT_S)
        if self._is_ours:
            self._session.stop()
            self._thread.join(INTERRUPT_S)

    def _work(self) -> None:
        self._name.give()
        while (batches := self._asked.get()) is not None and not self._is_closed:
            self.answers.append(self._answer(batches))
            self._ring()

    def _answer(self, batches: list[Any]) -> _Answer:
        try:
            return _Answer(self._result(batches))
        except BaseException as error:  # noqa: BLE001  (raised by the operator, with the time)
            return _Answer([], error)

    def _result(self, batches: list[Any]) -> list[pa.RecordBatch]:
        if self._schema is None:
            table = pa.Table.from_batches(batches)
            given = self._session.createDataFrame(table)
        else:
            rows = [record for batch in batches for record in batch]
            given = self._session.createDataFrame(rows, self._schema)
            check_kept(rows, given.schema, self._operator)
        result = self._function(given)
        if not hasattr(result, "toArrow"):
            raise UsageError(
                f"the function of a Spark job gives a DataFrame; {self._function!r} gave "
                f"{result!r} ({type(result).__name__})"
            )
        with called_at(self._session, self._asked_at):
            answer: pa.Table = result.toArrow()
        return answer.to_batches()
