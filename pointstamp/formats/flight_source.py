"""A source of streams of Arrow Flight: a partition for each endpoint, positions count batches.

Flight has no way to begin in the middle of a stream. So what was read is sent again, and dropped,
when a program goes on: that costs its transfer, and takes a server that gives the same batches for
a ticket each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pointstamp.errors import PositionError, SourceError, UsageError
from pointstamp.formats.aligned_batches import aligned
from pointstamp.formats.connector_arguments import check_text, headers_of

REUSE = "arrow-flight-reuse-connection:"
"""How a location begins that stands for the server that named it."""


class FlightSource:
    """Reads the record batches of an Arrow Flight flight; a `Source`.

    Parameters
    ----------
    location : str
        Of the server, as "grpc://host:port" or "grpc+tls://host:port".
    flight : str or bytes
        Which: a path, or a command as bytes (for servers of Flight SQL and others).
    headers : mapping of str to str, optional
        To be sent with each call, such as `{"authorization": "Bearer ..."}`.

    Raises
    ------
    SourceError
        While it runs, if the server refuses, or cannot be reached.
    PositionError
        If a stream has fewer batches than were read of it.

    Notes
    -----
    Guarantees: each batch of each endpoint once, if the server gives the same batches for a ticket
    each time. An endpoint is read from the first of its locations that is a server of Flight, or
    from `location` if it has none, or that is what it names (`arrow-flight-reuse-connection://?`).
    Names of partitions are the tickets; with their locations, where several endpoints have
    one. A worker reads one stream at a time.

    Examples
    --------
    >>> FlightSource("grpc://localhost:8815", "orders")
    FlightSource('grpc://localhost:8815', 'orders')
    """

    at_once = 1
    ends_for_good = True

    def __init__(
        self, location: str, flight: str | bytes, *, headers: Mapping[str, str] | None = None
    ) -> None:
        check_text("location", location, "'grpc://host:8815'")
        if not isinstance(flight, str | bytes) or not flight:
            raise UsageError(f"a flight is a path, or a command as bytes; found {flight!r}")
        self._location = location
        self._flight = flight
        self._headers = headers_of(headers)

    def partitions(self) -> Sequence[str]:
        """The tickets of the endpoints."""
        return sorted(self._endpoints())

    def open(self, partition: str, position: int | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The batches after so many; see `Source`."""
        import pyarrow.flight as paf

        if position is not None and (type(position) is not int or position < 0):
            raise PositionError(f"a position is a number of batches; found {position!r}")
        endpoint = self._endpoints().get(partition)
        if endpoint is None:
            raise SourceError(f"{self}: there is no ticket {partition!r} any more")
        location = self._location_of(endpoint)
        n_read = 0
        try:
            with paf.connect(location) as client:
                reader = client.do_get(endpoint.ticket, self._options())
                for chunk in reader:
                    n_read += 1
                    if n_read > (position or 0) and chunk.data is not None:
                        yield aligned(chunk.data), n_read
        except (pa.ArrowException, OSError) as error:
            raise self._refusal(error) from error
        if n_read < (position or 0):
            raise PositionError(
                f"{self}: {partition!r} was read up to batch {position}, and has {n_read} now"
            )

    def _endpoints(self) -> dict[str, Any]:
        """By ticket."""
        import pyarrow.flight as paf

        of = paf.FlightDescriptor
        is_path = isinstance(self._flight, str)
        descriptor = of.for_path(self._flight) if is_path else of.for_command(self._flight)
        try:
            with paf.connect(self._location) as client:
                info = client.get_flight_info(descriptor, self._options())
        except (pa.ArrowException, OSError) as error:
            raise self._refusal(error) from error
        return _named(info.endpoints)

    def _location_of(self, endpoint: Any) -> str:
        """Where its ticket is redeemed."""
        locations = _locations_of(endpoint)
        for location in locations:
            if location.startswith(REUSE):
                return self._location
            if location.startswith("grpc"):
                return location
        if locations:
            raise SourceError(
                f"{self}: an endpoint is at {locations}, and none of them is a server of Flight "
                "(grpc://...)"
            )
        return self._location

    def _options(self) -> Any:
        import pyarrow.flight as paf

        # Bytes, whatever its stubs say.
        headers: Any = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        return paf.FlightCallOptions(headers=headers)

    def _refusal(self, error: Exception) -> SourceError:
        return SourceError(f"{self}: {str(error).splitlines()[0]}")

    def __repr__(self) -> str:
        return f"FlightSource({self._location!r}, {self._flight!r})"


def _locations_of(endpoint: Any) -> list[str]:
    return [location.uri.decode() for location in endpoint.locations]


def _named(endpoints: Sequence[Any]) -> dict[str, Any]:
    """Endpoints by the names of their partitions."""
    # Of every byte a character, so that a name is one ticket's.
    tickets = [each.ticket.ticket.decode("latin-1") for each in endpoints]
    n_of = Counter(tickets)
    found: dict[str, Any] = {}
    for ticket, endpoint in zip(tickets, endpoints, strict=True):
        name = ticket
        if n_of[ticket] > 1:
            # Each server may have its part under it. By where they are, and not by their order,
            # which need not be the same the next time.
            name = f"{ticket} at {', '.join(_locations_of(endpoint)) or 'the server'}"
        while name in found:
            name = f"{name} (again)"
        found[name] = endpoint
    return found
