"""Finds the kind of a container by its type, and by its name in a message.

*Rules.* One kind per type and one per name. Rows and arrays are known from the
start; columns from the first record batch on, so that programs without Arrow
never import it. A user's kind must be registered on every worker: at the top of
the module that defines it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pointstamp.containers.arrays import Arrays, ArraysKind
from pointstamp.containers.frames import is_table, record_batches
from pointstamp.containers.kind import Kind
from pointstamp.containers.rows import RowsKind, n_bytes_of_rows
from pointstamp.errors import ContainerError

_kinds: dict[type, Kind[Any]] = {}
_names: dict[str, Kind[Any]] = {}
_sized: set[type] = set()
_ARRAYS = ArraysKind()


def kind_of(batch: Any) -> Kind[Any]:
    """The kind of a container; subclasses have the kind of their base.

    Raises
    ------
    ContainerError
        If none is registered for its type; the message lists those that are.

    >>> kind_of([1, 2]).length([1, 2])
    2
    """
    form = type(batch)
    if form is Arrays:  # asked a dozen times for each batch
        return _ARRAYS
    kinds = _kinds
    kind = kinds.get(form)
    return _find(batch) if kind is None else kind


def is_container(data: Any) -> bool:
    """Whether a kind is registered for the type of `data`.

    >>> is_container([1, 2]), is_container("ab")
    (True, False)
    """
    try:
        return kind_of(data) is not None
    except ContainerError:
        return False


def n_records(batch: Any) -> int:
    """How many records a container has.

    >>> n_records(["a", "b"])
    2
    """
    # Of these the kind says it, too, at many times the cost of the answer.
    form = type(batch)
    if form is Arrays or form is list or form in _sized:
        return len(batch)
    return kind_of(batch).length(batch)


def batch_schema(kind: Kind[Any], batch: Any) -> Any:
    """`kind.schema(batch)`; of arrays without a call of Python, as it is asked for each batch.

    >>> from pointstamp.containers.arrays import Arrays
    >>> batch_schema(kind_of(Arrays(a=[1])), Arrays(a=[1]))
    (('a', dtype('int64')),)
    """
    if type(batch) is Arrays:
        arrays = batch
        return arrays.layout().schema
    return kind.schema(batch)


def batch_bytes(kind: Kind[Any], batch: Any) -> int:
    """`kind.n_bytes(batch)`, as `batch_schema`; of rows, too.

    >>> from pointstamp.containers.arrays import Arrays
    >>> batch_bytes(kind_of(Arrays(a=[1, 2])), Arrays(a=[1, 2]))
    16
    """
    if type(batch) is list:
        return n_bytes_of_rows(batch)
    if type(batch) is Arrays:
        arrays = batch
        return len(batch) * arrays.layout().record_bytes
    return kind.n_bytes(batch)


def one_key(given: Any) -> Any:
    """A key function that is the same for all records: of a record 0, of a batch as many.

    >>> from pointstamp.containers.arrays import Arrays
    >>> one_key("a"), one_key(Arrays(a=[7, 9]))
    (0, array([0, 0]))
    """
    is_batch = type(given) is not list and is_container(given)  # a list may be a record
    return np.zeros(n_records(given), np.int64) if is_batch else 0


def batches_of(data: Any) -> Iterator[Any] | None:
    """The batches of a container of columns, a table or a data frame; None of what is none.

    >>> from pointstamp.containers.arrays import Arrays
    >>> batches_of([1, 2]), list(batches_of(Arrays(a=[7, 9])))
    (None, [Arrays(a: int64; 2 records)])
    """
    if is_table(data):
        return record_batches(data)
    return iter([data]) if is_container(data) and kind_of(data).has_columns else None


def parts_of(made: Any) -> Sequence[Any]:
    """What a function gave for a batch, as batches: of a table or a data frame its own.

    >>> parts_of([1, 2]), parts_of(None)
    (([1, 2],), ())
    """
    if type(made) is list:
        return (made,)
    if made is None:
        return ()
    if is_container(made) or not is_table(made):  # what is neither is refused where it is sent
        return (made,)
    return list(record_batches(made))


def kind_named(name: str) -> Kind[Any]:
    """The kind of that name.

    Raises
    ------
    ContainerError
        If there is none in this process.
    """
    if name == "columns":
        _register_columns()
    try:
        return _names[name]
    except KeyError:
        raise ContainerError(
            f"no kind of container named {name!r} is registered in this process, only "
            f"{sorted(_names)}; call register() in the module that defines it, which every "
            "worker imports"
        ) from None


def register(container: type, kind: Kind[Any], *, is_sized: bool = False) -> None:
    """Make `kind` what can be done with batches of type `container`.

    is_sized : whether `len` of a batch is how many records it has, so that it need not be asked

    Raises
    ------
    ContainerError
        If the type or the name of the kind already belongs to another, or it is no `Kind`; if it
        has no name, or `container` is no type.
    """
    if not isinstance(container, type):
        raise ContainerError(
            f"cannot register a kind for {container!r:.200}, which is no type: give the type of "
            "the batches, then the kind"
        )
    if not isinstance(kind, Kind):
        raise ContainerError(
            f"cannot register {kind!r} for {container.__name__}: derive its class from Kind, which "
            "has what follows from length(), records(), slice() and concat()"
        )
    if not isinstance(getattr(kind, "name", None), str):
        raise ContainerError(
            f"cannot register {kind!r} for {container.__name__}: give its class a name, a text "
            "that no other kind has"
        )
    for known in (_kinds.get(container), _names.get(kind.name)):
        if known is not None and type(known) is not type(kind):
            raise ContainerError(
                f"cannot register kind {kind.name!r} for {container.__name__}: kind "
                f"{known.name!r} ({type(known).__name__}) has that type or name already"
            )
    # Two threads may come here at once; the first one's stays, for kinds are compared by identity.
    kind = _names.setdefault(kind.name, kind)
    _kinds.setdefault(container, kind)
    if is_sized:
        _sized.add(container)


def _find(batch: Any) -> Kind[Any]:
    """The kind of a type that was not looked up before, remembered for the next time."""
    bases = type(batch).__mro__
    if any(base.__module__.partition(".")[0] == "pyarrow" for base in bases):
        _register_columns()
    for base in bases:
        if base in _kinds:
            return _kinds.setdefault(type(batch), _kinds[base])
    # Record batches are known before there was one, which is when their kind is registered.
    own = [form.__name__ for form, kind in _kinds.items() if not kind.is_internal]
    known = dict.fromkeys(["list", "RecordBatch", *own])
    raise ContainerError(
        f"a batch of type {type(batch).__module__}.{type(batch).__name__} is none of the "
        f"containers known here ({', '.join(known)}); {_advice(batch)}"
    )


def _register_columns() -> None:
    if "columns" not in _names:
        import pyarrow as pa

        from pointstamp.containers.columns import ColumnsKind

        register(pa.RecordBatch, ColumnsKind(takes_apart=True))


def _advice(batch: Any) -> str:
    name = type(batch).__name__
    if is_table(batch):
        return "give a record batch: pyarrow.table(it).combine_chunks().to_batches()[0]"
    if name == "dict":
        return "for columns by name give pyarrow.record_batch(it)"
    if name == "ndarray" or hasattr(batch, "combine_chunks") or hasattr(batch, "null_count"):
        return "name the column: pyarrow.record_batch({'values': array})"
    if name in ("tuple", "set", "generator", "range", "map"):
        return "make it a list of records: list(batch)"
    return "send a list or a pyarrow.RecordBatch, or register a kind for the type"


register(list, RowsKind(), is_sized=True)
register(Arrays, _ARRAYS, is_sized=True)
