"""Loops of collections: which scope a collection is in, and `iterate`.

A loop repairs the rounds that a change makes differ, and no others; where none differs any more it
has ended. What goes round is consolidated. Otherwise updates that cancel would go round for
ever.

Source: differential-dataflow `operators/iterate.rs`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pointstamp.collections.beside import beside_of
from pointstamp.collections.explained_loop import ExplainedLoop
from pointstamp.collections.lattice import TimeEncoding
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, LoopWarning, SchemaError
from pointstamp.operators.feedback import Loop
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.operators.user_code import check_function
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection
    from pointstamp.collections.expression import Expression
    from pointstamp.collections.schema import Schema

_MOST_SHOWN = 3

_LOOP: ContextVar[Any] = ContextVar("loop", default=None)
"""The scope of the loop whose body is being built."""


class LoopMethods:
    """What a collection has to do with loops."""

    schema: Schema
    _entered: dict[Any, Any]
    _explained: ExplainedLoop | None

    @property
    def stream(self) -> StreamCore[Any]:
        """Its updates."""
        raise NotImplementedError

    @property
    def scope(self) -> Any:
        """Where it changes."""
        return self.stream.scope

    def enter(self, inner: Any) -> Self:
        """This collection inside `inner`, a child of its scope.

        Operators do it by themselves for what they are given of a scope around theirs.

        Raises
        ------
        BuildError
            If `inner` is not directly in this collection's scope.
        """
        if inner not in self._entered:
            entering: Any = self.stream.enter(inner)
            loop = beside_of(inner).closing.get(inner)
            if loop is not None and not loop.connected:
                entering = loop.admit(entering)
            self._entered[inner] = self.of(entering, self.schema)
        entered: Self = self._entered[inner]
        return entered

    def leave(self) -> Self:
        """This collection in the parent of its scope, as it is when its loop has ended.

        Raises
        ------
        BuildError
            If it is of the outermost scope.
        """
        outside: Self = self.of(self.stream.leave(), self.schema)
        return outside

    def enter_at(self, inner: Any, *, round: Expression, name: str = "EnterAt") -> Collection:
        """This collection inside `inner`, with each record appearing in its own round.

        What enters later goes round less often, which helps where it is likely to be replaced
        by what the others come to.

        Parameters
        ----------
        round : expression
            An integer; below 0 it is 0. The same for the same record.
        """
        bound = round.bind(self.schema)
        if bound.type.is_text or bound.type.is_float or bound.nullable:
            raise SchemaError(
                f"operator {name!r}: {round} is {bound.type.name}"
                f"{'?' if bound.nullable else ''}, and should be an integer"
            )
        collection: Any = self
        return _entered_at(collection, inner, lambda rows: bound.evaluate(rows)[0], name)

    def iterate(
        self,
        body: Callable[[Collection], Collection],
        *,
        limit: int | None = None,
        expect: int | None = None,
        consolidate: bool = True,
        explain: bool = False,
        name: str = "Iterate",
    ) -> Collection:
        """The fixpoint of `body`, starting from this collection.

        When this collection or another that `body` uses changes, the rounds that
        differ are computed again, and no others. Collections of scopes around enter the loop
        where `body` uses them. Loops nest.

        Parameters
        ----------
        body : callable
            From a collection to one with the same columns.
        limit : int, optional
            It is applied so many times at most.
        expect : int, optional
            Warn (`LoopWarning`) if something still changes after so many rounds.
        consolidate : bool
            Whether what goes round is consolidated. A loop without it may never end.
        explain : bool
            Whether it is counted how many records change in each round; see `changed_rounds`.

        Raises
        ------
        SchemaError
            If `body` makes other columns than it is given.

        >>> import pointstamp as ps
        >>> from pointstamp import col
        >>> def reach(scope, edges, roots):
        ...     def step(found):
        ...         further = found.join(edges, left_on="node", right_on="src")
        ...         return further.select(node="dst").concat(roots).distinct()
        ...     return roots.iterate(step)
        >>> view = ps.View(reach, edges="src long, dst long", roots="node long")
        >>> view.insert("edges", [(1, 2), (2, 3), (3, 1), (4, 5)])
        >>> view.insert("roots", [(1,)])
        >>> view.advance()
        [((1,), 1), ((2,), 1), ((3,), 1)]
        >>> view.delete("edges", [(2, 3)])
        >>> view.advance()
        [((3,), -1)]
        """
        check_function(body, name)
        collection: Any = self
        explained = ExplainedLoop(name) if explain else None
        return _iterated(collection, body, limit, expect, consolidate, explained, name)

    def changed_rounds(self) -> dict[Any, list[int]]:
        """How many records changed in each round of the loop that this collection came out of.

        Of this worker, by epoch (in a loop in a loop by the time outside of it), of the last
        1,024 that changed something; to be asked outside of the dataflow. A record that is
        replaced counts twice, as a deletion and an insertion.

        Raises
        ------
        BuildError
            If it is not what `iterate(..., explain=True)` gave.
        """
        if self._explained is None:
            raise BuildError(
                "changed_rounds is asked of a collection that did not come out of a loop with "
                "explain=True: ask what iterate(..., explain=True) gives"
            )
        return {epoch: list(counts) for epoch, counts in self._explained.changed.items()}

    def of(self, stream: StreamCore[Any], schema: Schema) -> Any:
        """A collection of a stream of updates."""
        raise NotImplementedError


def _outermost(scope: Any) -> Any:
    return scope if scope.parent is None else _outermost(scope.parent)


def brought_into(collection: Any, scope: Any) -> Any:
    """A collection in `scope`, which is its own or one in it.

    Raises
    ------
    BuildError
        If it is neither, or `scope` is a loop that is complete.
    """
    if scope.closed and scope.parent is not None:
        raise BuildError(
            f"a collection of {scope.path} is used outside of it; "
            "take it out of its loop by leave()"
        )
    path = [scope]
    while path[-1] is not collection.scope:
        if path[-1].parent is None:
            if _outermost(collection.scope) is not path[-1]:
                raise BuildError(
                    f"a collection of {collection.scope.path} cannot be used in another dataflow; "
                    "build both in one, or import the trace() of what arrange() gives"
                )
            raise BuildError(
                f"a collection of {collection.scope.path} cannot be used in {scope.path}, which is "
                "not in it; take it out of its loop by leave()"
            )
        path.append(path[-1].parent)
    for inner in reversed(path[:-1]):
        collection = collection.enter(inner)
    return collection


def brought_together(collections: Sequence[Any]) -> list[Any]:
    """Collections in the innermost scope among theirs."""
    innermost = max((collection.scope for collection in collections), key=_n_around)
    return [brought_into(collection, innermost) for collection in collections]


def is_in(scope: Any, outer: Any) -> bool:
    """Whether `scope` is `outer`, or one inside it."""
    while scope is not outer and scope.parent is not None:
        scope = scope.parent
    return scope is outer


def _n_around(scope: Any) -> int:
    n = 0
    while scope.parent is not None:
        scope = scope.parent
        n += 1
    return n


def _iterated(
    start: Collection,
    body: Callable[[Collection], Collection],
    limit: int | None,
    expect: int | None,
    consolidate: bool,
    explained: ExplainedLoop | None,
    name: str,
) -> Collection:
    if expect is not None and (type(expect) is not int or expect < 1):
        raise BuildError(f"loop {name!r} is given expect={expect!r}, and needs 1 or more")
    around = _LOOP.get()
    if around is not None and is_in(around, start.scope):
        # In the body of a loop a loop is one of that loop, whatever it starts from.
        start = brought_into(start, around)
    with start.scope.iterative(name=name) as inner:
        loop, stream = inner.feedback(1, limit, name)
        admits_epochs(loop)
        entered = start.enter(inner)
        # At round 0 there is the start; then what the body makes, in place of it.
        token = _LOOP.set(inner)
        try:
            made: Any = body(entered.concat(entered.of(stream, start.schema)))
        finally:
            _LOOP.reset(token)
        if not isinstance(made, LoopMethods):
            raise BuildError(
                f"the body of loop {name!r} should return a Collection, and returned {made!r}"
            )
        result = of_schema(brought_into(made, inner), start.schema, name)
        changes = result.concat(entered.negate())
        connect(loop, changes, expect, consolidate, name, explained)
        # What comes out at round 0 is of one application.
        outside: Collection = (entered if limit == 0 else result).leave()
        outside._explained = explained
        if explained is not None:
            beside_of(start.scope).loops.append(explained)
        return outside


def admits_epochs(loop: Loop) -> None:
    """Have what enters the loop's scope from now on wait for epochs that are under way there."""
    scope = loop.scope
    encoding = TimeEncoding(scope.timestamp, scope.path)
    if encoding.depth == 2 and encoding.base is None:
        beside_of(scope).closing.setdefault(scope, loop)


def of_schema(collection: Collection, schema: Schema, name: str) -> Collection:
    """With the columns in another order, and nullable where they are there.

    Raises
    ------
    SchemaError
        If they are not the same columns.
    """
    found = {c.name: c for c in collection.schema.columns}
    wanted = {c.name: c for c in schema.columns}
    fits = found.keys() == wanted.keys() and all(
        c.type == found[c.name].type and c.nullable >= found[c.name].nullable
        for c in schema.columns
    )
    if not fits:
        raise SchemaError(
            f"loop {name!r} goes round with ({schema}), and its body makes "
            f"({collection.schema}): the columns should be the same, and null only where they "
            "may be at first"
        )
    return collection.as_schema(schema, name)


def connect(
    loop: Loop,
    collection: Collection,
    expect: int | None,
    consolidate: bool,
    name: str,
    explained: ExplainedLoop | None = None,
) -> None:
    """Let a collection go round."""
    if consolidate:
        collection = collection.consolidate(name=f"{name}Consolidate")
    if expect is not None:
        collection = collection.each_batch(_watch(expect, collection.schema, name))
    if explained is not None:
        collection = collection.each_batch(explained.note, name=f"{name}Rounds")
    loop.connect(collection.stream)


def _entered_at(
    collection: Collection, inner: Any, round_of: Callable[[Rows], Any], name: str
) -> Collection:
    entered = collection.enter(inner)
    texts = entered.schema.texts

    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        info.keeps_nothing()
        info.states.holds_no_texts()

        def logic(input_: Any, output: Any) -> None:
            for held, batch in input_:
                epoch, first = held.time
                rounds = first + np.maximum(round_of(batch.rows), 0)
                for number in np.unique(rounds).tolist():
                    rows = np.ascontiguousarray(batch.rows[rounds == number])
                    with held.delayed((epoch, number)) as later:
                        output.session(later).give_batch(Updates(rows, texts))

        return logic

    stream = operator([entered.stream], [PIPELINE], name, build, Interest.NEVER)
    made: Collection = entered.of(stream, entered.schema)
    return made


def _watch(expect: int, schema: Schema, name: str) -> Callable[[Any, Updates], None]:
    """Warn of rounds beyond the expected one, and again each time that they double."""
    far = expect

    def look(time: Any, batch: Updates) -> None:
        nonlocal far
        if time[1] + 1 > far and len(batch):
            shown = ", ".join(map(str, schema.to_rows(batch.rows[:_MOST_SHOWN])))
            more = f" and {len(batch) - _MOST_SHOWN} more" if len(batch) > _MOST_SHOWN else ""
            warnings.warn(
                f"loop {name!r} was expected to go round {expect} times, and of {time[0]} still "
                f"changes after {time[1] + 1}: {shown}{more}; give it a limit, or see why it does "
                "not end",
                LoopWarning,
                stacklevel=2,
            )
            far = 2 * (time[1] + 1)

    return look
