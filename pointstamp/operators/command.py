"""An external program as an operator: one on each worker, fed with the records there.

Time is kept outside of the program, which need not know of it, in one of two ways:

- *Without a marker* there is a process for each time. Its input is closed when the time
  is complete, and what it wrote until it exited are its answers. Any filter will do.
- *With a marker* one process lives as long as the dataflow. After the last record of a
  time it is sent a mark, and it sends the mark back when it has answered everything
  before it. What is written when is `containers.piped`'s to say.

Either way one time is fed at a time: one than which no earlier can come, so that nothing
the program has not been asked yet can hold up what it is being asked. The capability of
a time is held until the program has answered for it, and the worker goes on meanwhile.
"""

from __future__ import annotations

import heapq
import os
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import UNFINISHED, OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError, CommandError, PointstampError
from pointstamp.formats.pipe_framing import ArrowStream, Framing, Lines
from pointstamp.operators.child import Answer, Child, End, Mark
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Timestamp

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

FORMS = ("text", "bytes", "arrow")


@dataclass(frozen=True)
class Program:
    """What is run, and how it is spoken to."""

    command: tuple[str, ...]
    framing: Framing
    marks: bool
    """Whether one process answers for all times."""
    ok: frozenset[int]
    env: Mapping[str, str] | None
    cwd: str | None
    name: str
    """Of the operator."""


def _checked_command(
    command: Sequence[str],
    name: str,
    env: Mapping[str, str] | None,
    cwd: str | None,
) -> tuple[str, ...]:
    """The words of a command whose program is there."""
    given: Any = command  # of any type, until it is looked at
    if (
        not isinstance(given, Sequence)
        or isinstance(given, str)
        or not given
        or not all(isinstance(word, str | os.PathLike) for word in given)
    ):
        raise BuildError(
            f"operator {name!r} needs a command as a list of a program and its arguments, not "
            f"{command!r}; for a shell's syntax: ['sh', '-c', '...']"
        )
    words = tuple(os.fspath(word) for word in command)
    if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112  (a str or bytes)
        raise BuildError(f"operator {name!r} cannot run in {cwd!r}: no such folder")
    path = (os.environ if env is None else env).get("PATH", os.defpath)
    program = words[0]
    if cwd is not None and os.sep in program:
        program = os.path.join(cwd, program)  # noqa: PTH118
    if shutil.which(program, path=path) is None:
        where = "there is no such program" if os.sep in program else f"it is not on the path {path}"
        raise BuildError(f"operator {name!r} cannot run {words[0]!r}: {where}")
    return words


def _checked_statuses(ok: Collection[int], name: str) -> frozenset[int]:
    given: Any = ok  # of any type, until it is looked at
    if not isinstance(given, Collection) or not all(type(status) is int for status in given):
        raise BuildError(
            f"operator {name!r} needs ok= as a collection of statuses, such as (0, 1), not {ok!r}"
        )
    return frozenset(given)


def _framing(form: str, marker: str | None, name: str) -> Framing:
    if form not in FORMS:
        raise BuildError(f"operator {name!r} was given form={form!r}; there are {', '.join(FORMS)}")
    given: Any = marker  # of any type, until it is looked at
    if given is not None and (not isinstance(given, str) or not given or "\n" in given):
        raise BuildError(f"operator {name!r} needs a marker of one line, not {marker!r}")
    if form == "arrow":
        return ArrowStream(mark=marker)
    return Lines(text=form == "text", mark=marker)


@dataclass
class _Time:
    """What the program has still to be given of a time."""

    capability: Capability
    batches: list[Any] = field(default_factory=list)


class _CommandLogic:
    """Feeds the program, and sends what it answers.

    A time is *pending*, then *open* (being fed; at most one), then *asked* (the program
    knows that there is no more of it), then answered, when its capability is dropped.
    """

    def __init__(self, program: Program, timestamp: Timestamp, wake: Callable[[], None]) -> None:
        self._program = program
        self._key = timestamp.key
        self.wake = wake
        self._pending: dict[Any, _Time] = {}
        self._order: list[tuple[Any, Any]] = []
        """A heap of (key, time) of what is pending."""
        self._open: _Time | None = None
        self._asked: deque[Capability] = deque()
        self._child: Child | None = None
        self._is_finished = False
        """Whether the input of the child was closed, as nothing more comes."""
        self._has_ended = False
        """Whether the child of the open time was done before the time was."""
        self._guard: Any = None

    def run(self, inputs: list[Input], outputs: list[Output]) -> Any:
        """Take what has come from both sides, and feed what may be."""
        self._take_in(inputs[0])
        if self._child is not None:
            self._take_answers(outputs[0])
        self._feed(inputs[0].frontier)
        return UNFINISHED if self._child is not None else None

    def close(self) -> None:
        """End the program, if it runs, and let go of everything."""
        if self._child is not None:
            self._guard.detach()
            self._child.kill()
            self._child = None
        self._pending.clear()
        self._asked.clear()
        self._open = None

    def _take_in(self, input_: Input) -> None:
        holder = f"operator {self._program.name!r}"
        for time, batch in input_:
            checked = self._program.framing.check(batch, holder)
            if self._open is not None and self._open.capability.time == time.time:
                self._open.batches.append(checked)
                continue
            if time.time not in self._pending:
                self._pending[time.time] = _Time(time.retain())
                heapq.heappush(self._order, (self._key(time.time), time.time))
            self._pending[time.time].batches.append(checked)

    # What the program is given.

    def _feed(self, frontier: Frontier) -> None:
        while self._choose(frontier):
            assert self._open is not None
            self._give(self._open)
            if frontier.less_equal(self._open.capability.time):
                return
            self._end_time(self._open.capability)
            self._open = None
        if self._program.marks and self._child is not None and frontier.is_empty():
            self._finish()

    def _choose(self, frontier: Frontier) -> bool:
        """Open a time than which no earlier can come, unless one is open already."""
        if self._open is not None:
            return True
        if self._asked and not self._program.marks:
            return False  # its process has to exit first
        passed = []
        while self._order and self._open is None:
            entry = heapq.heappop(self._order)
            if frontier.less_than(entry[1]):
                passed.append(entry)
            else:
                self._open = self._pending.pop(entry[1])
        for entry in passed:
            heapq.heappush(self._order, entry)
        return self._open is not None

    def _give(self, time: _Time) -> None:
        if time.batches and not self._has_ended:
            if self._child is None:
                self._start(time.capability.time)
            assert self._child is not None
            for batch in time.batches:
                self._child.give(batch)
        time.batches.clear()

    def _end_time(self, capability: Capability) -> None:
        """Let the program know that there is no more of a time."""
        if self._has_ended:
            self._has_ended = False
            capability.drop()
            return
        assert self._child is not None
        self._asked.append(capability)
        if self._program.marks:
            self._child.mark()
        else:
            self._finish()

    def _finish(self) -> None:
        if not self._is_finished:
            self._is_finished = True
            assert self._child is not None
            self._child.finish()

    def _start(self, time: Any) -> None:
        program = self._program
        try:
            self._child = Child(
                program.command,
                program.framing,
                partial(_ring, weakref.ref(self)),
                env=program.env,
                cwd=program.cwd,
            )
        except OSError as error:
            raise self._error(f"cannot be started: {error}", time) from error
        self._is_finished = False
        # For a drop of this without a word, and for the end of the program.
        self._guard = weakref.finalize(self, self._child.abandon)

    # What the program answers.

    def _take_answers(self, output: Output) -> None:
        assert self._child is not None
        answers = self._child.answers
        while answers:
            answer = answers.popleft()
            if isinstance(answer, Answer):
                with output.session(self._answered()) as session:
                    session.give_batch(answer.batch)
            elif isinstance(answer, Mark):
                self._take_mark()
            else:
                self._take_end(answer)

    def _answered(self) -> Capability:
        """Of the time that an answer is for: the first that was asked, or what is open."""
        if self._asked:
            return self._asked[0]
        if self._open is None:
            raise self._error("wrote an answer when everything was answered", None)
        return self._open.capability

    def _take_mark(self) -> None:
        if not self._asked:
            at = None if self._open is None else self._open.capability.time
            raise self._error("sent a mark back that it was not sent", at)
        self._asked.popleft().drop()

    def _take_end(self, end: End) -> None:
        assert self._child is not None
        child, self._child = self._child, None
        self._guard.detach()
        child.reap()
        time = self._time()
        if end.error is not None:
            raise self._error(_said(end.error), time, None, end.stderr) from end.error
        if end.status not in self._program.ok:
            raise self._error(_ended(end.status, self._program.ok), time, end.status, end.stderr)
        if not self._program.marks:
            self._take_last_answer()
        elif self._asked or not self._is_finished:
            what = f"exited with status {end.status} before it had answered"
            raise self._error(what, time, end.status, end.stderr)

    def _take_last_answer(self) -> None:
        if self._asked:
            self._asked.popleft().drop()
        else:
            self._has_ended = True  # what comes of the open time now is not its business

    def _time(self) -> Any:
        """What the program was asked for when it ended, as far as there was something."""
        if self._asked:
            return self._asked[0].time
        return None if self._open is None else self._open.capability.time

    def _error(
        self, what: str, time: Any, status: int | None = None, stderr: str = ""
    ) -> CommandError:
        program = self._program
        at = "" if time is None else f" at time {time}"
        said = f"; the last it wrote to its standard error:\n{stderr}" if stderr else ""
        return CommandError(
            f"operator {program.name!r} failed{at}: {' '.join(program.command)!r} {what}{said}",
            program.name,
            time,
            program.command,
            status,
            stderr,
        )


def _ring(logic: weakref.ref[_CommandLogic]) -> None:
    """Called by the threads of a child, which keep nothing alive."""
    found = logic()
    if found is not None:
        found.wake()


def _said(error: BaseException) -> str:
    what = str(error) if isinstance(error, PointstampError) else repr(error)
    return f"cannot be spoken to: {what}"


def _ended(status: int, ok: frozenset[int]) -> str:
    how = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
    return f"{how} (fine would be {', '.join(map(str, sorted(ok)))})"


class CommandMethods(StreamCore[T]):
    """External programs. Methods of `Stream`."""

    def command(
        self,
        command: Sequence[str],
        *,
        form: str = "text",
        marker: str | None = None,
        ok: Collection[int] = (0,),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        name: str = "Command",
    ) -> Stream[Any]:
        """Pipe the records through an external program, one process per worker.

        Its standard input gets the records of this worker, and what it writes to its
        standard output are the results, at the same time. A time at which there are no
        records is not asked for. The worker does not wait for it. It is killed when the
        dataflow goes: when a worker fails, or the dataflow is dropped.

        Parameters
        ----------
        command : sequence of str
            The program, looked for on the path, and its arguments. No shell is involved.
        form : str
            How records travel. `"text"`: each is a `str`, and a line in UTF-8. `"bytes"`:
            each is a `bytes`, and a line. `"arrow"`: batches of columns, as an Arrow IPC
            stream in either direction.
        marker : str, optional
            Without it a process is started for each time, and the end of its
            input says that the time is complete. With it one process is asked for all times, one
            after the other: after the last record of each it gets a mark, and it must send
            the mark back when it has answered, and flushed, everything before it. In lines
            the mark is the line `marker`. In Arrow it is a batch without records whose
            custom metadata has `marker` under the key `"pointstamp"`.
        ok : collection of int
            The exit statuses that are no failure: `(0, 1)` for grep, which exits with 1
            where nothing matches.
        env : mapping, optional
            Its environment variables, if not this process's.
        cwd : str, optional
            The folder that it runs in, if not this process's.
        name : str
            Of the operator.

        Raises
        ------
        BuildError
            If there is no such program. The other errors come while it runs:
        CommandError
            If it exits with another status, or does not answer as it should. The error
            has the status, the last lines of its standard error, and the time. What it
            writes there is shown nowhere else.
        ContainerError, DataError
            If a record is not of the form, or would not be one line.

        Notes
        -----
        A process costs some milliseconds at each time; with a marker, only the first. Most
        programs keep what they write until it is 4 KiB, or their input ends: with a marker
        they must be asked to flush lines (`sed -u`, `grep --line-buffered`), or nothing goes on.
        Nothing bounds what waits to be written to a program that is slow.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     words = scope.to_stream(["plum", "apple", "pear"])
        ...     return words.command(["grep", "pl"], ok=(0, 1))
        >>> ps.testing.collect(build)
        [(0, 'apple'), (0, 'plum')]
        """
        words = _checked_command(command, name, env, cwd)
        program = Program(
            words,
            _framing(form, marker, name),
            marker is not None,
            _checked_statuses(ok, name),
            env,
            cwd,
            name,
        )
        scope = self.scope
        builder = OperatorBuilder(scope, name)
        if marker is not None:
            builder.states.refuse("what its process keeps from one time to the next is not known")
        # A process that lives on ends when nothing more comes, also when nothing is held.
        interest = Interest.IF_CAPABILITY if marker is None else Interest.ALWAYS
        builder.new_input(self, Pipeline(), interest)
        result: Stream[Any] = builder.new_output(initial=False)

        def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., Any]:
            logic = _CommandLogic(
                program, scope.timestamp, partial(scope.environment.call, info.activate)
            )
            scope.environment.closers.callback(logic.close)
            return logic.run

        builder.build(make_logic)
        return result
