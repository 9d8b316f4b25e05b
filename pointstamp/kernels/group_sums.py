"""Groups by key with sums: how many records each has, and of which values what sum.

What is kept suffices to answer, so updates are taken in as they come, in any order, and each
group that they touch is looked up once for each. The table of keys and sums stays from call
to call, so this is a class and no function: `GroupSums` is the compiled one where there is
one, and its plain twin else.

Source: differential-dataflow `operators/count.rs`, `count_total`, whose counts are looked up
in an arrangement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.consolidation import Rows
from pointstamp.kernels.forms import class_of

Plan = npt.NDArray[np.int64]
"""int64[a, 5], a row for each answer: its `SumForm`; which word of an update is the value; which
is 0 where the value is null, or -1; whether the answer may be null; and a unit: beyond which
magnitude a sum is refused (0: 64 bits), by what an average is divided, or of a first value -1 where
the greatest comes first, else 0."""

_LOOK = 2
"""What a first value is has to be looked for."""
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_BEYOND = 1 << 127


class SumForm(IntEnum):
    """What an answer is, in the order of the loop's constants."""

    RECORDS = 0
    VALUES = 1
    SUM = 2
    AVERAGE = 3
    FIRST = 4
    """The first value, in order or turned round."""


_N_WORDS = {
    SumForm.RECORDS: 0,
    SumForm.VALUES: 1,
    SumForm.SUM: 3,
    SumForm.AVERAGE: 3,
    SumForm.FIRST: 2,
}
"""How many words of a group's state an answer has."""


class SumOverflow(OverflowError):
    """A sum that cannot be answered; `place` is that of the answer, or -1 of a count.

    `total` and `key` are the sum and the words of the key of its group.
    """

    def __init__(self, place: int, total: int, key: list[int]) -> None:
        super().__init__(f"the sum {total} of the group {key} is beyond what is kept or answered")
        self.place = place
        self.total = total
        self.key = key


class PlainGroupSums:
    """How many records groups have, and sums of their values.

    Parameters
    ----------
    n_key : int
        How many words a key has, one at least; they are the first of each update.
    n_words : int
        How many words an update has, without the diff.
    plan : int64[a, 5]

    >>> counts = GroupSums(1, 1, np.array([[SumForm.RECORDS, 0, -1, 0, 0]]))
    >>> counts.update([np.array([[7, 1], [8, 1], [7, 1]])]).tolist()
    [[7, 2, 1], [8, 1, 1]]
    >>> counts.update([np.array([[8, -1]]), np.array([[7, 1]])]).tolist()
    [[8, 1, -1], [7, 2, -1], [7, 3, 1]]
    """

    def __init__(self, n_key: int, n_words: int, plan: Plan) -> None:
        self._n_key = n_key
        self._n_words = n_words
        self._plan: list[list[int]] = plan.tolist()
        self._groups: dict[tuple[int, ...], list[int]] = {}
        self.n_passed = 0
        """How many entries of batches were read to find first values."""

    def __len__(self) -> int:
        return len(self._groups)

    def update(self, parts: list[Rows], values: Sequence[list[Rows]] = ()) -> Rows:
        """Take in the updates of a time, several int64[n, w + 1] in any order.

        Parameters
        ----------
        values : sequence of list of int64[n, k + 2]
            For each first value batches of all values, those of `parts` with them: consolidated
            rows of a key, a value (turned round where the greatest comes first), and a diff. At
            most 64.

        Returns
        -------
        int64[m, v + 1]
            The changes of the rows of groups that are there: the words of the key, then of each
            answer its word, with 0 or 1 before it where it may be null. No two are equal.

        Raises
        ------
        SumOverflow
        """
        before: dict[tuple[int, ...], list[int]] = {}
        for rows in parts:
            if rows.shape[1] != self._n_words + 1:
                raise ValueError(
                    f"updates of groups have {self._n_words} words, and not {rows.shape[1] - 1}"
                )
            for row in rows.tolist():
                key = tuple(row[: self._n_key])
                sums = self._groups.setdefault(key, [0] * (1 + 2 * len(self._plan)))
                before.setdefault(key, list(sums))
                self._add(key, sums, row)
        changes: list[list[int]] = []
        for key, old in before.items():
            sums = self._groups[key]
            self._look(key, sums, values)
            was = [*key, *self._answers(key, old)] if old[0] > 0 else []
            now = [*key, *self._answers(key, sums)] if sums[0] > 0 else []
            if was != now:
                changes += [[*row, diff] for row, diff in ((was, -1), (now, 1)) if row]
            if not any(sums):
                del self._groups[key]
        width = self._n_key + sum(2 if nullable else 1 for *_, nullable, _ in self._plan) + 1
        return np.array(changes, np.int64).reshape(len(changes), width)

    def dump(self) -> Rows:
        """What is kept of each group, int64[g, k + s]: the words of its key, and its state.

        The state is how many records there are, then for each answer nothing (`RECORDS`), how many
        values (`VALUES`), that and the lower and the upper word of their sum, or whether there is a
        first value, and that.
        """
        rows = [[*key, *self._state(sums)] for key, sums in self._groups.items()]
        return np.array(rows, np.int64).reshape(len(rows), self._n_key + self._n_state())

    def load(self, rows: Rows) -> None:
        """Take in what `dump` gave, where there are no groups yet."""
        if rows.shape[1] != self._n_key + self._n_state():
            raise ValueError(
                f"groups have {self._n_key + self._n_state()} words, and not {rows.shape[1]}"
            )
        for row in rows.tolist():
            self._groups[tuple(row[: self._n_key])] = self._sums(row[self._n_key :])

    def _n_state(self) -> int:
        return 1 + sum(_N_WORDS[SumForm(form)] for form, *_ in self._plan)

    def _state(self, sums: list[int]) -> list[int]:
        state = sums[:1]
        for place, (form, *_) in enumerate(self._plan):
            n, total = sums[1 + 2 * place : 3 + 2 * place]
            if form == SumForm.FIRST:
                state += [n, total]
                continue
            lower = total & ((1 << 64) - 1)
            words = [n, lower - (1 << 64) if lower >> 63 else lower, total >> 64]
            state += words[: _N_WORDS[SumForm(form)]]
        return state

    def _sums(self, state: list[int]) -> list[int]:
        sums, at = state[:1], 1
        for form, *_ in self._plan:
            n_words = _N_WORDS[SumForm(form)]
            words = state[at : at + n_words] + [0] * (3 - n_words)
            if form == SumForm.FIRST:
                words[2] = -1 if words[1] < 0 else 0
            sums += [words[0], (words[2] << 64) + (words[1] & ((1 << 64) - 1))]
            at += n_words
        return sums

    def _add(self, key: tuple[int, ...], sums: list[int], row: list[int]) -> None:
        diff = row[-1]
        sums[0] += diff
        if not _LEAST <= sums[0] <= _GREATEST:
            raise SumOverflow(-1, sums[0], list(key))
        for place, (form, value, flag, _, unit) in enumerate(self._plan):
            if form == SumForm.RECORDS or (flag >= 0 and not row[flag]):
                continue
            if form == SumForm.FIRST:
                known, first = sums[1 + 2 * place : 3 + 2 * place]
                if not known or row[value] ^ unit <= first:
                    sums[1 + 2 * place : 3 + 2 * place] = [_LOOK, row[value] ^ unit]
                continue
            sums[1 + 2 * place] += diff
            if not _LEAST <= sums[1 + 2 * place] <= _GREATEST:
                raise SumOverflow(-1, sums[1 + 2 * place], list(key))
            if form != SumForm.VALUES:
                sums[2 + 2 * place] += row[value] * diff
                if not -_BEYOND <= sums[2 + 2 * place] < _BEYOND:
                    raise SumOverflow(place, sums[2 + 2 * place], list(key))

    def _look(self, key: tuple[int, ...], sums: list[int], values: Sequence[list[Rows]]) -> None:
        """Look for first values where they may be other ones."""
        firsts = [place for place, plan in enumerate(self._plan) if plan[0] == SumForm.FIRST]
        for place, batches in zip(firsts, values, strict=True):
            known, least = sums[1 + 2 * place : 3 + 2 * place]
            if known != _LOOK:
                continue
            counts: Counter[int] = Counter()
            for rows in batches:
                for *found, value, diff in rows.tolist():
                    if tuple(found) == key and value >= least:
                        counts[value] += diff
            there = sorted(value for value, n in counts.items() if n > 0)
            self.n_passed += sum(
                tuple(found) == key and least <= value <= (there or [value])[0]
                for rows in batches
                for *found, value, _ in rows.tolist()
            )
            sums[1 + 2 * place : 3 + 2 * place] = [1, there[0]] if there else [0, 0]

    def _answers(self, key: tuple[int, ...], sums: list[int]) -> list[int]:
        answers: list[int] = []
        for place, (form, _, _, nullable, unit) in enumerate(self._plan):
            n, total = sums[1 + 2 * place : 3 + 2 * place]
            there = n != 0 or form < SumForm.SUM
            word = (sums[0], n, total)[min(form, SumForm.SUM)]
            if form == SumForm.FIRST:
                word = total ^ unit
            if form == SumForm.AVERAGE:
                word = _word(total / (n * unit)) if there else 0
            elif form == SumForm.SUM and there:
                beyond = abs(total) >= unit if unit else not _LEAST <= total <= _GREATEST
                if beyond:
                    raise SumOverflow(place, total, list(key))
            if nullable:
                answers.append(int(there))
            answers.append(word if there else 0)
        return answers


def _word(value: float) -> int:
    """The word of a float that is finite, as `containers/words.py` has it."""
    bits = int(np.float64(value + 0.0).view(np.int64))
    return bits if bits >= 0 else bits ^ _GREATEST


GroupSums: type[PlainGroupSums] = class_of("group_loops", PlainGroupSums)
