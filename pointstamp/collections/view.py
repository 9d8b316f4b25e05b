"""`View`: results that are kept up to date, in this process, by one worker.

An epoch is what was inserted and deleted between two calls of `advance`, which gives the
changes of the results that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from os import PathLike
from threading import RLock
from time import monotonic
from typing import Any

import numpy as np

from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.collections.beside import beside_of
from pointstamp.collections.changes import Changes, CollectionSnapshot, missing_row
from pointstamp.collections.clock_input import Clock, ClockHandle, ClockInput, new_clock
from pointstamp.collections.collection import Collection
from pointstamp.collections.fixpoint import brought_into
from pointstamp.collections.inputs import AppendInput, CollectionInput, new_collection
from pointstamp.collections.stats import CollectionStats, stats_of
from pointstamp.collections.upserts import UpsertHandle, UpsertInput, new_upserts
from pointstamp.communication.single import SingleCommunicator
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.text_sweep import SWEEPS, Held
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.texts_held import TextsHeld
from pointstamp.errors import BuildError, DataError, InputError
from pointstamp.kernels.consolidation import consolidate_all
from pointstamp.operators.building import built, name_of, takes_names
from pointstamp.operators.probe import Probe, probe_with
from pointstamp.progress.explanation import HolderKind
from pointstamp.runtime.run_options import check_options, memory_budget
from pointstamp.runtime.watched_structure import structure_of
from pointstamp.runtime.worker import Worker

_RESULT = "result"

_MOST_LATE = 1_024
"""So many changes of a result are added up at a time."""

_MOST_STEPS = 64
"""So many are done for results that are not waited for, so that texts can be swept."""


class View:
    """Incrementally maintained results of collections, on one worker in this process.

    Parameters
    ----------
    build : callable
        `build(scope, **inputs)` gets a `Collection` for each input, and returns a
        `Collection`, or a dict of them.
    inputs : schema, by name
        As a text, a `pyarrow.Schema` or a Spark `StructType`; None for records that are values of
        Python, a `RecordCollection`; a `ClockInput`, for which `build` gets a `Clock`; an
        `AppendInput`; or an `UpsertInput`.
    memory_limit : int or str, optional
        Bytes, or such as "512MB": how much of what waits, and of arrangements, is kept in memory.
        Of arrangements large batches go to disk beyond half of it, and are read from there.
    spill_directory : path, optional
        Where on disk; the default is that of `tempfile`. The files have no names there, so
        nothing is ever left over.

    Raises
    ------
    BuildError
        If `build` cannot be called with these inputs, or returns something else.
    UsageError
        If the limit is no size, or the directory no path.
    SpillError
        If there can be no files in the directory; by `advance`, if it is full.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope, sales):
    ...     return sales.group_by("shop").agg(n=ps.count())
    >>> view = ps.View(build, sales="shop long, cents long")
    >>> view.insert("sales", [(1, 30), (2, 10)])
    >>> view.advance()
    [((1, 1), 1), ((2, 1), 1)]
    >>> view.delete("sales", [(2, 10)])
    >>> view.advance(), view.snapshot()
    ([((2, 1), -1)], [(1, 1)])
    """

    def __init__(
        self,
        build: Callable[..., Any],
        /,
        *,
        memory_limit: int | str | None = None,
        spill_directory: str | PathLike[str] | None = None,
        **inputs: Any,
    ) -> None:
        by_name = takes_names(build, list(inputs))
        check_options("demand", None, memory_limit=memory_limit, spill_directory=spill_directory)
        self._closers = ExitStack()
        memory = self._closers.enter_context(memory_budget(memory_limit, spill_directory))
        self._worker = Worker(SingleCommunicator())
        self._texts_held = TextsHeld()
        self._texts_held.has_collections = True
        self._texts_held.can_be_outlived = False
        self._worker.environment.texts_held = self._texts_held
        self._uses = _Uses()
        self._n_entered = -1
        """How many texts there had been at the end of the last epoch."""
        self._has_staged = False
        """Whether something may have come in since the last epoch."""
        self._is_over = False
        """Whether its operators do nothing any more, so that it has its results alone."""
        self._is_closed = False
        if memory is not None:
            self._worker.environment.limit_memory(memory)
        self._inputs: dict[str, CollectionInput] = {}
        self._clocks: dict[str, ClockHandle] = {}
        self._upserts: dict[str, UpsertHandle] = {}
        self._probe = Probe()
        self._results: dict[str, _Result] = {}
        with TEXTS.pinning() as constants, self._worker.dataflow("View") as scope:
            collections: list[Collection | Clock] = []
            self._beside = beside_of(scope)
            for name, given in inputs.items():
                if isinstance(given, ClockInput):
                    if given.every is not None:
                        raise BuildError(
                            f"the clock {name!r} of a view cannot go by itself, every "
                            f"{given.every}: a service has such clocks; set it by "
                            f"view.advance({name}=value)"
                        )
                    self._clocks[name], clock = new_clock(scope, given.type, name)
                    collections.append(clock)
                elif isinstance(given, UpsertInput):
                    self._upserts[name], collection = new_upserts(scope, given, name)
                    collections.append(collection)
                else:
                    append_only = isinstance(given, AppendInput)
                    schema = given.schema if append_only else given
                    self._inputs[name], collection = new_collection(
                        scope, schema, name, append_only
                    )
                    collections.append(collection)
            n_inputs = len(self._worker.environment.inputs)
            made: Any = built(build, scope, list(inputs), collections, by_name)  # type: ignore[arg-type]  # it passes them on
            self._is_single = isinstance(made, Collection)
            found = {_RESULT: made} if self._is_single else made
            if not isinstance(found, Mapping) or not all(
                isinstance(result, Collection) for result in found.values()
            ):
                raise BuildError(
                    f"{name_of(build)} should return a Collection, or a dict of them, and "
                    f"returned {made!r}"
                )
            for name, result in found.items():
                self._results[name] = _Result(brought_into(result, scope), self._probe, name)
            given = dict(zip(inputs, collections, strict=True))
            self._named: dict[str, Collection] = {
                name: one for name, one in {**found, **given}.items() if isinstance(one, Collection)
            }
            for checked in self._beside.checks:
                probe_with(checked, self._probe, "Checked", lambda time, batch: None)
            self._has_others = len(self._worker.environment.inputs) > n_inputs
            """Whether `build` has made inputs itself, which `advance` does not advance."""
        self._all: list[CollectionInput | ClockHandle | UpsertHandle] = [
            *self._inputs.values(),
            *self._clocks.values(),
            *self._upserts.values(),
        ]
        self._input_names = [*self._inputs, *self._clocks, *self._upserts]
        self._epoch = 0
        self._constants = np.array([*constants], np.int64)[:, None]
        """The texts that expressions compare with, and such."""
        # From here on this view says what its operators hold.
        SWEEPS.add_holder(self)
        self._worker.environment.texts.end()

    @property
    def epoch(self) -> int:
        """The current epoch: that of the next changes."""
        return self._epoch

    @property
    def dropped(self) -> dict[str, int]:
        """The number of updates dropped by `on_error="drop"`, by operator.

        >>> import pointstamp as ps
        >>> one_over = lambda scope, t: t.select(x=1 / ps.col("n"), on_error="drop")
        >>> view = ps.View(one_over, t="n long")
        >>> view.insert("t", [(2,), (0,)])
        >>> view.advance(), view.dropped
        ([((0.5,), 1)], {'Select': 1})
        """
        return dict(self._worker.dropped)

    def insert(self, name: str, rows: Any) -> None:
        """Add each row once to an input.

        Rows are tuples in the order of the columns, dicts, or columns: a `pyarrow.Table` or
        `RecordBatch`, a data frame of pandas or polars.

        Raises
        ------
        InputError
            If there is no input of that name, or if the view is closed.
        DataError
            If a row does not fit the schema. None is added then.
        """
        with self._uses:
            self._has_staged = True
            self._input(name).insert(rows)

    def delete(self, name: str, rows: Any) -> None:
        """Remove each row once from an input; raises as `insert` does, and for an `AppendInput`."""
        with self._uses:
            self._has_staged = True
            self._input(name).delete(rows)

    def update(self, name: str, changes: Iterable[tuple[Any, int]]) -> None:
        """Apply updates, pairs (row, diff): add a row `diff` times, or remove it if negative.

        Raises as `insert` does.
        """
        with self._uses:
            self._has_staged = True
            self._input(name).update(changes)

    def upsert(self, name: str, rows: Any) -> None:
        """Replace the row of each row's key, in an input declared as `UpsertInput`.

        The last one of an epoch and key counts. Rows are those that `insert` takes.

        Raises
        ------
        InputError
            If there is no such input, or if the view is closed.
        DataError
            If a row does not fit the schema. None is there then.
        """
        with self._uses:
            self._has_staged = True
            self._upsert_handle(name).upsert(rows)

    def remove(self, name: str, keys: Iterable[Any]) -> None:
        """Delete the rows of these keys, each a value or a tuple of several; raises as `upsert`."""
        with self._uses:
            self._has_staged = True
            self._upsert_handle(name).remove(keys)

    def advance(self, **clocks: Any) -> Any:
        """End the epoch, and return the `Changes` of the result; a dict if there are several.

        Parameters
        ----------
        clocks : by name
            What clocks are set to, for this epoch and those that follow.

        Raises
        ------
        InputError
            If a clock is set to less than before, or there is none of that name: the epoch goes
            on then. If the view is closed. If `build` has made an input itself that is behind, for
            which the results wait: the changes come with the next epoch then.
        DataError
            If it is no value of the clock's type; if a result has a row more often than 64 bits
            can say.
        """
        with self._uses:
            if clocks:
                self._set(clocks)
            if not self._all:
                self._check_open("advance")
            self._has_staged = False
            self._epoch += 1
            for input_ in self._all:
                input_.advance_to(self._epoch)
            if self._has_others:
                self._step_with_others()
            else:
                self._worker.step_while(partial(self._probe.less_than, self._epoch))
            changes = {name: result.take() for name, result in self._results.items()}
        if SWEEPS.is_awake or TEXTS.n_entered != self._n_entered:
            self._n_entered = TEXTS.n_entered
            SWEEPS.advance()
        return changes[_RESULT] if self._is_single else changes

    def idle(self, seconds: float | None = None) -> bool:
        """Merge arrangements for a while, as idle workers do; returns whether work is left.

        A view runs in calls of `advance` alone, which merge in proportion to what came, and so has
        never nothing to do. A program that has, as between two requests, may call this: look-ups
        have fewer batches to look into then, and what was deleted takes no memory. Answers do not
        depend on it.

        Parameters
        ----------
        seconds : float, optional
            After so many it returns, some 50 us late at most; without it when all is merged.

        Returns
        -------
        bool
            Whether something is left to be merged.

        >>> import pointstamp as ps
        >>> view = ps.View(lambda scope, a, b: a.join(b, on="k"), a="k long", b="k long")
        >>> for k in range(20):
        ...     view.insert("a", [(k,)])
        ...     _ = view.advance()
        >>> view.idle(), view.stats("a").batches
        (False, 1)
        """
        work = self._worker.environment.idle
        until_s = None if seconds is None else monotonic() + seconds
        with self._uses:
            while work.run():
                if until_s is not None and monotonic() >= until_s:
                    return len(work) > 0
        return False

    def snapshot(self, name: str | None = None) -> CollectionSnapshot:
        """The rows of a result as of the last `advance()`.

        Parameters
        ----------
        name : str, optional
            Which result, if there are several.

        Raises
        ------
        InputError
            If there is no such result, or it is not said which.
        DataError
            If more copies of a row were deleted than there were, or if there are more of it than
            64 bits can say.
        """
        if name is None and len(self._results) == 1:
            (name,) = self._results
        if not isinstance(name, str) or name not in self._results:
            raise InputError(f"there is no result {name!r}; there are {list(self._results)}")
        with self._uses:
            return self._results[name].snapshot()

    def stats(self, name: str | None = None) -> CollectionStats:
        """How much is kept in arrangements, in total and for each.

        Parameters
        ----------
        name : str, optional
            An input or a result, of which alone it is to be said. What is computed of an input, and
            then arranged, is not that input.

        Raises
        ------
        InputError
            If there is none of that name.

        >>> import pointstamp as ps
        >>> view = ps.View(lambda scope, a, b: a.join(b, on="k"), a="k long, x long", b="k long")
        >>> view.insert("a", [(1, 7), (2, 8)])
        >>> view.advance()
        []
        >>> [(index.columns, index.key, index.updates) for index in view.stats().indexes]
        [('k long, x long', ('k',), 2), ('k long', ('k',), 0)]
        """
        if name is None:
            return stats_of(self._beside.indexes)
        if name not in self._named:
            raise InputError(f"there is no input or result {name!r}; there are {list(self._named)}")
        return self._named[name].stats()

    def explain(self) -> dict[str, dict[Any, list[int]]]:
        """The number of changed records by round, for each loop with `explain=True` and each epoch.

        Loops of one name have numbers behind it from the second on. See
        `Collection.changed_rounds`.

        >>> import pointstamp as ps
        >>> from pointstamp import col
        >>> def build(scope, t):
        ...     capped = ps.when(col("n") > 5).then(5).otherwise(col("n"))
        ...     return t.iterate(lambda found: found.select(n=capped), explain=True, name="Cap")
        >>> view = ps.View(build, t="n long")
        >>> view.insert("t", [(3,), (7,), (9,)])
        >>> view.advance()
        [((3,), 1), ((5,), 2)]
        >>> view.explain()
        {'Cap': {0: [3]}}
        """
        found: dict[str, dict[Any, list[int]]] = {}
        for loop in self._beside.loops:
            same = [name for name in found if name.rpartition(" ")[0] == loop.name]
            name = f"{loop.name} {len(same) + 2}" if loop.name in found else loop.name
            found[name] = {epoch: list(counts) for epoch, counts in loop.changed.items()}
        return found

    def drawing(self) -> Any:
        """A `DataflowDrawing` of the view's dataflow, until the view is closed.

        A notebook shows a view by it. An InputError if it is closed.

        >>> import pointstamp as ps
        >>> view = ps.View(lambda scope, t: t.distinct(), t="n long")
        >>> "Distinct" in view.drawing().mermaid()
        True
        """
        self._check_open("drawing()")
        draw = import_module("pointstamp.observability.dataflow_drawing").DataflowDrawing
        return draw("View", structure_of(self._worker))

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """What a notebook shows: see `drawing`."""
        shown = {} if self._is_over else self.drawing()._repr_mimebundle_(include, exclude)
        return {**shown, "text/plain": repr(self)}

    def close(self) -> None:
        """End the dataflow; its results can be read still. Can be repeated."""
        with self._uses:
            try:
                for input_ in self._all:
                    input_.close()
                self._worker.finish()
            finally:
                self._is_over = self._is_closed = True
                # So that a change finds none, and only then asks why: each call would pay for it.
                self._all.clear()
                for by_name in (self._inputs, self._clocks, self._upserts):
                    by_name.clear()
                self._worker.close()
                self._texts_held.let_go()
                self._closers.close()

    # Of texts; see `containers/text_sweep.py`.

    called = "a view"
    runs_code = True

    def never_says(self) -> str:
        """Why it can never be said which texts are held here; empty if it can."""
        unsaid = self._texts_held.unsaid
        if not unsaid:
            return ""
        return f"a view has operators that do not say which texts they keep: {', '.join(unsaid)}"

    def holds_still(self) -> bool:
        """Keep threads from changing it, if none is at it now; whether none is."""
        return self._uses.keep_off()

    def goes_on(self) -> None:
        """Let them change it again."""
        self._uses.let_in()

    def refuses_sweep(self) -> str:
        """Why it cannot be said now which texts are held here; empty if it can."""
        if self._is_over:
            return ""
        if self._has_staged:
            return "what was given to a view waits for its next epoch"
        try:
            # A step, as it fails if one has before; more for results that are not waited for.
            for _ in range(_MOST_STEPS):
                self._worker.step()
                if not self._worker.has_work:
                    break
        except Exception:  # noqa: BLE001  (of whatever an operator may raise)
            # No operator runs any more. The next call of `advance` raises it.
            self._is_over = True
            return ""
        n_held = 0
        for _, place, time, count in self._worker.outstanding():
            if place.endswith("of 'outside' [0]") or place in self._texts_held.waiting:
                continue
            if time != self._epoch or not place.startswith("output "):
                return f"a view has not come to the end of its epoch: {place} is at {time}"
            n_held += count
        # Of each input the one that it sends with, and no other.
        if n_held != len(self._all):
            return "operators of a view hold capabilities for its next epoch"
        return ""

    def held_texts(self) -> list[Held]:
        """Which texts are held here, between two epochs."""
        held: list[Held] = [(self._constants, (0,))]
        for result in self._results.values():
            held += result.held_texts()
        if not self._is_over:
            for holding in self._texts_held.holdings:
                held += holding()
        return held

    def __enter__(self) -> View:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._is_closed else ""
        return f"View(inputs={self._input_names}, epoch={self._epoch}{closed})"

    def _check_open(self, call: str) -> None:
        """Raise if it is closed, and so has no inputs any more."""
        if self._is_closed:
            raise InputError(
                f"{call}: the view of the inputs {self._input_names} is closed, at epoch "
                f"{self._epoch}, and takes no more changes; its snapshot() can be read still"
            )

    def _step_with_others(self) -> None:
        """Complete the epoch, unless it waits for an input that nothing advances meanwhile."""
        while self._probe.less_than(self._epoch):
            if not self._worker.has_work:
                for holder in self._probe.explain(self._epoch - 1):
                    if holder.what is HolderKind.INPUT:
                        raise InputError(
                            f"the results wait for input {holder.operator}, which build has made "
                            f"itself, and which is at {holder.time}: advance it to {self._epoch} "
                            "or close it, before advance()"
                        )
            self._worker.step_or_park()

    def _set(self, clocks: dict[str, Any]) -> None:
        """Set all of some clocks, or none."""
        words = {}
        for name, value in clocks.items():
            if name not in self._clocks:
                self._check_open(f"advance({name}=...)")
                raise InputError(f"there is no clock {name!r}; there are {list(self._clocks)}")
            words[name] = self._clocks[name].word(value)
        for name, word in words.items():
            self._clocks[name].set_word(word)

    def _input(self, name: str) -> CollectionInput:
        given: Any = name  # of any type, until it is looked at
        if not isinstance(given, str):
            raise InputError(f"an input is known by its name, a text, and not by {given!r}")
        found = self._inputs.get(name)
        if found is not None:
            return found
        self._check_open(f"a change of {name!r}")
        if name in self._clocks:
            raise InputError(f"the input {name!r} is a clock: set it by advance({name}=value)")
        if name in self._upserts:
            raise InputError(
                f"the input {name!r} is of upserts: change it by upsert({name!r}, rows) and "
                f"remove({name!r}, keys)"
            )
        raise InputError(f"there is no input {name!r}; there are {list(self._inputs)}")

    def _upsert_handle(self, name: str) -> UpsertHandle:
        given: Any = name  # as above
        if not isinstance(given, str):
            raise InputError(f"an input is known by its name, a text, and not by {given!r}")
        if name in self._inputs:
            raise InputError(
                f"the input {name!r} has no key, and takes no upserts: change it by "
                f"insert({name!r}, rows) and delete({name!r}, rows), or declare it as "
                "ps.UpsertInput(schema, key=...)"
            )
        if name not in self._upserts:
            self._check_open(f"a change of {name!r}")
            raise InputError(
                f"there is no input of upserts {name!r}; there are {list(self._upserts)}"
            )
        return self._upserts[name]


class _Uses:
    """The calls under way that change a view: of one thread at a time."""

    __slots__ = ("_acquire", "_lock", "_n", "_release")

    def __init__(self) -> None:
        self._lock = RLock()
        # Bound once, as they are called with each change.
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._n = 0
        """One in another counts, too."""

    def __enter__(self) -> None:
        self._acquire()
        self._n += 1

    def __exit__(self, *exception: object) -> None:
        self._n -= 1
        self._release()

    def keep_off(self) -> bool:
        """Have none begin, if there is none now; whether there is none."""
        if not self._lock.acquire(blocking=False):
            return False
        if self._n:
            self._lock.release()
            return False
        return True

    def let_in(self) -> None:
        """Have some begin again."""
        self._lock.release()


class _Result:
    """What came of one result: the changes since they were last taken, and all of them."""

    __slots__ = ("_kept", "_late", "_n_late", "_name", "_new", "_none", "_schema")

    def __init__(self, collection: Collection, probe: Probe, name: str) -> None:
        self._name = name
        self._schema = collection.schema
        self._new: list[Rows] = []
        self._none = np.empty((0, self._schema.n_words + 1), np.int64)
        self._late: list[Rows] = []
        """Changes that were taken, and are not among the batches yet."""
        self._n_late = 0
        self._kept = BatchSeries()
        collection.watched_by(probe, self._note)

    def take(self) -> Changes:
        """The changes since the last call."""
        if not self._new:
            return Changes(self._schema, self._none)
        try:
            rows = consolidate_all(self._new)
        except OverflowError as error:
            raise self._overflow(error) from error
        self._new.clear()
        if len(rows):
            self._late.append(rows)
            self._n_late += len(rows)
            # Many together, as most views are asked for their changes and not for all rows.
            if self._n_late > _MOST_LATE:
                self._catch_up()
        return Changes(self._schema, rows)

    def snapshot(self) -> CollectionSnapshot:
        """All rows that were not deleted."""
        self._catch_up()
        try:
            rows = self._kept.as_one(self._none)
        except OverflowError as error:
            raise self._overflow(error) from error
        if (row := missing_row(self._schema, rows)) is not None:
            raise DataError(
                f"the result {self._name!r} has the row {row!r} fewer than no times: more copies "
                "of what it comes of were deleted than there were"
            )
        return CollectionSnapshot(self._schema, rows)

    @property
    def n_updates(self) -> int:
        """How many are kept."""
        return self._n_late + self._kept.n_updates

    def held_texts(self) -> list[Held]:
        """All of them, and those that were not taken."""
        self._catch_up()  # what came and went among the late ones is gone
        texts = self._schema.texts
        return [(rows, texts) for rows in (*self._new, *self._kept.rows)]

    def _catch_up(self) -> None:
        try:
            rows = consolidate_all(self._late) if self._late else self._none
            self._late.clear()
            self._n_late = 0
            if len(rows):
                self._kept.insert(rows)
        except OverflowError as error:
            raise self._overflow(error) from error

    def _overflow(self, error: OverflowError) -> DataError:
        return DataError(f"the result {self._name!r}: {error}")

    def _note(self, time: Any, batch: Updates) -> None:
        self._new.append(batch.rows)
