"""What comes out of the dataflow of `lives`, computed from what is sent and from nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.service.lives import RATES_EVERY, facts_of, rates_of


def totals_of(n_epochs: int) -> list[list[tuple[int, int]]]:
    """Of each epoch, how much the facts of a key are together, for those that came then."""
    sums: Counter[int] = Counter()
    found = []
    for epoch in range(n_epochs):
        for key, value in facts_of(epoch):
            sums[key] += value
        found.append(sorted((key, sums[key]) for key, _ in facts_of(epoch)))
    return found


def pairs_of(n_epochs: int) -> list[list[tuple[int, int, int]]]:
    """Of each epoch, a fact and a rate of one key of which one came then, and the other had."""
    rates = defaultdict(list)
    for epoch in range(0, n_epochs, RATES_EVERY):
        for key, rate in rates_of(epoch):
            rates[key].append((epoch, rate))
    found: list[list[tuple[int, int, int]]] = [[] for _ in range(n_epochs)]
    for epoch in range(n_epochs):
        for key, value in facts_of(epoch):
            for its, rate in rates[key]:
                found[max(epoch, its)].append((key, value, rate))
    return [sorted(pairs) for pairs in found]


def steps_of(n_epochs: int) -> list[tuple[int, int, int, int]]:
    """For each total of each epoch, in how many steps of Collatz one comes to 1 from it."""
    found = []
    for epoch, totals in enumerate(totals_of(n_epochs)):
        for key, total in totals:
            n, steps = total % 40 + 1, 0
            while n != 1:
                n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
            found.append((epoch, key, total, steps))
    return sorted(found)
