"""The import graph: small trees of modules by eye, the standard library by laws."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import warnings
from pathlib import Path

import networkx
import pytest

from tests.test_answers_of_examples import example

module = example("import_graph")
import_graph, as_far_as_it_imports = module.import_graph, module.as_far_as_it_imports


def tree(folder: Path, sources: dict[str, str]) -> list[Path]:
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    return [folder]


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
    assert import_graph(folders).edges == [
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
    assert graph.edges == [("a", "b"), ("f", "a")]
    # What follows the last import is not read, so that "f" is none of the skipped.
    assert (graph.n_files, graph.n_skipped) == (4, 1)


def test_the_program_reads_with_a_process_for_each_processor(tmp_path: Path) -> None:
    folders = tree(tmp_path / "all", {f"{a}.py": f"import a, b, {a}" for a in "abcdefg"})
    written = tmp_path / "edges.csv"
    program = [sys.executable, module.__file__, written, *folders]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert "in 7 files, of which 0 do not parse" in done.stderr
    rows = [tuple(row.split(",")) for row in written.read_text().splitlines()]
    assert rows == [("source", "target"), *import_graph(folders).edges]


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
    for path in [*library.glob("[a-h]*.py"), *library.glob("asyncio/*.py")]:
        text = path.read_bytes()
        assert imports(parsed_beginning(text)) == imports(quietly_parsed(text)), path
        n_shorter += len(as_far_as_it_imports(text)) < len(text)
    assert n_shorter > 50


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
def imports_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imports") / "imports.csv"
    module.main(str(path), str(Path(ast.__file__).parent))
    return path


def read(path: Path) -> list[tuple[str, str]]:
    first, *lines = path.read_text().splitlines()
    assert first == "source,target"
    return [(importing, imported) for importing, imported in (line.split(",") for line in lines)]


def test_the_graph_of_the_standard_library_is_sound(imports_file: Path) -> None:
    edges = read(imports_file)
    assert edges == sorted({*edges})
    assert len(edges) > 1_000
    assert not any(importing == imported for importing, imported in edges)
    names = {name for edge in edges for name in edge}
    left_out = module.LEFT_OUT
    assert not any(part in left_out for name in names for part in name.split(".")[:-1])
    assert {("asyncio", "asyncio.events"), ("json", "json.decoder"), ("ast", "enum")} <= {*edges}


def test_the_triangles_of_the_standard_library_are_those_that_networkx_finds(
    imports_file: Path,
) -> None:
    edges = read(imports_file)
    graph = networkx.Graph(edges)
    expected = sum(networkx.triangles(graph).values()) // 3
    args = ["triangles", str(imports_file), "--workers", "2", "--json"]
    command = [sys.executable, "-m", "pointstamp", *args]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert told["matches"] == expected > 1_000
    assert told["vertices"] == len(graph)
    assert told["edges"] == len(edges)
    for a, b, c in told["first"]:
        assert graph.has_edge(a, b)
        assert graph.has_edge(b, c)
        assert graph.has_edge(a, c)
