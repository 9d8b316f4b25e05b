"""Words that have the order of texts, whose numbers in the dictionary have none.

A text is in order by three words: its first 15 bytes and its length in two, and a *label*. That is
0 for a text of at most 15 bytes, which is in order already. Longer ones that begin alike
get labels in the order of their bytes, each one between those of its neighbours when it
first comes. A label is never changed, since it is in words that are kept. Where there is no room
left between two, a text gets that of the one before it; both are *shared* from then on,
and what is kept of such texts has to be compared by bytes.

Labels are those of a process, as numbers are. One whose text is freed (`text_sweep.py`) stays for
a while, beside the text, as others were put around it; it is that text's again if that comes again.

Source: order maintenance by labels is Dietz and Sleator's "Two algorithms for maintaining order
in a list", there with labels that are changed.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import defaultdict
from itertools import groupby
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.dictionary import TEXTS, Dictionary, Ints

N_WORDS = 3
"""How many words a text is in order by."""

_N_BYTES = 15
_LONGER = _N_BYTES + 1
_MOST = 1 << 62
_NEAR = 16
"""At least the 2^16th part of the room between two texts is used."""
_APART = 1 << 36
"""How far texts are from each other at least that come behind all others, or before them: 2^27 of
them have room."""
_AT_ONCE = 8
"""Of the room there so many bits are left for what comes later, while it is larger."""
_MOST_RUNS = 32
_MANY = 8
_FEW = 2
_FEWEST_FREED = 1_024
"""Texts that were freed are left where they are until there are more, and as many as others."""


class TextOrder:
    """Words in order for the texts of a dictionary.

    Parameters
    ----------
    most : int
        Labels are from minus so much to it.

    >>> order = TextOrder(TEXTS)
    >>> numbers = TEXTS.numbers([b"b", b"a", b"a long text, the second", b"a long text, the first"])
    >>> words = order.words(np.array(numbers)).tolist()
    >>> words[1] < words[3] < words[2] < words[0]
    True
    """

    def __init__(self, dictionary: Dictionary, most: int = _MOST) -> None:
        self._dictionary = dictionary
        self._most = most
        self._lock = threading.Lock()
        self._labels = np.zeros(0, np.int64)
        self._known = np.zeros(0, np.bool_)
        self._shared = np.zeros(0, np.bool_)
        self._alike: dict[bytes, list[bytes]] = defaultdict(list)
        """By their first bytes: the longer texts that have a label, in order."""
        self._freed: dict[bytes, tuple[int, bool]] = {}
        """Label, and whether it is shared, of those among them that were freed."""
        self._n_labels = 0
        """How many texts have a label, with those."""
        self._runs: dict[tuple[bytes, bool], int] = {}
        """Of some of the last texts that came, and whether greater or less ones went on from there:
        how many times in a row."""

    def words(self, numbers: Ints) -> Ints:
        """The words of texts by their numbers, int64[n, 3]."""
        if not len(numbers):
            return np.empty((0, N_WORDS), np.int64)
        distinct, places = np.unique(numbers, return_inverse=True)
        values = self._dictionary.values(distinct.tolist())
        joined = b"".join(
            value[:_N_BYTES].ljust(_N_BYTES, b"\0") + bytes([min(len(value), _LONGER)])
            for value in values
        )
        words = np.zeros((len(distinct), N_WORDS), np.int64)
        bits = np.frombuffer(joined, ">u8").astype(np.uint64) ^ np.uint64(1 << 63)
        words[:, :2] = bits.view(np.int64).reshape(-1, 2)
        is_long = np.array([len(value) > _N_BYTES for value in values], np.bool_)
        if is_long.any():
            words[is_long, 2] = self._labels_of(distinct[is_long])
        found: Ints = words[places]
        return found

    def are_shared(self, numbers: Ints) -> npt.NDArray[np.bool_]:
        """Whether the words of each text may be those of another one, too."""
        shared = np.zeros(len(numbers), np.bool_)
        known = numbers < len(self._shared)
        shared[known] = self._shared[numbers[known]]
        return shared

    def free(self, numbers: list[int]) -> tuple[list[int], list[Any]]:
        """Free texts in the dictionary, as its `free` does, and what is kept of them here."""
        with self._lock:
            freed, values = self._dictionary.free(numbers)
            places = np.array(freed, np.int64)
            places = places[places < len(self._known)]
            labelled = set(places[self._known[places]].tolist())
            self._known[places] = False
            for number, value in zip(freed, values, strict=True):
                if number in labelled:
                    self._freed[value] = int(self._labels[number]), bool(self._shared[number])
            self._shared[places] = False
            if len(self._freed) > max(_FEWEST_FREED, self._n_labels // 2):
                self._forget_freed()
            return freed, values

    def _forget_freed(self) -> None:
        """Leave out the texts that were freed."""
        for beginning in {text[:_N_BYTES] for text in self._freed}:
            left = [text for text in self._alike[beginning] if text not in self._freed]
            if left:
                self._alike[beginning] = left
            else:
                del self._alike[beginning]
        self._n_labels -= len(self._freed)
        self._freed.clear()

    def _labels_of(self, numbers: Ints) -> Ints:
        """The labels of long texts, distinct and in the order of their numbers."""
        with self._lock:
            self._grow(int(numbers[-1]) + 1)
            new = numbers[~self._known[numbers]]
            if len(new):
                self._known[new] = True
                texts_of_new = self._dictionary.values(new.tolist())
                if self._freed:
                    texts_of_new = self._without_labelled(new.tolist(), texts_of_new)
                self._n_labels += len(texts_of_new)
                by_beginning = sorted(texts_of_new)
                for beginning, texts in groupby(by_beginning, lambda text: text[:_N_BYTES]):
                    self._enter(beginning, list(texts))
            labels: Ints = self._labels[numbers]
            return labels

    def _without_labelled(self, numbers: list[int], texts: list[bytes]) -> list[bytes]:
        """Those that have no label; others were freed, and have theirs again."""
        new = []
        for number, text in zip(numbers, texts, strict=True):
            label = self._freed.pop(text, None)
            if label is None:
                new.append(text)
            else:
                self._labels[number], self._shared[number] = label
        return new

    def _enter(self, beginning: bytes, new: list[bytes]) -> None:
        """Give texts labels that begin alike, are in order, and have none."""
        known = self._alike[beginning]
        for place, texts in groupby(new, lambda text: bisect_left(known, text)):
            self._label(known[max(place - 1, 0) : place], list(texts), known[place : place + 1])
        if len(new) * _MANY > len(known):
            known[:] = sorted([*known, *new])
        else:
            for text in new:
                insort(known, text)

    def _label(self, before: list[bytes], texts: list[bytes], behind: list[bytes]) -> None:
        """Labels for texts between two that have one, or behind or before all that have."""
        low = self._label_of(before[0]) if before else -self._most
        high = self._label_of(behind[0]) if behind else self._most
        n, step = len(texts), (high - low) // (len(texts) + 1)
        numbers = np.array(self._dictionary.numbers(texts), np.int64)
        if step == 0:
            self._labels[numbers] = low
            self._shared[numbers] = True
            for text in before:
                if text in self._freed:
                    self._freed[text] = low, True
                else:
                    self._shared[self._dictionary.number(text)] = True
            return
        if not before or not behind:
            step = min(step, max(step >> _AT_ONCE, _APART))
        elif n >= _MANY:
            # As many may come again on either side of these.
            step = min(step, max(isqrt(step), 1))
        up = self._runs.get((before[0], True), 0) if before else 0
        down = self._runs.get((behind[0], False), 0) if behind else 0
        # Texts that come in order leave the more room where the next is to be expected, the longer
        # they have done so.
        shift = min(1 << max(up, down), _NEAR) if up or down else 0
        near = min(step, max((high - low) >> shift, 1))
        is_run = abs(up - down) > _FEW if n >= _MANY else up + down > 0
        if (is_run and down > up) or (behind and not before):
            first = high - near * n
        elif is_run or (before and not behind):
            first = low + near
        else:
            first = (low + high - near * (n - 1)) // 2
        self._labels[numbers] = [first + near * at for at in range(n)]
        self._runs[texts[-1], True] = up + 1
        self._runs[texts[0], False] = down + 1
        while len(self._runs) > _MOST_RUNS:
            del self._runs[next(iter(self._runs))]

    def _label_of(self, text: bytes) -> int:
        freed = self._freed.get(text)
        return int(self._labels[self._dictionary.number(text)]) if freed is None else freed[0]

    def _grow(self, n: int) -> None:
        """New arrays where they are too short: others may be reading those that are there."""
        if n > len(self._labels):
            for name in ("_labels", "_known", "_shared"):
                array = getattr(self, name)
                larger = np.zeros(2 * n, array.dtype)
                larger[: len(array)] = array
                setattr(self, name, larger)


TEXT_ORDER = TextOrder(TEXTS)
"""That of this process."""
