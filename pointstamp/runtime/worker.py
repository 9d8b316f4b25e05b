"""A worker: one thread of control that owns its share of every dataflow.

A step takes in what has arrived, visits the dataflows that have something to do, and sends what
their peers need to know. An idle dataflow is not visited, and a worker with nothing to do parks.

Two channels are the worker's own. On one the workers agree on what they build and drop
(`control_plane`), on the other each scope's changes go to the same scope of every peer
(`progress_exchange`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp.communication.communicator import Communicator
from pointstamp.dataflow.backpressure import Backpressure
from pointstamp.dataflow.durability import DataflowState, unique_name
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.limits import LIMIT_BYTES
from pointstamp.dataflow.logging_protocol import Logger
from pointstamp.errors import BuildError, InputError, UsageError
from pointstamp.operators.probe import Probe
from pointstamp.operators.scope import Scope
from pointstamp.operators.sources import InputHandle
from pointstamp.progress.timestamp import Int, Timestamp
from pointstamp.runtime.accumulated_exchange import exchange_of
from pointstamp.runtime.control_plane import ControlPlane
from pointstamp.runtime.dataflow_block import check_condition, in_with_block
from pointstamp.runtime.installed_dataflow import ActiveDataflows, InstalledDataflow, first_logged
from pointstamp.runtime.signal_poll import poll_signals
from pointstamp.runtime.snapshots import Snapshot, WorkerSnapshots, Write
from pointstamp.runtime.timers import Timers
from pointstamp.runtime.watchdog import Watchdog
from pointstamp.runtime.worker_texts import NEVER, WorkerTexts, answer_for

if TYPE_CHECKING:
    from pointstamp.checkpoint.durable import Durable
    from pointstamp.progress.explanation import Holder

_POLL_EVERY = 4
"""Of so many steps one has Python do what it does between any two lines: it is a call of Python."""


class Worker:
    """Builds and runs dataflows, together with its peers.

    Parameters
    ----------
    communicator : Communicator
        Its contact with the others.
    eager : bool
        Send each change of progress at once, rather than when it may advance a peer's frontier.
    accumulate : bool
        Send progress to one worker of each machine, which adds it up.
    log : Logger, optional
        Logs what happens here; its maker closes it.
    watchdog_s : float, optional
        Warn, through logging, when nothing has advanced for so many seconds and a
        dataflow is not complete. The thread that makes the worker must be its own.
    stall_s : float, optional
        The same, but only if this worker itself holds back what it waits for.
    in_flight_bytes : int
        About how much a channel may have in flight to a peer until sources wait; 0: no limit.
    """

    def __init__(
        self,
        communicator: Communicator,
        *,
        eager: bool = False,
        accumulate: bool = False,
        log: Logger | None = None,
        watchdog_s: float | None = None,
        stall_s: float | None = None,
        in_flight_bytes: int = LIMIT_BYTES,
    ) -> None:
        self.communicator = communicator
        self.timers = Timers()
        self._log = log
        # Before the environment, whose log would wrap their channels.
        self._control = control = ControlPlane(communicator)
        self._progress = progress = exchange_of(communicator, log, accumulate)
        # Through a loop: of a typed variable Cython would hand on the bare C function.
        own = {service.channel: service.receive for service in (control, progress)}
        self.environment = Environment(
            communicator,
            eager,
            share=progress.share,
            report_taken=control.publish_taken,
            comparisons=control.comparisons,
            fail=self._fail,
            later=self.timers.after,
            clock=self.timers.now,
            explain=self._explain,
            worker_log=log,
            in_flight=control.in_flight,
            in_flight_bytes=in_flight_bytes,
            arrivals={channel.id: receive for channel, receive in own.items()},
            channels={channel.id: channel for channel in own},
        )
        # Looked up once: a step is short. Samples of it put others here (`watched_samples`).
        self.call_communicator()
        self._alarms = self.timers.waiting
        self._calls, self._run_idle = self.environment.calls, self.environment.idle.run
        self._arrivals, self._in_flight = self.environment.arrivals, control.in_flight
        self._subgraphs = progress.subgraphs
        self._dataflows = control.dataflows
        self._peers = communicator.peers
        self._discountable: set[Any] = set()
        self._active = ActiveDataflows()
        self._is_building = self._is_stepping = False
        self.is_parked = False
        """Whether it waits at this moment for something to do."""
        self._failure: BaseException | None = None
        self.texts: WorkerTexts | None = None  # before there is a collection
        self._snapshots = WorkerSnapshots(self.environment)
        self.n_steps, self.is_waiting, self._look_at = 0, False, NEVER
        """Whether the program waits in `step_while` or `run`, and does nothing else meanwhile."""
        self._measure_at = NEVER if communicator.peers == 1 else 0
        self._watchdog: Watchdog | None = None
        if watchdog_s is not None:
            self._watchdog = Watchdog(self, watchdog_s)
        elif stall_s is not None:
            self._watchdog = Watchdog(self, stall_s, is_patient=True)

    def call_communicator(self) -> None:
        """Have each step call what receives and sends for it, and nothing else in its place."""
        self._receive = self.communicator.receive
        self._flush = self.communicator.flush if self.communicator.peers > 1 else None

    @property
    def index(self) -> int:
        """This worker's number, from 0."""
        return self.communicator.index

    @property
    def peers(self) -> int:
        """The number of workers."""
        return self.communicator.peers

    @property
    def dropped(self) -> dict[str, int]:
        """The number of records dropped by `on_error="drop"`, by operator.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream(["1", "one", "2"]).map(int, on_error="drop")
        ...     return worker.run() or worker.dropped
        >>> ps.execute(main)
        [{'Map': 1}]
        """
        return dict(self.environment.dropped)

    @in_with_block
    def dataflow(
        self,
        name: str = "Dataflow",
        timestamp: Timestamp = Int,
        *,
        logged: bool = True,
        durable: Durable | None = None,
    ) -> Iterator[Scope]:
        """Build a dataflow in a `with` block; it is ready to run when the block ends.

        All workers must build the same dataflows in the same order.

        Parameters
        ----------
        logged : bool
            Whether this dataflow is logged, if the worker keeps a log. One that reads that
            log must not be; see `Scope.log_stream`.
        durable : Durable, optional
            Have the state of its operators kept in snapshots, and begin with one: see
            `snapshot`. Its inputs then begin after the epoch of that one, and
            streams that are given as they are built (`to_stream`) are empty: they were sent.

        Raises
        ------
        BuildError
            If it is not well made: a loop that does not advance, for one.
        UndeclaredStateError
            If it is to be durable, and an operator may keep what it does not declare.
        CheckpointStructureError
            If it has other operators with state than the snapshot that it begins with.
        """
        if self._is_building:
            raise BuildError(
                f"dataflow {name!r} begins inside the making of another; end that first"
            )
        dataflow = InstalledDataflow(self._control.n_built, name, logged, self._active)
        if self.environment.in_flight_bytes:
            dataflow.backpressure = Backpressure(
                self._discountable, partial(self._control.publish_throttle, dataflow.number)
            )
        if durable is not None:
            known = [durable_state.dataflow for durable_state in self._snapshots.durable_states]
            dataflow.durable_state = DataflowState(
                durable, unique_name(name, known), self.index, self.peers
            )
        self._is_building = True
        try:
            with self.environment.building(
                backpressure=dataflow.backpressure,
                durable_state=dataflow.durable_state,
                is_logged=logged,
            ) as built:
                scope = Scope(self.environment, name, timestamp, wake=dataflow.activation)
                yield scope
                scope.close()
                if dataflow.durable_state is not None:
                    dataflow.durable_state.close()
                    self._snapshots.add(dataflow.durable_state)
        finally:
            self._is_building = False
        dataflow.inputs, dataflow.channels = built.inputs, built.channels
        dataflow.closers = built.closers
        scope.installed = dataflow
        if built.texts_held.has_collections and self.environment.texts_held is None:
            self.texts, self._look_at = answer_for(self, dataflow, built.texts_held), 0
        self._install(dataflow, scope)

    def snapshot(
        self, epoch: int, write: Write | None = None, *, background: bool = True
    ) -> Snapshot:
        """Request a snapshot of this worker's durable dataflows, as of the end of an epoch.

        Call it on every worker, before any of them sends what is later than `epoch` or
        advances an input past it. It returns at once. The worker goes on, and what it works on may
        be later: each operator hands out what it has at the moment when the epoch is
        complete there, and keeps what is later waiting until then. The cost is a pass over the
        keys that have changed since the last one.

        Parameters
        ----------
        epoch : int
            All times of it, and of those before, are in the snapshot, and none after.
        write : callable, optional
            `write(epoch, tables)`, tables being deltas by (operator, table): called once when
            all are there. The default writes a part of the dataflow's checkpoint.
        background : bool
            Whether to write on a thread of its own, and not in a step.

        Returns
        -------
        Snapshot
            Its `part` is there when it is `done`; with those of all workers the checkpoint
            can commit a manifest.

        Raises
        ------
        UsageError
            If it is too late, or no dataflow is durable.

        Examples
        --------
        >>> import tempfile
        >>> import pointstamp as ps
        >>> def main(worker, folder):
        ...     checkpoint = ps.checkpoint.Checkpoint(folder)
        ...     with worker.dataflow("sums", durable=ps.checkpoint.Durable(checkpoint)) as scope:
        ...         input, stream = scope.new_input()
        ...         stream.state_machine(lambda key, x, sum: (sum + x, []), default=0)
        ...     snapshot = worker.snapshot(0)
        ...     input.send(("a", 1))
        ...     input.close()
        ...     worker.step_while(lambda: not snapshot.done)
        ...     return checkpoint.commit_manifest(0, [snapshot.part], {}).structure
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ps.execute(main, folder)
        [{'sums/StateMachine': {'states': 'keys and values'}}]
        """
        return self._snapshots.begin(epoch, write, background=background)

    def abandon_snapshot(self, snapshot: Snapshot) -> None:
        """Abandon a snapshot of this worker; the next one is a full snapshot.

        Call it on every worker, so that no later part refers to files of one that is removed.
        """
        self._snapshots.abandon(snapshot)

    def step(self) -> bool:
        """Run the operators that have work; returns whether any dataflow is incomplete.

        It waits for nothing to do, so `while worker.step(): ...` completes all dataflows whose
        inputs are closed; `run` does so without taking the processor. For more, see `has_work`.

        Raises
        ------
        UsageError
            When called by an operator of this worker.
        """
        if self.n_steps % _POLL_EVERY == 0:
            poll_signals()
        if self._failure is not None:
            # What the failed step left half-done cannot go on, and must not look complete.
            raise self._failure
        if self._is_stepping:
            # The scopes that are at work do not go on in there: what waits for them that way
            # waits for ever, and what it reports meanwhile is half of what is being done.
            raise UsageError(
                f"step() of worker {self.index} was called inside of a step, by an operator; send, "
                "or ask to be activated, and return"
            )
        self._is_stepping = True
        self.n_steps += 1
        try:
            self._take_in()
            if self.n_steps < self._measure_at:
                self._visit_dataflows()
            else:
                began = self.timers.clock()
                self._visit_dataflows()
                self._measure_at = self.n_steps + self._progress.pace(self.timers.clock() - began)
            self._progress.send()
            if self._discountable and not self._active.n:
                self._discount()
            if self._flush is not None:
                self._flush()
            if self._log is not None:
                self._log.tick()
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            self._is_stepping = False
        if self.n_steps >= self._look_at and self.texts is not None:
            self._look_at = self.n_steps + self.texts.look()
        return bool(self._dataflows)

    @property
    def has_work(self) -> bool:
        """Whether a step would find work right now.

        What peers have sent meanwhile is seen by stepping only.
        """
        return bool(self._active.n or self._calls)

    @property
    def has_dataflows(self) -> bool:
        """Whether any dataflow of this worker is incomplete.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow("sums") as scope:
        ...         scope.to_stream([1, 2])
        ...     before = worker.has_dataflows, worker.installed_dataflows
        ...     worker.run()
        ...     return before, (worker.has_dataflows, worker.installed_dataflows)
        >>> ps.execute(main)
        [((True, ['sums']), (False, []))]
        """
        return bool(self._dataflows)

    @property
    def installed_dataflows(self) -> list[str]:
        """The names of the dataflows that are incomplete, in the order in which they were built."""
        return [dataflow.name for dataflow in self._dataflows.values()]

    def step_or_park(self, timeout_s: float | None = None) -> bool:
        """Wait until there is work, and step; returns whether any dataflow is incomplete.

        Parameters
        ----------
        timeout_s : float, optional
            Seconds to wait at most, if there is no idle work; without it, as long as it takes.
        """
        is_free = self._failure is None and not self._is_stepping
        if is_free and not (self._active.n or self._calls or self._run_idle()):
            if self._alarms:
                timeout_s = self.timers.wait_s(timeout_s)
            park = self.communicator.park if self.texts is None else self.texts.park
            self.is_parked = True
            try:
                park(timeout_s) if self._log is None else self._log.park(park, timeout_s)
            finally:
                self.is_parked = False
        return self.step()

    def step_while(self, condition: Callable[[], bool]) -> None:
        """Step until `condition()` is false, parking while there is no work."""
        check_condition(condition)
        was_waiting, self.is_waiting = self.is_waiting, True
        try:
            while condition():
                self.step_or_park()
        finally:
            self.is_waiting = was_waiting

    def run(self, *until: Scope | str) -> None:
        """Step until all dataflows are complete, or all those that are named.

        Parameters
        ----------
        *until : Scope or str
            What `worker.dataflow()` gave, or the name: of the one built last with it. Others
            may go on and have open inputs, as a `Sequencer` has.

        Raises
        ------
        InputError
            If an input of what is waited for is open: nothing could close it meanwhile.
        StructureError
            If a peer drops a dataflow that this worker waits for.
        UsageError
            If there is no such dataflow, or if it was dropped.
        """
        chosen = [self._control.find(dataflow, "run") for dataflow in until]
        inputs = [handle for dataflow in chosen for handle in dataflow.inputs]
        for handle in inputs if until else self.environment.inputs:
            if not handle.is_closed:
                raise InputError(
                    f"run() would never return: input {handle.name!r} of worker {self.index} is "
                    f"still open, at {handle.time}; close() it first"
                )
        was_waiting, self.is_waiting = self.is_waiting, True
        try:
            self._control.begin_waiting([dataflow.number for dataflow in chosen])
            if self._log is not None and not until:
                # What reads the log is complete when nothing is left to be logged.
                while (logged := first_logged(self._dataflows)) is not None:
                    while logged.root is not None:  # asked before each step, so of one alone
                        self.step_or_park()
                self._log.end_streams()
            while any(each.root is not None for each in chosen) if until else self._dataflows:
                self.step_or_park()
        finally:
            self._control.end_waiting()
            self.is_waiting = was_waiting

    def keep_within(self, n_epochs: int, input: InputHandle, probe: Probe) -> None:
        """Step until at most `n_epochs` epochs of `input` are incomplete at `probe`.

        To be called after each `advance_to`, so that an input does not run ahead: its
        time is then at most `n_epochs` after the earliest that may still come. Also waits
        as long as the input is held back, for too much is in flight.

        Parameters
        ----------
        n_epochs : int
            How many; 0 waits until all before the input's time is complete.
        input : InputHandle
            With integers as times.
        probe : Probe
            What it has to keep up with.

        Raises
        ------
        UsageError
            If times are no integers: then step while the probe is before a time of yours.

        Examples
        --------
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         input, stream = scope.new_input()
        ...         probe = stream.exchange().probe()
        ...     for epoch in range(5):
        ...         input.advance_to(epoch + 1)
        ...         worker.keep_within(2, input, probe)
        ...     return probe.less_than(3), probe.less_than(4)
        >>> ps.execute(main)
        [(False, True)]
        """
        now = input.time
        if type(now) is not int:
            raise UsageError(
                f"keep_within() counts epochs, and times of input {input.name!r} are such as "
                f"{now!r}; use step_while(lambda: probe.less_than(an earlier time of yours))"
            )
        self.step_while(lambda: probe.less_than(now - n_epochs) or input.is_throttled)

    def drop_dataflow(self, dataflow: Scope | str) -> None:
        """Cancel a dataflow that is not complete: nothing of it runs any more.

        All workers must drop the same dataflows, in the same order among what they build
        and drop; this returns at once, and does not wait for the others. Call it
        between steps, not from an operator.

        Nothing becomes complete by it. On this worker its operators are let
        go with all that they hold (queues, capabilities, timers, processes); no
        notification comes, and its probes go on answering what they answered last. Its
        inputs raise `DroppedError`; closing them is fine. What peers send to it, before they
        drop it too, is thrown away, and what this worker has sent stays sent: a time that
        was complete here before the drop becomes complete on the peers as well, so that
        all may wait for it and then drop.

        Dropping a dataflow that is complete does nothing, but must be done by all workers
        as well, since it may not be complete on another worker yet.

        Parameters
        ----------
        dataflow : Scope or str
            What `worker.dataflow()` gave, or the name: of the one built last with it.

        Raises
        ------
        UsageError
            If there is no such dataflow, if it was dropped before, or if an operator calls.
        StructureError
            On this call or in a later step: a peer dropped another one, or none.

        Examples
        --------
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow("endless") as scope:
        ...         loop, again = scope.feedback(1)
        ...         loop.connect(scope.to_stream([1]).concat(again))
        ...         probe = again.probe()
        ...     worker.step_while(lambda: probe.less_than(100))
        ...     worker.drop_dataflow("endless")
        ...     return probe.done
        >>> from pointstamp.communication.single import SingleCommunicator
        >>> ps.run_worker(SingleCommunicator(), main)
        False
        """
        if self._failure is not None:
            raise self._failure
        if self._is_stepping or self._is_building:
            where = (
                "inside of a step, by an operator" if self._is_stepping else "while one is built"
            )
            raise UsageError(
                f"drop_dataflow() of worker {self.index} was called {where}; drop between steps"
            )
        found = self._control.find(dataflow, "drop")
        self._snapshots.forget(found.durable_state)
        found.is_dropped = True
        self._control.publish_drop(found)
        if found.root is not None:
            self._abandon(found)
        self._control.check_finished()

    def log(self, text: str, **values: Any) -> None:
        """Put a line of your own into the log, or with values an event of that type of yours.

        Nothing happens if the worker keeps none; for types see `Log`.
        """
        if self._log is not None:
            self._log.own(text, values) if values else self._log.text(text)

    def close_inputs(self) -> None:
        """Close all inputs that are open."""
        for handle in self.environment.inputs:
            handle.close()
        self.environment.inputs.clear()

    def finish(self) -> None:
        """Close the inputs, complete all dataflows, and wait until the peers have done so, too."""
        if self._failure is not None:
            raise self._failure
        self.close_inputs()
        self._control.has_returned = True
        self.run()
        while self._snapshots.is_busy:
            self.step_or_park()
        self._control.publish_finish()
        while not self._control.have_all_finished:
            self.step_or_park()
        self.stop_watching()

    def close(self) -> None:
        """End what operators have begun outside of this worker; nothing can be done afterwards.

        To be called after the last step, however it ended; `run_worker` does.
        """
        self.stop_watching()
        with ExitStack() as all_closers:
            all_closers.callback(self._snapshots.close)
            all_closers.callback(self.environment.close)  # the last: the others may use it
            for dataflow in self._dataflows.values():
                all_closers.push(dataflow.closers)

    def outstanding(self) -> list[tuple[str, str, Any, int]]:
        """All outstanding pointstamps that are known: (dataflow, location, time, count)."""
        return [
            (dataflow.name, *entry)
            for dataflow in self._dataflows.values()
            for number in dataflow.scopes
            for entry in self._subgraphs[number].outstanding()
        ]

    def explain(self) -> list[Holder]:
        """The outstanding pointstamps that no other one leads to; see `Probe.explain`."""
        from pointstamp.runtime import diagnostics

        return diagnostics.all_causes(self)

    def stop_watching(self) -> None:
        """End the watchdog, if there is one."""
        if self._watchdog is not None:
            self._watchdog.stop()
            self._watchdog = None

    @property
    def n_changes(self) -> int:
        """How many changes of counts it has seen; as long as this moves, something goes on."""
        return self._control.n_built + self._progress.n_changes

    def _explain(self, scope: int, node: int, time: Any) -> list[Holder]:
        if self._is_building and scope not in self._subgraphs:
            raise UsageError(
                "explain() was called while the dataflow is being built; call it after that"
            )
        from pointstamp.runtime import diagnostics

        return diagnostics.holders(self, scope, node, time)

    def _fail(self, error: BaseException) -> None:
        """Have the next step raise `error`, wherever it was caught meanwhile."""
        if self._failure is None:
            self._failure = error

    def _install(self, dataflow: InstalledDataflow, scope: Scope) -> None:
        for inner in scope.all_scopes():
            assert inner.subgraph is not None
            dataflow.scopes.append(inner.number)
            self._progress.install(inner.number, inner.subgraph)
        dataflow.root, dataflow.beside = scope.subgraph, scope.beside
        dataflow.structure = scope.structure
        self._control.install(dataflow)
        dataflow.activation.ask()

    # A step.

    def _take_in(self) -> None:
        if self._calls:
            self._answer_calls()
        if self._alarms:
            self.timers.ring()
        for channel in self._receive():
            arrived = self._arrivals.get(channel)
            if arrived is not None:
                arrived()
            in_flight = self._in_flight.get(channel)
            if in_flight is not None:
                self._discountable.add(in_flight[1])

    def _answer_calls(self) -> None:
        # Those that are there: one that asks for itself again waits for the next step.
        for _ in range(len(self._calls)):
            self._calls.popleft()()

    def _discount(self) -> None:
        """Nothing is to be done: what operators have left waits for something else."""
        discountable = list(self._discountable)
        self._discountable.clear()
        for queue in discountable:
            queue.discount()

    def _visit_dataflows(self) -> None:
        # Those that are there: one that asks for another visit meanwhile waits for the next step.
        for _ in range(self._active.n):
            dataflow = self._active.take()
            dataflow.is_queued = False
            root = dataflow.root
            # Complete already, or not agreed: the last peer's structure activates it again.
            if root is None or len(dataflow.agreed) < self._peers - 1:
                continue
            log = self._log if dataflow.is_logged else None
            began = 0 if log is None else log.now()
            root.push_external_progress(())
            root.pull_internal_progress()
            if log is not None:
                log.visited(dataflow.scopes[0], began)
            if root.is_active:
                dataflow.activation.ask()
            elif root.is_complete():
                self._retire(dataflow)

    def _retire(self, dataflow: InstalledDataflow) -> None:
        """Let go of a dataflow, be it that it is complete or dropped, and close what it began."""
        dataflow.root = dataflow.beside = None
        if dataflow.durable_state is not None and not dataflow.is_dropped:
            dataflow.durable_state.finish()
        with dataflow.closers:
            self._control.uninstall(dataflow)
            subgraphs = [self._subgraphs.pop(number) for number in dataflow.scopes]
            for subgraph in subgraphs:
                subgraph.let_go()
            if self._alarms:
                self.timers.forget(subgraphs)
            for channel in dataflow.channels:
                self.environment.close_channel(channel)
            for parts in (dataflow.scopes, dataflow.channels, dataflow.inputs):
                parts.clear()
            self.environment.inputs[:] = [i for i in self.environment.inputs if not i.is_closed]

    def _abandon(self, dataflow: InstalledDataflow) -> None:
        """Let go of all that this worker has of a dataflow."""
        for handle in dataflow.inputs:
            handle.abandon()
        for number in dataflow.scopes:
            self._subgraphs[number].abandon()
        self._retire(dataflow)
