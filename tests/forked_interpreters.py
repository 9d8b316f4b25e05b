"""New interpreters of tests as forks of one process that has imported what most of them need.

A Python that a test starts, or a program that it starts, takes 0.3 s of a processor until it has
imported NumPy, Arrow and us: of the tests that start programs and worker processes that was three
quarters. Here a server beside the tests imports all that once and forks for each `subprocess.Popen`
of this Python, which takes some milliseconds. All else is as with a new interpreter: arguments,
warnings, descriptors, directory, environment, session, and that the process is a child of the one
that asked for it and is waited for by it. A program has a server of its own, forked before it
begins, for the workers that it starts.

Not what a new interpreter alone has: a seed of hashes, limits, memory and a command line (as the
system lists it) of its own, and nothing imported. Tests of these and of the processes themselves
say so by a mark, `new_interpreters`; so does an environment that has another variable of Python's
or ours than the server was started with, and flags of Python that are not known here.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import inspect
import io
import os
import pickle
import resource
import runpy
import signal
import socket
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.os_processes import SERVERS

CLONE = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
"""The number of the system call; None where it is not known, and each interpreter is new."""
CLONE_PARENT = 0x8000
LARGEST_REQUEST = 1 << 16
LARGEST_ANSWER = 64
PREFIXES = ("POINTSTAMP_", "PYTHON", "OMP_", "OPENBLAS_", "MALLOC_", "LD_", "LC_", "LANG")
"""Of the variables that count when something is imported, or before."""

IMPORTS = (
    "pandas",  # as Arrow does for the first array that it makes of a list
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.flight",
    "pyarrow.pandas_compat",
    "pointstamp.cli.app",
    "pointstamp.collections",
    "pointstamp.communication.mesh",
    "pointstamp.communication.relay",
    "pointstamp.communication.worker_process",
    "pointstamp.graph",
    "pointstamp.joins",
    "pointstamp.runtime.run_worker",
    "pointstamp.service.service",
    "pointstamp.service.service_worker",
    "tests.conftest",  # and with it pytest and Hypothesis
)

NEW = subprocess.Popen
"""What starts new interpreters."""

SIGNATURE = inspect.signature(NEW._execute_child)
FIRST_PATH: list[str] = []
"""The module search path of an interpreter that has no PYTHONPATH, but for its first folder."""


@dataclass(frozen=True)
class Start:
    """What a process is to be: as `Popen` was asked for it.

    Attributes
    ----------
    kind : {"-c", "-m", ""}
        Whether `words` begin with a program, the name of a module, or a file.
    descriptors : list of int
        The numbers by which it knows those that come with this.
    parent : int
        The process that asks.
    """

    kind: str
    words: list[str]
    warnings: list[str]
    descriptors: list[int]
    directory: str
    environment: dict[str, str]
    has_session: bool
    group: int
    parent: int

    @property
    def is_program(self) -> bool:
        """Whether it may start workers: it is none, since those have descriptors."""
        return len(self.descriptors) == 3


class ForkServer:
    """The process that forks, from its first use on.

    Attributes
    ----------
    is_on : bool
        Whether interpreters are forks; else each is new.
    """

    def __init__(self) -> None:
        self.is_on = True
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._conditions: object = None
        self._owner = os.getpid()

    @property
    def descriptor(self) -> int | None:
        """That of the connection to it; None before the first use."""
        return None if self._requests is None else self._requests.fileno()

    def start(self, start: Start, given: Sequence[int]) -> int | None:
        """Have a process forked, with copies of the descriptors `given`; None if it must be new."""
        with self._lock:
            if not self.is_on or CLONE is None:
                return None
            if self._requests is None:
                self._begin()
            if self._conditions != _conditions(start.environment):
                return None
            request = pickle.dumps(start)
            if len(request) > LARGEST_REQUEST:
                return None
            return self._forked(request, given)

    def _begin(self) -> None:
        ours, theirs = _pair()
        self._conditions = _conditions(os.environ)
        path = [str(folder) for folder in sys.path]
        program = (
            f"import sys; first = sys.path[1:]; sys.path[:] = {path!r}\n"
            "from tests.forked_interpreters import serve\n"
            f"serve({theirs.fileno()}, first)"
        )
        self._process = NEW(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            # Threads of a library would not be in the forks.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._pid = self._process.pid
        SERVERS.add(self._pid)
        theirs.close()
        self._requests = ours

    def fork(self) -> None:
        """Have a server of its own for this process, which is a fork and has done nothing yet."""
        ours, theirs = _pair()
        self._conditions = _conditions(os.environ)
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            nothing = os.open(os.devnull, os.O_RDWR)
            for standard in range(3):
                os.dup2(nothing, standard)
            os.close(nothing)
            answer(theirs)
            os._exit(0)
        SERVERS.add(self._pid)
        theirs.close()
        self._requests = ours
        atexit.register(self.close)

    def _forked(self, request: bytes, descriptors: Sequence[int]) -> int | None:
        assert self._requests is not None
        try:
            socket.send_fds(self._requests, [request], descriptors)
            answer = self._requests.recv(LARGEST_ANSWER)
        except OSError:
            answer = b""
        except BaseException:
            self.close()  # what it answers later would be taken for that to another request
            raise
        if not answer:  # it was killed, with its session or group
            self.is_on = False
            return None
        return int(answer)

    def close(self) -> None:
        """End the server; what it has forked is not its own."""
        if self._pid is not None and self._requests is not None and self._owner == os.getpid():
            self._requests.close()
            if self._process is None:
                os.waitpid(self._pid, 0)
            else:
                self._process.wait()
        self._pid = self._requests = None


OWN_FLAGS = [
    flag for flag in ("-B", "-s", "-O") if flag in subprocess._args_from_interpreter_flags()
]
"""Those of an interpreter that the server and its forks have as well."""

EXECUTABLE = sys.executable
OUR_FILE = ForkServer.start.__code__.co_filename
ENCODING = sys.__stdout__.encoding if sys.__stdout__ else None
SERVER = ForkServer()
"""Of this process."""


class ForkingPopen(NEW):  # type: ignore[misc, valid-type]
    """`Popen`, that has this Python started by the server where nothing would tell."""

    def _execute_child(self, *given: Any) -> None:
        asked = SIGNATURE.bind(self, *given).arguments
        start = _start_of(asked)
        pipes = [asked["p2cread"], asked["c2pwrite"], asked["errwrite"]]
        standard = [i if pipe == -1 else pipe for i, pipe in enumerate(pipes)]
        pid = SERVER.start(start, [*standard, *start.descriptors[3:]]) if start else None
        if pid is None:
            super()._execute_child(*given)
            return
        self.pid = pid
        self._child_created = True
        names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(asked[name] for name in names))


def _start_of(asked: Mapping[str, Any]) -> Start | None:
    """What is to be started; None if a new interpreter, or another program, has to do it."""
    words = asked["args"]
    is_plain = (
        isinstance(words, (list, tuple))
        and len(words) > 1
        and words[0] == EXECUTABLE
        and asked["close_fds"]
        and not any(asked[name] for name in ("executable", "preexec_fn", "shell"))
        and all(asked[name] is None for name in ("gid", "gids", "uid"))
        and asked["umask"] < 0
    )
    if not is_plain:
        return None
    rest = [os.fsdecode(word) for word in words[1:]]
    told: list[str] = []
    while rest and (rest[0] in OWN_FLAGS or rest[0].startswith("-W")):
        flag = rest.pop(0)
        if flag not in OWN_FLAGS:
            told.append(flag[2:] or rest.pop(0))
    kind = rest.pop(0) if rest and rest[0] in ("-c", "-m") else ""
    directory = Path.cwd() if asked["cwd"] is None else Path(os.fsdecode(asked["cwd"]))
    if not rest or (not kind and rest[0].startswith("-")) or not directory.is_dir():
        return None
    return Start(
        kind,
        rest,
        told,
        [0, 1, 2, *asked["pass_fds"]],
        str(directory),
        {**(os.environ if asked["env"] is None else asked["env"])},
        bool(asked["start_new_session"]),
        asked["process_group"],
        os.getpid(),
    )


def _pair() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LARGEST_REQUEST)
    return pair


def _conditions(environment: Mapping[str, str]) -> object:
    """What a process has from the one that starts it, and a fork of the server from that."""
    variables = {
        name: value
        for name, value in environment.items()
        if name.startswith(PREFIXES) and name != "PYTHONPATH"
    }
    return (
        variables,
        resource.getrlimit(resource.RLIMIT_NOFILE),
        resource.getrlimit(resource.RLIMIT_AS),
    )


def _fork_sibling() -> int:
    """Fork a process that is a child of the one whose child this is; 0 in it, as `os.fork`.

    To fork twice, for an orphan that is adopted, would copy all tables of this memory twice: of a
    process that does nothing else that was half of its time.
    """
    python, system = ctypes.pythonapi, ctypes.PyDLL(None)  # both keep the interpreter's lock
    system.syscall.restype = ctypes.c_long
    python.PyOS_BeforeFork()
    flags = [CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0]
    pid = int(system.syscall(*map(ctypes.c_long, flags)))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def serve(requests_fd: int, first_path: list[str]) -> None:
    """Import, and `answer`."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    FIRST_PATH[:] = [folder for folder in first_path if folder not in inherited]
    for module in IMPORTS:
        import_module(module)
    gc.collect()
    gc.freeze()
    # Who interrupts the tests interrupts those that wait for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer(socket.socket(fileno=requests_fd))


def answer(requests: socket.socket) -> None:
    """Fork for each request until no more come; a fork runs what it is to, and does not return."""
    SERVERS.add(os.getpid())
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 253)
        if not request:
            return
        if _fork_sibling() == 0:
            start = pickle.loads(request)
            _become(requests, start, descriptors)
            _run(start)
        for descriptor in descriptors:
            os.close(descriptor)


def _become(requests: socket.socket, start: Start, descriptors: Sequence[int]) -> None:
    """Have this process be as it was asked for."""
    if os.getppid() != start.parent:
        os._exit(1)  # who asked has ended
    if start.has_session:
        os.setsid()
    if start.group >= 0:
        os.setpgid(0, start.group)
    above = 1 + max(*start.descriptors, *descriptors, requests.fileno())
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    # Before it is answered: who asked may look into `cwd` or kill the group at once.
    os.chdir(start.directory)
    os.environ.clear()
    os.environ.update(start.environment)
    requests.send(str(os.getpid()).encode())
    requests.close()
    for number, descriptor in zip(start.descriptors, moved, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.warnoptions[:] = start.warnings
    warnings._processoptions(start.warnings)
    SERVER.__init__()  # it was that of the process that this is a fork of
    if start.is_program:
        SERVER.fork()
    SERVER.is_on = start.is_program
    subprocess.Popen = ForkingPopen
    _open_standard()


def _open_standard() -> None:
    """The streams of an interpreter that begins, over what the descriptors are now."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            raw = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115
        except OSError:
            stream = None
        else:
            stream = io.TextIOWrapper(
                raw,
                encoding=ENCODING,
                errors="backslashreplace" if number == 2 else "strict",
                line_buffering=number == 2 or raw.isatty(),
            )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run(start: Start) -> None:
    """Run it as the main module of a new interpreter, and end the process."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    status = 0
    try:
        _execute(start, main)
    except SystemExit as end:
        if isinstance(end.code, int):
            status = end.code
        elif end.code is not None:
            print(end.code, file=sys.stderr)
            status = 1
    except BaseException as error:  # noqa: BLE001  (as an interpreter does with any)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == OUR_FILE:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    _end(status)


def _execute(start: Start, main: types.ModuleType) -> None:
    first, *arguments = start.words
    inherited = start.environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = ["", *(folder for folder in inherited if folder), *FIRST_PATH]
    if start.kind == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv[:] = ["-m", *arguments]
        runpy._run_module_as_main(first)
        return
    sys.argv[:] = [start.kind or first, *arguments]
    if start.kind:
        program = compile(first, "<string>", "exec")
    else:
        sys.path[0] = str(Path(first).resolve().parent)
        main.__file__ = first
        program = compile(Path(first).read_bytes(), first, "exec")
    exec(program, main.__dict__)


def _end(status: int) -> None:
    """What an interpreter does at its end, but for what it does with all that was imported.

    That would be copied for it, as it is shared with the server.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    if status == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status & 0xFF)
