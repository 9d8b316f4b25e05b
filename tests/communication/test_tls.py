"""Certificates that cannot be used are refused when they are given, with what is wrong."""

from __future__ import annotations

import pickle
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pointstamp.communication.tls import Certificates
from pointstamp.errors import UsageError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"roots": b""}, "the roots should be certificates in PEM, as bytes"),
        ({"roots": b"nonsense"}, "the roots should be certificates in PEM, as bytes"),
        ({"roots": "\N{SNOWMAN}".encode()}, "the roots should be certificates in PEM, as bytes"),
        ({"roots": "a text"}, "the roots should be certificates in PEM, as bytes"),
        ({"chain": b"nonsense"}, "the key and the chain should be those of one certificate"),
        ({"key": b"nonsense"}, "the key and the chain should be those of one certificate"),
        ({"key": None}, "the key and the chain should be those of one certificate"),
    ],
)
def test_what_is_no_certificate_is_refused(
    certificates: Certificates, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        replace(certificates, **given)


def test_the_key_of_another_certificate_is_refused(
    certificates: Certificates, other_certificates: Certificates
) -> None:
    with pytest.raises(UsageError, match=r"one certificate .* are not: .*MISMATCH"):
        replace(certificates, key=other_certificates.key)


def test_a_key_with_a_password_is_refused_and_not_asked_for(
    certificates: Certificates, tmp_path: Path
) -> None:
    (tmp_path / "plain.pem").write_bytes(certificates.key)
    subprocess.run(
        [
            *("openssl", "pkcs8", "-topk8", "-passout", "pass:secret"),
            *("-in", tmp_path / "plain.pem", "-out", tmp_path / "key.pem"),
        ],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    with pytest.raises(UsageError, match="the key has a password"):
        replace(certificates, key=(tmp_path / "key.pem").read_bytes())


def test_they_travel(certificates: Certificates) -> None:
    assert pickle.loads(pickle.dumps(certificates)) == certificates
    assert "PRIVATE KEY" not in repr(certificates)
