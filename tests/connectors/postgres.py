"""A server of PostgreSQL of its own, where Debian's is installed, behind a socket in a folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path


def programs() -> Path | None:
    """Where `initdb` and `postgres` are; None if they are not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if (found := shutil.which("initdb")) is not None:
        folders.append(Path(found).resolve().parent)
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


def _user() -> str | None:
    """Whose processes it has: not those of root, which it refuses; None is ours."""
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return "nobody"


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The address of a server with an empty database."""
    bin = programs()
    assert bin is not None
    user = _user()
    # Short: a socket's path has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if user is not None:
        shutil.chown(folder, user)
    server = None
    try:
        common = {"user": user, "cwd": folder, "stdout": subprocess.DEVNULL}
        subprocess.run(
            [bin / "initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres", "--no-sync"],
            check=True,
            **common,  # type: ignore[call-overload]
        )
        options = {"listen_addresses": "", "unix_socket_directories": folder, "fsync": "off"}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        server = subprocess.Popen(
            [bin / "postgres", "-D", folder / "data", *words],
            stderr=subprocess.DEVNULL,
            **common,  # type: ignore[call-overload]
        )
        asked = [bin / "pg_isready", "-q", "-h", folder]
        deadline = time.monotonic() + 60
        while subprocess.run(asked, check=False).returncode:
            assert server.poll() is None, "the server of PostgreSQL has ended"
            assert time.monotonic() < deadline, "the server of PostgreSQL does not answer"
            time.sleep(0.05)
        yield f"postgresql:///postgres?host={folder}&user=postgres"
    finally:
        if server is not None:
            server.terminate()
            server.wait()
        shutil.rmtree(folder)
