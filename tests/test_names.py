"""One name for one thing, in the field's words, and in files that hold one idea.

What is allowed of it still is counted in `names_allowed.json`, by folder. It only shrinks:
`python tests/test_names.py` writes there what is left, and refuses to write more.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pointstamp"
ALLOWED = Path(__file__).with_name("names_allowed.json")

PERSONS = frozenset(
    ["who", "whoever", "whom", "nobody", "somebody", "news", "told", "tell", "tells", "heard"]
)
"""Words of stories. Subjects are things here: "the worker reports its changes to its peers"."""

MAX_LINES = 700
"""A file that is longer holds two ideas."""

PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""The words of a text and of the names in it: `n_told` and `ToldTwice` have two each."""


WORD = re.compile(r"[A-Za-z_]\w+").findall


def sources(package: Path) -> Iterator[Path]:
    """All files of the package that are written by hand."""
    return (path for path in sorted(package.rglob("*")) if path.suffix in (".py", ".pxd", ".pyx"))


def persons(package: Path) -> list[str]:
    """Where each word for a person stands: `folder/file.py:line: word`."""
    return [
        f"{path.relative_to(package)}:{number}: {word}"
        for path in sources(package)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for word in PARTS.findall(line)
        if word.lower() in PERSONS
    ]


def classes(package: Path) -> dict[str, list[str]]:
    """The places of each class name that stands for several classes."""
    places = defaultdict(list)
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(package)}:{node.lineno}")
    return {name: sorted(found) for name, found in sorted(places.items()) if len(found) > 1}


def files(package: Path) -> dict[str, list[str]]:
    """The places of each file name that stands for several modules."""
    places = defaultdict(list)
    for path in package.rglob("*.py"):
        if not path.name.startswith("__"):
            places[path.name].append(str(path.relative_to(package)))
    return {name: sorted(found) for name, found in sorted(places.items()) if len(found) > 1}


def long_files(package: Path) -> dict[str, int]:
    """How long the files are that are too long."""
    lengths = {path: len(path.read_text().splitlines()) for path in sources(package)}
    return {str(p.relative_to(package)): n for p, n in lengths.items() if n > MAX_LINES}


def by_folder(places: list[str]) -> dict[str, int]:
    """How many of the places are in which folder."""
    return dict(sorted(Counter(str(Path(place).parent) for place in places).items()))


RULES: dict[str, Callable[[Path], dict[str, int]]] = {
    "persons": lambda package: by_folder(persons(package)),
    "classes": lambda package: {name: len(places) for name, places in classes(package).items()},
    "files": lambda package: {name: len(places) for name, places in files(package).items()},
    "long files": long_files,
}
"""What each is against, in the form in which it may be allowed."""


def found(package: Path) -> dict[str, Any]:
    return {rule: against(package) for rule, against in RULES.items()}


def more(found: dict[str, int], allowed: dict[str, int]) -> dict[str, str]:
    """Of what there is more than is allowed."""
    return {
        name: f"{n}, allowed {allowed.get(name, 0)}"
        for name, n in found.items()
        if n > allowed.get(name, 0)
    }


def check(rule: str) -> None:
    allowed, now = json.loads(ALLOWED.read_text())[rule], RULES[rule](PACKAGE)
    assert more(now, allowed) == {}, f"{rule}: run `python tests/test_names.py` to see where"
    assert more(allowed, now) == {}, f"{rule}: fewer than are allowed, python tests/test_names.py"


def test_subjects_are_things_and_not_persons() -> None:
    check("persons")


def test_a_class_name_stands_for_one_class() -> None:
    check("classes")


def test_a_file_name_stands_for_one_module() -> None:
    check("files")


def test_a_file_holds_one_idea() -> None:
    check("long files")


def test_what_is_planted_is_found(tmp_path: Path) -> None:
    package = tmp_path / "pointstamp"
    planted = {
        "a/plain.py": '"""Whose whole newsletter foretells."""\nclass Plain: ...\n',
        "a/names.py": "n_told = whoever\nclass TellTale:\n    heardIt = NEWS\n",
        "b/texts.py": '"""Somebody\nsays who."""\n# nobody\nraise E("tells")  # whom\n',
        "b/plain.pxd": "cdef class Plain:\n    cdef object tell\n",
        "b/plain.py": "def f():\n    class Plain: ...\n",
        "b/__init__.py": "\n" * (MAX_LINES + 1),
        "a/__init__.py": "\n" * MAX_LINES,
    }
    for name, text in planted.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    assert persons(package) == [
        "a/names.py:1: told",
        "a/names.py:1: whoever",
        "a/names.py:2: Tell",
        "a/names.py:3: heard",
        "a/names.py:3: NEWS",
        "b/plain.pxd:2: tell",
        "b/texts.py:1: Somebody",
        "b/texts.py:2: who",
        "b/texts.py:3: nobody",
        "b/texts.py:4: tells",
        "b/texts.py:4: whom",
    ]
    assert found(package) == {
        "persons": {"a": 5, "b": 6},
        "classes": {"Plain": 2},
        "files": {"plain.py": 2},
        "long files": {"b/__init__.py": MAX_LINES + 1},
    }


def test_the_names_of_the_glossary_are_those_of_the_package() -> None:
    text = "\n".join(path.read_text() for path in sources(PACKAGE))
    known = set(re.findall(r"\w+", text))
    page = (ROOT / "docs" / "glossary.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
    names = [name for row in rows for code in re.findall("`([^`]+)`", row) for name in WORD(code)]
    assert len(names) > 70
    assert [name for name in names if name not in known] == []


def main() -> int:
    """Lower what is allowed to what is there, or say where there is more."""
    allowed, now = json.loads(ALLOWED.read_text()), found(PACKAGE)
    places = {"persons": persons(PACKAGE), "classes": classes(PACKAGE), "files": files(PACKAGE)}
    status = 0
    for rule, counts in now.items():
        if too_many := more(counts, allowed[rule]):
            status = 1
            print(f"{rule}: more than allowed: {too_many}")
        allowed[rule] = {k: min(n, allowed[rule].get(k, 0)) for k, n in counts.items()}
        allowed[rule] = {k: n for k, n in allowed[rule].items() if n}
        for place in places.get(rule, ()):
            detail = places[rule][place] if isinstance(places[rule], dict) else ""
            if not sys.argv[1:] or sys.argv[1] in f"{place} {detail}":
                print(rule, place, detail)
    ALLOWED.write_text(json.dumps(allowed, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
