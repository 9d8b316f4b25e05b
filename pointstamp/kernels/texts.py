"""Texts numbered as they come, batch after batch, in a table that is kept.

What `group` does for integers, for strings of bytes (UTF-8, as in an Arrow column):
each gets the number of its first appearance. A table has the hash and the number of
each; only where hashes are equal are bytes compared, with a copy of the text that
is kept from its first appearance.

State is a value, as in `group`.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.group import Ints, Numbers
from pointstamp.kernels.hashing import hash_slice, settled
from pointstamp.kernels.jit import kernel
from pointstamp.kernels.tables import (
    BLOCK,
    FEW,
    Slots,
    bits_of,
    first_slot,
    reserved,
    with_room,
)

Octets = npt.NDArray[np.uint8]

_PIECE = 65_536
"""How many texts room is made for at a time."""


class Texts(NamedTuple):
    """Texts and their numbers; made by `no_texts`.

    Attributes
    ----------
    slots : int64[2^k, 2], a hash and a number + 1, or two zeros
    starts : int64[r], where each text begins in `data`, and the last one ends; and room
    data : uint8[s], the texts end to end; and room
    n : how many there are
    """

    slots: Slots
    starts: Ints
    data: Octets
    n: int

    @property
    def offsets(self) -> Ints:
        """Where each text begins, and the last one ends, int64[n + 1]: offsets for Arrow."""
        return self.starts[: self.n + 1]


def no_texts() -> Texts:
    """No texts yet."""
    slots = np.zeros((FEW, 2), np.int64)
    return Texts(slots, np.zeros(FEW, np.int64), np.empty(8 * FEW, np.uint8), 0)


def texts_of(texts: Texts) -> list[bytes]:
    """The texts by their numbers."""
    ends = texts.offsets.tolist()
    data = texts.data.tobytes()
    return [data[a:b] for a, b in itertools.pairwise(ends)]


def text_ids(
    texts: Texts, starts: npt.NDArray[Any], stops: npt.NDArray[Any], data: Octets
) -> tuple[Texts, Numbers]:
    """The number of each text, and the texts with those that are new.

    Parameters
    ----------
    texts : Texts, not to be used again
    starts, stops : integers[m], within data
        Of an Arrow column of texts, `offsets[:-1]` and `offsets[1:]`.
    data : uint8[any]

    Returns
    -------
    (texts, numbers) : Texts, int32[m]
        Cost: each byte is read twice; there are less than 2^31 texts.

    >>> data = np.frombuffer(b"toandto", np.uint8)
    >>> texts, numbers = text_ids(no_texts(), np.array([0, 2, 5]), np.array([2, 5, 7]), data)
    >>> numbers.tolist(), texts_of(texts)
    ([0, 1, 0], [b'to', b'and'])
    """
    numbers = np.empty(len(starts), np.int32)
    slots, own_starts, own_data, n = texts
    for at in range(0, len(starts), _PIECE):
        begins = settled(starts[at : at + _PIECE].astype(np.int64, copy=False))
        ends = settled(stops[at : at + _PIECE].astype(np.int64, copy=False))
        slots = reserved(slots, n, len(begins))
        own_starts = with_room(own_starts, n + 1, len(begins))
        own_data = with_room(own_data, int(own_starts[n]), int((ends - begins).sum()))
        piece = numbers[at : at + _PIECE]
        n = _text_ids(slots, own_starts, own_data, n, begins, ends, settled(data), piece)
    return Texts(slots, own_starts, own_data, n), numbers


def _text_ids_plain(
    slots: Slots,
    starts: Ints,
    kept: Octets,
    n: int,
    begins: Ints,
    ends: Ints,
    data: Octets,
    numbers: Numbers,
) -> int:
    before = texts_of(Texts(slots, starts, kept, n))
    number_of = {text: number for number, text in enumerate(before)}
    octets = data.tobytes()
    spans = zip(begins.tolist(), ends.tolist(), strict=True)
    numbers[:] = [number_of.setdefault(octets[a:b], len(number_of)) for a, b in spans]
    starts[: len(number_of) + 1] = np.cumsum([0, *map(len, number_of)])
    kept[: starts[len(number_of)]] = np.frombuffer(b"".join(number_of), np.uint8)
    return len(number_of)


@kernel(plain=_text_ids_plain)
def _text_ids(
    slots: Slots,
    starts: Ints,
    kept: Octets,
    n: int,
    begins: Ints,
    ends: Ints,
    data: Octets,
    numbers: Numbers,
) -> int:
    """Number a piece.

    slots, starts, kept, n : of `Texts`, with room for all texts; changed
    begins, ends : int64[m] · data : uint8[any] · numbers : int32[m], filled
    returns n. Twin `_text_ids_plain`, whose table is its own.
    """
    n_bits = bits_of(len(slots))
    hashes = np.empty(BLOCK, np.int64)
    read = np.empty(BLOCK, np.int64)
    for start in range(0, len(begins), BLOCK):
        stop = min(start + BLOCK, len(begins))
        for i in range(start, stop):
            hashes[i - start] = np.int64(hash_slice(data, begins[i], ends[i]))
            read[i - start] = slots[first_slot(hashes[i - start], n_bits), 1]
        for i in range(start, stop):
            begin, end, hash = begins[i], ends[i], hashes[i - start]
            slot = first_slot(hash, n_bits)
            while slots[slot, 1] != 0:
                other = slots[slot, 1] - 1
                if slots[slot, 0] == hash and _are_equal(
                    kept, starts[other], starts[other + 1], data, begin, end
                ):
                    break
                slot = (slot + 1) & (len(slots) - 1)
            if slots[slot, 1] == 0:
                last = starts[n]
                for k in range(end - begin):
                    kept[last + k] = data[begin + k]
                n += 1
                starts[n] = last + end - begin
                slots[slot, 0] = hash
                slots[slot, 1] = n
            numbers[i] = slots[slot, 1] - 1
    return n


@kernel
def _are_equal(kept: Octets, start: int, stop: int, data: Octets, begin: int, end: int) -> bool:
    size = end - begin
    if stop - start != size:
        return False
    k = 0
    while k < size and kept[start + k] == data[begin + k]:
        k += 1
    return k == size
