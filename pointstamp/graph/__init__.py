"""Motifs in graphs, and graph algorithms, on streams of edges; and graphs of tables.

Each function builds a dataflow on a stream of edges; the graph of a time is the edges of that
time. Each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointstamp.graph.breadth_first import bfs as bfs
    from pointstamp.graph.clique_search import cliques as cliques
    from pointstamp.graph.clique_search import count_cliques as count_cliques
    from pointstamp.graph.clustering import local_clustering as local_clustering
    from pointstamp.graph.clustering import triangle_counts as triangle_counts
    from pointstamp.graph.components import connected_components as connected_components
    from pointstamp.graph.core import core_numbers as core_numbers
    from pointstamp.graph.core import k_core as k_core
    from pointstamp.graph.factorization import svd_plus_plus as svd_plus_plus
    from pointstamp.graph.independent_set import maximal_independent_set as maximal_independent_set
    from pointstamp.graph.label_propagation import communities as communities
    from pointstamp.graph.labels import components_by_labels as components_by_labels
    from pointstamp.graph.landmarks import landmark_distances as landmark_distances
    from pointstamp.graph.motif_search import count_motifs as count_motifs
    from pointstamp.graph.motif_search import motifs as motifs
    from pointstamp.graph.page_rank import pagerank as pagerank
    from pointstamp.graph.patterns import Pattern as Pattern
    from pointstamp.graph.patterns import parse_pattern as parse_pattern
    from pointstamp.graph.power_iteration import (
        power_iteration_clusters as power_iteration_clusters,
    )
    from pointstamp.graph.scc import strongly_connected_components as strongly_connected_components
    from pointstamp.graph.shortest_paths import sssp as sssp
    from pointstamp.graph.tables.graph import Graph as Graph
    from pointstamp.graph.triangle_search import count_triangles as count_triangles
    from pointstamp.graph.triangle_search import triangles as triangles
    from pointstamp.graph.weighted_page_rank import weighted_ranks as weighted_ranks

_HOMES = {
    "Graph": "tables.graph",
    "Pattern": "patterns",
    "bfs": "breadth_first",
    "cliques": "clique_search",
    "communities": "label_propagation",
    "components_by_labels": "labels",
    "connected_components": "components",
    "core_numbers": "core",
    "count_cliques": "clique_search",
    "count_motifs": "motif_search",
    "count_triangles": "triangle_search",
    "k_core": "core",
    "landmark_distances": "landmarks",
    "local_clustering": "clustering",
    "maximal_independent_set": "independent_set",
    "motifs": "motif_search",
    "pagerank": "page_rank",
    "parse_pattern": "patterns",
    "power_iteration_clusters": "power_iteration",
    "sssp": "shortest_paths",
    "strongly_connected_components": "scc",
    "svd_plus_plus": "factorization",
    "triangle_counts": "clustering",
    "triangles": "triangle_search",
    "weighted_ranks": "weighted_page_rank",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pointstamp.graph' has no attribute {name!r}")
    value = getattr(import_module(f"pointstamp.graph.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
