"""The import graph: small trees of modules by eye, the installation by laws."""

from __future__ import annotations

import ast
import json
import subprocess
import warnings
from pathlib import Path

import networkx
import numpy as np
import pytest

from pointstamp.cli.import_graph import (
    LEFT_OUT,
    ImportGraph,
    as_far_as_it_imports,
    import_graph,
)
from pointstamp.errors import FileFormatError


def tree(folder: Path, sources: dict[str, str]) -> list[Path]:
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    return [folder]


def pairs(graph: ImportGraph) -> list[tuple[str, str]]:
    ends = zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)
    return [(graph.names[source], graph.names[target]) for source, target in ends]


def test_every_form_of_import_is_an_edge(tmp_path: Path) -> None:
    folders = tree(
        tmp_path,
        {
            "a.py": "import b, p.x as y\nimport nowhere\nimport a\n",
            "b.py": "def f():\n    from p import x, VALUE\n",
            "p/__init__.py": "from . import x\nfrom .q import deep\n",
            "p/x.py": "from .. import b\nfrom . import q\nimport sys\n",
            "p/q/__init__.py": "",
            "p/q/deep.py": "from ... import a\nfrom ..x import VALUE\nif 1: import b\n",
        },
    )
    assert pairs(import_graph(folders)) == [
        ("a", "b"),
        ("a", "p.x"),
        ("b", "p"),
        ("b", "p.x"),
        ("p", "p.q.deep"),
        ("p", "p.x"),
        ("p.q.deep", "b"),
        ("p.q.deep", "p.x"),
        ("p.x", "p.q"),
        ("p.x", "sys"),
    ]


def test_what_does_not_parse_is_skipped_and_counted(tmp_path: Path) -> None:
    folders = tree(
        tmp_path,
        {
            "a.py": "import b",
            "b.py": "import a; this is no Python",
            "c.py": "\0",
            "test/d.py": "import a",
            "not a module.py": "import a",
            "no-package/e.py": "import a",
        },
    )
    (tmp_path / "f.py").write_bytes(b"\xef\xbb\xbfimport a\ncaf\xe9 = 1\n")
    graph = import_graph(folders)
    assert pairs(graph) == [("a", "b"), ("f", "a")]
    # What follows the last import is not read, so that "f" is none of the skipped.
    assert (graph.n_files, graph.n_skipped) == (4, 1)


def test_a_folder_without_imports_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=str(tmp_path)):
        import_graph(tree(tmp_path, {"a.py": "x = 1"}))


@pytest.mark.parametrize(
    "source",
    [
        "import a\nx = 1\n",
        "try:\n    import a\nexcept ImportError:\n    a = None\n",
        "from a import (\n    b,\n    c,\n)\nx = 1\n",
        "from a import b, \\\n    c\nx = 1\n",
        "x = '''\nimport a\n'''\n",
        "x = 1; import a\ny = 2",
        "import a",
        "from a \\\n    import b\nx = 1",
        "if x: from a import b\nelse: import c\nx = 1",
        "from . . a import b",
        "def f():\n\timport a\n\treturn important\n",
        "",
    ],
)
def test_cutting_a_file_off_loses_no_import(source: str) -> None:
    assert imports(parsed_beginning(source.encode())) == imports(ast.parse(source))


def test_cutting_files_of_the_standard_library_off_loses_no_import() -> None:
    library = Path(ast.__file__).parent
    n_shorter = 0
    for path in [*library.glob("*.py"), *library.glob("asyncio/*.py"), *library.glob("email/*.py")]:
        text = path.read_bytes()
        assert imports(parsed_beginning(text)) == imports(quietly_parsed(text)), path
        n_shorter += len(as_far_as_it_imports(text)) < len(text)
    assert n_shorter > 100


def parsed_beginning(text: bytes) -> ast.Module:
    try:
        return quietly_parsed(as_far_as_it_imports(text))
    except SyntaxError:
        return quietly_parsed(text)


def quietly_parsed(text: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def imports(module: ast.Module) -> list[str]:
    found = [node for node in ast.walk(module) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sorted(map(ast.dump, found))


@pytest.fixture(scope="module")
def installed() -> ImportGraph:
    return import_graph()


def test_the_graph_of_this_installation_is_sound(installed: ImportGraph) -> None:
    edges = np.stack([installed.sources, installed.targets], axis=1)
    assert len(np.unique(edges, axis=0)) == len(edges) > 1_000
    assert (installed.sources != installed.targets).all()
    assert np.array_equal(np.unique(edges), np.arange(len(installed.names)))
    assert installed.names == sorted({*installed.names})
    assert not any(part in LEFT_OUT for name in installed.names for part in name.split(".")[:-1])
    found = {*pairs(installed)}
    assert {("asyncio", "asyncio.events"), ("json", "json.decoder"), ("ast", "enum")} <= found


def test_the_triangles_of_this_installation_are_those_that_networkx_finds(
    installed: ImportGraph, command: list[str]
) -> None:
    graph = networkx.Graph(pairs(installed))
    expected = sum(networkx.triangles(graph).values()) // 3
    args = [*command, "triangles", "--workers", "2", "--json"]
    ran = subprocess.run(args, capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout)
    assert told["matches"] == expected > 1_000
    assert told["vertices"] == len(installed.names)
    assert told["edges"] == len(installed.sources)
    for a, b, c in told["first"]:
        assert graph.has_edge(a, b)
        assert graph.has_edge(b, c)
        assert graph.has_edge(a, c)
