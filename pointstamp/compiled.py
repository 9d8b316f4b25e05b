"""Which modules are compiled, and whether this process runs them so.

The modules below are ordinary Python. Where a C compiler is at hand when the package
is built, Cython also makes a shared library of each, with the types that the `.pxd`
file beside it declares; Python takes that instead of the `.py` file. Nothing else
differs: the same lines run. The loops of the kernels are compiled only; what runs
where they are not is said in `kernels/forms.py`.

Rules
-----
1. All or none: they know each other's layout in memory, so a mixture cannot run.
2. Libraries are used only if they were made of the sources that are here. A digest
   of those is written when all are built; in a checkout that was changed since, the
   sources run, and `build_info` says so.
3. `POINTSTAMP_COMPILED=0` in the environment has the sources run.

It is read by `setup.py` too, without the package: it imports only the standard library, and
of that what is light, since every process of every worker begins here.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

MODULES = (
    "pointstamp.containers.array_fields",
    "pointstamp.containers.arrays",
    "pointstamp.containers.builder",
    "pointstamp.containers.codec",
    "pointstamp.containers.key_hashes",
    "pointstamp.containers.layouts",
    "pointstamp.containers.registry",
    "pointstamp.containers.row_lists",
    "pointstamp.containers.rows",
    "pointstamp.containers.small_rows",
    "pointstamp.containers.updates",
    "pointstamp.progress.change_batch",
    "pointstamp.progress.accumulate",
    "pointstamp.progress.staircase",
    "pointstamp.progress.antichain",
    "pointstamp.progress.few_counts",
    "pointstamp.progress.input_frontier",
    "pointstamp.progress.step",
    "pointstamp.progress.timestamp",
    "pointstamp.progress.operate",
    "pointstamp.progress.reachability",
    "pointstamp.progress.turns",
    "pointstamp.progress.activation",
    "pointstamp.progress.scope_child",
    "pointstamp.progress.subgraph",
    "pointstamp.communication.arena",
    "pointstamp.communication.framing",
    "pointstamp.communication.link",
    "pointstamp.communication.mailbox",
    "pointstamp.communication.mesh",
    "pointstamp.communication.ring",
    "pointstamp.communication.segment",
    "pointstamp.communication.shared_link",
    "pointstamp.communication.signal",
    "pointstamp.communication.single",
    "pointstamp.communication.spin",
    "pointstamp.dataflow.backpressure",
    "pointstamp.dataflow.capability",
    "pointstamp.dataflow.channels",
    "pointstamp.dataflow.handles",
    "pointstamp.dataflow.notificator",
    "pointstamp.dataflow.ways",
    "pointstamp.dataflow.operator",
    "pointstamp.dataflow.scope_core",
    "pointstamp.dataflow.stash_core",
    "pointstamp.dataflow.step_observer",
    "pointstamp.operators.transform",
    "pointstamp.operators.counting",
    "pointstamp.operators.feedback",
    "pointstamp.operators.generic",
    "pointstamp.operators.probe",
    "pointstamp.operators.row_folds",
    "pointstamp.operators.sources",
    "pointstamp.operators.split_merge",
    "pointstamp.operators.stateless",
    "pointstamp.operators.scope",
    "pointstamp.metrics.tick_clock",
    "pointstamp.metrics.meters",
    "pointstamp.metrics.metering",
    "pointstamp.metrics.worker_meter",
    "pointstamp.collections.row_encoder",
    "pointstamp.collections.lattice",
    "pointstamp.collections.batch_merges",
    "pointstamp.collections.spine",
    "pointstamp.collections.trace",
    "pointstamp.collections.arrange",
    "pointstamp.collections.reduce",
    "pointstamp.collections.trace_arrange",
    "pointstamp.collections.trace_join",
    "pointstamp.collections.aggregate",
    "pointstamp.collections.inputs",
    "pointstamp.collections.join",
    "pointstamp.collections.view",
    "pointstamp.observability.buffer",
    "pointstamp.observability.clock",
    "pointstamp.observability.logged",
    "pointstamp.observability.worker_log",
    "pointstamp.runtime.installed_dataflow",
    "pointstamp.runtime.progress_exchange",
    "pointstamp.runtime.accumulated_exchange",
    "pointstamp.runtime.worker",
)
"""Python that is compiled, in the order of the layers."""

LOOPS = (
    "pointstamp.kernels.expression_loops",
    "pointstamp.kernels.extension_loops",
    "pointstamp.kernels.graph_loops",
    "pointstamp.kernels.group_loops",
    "pointstamp.kernels.hash_loops",
    "pointstamp.kernels.join_loops",
    "pointstamp.kernels.small_loops",
    "pointstamp.kernels.sort_loops",
    "pointstamp.kernels.table_loops",
    "pointstamp.kernels.trace_loops",
    "pointstamp.kernels.update_loops",
)
"""What is for Cython alone: `.pyx` files."""

INLINE = (
    "pointstamp.kernels.arrays",
    "pointstamp.kernels.key_searches",
    "pointstamp.kernels.update_searches",
    "pointstamp.kernels.update_sorts",
)
"""Declarations without a module: what they have is compiled into each that uses it."""

COMPILED = (*MODULES, *LOOPS)

SHARED = "pointstamp.kernels.cython_shared"
"""What each of them would have a copy of: Cython's functions, and its views of memory. It is made
by Cython itself, of no source here."""

LIBRARIES = (*COMPILED, SHARED)
LAYERS = sorted({module.split(".")[1] for module in COMPILED})

SWITCH = "POINTSTAMP_COMPILED"
DIGEST = "compiled.sha256"
"""The file in the package that says what its libraries were made of."""

_PACKAGE = Path(__file__).resolve().parent
_reason = ""


def source(module: str, package: Path = _PACKAGE) -> Path:
    """The file of a module."""
    suffix = ".pyx" if module in LOOPS else ".py"
    return package.joinpath(*module.split(".")[1:]).with_suffix(suffix)


def libraries(package: Path = _PACKAGE) -> list[Path]:
    """The shared libraries that are there, for this Python."""
    found = {f"{layer}/{name}" for layer in LAYERS for name in _names_in(package / layer)}
    return [
        package / name
        for module in LIBRARIES
        for suffix in EXTENSION_SUFFIXES
        if (name := "/".join(module.split(".")[1:]) + suffix) in found
    ]


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  (it is quicker)
    except OSError:
        return []  # the package is in an archive, where there are no libraries


def digest(package: Path = _PACKAGE, suffix: str = EXTENSION_SUFFIXES[0]) -> str:
    """Of all sources and declarations of types, and of the Python that they are for."""
    hashed = hashlib.sha256(suffix.encode())
    for module in COMPILED:
        path = source(module, package)
        hashed.update(path.read_bytes())
        with suppress(FileNotFoundError):
            hashed.update(path.with_suffix(".pxd").read_bytes())
    for name in INLINE:
        hashed.update(source(name, package).with_suffix(".pxd").read_bytes())
    return hashed.hexdigest()


def build_info() -> str:
    """Whether the core runs "compiled" or "interpreted", and if interpreted, why.

    >>> build_info().split()[0].rstrip(":") in ("compiled", "interpreted")
    True
    """
    return f"interpreted: {_reason}" if _reason else "compiled"


def choose() -> None:
    """Have the sources run where the libraries should not; called before any is imported."""
    global _reason
    _reason = _why_not()
    if _reason and libraries():
        sys.meta_path.insert(0, _Sources())


class _Sources:
    """Finds the sources of modules of which there are libraries, too."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_file_location(fullname, source(fullname)) if fullname in MODULES else None


def _why_not() -> str:
    """Why the libraries should not be used; empty if they should."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0 is set"
    written = _PACKAGE / DIGEST
    if not written.exists():
        return "it was installed without a C compiler"
    if len(libraries()) < len(LIBRARIES):
        return "it was compiled for another Python"
    if written.read_text().strip() != digest():
        return "its files have changed since they were compiled; `make setup` compiles them"
    return ""
