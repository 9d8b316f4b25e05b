"""Every exception that Pointstamp raises, in one tree.

    PointstampError
    |-- UsageError                  the program asks for something impossible
    |   |-- BuildError              a dataflow is built incorrectly; raised before it runs
    |   |   |-- CycleError          a loop that does not advance time (path named)
    |   |   |-- FeedbackError       a feedback edge never connected, or connected twice
    |   |   `-- StructureError      workers built different dataflows
    |   |-- TimestampError          a value that is not a valid time of the scope
    |   |-- CapabilityError         a send, delay or retain without a valid capability
    |   |-- InputError              an input advanced backwards, or used when closed
    |   |-- DroppedError            an input or capability of a dropped dataflow is used
    |   |-- DataError               records or batches that are invalid where they are used
    |   |   |-- ContainerError      a value of a type without a registered container kind
    |   |   |-- SchemaError         a batch whose schema differs from its stream's
    |   |   |-- ColumnError         a column that does not exist (lists those that do)
    |   |   |-- KeyHashError        a key without a stable hash
    |   |   |-- SerializationError  a record that cannot be pickled
    |   |   |-- RouteError          a route to a stream or worker that does not exist
    |   |   |-- FileFormatError     a file with invalid content
    |   |   |   `-- TruncatedError  a truncated captured stream
    |   |   |-- EventError          captured events that contradict each other
    |   |   `-- GraphError          tables that make no graph (duplicate or unknown ids)
    |   |-- PatternError            a motif pattern that cannot be parsed
    |   `-- AsOfError               a trace read at a compacted or incomplete time
    |-- CommunicationError          workers cannot communicate
    |   |-- AuthenticationError     a peer that does not know the secret of this run
    |   |-- VersionError            a peer that speaks another version
    |   |-- RendezvousError         peers that did not connect in time
    |   |-- PeerLostError           a peer whose connection ended unexpectedly
    |   `-- PeerFailedError         a peer that failed, and reported it
    |-- OperatorError               user code raised inside an operator (name, time)
    |   `-- CommandError            an external command failed (command, status, end of stderr)
    |-- CarriedError                stands for an error that could not be pickled
    |-- WorkerError                 raised by `execute`: the first cause, by worker
    |-- JobCancelledError           the Spark job of a run was cancelled
    |-- StalledError                a simulated run that would never end
    |-- CheckpointError             a checkpoint cannot be written or read
    |   |-- CorruptCheckpointError  stored data is corrupt
    |   |-- TruncatedCheckpointError  a stored file is truncated or missing
    |   |-- CheckpointVersionError  a checkpoint of an unknown format version
    |   |-- CheckpointStructureError  a checkpoint that does not match the program
    |   |-- CheckpointInUseError    another program is using it
    |   `-- UndeclaredStateError    an operator may have undeclared state
    |-- SpillError                  batches beyond the memory limit cannot be spilled
    |-- SourceError                 a source cannot be read (source, partition, position)
    |   |-- PartitionLostError      a partly read partition does not exist any more
    |   |-- PositionError           a position that its partition does not have
    |   `-- SparkInputError         an input of a job that Spark failed to compute
    |-- SinkError                   a sink rejects records, or cannot commit
    |-- ServiceError                a service cannot execute a request
    |   |-- StoppedError            a request to a service that was stopped or aborted
    |   |-- StagingError            more is staged than is allowed
    |   `-- EpochError              an epoch that is not complete in time, or was discarded
    |-- SparkSetupError             Spark or Java is missing, or has too few resources
    |-- MissingExtraError           a package of an optional extra is not installed
    `-- InternalError               a bug in Pointstamp; please report it

    UserWarning
    |-- CheckpointWarning           a snapshot is damaged, and an older one is used
    `-- LoopWarning                 a loop runs far beyond its expected rounds

`UsageError` is for the author of a program; `CommunicationError`, `ServiceError` and
`SparkSetupError` are for its operators; `InternalError` is for the developers of Pointstamp.
"""

from __future__ import annotations


class PointstampError(Exception):
    """The root of the tree."""


class UsageError(PointstampError):
    """The program asks for something that is not possible."""


class BuildError(UsageError):
    """A dataflow is built incorrectly; raised before it runs."""


class CycleError(BuildError):
    """A loop does not advance time; the message names its path."""


class FeedbackError(BuildError):
    """A feedback edge was never connected, or connected twice."""


class StructureError(BuildError):
    """Workers built different dataflows; the message has the first difference."""


class TimestampError(UsageError):
    """A value is not a valid time of the scope's timestamp type."""


class CapabilityError(UsageError):
    """A send, delay or retain without a valid capability."""


class InputError(UsageError):
    """An input was advanced backwards, or used after it was closed."""


class DroppedError(UsageError):
    """An input or a capability of a dropped dataflow is used."""


class DataError(UsageError):
    """Records or batches that are invalid where they are used."""


class ContainerError(DataError):
    """A value of a type for which no container kind is registered."""


class SchemaError(DataError):
    """A batch whose schema differs from that of its stream."""


class ColumnError(DataError):
    """A column that does not exist; the message lists the existing ones."""


class KeyHashError(DataError):
    """A key without a hash that is stable across processes and machines."""


class SerializationError(DataError):
    """A record that cannot be serialized; the message names it."""


class RouteError(DataError):
    """A route to a stream or worker that does not exist; the message lists those that do."""


class FileFormatError(DataError):
    """A file with invalid content; the message says where."""


class TruncatedError(FileFormatError):
    """A captured stream that is truncated; the message has the file and the position."""


class EventError(DataError):
    """Captured events that contradict each other, such as a batch at a complete time."""


class GraphError(DataError):
    """Tables of vertices and edges that do not make a graph; the message has the wrong ids."""


class PatternError(UsageError):
    """A motif pattern that cannot be parsed; the message points at the character."""


class AsOfError(UsageError):
    """A trace is read at a time that is already compacted, or not complete yet."""


class CommunicationError(PointstampError):
    """Workers cannot communicate."""


class AuthenticationError(CommunicationError):
    """A peer failed to authenticate: it does not know the secret of this run."""


class VersionError(CommunicationError):
    """A peer speaks another version of the protocol."""


class RendezvousError(CommunicationError):
    """Peers did not connect in time; the message lists the missing ones."""


class PeerLostError(CommunicationError):
    """A peer's connection ended unexpectedly."""

    def __init__(self, message: str, peer: int | None = None) -> None:
        super().__init__(message, peer)
        self.peer = peer

    def __str__(self) -> str:
        return str(self.args[0])


class PeerFailedError(CommunicationError):
    """A peer failed, and reported that before it closed its connection."""

    def __init__(self, message: str, peer: int | None = None) -> None:
        super().__init__(message, peer)
        self.peer = peer

    def __str__(self) -> str:
        return str(self.args[0])


class OperatorError(PointstampError):
    """User code raised inside an operator; the original is the `__cause__`."""

    def __init__(self, message: str, operator: str = "", time: object = None) -> None:
        super().__init__(message, operator, time)
        self.operator = operator
        self.time = time

    def __str__(self) -> str:
        return str(self.args[0])


class CarriedError(PointstampError):
    """Stands for an error that could not be pickled: the name of its type, and its text."""


class CommandError(OperatorError):
    """An external command failed, or its output is invalid.

    Attributes
    ----------
    command : tuple of str
        The program and its arguments.
    status : int or None
        With what it exited, negative for a signal; None where that is not the trouble.
    stderr : str
        The last lines that it wrote to its standard error.
    operator, time
        As of any `OperatorError`; the time that it was asked for.
    """

    def __init__(
        self,
        message: str,
        operator: str = "",
        time: object = None,
        command: tuple[str, ...] = (),
        status: int | None = None,
        stderr: str = "",
    ) -> None:
        super().__init__(message, operator, time)
        self.args = (message, operator, time, command, status, stderr)
        self.command = command
        self.status = status
        self.stderr = stderr


class WorkerError(PointstampError):
    """A worker stopped, and with it the computation; this is the first cause.

    Attributes
    ----------
    worker : int
        Index of the worker that failed first.
    operator : str or None
        Name of the operator whose code raised, where it was one.
    time : object
        The time that the operator was at work on, where it was one.
    original : str
        The traceback of that worker, as text. Where the exception could be
        carried between processes it is also the `__cause__`.
    """

    def __init__(
        self,
        message: str,
        worker: int = 0,
        operator: str | None = None,
        time: object = None,
        original: str = "",
    ) -> None:
        super().__init__(message, worker, operator, time, original)
        self.worker = worker
        self.operator = operator
        self.time = time
        self.original = original

    def __str__(self) -> str:
        return str(self.args[0])


class JobCancelledError(PointstampError):
    """The Spark job that a dataflow ran in was cancelled: no worker failed."""


class StalledError(PointstampError):
    """A simulated run would never end; the message says which worker waits where, and for what."""


class CheckpointError(PointstampError):
    """A checkpoint cannot be written or read; the message says what, and where."""


class CorruptCheckpointError(CheckpointError):
    """Stored data is corrupt: the bytes are not those that were written."""


class TruncatedCheckpointError(CheckpointError):
    """A stored file is truncated or missing."""


class CheckpointVersionError(CheckpointError):
    """A checkpoint has a format version that this release does not know."""


class CheckpointStructureError(CheckpointError):
    """A checkpoint does not match the program: stateful operators are missing, or new."""


class CheckpointInUseError(CheckpointError):
    """Another program is using the checkpoint; only one may at a time."""


class UndeclaredStateError(CheckpointError):
    """An operator of a durable dataflow may have undeclared state, which would be lost."""


class SpillError(PointstampError):
    """Batches beyond `memory_limit=` cannot be spilled to disk; the message says what to do."""


class SourceError(PointstampError):
    """A source cannot be read; the message has the partition and the position."""


class PartitionLostError(SourceError):
    """A partition that was partly read does not exist in the source any more."""


class PositionError(SourceError):
    """A position that its partition does not have, such as beyond the end of a truncated file."""


class SparkInputError(SourceError):
    """An input of a job broke off, as Spark failed to compute it; Spark's error has the reason."""


class SinkError(PointstampError):
    """A sink rejects records, or cannot commit."""


class ServiceError(PointstampError):
    """A service cannot execute a request; the message says why."""


class StoppedError(ServiceError):
    """A request to a service that was stopped or aborted."""


class StagingError(ServiceError):
    """More is sent to a service than `max_staged_bytes=` allows, and waiting does not help."""


class EpochError(ServiceError):
    """An epoch that is not complete in time, or whose output was discarded."""


class SparkSetupError(PointstampError):
    """Spark or Java is missing, or has too few resources for the request."""


class MissingExtraError(PointstampError):
    """A package of an optional extra, as `pip install 'pointstamp[cli]'`, is not installed."""


class InternalError(PointstampError):
    """A bug in Pointstamp: please report it with the state in the message."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} (this is a bug in pointstamp: please report it)")


class CheckpointWarning(UserWarning):
    """A snapshot is damaged, and an older one is used instead."""


class LoopWarning(UserWarning):
    """A loop runs far beyond its expected number of rounds; it continues."""
