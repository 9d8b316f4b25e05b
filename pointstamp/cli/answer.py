"""From a request to what is printed and the exit status.

0: it went well. 1: the computation failed. 2: it was asked for wrongly, or the
input is not what it should be. 129, 130 and 143: its terminal was closed, it was
interrupted, and terminated, as shells have it. 141: whoever read standard output has
gone. An error that we expect is one message; `--traceback` shows where it came from,
and always for one that we do not expect.
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pointstamp.cli import streams
from pointstamp.cli.outcome import Outcome, Request, Wanted, as_json
from pointstamp.cli.streams import DONE, FAILED, HUNG_UP, INTERRUPTED, MISUSED, TERMINATED
from pointstamp.errors import InternalError, PointstampError, UsageError


class Terminated(KeyboardInterrupt):
    """Somebody ended this process in an orderly way.

    To everything between here and the place where it is raised this is an
    interruption, and not an error of a worker: so it is a kind of the one.
    """


class HungUp(KeyboardInterrupt):
    """The terminal was closed; an interruption for the same reason."""


def end_of(work: Callable[[], int], *, with_traceback: bool) -> int:
    """The exit status of `work()`, or of what stopped it, which is said."""
    try:
        # Terminated or interrupted, everything that was begun is cleaned up on the way out.
        with _raising_signals():
            return work()
    except KeyboardInterrupt as interruption:
        return _stopped(interruption)
    except Exception as error:  # noqa: BLE001  (the one place where all of them end)
        before = _interruption_before(error)
        if before is not None:
            return _stopped(before)
        return _failed(error, with_traceback)


def answer(request: Request, *, as_object: bool) -> int:
    """Answer the request and print; the exit status."""
    _check_output(request, as_object)
    return _print(request, _outcome(request), as_object)


@contextmanager
def _raising_signals() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and a terminal that is closed raise meanwhile.

    But for those that we are told to ignore: `nohup` says so of the terminal's end, and
    a shell of Ctrl-C for what it runs in the background.
    """
    before: dict[signal.Signals, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate)}
    for number, handler in _IGNORABLE.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_output(request: Request, as_object: bool) -> None:
    if sys.stdout is None and (as_object or request.wanted is not Wanted.FILE):
        raise UsageError(
            "standard output is closed, and the answer would go there; open it (> FILE), or ask "
            "for all matches in a file (--out FILE)"
        )


def _outcome(request: Request) -> Outcome:
    # Rich and Arrow are imported when a request has turned out to make sense.
    from pointstamp.cli.display import Display

    display = Display(request.command)
    if request.on == "spark":
        from pointstamp.cli import on_spark

        return on_spark.answer(request, display)
    from pointstamp.cli import local

    return local.answer(request, display)


def _print(request: Request, outcome: Outcome, as_object: bool) -> int:
    """Print the answer, and the summary; the exit status."""
    from pointstamp.cli.display import print_answer, print_summary

    try:
        if as_object:
            print(json.dumps(as_json(request, outcome)))
        else:
            print_answer(request, outcome)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return streams.unwritten(error)
    if not as_object:
        print_summary(request, outcome)
    return DONE


# When it is stopped.


def _stopped(interruption: KeyboardInterrupt) -> int:
    what, status = "interrupted", INTERRUPTED
    if isinstance(interruption, Terminated):
        what, status = "terminated", TERMINATED
    elif isinstance(interruption, HungUp):
        what, status = "the terminal was closed", HUNG_UP
    _say(f"{what}; nothing was written")
    return status


def _interruption_before(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption during whose handling `error` was raised: Spark's cancelled job, for one."""
    before: BaseException | None = error
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__cause__ or before.__context__
    return before


# When it fails.


def _failed(error: Exception, with_traceback: bool) -> int:
    """Say why; the exit status."""
    misuse = _misuse(error)
    if with_traceback:
        traceback.print_exception(error)
    if misuse is not None:
        _say(str(misuse))
        return MISUSED
    if not _is_expected(error) and not with_traceback:
        traceback.print_exception(error)
    _say(_in_words(error))
    return FAILED


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, what it was raised from, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _misuse(error: Exception) -> UsageError | None:
    """What is wrong with the request or its input, if that is why it failed."""
    return next((cause for cause in _causes(error) if isinstance(cause, UsageError)), None)


def _is_expected(error: Exception) -> bool:
    known = any(isinstance(cause, PointstampError) for cause in _causes(error))
    return known and not any(isinstance(cause, InternalError) for cause in _causes(error))


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, PointstampError) else f"{type(error).__name__}: {error}"


def _say(what: str) -> None:
    print(f"pointstamp: {what}", file=sys.stderr)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _hang_up(number: int, frame: FrameType | None) -> None:
    raise HungUp


_IGNORABLE = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: _hang_up}
