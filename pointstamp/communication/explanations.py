"""What the workers of a program wait for, asked of each over its control connection.

A process that started workers has a control server with a connection to each of them.
`explain_program` sends them all an `ExplainWorkers` at once, and collects the answers. In a
worker's process the thread of its control connection answers, by what `set_describer` gave:
so a worker that is busy in code of the program answers too, unless that is a call of a library
that does not let other threads run. Those that do not answer in time are named.

Another process of the same user asks with an `ExplainProgram`; see `local_door`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from _socket import gethostname
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pointstamp.communication import publishing
from pointstamp.errors import PointstampError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pointstamp.communication.control_loop import ControlConnection

PATIENCE_S = 5.0
"""How long answers are waited for by default."""


@dataclass(frozen=True)
class ExplainWorkers:
    """A request, to a process with workers: what do they wait for? The answer is text, or None."""


class ProgramQuestion:
    """A request to the process that started workers: what other processes of its user may ask."""


@dataclass(frozen=True)
class ExplainProgram(ProgramQuestion):
    """A request, to the process that started workers: the answer has an `Explanation` of each."""

    timeout_s: float


@dataclass(frozen=True)
class Explanation:
    """What the workers of one process wait for.

    Attributes
    ----------
    workers : str
        Which, in words.
    machine : str
        The name of their machine.
    process : int
        Theirs; 0 if it is not known.
    text : str, optional
        None if they did not answer in time.
    """

    workers: str
    machine: str
    process: int
    text: str | None


class Asker(Protocol):
    """A control server, as it is seen here."""

    def workers(self) -> list[ControlConnection]:
        """The connections of all its workers."""


_describe: Callable[[], str | None] | None = None
_servers: dict[Asker, None] = {}
"""The control servers of this process."""


def set_describer(describe: Callable[[], str | None]) -> None:
    """Have `describe` say what the workers of this process wait for; None if it has none."""
    global _describe
    _describe = describe


def add_server(server: Asker) -> None:
    """From now on ask the workers of this control server, too."""
    _servers[server] = None


def remove_server(server: Asker) -> None:
    """Ask its workers no more."""
    _servers.pop(server, None)


def servers() -> list[Asker]:
    """The control servers of this process."""
    return list(_servers)


def explain_program(timeout_s: float = PATIENCE_S) -> list[Explanation]:
    """What all workers that this process has started, or runs itself, wait for.

    Waits for their answers, so not for handlers of control messages to call.
    """
    until = time.monotonic() + timeout_s
    asked = [
        (connection, connection.request(ExplainWorkers()))
        for server in servers()
        for connection in server.workers()
    ]
    found = []
    own = _own_text()
    if own is not None:
        found.append(Explanation("its workers", gethostname(), os.getpid(), own))
    for connection, future in asked:
        text = _text(future, until)
        found.append(Explanation(str(connection), connection.machine, connection.process, text))
    return _one_of_each(found)


def each_answer(message: Any, timeout_s: float, own: Callable[[], Any | None]) -> list[Any]:
    """What each process with workers answers in time: those of this one, by `own`, first."""
    until = time.monotonic() + timeout_s
    asked: dict[object, Future[Any]] = {}
    for server in list(_servers):
        for connection in server.workers():
            key = (connection.machine, connection.process) if connection.process else connection
            if key not in asked and key != (gethostname(), os.getpid()):
                asked[key] = connection.request(message)
    found = [own()]
    for future in asked.values():
        with contextlib.suppress(TimeoutError, PointstampError):  # busy, or it has ended meanwhile
            found.append(future.result(max(0.0, until - time.monotonic())))
    return [each for each in found if each is not None]


def _text(future: Future[Any], until: float) -> str | None:
    try:
        return str(future.result(max(0.0, until - time.monotonic())))
    except (TimeoutError, PointstampError):
        return None  # it is busy, or has ended meanwhile
    except Exception as error:  # noqa: BLE001  (of the worker's handler)
        return f"what it waits for cannot be read: {error!r}"


def _one_of_each(found: list[Explanation]) -> list[Explanation]:
    """One for each process: a worker may have several connections."""
    unique: dict[object, Explanation] = {}
    for each in found:
        key = (each.machine, each.process) if each.process else each
        if key not in unique or unique[key].text is None:
            unique[key] = each
    return list(unique.values())


def _own_text() -> str | None:
    return _describe() if _describe is not None else None


def _answer_for_workers(connection: object, message: ExplainWorkers) -> str:
    return _own_text() or f"process {os.getpid()}\nit has no worker at the moment"


def _answer_for_program(connection: object, message: ExplainProgram) -> Future[list[Explanation]]:
    from concurrent.futures import Future

    answer: Future[list[Explanation]] = Future()

    def collect() -> None:
        try:
            answer.set_result(explain_program(message.timeout_s))
        except Exception as error:  # noqa: BLE001  (raised at the other end)
            answer.set_exception(error)

    threading.Thread(target=collect, name="pointstamp-explain", daemon=True).start()
    return answer


publishing.handlers[ExplainWorkers] = _answer_for_workers
publishing.handlers[ExplainProgram] = _answer_for_program
