"""Planted bugs in handles and imports of arrangements in durable dataflows."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import from_seed, planted_in, without_shrinking
from tests.collections.lives import longer
from tests.collections.programs import programs
from tests.collections.test_durable_traces import check_new_import
from tests.collections.trace_lives import SHARED_LIVES, check_shared_lives


@from_seed(13)
@without_shrinking
@given(programs(max_steps=3), SHARED_LIVES, st.sampled_from([1, 5]))
def by_shared_lives(program: object, lives: list[object], dead_part: int) -> None:
    """Programs on imports that go on from snapshots."""
    check_shared_lives(longer(program), lives, dead_part)  # type: ignore[arg-type]  # drawn so


def by_new_imports() -> None:
    """Joins of what is imported behind a snapshot with what its dataflow had before."""
    for name in ("left", "delta", "delta, the other way"):
        for cut in (0, 1, 3):
            with tempfile.TemporaryDirectory() as folder:
                check_new_import(name, cut, Path(folder))


TRACE_MUTANTS = [
    *planted_in(
        "collections.exported_trace",
        by_shared_lives,
        [
            (
                "What a snapshot has is not known to be complete before something comes.",
                "            self.upper = self.durable_state.first_epoch\n",
                "            self.upper = self.durable_state.first_epoch - 1\n",
            ),
            (
                "A handle says what there was before the snapshot.",
                "            self.begin = self.upper - 1\n",
                "            self.begin = 0\n",
                9,
            ),
            (
                "An import that is in a snapshot begins with everything again.",
                "batches, goes_on = noted_import(stream, export.path, name)",
                "batches, goes_on = noted_import(stream, export.path, name)[0], False",
                7,
            ),
            (
                "An import that is new begins with nothing.",
                "batches, goes_on = noted_import(stream, export.path, name)",
                "batches, goes_on = noted_import(stream, export.path, name)[0], True",
                9,
            ),
            (
                "What a snapshot has comes at its epoch, which is over.",
                "first = state.first_epoch if state is not None and state.is_restored else None",
                "first = None",
                8,
            ),
        ],
    ),
    *planted_in(
        "collections.trace_import",
        by_shared_lives,
        [
            (
                "Of what came since a snapshot the first epoch is left out.",
                "            if not (goes_on and self._is_early(time)):\n",
                "            if not goes_on:\n",
                7,
            ),
        ],
    ),
    *planted_in(
        "collections.trace_import",
        by_new_imports,
        [
            (
                "Readers see what is imported anew before it comes.",
                "        if not self._goes_on:\n            reader.first = self.first\n",
                "",
            ),
            (
                "Readers do not see what was imported before the snapshot.",
                "        if not self._goes_on:\n",
                "        if True:\n",
            ),
        ],
    ),
    *planted_in(
        "collections.spine",
        by_shared_lives,
        [
            (
                "What is kept for snapshots goes with its last reader.",
                "        if self._readers or self.outlasts:\n            self.maintain()",
                "        if self._readers:\n            self.maintain()",
                5,
            ),
            (
                "Without a reader what comes is not kept for snapshots.",
                "        if self._readers or self.outlasts or not self.had_readers:",
                "        if self._readers or not self.had_readers:",
                4,
            ),
        ],
    ),
]
