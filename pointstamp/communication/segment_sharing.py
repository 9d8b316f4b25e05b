"""Shared memory between workers that were started apart, on one machine.

Workers that meet over TCP give each other, authenticated, a number of the machine that they
run on. Of those with the same number the one of the lowest index makes the segment, a file
without a name, and sends the others where it is: its process and descriptor, of which Linux
makes a path that processes of the same user can open. That it is the same memory is proved
by a nonce that lies in it. If one of them cannot open it, all stay with TCP.

Nothing is ever in a file system, so nothing is left over when workers are killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import select
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pointstamp.communication import segment
from pointstamp.communication.segment import Segment
from pointstamp.communication.tls import Stream

N_MACHINE = 16
"""The size of a machine's number."""

ALONE = bytes(N_MACHINE)
"""The number of a worker that shares memory with no other."""

_N_NONCE = 32
_OFFER = struct.Struct(f"<II{_N_NONCE}s")  # process, descriptor, nonce; process 0: no segment
_YES, _NO = b"\1", b"\0"


def machine_number() -> bytes:
    """The same for all processes of this user that see the same processes; else `ALONE`."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        # In another container the path to a descriptor would lead elsewhere.
        space = str(Path("/proc/self/ns/pid").readlink()).encode()
    except OSError:
        return ALONE
    return hashlib.sha256(b"%s %s %d" % (boot, space, os.geteuid())).digest()[:N_MACHINE]


def machine_of_each(machines: Mapping[int, bytes]) -> list[int]:
    """By worker, the first one that runs on the same machine: the same list on all of them.

    >>> machine_of_each({2: b"a", 0: b"b", 1: b"a", 3: ALONE, 4: ALONE})
    [0, 1, 1, 3, 4]
    """
    first: dict[bytes, int] = {}
    return [
        worker if machines[worker] == ALONE else first.setdefault(machines[worker], worker)
        for worker in sorted(machines)
    ]


def sharing(index: int, machine: bytes, machines: Mapping[int, bytes]) -> list[int]:
    """The workers of the machine of worker `index`, itself among them; none if it is alone.

    >>> sharing(1, b"a", {0: b"b", 2: b"a", 3: b"a"})
    [1, 2, 3]
    >>> sharing(1, b"a", {0: b"b"})
    []
    """
    same = [peer for peer, number in machines.items() if number == machine]
    return sorted([*same, index]) if same and machine != ALONE else []


def share(
    index: int, members: Sequence[int], connections: Mapping[int, Stream], until: float
) -> Segment | None:
    """The segment of `members`, once all have it; None if one cannot.

    The connections are authenticated, and nothing else travels on them yet. One that ends
    means no segment; that the peer is lost is reported by the mesh.
    """
    streams = {peer: connections[peer] for peer in members if peer != index}
    with contextlib.suppress(OSError, TimeoutError):
        if index == members[0]:
            return _offer(streams, len(members), until)
        return _take_up(streams[members[0]], len(members), until)
    return None


def _offer(streams: Mapping[int, Stream], n: int, until: float) -> Segment | None:
    """The first worker's part: make the segment, and have the others open it."""
    fd = segment.create(n)
    try:
        nonce = secrets.token_bytes(_N_NONCE)
        if fd is not None:
            os.pwrite(fd, nonce, segment.nonce_byte(n))
        offer = _OFFER.pack(os.getpid() if fd is not None else 0, fd or 0, nonce)
        for stream in streams.values():
            send_all(stream, offer, until)
        replies = [receive_all(stream, 1, until) for stream in streams.values()]
        verdict = _YES if fd is not None and all(each == _YES for each in replies) else _NO
        for stream in streams.values():
            send_all(stream, verdict, until)
        return Segment(fd, n) if fd is not None and verdict == _YES else None
    finally:
        if fd is not None:
            os.close(fd)


def _take_up(stream: Stream, n: int, until: float) -> Segment | None:
    """The others' part: open the segment, and say whether that worked."""
    process, number, nonce = _OFFER.unpack(receive_all(stream, _OFFER.size, until))
    fd = _opened(process, number, nonce, n) if process else None
    try:
        send_all(stream, _NO if fd is None else _YES, until)
        if receive_all(stream, 1, until) != _YES or fd is None:
            return None
        return Segment(fd, n)
    finally:
        if fd is not None:
            os.close(fd)


def _opened(process: int, number: int, nonce: bytes, n: int) -> int | None:
    """The file behind descriptor `number` of `process`, if it is the segment."""
    try:
        fd = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.pread(fd, _N_NONCE, segment.nonce_byte(n))
        if hmac.compare_digest(found, nonce):
            return fd
    except OSError:
        pass  # a pipe or a socket: it was another process
    os.close(fd)
    return None


def send_all(stream: Stream, data: bytes, until: float) -> None:
    """Send all of `data`, over a stream that does not block; raises `TimeoutError`."""
    while data:
        try:
            data = data[stream.send(data) :]
        except BlockingIOError:
            _wait(stream, select.POLLOUT, until)


def receive_all(stream: Stream, n_bytes: int, until: float) -> bytes:
    """So many bytes; raises `TimeoutError`, and `ConnectionError` at the end of the stream."""
    data = b""
    while len(data) < n_bytes:
        try:
            more = stream.recv(n_bytes - len(data))
        except BlockingIOError:
            _wait(stream, select.POLLIN, until)
            continue
        if not more:
            raise ConnectionError
        data += more
    return data


def _wait(stream: Stream, event: int, until: float) -> None:
    waiting = select.poll()
    waiting.register(stream, event)
    left_s = until - time.monotonic()
    if left_s <= 0 or not waiting.poll(left_s * 1e3):
        raise TimeoutError
