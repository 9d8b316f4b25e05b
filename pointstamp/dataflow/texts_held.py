"""What the operators of a dataflow hold of numbers of texts, as each says when it is built.

A sweep of the dictionary (`containers/text_sweep.py`) asks for it between steps. So an operator
names what it keeps from one time to the next. What is on its way to an operator, or waits in a
stash for a time to be complete, is found without a word of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointstamp.dataflow.operator import Operator

Holding = Callable[[], Iterable[tuple[Any, tuple[int, ...]]]]
"""Gives rows, int64[n, w], that do not change any more, and which words are numbers of texts."""


class TextsHeld:
    """By what the operators of one dataflow have said.

    Attributes
    ----------
    holdings : list of callable
        What those hold that hold something.
    unsaid : list of str
        The operators that have said nothing.
    waiting : set of str
        Outputs, in words, of which a capability may be held without anything that waits for its
        time but what the operator says it holds.
    operators : list of Operator
        All of this worker.
    waiting_with : list of (str, callable)
        By operator: gives what waits there for times to be complete, in lists or as batches.
    constants : set of int
        Numbers that were asked for while the dataflow was built, such as those of texts that
        expressions compare with.
    has_collections : bool
        Whether there may be any numbers in it.
    n_given : int
        How many calls are under way that make numbers of what a program gives to an input, or
        read what has numbers.
    outliving : list of TextsHeld
        What is read from outside of the dataflow, also when that has ended.
    can_be_outlived : bool
        Whether that is asked for as long as it is read.
    is_over : bool
        Whether it need not be asked for any more: the worker has ended, or nothing can read it.
    """

    def __init__(self) -> None:
        self.holdings: list[Holding] = []
        self.unsaid: list[str] = []
        self.waiting: set[str] = set()
        self.operators: list[Operator] = []
        self.waiting_with: list[tuple[str, Callable[[], Iterable[Any]]]] = []
        self.constants: set[int] = set()
        self.has_collections = False
        self.n_given = 0
        self.outliving: list[TextsHeld] = []
        self.can_be_outlived = True
        self.is_over = False
        self._pinning = ExitStack()

    def begin(self, pinning: AbstractContextManager[set[int]]) -> None:
        """There is a collection: from here on numbers that are asked for are constants."""
        self.has_collections = True
        self.constants = self._pinning.enter_context(pinning)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Have numbers that are asked for in a block be no constants: a table has them."""
        before = set(self.constants)
        try:
            yield
        finally:
            self.constants.intersection_update(before)

    def end_building(self) -> None:
        """What is asked for from here on is no constant."""
        self._pinning.close()

    def let_go(self) -> None:
        """Ask no operator any more: the dataflow has ended, and what they keep can go."""
        for said in (self.holdings, self.operators, self.waiting_with):
            said.clear()

    def channels(self) -> Iterator[tuple[int, str]]:
        """(channel, operator) where operators get what peers send."""
        for operator in self.operators:
            for input_ in operator._inputs:
                channel = input_._queue.channel
                if channel is not None:
                    yield channel.id, operator.name

    def why_not_found(self) -> str:
        """Why what is under way between operators cannot be looked through; empty if it can."""
        from pointstamp.dataflow.texts_under_way import NotInMemory

        try:
            self.under_way()
        except NotInMemory as error:
            return str(error)
        return ""

    def all(self) -> list[tuple[Any, tuple[int, ...]]]:
        """What is held by operators, and what is under way between those of this worker."""
        from pointstamp.dataflow.texts_under_way import rows_of

        found = [rows_of(self.constants), *self.under_way()]
        for holding in self.holdings:
            found += holding()
        return found

    def under_way(self) -> list[tuple[Any, tuple[int, ...]]]:
        """What came to operators, and waits in one for a time to be complete.

        What peers send is not among it before it is taken in: from other processes come texts, and
        what comes from threads of this one is looked through for all dataflows at once.

        Raises
        ------
        NotInMemory
            If something cannot be looked through, as what is on disk.
        """
        # Not above: it imports NumPy, and not all workers have collections.
        from pointstamp.dataflow.texts_under_way import rows_in

        found: list[tuple[Any, tuple[int, ...]]] = []
        for operator in self.operators:
            for input_ in operator._inputs:
                found += rows_in(input_.held(), operator.name)
            for output in operator._outputs:
                found += rows_in(output.held(), operator.name)
        for name, waiting in self.waiting_with:
            found += rows_in(waiting(), name)
        return found
