"""How a command that searches a graph was asked to do it.

The fields of `Request` that are annotated for Typer are the arguments and options of all such
commands. This is read for `--help` as well, so it imports next to nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from pointstamp.cli.streams import check_open
from pointstamp.communication.spin import n_processors
from pointstamp.errors import FileFormatError, PatternError, UsageError

if TYPE_CHECKING:
    from pointstamp.cli.search import Search, Wanted


def _log_in(folder: str) -> Any:
    from pointstamp.observability.log import Log

    return Log(folder)


LogTo = Annotated[
    Any,
    Option("--log", metavar="FOLDER", parser=_log_in, help="Write event logs of the workers."),
]
"""What `execute` takes as `log`: a `Log`, or None."""
Json = Annotated[bool, Option("--json", help="Print one JSON object instead.")]


# Neither compared nor shown: what a dataclass has for that would be made even for `--help`,
# which it would take longer.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Request:
    """How a question of a graph is to be answered."""

    command: str
    edges: Annotated[str, Argument(metavar="EDGES")]
    workers: Annotated[
        int, Option(metavar="N", min=1, help="Number of workers.", show_default="one per processor")
    ] = n_processors()
    on: Annotated[
        Literal["local", "spark"],
        Option(help="Processes on this machine, or tasks of a Spark job."),
    ] = "local"
    master: Annotated[
        str | None, Option(metavar="URL", help="Spark's master, as local[4] or spark://host:7077.")
    ] = None
    out: Annotated[
        Path | None, Option(metavar="FILE.parquet", help="Write all matches to this file.")
    ] = None
    count: Annotated[
        bool,
        Option("--count", help="Only count, without materializing the matches."),
    ] = False
    log: LogTo = None
    progress: Annotated[
        Literal["demand", "eager"],
        Option(help="Send progress updates on demand, or at once."),
    ] = "demand"
    json: Json = False

    @property
    def wanted(self) -> "Wanted":
        """What is to be made of the matches."""
        return "count" if self.count else "first" if self.out is None else "file"

    @property
    def source(self) -> str:
        """What to call the input."""
        return "standard input" if self.edges == "-" else self.edges

    def options(self) -> dict[str, Any]:
        """How the workers are run, as `execute` and `run` of `pointstamp.spark` take it."""
        return {"workers": self.workers, "progress": self.progress, "log": self.log}

    def check(self, search: "Search") -> None:
        """Raise UsageError if that is not possible, before anything is begun."""
        from pointstamp.formats.atomic_file import folder_beside
        from pointstamp.formats.edge_files import read_edges

        if self.master is not None and self.on != "spark":
            raise UsageError(
                f"--master {self.master} says where Spark is, and the workers are to be processes "
                f"of this machine; add --on spark, or leave it out"
            )
        read_edges(self.edges)  # nothing is read, but it has to be there
        if not self.count and not search.columns:
            raise PatternError(
                f"the pattern names no vertex, so there is nothing to show of a match: "
                f"{search.title}; name one, as in '(a)', or --count"
            )
        if self.json or self.wanted != "file":
            check_open(", or ask for all matches in a file (--out FILE)")
        if self.out is None:
            return
        if self.count:
            raise UsageError("--count makes no matches that --out could write; leave out one")
        if self.out.suffix.lower() not in ("", ".parquet"):
            raise UsageError(
                f"--out {self.out}: matches are written as Parquet, and not as "
                f"{self.out.suffix}; name it {self.out.with_suffix('.parquet')}"
            )
        try:
            # A search may take hours, so whether there is writing is tried before it.
            with folder_beside(self.out):
                pass
        except FileFormatError as error:
            raise UsageError(f"--out {error}") from error
