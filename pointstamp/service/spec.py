"""What every worker of a service builds: one function, named inputs and named outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from pointstamp.communication.tls import Certificates
from pointstamp.errors import BuildError, UsageError
from pointstamp.operators.building import built, name_of, takes_names
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream
from pointstamp.runtime.run_options import check_options
from pointstamp.service.protocol import WorkerHandle

Named = TypeVar("Named")


@dataclass(frozen=True)
class ServiceSpec:
    """A dataflow with named inputs and outputs; travels to the workers by cloudpickle."""

    build: Callable[..., Any]
    inputs: Mapping[str, pa.Schema]
    outputs: Mapping[str, pa.Schema]
    by_name: bool
    run_options: Mapping[str, Any] = field(default_factory=dict)
    """Of `execute`, for the workers: `memory_limit` and `spill_directory`."""

    def results(self, scope: Scope, streams: Sequence[Stream[Any]]) -> dict[str, Stream[Any]]:
        """The stream of each output, made of the streams of the inputs in their order.

        Raises `BuildError` if `build` returns no stream, or other names than were declared.
        """
        result = built(self.build, scope, list(self.inputs), streams, self.by_name)
        if isinstance(result, Stream) and len(self.outputs) == 1:
            result = dict.fromkeys(self.outputs, result)
        is_named = isinstance(result, Mapping)
        if not is_named or sorted(result) != sorted(self.outputs):
            found = (
                f"streams for {', '.join(map(repr, result)) or 'none'}"
                if is_named
                else repr(result)
            )
            alone = "the stream of its output, or " if len(self.outputs) == 1 else ""
            raise BuildError(
                f"{name_of(self.build)} should return {alone}a dict with a stream for each of "
                f"{', '.join(map(repr, self.outputs))}, and returned {found}"
            )
        for name, stream in result.items():
            if not isinstance(stream, Stream):
                raise BuildError(
                    f"{name_of(self.build)} should return a stream as output {name!r}, and "
                    f"returned {stream!r}"
                )
            scope.check_stream(stream, f"output {name!r} of the service")
        return {name: result[name] for name in self.outputs}


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
    **run_options: Any,
) -> ServiceSpec:
    """What `serve` was given, checked as far as it can be before a worker builds it.

    Raises `UsageError` for what is no schema, and `BuildError` if `build` does not take the inputs.
    """
    of_inputs, of_outputs = _schemas("inputs", inputs), _schemas("outputs", outputs)
    if not outputs:
        raise UsageError(
            "a service needs at least one output, by which it is known when an epoch is complete"
        )
    by_name = takes_names(build, list(inputs))
    if not by_name:
        _check_positions(build, list(inputs))
    check_options("demand", None, **run_options)
    return ServiceSpec(build, of_inputs, of_outputs, by_name, run_options)


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
    if not isinstance(given, Mapping):
        raise UsageError(
            f"{what}= is a dict of names to schemas, such as {{'edges': {{'src': "
            f"pyarrow.int64()}}}}, and not {given!r}"
        )
    for name in given:
        if not isinstance(name, str) or not name:
            raise UsageError(f"a name in {what}= is a text that is not empty, and not {name!r}")
    return {name: _schema(name, schema) for name, schema in given.items()}


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
    if name not in named:
        raise UsageError(
            f"the service has no {what} {name!r}; it has {', '.join(map(repr, named)) or 'none'}"
        )
    return named[name]
