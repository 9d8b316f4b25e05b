"""Union-find: which of the numbers that pairs connect belong together.

Source: R. E. Tarjan, "Efficiency of a good but not linear set union algorithm",
1975. The root of a tree is always its least number, so that what comes out does not
depend on the order of the pairs; halving paths keeps trees flat without ranks.
"""

from __future__ import annotations

import numpy as np

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.lists import Numbers


@kernel("graph_loops")
def least_roots(left: Numbers, right: Numbers, n: int) -> Numbers:
    """The least number that each number is connected with, by way of the pairs.

    left, right : int32[m], from 0 to n - 1 · returns int32[n]
    Cost: of the order of m log n at most, in practice of m.
    """
    roots = np.arange(n, dtype=np.int32)
    while True:
        lower = roots.copy()
        np.minimum.at(lower, left, roots[right])
        np.minimum.at(lower, right, roots[left])
        if (lower == roots).all():
            return roots
        roots = lower
