"""The algorithms of a graph of tables, wherever its tables are.

Each method says which dataflow answers it; how ids become numbers, where the dataflow runs and
how answers get back to the vertices is up to the graph (`graph.py`; on Spark,
`pointstamp.spark.graph`). Names and columns are those of GraphFrames.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.errors import UsageError
from pointstamp.graph.tables.argument_checks import is_number, seed_of, share, whole_number
from pointstamp.graph.tables.vertex_question import ValueColumn, VertexQuestion
from pointstamp.operators.names_elsewhere import closest
from pointstamp.operators.stream import Stream

Frame = TypeVar("Frame")
"""A table of Arrow, or a DataFrame of Spark."""

Edges = Stream[Any]

ABSENT = {
    "aggregate_neighbors": "find() of a chain, pregel() and random_walks() go several edges far",
    **dict.fromkeys(
        ("cache", "persist", "unpersist"),
        "tables stay in memory; of DataFrames, cache those that the graph is made of",
    ),
}
"""What GraphFrames has and graphs of tables have not, in snake case, and what there is."""

RENAMED = {
    "as_reversed": "reverse",
    "detecting_cycles": "detect_cycles",
    "nodes": "vertices",
    "pagerank": "page_rank",
    "personalized_pagerank": "parallel_personalized_page_rank",
    "weakly_connected_components": "connected_components",
    "triangles": "triangle_count",
    "core_number": "k_core",
    "coreness": "k_core",
    "dijkstra": "sssp",
    "single_source_shortest_path_length": "sssp",
    "shortest_path": "bfs",
    "degree": "degrees",
    "in_degree": "in_degrees",
    "out_degree": "out_degrees",
    "simple_cycles": "detect_cycles",
    "to_undirected": "as_undirected",
    "subgraph": "filter_vertices",
}
"""What GraphFrames, NetworkX and igraph call otherwise, in snake case, and its name here."""


class GraphAlgorithms(ABC, Generic[Frame]):
    """What can be asked of every vertex of a graph: the vertices, with a column more."""

    if not TYPE_CHECKING:  # or every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            """Say of names of other libraries what is called so here, or that it is not there."""
            snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
            own = RENAMED.get(snake, snake)
            called = type(self).__name__
            if snake in ABSENT:
                raise AttributeError(
                    f"{called} has no {name!r}, which GraphFrames has: {ABSENT[snake]}"
                )
            if own != name and hasattr(type(self), own):
                raise AttributeError(f"{called} has no {name!r}: it is called {own!r} here")
            hint = closest(name, type(self))
            raise AttributeError(f"{called!r} object has no attribute {name!r}{hint}")

    @abstractmethod
    def _answered(self, question: VertexQuestion) -> Frame:
        """The vertices with what the question's dataflow answers."""

    @abstractmethod
    def _numbers(self, ids: Sequence[Any]) -> list[int]:
        """The numbers that stand for ids.

        Raises
        ------
        GraphError
            For an id that is no vertex.
        """

    # Ranks.

    def page_rank(
        self,
        reset_probability: float = 0.15,
        source_id: Any = None,
        max_iter: int | None = None,
        tol: float | None = None,
        *,
        weight: str | None = None,
    ) -> Frame:
        """The PageRank of each vertex: `pagerank`.

        Parameters
        ----------
        reset_probability : float
            How likely a jump is, from 0 to 1.
        source_id : optional
            The vertex that jumps lead to; any, if not given.
        max_iter, tol : optional
            How many rounds; or to go on until no rank changes by more than this. Either.
        weight : str, optional
            A column of the edges: a walk takes an edge in proportion to it. Edges that repeat
            count each.

        Returns
        -------
        table
            The vertices, with a column `pagerank`, float64. Ranks add up to the number of
            vertices; with a source to 1.

        Notes
        -----
        See `weighted_ranks`, which does it.
        """
        sources = [] if source_id is None else self._numbers([source_id])
        return self._ranks(reset_probability, max_iter, tol, sources, weight, "pagerank")

    def parallel_personalized_page_rank(
        self,
        reset_probability: float = 0.15,
        source_ids: Sequence[Any] | None = None,
        max_iter: int | None = None,
        *,
        weight: str | None = None,
    ) -> Frame:
        """The personalized PageRank for each of several sources: `pageranks`, a list of float64.

        They are in the order of `source_ids`, and all found in the same rounds.
        """
        sources = self._numbers(_several(source_ids, "personalized PageRank needs source_ids"))
        return self._ranks(reset_probability, max_iter, None, sources, weight, "pageranks")

    def _ranks(
        self,
        reset_probability: float,
        max_iter: int | None,
        tol: float | None,
        sources: Sequence[int],
        weight: str | None,
        becomes: str,
    ) -> Frame:
        from pointstamp.graph.weighted_page_rank import RANKS, check_ranks, weighted_ranks

        options: dict[str, Any] = {
            "rounds": max_iter,
            "tolerance": tol,
            "damping": 1.0 - share(reset_probability, "reset_probability"),
            "sources": tuple(sources),
        }
        if max_iter is not None:
            whole_number(max_iter, "max_iter of PageRank")
        if tol is not None and not is_number(tol):
            raise UsageError(f"tol of PageRank is a number above 0, not {tol!r}")
        check_ranks(max_iter, tol, options["damping"])
        build = partial(weighted_ranks, **options)
        kind = ValueColumn(RANKS, becomes, "only" if becomes == "pagerank" else "doubles")
        return self._answered(VertexQuestion(build, kind, weighted=True, weight=weight))

    # Distances.

    def shortest_paths(self, landmarks: Sequence[Any], *, is_directed: bool = True) -> Frame:
        """The distance in edges from each vertex to each landmark: `distances`, a map by landmark.

        A landmark that cannot be reached is not in the map of a vertex.
        """
        from pointstamp.graph.landmarks import DISTANCES, landmark_distances

        several = _several(landmarks, "shortest_paths needs landmarks")
        # By number: ids may be structs, which have no hash.
        by_number: dict[int, Any] = {}
        for number, landmark in zip(self._numbers(several), several, strict=True):
            by_number.setdefault(number, landmark)
        numbers = tuple(by_number)

        def build(edges: Edges, vertices: Edges) -> Stream[Any]:
            return landmark_distances(edges, numbers, vertices, directed=is_directed)

        kind = ValueColumn(DISTANCES, "distances", "distances")
        return self._answered(VertexQuestion(build, kind, landmarks=tuple(by_number.values())))

    def sssp(
        self, source_id: Any, weight: str | None = "weight", *, is_directed: bool = True
    ) -> Frame:
        """The weighted distance from one vertex to each: `distance`, float64.

        Parameters
        ----------
        weight : str or None
            The column of the edges that has weights, numbers of 0 or more; without one each
            edge weighs 1.

        Returns
        -------
        table
            The vertices, with `distance` null for those that cannot be reached.
        """
        from pointstamp.graph.shortest_paths import DISTANCE, sssp

        [source] = self._numbers([source_id])

        def build(edges: Edges, vertices: Edges) -> Stream[Any]:
            return sssp(edges, source, vertices, directed=is_directed)

        kind = ValueColumn(DISTANCE, "distance", "double")
        return self._answered(VertexQuestion(build, kind, weighted=True, weight=weight))

    # Groups.

    def label_propagation(self, max_iter: int) -> Frame:
        """Communities: in each round a vertex takes the most frequent `label` of its neighbours.

        A label is the id of a vertex. In- and out-neighbours vote, those that are both twice;
        of labels that are as frequent the least is taken. See `communities`.
        """
        from pointstamp.graph.label_propagation import COMMUNITY, communities

        rounds = whole_number(max_iter, "max_iter of label_propagation")
        build = partial(communities, rounds=rounds)
        return self._answered(VertexQuestion(build, ValueColumn(COMMUNITY, "label", "id")))

    def connected_components(self) -> Frame:
        """The connected `component` of each vertex, directions ignored: the id of a vertex."""
        from pointstamp.graph.components import COMPONENT, connected_components

        kind = ValueColumn(COMPONENT, "component", "id")
        return self._answered(VertexQuestion(connected_components, kind))

    def strongly_connected_components(self) -> Frame:
        """The strongly connected `component` of each vertex: the id of a vertex in it."""
        from pointstamp.graph.components import COMPONENT
        from pointstamp.graph.scc import strongly_connected_components

        kind = ValueColumn(COMPONENT, "component", "id")
        return self._answered(VertexQuestion(strongly_connected_components, kind))

    def power_iteration_clustering(
        self, k: int, max_iter: int, weight_col: str | None = None
    ) -> Frame:
        """Power iteration clustering into at most k groups: `cluster`, int64 from 0.

        Parameters
        ----------
        k : int
            How many groups, at least 1. There are fewer where vertices are alike.
        max_iter : int
            So many rounds at most.
        weight_col : str, optional
            A column of the edges: how near their ends are, numbers of 0 or more. Directions and
            loops mean nothing, and edges that repeat add up.

        Returns
        -------
        table
            The vertices, with `cluster` null for those without edges. The same each time.

        Notes
        -----
        See `power_iteration_clusters`, which does it.
        """
        from pointstamp.graph.power_iteration import CLUSTER, power_iteration_clusters

        k = whole_number(k, "k of power_iteration_clustering", 1)
        rounds = whole_number(max_iter, "max_iter of power_iteration_clustering")
        build = partial(power_iteration_clusters, k=k, rounds=rounds)
        kind = ValueColumn(CLUSTER, "cluster", "long")
        return self._answered(VertexQuestion(build, kind, weighted=True, weight=weight_col))

    # Ratings.

    def svd_plus_plus(
        self,
        rank: int = 10,
        max_iter: int = 2,
        min_value: float = 0.0,
        max_value: float = 5.0,
        gamma1: float = 0.007,
        gamma2: float = 0.007,
        gamma6: float = 0.005,
        gamma7: float = 0.015,
        *,
        weight: str | None = "weight",
        seed: int = 42,
    ) -> Frame:
        """SVD++, a model of ratings, of edges that lead from users to items.

        A rating is predicted as `mean_rating`, and the `bias` of the user and of the item, and the
        product of the user's `implicit_factors` and the item's `factors`.

        Parameters
        ----------
        rank : int
            How many factors each user and each item has.
        max_iter : int
            How often all ratings are learned from. Two, as GraphFrames has it, are few.
        min_value, max_value : float
            Predictions are clipped to these.
        gamma1, gamma2 : float
            Learning rates, of biases and of factors: the smaller, the more ratings a vertex has.
        gamma6, gamma7 : float
            Regularization, of biases and of factors.
        weight : str or None
            The column of the edges that has ratings, finite numbers; without one each is 1. Edges
            that repeat count each.
        seed : int
            Of the first factors: the same for the same seed and ids, on any number of workers.

        Returns
        -------
        table
            The vertices, with `factors` and `implicit_factors`, lists of float64, which for a user
            include those that the items add; `bias`; `norm`, 1 over the root of the number of
            ratings; and, the same at each, `mean_rating`, and `loss`, the mean of the squared
            errors. All are null for vertices without edges.

        Notes
        -----
        See `pointstamp.graph.svd_plus_plus`, which does it.

        Examples
        --------
        >>> from pointstamp.graph import Graph
        >>> stars = {"src": ["ann", "ann", "bob"], "dst": ["tea", "ale", "tea"], "stars": [5, 1, 4]}
        >>> model = Graph(stars).svd_plus_plus(2, 500, gamma2=0.05, weight="stars")
        >>> model.column("loss")[0].as_py() < 0.01
        True
        """
        from pointstamp.graph import factorization as model

        gammas = {"gamma1": gamma1, "gamma2": gamma2, "gamma6": gamma6, "gamma7": gamma7}
        options: dict[str, Any] = {
            "rank": whole_number(rank, "rank of svd_plus_plus", 1),
            "rounds": whole_number(max_iter, "max_iter of svd_plus_plus"),
            "min_value": min_value,
            "max_value": max_value,
            "seed": seed_of(seed),
            **gammas,
        }
        model.check_numbers(min_value, max_value, gammas)
        build = partial(model.svd_plus_plus, **options)
        lists = [ValueColumn(name, name, "doubles") for name in (model.FACTORS, model.IMPLICIT)]
        names = (model.BIAS, model.NORM, model.MEAN, model.LOSS)
        numbers = [ValueColumn(name, name, "double") for name in names]
        return self._answered(
            VertexQuestion(
                build,
                lists[0],
                weighted=True,
                weight=weight,
                signed=True,
                more=(lists[1], *numbers),
            )
        )

    # Density.

    def triangle_count(self) -> Frame:
        """The number of triangles at each vertex, ignoring directions and duplicates: `count`."""
        from pointstamp.graph.clustering import COUNT, triangle_counts

        return self._answered(VertexQuestion(triangle_counts, ValueColumn(COUNT, "count", "long")))

    def k_core(self) -> Frame:
        """The core number of each vertex, the largest k such that it is in the k-core: `kcore`.

        Directions are ignored, and edges that repeat count once. See `core_numbers`.
        """
        from pointstamp.graph.core import CORE, core_numbers

        return self._answered(VertexQuestion(core_numbers, ValueColumn(CORE, "kcore", "long")))

    def clustering(self, *, is_directed: bool = False) -> Frame:
        """The local clustering coefficient of each vertex: `coefficient`, float64.

        Of the ordered pairs of its neighbours, at either end of an edge, the share that are edges.
        With `is_directed` that differs from NetworkX's, which is of triangles by direction.

        Source: D. J. Watts, S. H. Strogatz, 1998; directed as in LDBC Graphalytics.
        """
        from pointstamp.graph.clustering import COEFFICIENT, local_clustering

        build = partial(local_clustering, directed=is_directed)
        kind = ValueColumn(COEFFICIENT, "coefficient", "double")
        return self._answered(VertexQuestion(build, kind))

    def maximal_independent_set(self, seed: int = 42) -> Frame:
        """A maximal independent set: whether each vertex is `selected`; no two are neighbours.

        The same for the same seed and ids, on any number of workers.
        """
        from pointstamp.graph.independent_set import SELECTED, maximal_independent_set

        build = partial(maximal_independent_set, seed=seed_of(seed))
        kind = ValueColumn(SELECTED, "selected", "boolean")
        return self._answered(VertexQuestion(build, kind))


def _several(ids: Sequence[Any] | None, needed: str) -> list[Any]:
    """Ids as a list; text is one id, and no list of those that its characters would be."""
    if isinstance(ids, str | bytes):
        raise UsageError(f"{needed}, a list of ids, and {ids!r} is one: say [{ids!r}]")
    if not isinstance(ids, Iterable | None):
        raise UsageError(f"{needed}, a list of ids, and {ids!r} is none: say [{ids!r}]")
    found = [] if ids is None else list(ids)
    if not found:
        raise UsageError(f"{needed}, one vertex or more")
    return found
