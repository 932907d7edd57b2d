"""Certificates that OpenSSL believes in, and only in what they say."""

from __future__ import annotations

import ssl
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from numalign.process import certificates
from numalign.process.certificates import CryptographyMissing, Validity
from tests.unit.process import tlstalks

HOSTS = ("localhost", "kube.test", "127.0.0.1", "::1")


def now() -> datetime:
    return datetime.now(UTC)


@pytest.mark.parametrize("host", HOSTS)
def test_a_client_that_knows_the_authority_believes_in_every_host(host: str) -> None:
    authority = certificates.authority("tests", Validity.of(now()))
    shown = certificates.context(authority.issue("server", HOSTS))
    assert tlstalks.shaken(shown, tlstalks.trusting(authority.certificate()), host)


DISTRUSTED = {
    "another host": ("other.test", timedelta(0), "not valid for 'other.test'"),
    "another address": ("127.0.0.2", timedelta(0), "not valid for '127.0.0.2'"),
    "too late": ("localhost", timedelta(days=-366), "expired"),
    "too early": ("localhost", timedelta(days=2), "not yet valid"),
}


@pytest.mark.parametrize("host, begin, why", DISTRUSTED.values(), ids=DISTRUSTED)
def test_a_client_believes_in_nothing_else(host: str, begin: timedelta, why: str) -> None:
    authority = certificates.authority("tests", Validity.of(now() + begin))
    shown = certificates.context(authority.issue("server", HOSTS))
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        tlstalks.shaken(shown, tlstalks.trusting(authority.certificate()), host)


def test_another_authority_of_the_same_name_is_another_authority() -> None:
    one, other = (certificates.authority("tests", Validity.of(now())) for _ in range(2))
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        tlstalks.shaken(certificates.context(one.issue("server", HOSTS)), tlstalks.trusting(other.certificate()))


def test_a_server_is_no_authority() -> None:
    authority = certificates.authority("tests", Validity.of(now()))
    server = authority.issue("server", HOSTS)
    with pytest.raises(ssl.SSLCertVerificationError):
        tlstalks.shaken(certificates.context(server), tlstalks.trusting(server.certificate))


@pytest.mark.parametrize("purpose", ["client", "server"])
def test_a_certificate_serves_one_purpose(purpose: str, tmp_path: Path) -> None:
    """A server that asks its clients for certificates of an authority believes in those of clients alone."""
    authority = certificates.authority("tests", Validity.of(now()))
    asking = certificates.context(authority.issue("server", HOSTS))
    asking.verify_mode = ssl.CERT_REQUIRED
    asking.load_verify_locations(cadata=authority.certificate())
    client = tlstalks.trusting(authority.certificate())
    shown = authority.issue_client("client") if purpose == "client" else authority.issue("client", HOSTS)
    (tmp_path / "client.pem").write_text(shown.certificate + shown.key)
    client.load_cert_chain(tmp_path / "client.pem")
    if purpose == "client":
        tlstalks.shaken(asking, client)
    else:
        with pytest.raises(ssl.SSLCertVerificationError, match="unsuitable certificate purpose"):
            tlstalks.shaken(asking, client)


def test_a_client_is_no_server() -> None:
    authority = certificates.authority("tests", Validity.of(now()))
    shown = certificates.context(authority.issue_client("server"))
    with pytest.raises(ssl.SSLCertVerificationError):
        tlstalks.shaken(shown, tlstalks.trusting(authority.certificate()))


def test_what_a_server_makes_for_itself_ends_with_its_authority() -> None:
    leaf, authority = certificates.self_signed(HOSTS, now()).certificate.split("-----END CERTIFICATE-----\n")[:2]
    assert "BEGIN CERTIFICATE" in leaf
    shown = certificates.context(certificates.self_signed(HOSTS, now()))
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed certificate in certificate chain"):
        tlstalks.shaken(shown, tlstalks.trusting(authority + "-----END CERTIFICATE-----\n"))


def test_no_repr_shows_a_private_key() -> None:
    authority = certificates.authority("tests", Validity.of(now()))
    issued, signing = authority.issue("server", HOSTS), certificates.signing_key()
    for key, shown in ((issued.key, issued), (issued.key, authority), (signing.private, signing)):
        assert "PRIVATE KEY" in key
        assert "PRIVATE KEY" not in repr(shown)
        assert key.splitlines()[1] not in repr(shown)


def test_the_public_half_belongs_to_the_signing_key() -> None:
    made = certificates.signing_key()
    public = serialization.load_pem_private_key(made.private.encode(), None).public_key()
    assert public == serialization.load_pem_public_key(made.public.encode())


def test_without_the_extra_a_certificate_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(CryptographyMissing, match=r"pip install 'numalign\[tls\]'"):
        certificates.self_signed(HOSTS, now())


def test_a_process_that_makes_no_certificate_does_not_load_cryptography() -> None:
    code = "import sys, numalign.process.certificates, numalign.process.serve; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("version, is_served", [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True)])
def test_a_server_speaks_no_version_of_tls_before_1_2(version: ssl.TLSVersion, is_served: bool) -> None:
    authority = certificates.authority("tests", Validity.of(now()))
    shown = certificates.context(authority.issue("server", HOSTS))
    client = tlstalks.trusting(authority.certificate())
    with warnings.catch_warnings():
        # Python warns of the old versions.
        warnings.simplefilter("ignore", DeprecationWarning)
        client.minimum_version = client.maximum_version = version
    # OpenSSL itself offers them at this level of security only.
    client.set_ciphers("ALL:@SECLEVEL=0")
    shown.set_ciphers("ALL:@SECLEVEL=0")
    if is_served:
        assert tlstalks.shaken(shown, client, HOSTS[0])
    else:
        with pytest.raises(ssl.SSLError):
            tlstalks.shaken(shown, client, HOSTS[0])
