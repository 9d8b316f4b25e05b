"""What tests of kernels share."""

from __future__ import annotations

import pytest

import pointstamp

IS_COMPILED = pointstamp.build_info() == "compiled"


@pytest.fixture(params=[0, 1, 2] if IS_COMPILED else [0], scope="module")
def unit(request):
    """A vector unit, for as long as a test runs; the widest there is where it is not there."""
    if not IS_COMPILED:
        yield
        return
    from pointstamp.kernels.hash_loops import _use_unit

    used = _use_unit(request.param)
    yield
    _use_unit(used)
