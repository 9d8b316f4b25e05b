"""Records on which an expression or a function fails: raised, left out, or a collection.

Batches are tried as a whole, as where nothing fails nothing more is to be paid; of one that fails
the parts are tried, down to single records. What fails on one record follows from it alone. So an
error comes when its record comes, and goes when it goes.

Errors are a set: a record that is there three times, or thrice because of a join, is one error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.linear import Change, changed
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.error_policy import ErrorPolicy, OnError, safe_text
from pointstamp.errors import DataError
from pointstamp.operators.transform import try_transform

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection

ERRORS = schema_of("operator string, message string, record string")
"""Of the collections of errors: the name of the operator, the error, and the record as a text."""


class RowErrorPolicy(ErrorPolicy):
    """An error policy whose failures are rows of `ERRORS`, each with the diff of its record."""

    def push(self, output: Any, time: Any) -> None:
        """Send what failed since the last call."""
        failed = self.take()
        if failed:
            pairs = [
                ((one.operator, _message(one.error), one.record[0]), one.record[1])
                for one in failed
            ]
            output.push(time, ERRORS.to_pairs(pairs, "a collection of errors"))


def tried(
    collection: Collection,
    name: str,
    change: Change,
    schema: Schema,
    on_error: OnError,
    *,
    is_code: bool = False,
) -> Any:
    """Rows replaced by `change(rows)`, of `schema`, under an error policy.

    is_code : whether a function of the program is called, of which any error counts

    Returns the collection; with "route" that of the errors, too.
    """
    policy = RowErrorPolicy(collection.scope.environment, name, on_error)
    if policy.raises:
        return collection.kept(changed(collection.stream, name, change, schema.texts), schema)
    attempt = _Attempt(change, collection.schema, schema, policy, is_code)

    def function(time: Any, batch: Updates) -> Updates | None:
        rows = attempt(batch.rows)
        return Updates(rows, schema.texts) if len(rows) else None

    found = try_transform(collection.stream, name, function, policy, of_updates=True)
    if not policy.routes:
        return collection.kept(found, schema)
    results, failed = found
    errors = collection.kept(failed, ERRORS).distinct(name=f"{name}Errors")
    return collection.kept(results, schema), errors


class _Attempt:
    """Changes rows as far as nothing fails, and notes the records on which something does."""

    def __init__(
        self, change: Change, given: Schema, made: Schema, policy: ErrorPolicy, is_code: bool
    ) -> None:
        self._change = change
        self._schema = given
        self._none = np.empty((0, made.n_words + 1), np.int64)
        self._policy = policy
        self._errors = Exception if is_code else DataError
        # Of code each call may be dear: after the first failure each record by itself.
        self._at_once = is_code

    def __call__(self, rows: Rows) -> Rows:
        """What all records come to on which nothing fails."""
        try:
            return self._change(rows)
        except self._errors:
            pass
        good: list[Rows] = []
        self._try_parts(rows, good)
        return np.concatenate(good) if good else self._none

    def _try_parts(self, rows: Rows, good: list[Rows]) -> None:
        size = 1 if self._at_once else max(1, len(rows) // 2)
        for begin in range(0, len(rows), size):
            part = np.ascontiguousarray(rows[begin : begin + size])
            try:
                good.append(self._change(part))
            except self._errors as error:
                if len(part) == 1:
                    self._note(part, error)
                else:
                    self._try_parts(part, good)

    def _note(self, rows: Rows, error: Exception) -> None:
        record = repr(self._schema.to_rows(rows)[0]) if self._policy.routes else ""
        self._policy.note((record, int(rows[0, -1])), error)


def _message(error: Exception) -> str:
    text = safe_text(str, error)
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    # Of a text that no encoding has, something else is shown.
    return said.encode("utf-8", "replace").decode()
