"""Random programs with loops over collections, one in another, and their recomputing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import tests.collections.ordered_programs  # noqa: F401  (some of its forms are in loops)
from pointstamp.collections.schema import schema_of
from tests.collections.programs import FORMS, SCHEMA, Multiset, Program, Step, positive, programs

_IN_LOOPS = [
    *("aggregate", "concat", "distinct", "filter", "intersect", "join", "leastof", "less"),
    *(
        "outerjoin",
        "ordered",
        "over",
        "reduce",
        "semi",
        "shift",
        "statistics",
        "subtract",
        "topk",
        "whole",
    ),
]


@dataclass(frozen=True)
class Loop:
    """A step that is a loop: its body reads what goes round, and all that was made before it."""

    body: tuple[Any, ...]
    read: int
    limit: int

    def __repr__(self) -> str:
        return f"Loop({list(self.body)}, read={self.read}, limit={self.limit})"

    def build(self, made: Sequence[Any]) -> Any:
        """With the operators; the body ends with the distinct records."""

        def body(found: Any) -> Any:
            return build_steps(self.body, [*made, found]).distinct()

        # What goes round may be null where all may.
        start = made[self.read % len(made)].as_schema(schema_of(SCHEMA), "Start")
        return start.iterate(body, limit=self.limit)

    def compute(self, made: Sequence[Multiset]) -> Multiset:
        """In plain Python."""
        found = made[self.read % len(made)]
        for _ in range(self.limit):
            result = compute_steps(self.body, [*made, found])
            found = Counter(dict.fromkeys(positive(result), 1))
        return found


def build_steps(steps: Sequence[Any], made: list[Any]) -> Any:
    """The last of what steps make, with the operators."""
    for step in steps:
        if isinstance(step, Loop):
            made.append(step.build(made))
        else:
            chosen = [made[at % len(made)] for at in step.reads]
            made.append(FORMS[step.name].build(*chosen, step.number))
    return made[-1]


def compute_steps(steps: Sequence[Any], made: list[Multiset]) -> Multiset:
    """The same in plain Python."""
    for step in steps:
        if isinstance(step, Loop):
            found = step.compute(made)
        else:
            chosen = [made[at % len(made)] for at in step.reads]
            found = FORMS[step.name].compute(*chosen, step.number)
        made.append(Counter({row: n for row, n in found.items() if n}))
    return made[-1]


class LoopProgram(Program):
    """A program with a loop among its steps."""

    def build(self, inputs: Sequence[Any]) -> Any:
        return build_steps(self.steps, list(inputs))

    def compute(self, inputs: Sequence[Multiset]) -> Multiset:
        return compute_steps(self.steps, [Counter(each) for each in inputs])


@st.composite
def _bodies(draw: Any, n_made: int, depth: int) -> tuple[Any, ...]:
    steps: list[Any] = []
    for place in range(draw(st.integers(1, 3))):
        n = n_made + 1 + place
        if depth > 1 and draw(st.integers(0, 2)) == 0:
            inner = draw(_bodies(n, depth - 1))
            steps.append(Loop(inner, draw(st.integers(0, n - 1)), draw(st.integers(1, 3))))
            continue
        name = draw(st.sampled_from([*_IN_LOOPS, "join", "join", "semi"]))
        # What goes round is read more often than the rest.
        places = st.sampled_from([*range(n), n_made, n_made, n - 1])
        reads = tuple(draw(places) for _ in range(FORMS[name].n_inputs))
        steps.append(Step(name, reads, draw(st.integers(0, 11))))
    return tuple(steps)


@st.composite
def loop_programs(draw: Any, depth: int = 2) -> LoopProgram:
    """A program whose last step but one at most is a loop, with loops in it."""
    plain = draw(programs(max_steps=2))
    n_made = plain.n_inputs + len(plain.steps)
    loop = Loop(
        draw(_bodies(n_made, depth)), draw(st.integers(0, n_made - 1)), draw(st.integers(1, 4))
    )
    return LoopProgram(plain.n_inputs, [*plain.steps, loop], plain.epochs)
