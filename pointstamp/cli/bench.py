"""`pointstamp bench`: run the benchmarks of the checkout that this package is of.

They are not part of the installed package. What they claim is of this source, they
need a dozen other programs to compare it with, and they write their results and the
page about them back into the repository: all of which is there in a checkout and
nowhere else. So this looks for them beside the package, which is where an editable
installation has them, and says what to do where they are not.

They run in place of this process, so that signals and the exit status are theirs, and
nothing that was imported here counts as memory there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from pointstamp.errors import UsageError

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Which; all if none is named.")
]
List = Annotated[bool, typer.Option("--list", help="Say which there are.")]
Size = Annotated[
    str, typer.Option(metavar="SIZE", help="tiny, small or full; only results of full are kept.")
]
Samples = Annotated[int, typer.Option(metavar="N", min=1, help="Samples of each case.")]
Page = Annotated[
    bool, typer.Option("--page", help="Only make docs/benchmarks.md again, from the results.")
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Show where ours spends its time instead.")
]

MISUSED = 2


def bench(
    names: Names = None,
    list_: List = False,
    size: Size = "full",
    samples: Samples = 5,
    page: Page = False,
    profile: Profile = False,
) -> None:
    """Measure what is claimed, with baselines in the same run; needs a checkout."""
    try:
        root = checkout(Path(__file__).resolve().parent.parent)
    except UsageError as error:
        print(f"pointstamp: {error}", file=sys.stderr)
        raise typer.Exit(MISUSED) from None
    flags = ["--list"] * list_ + ["--page"] * page + ["--profile"] * profile
    _become(root, [*(names or []), *flags, "--size", size, "--samples", str(samples)])


def checkout(package: Path) -> Path:
    """The root of the checkout that the folder `package` is in.

    Raises
    ------
    UsageError
        If there are no benchmarks beside the package.
    """
    root = package.parent
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise UsageError(
            f"there are no benchmarks beside {package}: an installed package does not "
            "have them; get the repository, install it with `pip install -e '.[spark,bench]'`, and "
            "run this again"
        )
    return root


def _become(root: Path, arguments: list[str]) -> NoReturn:
    """End as `python -m benchmarks`, with the checkout first on its path."""
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    sys.stdout.flush()
    command = [sys.executable, "-m", "benchmarks", *arguments]
    os.execve(sys.executable, command, {**os.environ, "PYTHONPATH": path})
