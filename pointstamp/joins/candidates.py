"""Prefixes on their way with the lists that they are to be extended by.

Where a prefix's shortest list is at one worker and its other lists are at
another, either its proposals travel, a record for each item of the list, or the
list does, once for all prefixes of a batch that share it. `PrefixesWithCandidates` is the
second: records are the prefixes, each of which names one of the lists, or none.
Split among workers, every part takes the lists that its own prefixes name.

A list never has more items than the proposals it stands for, so this sends no
more, and where prefixes share lists, as they do at hubs, far less.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays, Buffer, Key, Kind, kind_of, register
from pointstamp.kernels.hashing import Hashes

Ints = npt.NDArray[np.int64]

LIST = "list"
"""The column that has the number of each prefix's list, or -1."""

_ARRAYS = kind_of(Arrays())


class PrefixesWithCandidates:
    """Prefixes and lists of vertices.

    Attributes
    ----------
    prefixes : Arrays
        With a column `list`, int64: the number of the prefix's list, -1 for none.
    starts : int64[k + 1]
    values : int64[m]
        List i is `values[starts[i]:starts[i + 1]]`, sorted and distinct.
    """

    __slots__ = ("prefixes", "starts", "values")

    def __init__(self, prefixes: Arrays, starts: Ints, values: Ints) -> None:
        self.prefixes = prefixes
        self.starts = starts
        self.values = values

    def __len__(self) -> int:
        return len(self.prefixes)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """A column of the prefixes."""
        return self.prefixes[name]

    def part(self, prefixes: Arrays) -> PrefixesWithCandidates:
        """Some of the prefixes, with the lists that they name and no others."""
        numbers = prefixes[LIST]
        named = np.zeros(len(self.starts), np.bool_)
        named[numbers] = True
        named[-1] = False  # where the number -1 went
        chosen = np.flatnonzero(named)
        if len(chosen) + 1 == len(self.starts):
            return PrefixesWithCandidates(prefixes, self.starts, self.values)
        new_numbers = np.full(len(self.starts), -1)
        new_numbers[chosen] = np.arange(len(chosen))
        starts, values = _gathered(self.starts, self.values, chosen)
        columns = {**dict(prefixes.items()), LIST: new_numbers[numbers]}
        return PrefixesWithCandidates(Arrays(columns), starts, values)


def size(batch: Any) -> int:
    """How much a batch takes, in records; four items of a list count as one."""
    n_items = len(batch.values) if isinstance(batch, PrefixesWithCandidates) else 0
    return max(len(batch), n_items // 4)


def _gathered(starts: Ints, values: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """The lists `chosen`, end to end."""
    sizes = starts[chosen + 1] - starts[chosen]
    new_starts = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(sizes, out=new_starts[1:])
    shift = np.repeat(starts[chosen] - new_starts[:-1], sizes)
    return new_starts, values[np.arange(new_starts[-1]) + shift]


class PrefixesWithCandidatesKind(Kind[PrefixesWithCandidates]):
    """What can be done with `PrefixesWithCandidates`: what can be done with its prefixes."""

    name = "prefixes with lists"
    is_internal = True

    def length(self, batch: PrefixesWithCandidates) -> int:
        """The number of prefixes."""
        return len(batch.prefixes)

    def n_bytes(self, batch: PrefixesWithCandidates) -> int:
        """Those of the prefixes: to cut a batch does not make its lists smaller."""
        return _ARRAYS.n_bytes(batch.prefixes)

    def schema(self, batch: PrefixesWithCandidates) -> Any:
        """That of the prefixes."""
        return _ARRAYS.schema(batch.prefixes)

    def records(self, batch: PrefixesWithCandidates) -> Iterator[Any]:
        """The prefixes."""
        return _ARRAYS.records(batch.prefixes)

    def slice(self, batch: PrefixesWithCandidates, start: int, stop: int) -> PrefixesWithCandidates:
        """Some of the prefixes and their lists."""
        return batch.part(_ARRAYS.slice(batch.prefixes, start, stop))

    def concat(self, batches: Sequence[PrefixesWithCandidates]) -> PrefixesWithCandidates:
        """All prefixes and all lists; one that is in two batches is there twice."""
        numbers, starts = [], [np.zeros(1, np.int64)]
        n_lists = n_values = 0
        for batch in batches:
            own = batch.prefixes[LIST]
            numbers.append(np.where(own < 0, own, own + n_lists))
            starts.append(batch.starts[1:] + n_values)
            n_lists += len(batch.starts) - 1
            n_values += len(batch.values)
        prefixes = dict(_ARRAYS.concat([batch.prefixes for batch in batches]).items())
        prefixes[LIST] = np.concatenate(numbers)
        values = np.concatenate([batch.values for batch in batches])
        return PrefixesWithCandidates(Arrays(prefixes), np.concatenate(starts), values)

    def column(self, batch: PrefixesWithCandidates, chosen: Any, operator: str) -> Any:
        """One of the prefixes."""
        return _ARRAYS.column(batch.prefixes, chosen, operator)

    def hashes(self, batch: PrefixesWithCandidates, key: Key) -> Hashes:
        """Those of the prefixes."""
        return _ARRAYS.hashes(batch.prefixes, key)

    def split(
        self, batch: PrefixesWithCandidates, hashes: Hashes, peers: int
    ) -> list[PrefixesWithCandidates]:
        """The prefixes for each worker, with their lists."""
        return [batch.part(part) for part in _ARRAYS.split(batch.prefixes, hashes, peers)]

    def encode(self, batch: PrefixesWithCandidates) -> list[Buffer]:
        """The lists, then the prefixes."""
        sizes = pickle.dumps((len(batch.starts), len(batch.values)))
        lists = [_bytes_of(batch.starts), _bytes_of(batch.values)]
        return [sizes, *lists, *_ARRAYS.encode(batch.prefixes)]

    def decode(self, buffers: Sequence[Buffer]) -> PrefixesWithCandidates:
        """The batch that `encode` made `buffers` of."""
        n_starts, n_values = pickle.loads(buffers[0])
        starts = np.frombuffer(buffers[1], np.int64, n_starts) if n_starts else _NONE
        values = np.frombuffer(buffers[2], np.int64, n_values) if n_values else _NONE
        return PrefixesWithCandidates(_ARRAYS.decode(buffers[3:]), starts, values)


def _bytes_of(values: Ints) -> Buffer:
    return np.ascontiguousarray(values).data.cast("B") if len(values) else b""


_NONE = np.empty(0, np.int64)

register(PrefixesWithCandidates, PrefixesWithCandidatesKind())
