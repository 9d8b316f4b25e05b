"""A program on workers of several machines, each a process that is started with its place.

A file, the same on all machines, lists where each worker listens, `HOST:PORT` a line; worker I is
the one of line I, counted from 0. They meet over TCP and prove to each other that they know the
same secret, which is read from a file that only the user can read, and is never an argument.
With certificates they encrypt, and know each other by them as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pointstamp.communication import tcp
from pointstamp.communication.failure import failure
from pointstamp.communication.target import run_target
from pointstamp.communication.tls import Certificates
from pointstamp.errors import FileFormatError, UsageError
from pointstamp.runtime.run_worker import run_worker

MIN_SECRET_BYTES = 16


def run_process(
    main: Callable[..., Any],
    args: list[str],
    process: int,
    hosts: Path,
    secret: Path,
    tls: Path | None = None,
    warn: Callable[[str], None] | None = None,
    connections: str = tcp.PER_WORKER,
    **options: Any,
) -> None:
    """Be worker `process` of those that `hosts` lists, until all dataflows are complete.

    `warn` is called with what the user should know while the worker waits for the others;
    `connections` is as for `tcp.connect`.

    Raises
    ------
    WorkerError
        If `main` calls `sys.exit`, before it had a result.
    """
    addresses = read_hosts(hosts)
    if not 0 <= process < len(addresses):
        raise UsageError(
            f"there is no worker {process}: {hosts} lists {len(addresses)} workers, "
            f"0 to {len(addresses) - 1}"
        )
    certificates = None if tls is None else read_certificates(tls)
    communicator = tcp.connect(
        process,
        addresses,
        read_secret(secret),
        certificates=certificates,
        warn=warn,
        connections=connections,
    )
    try:
        run_target(communicator, lambda mesh: run_worker(mesh, main, *args, **options))
    except SystemExit as cause:
        # Whatever its status, the others fail by it: it is no success here.
        found = failure(process, cause, time.monotonic())
        raise found.as_error() from found.cause


def read_hosts(path: Path) -> list[tuple[str, int]]:
    """The addresses of a file, `HOST:PORT` a line; blank lines and `#` comments are nothing.

    Raises
    ------
    FileFormatError
    """
    addresses = []
    for number, line in enumerate(_read(path).decode("utf-8", "replace").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise FileFormatError(f"{path}: line {number}: {text!r} is not HOST:PORT")
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise FileFormatError(f"{path}: a line HOST:PORT is needed for each worker, found none")
    if len({*addresses}) < len(addresses):
        raise FileFormatError(f"{path}: an address is listed twice, and each is one worker's")
    return addresses


def read_secret(path: Path) -> bytes:
    """What a file holds, without white space around it; at least 16 bytes.

    Raises
    ------
    FileFormatError
    """
    secret = _read(path).strip()
    if len(secret) < MIN_SECRET_BYTES:
        raise FileFormatError(
            f"{path}: a secret has at least {MIN_SECRET_BYTES} bytes, found {len(secret)}; "
            f"make one: head -c 32 /dev/urandom | base64 > {path}"
        )
    _check_private(path, "secret")
    return secret


def read_certificates(folder: Path) -> Certificates:
    """What `chain.pem`, `key.pem` and `roots.pem` of a folder hold.

    Raises
    ------
    FileFormatError
        Also where they cannot be used.
    """
    chain, key, roots = (_read(folder / f"{name}.pem") for name in ("chain", "key", "roots"))
    _check_private(folder / "key.pem", "key")
    try:
        return Certificates(chain, key, roots)
    except UsageError as error:
        raise FileFormatError(f"{folder}: no certificates that can be used: {error}") from error


def _check_private(path: Path, what: str) -> None:
    if path.stat().st_mode & 0o077:
        raise FileFormatError(f"{path}: others can read this {what}; chmod 600 {path}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from error
