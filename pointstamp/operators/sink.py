"""The end of a stream: in a sink, or in code of the user's that sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, cast, overload

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.connectors import Sink, TransactionalSink
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pact
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.user_code import check_function, check_takes
from pointstamp.progress.operate import Interest


class SinkMethods(StreamCore[T]):
    """The end of a stream. Methods of `Stream`."""

    @overload
    def sink(self, pact: Sink | TransactionalSink, name: str = "Sink") -> None: ...

    @overload
    def sink(self, pact: Pact, name: str, logic: Callable[[Input], Any]) -> None: ...

    def sink(
        self,
        pact: Pact | Sink | TransactionalSink,
        name: str = "Sink",
        logic: Callable[[Input], Any] | None = None,
    ) -> None:
        """Write this stream to a sink, or by a custom operator without output; `logic(input)`.

        `input.frontier` says what may still come, and its moves are a reason to run.

        In place of a pact, a `Sink` is given alone: each worker writes to it what comes to it. A
        `TransactionalSink` is written to an epoch at a time, and has each committed when it is
        complete; in a run with a checkpoint (`ps.run`) when its snapshot counts, so that each
        record is there exactly once.

        Raises
        ------
        BuildError
            If a pact comes without a logic; if epochs are to be committed in a scope of other
            times. While it runs, if what is given as the logic makes one, as that of other
            operators is made by `build`: here is the logic itself.
        SinkError
            While it runs, if a sink refuses.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     events = []
        ...     def logic(input):
        ...         for time, batch in input:
        ...             events.append((time.time, batch))
        ...         if input.frontier.is_empty():
        ...             events.append("end")
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2]).sink(ps.Pipeline(), "Events", logic)
        ...     worker.run()
        ...     return events
        >>> ps.execute(main)
        [[(0, [1, 2]), 'end']]
        """
        if logic is not None:
            check_function(logic, name)
            check_takes(logic, name, "input")
            _read(self, cast(Pact, pact), name, logic)
            return
        if not callable(getattr(pact, "open", None)):
            given: Any = pact  # of any type, until it is looked at
            hint = ""
            if isinstance(given, str | PathLike):
                hint = "; files are written by ps.FileSink(path)"
            elif callable(given):
                hint = "; inspect(function) calls a function of each record"
            raise BuildError(
                f"operator {name!r} is given a pact and a logic, or a sink alone, which has "
                f"open(context); found {pact!r}{hint}"
            )
        # Here and not above: many dataflows have none.
        from pointstamp.operators.sink_writing import write_to_sink

        write_to_sink(self, cast(Sink, pact), name)


def _read(stream: StreamCore[Any], pact: Pact, name: str, logic: Callable[[Input], Any]) -> None:
    """An operator of one input and no output."""
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, pact, Interest.ALWAYS)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], Any]:
        def run(inputs: list[Input], outputs: list[Output]) -> Any:
            made = logic(inputs[0])
            if callable(made):  # its records would never be read
                raise BuildError(
                    f"operator {name!r} is given {logic!r:.200}, which gave {made!r:.200}: a sink "
                    "without a Sink takes the logic itself, logic(input), and no function that "
                    "makes it"
                )
            return made

        return run

    builder.build(make_logic)
