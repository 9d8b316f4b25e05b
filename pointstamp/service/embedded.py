"""`serve`: a resident service on workers of this machine, without Spark."""

from __future__ import annotations

import _thread
import queue
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pointstamp.errors import StoppedError, UsageError
from pointstamp.runtime.execute import execute
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import CheckpointConfig, checkpoint_config
from pointstamp.service.service import Service, WorkerPool
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.spec import ServiceSpec, check_workers, service_spec
from pointstamp.service.staging import StagingHandle
from pointstamp.service.termination import Termination
from pointstamp.service.worker_handle import Link

LOOK_S = 0.05


def serve(
    build: Callable[..., Any],
    workers: int = 1,
    *,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    threads: bool = False,
    certificates: Any = None,
    checkpoint: Any = None,
    snapshot_every: int | None = None,
    allow_missing: Collection[str] = (),
    allow_new: Collection[str] = (),
) -> Service:
    """Run a dataflow that stays, on workers of this machine; what to drive it with.

    Returns when the workers are ready. Leaving a `with` block over the service stops it
    when all that was sent is complete; after an exception it aborts. So does who lets go of a
    service that was not stopped, with a `ResourceWarning`.

    Parameters
    ----------
    build : callable
        `build(scope, **inputs)` gets a stream of `pyarrow.RecordBatch` for each input, and
        returns a dict of streams, one for each output, or the stream itself where there
        is one output. Epochs are the times. It travels to the workers by cloudpickle.
    workers : int
        How many, each in a process of its own.
    inputs, outputs : mapping
        Of names to schemas: a `pyarrow.Schema`, or a dict of column names to types.
    threads : bool
        Run the workers as threads of this process instead, which share an interpreter, and
        have no endpoints for other programs.
    certificates : Certificates, optional
        Have the endpoints of the workers encrypt.
    checkpoint : path, URI or Checkpoint, optional
        A folder that commits are written to before they count. A service that begins with one
        lets in again what was committed, with any number of workers, and its inputs go on
        where they were. One service at a time may use it.
    snapshot_every : int, optional
        After how many epochs to make a snapshot of the operators' state in the checkpoint, so
        that beginning again takes up that, and what was committed since. All operators with
        state must declare it; see `docs/state.md`. Without it, all epochs are worked off again.
    allow_missing, allow_new : collection of str
        Operators of the snapshot that the dataflow has no more, and such that it has anew.

    Returns
    -------
    Service

    Raises
    ------
    BuildError
        If `build` cannot be called with these inputs.
    WorkerError
        If a worker fails to start, for one because `build` returns other outputs. Later,
        every method of the service raises it, with the first cause, when a worker has failed.

    Notes
    -----
    An epoch's records enter whole, at `advance_to`. The workers keep the output until `discard`.
    Without a checkpoint nothing outlasts them. With one, a service that begins again works
    off all epochs again, so that the same output is there once more, to be read after what
    was used: exactly once for a reader that knows how far it was.

    Examples
    --------
    >>> import pointstamp as ps
    >>> import pyarrow as pa
    >>> def build(scope, words):
    ...     return words.exchange("word").map_batches(
    ...         lambda batch: batch.append_column("n", pa.array([1] * len(batch))))
    >>> with ps.serve(
    ...     build, workers=2, threads=True,
    ...     inputs={"words": {"word": pa.string()}},
    ...     outputs={"ones": {"word": pa.string(), "n": pa.int64()}},
    ... ) as service:
    ...     service.input("words").send([{"word": "a"}, {"word": "a"}])
    ...     service.input("words").advance_to(1)
    ...     service.output("ones").collect(upto=0).to_pylist()
    [{'word': 'a', 'n': 1}, {'word': 'a', 'n': 1}]
    """
    check_workers(workers)
    plan = service_spec(build, inputs, outputs)
    kept = checkpoint_config(checkpoint, snapshot_every, allow_missing, allow_new)
    if threads:
        if certificates is not None:
            raise UsageError("threads have no endpoints, and so nothing to encrypt: leave one out")
        pool: WorkerPool = Threads(plan, workers, kept)
    else:
        # Not at the top: threads need no Flight, which takes its time to import.
        from pointstamp.service.process_pool import Processes

        pool = Processes(plan, workers, certificates, kept)
    service = Service(plan, pool.start(), pool)
    weakref.finalize(service, _abandoned, pool).atexit = False
    return service


def _abandoned(pool: WorkerPool) -> None:
    """Nobody has the service any more: without this its workers would stay to the end."""
    if not pool.termination.has_ended:
        text = "a service that was never stopped is aborted: leave its block, or call stop()"
        pool.termination.end(StoppedError(text))
        # Collection may come anywhere, in who holds locks too: so no `threading`, which has some.
        _thread.start_new_thread(pool.abort, ())
        warnings.warn(text, ResourceWarning, stacklevel=2)


class Threads:
    """Workers as threads of this process, started and ended by another one."""

    token: str | None = None

    def __init__(self, plan: ServiceSpec, workers: int, config: CheckpointConfig | None) -> None:
        self.termination = Termination()
        self._plan = plan
        self._config = config
        self._n_workers = workers
        self._arrived: queue.SimpleQueue[ServiceWorker] = queue.SimpleQueue()
        self._residents: dict[int, ServiceWorker] = {}
        self._thread = threading.Thread(target=self._run, name="pointstamp-service", daemon=True)

    def start(self) -> Sequence[Link]:
        """Start the workers; they, by index, when all are ready."""
        self._thread.start()
        try:
            while len(self._residents) < self._n_workers:
                self.termination.check()
                try:
                    resident = self._arrived.get(timeout=LOOK_S)
                except queue.Empty:
                    continue
                self._residents[resident.index] = resident
        except BaseException:
            self.abort()
            self._thread.join()
            raise
        return [self._residents[index] for index in range(self._n_workers)]

    def abort(self) -> None:
        """Make the workers end at their next step."""
        while not self._arrived.empty():
            resident = self._arrived.get()
            self._residents[resident.index] = resident
        for resident in self._residents.values():
            resident.fail(StoppedError("the service was aborted"))

    def join(self, timeout_s: float) -> bool:
        """Wait until the workers have ended; whether they have."""
        until = time.monotonic() + timeout_s
        # Who runs the workers waits only a moment for those that are at work when others fail.
        for thread in (self._thread, *(resident.thread for resident in self._residents.values())):
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                return False
        return True

    def stage(
        self, service: Service, input: str, epoch: int, data: Any
    ) -> list[StagingHandle] | None:
        """Nothing is known here that the service does not know."""
        return None

    def _run(self) -> None:
        self.termination.end_with(
            lambda: execute(
                reside,
                self._plan,
                self._arrived.put,
                self._config,
                workers=self._n_workers,
                threads=True,
            )
        )


def reside(
    worker: Worker,
    plan: ServiceSpec,
    arrived: Callable[[ServiceWorker], object],
    config: CheckpointConfig | None,
) -> None:
    """The life of a worker of a service in the process of who drives it."""
    resident = ServiceWorker(worker, plan, config)
    arrived(resident)
    resident.run()
