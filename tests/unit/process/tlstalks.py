"""A handshake without a network: what a client thinks of what a server shows."""

from __future__ import annotations

import ssl


def trusting(authority: str) -> ssl.SSLContext:
    """A client as strict as the newest Python's, which asks for both key identifiers."""
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def shaken(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> bytes:
    """The certificate that the client saw, in DER; ssl.SSLError where it does not like it."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = server.wrap_bio(up, down, server_side=True)
    ours = client.wrap_bio(down, up, server_hostname=host)
    for side in (ours, theirs) * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    seen = ours.getpeercert(binary_form=True)
    assert seen is not None
    return seen
