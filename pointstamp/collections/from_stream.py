"""A collection of what a stream of records says, each of them an update."""

from __future__ import annotations

from typing import Any

import numpy as np

from pointstamp.collections.collection import Collection
from pointstamp.collections.schema import Column, Schema, schema_of
from pointstamp.containers.updates import Updates
from pointstamp.containers.words import LONG
from pointstamp.errors import BuildError


def as_collection(stream: Any, schema: Any, diff: str | None, name: str) -> Collection:
    """See `Stream.as_collection`."""
    found = schema_of(schema)
    if diff is not None and (not isinstance(diff, str) or diff in found.names):
        raise BuildError(
            f"operator {name!r} is given diff={diff!r}, and should be given the name of a column "
            f"that is not among those of the collection: {found}"
        )
    given = found if diff is None else Schema((*found.columns, Column(diff, LONG)))
    where = f"operator {name!r}"

    def updates(batch: Any) -> Updates:
        rows = given.to_updates(batch, 1, where).rows
        if diff is not None:
            # The last word is the diff already.
            rows = np.ascontiguousarray(rows[rows[:, -2] != 0, :-1])
        return found.updates(rows)

    return Collection(stream.map_batches(updates, name=name), found)
