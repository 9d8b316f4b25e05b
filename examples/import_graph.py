"""Which module imports which, in the Python installation that runs this, as an edge list.

A real graph that every machine has, for `pointstamp triangles` and `make run`: the standard
library and what is installed beside it, thousands of modules. Vertices are modules that are
there, by name; an edge says that one names the other in an import statement, at the top of a
file or inside a function. Tests, and the interpreter's own playground (`idlelib`), are left out.
Importing is never done, only reading.

Sources are read with `ast`, but only as far as the last line that could import
something: what comes after cannot add an edge, and is more than half of all
text. A beginning that does not parse by itself (it ended inside a string, a
bracket or a `try`) is no loss, the whole file is parsed then.

    python examples/import_graph.py [FILE.csv [FOLDER ...]]
"""

from __future__ import annotations

import ast
import csv
import gc
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

LEFT_OUT = frozenset({"test", "tests", "idlelib", "lib2to3", "__pycache__"})
"""Folders that are not gone into, beside those whose name cannot be a package's."""

_IMPORT = re.compile(rb"import\b")
_BEFORE_IMPORT = re.compile(rb"(?:^|[;:])\s*(?:from\b[^;:]*)?$")
_EDITABLE = "__editable__"  # made by installers for packages in development
_MARK = b"\xef\xbb\xbf"


class ImportGraph(NamedTuple):
    """Modules that import each other.

    Attributes
    ----------
    edges : list of (str, str), sorted
        Importing and imported module, none twice, no loops.
    n_files : int
        How many files were read.
    n_skipped : int
        How many of them could not be parsed.
    """

    edges: list[tuple[str, str]]
    n_files: int
    n_skipped: int


def installed_folders() -> list[Path]:
    """The folders of the standard library and of the installed packages.

    >>> folders = installed_folders()
    >>> any((folder / "ast.py").exists() for folder in folders)
    True
    """
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    found = dict.fromkeys(Path(sysconfig.get_path(kind)) for kind in kinds)
    # In a virtual environment `platstdlib` may name a folder of its own, without modules.
    return [folder for folder in found if folder.is_dir()]


def import_graph(folders: Iterable[Path] | None = None, processes: int = 1) -> ImportGraph:
    """Read the import graph of the modules in `folders`; the installation's without them."""
    files = list(dict(_modules(installed_folders() if folders is None else folders)).items())
    known = frozenset({*(module for module, _ in files), *sys.builtin_module_names})
    read, parts = partial(_edges, known), [files[first::processes] for first in range(processes)]
    if processes == 1:
        found = [*map(read, parts)]
    else:
        with ProcessPoolExecutor(processes) as pool:
            found = [*pool.map(read, parts)]
    edges = set().union(*(of_part for of_part, _ in found))
    return ImportGraph(sorted(edges), len(files), sum(n_skipped for _, n_skipped in found))


@contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collection of cycles meanwhile.

    Syntax trees have no cycles, and the collector would walk through each of them
    while it is made: a quarter of the time, when we measured.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_without_collection()
def _edges(known: Set[str], files: Sequence[tuple[str, Path]]) -> tuple[set[tuple[str, str]], int]:
    """Pairs (importing, imported) of modules, and how many files could not be parsed."""
    edges: set[tuple[str, str]] = set()
    n_skipped = 0
    for module, path in files:
        if path.suffix != ".py":
            continue
        tree = _parsed(path)
        if tree is None:
            n_skipped += 1
            continue
        base = module if path.name == "__init__.py" else module.rpartition(".")[0]
        edges.update((module, other) for other in _imported(tree, base, known) if other != module)
    return edges, n_skipped


# Finding modules.


def _modules(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Every module and its file; where two folders have one, the later wins."""
    for folder in folders:
        yield from _modules_below(folder, "")


def _modules_below(folder: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return  # a folder that we may not read holds no modules for us
    for entry in entries:
        if entry.is_dir():
            if entry.name.isidentifier() and entry.name not in LEFT_OUT:
                yield from _modules_below(Path(entry.path), f"{prefix}{entry.name}.")
        elif (name := _module_name(entry.name)) is not None:
            is_package = name == "__init__"
            if not is_package or prefix:
                yield (prefix[:-1] if is_package else prefix + name), Path(entry.path)


def _module_name(file: str) -> str | None:
    """The name of the module in a file of that name; None if it has none."""
    for suffix in (".py", *EXTENSION_SUFFIXES):
        if file.endswith(suffix):
            name = file.removesuffix(suffix)
            is_module = name.isidentifier() and not name.startswith(_EDITABLE)
            return name if is_module else None
    return None


# Reading one.


def _parsed(path: Path) -> ast.Module | None:
    """The syntax tree of a file, of its imports at least; None if it cannot be parsed."""
    try:
        text = path.read_bytes().removeprefix(_MARK)
    except OSError:
        return None
    for part in (as_far_as_it_imports(text), text):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes in other people's strings
                return ast.parse(part)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def as_far_as_it_imports(text: bytes) -> bytes:
    r"""Source code without what comes after its last line that may import something.

    >>> as_far_as_it_imports(b"import a\nimportant = 1\n# import b\nf('import c')\n")
    b'import a\n'
    """
    at = len(text)
    while (at := text.rfind(b"import", 0, at)) >= 0:
        line_start = text.rfind(b"\n", 0, at) + 1
        if _IMPORT.match(text, at) and _BEFORE_IMPORT.search(text[line_start:at]):
            return text[: _end_of_statement(text, at)]
    return b""


def _end_of_statement(text: bytes, at: int) -> int:
    """Where the lines of an import end, brackets and backslashes considered."""
    end = text.find(b"\n", at)
    if b"(" in text[at : end if end >= 0 else None]:
        end = text.find(b"\n", text.find(b")", at))
    while end >= 0 and text[:end].endswith(b"\\"):
        end = text.find(b"\n", end + 1)
    return len(text) if end < 0 else end + 1


def _imported(tree: ast.Module, base: str, known: Set[str]) -> Iterator[str]:
    """The modules, of those that are known, that a tree names; `base` is its package."""
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in known:
                    yield alias.name
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, base)
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                if whole in known:  # `from a import b` means a.b where that is a module
                    yield whole
                elif module in known:
                    yield module


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, to any depth. `ast.walk` goes through expressions too, most of a tree."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, part, None)
            if isinstance(inner, list):  # the body of a lambda is an expression
                waiting.extend(inner)


def _absolute(node: ast.ImportFrom, base: str) -> str:
    if not node.level:
        return node.module or ""
    parts = base.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)


def main(file: str = "", *folders: str, processes: int = 1) -> None:
    graph = import_graph(map(Path, folders) if folders else None, processes)
    with open(file, "w") if file else nullcontext(sys.stdout) as out:  # noqa: PTH123
        csv.writer(out).writerows([("source", "target"), *graph.edges])
    print(
        f"{len(graph.edges)} imports in {graph.n_files} files, of which {graph.n_skipped} do "
        "not parse",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main(*sys.argv[1:], processes=os.cpu_count() or 1)
