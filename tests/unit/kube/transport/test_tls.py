"""Whom the client believes over TLS, and whom it is."""

import os
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from numalign.api.errors import BadObject
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import NODES
from numalign.kube.transport.auth import Access
from numalign.kube.transport.tls import Certificate, Contexts, Trust
from tests.unit.kube import certificates
from tests.unit.kube.clocks import FastClock, run
from tests.unit.kube.stub import Stub, secure_access, serving

ALICE = Certificate(certificates.CLIENT.encode(), certificates.CLIENT_KEY.encode())
AUTHORITY = Trust(data=certificates.AUTHORITY.encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("AUTHORITY", "SERVER", "SERVER_KEY", "NAMED_SERVER", "NAMED_SERVER_KEY"):
        (tmp_path / name).write_text(getattr(certificates, name))
    return tmp_path


def server_side(folder: Path, name: str = "SERVER", asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / name, folder / f"{name}_KEY")
    if asks:
        context.load_verify_locations(folder / "AUTHORITY")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def node_name(stub: Stub, access: Access) -> str:
    async with Client(access, clock=FastClock()) as client:
        return (await client.get(NODES.at("n1"))).metadata.name


def asking(folder: Path, server: str = "SERVER", asks: bool = False, **way: Any) -> Stub:
    async def check() -> Stub:
        stub = Stub()
        stub.put("nodes", {"metadata": {"name": "n1"}})
        async with serving(stub, server_side(folder, server, asks)):
            assert await node_name(stub, secure_access(stub, **way)) == "n1"
        return stub

    return run(check())


def test_a_server_its_authority_vouches_for_is_believed(folder: Path) -> None:
    assert asking(folder).asked


def test_the_authority_may_be_a_file(folder: Path) -> None:
    assert asking(folder, trust=Trust(file=str(folder / "AUTHORITY"))).asked


def test_a_server_under_another_name_is_refused(folder: Path) -> None:
    with pytest.raises(errors.Unreachable, match="is not trusted: IP address mismatch"):
        asking(folder, "NAMED_SERVER")


def test_the_name_to_expect_can_be_given(folder: Path) -> None:
    assert asking(folder, "NAMED_SERVER", name="kube.test").asked


def test_a_server_without_a_trusted_authority_is_refused(folder: Path) -> None:
    with pytest.raises(errors.Unreachable, match="is not trusted: unable to get local issuer certificate"):
        asking(folder, trust=Trust())


def test_without_verification_any_server_is_believed(folder: Path) -> None:
    assert asking(folder, "NAMED_SERVER", trust=Trust(insecure=True)).asked


def test_a_client_certificate_is_the_identity(folder: Path) -> None:
    (asked,) = asking(folder, asks=True, certificate=ALICE).asked
    assert asked.peer["subject"] == ((("commonName", "alice"),),)


def test_a_context_is_kept_until_the_file_of_the_authority_changes(folder: Path) -> None:
    contexts = Contexts(Trust(file=str(folder / "AUTHORITY")), "test")
    first = contexts.context(None)
    assert contexts.context(None) is first
    os.utime(folder / "AUTHORITY", ns=(1, 1))
    assert contexts.context(None) is not first


def test_another_certificate_gets_another_context() -> None:
    contexts = Contexts(AUTHORITY, "test")
    assert contexts.context(None) is not contexts.context(ALICE)


BAD = {
    "no certificate": Certificate(b"x", certificates.CLIENT_KEY.encode()),
    "a key of somebody else": Certificate(certificates.CLIENT.encode(), certificates.SERVER_KEY.encode()),
    "no key": Certificate(certificates.CLIENT.encode(), b"x"),
}


@pytest.mark.parametrize("certificate", BAD.values(), ids=BAD)
def test_a_certificate_that_cannot_be_used_is_named(certificate: Certificate) -> None:
    with pytest.raises(BadObject, match="Kubeconfig test, client certificate and key: are not a certificate"):
        Contexts(AUTHORITY, "test").context(certificate)


def test_no_key_is_shown() -> None:
    assert certificates.CLIENT_KEY.splitlines()[1] not in repr(ALICE)


def test_files_that_are_being_replaced_leave_the_last_context(folder: Path) -> None:
    file = folder / "AUTHORITY"
    contexts = Contexts(Trust(file=str(file)), "test")
    first = contexts.context(ALICE)
    assert contexts.context(BAD["a key of somebody else"]) is first
    file.write_text("half of it")
    os.utime(file, ns=(1, 1))
    assert contexts.context(ALICE) is first
    file.unlink()
    assert contexts.context(ALICE) is first
    file.write_text(certificates.AUTHORITY)
    assert contexts.context(ALICE) is not first


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no files in memory")
def test_a_clients_key_is_never_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    load = ssl.SSLContext.load_cert_chain

    def noted(context: ssl.SSLContext, file: str, *rest: Any, **named: Any) -> None:
        seen.append(os.readlink(file))
        load(context, file, *rest, **named)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", noted)
    Contexts(AUTHORITY, "config").context(ALICE)
    assert [place.startswith("/memfd:") for place in seen] == [True]
