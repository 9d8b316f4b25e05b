"""Memory that a worker frees and takes again: by the pages that the system has to map for it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap

import pytest

from pointstamp.communication import kept_memory

_PROGRAM = textwrap.dedent(
    """
    import resource, sys
    from pointstamp.communication.kept_memory import keep_freed_memory

    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    kept = keep_freed_memory() if sys.argv[1] == "keeps" else None
    for _ in range(3):
        before = faults()
        blocks = [b"x" * (1 << 19) for _ in range(128)]
        del blocks
    print(kept, faults() - before)
    """
)

_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only the C library of GNU is asked for it"
)


def _run(how, **environment):
    own = {name: text for name, text in os.environ.items() if name not in kept_memory._SETTINGS}
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, how],
        capture_output=True,
        text=True,
        check=True,
        env=own | environment,
    )
    kept, n_faults = ran.stdout.split()
    return kept, int(n_faults)


@_glibc
def test_what_was_freed_is_taken_again_without_the_system():
    kept, n_faults = _run("keeps")
    _, n_otherwise = _run("does not")
    assert kept == "True"
    # 64 MiB are 16,384 pages; that they are mapped anew each time is what it is for.
    assert n_otherwise > 10_000
    assert n_faults < n_otherwise / 10


def test_what_the_environment_says_comes_first():
    assert _run("keeps", MALLOC_TRIM_THRESHOLD_="131072")[0] == "False"


@_glibc
def test_a_library_that_lacks_it_is_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    for name in kept_memory._SETTINGS:
        monkeypatch.delenv(name, raising=False)
    assert kept_memory.keep_freed_memory() is False


@_glibc
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_keep_what_they_free(workers):
    program = textwrap.dedent(
        """
        import resource, sys
        import pointstamp as ps

        def main(worker):
            for _ in range(3):
                before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
                blocks = [b"x" * (1 << 19) for _ in range(48)]
                del blocks
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        if __name__ == "__main__":
            print(max(ps.execute(main, workers=int(sys.argv[1]))))
        """
    )
    own = {name: text for name, text in os.environ.items() if name not in kept_memory._SETTINGS}
    ran = subprocess.run(
        [sys.executable, "-c", program, str(workers)],
        capture_output=True,
        text=True,
        check=True,
        env=own,
    )
    assert int(ran.stdout) < 600  # of the 6,144 pages of 24 MiB
