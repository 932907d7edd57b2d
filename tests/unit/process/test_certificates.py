"""Certificates that OpenSSL believes in, and only in what they say."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from numalign.process import certificates, der, ecdsa, servertls
from numalign.process.certificates import Life
from tests.unit.process import tlstalks

HOSTS = ("localhost", "kube.test", "127.0.0.1", "::1")


def now() -> datetime:
    return datetime.now(UTC)


@pytest.mark.parametrize("host", HOSTS)
def test_a_client_that_knows_the_authority_believes_in_every_host(host: str) -> None:
    authority = certificates.authority("tests", Life.of(now()))
    shown = servertls.context(authority.vouched("server", HOSTS))
    assert tlstalks.shaken(shown, tlstalks.trusting(authority.certificate()), host)


DISTRUSTED = {
    "another host": ("other.test", timedelta(0), "not valid for 'other.test'"),
    "another address": ("127.0.0.2", timedelta(0), "not valid for '127.0.0.2'"),
    "too late": ("localhost", timedelta(days=-366), "expired"),
    "too early": ("localhost", timedelta(days=2), "not yet valid"),
}


@pytest.mark.parametrize("host, begin, why", DISTRUSTED.values(), ids=DISTRUSTED)
def test_a_client_believes_in_nothing_else(host: str, begin: timedelta, why: str) -> None:
    authority = certificates.authority("tests", Life.of(now() + begin))
    shown = servertls.context(authority.vouched("server", HOSTS))
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        tlstalks.shaken(shown, tlstalks.trusting(authority.certificate()), host)


def test_another_authority_of_the_same_name_is_another_authority() -> None:
    one, other = (certificates.authority("tests", Life.of(now())) for _ in range(2))
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        tlstalks.shaken(servertls.context(one.vouched("server", HOSTS)), tlstalks.trusting(other.certificate()))


def test_a_server_is_no_authority() -> None:
    authority = certificates.authority("tests", Life.of(now()))
    server = authority.vouched("server", HOSTS)
    with pytest.raises(ssl.SSLCertVerificationError):
        tlstalks.shaken(servertls.context(server), tlstalks.trusting(server.certificate))


def test_what_a_server_makes_for_itself_ends_with_its_authority() -> None:
    leaf, authority = certificates.self_made(HOSTS, now()).certificate.split("-----END CERTIFICATE-----\n")[:2]
    assert "BEGIN CERTIFICATE" in leaf
    shown = servertls.context(certificates.self_made(HOSTS, now()))
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed certificate in certificate chain"):
        tlstalks.shaken(shown, tlstalks.trusting(authority + "-----END CERTIFICATE-----\n"))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, ecdsa.N - 1), st.integers(1, ecdsa.N - 1))
def test_multiples_of_a_point_add_up(one: int, other: int) -> None:
    total = (one + other) % ecdsa.N
    assume(total)
    assert ecdsa.plus(ecdsa.times(one, ecdsa.G), ecdsa.times(other, ecdsa.G)) == ecdsa.times(total, ecdsa.G)


MOMENTS = {
    "this century": (datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), b"\x17\x0d491231235959Z"),
    "later": (datetime(2050, 1, 1, tzinfo=UTC), b"\x18\x0f20500101000000Z"),
}


@pytest.mark.parametrize("when, written", MOMENTS.values(), ids=MOMENTS)
def test_years_have_four_digits_from_2050_on(when: datetime, written: bytes) -> None:
    assert der.moment(when) == written


NUMBERS = {0: b"\x02\x01\x00", 127: b"\x02\x01\x7f", 128: b"\x02\x02\x00\x80", 256: b"\x02\x02\x01\x00"}


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_never_look_negative(number: int) -> None:
    assert der.integer(number) == NUMBERS[number]


@pytest.mark.parametrize("length, head", {127: b"\x04\x7f", 128: b"\x04\x81\x80", 256: b"\x04\x82\x01\x00"}.items())
def test_long_things_say_how_long_their_length_is(length: int, head: bytes) -> None:
    assert der.octets(b"x" * length) == head + b"x" * length
