"""Reads snapshots of version 1, which had a file for each bin, and no changes of bins.

    snapshots/<epoch>/manifest.json     {"epoch", "meta", "tables": {operator: {table:
                                        {"kind", "bins": {bin: [name, bytes, checksum, rows]}}}}}

Each file is an Arrow stream of one batch, and has the bin of all workers together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pointstamp.checkpoint.arrow_files import Stored
from pointstamp.checkpoint.manifest import Manifest, Part, Piece, StoredTable
from pointstamp.errors import CorruptCheckpointError

SUFFIX = ".arrows"
"""By which a file of this version is known."""


def read_manifest(record: Mapping[str, Any], place: str) -> Manifest:
    """What a manifest of version 1 says, as that of one worker."""
    tables: dict[tuple[str, str], StoredTable] = {}
    files: dict[str, Stored] = {}
    try:
        for operator, its_tables in record["tables"].items():
            for table, stored in its_tables.items():
                bins = {}
                for bin, (name, n_bytes, checksum, rows) in stored["bins"].items():
                    files[name] = Stored(name, n_bytes, checksum)
                    bins[int(bin)] = (Piece(name, 0, rows),)
                tables[operator, table] = StoredTable(stored["kind"], bins)
        part = Part(record["epoch"], 0, tables, files)
        return Manifest(record["epoch"], 1, record["meta"], (part,))
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptCheckpointError(f"{place}: is no manifest: {error!r}") from error
