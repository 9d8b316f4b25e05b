"""What people come for: patterns in graphs, and what is known of their vertices.

All are dataflows over streams of edges; the graph of a time is the edges of that time.
"""

from __future__ import annotations

from pointstamp.graph.bfs import bfs
from pointstamp.graph.cliques import cliques, count_cliques
from pointstamp.graph.clustering import local_clustering
from pointstamp.graph.communities import communities
from pointstamp.graph.components import connected_components
from pointstamp.graph.core import core_numbers, k_core
from pointstamp.graph.labels import components_by_labels
from pointstamp.graph.motifs import count_motifs, motifs
from pointstamp.graph.pagerank import pagerank
from pointstamp.graph.patterns import Pattern, parse_pattern
from pointstamp.graph.scc import strongly_connected_components
from pointstamp.graph.sssp import sssp
from pointstamp.graph.triangles import count_triangles, triangles

__all__ = [
    "Pattern",
    "bfs",
    "cliques",
    "communities",
    "components_by_labels",
    "connected_components",
    "core_numbers",
    "count_cliques",
    "count_motifs",
    "count_triangles",
    "k_core",
    "local_clustering",
    "motifs",
    "pagerank",
    "parse_pattern",
    "sssp",
    "strongly_connected_components",
    "triangles",
]
