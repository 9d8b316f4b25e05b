"""A moment in which Python gets to do what it does between any two lines of Python.

Signals are handled there (Ctrl-C), the interpreter is passed on to other threads, and
from Python 3.12 on garbage is collected. Compiled code has no such moments, so a loop of
compiled operators that never ends could not be interrupted. A call of any function that
is *not* compiled is one: this module must stay out of `pointstamp/compiled.py`.
"""

from __future__ import annotations


def poll_signals() -> None:
    """Raise what the handlers of signals raise, and let other threads run if it is time."""
