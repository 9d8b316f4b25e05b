"""What a worker holds of numbers of texts, and the sweeps that it begins and goes on with.

A worker is asked between steps, on its own thread: then nothing of it runs. What its operators keep
they say, and what is under way between them is looked through (`dataflow/texts_held.py`), so that
no epoch has to be over. What is on its way from other processes has texts, and no numbers; so has
what is handed out for a snapshot. Beside its dataflows a program may keep numbers for the worker,
as a service does of what it adds up; it says so by `also_holds`.

A worker with collections looks once in `LOOK_EVERY` steps, and in each while a sweep goes on.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

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
    """Have sweeps ask a worker what a new dataflow holds, until that ends."""
    texts = worker.texts
    if texts is None:
        texts = WorkerTexts(worker)
        worker.environment.texts.end()
        worker.environment.texts = texts
    texts.add(held)
    dataflow.closers.callback(texts.forget, held)
    return texts


class WorkerTexts:
    """Answers for all dataflows of one worker; see `TextHolder`."""

    called = "a worker"

    def __init__(self, worker: Worker) -> None:
        # Not above: it imports NumPy, and not all workers have collections.
        from pointstamp.containers.dictionary import TEXTS
        from pointstamp.containers.text_sweep import SWEEPS

        self._worker = worker
        self._dictionary, self._sweeps = TEXTS, SWEEPS
        self._owner = get_ident()
        self._held: list[TextsHeld] = []
        self._others: list[Holding] = []
        self._unsaid: dict[str, None] = {}
        """Operators, also of dataflows that have ended, that may have handed something out."""
        self._n_entered = -1
        self._tries_again = self._is_over = False
        SWEEPS.add_holder(self)

    def add(self, held: TextsHeld) -> None:
        """Answer for another dataflow."""
        self._held.append(held)
        self._unsaid.update(dict.fromkeys(held.unsaid))

    def forget(self, held: TextsHeld) -> None:
        """It has ended."""
        self._held.remove(held)

    def also_holds(self, holding: Holding) -> None:
        """Answer for what is kept beside dataflows."""
        self._others.append(holding)

    def end(self) -> None:
        """The worker has ended."""
        self._is_over = True
        self._held.clear()
        self._others.clear()
        self._sweeps.remove_holder(self)

    def look(self) -> int:
        """Begin a sweep or go on with one, if there is something to do; between steps.

        Returns after how many steps to look again.
        """
        n_entered, sweeps = self._dictionary.n_entered, self._sweeps
        if n_entered == self._n_entered and not (self._tries_again or sweeps.is_awake):
            return LOOK_EVERY
        self._n_entered = n_entered
        sweeps.advance()
        # What refuses for ever is not asked again before there is more to be swept.
        self._tries_again = sweeps.is_due and not sweeps.is_awake and not self._unsaid
        return 1 if self._tries_again or sweeps.is_awake else LOOK_EVERY

    # See `containers/text_sweep.py`.

    def holds_still(self) -> bool:
        """Whether it is between steps, on this thread: then nothing of it runs meanwhile."""
        if self._is_over:
            return True
        worker = self._worker
        is_own = get_ident() == self._owner
        return is_own and not (worker._is_stepping or worker._is_building)

    def goes_on(self) -> None:
        """Nothing kept it."""

    def refuses_sweep(self) -> str:
        """Why it cannot be said now which texts are held here; empty if it can."""
        if self._is_over:
            return ""
        worker = self._worker
        if self._unsaid:
            return (
                "a worker has, or had, operators that do not say which texts they keep: "
                f"{', '.join(self._unsaid)}"
            )
        if worker._failure is not None:
            return "a worker has failed, and is not closed"
        if worker.communicator.has_objects_under_way():
            return "workers that are threads of this process send each other texts by number"
        if any(held.n_given for held in self._held):
            return "rows are being given to an input of a worker"
        return next((why for held in self._held if (why := held.why_not_found())), "")

    def held_texts(self) -> list[tuple[npt.NDArray[np.int64], tuple[int, ...]]]:
        """All that is held here, between steps."""
        found: list[Any] = []
        for held in self._held:
            found += held.all()
        for holding in self._others:
            found += holding()
        return found
