"""What a container is, said once for every form that a batch of records takes.

A container is a plain value (a list, an `Arrays`, an Arrow record batch); what
can be done with it is said by its *kind*, one stateless object per Python type,
looked up by that type. So a list stays a list for the user, and a new form of
batch is one registration away.

Laws, for every kind `k` and containers `a`, `b` of it:

- `k.length(a)` does not change between send and receive, and
  `k.length(k.concat([a, b])) == k.length(a) + k.length(b)`;
- `k.concat([k.slice(a, 0, i), k.slice(a, i, n)])` has the records of `a`;
- `k.split(a, hashes, peers)` gives `peers` containers, together the records of
  `a`, in which records of equal hash are together and in the order of `a`;
- `k.decode(k.encode(a))` has the records of `a`.

A container is not changed once it was sent: threads pass it on by reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

C = TypeVar("C")

Buffer = bytes | bytearray | memoryview
Key = Callable[[Any], Any] | str | Sequence[str] | None


class Kind(Protocol[C]):
    """The operations on one form of container."""

    name: str
    """Short and unique; the codec writes it in front of the bytes."""

    def length(self, batch: C) -> int:
        """How many records `batch` holds."""

    def n_bytes(self, batch: C) -> int:
        """About how many bytes `batch` holds (for sizing, not accounting)."""

    def schema(self, batch: C) -> Any:
        """What batches must have in common to be put together; None if nothing."""

    def records(self, batch: C) -> Iterator[Any]:
        """The records one by one: items of rows, tuples of columns."""

    def slice(self, batch: C, start: int, stop: int) -> C:
        """Records `start` up to, not with, `stop`; without a copy where it can be."""

    def concat(self, batches: Sequence[C]) -> C:
        """One container with the records of all of `batches` (at least one), in order."""

    def hashes(self, batch: C, key: Key) -> npt.NDArray[np.uint64]:
        """The stable hash of each record's key, uint64[length]."""

    def split(self, batch: C, hashes: npt.NDArray[np.uint64], peers: int) -> list[C]:
        """The records for each of `peers` workers, by `hash % peers`; may be empty."""

    def encode(self, batch: C) -> list[Buffer]:
        """The batch as buffers."""

    def decode(self, buffers: Sequence[Buffer]) -> C:
        """The batch that `encode` made `buffers` of."""
