"""What strangers, foreign web pages and bad clients get of the dashboard: nothing, and the reason."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping
from urllib.parse import quote, urlencode, urlsplit

import pytest

from numalign.dashboard.sessions import IDLE, LASTS, Sessions
from tests.browser import moments
from tests.browser.moments import MadeUp
from tests.browser.pages import PAGES, served

TOKEN = "right"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Site:
    """A dashboard that asks for a token."""

    def __init__(self, address: str, clock: Clock) -> None:
        self.address, self.clock = address, clock

    def ask(
        self, path: str, headers: Mapping[str, str] = {}, method: str = "GET", body: str = ""
    ) -> tuple[int, str, Mapping[str, str]]:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=30)
        try:
            connection.request(method, path, body or None, dict(headers))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, answer.read().decode(), found
        finally:
            connection.close()

    def cookie(self) -> str:
        status, _, headers = self.ask(f"/sign-in?token={TOKEN}")
        assert status == 303
        return headers["set-cookie"].partition(";")[0]


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def site(clock: Clock) -> Iterator[Site]:
    async def verify(token: str) -> int:
        return 200 if token == TOKEN else 401

    sessions = Sessions(verify, "numalign", secure=False, now=clock)
    with served(MadeUp(moments.small()), sessions) as address:
        yield Site(address, clock)


@pytest.mark.parametrize("path", ["", *PAGES, "nothing", "static"])
def test_strangers_get_no_page(site: Site, path: str) -> None:
    status, body, _ = site.ask(f"/{path}")
    assert (status, body) == (401, "Unauthorized\n")


@pytest.mark.parametrize("given", ["wrong", "", "x" * 20_000, "a b", "\u202e", "right\n"])
def test_a_wrong_token_begins_no_session(site: Site, given: str) -> None:

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, _, headers = site.ask("/sign-in", form, "POST", urlencode({"token": given}))
    if given.strip() == TOKEN:
        # White space around a token that was copied does no harm.
        assert status == 303
    else:
        assert status in (400, 401)
        assert "set-cookie" not in headers


def test_a_browser_is_led_to_the_sign_in_and_back_to_its_page(site: Site) -> None:
    status, _, headers = site.ask("/node/gpu-0", {"Accept": "text/html"})
    assert (status, headers["location"]) == (303, "/sign-in?next=%2Fnode%2Fgpu-0")
    status, _, headers = site.ask(f"/sign-in?token={TOKEN}&next=%2Fnode%2Fgpu-0")
    assert (status, headers["location"]) == (303, "/node/gpu-0")


def test_what_was_searched_for_is_kept_over_the_sign_in(site: Site) -> None:
    _, _, headers = site.ask("/fleet?q=gpu-1&sort=free", {"Accept": "text/html"})
    _, _, headers = site.ask(f"{headers['location']}&token={TOKEN}")
    assert headers["location"] == "/fleet?q=gpu-1&sort=free"


@pytest.mark.parametrize(
    "then", ["//evil.example/", "/\\evil.example", "https://evil.example", "/sign-in", "/\r\nX: y"]
)
def test_the_sign_in_leads_to_no_other_site(site: Site, then: str) -> None:

    _, _, headers = site.ask(f"/sign-in?token={TOKEN}&next={quote(then, safe='')}")
    assert headers["location"] == "/fleet"


def test_the_cookie_is_for_this_server_alone_and_not_for_scripts(site: Site) -> None:
    _, _, headers = site.ask(f"/sign-in?token={TOKEN}")
    kept = headers["set-cookie"].lower()
    assert "httponly" in kept
    assert "samesite=strict" in kept
    assert TOKEN not in kept


def test_a_session_ends(site: Site) -> None:
    cookie = {"Cookie": site.cookie()}
    assert site.ask("/fleet", cookie)[0] == 200
    site.clock.now += IDLE + 1
    assert site.ask("/fleet", cookie)[0] == 401
    cookie = {"Cookie": site.cookie()}
    for _ in range(int(LASTS // IDLE) + 2):
        site.clock.now += IDLE - 1
        last = site.ask("/fleet", cookie)[0]
    assert last == 401


def test_signing_out_ends_the_session(site: Site) -> None:
    cookie = {"Cookie": site.cookie()}
    assert site.ask("/sign-out", cookie, "POST")[0] == 303
    assert site.ask("/fleet", cookie)[0] == 401


def test_a_program_may_send_the_token_itself(site: Site) -> None:
    assert site.ask("/health", {"Authorization": f"Bearer {TOKEN}"})[0] == 200
    assert site.ask("/health", {"Authorization": "Bearer wrong"})[0] == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
    ],
    ids=str,
)
def test_pages_of_other_sites_get_nothing_even_with_the_cookie(site: Site, headers: dict[str, str]) -> None:
    status, body, _ = site.ask("/fleet", {"Cookie": site.cookie(), **headers})
    assert status in (403, 421)
    assert "gpu-0" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(site: Site, method: str) -> None:
    for path in PAGES:
        assert site.ask(f"/{path}", {"Cookie": site.cookie()}, method)[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2fapp.py",
        "/static/..\\app.py",
        "/static//etc/passwd",
        "/static/dashboard.css%00.js",
        "/static/",
        "//etc/passwd",
        "/../../etc/passwd",
        "/node/..%2f..%2fetc%2fpasswd",
        "/node/%00",
        "/node/" + "x" * 5000,
        "/decisions/%ff%fe",
    ],
)
def test_paths_lead_out_of_nothing(site: Site, path: str) -> None:
    status, body, _ = site.ask(path, {"Cookie": site.cookie()})
    assert status == 404
    assert "root:" not in body


def test_every_answer_forbids_foreign_and_inline_content(site: Site) -> None:
    for path in ("/fleet", "/nothing", "/static/dashboard.js", "/sign-in"):
        _, _, headers = site.ask(path, {"Cookie": site.cookie()})
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


def test_huge_queries_and_bodies_are_refused(site: Site) -> None:
    assert site.ask("/fleet?q=" + "x" * 60_000)[0] in (400, 431)
    assert site.ask("/sign-in", {}, "POST", "token=" + "x" * (2 << 20))[0] == 413


def test_a_client_that_does_not_read_keeps_nobody_else_waiting(site: Site) -> None:
    cookie = site.cookie()
    slow = []
    for _ in range(20):
        client = socket.create_connection(("127.0.0.1", int(site.address.rpartition(":")[2])), timeout=30)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        client.sendall(f"GET /fleet HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\r\n".encode() * 20)
        slow.append(client)
    try:
        assert site.ask("/fleet", {"Cookie": cookie})[0] == 200
    finally:
        for client in slow:
            client.close()
