"""How the extender's server meets kube-scheduler, which opens many connections and resumes no session."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from numalign.cli import servers
from numalign.cli.servers import EvictsChoice
from numalign.process import certificates
from numalign.process.certificates import Validity
from tests.unit.process import tlstalks


@pytest.mark.parametrize("tickets", [0, 2])
def test_the_extender_sends_no_session_tickets_after_a_handshake(tickets: int, tmp_path: Path) -> None:
    """With tickets for comparison: a server of another opinion does send some."""
    authority = certificates.authority("tests", Validity.of(datetime.now(UTC)))
    server, client = authority.issue("extender", ["localhost"]), authority.issue_client("kube-scheduler")
    (tmp_path / "ca.crt").write_text(authority.certificate())
    (tmp_path / "server.pem").write_text(server.certificate + server.key)
    (tmp_path / "client.pem").write_text(client.certificate + client.key)
    shown = (str(tmp_path / "server.pem"), "")
    clients = str(tmp_path / "ca.crt")
    endpoint = servers.extender("extender run", ("127.0.0.1", 1), shown, clients, 5.0, EvictsChoice.NONE)
    context = endpoint.certificate.context
    assert endpoint.authenticated
    assert context.verify_mode is ssl.CERT_REQUIRED
    if tickets:
        context.num_tickets = tickets
    asking = tlstalks.trusting(authority.certificate())
    asking.load_cert_chain(tmp_path / "client.pem")
    assert bool(_sent_after_the_handshake(context, asking)) == bool(tickets)


def _sent_after_the_handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> int:
    """Bytes that the client has not needed for it."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = server.wrap_bio(up, down, server_side=True)
    ours = client.wrap_bio(down, up, server_hostname="localhost")
    for side in (ours, theirs) * 2:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert ours.version() == "TLSv1.3"
    return down.pending
