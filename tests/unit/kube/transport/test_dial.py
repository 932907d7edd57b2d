"""Addresses of servers and proxies, as kubeconfigs and environments write them."""

import pytest

from numalign.kube.transport import dial
from numalign.kube.transport.dial import Proxy, Server

ADDRESSES = {
    "plain": ("https://kube.test", Server("kube.test", 443), "kube.test:443"),
    "port": ("https://10.0.0.1:6443", Server("10.0.0.1", 6443), "10.0.0.1:6443"),
    "IPv6": ("https://[fd00::1]:6443/", Server("fd00::1", 6443), "[fd00::1]:6443"),
    "behind a gateway": (
        "https://g.test/k8s/clusters/c-1/",
        Server("g.test", 443, prefix="/k8s/clusters/c-1"),
        "g.test:443",
    ),
    "without TLS": ("http://localhost:8001", Server("localhost", 8001, secure=False), "localhost:8001"),
}


@pytest.mark.parametrize("url, address, authority", ADDRESSES.values(), ids=ADDRESSES)
def test_an_address(url: str, address: Server, authority: str) -> None:
    assert dial.parse_server(url) == address
    assert address.authority == authority


@pytest.mark.parametrize(
    "url", ["", "kube.test:6443", "ftp://x", "https://", "https://x:99999", "https://x:y", "https://[x"]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(is not a URL|names no host|has no port)"):
        dial.parse_server(url)


def test_a_proxy_with_a_login_does_not_show_it() -> None:
    proxy = dial.parse_proxy("http://me:s%20cret@proxy.test:3128")
    assert proxy == Proxy("proxy.test", 3128, "http", "me:s cret")
    assert "s cret" not in repr(proxy)
    assert "s cret" not in repr(Server("x", 1, proxy=proxy))


PROXIES = {
    "http": ("http://p", Proxy("p", 80)),
    "over TLS": ("https://p", Proxy("p", 443, "https")),
    "SOCKS": ("socks5://me:pw@p", Proxy("p", 1080, "socks5", "me:pw")),
}


@pytest.mark.parametrize("url, expected", PROXIES.values(), ids=PROXIES)
def test_the_kinds_of_proxies(url: str, expected: Proxy) -> None:
    assert dial.parse_proxy(url) == expected


@pytest.mark.parametrize("url", ["socks4://proxy:1080", "proxy", "http://"])
def test_what_is_no_proxy(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(is not a URL|names no host)"):
        dial.parse_proxy(url)


PROXY = {"HTTPS_PROXY": "http://p:1"}
ENVIRONMENTS: dict[str, tuple[dict[str, str], str, bool]] = {
    "none": ({}, "https://kube.test", False),
    "for everything": (PROXY, "https://kube.test", True),
    "without a scheme": ({"https_proxy": "p:1"}, "https://kube.test", True),
    "for plain HTTP only": ({"HTTP_PROXY": "http://p:1"}, "https://kube.test", False),
    "not for this host": (PROXY | {"NO_PROXY": "kube.test"}, "https://kube.test", False),
    "not for this domain": (PROXY | {"NO_PROXY": "a, .test"}, "https://api.kube.test", False),
    "not for this range": (PROXY | {"no_proxy": "10.0.0.0/8"}, "https://10.1.2.3", False),
    "for another range": (PROXY | {"no_proxy": "10.0.0.0/8"}, "https://11.1.2.3", True),
    "for a host of similar name": (PROXY | {"NO_PROXY": "kube.test"}, "https://xkube.test", True),
    "for nothing": (PROXY | {"NO_PROXY": "*"}, "https://kube.test", False),
    "never for ourselves": (PROXY | {"NO_PROXY": ""}, "https://127.0.0.1:6443", False),
}


@pytest.mark.parametrize("login", ["u" * 256, "me:" + "p" * 256, "me:" + "%C3%A9" * 128])
def test_a_login_that_socks_cannot_carry_is_refused_and_not_cut(login: str) -> None:
    with pytest.raises(ValueError, match="which SOCKS5 cannot carry") as raised:
        dial.parse_proxy(f"socks5://{login}@proxy.test")
    assert "ppp" not in str(raised.value)
    assert dial.parse_proxy(f"http://{login}@proxy.test").login


@pytest.mark.parametrize("environment, url, used", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_the_proxy_of_an_environment(environment: dict[str, str], url: str, used: bool) -> None:
    assert dial.proxy_from_environment(environment, url) == (Proxy("p", 1) if used else None)
