"""A program in a process of its own, to which its owner talks without ever waiting.

Three threads do the waiting: one writes to its standard input, one reads its standard
output, one its standard error. So it may read and write in any order and amount. What
it answers is put in a deque, of which the owner takes; after each addition `wake` is called.

Rules
-----
1. The owner gets the end once, as the last answer, and then reaps the process.
2. `kill` may be called at any moment. After it no process, thread or descriptor is
   left, also where the program has handed its pipes on to others, which may live on:
   each thread waits for its pipe *or* for the word to stop.
3. The program is the leader of a process group, and its group is killed with it.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import select
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from pointstamp.formats.pipe_framing import CHUNK_BYTES, Framing

KEPT_LINES = 20
"""How many lines of its standard error are kept, the last ones."""

KEPT_BYTES = 8_192


@dataclass(frozen=True)
class Answer:
    """A batch that the program wrote."""

    batch: Any


@dataclass(frozen=True)
class Mark:
    """The program has answered everything up to the next mark that it was sent."""


@dataclass(frozen=True)
class End:
    """The program has ended."""

    status: int
    """As `subprocess` has it: negative for a signal."""
    stderr: str
    """The last lines of its standard error."""
    error: BaseException | None
    """What went wrong with its pipes, if something did; then it was killed."""


_MARK = object()
_CLOSE = object()


class Child:
    """A running program.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    framing : Framing
        How records go through its pipes.
    wake : callable
        Called by other threads, when there is an answer.
    env : mapping, optional
        Its environment variables, if not this process's.
    cwd : str, optional
        Where it runs, if not where this process does.

    Raises
    ------
    OSError
        When it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        framing: Framing,
        wake: Callable[[], None],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        self.answers: deque[Answer | Mark | End] = deque()
        self._framing = framing
        self._wake = wake
        self._asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._complaints = b""
        self._stop_reader = self._stop_writer = -1
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,
            env=env,
            cwd=cwd,
        )
        self._stop_reader, self._stop_writer = os.pipe()
        stdin, stdout, stderr = (
            _Pipe(file, self._stop_reader)
            for file in (self.process.stdin, self.process.stdout, self.process.stderr)
        )
        listens = self._thread("listens", self._listen, stderr)
        self._threads = [
            self._thread("writes", self._write, stdin),
            listens,
            self._thread("reads", self._read, stdout, listens),
        ]
        for thread in self._threads:
            thread.start()

    def give(self, batch: Any) -> None:
        """Have a batch written, that its framing has checked."""
        self._asked.put(batch)

    def mark(self) -> None:
        """Have a mark written."""
        self._asked.put(_MARK)

    def finish(self) -> None:
        """Close its standard input after what was given."""
        self._asked.put(_CLOSE)

    def kill(self) -> None:
        """End the program and its group, the threads, and the pipes. Twice is once."""
        if self._stop_writer < 0:
            return
        self._kill_group()
        self._let_go()

    def abandon(self) -> None:
        """Kill it, and wait for nothing: the collector may call this in one of the threads."""
        if self._stop_writer >= 0:
            self._kill_group()
            writer, self._stop_writer = self._stop_writer, -1
            os.close(writer)
            self._asked.put(_CLOSE)

    def reap(self) -> None:
        """Let go of what is left of it after its `End`."""
        if self._stop_writer >= 0:
            self._let_go()

    def _let_go(self) -> None:
        writer, self._stop_writer = self._stop_writer, -1
        os.close(writer)  # each thread sees that, whatever it waits for
        self._asked.put(_CLOSE)
        for thread in self._threads:
            thread.join()
        self.process.wait()
        self._close_stop()

    def _close_stop(self) -> None:
        reader, self._stop_reader = self._stop_reader, -1
        if reader >= 0:
            os.close(reader)

    def __del__(self) -> None:
        # Of what was abandoned: threads that still look at it keep this alive.
        self._close_stop()

    def _kill_group(self) -> None:
        if self.process.returncode is None:
            # It may have ended meanwhile; then its group is what is left, or nothing.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def _thread(self, what: str, target: Callable[..., None], *args: Any) -> threading.Thread:
        name = f"pointstamp-command-{self.process.pid}-{what}"
        return threading.Thread(target=target, args=args, name=name, daemon=True)

    # Each in a thread of its own.

    def _write(self, raw: _Pipe) -> None:
        try:
            with raw, io.BufferedWriter(raw, CHUNK_BYTES) as pipe:
                writer = self._framing.writer(pipe)
                while (asked := self._asked.get()) is not _CLOSE:
                    if asked is _MARK:
                        writer.mark()
                    else:
                        writer.write(asked)
                writer.close()
        except BrokenPipeError:
            pass  # it reads no more: whether that is fine its status says
        except BaseException as error:  # noqa: BLE001  (given to the owner at the end)
            self._fail(error)

    def _read(self, raw: _Pipe, listens: threading.Thread) -> None:
        try:
            with raw, io.BufferedReader(raw, CHUNK_BYTES) as pipe:
                for batch in self._framing.read(pipe):
                    self._answer(Mark() if batch is None else Answer(batch))
        except BaseException as error:  # noqa: BLE001  (given to the owner at the end)
            self._fail(error)
        listens.join()
        status = self.process.wait()
        if not raw.is_stopped:
            self._answer(End(status, self._complaint(), self._error))

    def _listen(self, raw: _Pipe) -> None:
        with raw, io.BufferedReader(raw, CHUNK_BYTES) as pipe:
            while piece := pipe.read1(CHUNK_BYTES):
                self._complaints = (self._complaints + piece)[-KEPT_BYTES:]

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self._kill_group()

    def _answer(self, answer: Answer | Mark | End) -> None:
        self.answers.append(answer)
        self._wake()

    def _complaint(self) -> str:
        lines = self._complaints.decode(errors="replace").splitlines()
        return "\n".join(lines[-KEPT_LINES:])


class _Pipe(io.RawIOBase):
    """This side of a pipe, at its end as soon as its owner says so."""

    def __init__(self, file: IO[bytes] | None, stop: int) -> None:
        assert file is not None
        self._file = file
        self._fd = file.fileno()
        self._stop = stop
        self._is_for_writing = file.writable()
        self.is_stopped = False
        os.set_blocking(self._fd, False)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT if self._is_for_writing else select.POLLIN)
        self._poll.register(stop, select.POLLIN)

    def readable(self) -> bool:
        """Whether it is the child's output."""
        return not self._is_for_writing

    def writable(self) -> bool:
        """Whether it is the child's input."""
        return self._is_for_writing

    def readinto(self, buffer: Any) -> int:
        """What has come; waits for some."""
        while self._can_go_on():
            with contextlib.suppress(BlockingIOError):
                return os.readv(self._fd, [buffer])
        return 0

    def write(self, data: Any) -> int:
        """What the pipe takes; waits until it takes some."""
        while self._can_go_on():
            with contextlib.suppress(BlockingIOError):
                return os.write(self._fd, data)
        raise BrokenPipeError("the program was stopped")

    def close(self) -> None:
        """Close our side."""
        self._file.close()
        super().close()

    def _can_go_on(self) -> bool:
        """Wait for the other side, or for the word to stop."""
        events = dict(self._poll.poll())
        self.is_stopped = self.is_stopped or self._stop in events
        return not self.is_stopped
