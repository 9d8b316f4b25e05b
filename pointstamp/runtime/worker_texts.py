"""What a worker holds of numbers of texts, and the sweeps that it begins and goes on with.

A worker is asked between steps on its own thread, or at a safepoint (`safepoints.py`): then nothing
of it runs. What its operators keep they say, and what is under way between them is looked through
(`dataflow/texts_held.py`), so that no epoch has to be over. What is on its way from other processes
has texts, and no numbers; so has what is handed out for a snapshot. Workers that are threads of
this process, or take turns in one, send each other numbers: what is on its way between them is
looked through, too. Beside its dataflows a program may keep numbers for the worker, as a service
does of what it adds up; it says so by `also_holds`.

A worker with collections looks once in `LOOK_EVERY` steps, and in each while a sweep goes on, or is
due. If another worker is at work then, it may wait a moment for that one to look as well.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

from pointstamp.runtime.safepoints import RENDEZVOUS, Safepoint

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pointstamp.dataflow.texts_held import Holding, TextsHeld
    from pointstamp.runtime.installed_dataflow import InstalledDataflow
    from pointstamp.runtime.worker import Worker

LOOK_EVERY = 16
"""Steps from a look that found nothing to do to the next one."""

NEVER = 1 << 62
"""The step at which a worker without collections looks."""


def answer_for(worker: Worker, dataflow: InstalledDataflow, held: TextsHeld) -> WorkerTexts:
    """Have sweeps ask a worker what a new dataflow holds, until that ends.

    What a durable one keeps when it is complete is in later snapshots, and asked for until the
    worker ends.
    """
    texts = worker.texts
    if texts is None:
        texts = WorkerTexts(worker)
        worker.environment.texts.end()
        worker.environment.texts = texts
    texts.add(held)

    def end() -> None:
        if dataflow.durable_state is None or dataflow.is_dropped:
            texts.forget(held)

    dataflow.closers.callback(end)
    return texts


class WorkerTexts:
    """Answers for all dataflows of one worker; see `TextHolder`."""

    called = "a worker"
    runs_code = False

    def __init__(self, worker: Worker) -> None:
        # Not above: it imports NumPy, and not all workers have collections.
        from pointstamp.containers.dictionary import TEXTS
        from pointstamp.containers.text_sweep import SWEEPS

        self._worker = worker
        self._dictionary, self._sweeps = TEXTS, SWEEPS
        self._owner = get_ident()
        self._safepoint = Safepoint()
        self._is_held = False
        self._held: list[TextsHeld] = []
        self._others: list[Holding] = []
        self._unsaid: dict[str, None] = {}
        """Operators, also of dataflows that have ended, that may have handed something out."""
        self._n_entered = -1
        self._tries_again = self._is_over = False
        SWEEPS.add_holder(self)

    def add(self, held: TextsHeld) -> None:
        """Answer for another dataflow."""
        self._held += [held, *held.outliving]
        self._unsaid.update(dict.fromkeys(held.unsaid))

    def forget(self, held: TextsHeld) -> None:
        """It has ended; what is read from outside may be read yet."""
        self._held = [other for other in self._held if not (other is held or other.is_over)]
        held.let_go()

    def also_holds(self, holding: Holding) -> None:
        """Answer for what is kept beside dataflows."""
        self._others.append(holding)

    def end(self) -> None:
        """The worker has ended."""
        self._is_over = True
        for held in self._held:
            held.is_over = True
        self._held.clear()
        self._others.clear()
        self._sweeps.remove_holder(self)

    def park(self, timeout_s: float | None = None) -> None:
        """Have the worker park, at its safepoint."""
        self._safepoint.enter()
        try:
            self._worker.communicator.park(timeout_s)
        finally:
            self._safepoint.leave()

    def look(self) -> int:
        """Begin a sweep or go on with one, if there is something to do; between steps.

        Returns after how many steps to look again.
        """
        n_entered, sweeps = self._dictionary.n_entered, self._sweeps
        if n_entered == self._n_entered and not (self._tries_again or sweeps.is_awake):
            return LOOK_EVERY
        self._n_entered = n_entered
        n_missed = RENDEZVOUS.n_missed
        has_begun = self._advance()
        if not has_begun and RENDEZVOUS.n_missed != n_missed:
            has_begun = self._safepoint.meet(self._advance)
        elif has_begun:
            self._safepoint.has_met()
        # What refuses for ever is not asked again before there is more to be swept.
        self._tries_again = not (has_begun or sweeps.is_refused_for_good)
        return 1 if self._tries_again or sweeps.is_awake else LOOK_EVERY

    def _advance(self) -> bool:
        """Begin a sweep or go on with one; whether one goes on, or none is due."""
        self._sweeps.advance()
        return self._sweeps.is_under_way or not self._sweeps.is_due

    # See `containers/text_sweep.py`.

    def holds_still(self) -> bool:
        """Whether it is between steps on this thread, or at a safepoint, where it is held."""
        if self._is_over:
            return True
        worker = self._worker
        if get_ident() == self._owner:
            # Nothing else runs on this thread. Of workers that take turns in it, one that waits for
            # its turn is at the beginning of a step.
            is_between = not worker._is_stepping
            is_still = is_between or getattr(worker.communicator, "is_suspended", False)
        else:
            is_still = self._is_held = self._safepoint.hold()
        if is_still and worker._is_building:
            self.goes_on()
            return False
        return is_still

    def goes_on(self) -> None:
        """Let it leave its safepoint."""
        if self._is_held:
            self._is_held = False
            self._safepoint.release()

    def never_says(self) -> str:
        """Why it can never be said which texts are held here; empty if it can."""
        if self._is_over or not self._unsaid:
            return ""
        return (
            "a worker has, or had, operators that do not say which texts they keep: "
            f"{', '.join(self._unsaid)}"
        )

    def refuses_sweep(self) -> str:
        """Why it cannot be said now which texts are held here; empty if it can."""
        if self._is_over:
            return ""
        if self._worker._failure is not None:
            return "a worker has failed, and is not closed"
        if any(held.n_given for held in self._held):
            return "rows are being given to an input of a worker, or read of a trace"
        if why := next((why for held in self._held if (why := held.why_not_found())), ""):
            return why
        # Not above: see `__init__`.
        from pointstamp.dataflow.texts_under_way import NotInMemory

        try:
            self._between_workers()
        except NotInMemory as error:
            return str(error)
        return ""

    def held_texts(self) -> list[tuple[npt.NDArray[np.int64], tuple[int, ...]]]:
        """All that is held here, between steps."""
        if self._is_over:
            return []
        found: list[Any] = self._between_workers()
        for held in self._held:
            found += held.all()
        for holding in self._others:
            found += holding()
        return found

    def _between_workers(self) -> list[Any]:
        """What is on its way between workers of this process, as rows.

        On the channels that this worker has made, and that end in no operator that may hold texts,
        are orders of its own, changes of progress and such, and no rows.
        """
        worker = self._worker
        under_way = worker.communicator.objects_under_way()
        if not under_way:
            return []
        from pointstamp.dataflow.texts_under_way import rows_in

        readers = {id: name for held in self._held for id, name in held.channels()}
        others = worker.environment.channels.keys() - readers.keys()
        found: list[Any] = []
        for channel, batch in under_way:
            if channel not in others:
                found += rows_in([batch], readers.get(channel, "of a dataflow that is not built"))
        return found
