"""Datalog: facts that follow from facts by rules, kept up to date while the facts change.

A rule says what follows from what: `path(x, z) :- path(x, y), edge(y, z).` Each relation that rules
define is a variable of one loop, which goes round until nothing new follows; when facts come or
go, those consequences come or go that differ, also through cycles. Three programs:
which vertices reach which, who is of the same generation, and what a pointer may point to.

    python examples/datalog.py [PROGRAM]
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pointstamp as ps
from pointstamp import col

REACH = """
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
"""

SAME_GENERATION = """
    same(x, y) :- parent(p, x), parent(p, y).
    same(x, y) :- parent(p, x), same(p, q), parent(q, y).
"""

POINTS_TO = """
    points(v, o) :- new(v, o).
    points(v, o) :- assign(v, w), points(w, o).
    heap(o, f, p) :- store(v, f, w), points(v, o), points(w, p).
    points(v, p) :- load(v, w, f), points(w, o), heap(o, f, p).
"""


@dataclass(frozen=True)
class Atom:
    """A relation with its arguments: names of variables, or numbers."""

    relation: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """Its head follows where all of its body holds."""

    head: Atom
    body: tuple[Atom, ...]


def parsed(program: str) -> list[Rule]:
    """The rules of a program.

    >>> parsed("a(x) :- b(x, 1).")[0].body
    (Atom(relation='b', arguments=('x', '1')),)
    """
    rules = []
    for text in filter(str.strip, program.split(".")):
        head, _, body = text.partition(":-")
        atoms = [
            Atom(name, tuple(argument.strip() for argument in arguments.split(",")))
            for name, arguments in re.findall(r"(\w+)\s*\(([^)]*)\)", body)
        ]
        found = re.fullmatch(r"\s*(\w+)\s*\(([^)]*)\)\s*", head)
        if not found or not atoms:
            raise ValueError(f"a rule is `head(x) :- body(x, y), other(y).`, and there is {text!r}")
        arguments = tuple(argument.strip() for argument in found[2].split(","))
        known = {argument for atom in atoms for argument in atom.arguments}
        if not known >= set(arguments):
            raise ValueError(f"the body of {text.strip()!r} does not say what its whole head is")
        rules.append(Rule(Atom(found[1], arguments), tuple(atoms)))
    return rules


def solve(scope: ps.Scope, facts: dict[str, Any], program: str) -> dict[str, Any]:
    """The relations that rules define, of relations of facts with columns c0, c1 and so on."""
    rules = parsed(program)
    by_head: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_head[rule.head.relation].append(rule)
    with scope.iterative() as inner:
        variables = {
            name: inner.variable(", ".join(f"c{n} long" for n in range(len(of[0].head.arguments))))
            for name, of in by_head.items()
        }
        relations = {**facts, **variables}
        results = {}
        for name, of in by_head.items():
            first, *more = (derived(rule, relations) for rule in of)
            results[name] = first.concat(*more).distinct()
            variables[name].set(results[name])
        return {name: result.leave() for name, result in results.items()}


def derived(rule: Rule, relations: dict[str, Any]) -> Any:
    """What one rule gives: its atoms joined on the variables that they share."""
    joined = matching(rule.body[0], relations)
    for atom in rule.body[1:]:
        other = matching(atom, relations)
        shared = [name for name in other.schema.names if name in joined.schema.names]
        joined = joined.join(other, on=shared) if shared else joined.join(other, how="cross")
    return joined.select(**{f"c{n}": name for n, name in enumerate(rule.head.arguments)})


def matching(atom: Atom, relations: dict[str, Any]) -> Any:
    """The facts that fit an atom, with its variables as columns."""
    found = relations[atom.relation]
    columns: dict[str, str] = {}
    for place, argument in enumerate(atom.arguments):
        if argument.isdigit():
            found = found.filter(col(f"c{place}") == int(argument))
        elif argument in columns:
            found = found.filter(col(f"c{place}") == col(columns[argument]))
        else:
            columns[argument] = f"c{place}"
    return found.select(**columns)


PROGRAMS: dict[str, tuple[str, dict[str, list[tuple[int, ...]]]]] = {
    "reach": (REACH, {"edge": [(1, 2), (2, 3), (3, 1), (3, 4)]}),
    "same": (SAME_GENERATION, {"parent": [(1, 2), (1, 3), (2, 4), (3, 5)]}),
    "points": (
        POINTS_TO,
        {
            "new": [(1, 101), (2, 102)],
            "assign": [(3, 1), (4, 2)],
            "store": [(3, 7, 4)],
            "load": [(5, 1, 7)],
        },
    ),
}


def main(name: str = "points") -> None:
    """Print what follows, and what does not any more once the first fact of each kind is gone."""
    program, facts = PROGRAMS[name]
    schemas = {
        relation: ", ".join(f"c{n} long" for n in range(len(rows[0])))
        for relation, rows in facts.items()
    }
    with ps.View(lambda scope, **given: solve(scope, given, program), **schemas) as view:
        for relation, rows in facts.items():
            view.insert(relation, rows)
        for relation, changes in view.advance().items():
            print(f"{relation}: {', '.join(str(row) for row, _ in changes)}")
        for relation, rows in facts.items():
            view.delete(relation, rows[:1])
        for relation, changes in view.advance().items():
            print(f"{relation}: {-sum(diff for _, diff in changes)} less")


if __name__ == "__main__":
    main(*sys.argv[1:])
