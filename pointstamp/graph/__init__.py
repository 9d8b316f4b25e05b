"""What people come for: patterns in graphs, as dataflows over streams of edges."""

from __future__ import annotations

from pointstamp.graph.cliques import cliques, count_cliques
from pointstamp.graph.motifs import count_motifs, motifs
from pointstamp.graph.patterns import Pattern, parse_pattern
from pointstamp.graph.triangles import count_triangles, triangles

__all__ = [
    "Pattern",
    "cliques",
    "count_cliques",
    "count_motifs",
    "count_triangles",
    "motifs",
    "parse_pattern",
    "triangles",
]
