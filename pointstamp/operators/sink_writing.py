"""The end of a stream in a sink: what is written, prepared and committed, and when.

A sink that is not transactional is written to as batches come. A transactional one gets an epoch
at a time: what is of a later epoch waits until the one before is complete and prepared. Without a
checkpoint an epoch is committed then. With one its token is kept in the snapshot of the epoch, and
committed when that counts; so whatever ends the program, an epoch's output is seen if its
snapshot counts, and not otherwise.

Source: the two-phase commit of Flink's sinks, with its pre-commit at the barrier; here the
frontier says that an epoch is complete, and nothing is sent into the stream for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from pointstamp.dataflow.connectors import Sink, SinkContext, TransactionalSink
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.run_epochs import RunEpochs
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, SinkError
from pointstamp.operators.fed_back import note_connector
from pointstamp.operators.partitioned_source import NOT_IN_A_RUN
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Int

TOKENS = "tokens"
"""The table of what is prepared and was not committed."""


def write_to_sink(stream: StreamCore[Any], sink: Sink | TransactionalSink, name: str) -> None:
    """See `Stream.sink`."""
    scope = stream.scope
    run = scope.environment.run_epochs
    builder = OperatorBuilder(scope, name)
    if run is None:
        builder.states.refuse(NOT_IN_A_RUN.format("sink"))
    if isinstance(sink, TransactionalSink) and scope.timestamp != Int:
        raise BuildError(
            f"sink {name!r} commits epochs, which are times of Int; those of scope "
            f"{scope.name!r} are of {scope.timestamp!r}: leave the scope first"
        )
    note_connector(scope.environment, name, sink)
    builder.new_input(stream, Pipeline(), Interest.ALWAYS)
    builder.states.holds_no_texts()

    def make_logic(capabilities: list[Any], info: OperatorInfo) -> Callable[..., None]:
        if isinstance(sink, TransactionalSink):
            return _Transactions(sink, name, info, run).run
        return _Written(sink, name, info, run).run

    builder.build(make_logic)


def _opened(sink: Any, name: str, info: OperatorInfo, run: RunEpochs | None) -> Any:
    """The writer, which is closed when the dataflow ends."""
    context = (
        SinkContext(info.index, info.peers, uuid4().hex, commits_later=False)
        if run is None
        else SinkContext(info.index, info.peers, run.run, run.is_new, run.commits_later)
    )
    writer = sink.open(context)
    if not callable(getattr(writer, "write", None)):
        raise SinkError(
            f"sink {name!r}: open(context) gives what has write(batch) and close(); found "
            f"{writer!r}"
        )
    info.environment.closers.callback(writer.close)
    return writer


class _Written:
    """The logic of a sink that takes batches as they come."""

    def __init__(self, sink: Any, name: str, info: OperatorInfo, run: RunEpochs | None) -> None:
        if info.states.durable_state is not None:
            info.state(TOKENS)  # so that a snapshot waits until its epochs are written
        self._writer = _opened(sink, name, info, run)
        self._flush = getattr(self._writer, "flush", None)
        self._times: set[Any] = set()
        """Those of which something was written, and not flushed when they were complete."""

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation."""
        (input_,) = inputs
        for time, batch in input_:
            self._times.add(time.time)
            self._writer.write(batch)
        complete = {time for time in self._times if not input_.frontier.less_equal(time)}
        if complete:
            self._times -= complete
            if self._flush is not None:
                self._flush()


class _Transactions:
    """The logic of a transactional sink."""

    def __init__(
        self, sink: TransactionalSink, name: str, info: OperatorInfo, run: RunEpochs | None
    ) -> None:
        self._sink = sink
        self._name = name
        self._info = info
        self._commits_later = run is not None and run.commits_later
        self._tokens: dict[tuple[int, int], Any] = {}
        """By epoch and worker: what is prepared."""
        self._waiting: dict[int, Any] = {}
        """By epoch: the batches that came while an earlier one was not complete."""
        self._written: int | None = None
        """The epoch that is written now."""
        if info.states.durable_state is not None:
            # Here and not above: few dataflows are durable.
            from pointstamp.checkpoint.shared_rows import SharedRows

            self._tokens = SharedRows()
            info.states.keep(TOKENS, self._tokens)
        if run is not None:
            self._recover(run)
            run.commits.append(self.commit)
        self._writer = _opened(sink, name, info, run)
        if not callable(getattr(self._writer, "prepare", None)):
            raise SinkError(
                f"sink {name!r} can commit, so that its writer needs prepare(epoch); "
                f"{self._writer!r} has none"
            )

    def _recover(self, run: RunEpochs) -> None:
        """Commit what the snapshot has, and remove what came after; one worker for all."""
        if self._info.index == 0:
            if self._tokens:
                self._commit(sorted(self._tokens))
            self._sink.abort(run.run)
        self._tokens.clear()

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation."""
        (input_,) = inputs
        for time, batch in input_:
            held = self._waiting.get(time.time)
            if held is None:
                held = self._waiting[time.time] = self._info.new_batches()
            held.append(batch)
        self._end_complete(input_.frontier)
        for epoch in sorted(self._waiting):
            if self._written not in (None, epoch) or input_.frontier.less_than(epoch):
                break  # something of an earlier one may come, which is to be prepared first
            self._written = epoch
            for batch in self._waiting.pop(epoch):
                self._writer.write(batch)
            self._end_complete(input_.frontier)

    def _end_complete(self, frontier: Frontier) -> None:
        """Prepare the epoch that is written, if nothing more of it can come."""
        epoch = self._written
        if epoch is None or frontier.less_equal(epoch) or epoch in self._waiting:
            return
        self._written = None
        token = self._writer.prepare(epoch)
        if token is None:
            return
        if self._commits_later:
            self._tokens[epoch, self._info.index] = token
        else:
            self._sink.commit([token])

    def commit(self, epoch: int) -> None:
        """The snapshot of this epoch counts, and with it what was prepared up to it."""
        ready = sorted(key for key in self._tokens if key[0] <= epoch)
        if ready:
            self._commit(ready)
            for key in ready:
                del self._tokens[key]

    def _commit(self, keys: list[tuple[int, int]]) -> None:
        try:
            self._sink.commit([self._tokens[key] for key in keys])
        except Exception as error:
            cause = str(error) if isinstance(error, SinkError) else repr(error)
            raise SinkError(
                f"sink {self._name!r} cannot commit epoch {keys[-1][0]}: {cause}; the snapshot of "
                "that epoch has it, so that each program that begins with it commits it first: "
                "mend what refuses it, and begin again"
            ) from error
