"""What the operators of a dataflow hold of numbers of texts, as each says when it is built.

A sweep of the dictionary (`containers/text_sweep.py`) asks for it between epochs. So an operator
names what it keeps from one epoch to the next; what waits for a time to be complete is
held with a capability, and while there is one no sweep begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

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
    """

    def __init__(self) -> None:
        self.holdings: list[Holding] = []
        self.unsaid: list[str] = []
        self.waiting: set[str] = set()
