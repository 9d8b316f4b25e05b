"""Joins of several collections in loops: of two at a time.

Delta queries read relations as of a time, and before it: of times of a loop, which are in no line,
neither is one piece of what is kept. So in a loop each relation meets what those before it have
come to, and that is kept. Next comes the relation that shares most with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pointstamp.collections.collection import Collection
from pointstamp.collections.expression import col

if TYPE_CHECKING:
    from pointstamp.collections.join_queries import JoinedRelation


def joined_in_turn(
    relations: Sequence[JoinedRelation], outputs: Sequence[str], name: str, differ: bool
) -> Collection:
    """A join of relations that are connected, one after the other; see `join_by_plans`."""
    present = [relation for relation in relations if not relation.atom.absent]
    missing = [relation for relation in relations if relation.atom.absent]
    found = _differing(_by_variables(present.pop(0), name), [], differ, name)
    while present:
        bound = set(found.schema.names)
        # The first of those that share most.
        relation = max(present, key=lambda other: len(bound & set(other.columns)))
        present.remove(relation)
        known = found.schema.names
        key = [variable for variable in relation.columns if variable in bound]
        found = found.join(_by_variables(relation, name), on=key, name=name)
        found = _differing(found, known, differ, name)
    for relation in missing:
        others = _by_variables(relation, name)
        found = found.join(others, on=list(relation.columns), how="anti", name=name)
    return found.computed({variable: col(variable) for variable in outputs}, name)


def _by_variables(relation: JoinedRelation, name: str) -> Collection:
    """A relation whose columns are called by variables."""
    columns = {variable: col(column) for variable, column in relation.columns.items()}
    return relation.collection.computed(columns, name)


def _differing(found: Collection, known: Sequence[str], differ: bool, name: str) -> Collection:
    """What has different values in columns beyond those that are known to."""
    before = list(known)
    for variable in found.schema.names if differ else []:
        if variable not in known:
            for other in before:
                found = found.filter(col(variable) != col(other), name=f"{name}Differ")
            before.append(variable)
    return found
