"""`numalign scheduler state`, `dump`, `repeat` and the dashboard of a scheduler that runs, over TLS, as people do."""

from __future__ import annotations

import contextlib
import http.client
import re
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from tests.embedded import clusters
from tests.embedded import schedulerstories as stories
from tests.embedded.clusters import Up
from tests.embedded.test_scheduler_process import PODS, REPORTS, free_port, node_of, scheduler
from tests.unit.kube import certificates


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with clusters.up(tmp_path_factory.mktemp("clusters"), "--nodes 2") as found:
        clusters.awaited(lambda: len(found.call("GET", REPORTS)[1]["items"]) == 2)
        yield found


@pytest.fixture(scope="module")
def reach(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Options that lead to a scheduler with one pod placed and one that waits."""
    files = tmp_path_factory.mktemp("tls")
    for name, text in (
        ("tls.crt", certificates.SERVER),
        ("tls.key", certificates.SERVER_KEY),
        ("ca", certificates.AUTHORITY),
        ("token", "admin"),
    ):
        (files / name).write_text(text)
    port = free_port()
    served = f"--port {port} --tls-certificate {files}/tls.crt --tls-key {files}/tls.key"
    with scheduler(up, f"{served} --record {files}/record"):
        for name, cpus in (("placed", 4), ("large", 24)):
            up.call("POST", PODS, stories.pod(name, cpus))
        clusters.awaited(lambda: bool(node_of(up, "placed")))
        ways = f"--server https://127.0.0.1:{port} --certificate-authority {files}/ca --token-file {files}/token"
        clusters.awaited(lambda: "default/large" in look(f"state {ways}").stdout)
        yield ways


def look(line: str) -> subprocess.CompletedProcess[str]:
    command = clusters.numalign(f"scheduler {line}")
    return subprocess.run(command, capture_output=True, text=True, timeout=clusters.PATIENCE, check=False)


def test_who_waits_is_told_with_the_reason(reach: str) -> None:
    told = " ".join(look(f"state {reach}").stdout.split())
    assert "unschedulable default/large" in told
    assert "NodeResourceTopologyMatch: cannot align container" in told


def test_a_pod_has_its_story(reach: str) -> None:
    told = look(f"state {reach} --pod placed").stdout
    for words in ("queued", "node selected: attempt 1", "bound: node", "On node-"):
        assert words in told


@pytest.mark.parametrize("pod", ["placed", "large"])
def test_a_dump_repeats_what_was_decided(reach: str, tmp_path: Path, pod: str) -> None:
    assert look(f"dump {reach} -f {tmp_path}/now.gz").returncode == 0
    again = look(f"repeat {tmp_path}/now.gz --pod {pod}")
    assert (again.returncode, "the same" in again.stdout) == (0, True)


def test_strangers_are_turned_away(reach: str) -> None:
    stranger = look(f"state {reach.partition(' --token-file')[0]}")
    words = (
        'answers 403 to /debug/state: forbidden: User "system:anonymous" cannot get path "/debug/state"; give --token'
    )
    assert (stranger.returncode, words in stranger.stderr) == (2, True)
    wary = look(f"state {reach.partition(' --certificate')[0]}")
    assert (wary.returncode, "is not trusted: " in wary.stderr) == (2, True)
    assert "; give --certificate-authority, or --insecure-skip-tls-verify" in wary.stderr


class Answer(NamedTuple):
    status: int
    text: str
    headers: Mapping[str, str]


def asked(reach: str, path: str, headers: Mapping[str, str] = {}, method: str = "GET", body: str = "") -> Answer:
    server, authority = (reach.split(f"{option} ")[1].split()[0] for option in ("--server", "--certificate-authority"))
    trusting = ssl.create_default_context(cafile=authority)
    with contextlib.closing(http.client.HTTPSConnection(urlsplit(server).netloc, timeout=60, context=trusting)) as to:
        to.request(method, f"/dashboard{path}", body or None, dict(headers))
        answer = to.getresponse()
        return Answer(answer.status, answer.read().decode(), {name.lower(): text for name, text in answer.getheaders()})


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    "path", ["/fleet", "/node/node-0", "/waiting", "/waiting/default/large", "/decisions", "/health"]
)
def test_the_dashboard_of_a_scheduler_shows_strangers_nothing_and_users_every_page(reach: str, path: str) -> None:
    stranger = asked(reach, path)
    assert (stranger.status, stranger.text) == (401, "Unauthorized\n")
    assert asked(reach, path, {"Authorization": "Bearer wrong"}).status == 401
    browser = asked(reach, path, {"Accept": "text/html"})
    assert (browser.status, browser.headers["location"].partition("?")[0]) == (303, "/dashboard/sign-in")
    signed_in = asked(reach, "/sign-in", FORM, "POST", urlencode({"token": "admin", "next": path}))
    assert (signed_in.status, signed_in.headers["location"]) == (303, f"/dashboard{path}")
    session = signed_in.headers["set-cookie"]
    assert session.startswith("__Host-")
    assert "Secure" in session
    seen = asked(reach, path, {"Cookie": session.partition(";")[0]})
    assert (seen.status, "node-0" in seen.text or "large" in seen.text or "Storm guard" in seen.text) == (200, True)
    assert "admin" not in session


def test_a_scheduler_that_records_shows_its_past_to_users_only(reach: str) -> None:
    user, past = {"Authorization": "Bearer admin"}, "/fleet?at=1&resource=memory"
    assert asked(reach, past).status == 401
    present = asked(reach, "/fleet", user).text
    assert 'data-live="yes"' in present
    assert 'aria-label="Time of the recording"' in present
    assert "<output>now</output>" in present
    begin = re.search(r'name="at" min="([0-9.]+)"', present)
    assert begin is not None
    then = asked(reach, f"/fleet?at={begin[1]}", user)
    assert (then.status, then.headers["x-frame-options"], 'data-live="no"' in then.text) == (200, "DENY", True)
    assert "recording of scheduler" in then.text
    assert 'href="?">Now</a>' in then.text
    assert f"/dashboard/node/node-0?at={begin[1]}" in then.text
    assert "default/placed" not in asked(reach, f"/decisions?at={begin[1]}", user).text
    assert "default/placed" in asked(reach, "/decisions?at=9999999999", user).text
    assert asked(reach, "/node/none?at=9999999999", user).status == 404


def test_a_token_that_the_api_server_does_not_know_begins_no_session(reach: str) -> None:
    refused = asked(reach, "/sign-in", FORM, "POST", urlencode({"token": "wrong"}))
    assert (refused.status, "set-cookie" in refused.headers) == (401, False)
    assert "The token is not known, or it has expired." in refused.text
