"""Every exception that Pointstamp raises, in one tree.

    PointstampError
    |-- UsageError                  the program asks for something that cannot be
    |   |-- BuildError              the dataflow is wrong, found before it runs
    |   |   |-- CycleError          a loop that does not advance time (path named)
    |   |   |-- FeedbackError       a feedback never connected, or connected twice
    |   |   `-- StructureError      workers built different dataflows
    |   |-- TimestampError          a time that is not of the scope's timestamp type
    |   |-- CapabilityError         a send, delay or retain that no capability allows
    |   |-- InputError              an input advanced backwards, or used when closed
    |   |-- DroppedError            something of a dataflow that was dropped is used
    |   |-- DataError               records or batches that do not fit
    |   |   |-- ContainerError      a value of a type no container kind is registered for
    |   |   |-- SchemaError         a batch whose schema differs from its stream's
    |   |   |-- ColumnError         a column that is not there (says which are)
    |   |   |-- KeyHashError        a key for which no stable hash exists
    |   |   |-- SerializationError  a record that cannot be pickled
    |   |   |-- RouteError          a route to a stream or worker that does not exist
    |   |   |-- FileFormatError     a file that does not hold what it should
    |   |   |   `-- TruncatedError  a capture that ends before its stream did
    |   |   |-- EventError          captured events that contradict each other
    |   |   `-- GraphError          tables that are no graph (an id that repeats, or is nowhere)
    |   |-- PatternError            a motif pattern that cannot be understood
    |   `-- AsOfError               a trace read as of a time that it is not exact at
    |-- CommunicationError          workers cannot talk to each other
    |   |-- AuthenticationError     a peer that does not know the secret
    |   |-- VersionError            a peer that speaks another version
    |   |-- RendezvousError         peers that did not turn up in time
    |   |-- PeerLostError           a peer that went away without saying goodbye
    |   `-- PeerFailedError         a peer that failed, and said so
    |-- OperatorError               user code raised inside an operator (name, time)
    |   `-- CommandError            an external command failed (command, status, its last words)
    |-- CarriedError                stands for an error that could not be pickled
    |-- WorkerError                 what `execute` raises: first cause, by worker
    |-- JobCancelledError           the Spark job of a run was cancelled
    |-- StalledError                a simulated computation that would never end
    |-- CheckpointError             what is to outlast a run cannot be kept, or read again
    |   |-- CorruptCheckpointError  stored bytes are not what was written
    |   |-- TruncatedCheckpointError  a stored file is shorter than it was, or gone
    |   |-- CheckpointVersionError  a checkpoint of a version that is not known
    |   |-- CheckpointStructureError  a checkpoint of another program
    |   |-- CheckpointInUseError    another program commits to it
    |   `-- UndeclaredStateError    an operator keeps what it does not declare
    |-- SpillError                  what does not fit into memory cannot be kept on disk
    |-- SourceError                 a source cannot be read (source, partition, position)
    |   |-- PartitionLostError      a partition that was read in part is not there any more
    |   |-- PositionError           a position that does not fit its partition
    |   `-- SparkInputError         an input of a job that Spark failed to compute
    |-- SinkError                   a sink cannot take what it is given, or commit it
    |-- ServiceError                a service cannot do what it is asked
    |   |-- StoppedError            it was stopped, or aborted
    |   |-- StagingError            more is sent than may wait, and is not taken
    |   `-- EpochError              an epoch that is not complete in time, or discarded
    |-- SparkSetupError             Spark or Java is absent or too small
    |-- MissingExtraError           a package of an extra that is not installed (says which)
    `-- InternalError               a bug of ours; please report it

    UserWarning
    |-- CheckpointWarning           a damaged snapshot is passed over for an older one
    `-- LoopWarning                 a loop that runs far beyond what was expected of it

`UsageError` is for the author of the program, `CommunicationError`, `ServiceError` and
`SparkSetupError` are for those that run it, `InternalError` is for us.
"""

from __future__ import annotations


class PointstampError(Exception):
    """The root of the tree."""


class UsageError(PointstampError):
    """The program asks for something that cannot be."""


class BuildError(UsageError):
    """A dataflow is put together wrongly; found before it runs."""


class CycleError(BuildError):
    """A loop does not advance time; the message names its path."""


class FeedbackError(BuildError):
    """A feedback was never connected, or connected twice."""


class StructureError(BuildError):
    """Workers built different dataflows; the message has the first difference."""


class TimestampError(UsageError):
    """A value is not a time of the scope's timestamp type."""


class CapabilityError(UsageError):
    """A send, delay or retain that no live capability allows."""


class InputError(UsageError):
    """An input was advanced backwards, or used after it was closed."""


class DroppedError(UsageError):
    """An input or a capability of a dataflow that was dropped is used."""


class DataError(UsageError):
    """Records or batches that do not fit where they were put."""


class ContainerError(DataError):
    """A value of a type for which no container kind is registered."""


class SchemaError(DataError):
    """A batch whose schema differs from that of its stream."""


class ColumnError(DataError):
    """A column that is not there; the message lists those that are."""


class KeyHashError(DataError):
    """A key for which no hash exists that is stable between machines."""


class SerializationError(DataError):
    """A record that cannot be turned into bytes; says which one."""


class RouteError(DataError):
    """A route to a stream or a worker that does not exist; says which do."""


class FileFormatError(DataError):
    """A file that does not hold what it should; says where."""


class TruncatedError(FileFormatError):
    """A captured stream that was cut off before its end; says which file, and where."""


class EventError(DataError):
    """Captured events that contradict each other, such as a batch at a complete time."""


class GraphError(DataError):
    """Tables of vertices and edges that do not make a graph; says which ids are wrong."""


class PatternError(UsageError):
    """A motif pattern that cannot be understood; points at the character."""


class AsOfError(UsageError):
    """A trace is read as of a time that is compacted already, or not complete yet."""


class CommunicationError(PointstampError):
    """Workers cannot talk to each other."""


class AuthenticationError(CommunicationError):
    """A peer does not know the secret of this computation."""


class VersionError(CommunicationError):
    """A peer speaks another version of the protocol."""


class RendezvousError(CommunicationError):
    """Peers did not turn up in time; says which are missing."""


class PeerLostError(CommunicationError):
    """A peer's connection ended without a goodbye."""

    def __init__(self, message: str, peer: int | None = None) -> None:
        super().__init__(message, peer)
        self.peer = peer

    def __str__(self) -> str:
        return str(self.args[0])


class PeerFailedError(CommunicationError):
    """A peer failed and said so before it closed its connection."""

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
    """An external command failed, or did not answer as it should.

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
    """A simulated computation would never end; says which worker waits where, and for what."""


class CheckpointError(PointstampError):
    """What is to outlast a run cannot be kept, or cannot be read again; says what, and where."""


class CorruptCheckpointError(CheckpointError):
    """Stored bytes are not those that were written."""


class TruncatedCheckpointError(CheckpointError):
    """A stored file is shorter than what was written, or gone."""


class CheckpointVersionError(CheckpointError):
    """A checkpoint is of a version that this Pointstamp does not know."""


class CheckpointStructureError(CheckpointError):
    """A checkpoint is of another program: operators with state are missing, or are new."""


class CheckpointInUseError(CheckpointError):
    """Another program commits to a checkpoint; only one may at a time."""


class UndeclaredStateError(CheckpointError):
    """An operator of a durable dataflow may keep what it has not declared; it would be lost."""


class SpillError(PointstampError):
    """What does not fit into `memory_limit=` cannot be kept on disk; says what to do."""


class SourceError(PointstampError):
    """A source cannot be read; says which partition, and after which position."""


class PartitionLostError(SourceError):
    """A partition of which a part was read is not among those of the source any more."""


class PositionError(SourceError):
    """A position that its partition does not have, as of a file that was cut short."""


class SparkInputError(SourceError):
    """An input of a job broke off, as Spark failed to compute it; its own error says of what."""


class SinkError(PointstampError):
    """A sink cannot take what it is given, or commit what was prepared."""


class ServiceError(PointstampError):
    """A service cannot do what it is asked; says which, and why."""


class StoppedError(ServiceError):
    """A service that was stopped, or aborted, is asked for something."""


class StagingError(ServiceError):
    """More is sent to a service than `max_staged_bytes=` allows, and waiting is of no use."""


class EpochError(ServiceError):
    """An epoch that is not complete in time, or whose output is discarded."""


class SparkSetupError(PointstampError):
    """Spark or Java is absent, or too small for what was asked."""


class MissingExtraError(PointstampError):
    """A package that an extra brings, `pip install 'pointstamp[cli]'`, is not installed."""


class InternalError(PointstampError):
    """A bug of ours: please report it with the state in the message."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} (this is a bug in pointstamp: please report it)")


class CheckpointWarning(UserWarning):
    """A snapshot is damaged, and an older one is taken in its place."""


class LoopWarning(UserWarning):
    """A loop runs far beyond the rounds that it was to expect; it goes on."""
