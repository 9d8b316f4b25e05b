"""A program for `Stream.command` with a marker: answers each record twice.

    python twice.py text MARKER     lines, until the end of its input
    python twice.py arrow MARKER    an Arrow IPC stream each way

What such a program has to do: when it has read a mark, write everything that it has to
say to the records before it, then the mark, and flush.
"""

from __future__ import annotations

import sys


def twice_lines(marker: str) -> None:
    for line in sys.stdin:
        is_mark = line == f"{marker}\n"
        sys.stdout.write(line if is_mark else line * 2)
        if is_mark:
            sys.stdout.flush()


def twice_arrow() -> None:
    import pyarrow as pa

    out = sys.stdout.buffer
    batches = pa.ipc.open_stream(sys.stdin.buffer)
    with pa.ipc.new_stream(out, batches.schema) as answers:
        while True:
            try:
                batch, metadata = batches.read_next_batch_with_custom_metadata()
            except StopIteration:
                break
            is_mark = metadata is not None and b"pointstamp" in metadata
            for _ in range(1 if is_mark else 2):
                answers.write_batch(batch, custom_metadata=metadata)
            if is_mark:
                out.flush()


if __name__ == "__main__":
    twice_arrow() if sys.argv[1] == "arrow" else twice_lines(sys.argv[2])
