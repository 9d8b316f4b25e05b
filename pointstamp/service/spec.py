"""What every worker of a service builds: one function, named inputs and named outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from pointstamp.collections.clock_input import Clock, ClockInput, clock_of_changes
from pointstamp.collections.collection import Collection
from pointstamp.collections.inputs import AppendInput
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.collections.upserts import EventForm, UpsertInput, current
from pointstamp.communication.single import SingleCommunicator
from pointstamp.communication.tls import Certificates
from pointstamp.errors import BuildError, SchemaError, UsageError
from pointstamp.operators.building import built, name_of, takes_names
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream
from pointstamp.runtime.run_options import check_options
from pointstamp.runtime.worker import Worker
from pointstamp.service.changes_columns import columns_of_changes
from pointstamp.service.event_columns import columns_of_events
from pointstamp.service.protocol import WorkerHandle

Named = TypeVar("Named")

RESULT = "result"
"""The name of a collection that is the only output."""


@dataclass(frozen=True)
class ServiceSpec:
    """A dataflow with named inputs and outputs; travels to the workers by cloudpickle.

    Inputs and outputs that are collections are among all others, as columns of changes.
    """

    build: Callable[..., Any]
    inputs: Mapping[str, pa.Schema]
    outputs: Mapping[str, pa.Schema]
    by_name: bool
    run_options: Mapping[str, Any] = field(default_factory=dict)
    """Of `execute`, for the workers: `memory_limit` and `spill_directory`."""
    collections: Mapping[str, Schema] = field(default_factory=dict)
    """Which inputs are collections; a clock is one, of its values."""
    upserts: Mapping[str, EventForm] = field(default_factory=dict)
    """Which of those are upserts."""
    clocks: Mapping[str, ClockInput] = field(default_factory=dict)
    """Which are clocks."""
    append_only: frozenset[str] = frozenset()
    """From which nothing is ever deleted."""
    maintained: Mapping[str, Schema] = field(default_factory=dict)
    """Which outputs are collections."""
    notes_lines: bool = False
    """Whether workers note at which lines of the program operators are made."""

    def given(self, name: str, stream: Stream[Any]) -> Stream[Any] | Collection | Clock:
        """What `build` is given for an input, of the stream of what comes."""
        if name in self.clocks:
            return clock_of_changes(stream, self.clocks[name], name)
        if name in self.upserts:
            return current(stream, self.upserts[name], "Upserts")
        schema = self.collections.get(name)
        if schema is None:
            return stream
        return Collection(stream, schema, append_only=name in self.append_only)

    def results(self, scope: Scope, given: Sequence[Any]) -> dict[str, Stream[Any] | Collection]:
        """Each output, made of the inputs in their order.

        Raises `BuildError` if `build` returns no stream, or other names than were declared.
        """
        result = built(self.build, scope, list(self.inputs), given, self.by_name)
        found = self.checked(result, scope)
        names = {name for name, output in found.items() if isinstance(output, Collection)}
        if names != set(self.maintained):
            raise BuildError(
                f"{name_of(self.build)} returned the collections {sorted(names)}, and returned "
                f"{sorted(self.maintained)} when it was tried: it should build the same each time"
            )
        return {name: found[name] for name in self.outputs}

    def checked(self, result: Any, scope: Scope) -> dict[str, Stream[Any] | Collection]:
        """What `build` has returned, by name; collections have any, streams those declared.

        Raises `BuildError` if it is something else.
        """
        streams = [name for name in self.outputs if name not in self.maintained]
        if isinstance(result, Stream) and len(streams) == 1:
            result = dict.fromkeys(streams, result)
        elif isinstance(result, Collection):
            result = {RESULT: result}
        found = dict(result) if isinstance(result, Mapping) else None
        collections = {
            name for name, output in (found or {}).items() if isinstance(output, Collection)
        }
        if found is None or sorted(found.keys() - collections, key=str) != sorted(streams):
            raise self._unlike(result if found is None else found, streams)
        for name, output in found.items():
            if not isinstance(output, Stream | Collection):
                raise BuildError(
                    f"{name_of(self.build)} should return a stream as output {name!r}, and "
                    f"returned {output!r}"
                )
            stream = output.stream if isinstance(output, Collection) else output
            scope.check_stream(stream, f"output {name!r} of the service")
        return found

    def _unlike(self, result: Any, streams: Sequence[str]) -> BuildError:
        found = (
            f"streams for {', '.join(map(repr, result)) or 'none'}"
            if isinstance(result, Mapping)
            else repr(result)
        )
        wanted = f"a dict with a stream for each of {', '.join(map(repr, streams))}"
        if len(streams) == 1:
            wanted = f"the stream of its output, or {wanted}"
        if not streams:
            wanted = "a Collection, or a dict of them"
        return BuildError(f"{name_of(self.build)} should return {wanted}, and returned {found}")


@dataclass(frozen=True)
class FlightConfig:
    """How the workers of a service open their Flight servers."""

    secret: bytes = field(repr=False)
    """Of the service, the same in all its lives."""
    certificates: Certificates | None = None
    """Encrypt with these, and demand of clients a certificate of the same roots."""
    host: str = "127.0.0.1"
    """The address of this machine to listen at."""
    name: str | None = None
    """By what name clients reach this machine; `host` if not given."""
    ports: tuple[int, ...] = ()
    """By worker, those of the servers before, where clients in other programs look for them."""

    def at_ports_of(self, former: Sequence[WorkerHandle]) -> FlightConfig:
        """The same, for workers that are started again."""
        addresses = [worker.address for worker in former]
        ports = tuple(int(a.rpartition(":")[2]) for a in addresses if a is not None)
        return replace(self, ports=ports)


def service_spec(
    build: Callable[..., Any],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    run_options: Mapping[str, Any],
    collections: Mapping[str, Any] | None = None,
) -> ServiceSpec:
    """What `serve` was given, checked as far as it can be before a worker builds it.

    Where there are collections, `build` is called once here, to see which it returns: nothing
    of that runs.

    Raises `UsageError` for what is no schema, and `BuildError` if `build` does not take the inputs.
    """
    of_inputs, of_outputs = _schemas("inputs", inputs), _schemas("outputs", outputs)
    of_collections = _collections(collections or {}, inputs)
    if not outputs and not of_collections:
        raise UsageError(
            "a service needs at least one output, by which it is known when an epoch is complete"
        )
    names = [*inputs, *of_collections]
    by_name = takes_names(build, names)
    if not by_name:
        _check_positions(build, names)
    check_options("demand", None, **dict(run_options))
    declared = dict(collections or {})
    clocks = {name: one for name, one in declared.items() if isinstance(one, ClockInput)}
    upserts = {
        name: EventForm(of_collections[name], one.key, name)
        for name, one in declared.items()
        if isinstance(one, UpsertInput)
    }
    wire = {
        name: columns_of_events(upserts[name]) if name in upserts else columns_of_changes(schema)
        for name, schema in of_collections.items()
    }
    spec = ServiceSpec(
        *(build, {**of_inputs, **wire}, of_outputs, by_name, run_options, of_collections),
        *(upserts, clocks),
        append_only=frozenset(n for n, one in declared.items() if isinstance(one, AppendInput)),
    )
    return spec if collections is None else _with_maintained(spec)


def _with_maintained(spec: ServiceSpec) -> ServiceSpec:
    """With the collections that `build` returns."""
    worker = Worker(SingleCommunicator())
    with worker.dataflow("service") as scope:
        given: list[Any] = []
        for name in spec.inputs:
            _, stream = scope.new_input(name)
            given.append(spec.given(name, stream))
        result = built(spec.build, scope, list(spec.inputs), given, spec.by_name)
        found = spec.checked(result, scope)
    worker.drop_dataflow(scope)
    worker.close()
    maintained = {name: o.schema for name, o in found.items() if isinstance(o, Collection)}
    outputs = {name: columns_of_changes(schema) for name, schema in maintained.items()}
    if not spec.outputs and not outputs:
        raise BuildError(f"{name_of(spec.build)} returned no collection, and should return one")
    return replace(spec, outputs={**spec.outputs, **outputs}, maintained=maintained)


def _collections(given: Any, inputs: Mapping[str, Any]) -> dict[str, Schema]:
    _check_names("collections", given)
    both = ", ".join(repr(name) for name in given if name in inputs)
    if both:
        raise UsageError(f"{both} is in inputs= and in collections=; an input is one of both")
    without = ", ".join(repr(name) for name, schema in given.items() if schema is None)
    if without:
        raise SchemaError(
            f"a service needs the columns of its collections, and {without} is given None: records "
            "without a schema are for views and dataflows of your own"
        )
    return {
        name: schema.schema
        if isinstance(schema, ClockInput)
        else schema_of(schema.schema if isinstance(schema, UpsertInput | AppendInput) else schema)
        for name, schema in given.items()
    }


def _check_positions(build: Callable[..., Any], inputs: list[str]) -> None:
    """Raise unless what `build` calls its inputs leaves no doubt which is which.

    An input for a parameter of another name would be bound by its place, and a name that is
    mistyped would have streams exchanged in silence. So only what has no names goes by place,
    and an input that is the only one.
    """
    try:
        parameters = list(inspect.signature(build).parameters.values())[1:]
    except ValueError:
        return  # written in C, without a signature
    named = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if not named or len(inputs) == 1:
        return
    unknown = ", ".join(repr(name) for name in named if name not in inputs)
    lacking = ", ".join(repr(name) for name in inputs if name not in named)
    raise BuildError(
        f"{name_of(build)} takes {unknown or 'no more inputs'}, and the service has "
        f"{lacking or 'nothing else'}: its inputs are {', '.join(map(repr, inputs))}, and each is "
        "given to the parameter of its name"
    )


def _schemas(what: str, given: Any) -> dict[str, pa.Schema]:
    _check_names(what, given)
    return {name: _schema(name, schema) for name, schema in given.items()}


def _check_names(what: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(
            f"{what}= is a dict of names to schemas, such as {{'edges': {{'src': "
            f"pyarrow.int64()}}}}, and not {given!r}"
        )
    for name in given:
        if not isinstance(name, str) or not name:
            raise UsageError(f"a name in {what}= is a text that is not empty, and not {name!r}")


def _schema(name: str, given: Any) -> pa.Schema:
    try:
        schema = given if isinstance(given, pa.Schema) else pa.schema(given)
    except (TypeError, ValueError) as cause:
        raise UsageError(
            f"{name!r} needs a schema: a pyarrow.Schema, or a dict of its columns' types such as "
            f"{{'src': pyarrow.int64()}}, and not {given!r}"
        ) from cause
    if not schema.names or len(set(schema.names)) < len(schema.names):
        raise UsageError(
            f"{name!r} needs a schema of one column or more, each with a name of its own; its "
            f"columns are {', '.join(map(repr, schema.names)) or '(none)'}"
        )
    return schema


def known(named: Mapping[str, Named], name: str, what: str) -> Named:
    """What has this name; `UsageError` says which there are."""
    if not isinstance(name, str) or name not in named:
        raise UsageError(
            f"the service has no {what} {name!r}; it has {', '.join(map(repr, named)) or 'none'}"
        )
    return named[name]
