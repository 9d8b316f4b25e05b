"""What the tests of services share."""

from __future__ import annotations

import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A certificate of 127.0.0.1 that has signed itself, for doors that encrypt."""
    from pointstamp.service.door import Certificates

    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", folder / "key.pem", "-out", folder / "chain.pem"),
        ],
        check=True,
        capture_output=True,
    )
    chain = (folder / "chain.pem").read_bytes()
    return Certificates(chain, (folder / "key.pem").read_bytes(), chain)
