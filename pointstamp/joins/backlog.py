"""How much the steps of a join have in hand, so that the later ones go first.

A batch of prefixes may propose far more than it came with. If every step went on
at its own pace, the records between two steps would be as many as there are
matches; so a step with work in hand waits while the next one, at the same worker,
has a batch or more to do. That is depth first, a batch at a time: what one worker
holds at a step is less than `limit` records and what one activation added.

The steps of one worker share one backlog. Others' steps are not seen: what they
send is spread by hash, so that an equal share of it is here.
"""

from __future__ import annotations


class Backlog:
    """Records waiting at each step of one worker.

    >>> backlog = Backlog(n_steps=2, limit=100)
    >>> backlog.change(1, 150)
    >>> backlog.must_wait(0), backlog.must_wait(1)
    (True, False)
    """

    def __init__(self, n_steps: int, limit: int) -> None:
        self.limit = limit
        """A batch: this many records at the next step are reason to wait."""
        self.most = [0] * n_steps
        """The most that has been waiting, by step."""
        self._waiting = [0] * n_steps

    def change(self, step: int, by: int) -> None:
        """So many records more (or less) are waiting at `step`, or being extended."""
        self._waiting[step] += by
        self.most[step] = max(self.most[step], self._waiting[step])

    def must_wait(self, step: int) -> bool:
        """Whether the step after `step` has enough to do."""
        after = step + 1
        return after < len(self._waiting) and self._waiting[after] >= self.limit
