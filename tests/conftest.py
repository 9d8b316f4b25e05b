"""What every test gets: a check for leaks, the real data, a Hypothesis profile.

A test that leaves a process, a thread or an open file behind fails, with the
name of what it left. Libraries start things once and keep them; those are named
in `_kept_by_libraries`, one by one, with the reason.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import io
import multiprocessing.resource_tracker
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

import pointstamp.kernels
from pointstamp import build_info
from pointstamp.checkpoint import descriptor_reserve
from pointstamp.compiled import DIGEST, MODULES
from pointstamp.errors import OperatorError, WorkerError
from pointstamp.spark.spark_home import PREPARED, java_options
from tests import forked_interpreters
from tests.forked_interpreters import SERVER, ForkingPopen
from tests.os_processes import children
from tests.rewriting import rewrite_share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pointstamp.communication.tls import Certificates

SETTLE_S = 20.0
"""How long what was told to stop may take until it is gone, on a machine that is slow and busy.

Waited for only where something is left.
"""

LIMIT_S = 900.0
"""How long a test may take, with its fixtures, until its process ends, with all stacks shown.

One timer for each test: it is a thread, which takes milliseconds to begin and to end where many
processes want to run.
"""

ROOT = Path(__file__).resolve().parent.parent

if os.environ.get("POINTSTAMP_BOUNDS") == "1":
    # Loops that look whether an index is in range, as `make bounds` has built them.
    pointstamp.kernels.__path__.insert(0, str(ROOT / "build/bounds/pointstamp/kernels"))


CORE = {
    *(f"tests/{Path(*module.split('.')[1:-1])}" for module in MODULES),
    *(f"{Path(*module.split('.'))}.py" for module in MODULES),
    "tests/simulation",
    "tests/test_compiled.py",
}
"""What exercises compiled modules: `make test` runs it twice, compiled and as sources."""

ONCE = {
    f"tests/{folder}/test_{name}.py"
    for folder, names in {
        "communication": "authentication control event_sockets failure job_control processes "
        "relay_process relayed_link segment_sharing simulated tcp threads tls",
        "collections": "append_only assertions changing_graphs delta_joins durable_clocks "
        "edges_of_collections event_windows mutants nested ordered row_errors shared_arrangements "
        "snapshot_bytes spine_memory stats temporal text_sweeps thread_sweeps upserts "
        "user_aggregates worker_sweeps",
        "containers": "convert flat frames group_totals kept_records small_columns text_order "
        "text_sweep user_kind_on_processes",
        "metrics": "epoch_assembly metrics_server service_metrics telemetry",
        "observability": "dataflow_drawing live_view log_view page_server "
        "progress_bar summary timeline trace_events",
        "operators": "capture command declared_parameters operator_names",
        "runtime": "introspection run_logging run_results tcp_workers watchdog",
    }.items()
    for name in names.split()
}
"""What is beside those, but of what is never compiled (rendezvous, control, processes, files, what
is made of logs), or is shown in the second mode by others: collections by their random programs. Of
a test on several carriers, processes are marked as `once`: what the sources show there they show on
threads, and of the memory that processes share in `tests/communication/test_shared_link.py`."""


def is_of_core(path: Path) -> bool:
    """Whether the tests of this file are run in both modes."""
    above = path.relative_to(ROOT)
    if str(above) in ONCE:
        return False
    return any(str(folder) in CORE for folder in (above, *above.parents))


def once_from(first: int, seeds: Iterable[int]) -> list[Any]:
    """Parameters of a test: those from `first` on are run in one mode only."""
    return [pytest.param(n, marks=pytest.mark.once) if n >= first else n for n in seeds]


def in_one_mode(cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test that are not run in the second mode."""
    return [pytest.param(case, marks=pytest.mark.once) for case in cases]


def shared_out(n_of_sources: int, cases: Sequence[int]) -> list[int]:
    """Random cases, each for one mode: the sources, slower, have those below `n_of_sources`.

    Where nothing is compiled they have all.
    """
    if not Path(pointstamp.__file__).with_name(DIGEST).exists():
        return [*cases]
    return [case for case in cases if (case >= n_of_sources) == (build_info() == "compiled")]


def examples(n: int) -> int:
    """How many examples a test has that asks for `n`: a third in CI, a tenth in the second mode."""
    return min(n, max(1, n * settings.default.max_examples // 100))


class FilesOfDoctests:
    """Has files looked at for doctests that have one: of a thousand, a third.

    Each process would import all others, and look at whatever they define.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        if file_path.suffix != ".py" or self._is_needed(file_path, parent.config):
            return found
        return [each for each in found if type(each) is pytest.Module]

    def _is_needed(self, path: Path, config: pytest.Config) -> bool:
        runs_all = not (config.option.markexpr or "").startswith("core")
        return (runs_all or is_of_core(path)) and ">>> " in path.read_text()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Have no modules imported of which no test is run in the second mode."""
    if not (config.option.markexpr or "").startswith("core") or collection_path.suffix != ".py":
        return None
    is_needed = is_of_core(collection_path) or "pytest.mark.interpreted" in (
        collection_path.read_text()
    )
    return None if is_needed else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is run in both modes, and leave to the sources what only they can show."""
    if getattr(config.option, "loadgroup", False):
        _name_groups(items)
    reason = "of the sources alone: it replaces methods, or counts calls"
    for item in items:
        runs_once = item.get_closest_marker("spark") or item.get_closest_marker("once")
        if is_of_core(item.path) and not runs_once:
            item.add_marker(pytest.mark.core)
        if item.get_closest_marker("interpreted"):
            item.add_marker(pytest.mark.core)
            if build_info() == "compiled":
                item.add_marker(pytest.mark.skip(reason=reason))


def _name_groups(items: list[pytest.Item]) -> None:
    """Have the name of its group at the end of each test's, by which xdist keeps groups together.

    It does so itself, in an attribute that pytest 9.2 does not have any more: each process then
    started a Spark session, and a cluster, and its own of all else that a group has once.
    """
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        name = f"@{mark.args[0]}" if mark else ""
        if not item.nodeid.endswith(name):
            item._id = type(item._id).parse(item.nodeid + name)  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    """Have the garbage collector leave thousands of tests alone, which live until the end."""
    _freeze()


def _freeze() -> None:
    """Have what is there now be looked at no more."""
    gc.collect()
    gc.freeze()


FILE = pytest.StashKey[Path]()
"""That of the last test."""

FAILED_BEFORE = pytest.StashKey[int]()
"""How many tests had failed when one began."""

ERRORS = pytest.StashKey[int]()
"""The descriptor of the standard error that no test captures."""


class FailuresAtOnce:
    """Shows a failure when it happens: a run that is ended from outside has no summary."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        is_run_again = report.outcome == "rerun"  # type: ignore[comparison-overlap]  # a plugin's
        if report.failed or is_run_again:
            what = "FAILED, and is run again" if is_run_again else "FAILED"
            self._terminal.ensure_newline()
            self._terminal.write_line(f"{what}, at its {report.when}: {report.nodeid}")
            self._terminal.write_line(report.longreprtext)


class CountedReruns:
    """What pytest-rerunfailures counts, for a process of xdist: asked for where a test has failed.

    By itself it asks the process that shares tests out, three times for each test, for numbers that
    are 0 until then. An answer waits 40 ms, since questions are sent while one is not acknowledged.
    """

    def __init__(self, counts: Any) -> None:
        self.try_increment_suite_reruns = counts.try_increment_suite_reruns

    def get_test_failures(self, test: str) -> int:
        return 0

    def set_test_reruns(self, test: str, reruns: int) -> None:
        pass

    def get_suite_reruns(self) -> int:
        return 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have xdist forget the groups that are done.

    After each test it counts what is left of all that a process has had, which most have alone.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class GroupsLeft(LoadGroupScheduling):
        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            test = self.registered_collections[node][item_index]
            groups, name = self.assigned_work[node], self._split_scope(test)
            groups[name][test] = True
            if all(groups[name].values()):
                del groups[name]
            self._reschedule(node)

    return GroupsLeft(config, log)


@pytest.hookimpl(trylast=True)  # once the terminal is there
def pytest_configure(config: pytest.Config) -> None:
    """Keep what the limits write to; the processes of xdist have no terminal."""
    # The collector of doctests would run the sources of compiled modules. Not where this file is
    # imported: workers that are processes do so for each test of theirs, and need few of them.
    for module in MODULES:
        import_module(module)
    # Rounds of the garbage collector took a third of the time, as Hypothesis, dataflows and tests
    # are many objects, and each round looks at all. Who needs one in a test asks for it.
    gc.set_threshold(20_000, 10, 50)
    config.pluginmanager.register(FilesOfDoctests())
    config.stash[ERRORS] = os.dup(2)
    rewrite_share(config)
    if hasattr(config, "workerinput") and hasattr(config, "failures_db"):
        config.failures_db = CountedReruns(config.failures_db)
    has_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if sys.platform == "linux" and has_tests:
        subprocess.Popen = ForkingPopen
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        config.pluginmanager.register(FailuresAtOnce(terminal))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of it."""
    os.close(config.stash[ERRORS])
    subprocess.Popen = forked_interpreters.NEW
    SERVER.close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Limit how long a test takes, from its first fixture on."""
    if item.config.stash.get(FILE, item.path) != item.path:
        _freeze()  # what modules that were tested keep stays, too: strategies, plans, texts
    item.config.stash[FILE] = item.path
    SERVER.is_on = item.get_closest_marker("new_interpreters") is None
    item.stash[FAILED_BEFORE] = item.session.testsfailed
    _limit(item)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Limit how long fixtures take to end, too: of a test that failed pytest ends the timer."""
    if item.session.testsfailed > item.stash[FAILED_BEFORE]:
        _limit(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _limit(item: pytest.Item) -> None:
    """From now on; xdist names the test whose process ended, and goes on in another.

    Faulthandler watches from a thread of C, which no GIL holds up.
    """
    if not item.get_closest_marker("soak"):
        faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=item.config.stash[ERRORS])


# Images of containers like to set it. Then what two workers print to one pipe is mixed within a
# line, as each line's end is written apart.
os.environ.pop("PYTHONUNBUFFERED", None)

# NumPy's linear algebra starts a thread for each processor, which waits busily: half of what the
# import takes, in each process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What we ignore or block is ignored or blocked in all programs under test, too: a shell that
# begins us with `&` has us ignore an interrupt, `nohup` that the terminal is closed, and what
# supervises us may do so with any other. A handler goes when a program is started: with one that
# does nothing we go on without our terminal, and the programs end with theirs.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1):
    if signal.getsignal(number) is signal.SIG_IGN:
        ours = {
            signal.SIGINT: signal.default_int_handler,
            signal.SIGHUP: lambda number, frame: None,
        }
        signal.signal(number, ours.get(number, signal.SIG_DFL))
signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())

# Machines that test are slow at times, so no example has a deadline, and none is drawn too slowly.
# In CI a run is the same each time, so that it has a third as many: `make test` draws others each
# time, and `make soak` is where new examples are looked for.
BY_NO_CLOCK: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("dev", **BY_NO_CLOCK)
settings.register_profile("ci", **BY_NO_CLOCK, derandomize=True, print_blob=True, max_examples=30)
# Of what runs in both modes, the second with an eighth of the examples.
settings.register_profile(
    "second", **BY_NO_CLOCK, derandomize=bool(os.environ.get("CI")), max_examples=10
)
settings.register_profile("soak", **BY_NO_CLOCK, max_examples=5_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


@dataclass(frozen=True)
class Held:
    """What a process holds at one moment, each thing by a key that is its own."""

    threads: dict[int, str]
    children: dict[int, str]
    files: dict[tuple[int, str], str]

    def beyond(self, before: Held) -> list[str]:
        """What is held now and was not before."""
        return (
            [f"thread {name}" for id, name in self.threads.items() if id not in before.threads]
            + [
                f"process {pid}: {command}"
                for pid, command in self.children.items()
                if pid not in before.children
            ]
            + [what for key, what in self.files.items() if key not in before.files]
        )


def _threads() -> dict[int, str]:
    return {id(t): f"{_library_of(t)}{t.name} ({type(t).__name__})" for t in threading.enumerate()}


def _library_of(thread: threading.Thread) -> str:
    """What begins the name of a thread by which Java calls Python: Py4J gives it none."""
    owner = type(getattr(getattr(thread, "_target", None), "__self__", None)).__module__
    return "py4j: " if owner.startswith("py4j.") else ""


def _children() -> dict[int, str]:
    """The processes whose parent is this one, the dead but unburied among them."""
    return {child.pid: " ".join(child.command) or "ended, not waited for" for child in children()}


def _files() -> dict[tuple[int, str], str]:
    found = {}
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208  (it is done for every test)
        if descriptor == str(SERVER.descriptor):
            continue
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        except OSError:
            continue  # the descriptor of this very listing
        found[int(descriptor), target] = f"file {descriptor} -> {target}"
    return found


def _with_addresses(left: list[str]) -> list[str]:
    """Sockets with what they are connected to; to ask for that takes a while."""
    addresses = _addresses_by_inode()

    def told(what: str) -> str:
        inode = what.rpartition("socket:[")[2].removesuffix("]")
        return f"{what} {addresses.get(inode, '')}".rstrip()

    return [told(what) for what in left]


def _addresses_by_inode() -> dict[str, str]:
    """The two ends of every TCP socket, so that a message can say which one it was."""
    found = {}
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        if not Path(table).exists():
            continue
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            ports = [int(end.rpartition(":")[2], 16) for end in fields[1:3]]
            found[fields[9]] = f"tcp {ports[0]} to {ports[1]}"
    return found


def _held() -> Held:
    with contextlib.ExitStack() as stack:
        # A guard of connections releases its descriptors for a while every second.
        for reserve in list(descriptor_reserve._open):
            stack.enter_context(reserve._lock)
        return Held(_threads(), _children(), _files())


def _kept_by_libraries(held: Held) -> Held:
    """`held` without what a library starts once and keeps until the process ends."""
    # multiprocessing's tracker of shared memory: one process and a pipe to it.
    tracker = multiprocessing.resource_tracker._resource_tracker
    tracker_pid, tracker_fd = getattr(tracker, "_pid", None), getattr(tracker, "_fd", None)
    java = _connections_to_java()
    return Held(
        {k: v for k, v in held.threads.items() if not v.startswith(LIBRARY_THREADS)},
        {k: v for k, v in held.children.items() if k != tracker_pid},
        {
            k: v
            for k, v in held.files.items()
            if k[0] != tracker_fd and not k[1].startswith((*LIBRARY_FILES, *java))
        },
    )


def _connections_to_java() -> list[str]:
    """The sockets between this process and the Java of its Spark session.

    Py4J makes one for each thread that lets go of a Java object, which the garbage collector
    does in any thread and in any test, and keeps it. Likewise for each thread of Java that calls
    Python, as a stream does with its batches, at a port of its own.
    """
    context = getattr(sys.modules.get("pyspark.core.context"), "SparkContext", None)
    gateway = getattr(context, "_gateway", None)
    if gateway is None:
        return []
    port = gateway.gateway_parameters.port
    called = gateway.get_callback_server()
    own = f"tcp {called.get_listening_port()} to " if called is not None else "none"
    return [
        f"socket:[{inode}]"
        for inode, ends in _addresses_by_inode().items()
        if ends.endswith(f" to {port}") or ends.startswith(own)
    ]


LIBRARY_THREADS = (
    "execnet-",  # pytest-xdist's connection to the process that started this one
    "pydevd",  # a debugger
    "py4j: ",  # one for each thread of Java that calls Python
)
LIBRARY_FILES = (
    "/dev/urandom",  # opened once by the interpreter where getrandom is missing
    "anon_inode:[eventpoll]",  # pyarrow's event loop, made on its first use
    "anon_inode:[eventfd]",  # of each of pyarrow's threads that has asked an object store
)


def _settled(before: Held) -> list[str]:
    """What is left over once everything had its time to end."""
    until = time.monotonic() + SETTLE_S
    while True:
        held = _held()
        # Mostly nothing is, and it takes long to ask what libraries keep.
        left = held.beyond(before) and _kept_by_libraries(held).beyond(before)
        if not left:
            return []
        if time.monotonic() > until:
            return _with_addresses(left)
        gc.collect()
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test after which a process, thread or file is left that was not there before.

    What the shared Spark session holds was there before the test: fixtures of the
    whole run are made first.
    """
    if not Path("/proc/self/fd").exists():
        yield  # not Linux: nothing to look at
        return
    before = _held()
    yield
    left = _settled(before)
    if left:
        pytest.fail("the test left behind:\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture(scope="session")
def first_cause() -> Callable[[BaseException], BaseException]:
    """What a run failed of: `first_cause(error)` without the errors that say where it was."""

    def find(error: BaseException) -> BaseException:
        while isinstance(error, (WorkerError, OperatorError)) and error.__cause__ is not None:
            error = error.__cause__
        return error

    return find


@pytest.fixture(scope="session")
def data() -> Callable[..., Path]:
    """`data("ca-GrQc", "ca-GrQc.txt.gz")`: the path of a file of the real data.

    The data lies where POINTSTAMP_DATA says, or in `../shared/data` next to this
    checkout; a test that asks for a file that is not there is skipped.
    """
    root = Path(os.environ.get("POINTSTAMP_DATA") or ROOT.parent / "shared" / "data")

    def find(*parts: str) -> Path:
        path = root.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"no data at {path}; POINTSTAMP_DATA names the folder that has it")
        return path

    return find


@pytest.fixture(scope="session", autouse=True)
def quick_to_start() -> Iterator[str]:
    """Have every Java of Spark compile quickly rather than well: all that we run is short.

    Nor does it write, and compile, classes of its own for each query: it evaluates plans as they
    are, which for few rows takes a sixth less of its time. And it writes a file of a stream as one
    file, where it would start ten programs for it (`chmod`, `readlink`). Gives the options of Java,
    for those that are not started by PySpark.
    """
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_LAUNCHER_OPTS", options)
        if of_prepared := java_options(PREPARED):
            environment.setenv("SPARK_HOME", str(PREPARED))
            options += of_prepared
        no_classes = (
            "--conf spark.sql.codegen.wholeStage=false "
            "--conf spark.sql.codegen.factoryMode=NO_CODEGEN"
        )
        of_streams = (
            "--conf spark.sql.streaming.checkpoint.fileChecksum.enabled=false "
            "--conf spark.sql.streaming.checkpointFileManagerClass="
            "org.apache.spark.sql.execution.streaming.checkpointing"
            ".FileSystemBasedCheckpointFileManager"
        )
        environment.setenv(
            "PYSPARK_SUBMIT_ARGS",
            f"--conf 'spark.driver.defaultJavaOptions={options}' {no_classes} {of_streams} "
            "pyspark-shell",
        )
        yield options


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session on this machine, with four slots, for all tests that need one."""
    from pointstamp.spark import session

    with session("local[4]", workers=4) as started:
        # What a session opens with its first job and keeps (the JVM's connection for
        # accumulators, for one) belongs to the session and not to a test.
        assert started.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
        yield started


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate of 127.0.0.1 that has signed itself, for doors that encrypt."""
    return _self_signed(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def other_certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The same of another authority."""
    return _self_signed(tmp_path_factory.mktemp("certificates"))


def _self_signed(folder: Path) -> Certificates:
    from pointstamp.communication.tls import Certificates

    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", folder / "key.pem", "-out", folder / "chain.pem"),
        ],
        check=True,
        capture_output=True,
    )
    chain = (folder / "chain.pem").read_bytes()
    return Certificates(chain, (folder / "key.pem").read_bytes(), chain)


@pytest.fixture
def driver_certificates(certificates: Certificates) -> Iterator[Certificates]:
    """What a Spark job may encrypt with; the driver's control server for it ends with the test."""
    from pointstamp.spark import driver_control

    yield certificates
    control = driver_control._controls.pop((driver_control.LOOPBACK, certificates), None)
    if control is not None:
        atexit.unregister(control.close)
        control.close()


@pytest.fixture(scope="session", autouse=True)
def driver_has_control() -> None:
    """The driver of Spark jobs starts its control server once, and keeps it until the end."""
    from pointstamp.spark import driver_control

    driver_control.control_at(driver_control.LOOPBACK)
    driver_control.control_at("0.0.0.0")


@pytest.fixture(scope="session", autouse=True)
def arrow_is_warm() -> None:
    """With its first CSV, Arrow opens a pipe for signals that it keeps until the end."""
    import pyarrow.csv

    pyarrow.csv.read_csv(io.BytesIO(b"a,b\n1,2\n"))
