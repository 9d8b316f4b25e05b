"""What an attempt has staged in the log of inputs, as messages and records name it.

Without Arrow: those that only carry it import nothing else of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointstamp.checkpoint.arrow_files import Stored


@dataclass(frozen=True)
class Staged:
    """A handle of what one attempt has staged; small, to be sent to the committer.

    Attributes
    ----------
    input, epoch, attempt
        Of what.
    name : str
        Of the object that has it, below the checkpoint's folder.
    rows : int
        How many records it has.
    n_bytes, checksum
        What the object has to be.
    """

    input: str
    epoch: int
    attempt: str
    name: str
    rows: int
    n_bytes: int
    checksum: str

    @property
    def stored(self) -> Stored:
        """The object."""
        # Not above: what commits a stream's batch carries these, and reads none.
        from pointstamp.checkpoint.arrow_files import Stored

        return Stored(self.name, self.n_bytes, self.checksum)

    def to_json(self) -> dict[str, Any]:
        """As plain values, for a message."""
        return dict(vars(self))

    @staticmethod
    def from_json(record: dict[str, Any]) -> Staged:
        """Of what `to_json` gave."""
        return Staged(**record)
