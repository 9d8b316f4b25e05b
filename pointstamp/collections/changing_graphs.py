"""Graph algorithms on graphs that change, as loops of collections.

Each takes a `Collection` of directed edges with integer columns `src` and `dst`, and gives one that
is kept up to date. An edge that is there twice counts twice in `pagerank`, and once elsewhere.

Source: the algorithms in differential-dataflow `algorithms/graphs`, and its `pagerank` example.
"""

from __future__ import annotations

from pointstamp.collections import aggregates
from pointstamp.collections.collection import Collection
from pointstamp.collections.expression import col, lit, when
from pointstamp.collections.fixpoint import brought_together
from pointstamp.collections.over import row_number
from pointstamp.errors import BuildError


def undirected(edges: Collection) -> Collection:
    """Each edge in both directions, once."""
    return edges.select("src", "dst").concat(edges.select(src="dst", dst="src")).distinct()


def vertices(edges: Collection) -> Collection:
    """The ends of edges, each once, as `node`."""
    return edges.select(node="src").concat(edges.select(node="dst")).distinct()


def bfs(edges: Collection, roots: Collection) -> Collection:
    """The vertices that are reached from any root, and in how few steps.

    Parameters
    ----------
    roots : Collection
        With the column `node`.

    Returns
    -------
    Collection
        `node`, `distance` (long).

    >>> import pointstamp as ps
    >>> view = ps.View(lambda scope, e, r: bfs(e, r), e="src long, dst long", r="node long")
    >>> view.insert("e", [(1, 2), (2, 3), (1, 3), (4, 1)])
    >>> view.insert("r", [(1,)])
    >>> view.advance()
    [((1, 0), 1), ((2, 1), 1), ((3, 1), 1)]
    >>> view.delete("e", [(1, 3)])
    >>> view.advance()
    [((3, 1), -1), ((3, 2), 1)]
    """
    start = roots.select("node", distance=lit(0)).distinct()

    def step(found: Collection) -> Collection:
        further = found.join(edges, left_on="node", right_on="src")
        offers = further.select(node="dst", distance=col("distance") + 1)
        return offers.concat(start).group_by("node").agg(distance=aggregates.min("distance"))

    return start.iterate(step, name="Bfs")


def components(edges: Collection) -> Collection:
    """The connected component of each vertex, by its least vertex; directions do not count.

    Returns
    -------
    Collection
        `node`, `label`.
    """
    both = edges.select("src", "dst").concat(edges.select(src="dst", dst="src"))
    return propagated(both, vertices(edges).select("node", label="node"))


def propagated(edges: Collection, labels: Collection) -> Collection:
    """The least label that reaches each vertex along edges.

    A label enters the later the more bits it has. Most are replaced by a lesser one before they
    have gone anywhere, which is less work, also when an edge goes.

    labels : `node`, `label`, at most one for each node
    """
    edges, labels = brought_together([edges, labels])
    with labels.scope.iterative(name="Propagate") as inner:
        bits = when(col("label") > 0).then(col("label").log2().cast("long") + 1).otherwise(0)
        least = inner.variable(labels.schema, name="Least")
        offers = least.join(edges, left_on="node", right_on="src").select("label", node="dst")
        start = labels.enter_at(inner, round=bits)
        found = offers.concat(start).group_by("node").agg(label=aggregates.min("label"))
        least.set(found)
        result: Collection = found.leave()
        return result


def strongly_connected(edges: Collection) -> Collection:
    """The strongly connected component of each vertex, by its least vertex.

    Edges between vertices that different labels reach are left out, forwards and backwards in turn,
    until all that are left lie in components: loops in a loop.

    Returns
    -------
    Collection
        `node`, `label`.

    >>> import pointstamp as ps
    >>> view = ps.View(lambda scope, e: strongly_connected(e), e="src long, dst long")
    >>> view.insert("e", [(1, 2), (2, 1), (2, 3)])
    >>> view.advance()
    [((1, 1), 1), ((2, 1), 1), ((3, 3), 1)]
    >>> view.insert("e", [(3, 1)])
    >>> view.advance()
    [((3, 1), 1), ((3, 3), -1)]
    """
    edges = edges.select("src", "dst").distinct()
    back = edges.select(src="dst", dst="src")
    inside = edges.iterate(lambda kept: _same_label(_same_label(kept, edges), back), name="Scc")
    return propagated(inside, vertices(edges).select("node", label="node"))


def _same_label(kept: Collection, edges: Collection) -> Collection:
    """The edges at both ends of which the same label arrives along `kept`, turned round."""
    starts = edges.select(node="dst", label="dst").distinct()
    labels = propagated(kept, starts)
    both = edges.join(labels, left_on="src", right_on="node")
    both = both.join(labels.select(dst="node", other="label"), on="dst")
    return both.filter(col("label") == col("other")).select(src="dst", dst="src")


def k_core(edges: Collection, k: int) -> Collection:
    """The edges, in both directions, of the largest part in which each vertex has `k` neighbours.

    Raises
    ------
    BuildError
        If `k` is less than 1.
    """
    if type(k) is not int or k < 1:
        raise BuildError(f"k_core is given k={k!r}, and should be given 1 or more")
    both = undirected(edges).filter(col("src") != col("dst"))

    def step(kept: Collection) -> Collection:
        enough = (
            kept.group_by("src")
            .agg(degree=aggregates.count())
            .filter(col("degree") >= k)
            .select("src")
        )
        ends = kept.join(enough, on="src", how="semi")
        return ends.join(enough, left_on="dst", right_on="src", how="semi")

    return both.iterate(step, name="Core")


def core_numbers(edges: Collection) -> Collection:
    """The greatest k of each vertex for which it is in the k-core; directions do not count.

    Each vertex begins with how many neighbours it has. Then in each round it gets the greatest k
    for which k of its neighbours have k or more, until none is lowered any more.

    Returns
    -------
    Collection
        `node`, `core` (long); 0 of a vertex that has no neighbour but itself.

    Source: A. Montresor, F. De Pellegrini, D. Miorandi, "Distributed k-core decomposition" (2013).

    >>> import pointstamp as ps
    >>> view = ps.View(lambda scope, e: core_numbers(e), e="src long, dst long")
    >>> view.insert("e", [(1, 2), (2, 3), (3, 1), (3, 4)])
    >>> view.advance()
    [((1, 2), 1), ((2, 2), 1), ((3, 2), 1), ((4, 1), 1)]
    >>> view.delete("e", [(1, 2)])
    >>> view.advance()
    [((1, 1), 1), ((1, 2), -1), ((2, 1), 1), ((2, 2), -1), ((3, 1), 1), ((3, 2), -1)]
    """
    both = undirected(edges).filter(col("src") != col("dst"))
    start = both.group_by("src").agg(core=aggregates.count()).rename({"src": "node"})
    place = row_number().over("node", order_by="core", descending=True)

    def step(cores: Collection) -> Collection:
        around = cores.join(both, left_on="node", right_on="src").select("core", node="dst")
        placed = around.with_columns(place=place)
        least = when(col("place") < col("core")).then(col("place")).otherwise(col("core"))
        return placed.select("node", core=least).group_by("node").agg(core=aggregates.max("core"))

    found = start.iterate(step, name="CoreNumbers")
    alone = vertices(edges).join(found, on="node", how="anti")
    return found.concat(alone.select("node", core=lit(0)))


def pagerank(edges: Collection, rounds: int = 20, damping: float = 0.85) -> Collection:
    """PageRank after some rounds; what vertices without an edge out have goes to all alike.

    A change of an edge may change the rank of each vertex; what does not change is not computed.

    Returns
    -------
    Collection
        `node`, `rank` (double), which add up to 1.

    Raises
    ------
    BuildError
        If there are no rounds, or the damping is not from 0 to 1.
    """
    if type(rounds) is not int or rounds < 1 or not 0 <= damping <= 1:
        raise BuildError(
            f"pagerank is given rounds={rounds!r} and damping={damping!r}; it needs 1 round at "
            "least, and a damping from 0 to 1"
        )
    nodes = vertices(edges)
    degrees = edges.group_by("src").agg(degree=aggregates.count())
    links = edges.join(degrees, on="src")
    sinks = nodes.join(degrees, left_on="node", right_on="src", how="anti")
    size = nodes.agg(n=aggregates.count()).filter(col("n") > 0)
    start = nodes.join(size, how="cross").select("node", rank=lit(1.0) / col("n"))

    def step(ranks: Collection) -> Collection:
        given = ranks.join(links, left_on="node", right_on="src")
        given = given.select(node="dst", part=col("rank") * damping / col("degree"))
        none = nodes.select("node", part=lit(0.0))
        parts = given.concat(none).group_by("node").agg(part=aggregates.sum("part"))
        kept = ranks.join(sinks, on="node").agg(lost=aggregates.sum("rank"))
        share = size.join(kept, how="cross").select(
            share=(lit(1.0 - damping) + col("lost").fill_null(0.0) * damping) / col("n")
        )
        return parts.join(share, how="cross").select(
            "node", rank=col("part").fill_null(0.0) + col("share")
        )

    return start.iterate(step, limit=rounds, name="PageRank")
