"""The files beside this one are checked by mypy; here, that they leave nothing out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pointstamp as ps

HERE = Path(__file__).parent

FOR_OPERATORS = {
    "Scope": {  # what operators are made with, and what a worker asks
        "activation",
        "add_edge",
        "add_operator",
        "all_scopes",
        "check_stream",
        "close",
        "ends",
        "epochs",
        "install",
        "leads_to",
        "new_stream",
        "operator",
        "path_of",
        "region",
        "reserve",
        "scoped",
        "stream_type",
        "structure",
    },
    "Stream": set(),
}


def mentioned() -> set[str]:
    """The attributes that the checked files use."""
    trees = [ast.parse(path.read_text()) for path in HERE.glob("*.py") if path != Path(__file__)]
    return {
        node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("owner", [ps.Stream, ps.Scope], ids=lambda owner: owner.__name__)
def test_every_operator_has_its_types_asserted(owner: type) -> None:
    public = {
        name
        for base in owner.__mro__
        for name, value in vars(base).items()
        if callable(value) and not name.startswith("_")
    }
    assert public - FOR_OPERATORS[owner.__name__] - mentioned() == set()
