"""Delta queries of a join made of plans: variables become places of words, atoms arrangements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointstamp.collections.arrange import Arrangement, as_updates
from pointstamp.collections.casts import Bound, made_equal
from pointstamp.collections.collection import Collection
from pointstamp.collections.delta_plan import (
    Atom,
    Extend,
    LookUp,
    PlanStep,
    Weigh,
    check_connected,
)
from pointstamp.collections.expression import col
from pointstamp.collections.fixpoint import brought_together
from pointstamp.collections.half_join import (
    DeltaQuery,
    DifferTactic,
    ExtendTactic,
    HalfSide,
    LookUpTactic,
    Tactic,
    WeighTactic,
    delta_join_of,
)
from pointstamp.collections.loop_joins import joined_in_turn
from pointstamp.collections.schema import Column, Schema
from pointstamp.errors import SchemaError

DeltaPlan = Callable[[Sequence[Atom], int], list[PlanStep]]
"""Of atoms, and the one that a query begins with: its steps."""


@dataclass(frozen=True)
class JoinedRelation:
    """A collection in a join: its columns by variable, in the order of its schema."""

    collection: Collection
    columns: dict[str, str]
    atom: Atom

    def column(self, variable: str) -> Column:
        """The column that a variable is."""
        return self.collection.schema.column(self.columns[variable])


def join_by_plans(
    relations: Sequence[JoinedRelation],
    plan: DeltaPlan,
    outputs: Sequence[str],
    name: str,
    differ: bool = False,
) -> Collection:
    """A join by a delta query for each relation; in a loop, of two at a time.

    Parameters
    ----------
    plan : callable
        `path_query` or `generic_query`.
    outputs : sequence of str
        The variables that are columns of the result.
    differ : bool
        Whether all variables are to have different values.
    """
    first = relations[0]
    atoms = [relation.atom for relation in relations]
    check_connected(atoms, f"operator {name!r}")
    if not first.collection.scope.timestamp.total:
        return joined_in_turn(relations, outputs, name, differ)
    columns = {v: _result_column(relations, v) for v in outputs}
    schema = Schema(tuple(columns.values()))
    if len(relations) == 1:
        if differ:
            first = _differing(first)
        chosen = {v: col(first.columns[v]) for v in outputs}
        return first.collection.computed(chosen, name)
    plans = [plan(atoms, start) for start in range(len(atoms))]
    builder = _QueryBuilder(relations, plans, differ)
    queries = [builder.query(start, outputs) for start in range(len(relations))]
    stream = delta_join_of(queries, schema.texts, name)
    if first.collection.scope.peers > 1:
        # Of a match that comes by one relation and goes by another, neither leaves.
        stream = as_updates(stream, schema.n_words, schema.texts, f"{name}Changes")
    return first.collection.of(stream, schema)


class _QueryBuilder:
    """Makes tactics of plans: variables become places of words, atoms arrangements."""

    def __init__(
        self, relations: Sequence[JoinedRelation], plans: Sequence[list[PlanStep]], differ: bool
    ) -> None:
        self._relations = relations
        self._plans = plans
        self._differ = differ
        self._projections: dict[Any, Collection] = {}
        self._supports: dict[int, Collection] = {}

    def query(self, start: int, outputs: Sequence[str]) -> DeltaQuery:
        """The query that begins with the changes of a relation."""
        relation = self._relations[start]
        key = self._key_asked(start)
        layout = PrefixLayout()
        layout.add(relation, [*key, *(v for v in relation.columns if v not in key)])
        steps: list[Tactic] = []
        texts = [layout.texts]
        if self._differ:
            names = list(relation.columns)
            for place, variable in enumerate(names[1:], 1):
                steps.append(layout.differing(variable, names[:place]))
                texts.append(layout.texts)
        for step in self._plans[start]:
            known = list(layout.places)
            steps.append(self._tactic(step, start, layout))
            texts.append(layout.texts)
            for variable in list(layout.places)[len(known) :] if self._differ else []:
                steps.append(layout.differing(variable, known))
                texts.append(layout.texts)
                known.append(variable)
        chosen = [word for variable in outputs for word in layout.words(variable)]
        return DeltaQuery(
            self._arranged(start, key),
            relation.atom.absent,
            steps,
            texts,
            np.array(chosen, np.int32),
        )

    def _tactic(self, step: PlanStep, start: int, layout: PrefixLayout) -> Tactic:
        """The tactic of a step; the layout gets what it binds."""
        if isinstance(step, LookUp):
            relation = self._relations[step.atom]
            rest = [v for v in relation.columns if v not in step.key]
            side = self._side(self._arranged(step.atom, step.key), step.atom, start)
            n_rest = sum(relation.column(v).n_words for v in rest)
            places = [layout.places[v] for v in step.key]
            tactic = LookUpTactic(side, places, layout.n_words, n_rest)
            layout.add(relation, rest)
            return tactic
        if isinstance(step, Weigh):
            relation = self._relations[step.atom]
            names = list(relation.columns)
            side = self._side(self._arranged(step.atom, names[:1]), step.atom, start)
            places = [layout.places[v] for v in names]
            return WeighTactic(side, places, relation.atom.absent)
        sides, keys = [], []
        for by in step.by:
            arrangement = (
                self._arranged(by.atom, by.key)
                if by.whole
                else self._projected(by.atom, by.key, step.variable)
            )
            sides.append(self._side(arrangement, by.atom, start))
            keys.append([layout.places[v] for v in by.key])
        layout.add(self._relations[step.by[0].atom], [step.variable])
        return ExtendTactic(sides, keys)

    def _side(self, arrangement: Arrangement, atom: int, start: int) -> HalfSide:
        # At or before the time of those before the start, strictly before it of those behind.
        return HalfSide(arrangement, through=atom < start)

    def _arranged(self, atom: int, key: Sequence[str]) -> Arrangement:
        relation = self._relations[atom]
        found = relation.collection.arranged([relation.columns[v] for v in key])
        assert isinstance(found, Arrangement)
        return found

    def _projected(self, atom: int, key: Sequence[str], variable: str) -> Arrangement:
        """The distinct records of some columns of a relation, by all of them but one."""
        relation = self._relations[atom]
        columns = tuple(relation.columns[v] for v in relation.columns if v in (*key, variable))
        known = id(relation.collection), columns
        if known not in self._projections:
            self._projections[known] = self._support(relation).select(*columns).distinct()
        found = self._projections[known].arranged([relation.columns[v] for v in key])
        assert isinstance(found, Arrangement)
        return found

    def _support(self, relation: JoinedRelation) -> Collection:
        """Each record once that is there any number of times other than 0.

        Of those with a count below 0, which an update leaves that came before the insertion that
        it deletes, a projection would otherwise lose what they have in common with others.
        """
        collection = relation.collection
        if collection.append_only:
            return collection
        if id(collection) not in self._supports:
            self._supports[id(collection)] = collection.support()
        return self._supports[id(collection)]

    def _key_asked(self, atom: int) -> list[str]:
        """A key by which a relation is arranged anyway."""
        for plan in self._plans:
            for step in plan:
                if isinstance(step, LookUp) and step.atom == atom:
                    return list(step.key)
                if isinstance(step, Weigh) and step.atom == atom:
                    return list(self._relations[atom].columns)[:1]
                if isinstance(step, Extend):
                    for by in step.by:
                        if by.atom == atom and by.whole:
                            return list(by.key)
        raise AssertionError(f"no query looks into {self._relations[atom].atom}")


class PrefixLayout:
    """Where the words of variables are in a prefix."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        """By variable: of the word of its value."""
        self.n_words = 0
        self._columns: dict[str, Column] = {}

    @property
    def texts(self) -> tuple[int, ...]:
        """Which words are numbers of texts."""
        return tuple(p for v, p in self.places.items() if self._columns[v].type.is_text)

    def add(self, relation: JoinedRelation, variables: Sequence[str]) -> None:
        """The words of some variables come behind."""
        for variable in variables:
            column = relation.column(variable)
            self._columns[variable] = column
            self.n_words += column.n_words
            self.places[variable] = self.n_words - 1

    def words(self, variable: str) -> list[int]:
        """The places of all words of a variable."""
        place, n_words = self.places[variable], self._columns[variable].n_words
        return list(range(place - n_words + 1, place + 1))

    def differing(self, variable: str, others: Sequence[str]) -> DifferTactic:
        """What leaves out prefixes in which a variable is one of some others."""
        return DifferTactic(self.places[variable], [self.places[v] for v in others])


def relations_of(
    collections: Mapping[str, Collection], of_relation: dict[str, dict[str, str]], name: str
) -> list[JoinedRelation]:
    """The relations, in one scope, with shared columns of one type and without nulls."""
    together = brought_together(list(collections.values()))
    atoms = [Atom(called, tuple(found)) for called, found in of_relation.items()]
    relations = [
        JoinedRelation(collection, of_relation[atom.name], atom)
        for collection, atom in zip(together, atoms, strict=True)
    ]
    types: dict[str, list[Any]] = {}
    for relation in relations:
        for variable in relation.atom.shared_with(atoms):
            types.setdefault(variable, []).append(relation.column(variable).type)
    wide = set()
    for variable, kinds in types.items():
        if any(kind != kinds[0] for kind in kinds):
            if not all(kind.is_signed for kind in kinds):
                names = sorted({kind.name for kind in kinds})
                raise SchemaError(
                    f"operator {name!r}: {variable!r} is of the types {names} in the relations "
                    f"that have it; {made_equal(*kinds)}"
                )
            wide.add(variable)
    known: dict[Any, Collection] = {}
    return [_prepared(relation, set(types), wide, known, name) for relation in relations]


def _prepared(
    relation: JoinedRelation,
    shared: set[str],
    wide: set[str],
    known: dict[Any, Collection],
    name: str,
) -> JoinedRelation:
    """Without records that have a null in a shared column, and with integers as longs."""
    collection = relation.collection
    schema = collection.schema
    own = {relation.columns[v]: v for v in relation.columns if v in shared}
    nullable = [c for c in own if schema.column(c).nullable]
    widened = [c for c, v in own.items() if v in wide and schema.column(c).type.name != "long"]
    if not nullable and not widened:
        return relation
    what = id(collection), tuple(nullable), tuple(widened)
    if what not in known:
        for column in nullable:
            collection = collection.filter(col(column).is_not_null(), name=f"{name}NotNull")
        bound = {}
        for own_column in schema.columns:
            expression = col(own_column.name)
            if own_column.name in widened:
                expression = expression.cast("long")
            value = expression.bind(schema)
            is_nullable = own_column.nullable and own_column.name not in nullable
            bound[own_column.name] = Bound(value.type, is_nullable, value.evaluate)
        columns = tuple(value.column(called) for called, value in bound.items())
        known[what] = collection.with_bound(bound, Schema(columns), f"{name}Key")
    return JoinedRelation(known[what], relation.columns, relation.atom)


def _differing(relation: JoinedRelation) -> JoinedRelation:
    one, other = (col(column) for column in relation.columns.values())
    kept = relation.collection.filter(one != other)
    return JoinedRelation(kept, relation.columns, relation.atom)


def _result_column(relations: Sequence[JoinedRelation], variable: str) -> Column:
    for relation in relations:
        if variable in relation.columns:
            column = relation.column(variable)
            return Column(variable, column.type, column.nullable)
    raise AssertionError(f"no relation has {variable!r}")
