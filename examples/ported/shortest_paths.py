"""Bellman and Ford's shortest paths of a graph that changes. After Pathway's `bellman_ford`."""

from typing import Any

import pointstamp as ps
from pointstamp import col


def distances(scope: ps.Scope, roads: ps.Collection, starts: ps.Collection) -> Any:
    def relax(found: Any) -> Any:
        further = found.join(roads, left_on="town", right_on="src")
        further = further.select(town="dst", far=col("far") + col("length"))
        return further.concat(zero).group_by("town").agg(far=ps.min("far"))

    zero = starts.with_columns(far=0)
    return zero.iterate(relax)


def main() -> None:
    view = ps.View(distances, roads="src long, dst long, length long", starts="town long")
    view.insert("starts", [(1,)])
    view.insert("roads", [(1, 2, 3), (1, 3, 10), (2, 3, 4), (3, 4, 1)])
    print(view.advance())
    view.delete("roads", [(2, 3, 4)])
    print(view.advance())


if __name__ == "__main__":
    main()
