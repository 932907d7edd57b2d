"""Pages of other sites cannot call a server that asks for no credentials, even under a name that leads to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.process.http.origins import Hosts
from tests.unit.process.http.clients import Stage, get, staged

HOSTS = Hosts(("Worker-1", ".svc"))
ASKED = {
    "no browser": ([], 200),
    "the loopback": (["Host: 127.0.0.1:10259"], 200),
    "localhost": (["Host: localhost:10259"], 200),
    "in capitals": (["Host: LOCALHOST"], 200),
    "IPv6": (["Host: [::1]:10259"], 200),
    "the address of a pod": (["Host: 10.1.2.3"], 200),
    "a name that was given": (["Host: worker-1:80"], 200),
    "a service": (["Host: numalign.kube-system.svc:10259"], 200),
    "a name that an attacker made lead here": (["Host: evil.example"], 421),
    "one with a port": (["Host: evil.example:10259"], 421),
    "one that looks like a service": (["Host: svc.evil.example"], 421),
    "one that looks like an address": (["Host: 127.0.0.1.evil.example"], 421),
    "an empty one": (["Host: "], 421),
    "a page of our own": (["Host: localhost:1", "Origin: http://localhost:1", "Sec-Fetch-Site: same-origin"], 200),
    "an address that was typed": (["Host: localhost:1", "Sec-Fetch-Site: none"], 200),
    "a page of another site": (["Host: localhost:1", "Origin: http://evil.example"], 403),
    "one on another port": (["Host: localhost:1", "Origin: http://localhost:2"], 403),
    "one without an origin": (["Host: localhost:1", "Origin: null"], 403),
    "a picture in another site": (["Host: localhost:1", "Sec-Fetch-Site: cross-site"], 403),
    "a page of a neighbour": (["Host: localhost:1", "Sec-Fetch-Site: same-site"], 403),
}


@pytest.mark.parametrize("headers, code", ASKED.values(), ids=ASKED)
def test_who_is_answered(headers: list[str], code: int) -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/", *headers))
        assert (stage.wire.codes, stage.echo.asked) == ([code], ["/"] if code == 200 else [])

    staged(check, hosts=HOSTS)


def test_a_server_that_authenticates_its_clients_asks_for_no_host() -> None:
    def check(stage: Stage) -> None:
        stage.connection.data_received(get("/", "Host: proxy.example", "Origin: http://localhost:8001"))
        assert stage.wire.codes == [200]

    staged(check, hosts=None)


LABELS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)


@given(st.lists(LABELS, min_size=1, max_size=4), st.sampled_from(["example", "com", "local", "localhost"]))
def test_no_public_name_is_accepted(labels: list[str], top: str) -> None:
    assert HOSTS.refusal({"host": ".".join([*labels, top])}) is not None
