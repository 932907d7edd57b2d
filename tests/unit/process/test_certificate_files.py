"""A server's certificate while it runs: replaced, half replaced, unreadable."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from numalign.process import certificates
from numalign.process.certificates import CertificateFiles, Unusable, Validity
from tests.unit.process import tlstalks

AUTHORITY = certificates.authority("tests", Validity.of(datetime.now(UTC)))
FIRST, SECOND = (AUTHORITY.issue(name, ("localhost",)) for name in ("first", "second"))
TRUSTING = tlstalks.trusting(AUTHORITY.certificate())

LOCKED = """\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHrMFYGCSqGSIb3DQEFDTBJMCgGCSqGSIb3DQEFDDAbBAiSYK2K9c6tSwIBATAM
BggqhkiG9w0CCQUAMB0GCWCGSAFlAwQBAgQQp6vDdpPzcMP7WhrMhadimgSBkCs/
tBFAH9J7LNvP9o71KSNc3HPj+zvXY1ntLPS2awmoqvf0KFcxpaJ9KWy3cB0mMTrA
iT+OqmBu0AtcoOX2rEw1p8rEm9bC3BoC9TVnuA9bc9wA0kwWfpHUuSGgrS6DeR6r
UjcVYT8sw2wyV0cMGqCf8rCnUZLIaYhhqlRhMzs7kPmK4lYkIwLBfmvd26RE7Q==
-----END ENCRYPTED PRIVATE KEY-----
"""


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    (tmp_path / "tls.crt").write_text(FIRST.certificate)
    (tmp_path / "tls.key").write_text(FIRST.key)
    return CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key")


def subject(files: CertificateFiles) -> bytes:
    seen = tlstalks.shaken(files.context, TRUSTING)
    return b"second" if b"second" in seen else b"first"


def test_files_that_did_not_change_are_left_alone(files: CertificateFiles) -> None:
    assert not files.look()
    assert subject(files) == b"first"


def test_new_connections_see_the_new_certificate(files: CertificateFiles, tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_text(SECOND.certificate)
    (tmp_path / "tls.key").write_text(SECOND.key)
    assert files.look()
    assert subject(files) == b"second"


HALVES = {
    "the key is still the old one": SECOND.certificate,
    "nothing is in the file yet": "",
    "half of it is written": SECOND.certificate[:200],
}


@pytest.mark.parametrize("written", HALVES.values(), ids=HALVES)
def test_a_half_replaced_certificate_leaves_the_last_one(written: str, files: CertificateFiles, tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_text(written)
    with pytest.raises(Unusable, match="expected a certificate and its private key in PEM"):
        files.look()
    assert subject(files) == b"first"


def test_a_certificate_that_is_gone_leaves_the_last_one(files: CertificateFiles, tmp_path: Path) -> None:
    (tmp_path / "tls.key").unlink()
    with pytest.raises(Unusable, match="cannot be read"):
        files.look()
    assert subject(files) == b"first"


def test_both_may_be_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "both.pem").write_text(FIRST.certificate + FIRST.key)
    both = CertificateFiles(tmp_path / "both.pem", tmp_path / "both.pem")
    assert subject(both) == b"first"


def test_a_locked_key_is_refused_rather_than_asked_for(tmp_path: Path) -> None:
    (tmp_path / "both.pem").write_text(FIRST.certificate + LOCKED)
    with pytest.raises(Unusable, match="cannot be used"):
        CertificateFiles(tmp_path / "both.pem", tmp_path / "both.pem")


def test_a_server_without_files_makes_its_own() -> None:
    shown = certificates.self_signed_context(("localhost", "127.0.0.1"), datetime.now(UTC))
    stranger = ssl.create_default_context()
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
    assert b"localhost@" in tlstalks.shaken(shown, stranger)


def test_files_are_followed_past_those_that_cannot_be_used(
    files: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(certificates, "RELOAD", 0.0)

    async def replaced() -> None:
        following = asyncio.ensure_future(files.follow())
        for name, text in (("tls.crt", SECOND.certificate), ("tls.key", SECOND.key)):
            (tmp_path / name).write_text(text)
            for _ in range(3):
                await asyncio.sleep(0)
        following.cancel()

    asyncio.run(replaced())
    assert "keeping the previous one" in caplog.text
    assert subject(files) == b"second"
