"""SVD++: a model of ratings that has factors and a bias for each user and each item.

Edges lead from users to items. A rating is predicted as

    mean + bias[user] + bias[item] + factors[item] . profile[user]
    profile[user] = factors[user] + norm[user] * (sum of implicit[item] over the user's items)

where `norm` is 1 over the root of the number of ratings. A round is two supersteps: items publish
their factors, of which users make their profiles; users publish these, and learn; then items
learn. Each end of a rating finds its error by itself, so that no message is that of an edge.

What is added up at a vertex is in the order of the ids; only the mean and the loss are sums of
each worker's, so that answers depend on the number of workers by rounding alone.

Source: Y. Koren, "Factorization meets the neighborhood: a multifaceted collaborative filtering
model", KDD 2008. Rounds over all ratings at once, and implicit factors that learn from the errors
of their own item, are those of Spark GraphX.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays
from pointstamp.errors import GraphError, UsageError
from pointstamp.graph.edges import check_count, check_integers
from pointstamp.graph.graph_partition import SLOT, Floats, GraphPartition, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.graph.vertex_lists import with_lists
from pointstamp.graph.weighted_page_rank import in_order
from pointstamp.kernels.hashing import hash_ints, mix
from pointstamp.operators.stream import Stream

FACTORS, IMPLICIT, BIAS, NORM = "factors", "implicit_factors", "bias", "norm"
MEAN, LOSS = "mean_rating", "loss"

_FIRST, _SECOND = 0, 1
"""Parts of what a vertex publishes: vector and bias; implicit factors and norm."""

_PART = "part"
_FOR_ALL = -1
"""The slot of what is for all: a sum, and of how many ratings."""

_WIDTH = 0.2
"""Factors begin evenly spread in an interval around 0 that is this wide."""


def svd_plus_plus(
    edges: Stream[Any],
    vertices: Stream[Any] | None = None,
    *,
    rank: int = 10,
    rounds: int = 2,
    min_value: float = 0.0,
    max_value: float = 5.0,
    gamma1: float = 0.007,
    gamma2: float = 0.007,
    gamma6: float = 0.005,
    gamma7: float = 0.015,
    seed: int = 42,
) -> Stream[Any]:
    """SVD++: factors and biases of users and items, learned from ratings.

    Parameters
    ----------
    edges : Stream
        From users to items, with weights as for `sssp`, which are ratings: any finite numbers.
        Edges that repeat count each.
    vertices : Stream, optional
        As for `pagerank`; those without edges are not answered.
    rank : int
        How many factors each has, at least 1.
    rounds : int
        How often all ratings are learned from.
    min_value, max_value : float
        Predictions are clipped to these.
    gamma1, gamma2 : float
        Learning rates, of biases and of factors.
    gamma6, gamma7 : float
        Regularization, of biases and of factors.
    seed : int
        Of the first factors, which depend on it and on the ids alone.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        Columns `vertex`, int64; `factors` and `implicit_factors`, lists of float64; and float64
        `bias`, `norm`, `mean_rating`, the same for all, and `loss`, the mean of the squared
        errors, the same for all. The implicit factors of a user are the user's profile: the
        factors, and those that the items add.

    Raises
    ------
    UsageError
        If a number is out of its range. When it is built.
    GraphError
        If a vertex has edges both from and to it, or no vertex has any. When it runs.
    SchemaError
        If a rating is null or not finite. When it runs.

    Notes
    -----
    A round adds up what a vertex learns from each of its ratings, so that the more of them there
    are the smaller `gamma1` and `gamma2` have to be; if they are not, the loss grows, or is NaN.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     ratings = scope.to_stream([(1, 7, 5.0), (1, 8, 1.0), (2, 7, 3.0)])
    ...     return svd_plus_plus(ratings, rank=2, rounds=0)
    >>> [(row[0], row[3], row[5]) for _, row in ps.testing.collect(build)]
    [(1, 0.0, 3.0), (2, 0.0, 3.0), (7, 1.0, 3.0), (8, -2.0, 3.0)]
    """
    check_count("svd_plus_plus", "its rank", rank, 1)
    check_count("svd_plus_plus", "its rounds", rounds, 0)
    check_integers("svd_plus_plus", "its seed", [seed])
    gammas = {"gamma1": gamma1, "gamma2": gamma2, "gamma6": gamma6, "gamma7": gamma7}
    check_numbers(min_value, max_value, gammas)
    parts = partitions(
        edges, vertices, ["in", "out"], "push", loops=True, weighted=True, signed=True
    )
    start = partial(
        _RatingModel,
        rank=rank,
        rounds=rounds,
        clip=(min_value, max_value),
        rates=(gamma1, gamma2),
        decays=(gamma6, gamma7),
        seed=seed,
    )
    return solve(parts, start, _RatingModel.result, "SVD++")


def check_numbers(min_value: Any, max_value: Any, gammas: Mapping[str, Any]) -> None:
    """Refuse numbers that SVD++ cannot work with; a `UsageError`."""
    for name, value in {"min_value": min_value, "max_value": max_value}.items():
        if not _is_number(value) or value != value:
            raise UsageError(f"{name} of svd_plus_plus is a number, not {value!r}")
    if not min_value < max_value:
        raise UsageError(
            "min_value of svd_plus_plus is less than its max_value; "
            f"found {min_value!r} and {max_value!r}"
        )
    for name, value in gammas.items():
        if not _is_number(value) or not isfinite(value) or value < 0:
            raise UsageError(f"{name} of svd_plus_plus is a number of 0 or more, not {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


class _RatingModel:
    """The factors and biases of a worker's vertices, and of its ghosts.

    Tables are float64[rank + 1, places]. The last row of `_first` is the bias, and above are the
    factors of items and the profiles of users; of `_second` it is the norm, and above are the
    implicit factors of items.
    """

    def __init__(
        self,
        partition: GraphPartition,
        rank: int,
        rounds: int,
        clip: tuple[float, float],
        rates: tuple[float, float],
        decays: tuple[float, float],
        seed: int,
    ) -> None:
        self._partition = partition
        self._last = 2 * rounds + 2
        self._clip, self._rates, self._decays = clip, rates, decays
        n = partition.n
        self._of_items, self._of_users = (in_order(partition, links) for links in partition.links)
        counts = [np.bincount(of[0], minlength=n) for of in (self._of_items, self._of_users)]
        if ((counts[0] > 0) & (counts[1] > 0)).any():
            raise GraphError(
                "svd_plus_plus needs edges that lead from users to items, and there is a vertex "
                "that edges lead both from and to: give users and items ids that differ"
            )
        self._n_rated, self._n_given = counts
        self._counts = counts[0] + counts[1]
        self._items, self._users = (np.flatnonzero(c).astype(np.int32) for c in counts)
        self._first = np.zeros((rank + 1, partition.n_places))
        self._second = np.zeros((rank + 1, partition.n_places))
        drawn = _drawn(partition.vertices, 2 * rank, seed)
        self._own = np.zeros((rank + 1, n))
        """Factors of users, and in the last row the biases, which a table gets once all have
        learned from those before; 0 for items, which have theirs in a table."""
        self._own[:rank, self._users] = drawn[:rank, self._users]
        self._first[:rank, self._items] = drawn[:rank, self._items]
        self._second[:rank, self._items] = drawn[rank:, self._items]
        self._second[rank, :n] = 1.0 / np.sqrt(np.maximum(self._counts, 1))
        self._shares: list[float] = []
        self._n = 0
        self._mean = self._loss = np.nan

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Round 0 adds ratings up; even rounds are those of users, odd ones those of items."""
        with np.errstate(over="ignore", invalid="ignore"):  # too high rates are seen by the loss
            self._receive(messages)
            if round == 0:
                sums = self._sum_to_all(self._of_users[2])
                return [self._publish(_SECOND, self._users), *sums], True
            if round == 1:
                self._begin()
            elif round > self._last:
                self._loss = self._mean_of_all()
                return [], False
            elif round % 2 == 0:
                return self._step_of_users(round)
            else:
                self._learn_items()
            return [self._publish(part, self._items) for part in (_FIRST, _SECOND)], True

    def _begin(self) -> None:
        """The mean, and from where biases begin: the mean of the ratings of each vertex."""
        if not self._n:
            raise GraphError("svd_plus_plus learns from ratings, and this graph has no edges")
        self._mean = self._mean_of_all()
        sums = [
            self._sums(heads, ratings) for heads, _, ratings in (self._of_items, self._of_users)
        ]
        biases = (sums[0] + sums[1]) / np.maximum(self._counts, 1) - self._mean
        self._first[-1, self._items] = biases[self._items]
        self._own[-1, self._users] = biases[self._users]

    def _step_of_users(self, round: int) -> Sent:
        heads, items, _ = self._of_users
        norms = self._second[-1, self._users]
        *factors, biases = self._own
        self._first[-1, self._users] = biases[self._users]
        for j, of_users in enumerate(factors):
            implied = self._sums(heads, self._second[j, items])[self._users]
            self._first[j, self._users] = of_users[self._users] + norms * implied
        errors = self._errors(*self._of_users)
        if round == self._last:
            return self._sum_to_all(errors * errors), True
        for j, of_users in enumerate(factors):
            learned = self._sums(heads, errors * self._first[j, items])
            of_users += self._rates[1] * (learned - self._decays[1] * self._n_given * of_users)
        self._learn_biases(biases, heads, errors, self._n_given)
        return [self._publish(_FIRST, self._users)], True

    def _learn_items(self) -> None:
        heads, users, _ = self._of_items
        n, count = self._partition.n, self._n_rated
        errors = self._errors(*self._of_items)
        implied = self._sums(heads, errors * self._second[-1, users])
        for j in range(len(self._first) - 1):
            factors, implicit = self._first[j, :n], self._second[j, :n]
            learned = self._sums(heads, errors * self._first[j, users])
            implicit += self._rates[1] * (implied * factors - self._decays[1] * count * implicit)
            factors += self._rates[1] * (learned - self._decays[1] * count * factors)
        self._learn_biases(self._first[-1, :n], heads, errors, count)

    def _learn_biases(self, biases: Floats, heads: Any, errors: Floats, counts: Any) -> None:
        learned = self._sums(heads, errors) - self._decays[0] * counts * biases
        biases += self._rates[0] * learned

    def _errors(self, heads: Any, tails: Any, ratings: Floats) -> Floats:
        *vectors, biases = self._first
        predicted = self._mean + biases[heads] + biases[tails]
        for vector in vectors:
            predicted += vector[heads] * vector[tails]
        errors: Floats = ratings - np.clip(predicted, *self._clip)
        return errors

    def _sums(self, heads: Any, values: Floats) -> Floats:
        sums = np.bincount(heads, values, minlength=self._partition.n)
        return sums.astype(np.float64, copy=False)

    # Messages.

    def _publish(self, part: int, rows: Any) -> Arrays:
        table = (self._first, self._second)[part]
        parts = np.full(self._partition.n, part, np.int8)
        columns = {f"value{j}": row for j, row in enumerate(table)}
        return self._partition.publish(rows, **{_PART: parts}, **columns)

    def _sum_to_all(self, values: Floats) -> list[Arrays]:
        self._shares, self._n = [float(values.sum())], len(values)
        sent = [*self._shares, self._n, *[0.0] * (len(self._first) - 2)]
        columns = {f"value{j}": np.array([value], np.float64) for j, value in enumerate(sent)}
        slots, parts = np.array([_FOR_ALL], np.int32), np.array([_FIRST], np.int8)
        return self._partition.publish_to_all({SLOT: slots, _PART: parts, **columns})

    def _mean_of_all(self) -> float:
        # In order, so that all workers have the same one, in whatever order sums arrive.
        return sum(sorted(self._shares)) / self._n

    def _receive(self, messages: list[Arrays]) -> None:
        if not messages:
            return
        slots, parts = value_of(messages, SLOT).astype(np.int64), value_of(messages, _PART)
        values = np.stack([value_of(messages, f"value{j}") for j in range(len(self._first))])
        for_all = slots == _FOR_ALL
        self._shares += values[0, for_all].tolist()
        self._n += int(values[1, for_all].sum())
        for part, table in enumerate((self._first, self._second)):
            found = ~for_all & (parts == part)
            table[:, slots[found] + self._partition.n] = values[:, found]

    def result(self) -> Any:
        """Vertices that have ratings, and what is learned of them."""
        own = np.flatnonzero(self._counts)
        factors, implicit = self._first[:-1, own], self._second[:-1, own]
        is_user = self._n_given[own] > 0
        columns = {
            VERTEX: self._partition.vertices[own],
            BIAS: self._first[-1, own],
            NORM: self._second[-1, own],
            MEAN: np.full(len(own), self._mean),
            LOSS: np.full(len(own), self._loss),
        }
        batch = with_lists(columns, FACTORS, np.where(is_user, self._own[:-1, own], factors).T)
        profiles = with_lists({}, IMPLICIT, np.where(is_user, factors, implicit).T)
        batch = batch.append_column(IMPLICIT, profiles.column(0))
        return batch.select([VERTEX, FACTORS, IMPLICIT, BIAS, NORM, MEAN, LOSS])


def _drawn(vertices: npt.NDArray[np.int64], k: int, seed: int) -> Floats:
    """Numbers around 0, float64[k, n], by hashes of the seed and the vertices."""
    salted = hash_ints(vertices) ^ np.uint64(mix(int(seed)))
    begins = hash_ints(salted.view(np.int64))
    words = [hash_ints((begins + np.uint64(j)).view(np.int64)) for j in range(k)]
    numbers = np.array([word >> np.uint64(11) for word in words], np.float64) / 2.0**53
    drawn: Floats = _WIDTH * (numbers.reshape(k, len(vertices)) - 0.5)
    return drawn
