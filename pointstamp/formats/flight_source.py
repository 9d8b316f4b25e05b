"""A source of streams of Arrow Flight: a partition for each endpoint, positions count batches.

Flight has no way to begin in the middle of a stream. So what was read is sent again, and dropped,
when a program goes on: that costs its transfer, and takes a server that gives the same batches for
a ticket each time.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pointstamp.errors import PositionError, SourceError, UsageError
from pointstamp.formats.aligned_batches import aligned
from pointstamp.formats.connector_arguments import check_text, headers_of

N_WAITING = 8
"""How many batches are read before a worker takes them."""
POLL_S = 0.002
TIMEOUT_S = 30.0
"""How long a server may take to say what there is."""
CLOSE_S = 5.0

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
    poll_s = POLL_S

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

    def open(
        self, partition: str, position: int | None
    ) -> Iterator[tuple[pa.RecordBatch, int] | None]:
        """The batches after so many; see `Source`."""
        if position is not None and (type(position) is not int or position < 0):
            raise PositionError(f"a position is a number of batches; found {position!r}")
        endpoint = self._endpoints().get(partition)
        if endpoint is None:
            raise SourceError(f"{self}: there is no ticket {partition!r} any more")
        location = self._location_of(endpoint)
        feed = _FlightFeed(location, endpoint.ticket, self._options(), position or 0)
        try:
            while not feed.has_ended:
                try:
                    found = feed.take()
                except (pa.ArrowException, OSError) as error:
                    raise self._refusal(error) from error
                if found is not None or not feed.has_ended:
                    yield found
        finally:
            feed.close()
        if feed.n_read < (position or 0):
            raise PositionError(
                f"{self}: {partition!r} was read up to batch {position}, and has {feed.n_read} now"
            )

    def _endpoints(self) -> dict[str, Any]:
        """By ticket."""
        import pyarrow.flight as paf

        of = paf.FlightDescriptor
        is_path = isinstance(self._flight, str)
        descriptor = of.for_path(self._flight) if is_path else of.for_command(self._flight)
        try:
            with paf.connect(self._location) as client:
                info = client.get_flight_info(descriptor, self._options(TIMEOUT_S))
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

    def _options(self, timeout_s: float | None = None) -> Any:
        import pyarrow.flight as paf

        # Bytes, whatever its stubs say.
        headers: Any = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        return paf.FlightCallOptions(timeout_s, headers=headers)

    def _refusal(self, error: Exception) -> SourceError:
        return SourceError(f"{self}: {str(error).splitlines()[0]}")

    def __repr__(self) -> str:
        return f"FlightSource({self._location!r}, {self._flight!r})"


class _FlightFeed:
    """Reads a stream on a thread of its own, as Flight waits for a server that has nothing yet."""

    def __init__(self, location: str, ticket: Any, options: Any, skipped: int) -> None:
        self._skipped = skipped
        self.n_read = 0
        self.has_ended = False
        self._batches: deque[tuple[pa.RecordBatch, int]] = deque()
        self._room = threading.Semaphore(N_WAITING)
        self._reader: Any = None
        self._error: Exception | None = None
        self._is_closed = False
        given = location, ticket, options
        self._thread = threading.Thread(
            target=self._run, args=given, name="pointstamp-flight", daemon=True
        )
        self._thread.start()

    def take(self) -> tuple[pa.RecordBatch, int] | None:
        """The next batch and the position after it, if there is one now; else see `has_ended`."""
        is_over = not self._thread.is_alive()  # before: what it has put is all there then
        if self._batches:
            found = self._batches.popleft()
            self._room.release()
            return found
        if is_over and self._error is not None:
            raise self._error
        self.has_ended = is_over
        return None

    def close(self) -> None:
        """Read no more."""
        self._is_closed = True
        self._room.release()
        if self._reader is not None:
            self._reader.cancel()
        self._thread.join(CLOSE_S)  # a server that has not answered yet is not waited for

    def _run(self, location: str, ticket: Any, options: Any) -> None:
        import pyarrow.flight as paf

        try:
            with paf.connect(location) as client:
                self._reader = client.do_get(ticket, options)
                for chunk in self._reader:
                    self._room.acquire()
                    if self._is_closed:
                        return
                    self.n_read += 1
                    if self.n_read <= self._skipped or chunk.data is None:
                        self._room.release()
                    else:
                        self._batches.append((aligned(chunk.data), self.n_read))
        except Exception as error:  # noqa: BLE001  (it is raised where batches are taken)
            self._error = error


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
