"""Figures of a program's workers, asked of each over its control connection, as explanations are.

Nothing here is imported before something watches: what a worker's process is sent is of a type
of this module, so that taking it imports what answers it.
"""

from __future__ import annotations

import os
import threading
import time
from _socket import gethostname
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pointstamp.communication import publishing
from pointstamp.communication.explanations import ProgramQuestion, each_answer
from pointstamp.errors import UsageError
from pointstamp.runtime import introspection
from pointstamp.runtime.diagnostics import account, frame_of, holders_at
from pointstamp.runtime.watched_figures import figures_of, process_figures
from pointstamp.runtime.watched_samples import _READING, Sampler
from pointstamp.runtime.watched_structure import structure_of

if TYPE_CHECKING:
    from pointstamp.progress.explanation import Holder
    from pointstamp.runtime.worker import Worker

PATIENCE_S = 2.0


@dataclass(frozen=True)
class ReadWorkers:
    """A request, to a process with workers: what they have built and done, and wait for.

    Attributes
    ----------
    what : str
        "structure", "figures", "counts" or "explain".
    since_s : float
        Of what happened after that moment, for "figures".
    address : str
        Of an operator, for "explain".
    run : str
        Of whose workers, for "counts"; those of others are left out.
    """

    what: str
    since_s: float = 0.0
    address: str = ""
    run: str = ""


@dataclass(frozen=True)
class ReadProgram(ProgramQuestion):
    """The same request to the process that started them: the answer has one of each process."""

    request: ReadWorkers
    timeout_s: float


def read_program(request: ReadWorkers, timeout_s: float = PATIENCE_S) -> list[dict[str, Any]]:
    """What all workers that this process has started, or runs itself, answer.

    Returns
    -------
    list of dict
        One of each process that answered in time, with "machine" and "process".
    """
    return each_answer(request, timeout_s, lambda: answer(request))


def ask_program(
    process: int, request: ReadWorkers, timeout_s: float = PATIENCE_S
) -> list[dict[str, Any]] | None:
    """The same of another process of this machine; None if it does not answer."""
    from pointstamp.communication.control import ControlClient
    from pointstamp.communication.local_door import enter
    from pointstamp.errors import CommunicationError

    connection = enter(process, timeout_s)
    if connection is None:
        return None
    with ControlClient(connection, -1) as client:
        try:
            found: list[dict[str, Any]] = client.ask(
                ReadProgram(request, timeout_s), timeout_s + 1.0
            )
        except CommunicationError:
            return None
    return found


def answer(request: ReadWorkers) -> dict[str, Any] | None:
    """What the workers of this process answer; None if it has none."""
    if not introspection._workers:
        return None
    found: dict[str, Any] = {"machine": gethostname(), "process": os.getpid(), "at_s": time.time()}
    if request.what == "figures":
        found.update(process_figures())
        found["workers"] = [
            figures_of(worker, samples, request.since_s) for worker, samples in _sampler.ask()
        ]
    elif request.what == "structure":
        found["workers"] = [
            {"worker": worker.index, "peers": worker.peers, **_steady_structure(worker)}
            for worker, _ in _own_workers()
        ]
    elif request.what == "counts":
        found["workers"] = [
            {"worker": worker.index, **counts.read()}
            for worker, _ in _own_workers()
            if (counts := worker.environment.source_counts) is not None
            and counts.run == request.run
        ]
    elif request.what == "explain":
        found["workers"] = [
            _explanation(worker, thread, request.address) for worker, thread in _own_workers()
        ]
    else:
        raise UsageError(
            f"workers are asked for structure, figures, counts or explain, not {request.what}"
        )
    return found


def _own_workers() -> Iterator[tuple[Worker, int]]:
    for reference, thread in list(introspection._workers.values()):
        worker = reference()
        if worker is not None:
            yield worker, thread


_sampler = Sampler(_own_workers)


def _steady_structure(worker: Worker) -> dict[str, Any]:
    for _ in range(5):  # it may be building meanwhile
        with suppress(*_READING):
            return structure_of(worker)
    return {"operators": [], "streams": []}


def _explanation(worker: Worker, thread: int, address: str) -> dict[str, Any]:
    """What could still produce the earliest times at an operator, and where the worker is."""
    root, _, path = address.partition("/")
    nodes = [int(node) for node in path.split("/") if node.isdecimal()]
    found: list[Holder] = []
    with suppress(*_READING):
        found = holders_at(worker, int(root), nodes)
    return {
        "worker": worker.index,
        "holders": [_holder(root, each) for each in found],
        "account": account(worker, frame_of(thread)),
    }


def _holder(root: str, holder: Holder) -> dict[str, Any]:
    return {
        "text": str(holder),
        "worker": holder.worker,
        "is_here": holder.is_here,
        "what": holder.what.name.lower(),
        "time": str(holder.time),
        "count": holder.count,
        "operator": _address(root, holder.address),
        "path": [_address(root, _nodes(label)) for label in holder.path],
    }


def _address(root: str, nodes: tuple[int, ...]) -> str:
    return "/".join([root, *map(str, nodes)])


def _nodes(label: str) -> tuple[int, ...]:
    """The place that ends an operator's label, "'Loop/Map' [2, 1]"."""
    said = label.rpartition("[")[2].rstrip("]")
    return tuple(int(node) for node in said.split(",")) if said[:1].isdigit() else ()


def _answer_for_program(connection: object, message: ReadProgram) -> Future[list[dict[str, Any]]]:
    found: Future[list[dict[str, Any]]] = Future()

    def collect() -> None:
        try:
            found.set_result(read_program(message.request, message.timeout_s))
        except Exception as error:  # noqa: BLE001  (raised at the other end)
            found.set_exception(error)

    threading.Thread(target=collect, name="pointstamp-watch", daemon=True).start()
    return found


publishing.handlers[ReadWorkers] = lambda _, message: answer(message)
publishing.handlers[ReadProgram] = _answer_for_program
