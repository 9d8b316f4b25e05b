"""Checkpoints: a log of inputs, and snapshots of the keyed state of operators, in a folder.

A `Checkpoint` is that folder: a log of the inputs that were staged and committed, and
snapshots of state at completed epochs. It may be on this machine or in an object store.
Operators declare tables of keyed state (`keyed_state.py`); a `Durable` connects a dataflow
with a checkpoint. Nothing here knows workers, or when an epoch is complete.

Arrow is imported with the first name that needs it, so dataflows without state do without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointstamp.checkpoint.bins import N_BINS as N_BINS
    from pointstamp.checkpoint.checkpoint import Checkpoint as Checkpoint
    from pointstamp.checkpoint.deltas import BinDelta as BinDelta
    from pointstamp.checkpoint.deltas import TableDelta as TableDelta
    from pointstamp.checkpoint.durable import Durable as Durable
    from pointstamp.checkpoint.manifest import Manifest as Manifest
    from pointstamp.checkpoint.manifest import SnapshotPart as SnapshotPart
    from pointstamp.checkpoint.staged import Staged as Staged

_HOMES = {
    "N_BINS": "bins",
    "BinDelta": "deltas",
    "Checkpoint": "checkpoint",
    "TableDelta": "deltas",
    "Durable": "durable",
    "Manifest": "manifest",
    "SnapshotPart": "manifest",
    "Staged": "staged",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pointstamp.checkpoint' has no attribute {name!r}")
    value = getattr(import_module(f"pointstamp.checkpoint.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
