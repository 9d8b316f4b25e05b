"""SVD++ against its formulas, a rating at a time, and on ratings that have few factors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import GraphError, SchemaError, UsageError, WorkerError
from pointstamp.graph import svd_plus_plus
from tests.graph.answers import WORKERS, answer, quick

FACTORS, IMPLICIT, BIAS, NORM, MEAN, LOSS = range(6)

rated = st.lists(
    st.tuples(st.integers(0, 5), st.integers(10, 15), st.sampled_from([-1.0, 0.0, 2.5, 4.0, 7.0])),
    min_size=1,
    max_size=25,
)
OPTIONS = {"gamma1": 0.02, "gamma2": 0.05, "gamma6": 0.1, "gamma7": 0.2, "min_value": -0.5}


def model_of(edges, vertices=(), workers=1, **options):
    return answer(lambda e, v: svd_plus_plus(e, v, **options), edges, vertices, workers)


def by_definition(edges, begin, rounds, gamma1, gamma2, gamma6, gamma7, min_value, max_value=5.0):
    """The model after some rounds, from the factors of another one; and its mean squared error."""
    users, items = ({edge[i] for edge in edges} for i in (0, 1))
    mean = np.mean([rating for _, _, rating in edges])
    rated_by = {u: [i for user, i, _ in edges if user == u] for u in users}
    p = {u: np.array(begin[u][FACTORS]) for u in users}
    q = {i: np.array(begin[i][FACTORS]) for i in items}
    y = {i: np.array(begin[i][IMPLICIT]) for i in items}
    b = {
        vertex: np.mean([rating for *ends, rating in edges if vertex in ends]) - mean
        for vertex in users | items
    }

    def profile(u):
        return p[u] + sum(y[i] for i in rated_by[u]) / math.sqrt(len(rated_by[u]))

    def error(u, i, rating):
        predicted = mean + b[u] + b[i] + q[i] @ profile(u)
        return rating - min(max(predicted, min_value), max_value)

    tables = {"p": p, "q": q, "y": y, "b": b}
    for _ in range(rounds):
        learned = []
        for u, i, rating in edges:
            e, norm = error(u, i, rating), 1 / math.sqrt(len(rated_by[u]))
            learned += [
                ("b", u, gamma1 * (e - gamma6 * b[u])),
                ("b", i, gamma1 * (e - gamma6 * b[i])),
                ("p", u, gamma2 * (e * q[i] - gamma7 * p[u])),
                ("q", i, gamma2 * (e * profile(u) - gamma7 * q[i])),
                ("y", i, gamma2 * (e * norm * q[i] - gamma7 * y[i])),
            ]
        for name, vertex, change in learned:
            tables[name][vertex] = tables[name][vertex] + change
    loss = np.mean([error(*edge) ** 2 for edge in edges])
    return {
        **{u: (p[u], profile(u), b[u]) for u in users},
        **{i: (q[i], y[i], b[i]) for i in items},
    }, (mean, loss)


@quick
@given(rated, st.integers(1, 3), st.integers(0, 4))
def test_the_model_is_that_of_the_formulas_on_any_number_of_workers(edges, rank, rounds):
    begin = model_of(edges, rank=rank, rounds=0, **OPTIONS)
    expected, (mean, loss) = by_definition(edges, begin, rounds, **OPTIONS)
    for workers in WORKERS:
        found = model_of(edges, [3, 99], workers, rank=rank, rounds=rounds, **OPTIONS)
        assert set(found) == set(expected)
        for vertex, (factors, implicit, bias) in expected.items():
            n = sum(vertex in edge[:2] for edge in edges)
            of_vertex = found[vertex]
            assert len(of_vertex[FACTORS]) == rank
            assert of_vertex[FACTORS] == pytest.approx(factors.tolist(), rel=1e-9, abs=1e-12)
            assert of_vertex[IMPLICIT] == pytest.approx(implicit.tolist(), rel=1e-9, abs=1e-12)
            assert of_vertex[BIAS:] == pytest.approx(
                (bias, 1 / math.sqrt(n), mean, loss), rel=1e-9, abs=1e-12
            )


def test_factors_begin_as_the_seed_and_the_ids_say():
    edges = [(1, 10, 4.0), (1, 11, 2.0), (2, 10, 3.0)]
    one, same, more, other = (
        model_of(e, rank=2, rounds=0, seed=s)
        for e, s in ((edges, 1), (edges[::-1], 1), ([*edges, (3, 10, 1.0)], 1), (edges, 2))
    )
    assert one == same
    for vertex in one:
        assert one[vertex][FACTORS] == more[vertex][FACTORS] != other[vertex][FACTORS]
    drawn = np.array([one[v][FACTORS] for v in one] + [one[i][IMPLICIT] for i in (10, 11)]).ravel()
    assert len(np.unique(drawn)) == len(drawn)
    assert np.abs(drawn).max() <= 0.1


def test_few_factors_are_found_and_predict_ratings_that_were_not_learned_from():
    chosen = np.random.default_rng(5)
    n_users, n_items = 60, 40
    true = 3 + 0.8 * chosen.normal(size=(n_users, 2)) @ chosen.normal(size=(2, n_items))
    true = np.clip(true, 0, 5)
    learned = chosen.random(true.shape) < 0.5
    edges = [(int(u), int(1000 + i), float(true[u, i])) for u, i in np.argwhere(learned)]
    losses = []
    for rounds in (0, 20, 100):
        model = model_of(edges, workers=2, rank=2, rounds=rounds, gamma2=0.02, gamma7=0.02)
        losses.append(next(iter(model.values()))[LOSS])
    assert losses[0] > 2 * losses[1] > 4 * losses[2]
    users, items = ([model[v] for v in vs] for vs in (range(n_users), range(1000, 1000 + n_items)))
    biases = np.add.outer([user[BIAS] for user in users], [item[BIAS] for item in items])
    profiles, factors = ([user[IMPLICIT] for user in users], [item[FACTORS] for item in items])
    products = np.array(profiles) @ np.array(factors).T
    predicted = np.clip(model[0][MEAN] + biases + products, 0, 5)
    assert np.mean((predicted - true)[learned] ** 2) == pytest.approx(losses[-1])
    of_others = np.mean((predicted - true)[~learned] ** 2)
    assert of_others < 0.2 * np.var(true[~learned])


def test_too_high_rates_show_in_the_loss_and_warn_of_nothing():
    edges = [(u, 100 + i, float(u * i % 5)) for u in range(20) for i in range(20)]
    model = model_of(edges, rank=2, rounds=300, gamma2=50.0, max_value=math.inf)
    assert not math.isfinite(model[0][LOSS])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"rank": 0}, "svd_plus_plus needs 1 or more as its rank, not 0"),
        ({"rank": 1.5}, "an integer as its rank"),
        ({"rounds": -1}, "0 or more as its rounds"),
        ({"seed": "x"}, "an integer as its seed"),
        ({"min_value": 5}, "min_value of svd_plus_plus is less than its max_value; found 5 and 5"),
        ({"max_value": math.nan}, "max_value of svd_plus_plus is a number, not nan"),
        ({"min_value": True}, "min_value of svd_plus_plus is a number, not True"),
        ({"gamma1": -1}, "gamma1 of svd_plus_plus is a number of 0 or more, not -1"),
        ({"gamma7": math.inf}, "gamma7 of svd_plus_plus is a number of 0 or more, not inf"),
    ],
)
def test_what_cannot_be_learned_with_is_refused(wrong, says):
    with pytest.raises(UsageError, match=says):
        svd_plus_plus(None, **wrong)


@pytest.mark.parametrize(
    ("edges", "error", "says"),
    [
        ([(1, 2, 3.0), (2, 4, 3.0)], GraphError, "users and items ids that differ"),
        ([(1, 1, 3.0)], GraphError, "edges lead both from and to"),
        ([], GraphError, "this graph has no edges"),
        ([(1, 2, math.nan)], SchemaError, "ratings are finite numbers; 1 of 1 are not"),
        ([(1, 2, -math.inf)], SchemaError, "ratings are finite numbers; 1 of 1 are not"),
        ([(1, 2, None)], SchemaError, "are null: drop those edges"),
    ],
)
def test_what_are_no_ratings_of_items_by_users_is_refused(edges, error, says):
    for workers in (1, 2):
        with pytest.raises((error, WorkerError), match=says):
            model_of(edges, [7], workers)
