"""Planted bugs in shared arrangements and joins of several, which random programs catch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.delta_joins import check_delta, check_generic, check_motifs
from tests.collections.hunting import from_seed, planted_in, without_shrinking
from tests.collections.trace_handles import check_as_of, check_flights, check_imports

numbers = st.integers(0, 1 << 30)


@from_seed(8)
@without_shrinking
@given(st.sampled_from([check_delta, check_generic]), numbers, st.sampled_from([1, 2]))
def by_joins(check: object, number: int, workers: int) -> None:
    """Joins of several relations, several epochs under way."""
    check(number, workers, 1 + number % 7)  # type: ignore[operator]  # it is a function


@from_seed(9)
@without_shrinking
@given(numbers, st.sampled_from([1, 2]))
def by_motifs(number: int, workers: int) -> None:
    """Patterns on small graphs."""
    check_motifs(number, workers, 1 + number % 3)


@from_seed(10)
@without_shrinking
@given(numbers, st.sampled_from([1, 2]))
def by_imports(number: int, workers: int) -> None:
    """Arrangements in a dataflow that begins later."""
    check_imports(number, workers, 1 + number % 7)


@from_seed(11)
@without_shrinking
@given(numbers, st.sampled_from([1, 2]))
def by_handles(number: int, workers: int) -> None:
    """Arrangements as of a time."""
    check_as_of(number, workers, 1 + number % 7)


few = st.integers(0, 6)


@from_seed(12)
@without_shrinking
@given(few, few, few, few)
def by_flights(n_seen: int, n_under_way: int, n_later: int, n_acknowledged: int) -> None:
    """Imports that are made while batches are under way."""
    check_flights(n_seen, n_under_way, n_later, n_acknowledged)


SHARED_MUTANTS = [
    *planted_in(
        "collections.join_queries",
        by_joins,
        [
            (
                "A half join reads before the time where it should read up to it.",
                "return HalfSide(arrangement, through=atom < start)",
                "return HalfSide(arrangement, through=False)",
            ),
            (
                "A half join reads up to the time where it should read before it.",
                "return HalfSide(arrangement, through=atom < start)",
                "return HalfSide(arrangement, through=True)",
            ),
            (
                "Records of fewer columns count as often as those that they are of.",
                "self._support(relation).select(*columns).distinct()",
                "self._support(relation).select(*columns)",
                3,
            ),
            (
                "Of records that are fewer than none, what they have in common with others goes.",
                "return self._supports[id(collection)]",
                "return collection",
                10,
            ),
            (
                "A null is equal to a null.",
                "nullable = [c for c in own if schema.column(c).nullable]",
                "nullable = [c for c in own if schema.column(c).nullable][1:]",
            ),
        ],
    ),
    *planted_in(
        "collections.loop_joins",
        by_motifs,
        [
            (
                "In a loop what is to be absent may be there.",
                "for relation in missing:",
                "for relation in []:",
            ),
            (
                "In a loop vertices that are to differ may be the same.",
                "if variable not in known:",
                "if False:",
                8,
            ),
        ],
    ),
    *planted_in(
        "collections.delta_plan",
        by_joins,
        [
            (
                "A relation all of whose variables are bound is taken to be there.",
                "            if bound.issuperset(atoms[number].variables):\n"
                "                steps.append(Weigh(number))",
                "            if bound.issuperset(atoms[number].variables):",
                3,
            ),
        ],
    ),
    *planted_in(
        "collections.half_join",
        by_joins,
        [
            (
                "What is read is let go of before what may still ask for it.",
                "reader.acknowledge(min(least))",
                "reader.acknowledge(max(least) + 1)",
            ),
            (
                "Values that one relation proposes are those of all.",
                "rows = weigh(rows, reads(side), np.array([*key, value], np.int32), False)",
                "rows = rows.copy()",
                2,
            ),
            (
                "Only the first pieces of what is looked up go on.",
                "while begin < len(by_key):",
                "if begin < len(by_key):",
                10,
            ),
        ],
    ),
    *planted_in(
        "collections.join_fuel",
        by_joins,
        [
            (
                "A time is over for readers while pieces of it are to come.",
                "self._activate()\n            return n",
                "self._activate(), [reader.finish(held.time) for reader in readers]\n"
                "            return n",
                8,
            ),
        ],
    ),
    *planted_in(
        "collections.half_join",
        by_motifs,
        [
            (
                "An edge that must be absent comes, and matches come with it.",
                "start = negated(rows) if query.negated else rows",
                "start = rows",
            ),
            (
                "On several workers an absent edge counts as a present one.",
                "return Updates(negated(rows) if query.negated else rows, own)",
                "return Updates(rows, own)",
            ),
            (
                "Only the first of many extensions go on.",
                "while begin < len(rows):",
                "if begin < len(rows):",
            ),
            (
                "Vertices differ in all places.",
                "(rows[:, self._others] != rows[:, [self._place]]).all(axis=1)",
                "(rows[:, self._others] != rows[:, [self._place]]).any(axis=1)",
            ),
        ],
    ),
    *planted_in(
        "collections.trace_import",
        by_flights,
        [
            (
                "Batches in flight come once more though the shared trace has overtaken them.",
                "if self._newest is None or not self._spine.less_equal(time, self._newest):",
                "if True:",
            ),
        ],
    ),
    *planted_in(
        "collections.trace_import",
        by_imports,
        [
            (
                "What is not complete when an import is made is left out of it.",
                "for time, rows in self._spine.listed():",
                "for time, rows in [b for b in self._spine.listed() if upper and b[0] < upper]:",
            ),
            (
                "Batches that come after an import are skipped.",
                "if self._newest is None or not self._spine.less_equal(time, self._newest):",
                "if self._newest is None:",
            ),
            (
                "An import promises that all is there when a batch of that time is under way.",
                "held[0].downgrade(found.upper)",
                "held[0].downgrade(found.upper + 1)",
            ),
        ],
    ),
    *planted_in(
        "collections.exported_trace",
        by_handles,
        [
            (
                "What a handle may still read is merged.",
                "        self._since = time\n        self._reader.acknowledge(time)",
                "        self._since = time\n        self._reader.acknowledge(time + 2)",
            ),
            (
                "A time is read that is not complete.",
                "return self.upper is None or not self.spine.less_equal(self.upper, time)",
                "return True",
            ),
            (
                "A handle reads what is before the time.",
                "return self._reader.through(time)",
                "return self._reader.before(time)",
            ),
        ],
    ),
]
