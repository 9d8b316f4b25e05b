"""Plans of delta queries: what the changes of one relation of a join meet, and in which order.

A join of several relations changes by what the changes of each of them meet in the others. So
there is a *delta query* for each, a path that begins with its changes and looks into one
relation after the other. That each pair of changes of one time meets once, relations before the
one that begins are read up to the time, and those behind it before the time.

The relations are *atoms*: columns that are called by variables. A variable of several atoms is
*shared*, and is what joins them; the others come along.

- `path_query` takes the atoms one after the other, each by the variables that it shares with
  those before.
- `generic_query` binds the shared variables one after the other, each by all atoms that say
  something of it, which is worst-case optimal; what comes along is looked up last.

Pure: names in, steps out; nothing here knows an operator.

Source: Ammar, McSherry, Salihoglu, Joglekar, "Distributed evaluation of subgraph queries using
worst-case optimal low-memory dataflows", VLDB 2018; `dogsdogsdogs` in differential-dataflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pointstamp.errors import BuildError


@dataclass(frozen=True)
class Atom:
    """A relation of a join, or that one must have no such record.

    >>> Atom("R", ("a", "b")).shared_with([Atom("R", ("a", "b")), Atom("S", ("b", "c"))])
    ('b',)
    """

    name: str
    variables: tuple[str, ...]
    """Of its columns, in order, no two alike."""
    absent: bool = False
    """Whether a record must not be there; then it is there once at most."""

    def shared_with(self, atoms: Sequence[Atom]) -> tuple[str, ...]:
        """Those of its variables that several of `atoms` have."""
        return tuple(v for v in self.variables if sum(v in other.variables for other in atoms) > 1)


@dataclass(frozen=True)
class LookUp:
    """Join with the records of an atom that are equal in `key`: the rest of its columns come."""

    atom: int
    key: tuple[str, ...]


@dataclass(frozen=True)
class Weigh:
    """Multiply by how often an atom has the record, all of whose variables are bound."""

    atom: int


@dataclass(frozen=True)
class ExtendBy:
    """What an atom says of a new variable: its records by `key`, which are bound.

    whole : whether these are all its variables, so that its record counts as often as it is there
    """

    atom: int
    key: tuple[str, ...]
    whole: bool


@dataclass(frozen=True)
class Extend:
    """Bind a variable by all the values that some atoms agree on."""

    variable: str
    by: tuple[ExtendBy, ...]


PlanStep = LookUp | Weigh | Extend


def check_connected(atoms: Sequence[Atom], what: str) -> None:
    """Refuse atoms that do not hang together by variables.

    Raises
    ------
    BuildError
    """
    reached = set(atoms[0].variables)
    rest = [atom for atom in atoms[1:] if not atom.absent]
    while near := [atom for atom in rest if reached.intersection(atom.variables)]:
        reached.update(v for atom in near for v in atom.variables)
        rest = [atom for atom in rest if atom not in near]
    if rest:
        raise BuildError(
            f"{what} is given {rest[0].name!r}, which shares no column with those before: all "
            "would meet all; make a cross join of its own, join(..., how='cross')"
        )


def path_query(atoms: Sequence[Atom], start: int) -> list[PlanStep]:
    """Look into one atom after the other, next into that which shares most with those before.

    >>> chain = [Atom("R", ("a", "b")), Atom("S", ("b", "c")), Atom("T", ("c", "d"))]
    >>> path_query(chain, 2)
    [LookUp(atom=1, key=('c',)), LookUp(atom=0, key=('b',))]
    """
    bound = set(atoms[start].variables)
    rest = [number for number in range(len(atoms)) if number != start]
    steps: list[PlanStep] = []
    while rest:
        chosen = max(rest, key=lambda number: len(_known(atoms[number], bound)))
        steps.append(LookUp(chosen, _known(atoms[chosen], bound)))
        bound.update(atoms[chosen].variables)
        rest.remove(chosen)
    return steps


def generic_query(atoms: Sequence[Atom], start: int) -> list[PlanStep]:
    """Bind one shared variable after the other, next that of which most atoms know something.

    >>> triangle = [Atom("R", ("a", "b")), Atom("S", ("b", "c")), Atom("T", ("a", "c"))]
    >>> (step,) = generic_query(triangle, 0)
    >>> step.variable, [(by.atom, by.key) for by in step.by]
    ('c', [(1, ('b',)), (2, ('a',))])
    """
    cores = [atom.shared_with(atoms) for atom in atoms]
    variables = list(dict.fromkeys(v for core in cores for v in core))
    bound = set(cores[start])
    rest = [number for number in range(len(atoms)) if number != start]
    steps: list[PlanStep] = []

    def weigh() -> None:
        """Those of which all is bound say how often their record is there."""
        for number in list(rest):
            if bound.issuperset(atoms[number].variables):
                steps.append(Weigh(number))
                rest.remove(number)

    def known_of(variable: str) -> list[ExtendBy]:
        found = []
        for number in rest:
            key = _known(atoms[number], bound)
            if variable in cores[number] and key and not atoms[number].absent:
                whole = set(atoms[number].variables) == {*key, variable}
                found.append(ExtendBy(number, key, whole))
        return found

    weigh()
    while unbound := [v for v in variables if v not in bound]:
        variable = max(unbound, key=lambda v: len(known_of(v)))
        by = known_of(variable)
        steps.append(Extend(variable, tuple(by)))
        bound.add(variable)
        rest = [n for n in rest if not any(one.atom == n and one.whole for one in by)]
        weigh()
    return [*steps, *(LookUp(number, cores[number]) for number in rest)]


def _known(atom: Atom, bound: set[str]) -> tuple[str, ...]:
    return tuple(v for v in atom.variables if v in bound)
