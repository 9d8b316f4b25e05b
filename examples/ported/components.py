"""Connected components while edges come and go. After Pathway's tutorial on `iterate`."""

from typing import Any

import pointstamp as ps

EPOCHS = [  # edges that come (1) and go (-1)
    [((1, 2), 1), ((2, 3), 1), ((2, 8), 1), ((8, 4), 1), ((8, 5), 1)],
    [((2, 8), -1)],
    [((9, 10), 1)],
    [((3, 9), 1)],
    [((2, 3), -1)],
]


def components(scope: ps.Scope, edges: ps.Collection) -> Any:
    both = edges.concat(edges.select(src="dst", dst="src"))
    vertices = both.select(vertex="src", least="src").distinct()

    def spread(labels: Any) -> Any:
        offered = labels.join(both, left_on="vertex", right_on="src").select("least", vertex="dst")
        return offered.concat(vertices).group_by("vertex").agg(least=ps.min("least"))

    return vertices.iterate(spread)


def main() -> None:
    view = ps.View(components, edges="src long, dst long")
    for changes in EPOCHS:
        for edge, diff in changes:
            (view.insert if diff > 0 else view.delete)("edges", [edge])
        moved = [row for row, diff in view.advance() if diff > 0]
        print(", ".join(f"{vertex}: {least}" for vertex, least in moved))


if __name__ == "__main__":
    main()
