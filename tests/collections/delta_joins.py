"""Joins of several collections beside recomputing, on random updates over epochs.

A case is drawn from a seed: what is joined, and how the relations change. It is run on simulated
workers, of which each changes its share, with several epochs sent before any is worked off.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import pointstamp as ps
from pointstamp.collections.spine import Spine
from tests.collections.checks import PIECES, in_pieces
from tests.collections.running import Build, run_epochs

Row = tuple[Any, ...]
Multiset = Counter[Row]


def check(
    schemas: list[str],
    build: Build,
    expected: Callable[[list[Multiset]], Multiset],
    epochs: list[Any],
    workers: int,
    at_a_time: int,
    seed: int,
) -> None:
    """At each epoch what left adds up to what is expected of what came.

    Of three cases one is in a loop, and of three of these two have joins make little at a time.

    workers, at_a_time : of the run
    """
    build = build if seed % 3 else in_loop(build)
    pieces = PIECES[seed // 3 % len(PIECES)]
    with in_pieces(pieces):
        parts = ps.simulate(
            run_epochs, schemas, build, epochs, at_a_time, workers=workers, seed=seed
        )
    found = [update for part in parts for update in part]
    if pieces == PIECES[0]:
        assert len({(row, time) for row, time, _ in found}) == len(found), "not consolidated"
    came: list[Multiset] = [Counter() for _ in schemas]
    now: Multiset = Counter()
    for epoch, changes in enumerate(epochs):
        for total, pairs in zip(came, changes, strict=True):
            for row, diff in pairs:
                total[row] += diff
        for row, time, diff in found:
            if time == epoch:
                now[row] += diff
        wanted = expected([Counter({row: n for row, n in t.items() if n}) for t in came])
        assert {row: n for row, n in now.items() if n} == {r: n for r, n in wanted.items() if n}


def in_loop(build: Build) -> Build:
    """The same in a loop, in which the first collection comes at the second round."""

    def inside(collections: Sequence[ps.Collection]) -> ps.Collection:
        scope: Any = collections[0].scope
        with scope.iterative() as inner:
            late = inner.variable(collections[0].schema)
            late.set(collections[0])
            found = build([late, *(collection.enter(inner) for collection in collections[1:])])
            return found.leave().consolidate()

    return inside


def spines() -> list[Spine]:
    """All that there are in this process."""
    gc.collect()
    return [found for found in gc.get_objects() if isinstance(found, Spine)]


def random_epochs(
    draw: random.Random,
    n_epochs: int,
    values: list[list[list[Any]]],
    size: int,
    early: float = 0,
) -> list[list[list[tuple[Row, int]]]]:
    """Updates of relations: what came goes again, at random, also in the epoch that it came in.

    values : of each relation, for each column, what it may be
    early : how many of the records are deleted first, and come later or never
    """
    present: list[list[Row]] = [[] for _ in values]
    owed: list[list[Row]] = [[] for _ in values]
    epochs = []
    for _ in range(n_epochs):
        changes: list[list[tuple[Row, int]]] = []
        for rows, missing, columns in zip(present, owed, values, strict=True):
            pairs = []
            for _ in range(draw.randrange(size)):
                if early and draw.random() < early:
                    if missing and draw.random() < 0.6:
                        pairs.append((missing.pop(), 1))
                    else:
                        missing.append(tuple(map(draw.choice, columns)))
                        pairs.append((missing[-1], -1))
                elif rows and draw.random() < 0.45:
                    pairs.append((rows.pop(draw.randrange(len(rows))), -1))
                else:
                    row = tuple(draw.choice(column) for column in columns)
                    rows.append(row)
                    pairs.append((row, 1))
            changes.append(pairs)
        epochs.append(changes)
    return epochs


def natural_join(atoms: list[tuple[Multiset, list[str]]], outputs: list[str]) -> Multiset:
    """By the definition: all combinations of records that agree, nulls with nothing."""
    n_with: Counter[str] = Counter(v for _, names in atoms for v in set(names))
    found: list[tuple[dict[str, Any], int]] = [({}, 1)]
    for records, names in atoms:
        grown = []
        for bound, n in found:
            for row, m in records.items():
                more = dict(bound)
                for v, value in zip(names, row, strict=True):
                    is_key = n_with[v] > 1 or names.count(v) > 1
                    if (is_key and value is None) or more.setdefault(v, value) != value:
                        break
                else:
                    grown.append((more, n * m))
        found = grown
    result: Multiset = Counter()
    for bound, n in found:
        result[tuple(bound[v] for v in outputs)] += n
    return result


GENERIC = [
    ["a b", "b c", "a c"],
    ["a b", "b c", "c d", "d a"],
    ["a b", "b a"],
    ["a b c", "b c d", "d a"],
    ["a b c", "c d", "a d", "b"],
    ["a b p", "b c q", "a c"],
    ["a a b", "b c"],
    ["a b", "a b", "b c"],
    ["a b c", "b c a"],
]
"""Variables of the relations of some joins."""

PATTERNS = [
    ("(a)-[]->(b)", False),
    ("(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)", False),
    ("(a)-[]->(b); (b)-[]->(c); (c)-[]->(a)", True),
    ("(a)-[]->(b); (b)-[]->(a)", False),
    ("(a)-[]->(b); (b)-[]->(c); !(a)-[]->(c)", True),
    ("(a)-[]->(b); ()-[]->(b); !(b)-[]->(a)", False),
    ("(a)-[]->(b); (a)-[]->(a); !(b)-[]->(b)", False),
    ("(a)-[]->(b); (b)-[]->(c); (c)-[]->(d); (a)-[]->(d); !(a)-[]->(c)", True),
]


def check_generic(seed: int, workers: int, at_a_time: int) -> None:
    """A natural join of relations of longs, texts that may be null, and bytes."""
    draw = random.Random(seed)
    names = [text.split() for text in draw.choice(GENERIC)]
    outputs = list(dict.fromkeys(v for own in names for v in own))
    texts = {v for v in outputs if draw.random() < 0.3}
    schemas, values = [], []
    for own in names:
        columns: list[list[Any]] = []
        kinds = []
        for variable in own:
            nullable = draw.random() < 0.25
            column: list[Any] = ["", "x", "yy"] if variable in texts else [0, 1, -2]
            columns.append([*column, None] if nullable else column)
            kind = "string" if variable in texts else draw.choice(["long", "byte"])
            kinds.append(f"{kind}{'?' if nullable else ''}")
        schemas.append(", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds)))
        values.append(columns)
    if any(
        len({schemas[n].split(", ")[k].split()[1].rstrip("?") for k in places}) > 1
        for n, own in enumerate(names)
        for places in [[k for k, v in enumerate(own) if own.count(v) > 1]]
    ):
        schemas = [schema.replace("byte", "long") for schema in schemas]

    def build(collections: Sequence[ps.Collection]) -> ps.Collection:
        given = zip(collections, names, strict=True)
        return ps.generic_join({f"R{n}": pair for n, pair in enumerate(given)})

    def expected(came: list[Multiset]) -> Multiset:
        return natural_join(list(zip(came, names, strict=True)), outputs)

    epochs = random_epochs(draw, draw.randrange(1, 7), values, 8, draw.choice([0, 0.2]))
    check(schemas, build, expected, epochs, workers, at_a_time, seed)


def check_motifs(seed: int, workers: int, at_a_time: int) -> None:
    """A pattern on a graph of a few vertices."""
    draw = random.Random(seed)
    pattern, distinct = draw.choice(PATTERNS)
    kind, vertices = draw.choice([("long", [0, 1, 2, 3]), ("string?", ["a", "b", "c", None])])

    def build(collections: Sequence[ps.Collection]) -> ps.Collection:
        return ps.motifs(collections[0], pattern, distinct)

    epochs = random_epochs(draw, draw.randrange(1, 7), [[vertices, vertices]], 10)
    expected = partial(matches, pattern=pattern, distinct=distinct, vertices=vertices)
    check([f"src {kind}, dst {kind}"], build, expected, epochs, workers, at_a_time, seed)


def matches(came: list[Multiset], pattern: str, distinct: bool, vertices: list[Any]) -> Multiset:
    """All ways to put vertices in the places of a pattern's."""
    parsed = ps.graph.parse_pattern(pattern)
    edges = {row for row, n in came[0].items() if n > 0 and None not in row}
    found: Multiset = Counter()
    for chosen in product([v for v in vertices if v is not None], repeat=len(parsed.names)):
        is_match = all((chosen[a], chosen[b]) in edges for a, b in parsed.edges)
        if distinct and len(set(chosen)) < len(chosen):
            continue
        if is_match and not any((chosen[a], chosen[b]) in edges for a, b in parsed.absent):
            found[tuple(chosen[n] for n in parsed.outputs)] += 1
    return found


DELTA = [
    (["a long, b long?", "b byte?, c string", "c string, d long"], ["R.b = S.b", "S.c = T.c"]),
    (["a long, b long", "a long, c long?", "a byte, d string?"], "a"),
    (["a long, b long", "b long, c long", "c long, a long"], ["R.b = S.b", "S.c=T.c", "T.a=R.a"]),
    (["a long, b long", "x long, b string", "y long, c long"], ["R.a = S.x", "R.b = T.y"]),
]


def check_delta(seed: int, workers: int, at_a_time: int) -> None:
    """A delta join of three relations."""
    draw = random.Random(seed)
    schemas, on = draw.choice(DELTA)
    if schemas is DELTA[3][0]:
        schemas = [schemas[0], schemas[1].replace("b string", "e string"), schemas[2]]
    variables = [[column.split()[0] for column in schema.split(", ")] for schema in schemas]
    same = {"x": "a", "y": "b"}
    names = [[same.get(v, v) for v in own] for own in variables]
    values = []
    for schema in schemas:
        columns: list[list[Any]] = []
        for column in schema.split(", "):
            some: list[Any] = ["", "x"] if "string" in column else [0, 1, 5]
            columns.append([*some, None] if "?" in column else some)
        values.append(columns)

    def build(collections: Sequence[ps.Collection]) -> ps.Collection:
        if isinstance(on, str):
            return ps.delta_join(list(collections), on)
        return ps.delta_join(dict(zip("RST", collections, strict=True)), on)

    def expected(came: list[Multiset]) -> Multiset:
        outputs = list(dict.fromkeys(v for own in names for v in own))
        return natural_join(list(zip(came, names, strict=True)), outputs)

    epochs = random_epochs(draw, draw.randrange(1, 7), values, 8)
    check(schemas, build, expected, epochs, workers, at_a_time, seed)
