# cython: boundscheck=False, wraparound=False
"""What a scope keeps of each of its operators, and of each input that a frontier is delivered to.

All that a visit looks at lies side by side in one object. In a list for each of these things,
as many lists as there are things would be looked up for each operator; and a worker of many
dataflows, which have left the processor's cache by the next round, would wait for memory twice
for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import DirectOperate, Interest


class ScopeChild:
    """An operator of a scope, be it a scope itself; or the world outside, child 0.

    Parameters
    ----------
    number : int
        In the scope.
    operate : Operate, optional
        Nothing of the world outside.
    first : int
        The location of its first port: its inputs come before its outputs.
    """

    __slots__ = (
        "first",
        "inbox",
        "interests",
        "is_complete",
        "is_holder",
        "is_interested",
        "is_local",
        "is_pushed",
        "is_queued",
        "number",
        "operate",
        "operator",
    )

    def __init__(self, number: int, operate: Any = None) -> None:
        self.number = number
        self.operate = operate
        self.operator: DirectOperate | None = None
        """The same, where it can be called without Python."""
        if isinstance(operate, DirectOperate):
            self.operator = operate
        self.first = 0
        self.inbox: Sequence[ChangeBatch] = ()
        """Per input: what its next push takes."""
        self.interests: Sequence[Interest] = ()
        self.is_interested = False
        """Whether it is in any of its inputs' frontiers."""
        self.is_local = False
        self.is_pushed = True
        """Whether a frontier may come to any of its inputs."""
        self.is_queued = False
        """Whether it waits for a visit."""
        self.is_holder = False
        """Whether it held a capability after its last visit, and is interested."""
        self.is_complete = True

    def ask(self) -> None:
        """Ask the operator what does not change once its summary is known."""
        self.interests = self.operate.frontier_interest
        self.is_interested = any(self.interests)
        self.is_local = self.operate.local
        self.is_pushed = self.is_interested or not self.is_local

    def let_go(self) -> None:
        """Let go of the operator, which is visited no more, and have it let go of its logic.

        It and its scope hold each other. All that it holds, such as what a source was given,
        would stay until Python looks for garbage, and it goes by the number of objects.
        """
        if self.operator is not None and self.is_local:  # scopes: by themselves
            self.operator.let_go()
        self.operate = self.operator = None


class FrontierListener:
    """An input that its frontier's changes are delivered to."""

    __slots__ = ("batch", "child", "if_holder", "wakes")

    def __init__(self, child: ScopeChild, batch: ChangeBatch, interest: Interest) -> None:
        self.child = child
        self.batch = batch
        """Of the child's inbox."""
        self.wakes = interest == Interest.ALWAYS
        self.if_holder = interest == Interest.IF_CAPABILITY
        """Whether a change is a reason for a visit while the child holds a capability."""
