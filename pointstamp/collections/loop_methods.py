"""Collections in loops: which scope they are in, and the loop itself. Methods of `Collection`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, SchemaError

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection
    from pointstamp.collections.expression import Expression
    from pointstamp.collections.schema import Schema


class LoopMethods:
    """What a collection has to do with loops."""

    stream: StreamCore[Any]
    schema: Schema
    _entered: dict[Any, Any]

    @property
    def scope(self) -> Any:
        """Where it changes."""
        return self.stream.scope

    def enter(self, inner: Any) -> Self:
        """This collection inside `inner`, a scope of its own scope; made once.

        Operators do it by themselves for what they are given of a scope around theirs.

        Raises
        ------
        BuildError
            If `inner` is not directly in this collection's scope.
        """
        if inner not in self._entered:
            self._entered[inner] = self.of(self.stream.enter(inner), self.schema)
        entered: Self = self._entered[inner]
        return entered

    def leave(self) -> Self:
        """This collection in the scope around its own, as it is when its loop has ended.

        Raises
        ------
        BuildError
            If it is of the outermost scope.
        """
        outside: Self = self.of(self.stream.leave(), self.schema)
        return outside

    def enter_at(self, inner: Any, *, round: Expression, name: str = "EnterAt") -> Collection:
        """This collection inside `inner`, each record from a round of its own on.

        What enters later goes round less often, which helps where it is likely to be replaced
        by what the others come to.

        Parameters
        ----------
        round : expression
            An integer; below 0 it is 0. The same for the same record.
        """
        from pointstamp.collections.fixpoint import entered_at

        bound = round.bind(self.schema)
        if bound.type.is_text or bound.type.is_float or bound.nullable:
            raise SchemaError(
                f"operator {name!r}: {round} is {bound.type.name}"
                f"{'?' if bound.nullable else ''}, and should be an integer"
            )
        collection: Any = self
        return entered_at(collection, inner, lambda rows: bound.evaluate(rows)[0], name)

    def iterate(
        self,
        body: Callable[[Collection], Collection],
        *,
        limit: int | None = None,
        expect: int | None = None,
        consolidate: bool = True,
        name: str = "Iterate",
    ) -> Collection:
        """What `body` comes to when it is applied again and again, until nothing changes.

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
        from pointstamp.collections.fixpoint import iterate

        collection: Any = self
        return iterate(collection, body, limit, expect, consolidate, name)

    def of(self, stream: StreamCore[Any], schema: Schema) -> Any:
        """A collection of a stream of updates."""
        raise NotImplementedError


def brought_into(collection: Any, scope: Any) -> Any:
    """A collection in `scope`, which is its own or one in it.

    Raises
    ------
    BuildError
        If it is neither.
    """
    path = [scope]
    while path[-1] is not collection.scope:
        if path[-1].parent is None:
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
