"""Sources that would read what a sink of the same program writes: refused when both are built.

Such a program never ends, and what it writes grows. Seen is what a source says of a sink, by
`would_read`; each worker builds all dataflows, so each sees all of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pointstamp.dataflow.environment import Environment
from pointstamp.errors import BuildError


def note_connector(environment: Environment, name: str, connector: Any) -> None:
    """Keep a source or a sink as long as its dataflow is there.

    Raises
    ------
    BuildError
        If it is a source that would read what one of the sinks writes, or such a sink.
    """
    noted = (name, connector)
    for other in environment.connectors:
        for (source_name, source), (sink_name, sink) in ((noted, other), (other, noted)):
            would_read = getattr(source, "would_read", None)
            if callable(would_read) and would_read(sink):
                raise BuildError(
                    f"sink {sink_name!r}, {sink!r}, writes to where source {source_name!r}, "
                    f"{source!r}, looks for more, so the program would read what it writes: "
                    "write to another folder"
                )
    environment.connectors.append(noted)
    environment.closers.at_end(partial(_leave, environment.connectors, noted))


def _leave(connectors: list[tuple[str, Any]], noted: tuple[str, Any]) -> None:
    connectors[:] = [each for each in connectors if each is not noted]
