"""The links of a simulated network on which messages wait, in order, and drawn from by weight.

A driver looks at all of them before each decision. There are as many as pairs of workers, and
as many decisions as messages, so that what it costs to look has to depend on neither: links
are kept sorted, sender by sender, with their weights, and are added and removed one at a time.

Knows nothing of messages but how many wait.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from itertools import accumulate
from typing import Any, overload

Link = tuple[int, int, int]
"""Sender, receiver, channel."""

Pending = tuple[int, int, int, int]
"""Sender, receiver, channel, and how many messages wait."""


def _alike(link: Link) -> int:
    return 1


class WaitingLinks(Sequence[Pending]):
    """Links with messages, sorted; a sequence of (sender, receiver, channel, how many).

    Parameters
    ----------
    workers : int
        How many there are.
    queues : mapping of link to queue
        What waits on each, which its owner keeps.
    weigh : callable, optional
        The weight of a link, a positive integer and always the same.

    Examples
    --------
    >>> queues = {(1, 0, 0): "ab", (0, 1, 0): "c"}
    >>> links = WaitingLinks(2, queues, lambda link: 10 if link[0] else 1)
    >>> links.add((1, 0, 0)), links.add((0, 1, 0))
    (None, None)
    >>> list(links), links.total_weight
    ([(0, 1, 0, 1), (1, 0, 0, 2)], 11)
    >>> links.at_weight(0.5), links.at_weight(1.5)
    ((0, 1, 0, 1), (1, 0, 0, 2))
    """

    def __init__(
        self, workers: int, queues: Mapping[Link, Sized], weigh: Callable[[Link], int] = _alike
    ) -> None:
        self.total_weight = 0
        self.n_of: list[int] = [0] * workers
        """By worker: on how many links there is something that it sent, or should get."""
        self._queues = queues
        self._weigh = weigh
        self._by_sender: list[list[Link]] = [[] for _ in range(workers)]
        self._weights: list[list[int]] = [[] for _ in range(workers)]
        self._totals = [0] * workers
        self._n = 0
        self._deaf: set[int] = set()

    def add(self, link: Link) -> None:
        """Messages wait on `link` now."""
        sender, receiver, _ = link
        self.n_of[sender] += 1
        self.n_of[receiver] += sender != receiver
        if receiver in self._deaf:
            return
        links = self._by_sender[sender]
        place = bisect_left(links, link)
        links.insert(place, link)
        weight = self._weigh(link)
        self._weights[sender].insert(place, weight)
        self._change(sender, 1, weight)

    def remove(self, link: Link) -> None:
        """No message waits on `link` any more."""
        sender, receiver, _ = link
        self.n_of[sender] -= 1
        self.n_of[receiver] -= sender != receiver
        if receiver not in self._deaf:
            self._take_out(link)

    def hide_to(self, receiver: int) -> None:
        """From now on leave out what goes to a worker, which reads no more."""
        if receiver in self._deaf:
            return
        self._deaf.add(receiver)
        for links in self._by_sender:
            for link in [link for link in links if link[1] == receiver]:
                self._take_out(link)

    def at_weight(self, at: float) -> Pending:
        """The link in which a point lies, if they lay side by side, each as long as its weight."""
        before = list(accumulate(self._totals))
        sender = min(bisect(before, at), len(before) - 1)
        while not self._by_sender[sender]:
            sender -= 1  # a point at the very end, by rounding
        links, weights = self._by_sender[sender], self._weights[sender]
        inside = at - (before[sender] - self._totals[sender])
        link = links[bisect(list(accumulate(weights)), inside, 0, len(links) - 1)]
        return (*link, len(self._queues[link]))

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Pending]:
        for links in self._by_sender:
            for link in links:
                yield (*link, len(self._queues[link]))

    @overload
    def __getitem__(self, place: int) -> Pending: ...

    @overload
    def __getitem__(self, place: slice) -> list[Pending]: ...

    def __getitem__(self, place: Any) -> Any:
        if place == 0 and self._n:
            return next(iter(self))
        return list(self)[place]

    def _take_out(self, link: Link) -> None:
        sender = link[0]
        links = self._by_sender[sender]
        place = bisect_left(links, link)
        del links[place]
        self._change(sender, -1, -self._weights[sender].pop(place))

    def _change(self, sender: int, n: int, weight: int) -> None:
        self._n += n
        self._totals[sender] += weight
        self.total_weight += weight
