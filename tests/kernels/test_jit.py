"""Kernels compile late, once, with those they call, and run plain where they must."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from pointstamp.kernels import jit
from pointstamp.kernels.jit import Kernel, kernel

THREE = np.int64(3)


@kernel
def tripled(n: int) -> int:
    return n * THREE


def plain_sum_of_tripled(values):
    return int(values.sum()) * 3


@kernel(plain=plain_sum_of_tripled)
def sum_of_tripled(values):
    total = 0
    for value in values:
        total += tripled(value)
    return total


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=Path(jit.__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_kernel_calls_kernels_and_agrees_with_its_twin():
    values = np.arange(10)
    assert sum_of_tripled(values) == sum_of_tripled.plain(values) == 135


def test_importing_the_kernels_imports_no_numba():
    code = (
        "import sys, pointstamp.kernels.hashing, pointstamp.kernels.partition;"
        "print('numba' in sys.modules)"
    )
    assert run_python(code) == "False"


def test_without_numba_the_twins_run():
    code = (
        "import sys, numpy as np;"
        "from pointstamp.kernels.partition import partition;"
        "order, starts = partition(np.array([3, 4, 5, 6], np.uint64), 2);"
        "print(order.tolist(), starts.tolist(), 'numba' in sys.modules)"
    )
    assert run_python(code, POINTSTAMP_NUMBA="0") == "[1, 3, 0, 2] [0, 2, 4] False"


def test_where_numba_cannot_be_imported_the_twins_run():
    code = (
        "import sys; sys.modules['numba'] = None; import numpy as np;"
        "from pointstamp.kernels.sorting import unique_sorted;"
        "print(unique_sorted(np.array([2, 1, 2])).tolist())"
    )
    assert run_python(code) == "[1, 2]"


def test_compiled_code_is_found_on_disk_by_the_next_process(tmp_path):
    code = (
        "import numpy as np; from pointstamp.kernels import sorting;"
        "sorting.unique_sorted(np.array([1]));"
        "print(sum(sorting._distinct.compiled().stats.cache_hits.values()))"
    )
    assert run_python(code, NUMBA_CACHE_DIR=str(tmp_path)) == "0"
    assert run_python(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1"


def test_a_kernel_without_a_source_file_compiles_without_a_cache():
    namespace: dict[str, object] = {}
    exec(compile("def doubled(n):\n    return 2 * n\n", "<nowhere>", "exec"), namespace)
    assert kernel(namespace["doubled"])(21) == 42


def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch):
    wanted = []

    def njit(function, cache):
        wanted.append(cache)

        def full_disk(*args):
            raise OSError(28, "No space left on device")

        return full_disk if cache else function

    monkeypatch.setattr(jit, "_njit", njit)
    assert kernel(lambda n: n + 1)(1) == 2
    assert wanted == [True, False]


def test_threads_that_call_a_new_kernel_at_once_compile_it_once(monkeypatch):
    compiled = []

    def njit(function, cache):
        compiled.append(function)
        return function

    monkeypatch.setattr(jit, "_njit", njit)
    fresh = kernel(lambda n: n)
    together = threading.Barrier(8)

    def call() -> None:
        together.wait()
        fresh(1)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1


def caller_of(callee: object, constant: object) -> Kernel:
    """The same source each time, with other globals."""
    source = sum_of_caller.__code__
    return Kernel(types.FunctionType(source, {"callee": callee, "CONSTANT": constant}), None)


def sum_of_caller(n):
    return callee(n) + CONSTANT  # noqa: F821 - `caller_of` gives these


@pytest.mark.parametrize(
    ("callee", "constant"),
    [(kernel(lambda n: n + 2), np.int64(1)), (kernel(lambda n: n + 1), np.int64(2))],
)
def test_the_cache_tells_kernels_apart_by_what_they_call_and_by_constants(callee, constant):
    first = caller_of(kernel(lambda n: n + 1), np.int64(1))
    assert first.digest() != caller_of(callee, constant).digest()
    assert first.digest() == caller_of(kernel(lambda n: n + 1), np.int64(1)).digest()


def test_only_functions_become_kernels():
    with pytest.raises(TypeError, match="Python function"):
        kernel(len)(())
