"""How times advance from the inputs of an operator to its outputs, as it is built port by port.

Most operators say nothing of it and are of one shape, and a thousand ports have a million ways.
So rows that are alike are one object, and what operators of a scope have in common is shared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from pointstamp.errors import BuildError
from pointstamp.progress.antichain import Antichain
from pointstamp.progress.operate import distinct_rows
from pointstamp.progress.timestamp import Timestamp, summary_less_equal

Connections = Sequence[Any] | Mapping[int, Any]
"""How times advance between one port and those of the other side, by their number."""

Rows = list[dict[int, Antichain]]
"""Per input, the summaries of the ways to the outputs."""

FEW_WAYS = 2
"""Of inputs with so many ways, which nearly all have, what says so is shared."""

STAYS = object()
"""The summary of a way that leaves times as they are, whatever type they are of."""


class Ways:
    """What is said of the ways through an operator.

    Parameters
    ----------
    name : of the operator, for errors
    timestamp : of its scope
    shared : what operators of the scope have in common, by what is said of it
    """

    def __init__(self, name: str, timestamp: Timestamp, shared: dict[Any, Any]) -> None:
        self._name = name
        self._timestamp = timestamp
        self._shared = shared
        self._said: dict[int, dict[int, Any]] = {}
        """By input and output: the summary."""
        self._inputs_by_default: set[int] = set()
        """Of which nothing was said: there is a way to each output that was there before."""
        self._outputs_by_default: list[int] = []
        """Likewise: there is a way from each input that was there before."""
        self._n_outputs_before: list[int] = []
        """Per input: how many outputs there were before it."""
        self._n_outputs = 0

    def add_input(self, summaries: Connections | None) -> None:
        """One more input, and its ways to the outputs so far; None for one to each."""
        port = len(self._n_outputs_before)
        self._n_outputs_before.append(self._n_outputs)
        if summaries is None:
            self._inputs_by_default.add(port)
            return
        for output, summary in self._by_port("input", port, self._n_outputs, summaries):
            self.connect(port, output, summary)

    def add_output(self, summaries: Connections | None) -> None:
        """One more output, and its ways from the inputs so far; None for one from each."""
        port = self._n_outputs
        self._n_outputs += 1
        if summaries is None:
            self._outputs_by_default.append(port)
            return
        n_inputs = len(self._n_outputs_before)
        for input_, summary in self._by_port("output", port, n_inputs, summaries):
            self.connect(input_, port, summary)

    def _by_port(
        self, side: str, port: int, n_others: int, summaries: Connections
    ) -> Iterable[tuple[int, Any]]:
        if isinstance(summaries, Mapping):
            return summaries.items()
        if not isinstance(summaries, Sequence) or isinstance(summaries, str):
            raise BuildError(
                f"the summaries for {side} {port} of operator {self._name!r} are a list, with one "
                "for each port so far on the other side, or a mapping by their numbers; found "
                f"{summaries!r:.200}"
            )
        if len(summaries) != n_others:
            raise BuildError(
                f"{side} {port} of operator {self._name!r} has one summary for each port so far on "
                f"the other side, of which there are {n_others}; found {len(summaries)}"
            )
        return enumerate(summaries)

    def connect(self, input_: int, output: int, summary: Any) -> None:
        """Say how times advance from one input to one output.

        Raises
        ------
        BuildError
            If there is no such input, or no such output.
        """
        n_inputs = len(self._n_outputs_before)
        if not (_is_port(input_, n_inputs) and _is_port(output, self._n_outputs)):
            raise BuildError(
                f"there is no way from input {input_!r} to output {output!r} of operator "
                f"{self._name!r}: ports are numbered from 0; inputs: {n_inputs}, outputs: "
                f"{self._n_outputs}"
            )
        self._said.setdefault(input_, {})[output] = summary

    def finish(self, is_shared: bool) -> tuple[Rows, list[set[int]]]:
        """Per input the ways, and the outputs at which times arrive as they are.

        Where nothing is said, that is what another operator has, of one shape; `is_shared` says
        whether operators may have one table.
        """
        n_ports = max(len(self._n_outputs_before), self._n_outputs)
        is_plain = is_shared and not self._said and n_ports <= FEW_WAYS
        shape: Any = None
        if is_plain:
            by_default = tuple(sorted(self._inputs_by_default)), tuple(self._outputs_by_default)
            shape = ("ways", tuple(self._n_outputs_before), *by_default)
            known: tuple[Rows, list[set[int]]] | None = self._shared.get(shape)
            if known is not None:
                return known
        # One for all ways that leave times as they are, in the whole scope: it never changes.
        stays = self._shared.get(STAYS) or self._shared.setdefault(
            STAYS, self._antichain(self._timestamp.identity)
        )
        table = self._default_rows(stays)
        for input_, ways in self._said.items():
            row = table[input_] = dict(table[input_])
            for output, summary in ways.items():
                row.pop(output, None)
                paths = stays if summary is STAYS else self._antichain(summary)
                if len(paths):
                    row[output] = paths
        by_row = {id(row): self._shared_set(row) for row in distinct_rows(table)}
        found = table, [by_row[id(row)] for row in table]
        if is_plain:
            self._shared[shape] = found
        return found

    def _default_rows(self, stays: Antichain) -> Rows:
        """The ways of which nothing was said: one dictionary for all inputs with the same."""
        by_default = self._outputs_by_default
        rows: dict[tuple[bool, int], dict[int, Antichain]] = {}
        table = []
        for input_, before in enumerate(self._n_outputs_before):
            n_before = bisect_left(by_default, before)
            if input_ in self._inputs_by_default:
                # All but those later ones of which something was said.
                key = True, before - n_before
                outputs: Iterable[int] = chain(range(before), by_default[n_before:])
            else:
                key = False, n_before
                outputs = by_default[n_before:]
            if key not in rows:
                row = dict.fromkeys(outputs, stays)
                # What says more of a way does it to a copy, so operators share them.
                is_small = len(row) <= FEW_WAYS
                rows[key] = self._shared.setdefault(("row", *row), row) if is_small else row
            table.append(rows[key])
        return table

    def _shared_set(self, row: Mapping[int, Antichain]) -> set[int]:
        """`staying`, as a set of the whole scope where it is small."""
        found = staying(row, self._timestamp.identity)
        if len(found) > FEW_WAYS:
            return found
        kept: set[int] = self._shared.setdefault(("stays", *sorted(found)), found)
        return kept

    def _antichain(self, summary: Any) -> Antichain:
        summaries = summary if isinstance(summary, list) else [] if summary is None else [summary]
        return Antichain(summary_less_equal, map(self._timestamp.summary, summaries))


def _is_port(number: object, n_ports: int) -> bool:
    return isinstance(number, int) and 0 <= number < n_ports


def staying(row: Mapping[int, Antichain], identity: Any) -> set[int]:
    """The outputs at which times of an input arrive as they are."""
    return {output for output, paths in row.items() if list(paths) == [identity]}
