"""Triangles at each vertex, of edges that all lead from lower to higher in some order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.lists import Ints, Numbers

Marks = npt.NDArray[np.int8]


@kernel("graph_loops")
def count_triads(
    tails: Numbers,
    begins: Ints,
    ends: Ints,
    heads: Numbers,
    marks: Marks,
    own_begins: Ints,
    own_ends: Ints,
    own_heads: Numbers,
    own_marks: Marks,
    counts: Ints,
) -> None:
    """Add to each vertex of a triangle what its opposite edge is marked with.

    A triangle is of edges a -> b and a -> c of a list, and b -> c of an own list.

    tails : int32[k], the place a of each list · begins, ends : int64[k]
    heads : int32[m], places · marks : int8[m], above 0, of the edges
    own_begins, own_ends : int64[n], the lists of b, for places below n
    own_heads : int32[l] · own_marks : int8[l]
    counts : int64[p], changed
    Cost: for each a -> b with b < n, the length of the list of b.
    """
    n = len(own_begins)
    for i, a in enumerate(tails.tolist()):
        span = slice(begins[i], ends[i])
        marked = dict(zip(heads[span].tolist(), marks[span].tolist(), strict=True))
        for b in (head for head in marked if head < n):
            for j in range(own_begins[b], own_ends[b]):
                c = int(own_heads[j])
                if c in marked:
                    counts[a] += own_marks[j]
                    counts[b] += marked[c]
                    counts[c] += marked[b]
