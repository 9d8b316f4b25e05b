"""Operators ask the kind of a batch, and do not tell the forms of batches apart themselves.

`places` finds where code outside of `containers` and `formats` looks at what a batch is; each
that is left is listed here, and says why in a comment beside it.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "pointstamp"

FORMS = {"list", "RecordBatch", "Table", "RecordBatchReader", "Arrays", "_HAS_LEN"}
NAMES = {"rows", "columns", "arrays"}
QUESTIONS = {"is_columns", "is_container", "is_table"}

ALLOWED = {
    "collections/inputs.py": 1,  # what a user gives, most often a list of rows
    "collections/record_schema.py": 1,  # what a user gives, whose tables have no records there
    "collections/schema.py": 2,  # what a user gives, who may have rows alone
    "communication/shared_link.py": 1,  # rows have a framing of their own in a ring
    "dataflow/backpressure.py": 1,  # how many bytes rows are is estimated, not asked
    "dataflow/channels.py": 4,  # length and copy of a list, once for each message; short ones
    "dataflow/spillable.py": 1,  # what a program puts into a stash, which may be no batch
    "joins/tactics.py": 1,  # of two containers, both of joins alone
    "metrics/meters.py": 1,  # as in backpressure.py
    "operators/transform.py": 1,  # rows for map and filter, once for each message
    "operators/window_functions.py": 2,  # functions or names of columns; whose times are kept
    "service/conversions.py": 1,  # what a user gives, who may have records alone
    "spark/spark_operator.py": 1,  # a check of what the user asked for
}
"""By file, how many places there are."""


def last_name(node: ast.AST) -> str | None:
    """`b` of `b`, and of `a.b`."""
    return getattr(node, "attr", None) or getattr(node, "id", None)


def named(node: ast.AST) -> set[str | None]:
    """The classes that a test is for."""
    if isinstance(node, ast.Tuple):
        return set().union(*map(named, node.elts))
    if isinstance(node, ast.BinOp):
        return named(node.left) | named(node.right)
    return {last_name(node)}


def tells_apart(node: ast.AST) -> bool:
    """Whether it asks what form a batch has.

    A test for a list or a tuple is about a record or a parameter, as no batch is a tuple.
    """
    if isinstance(node, ast.Attribute):
        return node.attr == "has_columns"
    if isinstance(node, ast.Call) and last_name(node.func) == "isinstance":
        forms = named(node.args[1])
        return bool(forms & FORMS) and "tuple" not in forms
    if isinstance(node, ast.Call):
        return last_name(node.func) in QUESTIONS
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        of_type = any(isinstance(s, ast.Call) and last_name(s.func) == "type" for s in sides)
        of_name = any(isinstance(s, ast.Attribute) and s.attr == "name" for s in sides)
        texts = {s.value for s in sides if isinstance(s, ast.Constant)}
        return (of_type and any(named(s) & FORMS for s in sides)) or bool(of_name and texts & NAMES)
    return False


OTHER_LISTS = {
    ("dataflow/ways.py", "summary"),
    ("dataflow/stash.py", "batches"),
    ("service/protocol.py", "given"),
}
"""Lists that are no batches: summaries of paths, those of a stash, handles that a client gives."""


def places(package: Path) -> Iterator[tuple[str, int, str]]:
    """File, line and text of each place outside of the rooms that know the forms."""
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        if file.split("/")[0] in ("containers", "formats", "kernels"):
            continue
        text = path.read_text()
        lines = set()
        for node in ast.walk(ast.parse(text)):
            is_other = (
                isinstance(node, ast.Call)
                and bool(node.args)
                and ((file, last_name(node.args[0])) in OTHER_LISTS)
            )
            if tells_apart(node) and not is_other:
                lines.add(node.lineno)
        for line in sorted(lines):
            yield file, line, text.splitlines()[line - 1].strip()


def test_only_these_tell_batches_apart_and_say_why() -> None:
    found = list(places(PACKAGE))
    assert Counter(file for file, _, _ in found) == ALLOWED, found
    for file, line, _ in found:
        before = (PACKAGE / file).read_text().splitlines()[max(0, line - 6) : line]
        assert any("#" in text or '"""' in text for text in before), f"{file}:{line} says no reason"


def test_what_tells_batches_apart_is_found() -> None:
    asking = [
        "type(batch) is list",
        "type(batch) is not list",
        "isinstance(batch, pa.RecordBatch)",
        "isinstance(batch, Arrays | list)",
        "kind.name == 'columns'",
        "kind.has_columns",
        "is_table(batch)",
    ]
    others = ["isinstance(record, (tuple, list))", "type(k) is int", "name == 'Map'", "len(batch)"]
    for code, expected in [*((c, True) for c in asking), *((c, False) for c in others)]:
        assert any(map(tells_apart, ast.walk(ast.parse(code)))) is expected, code


if __name__ == "__main__":
    all_places = list(places(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE))
    for one in all_places:
        print(*one, sep=" : ")
    print(len(all_places), "places in", len({file for file, _, _ in all_places}), "files")
