"""What a message carries: batches of records in one of several forms.

`list` (rows), `Arrays` (named NumPy columns) and `pyarrow.RecordBatch` (columns)
are plain values; what can be done with each is said by its `Kind`. Arrow is
imported with the first record batch and not before.
"""

from __future__ import annotations

from pointstamp.containers.arrays import Arrays
from pointstamp.containers.builder import Builder
from pointstamp.containers.codec import decode, encode
from pointstamp.containers.keys import hash_key, hash_keys
from pointstamp.containers.kind import Buffer, Key, Kind
from pointstamp.containers.registry import kind_named, kind_of, register

__all__ = [
    "Arrays",
    "Buffer",
    "Builder",
    "Key",
    "Kind",
    "decode",
    "encode",
    "hash_key",
    "hash_keys",
    "kind_named",
    "kind_of",
    "register",
]
