"""`numalign scheduler state|dump|repeat` from the outside: what they print, what they write, and how they exit."""

from __future__ import annotations

import errno
import http.server
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner, Result

from numalign.cli.main import app
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.snapshot import files
from numalign.scheduler.snapshot.snapshot import SchedulerState, Snapshot
from tests.unit.scheduler import servers

WAITING = {
    "pod": "default/p",
    "waits": 12.4,
    "attempts": 3,
    "refused": {"NodeAffinity": ["no"]},
    "gate": "",
    "uid": "u",
}
STATE: dict[str, Any] = {
    "leads": True,
    "queue": {"active": [], "unschedulable": [WAITING]},
    "assumed": {"default/q": {"node": "a", "bound": True}},
    "inFlight": ["default/q"],
    "nominated": {"default/n": "b"},
    "keptOff": [
        {"node": "b", "like": "default/x", "seconds": 3.5},
        {"node": "c", "like": "default/x", "owner": "uid-set", "seconds": 1.0},
    ],
    "nodes": 2,
    "pods": 5,
    "shapes": 1,
}
NODE = {
    "name": "a",
    "isThere": True,
    "policy": "single-numa-node",
    "scope": "container",
    "zones": [0, 1],
    "resources": {"cpu": [{"zones": [0], "allocatable": 16, "free": 4}, {"zones": [], "allocatable": 2, "free": 1}]},
    "tenants": [
        {"name": "default/q", "containers": {"main": [[0], [0, 1]]}, "source": "predicted", "is_pending": True}
    ],
}
STORY = {
    "pod": "default/p",
    "uid": "u",
    "lines": [{"at": "08:00", "what": "queued"}, {"at": "08:01", "what": "refused", "why": "no room"}],
    "leftOut": 4,
}


class Pages(http.server.BaseHTTPRequestHandler):
    pages: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        body = self.pages.get(self.path)
        self.send_response(200 if body is not None else 403)
        self.end_headers()
        self.wfile.write(body if body is not None else b"forbidden\n")

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def look(*words: str) -> Result:
    return CliRunner().invoke(app, ["scheduler", *words])


def shown(url: str, page: Any, query: str = "", *words: str) -> str:
    Pages.pages = {f"/debug/state{query}": json.dumps(page).encode()}
    result = look("state", "--server", url, *words)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_the_state_lists_waiting_pods_with_reasons(url: str) -> None:
    text = shown(url, STATE)
    for words in (
        "leads yes",
        "2 nodes, 5 pods on them",
        "unschedulable default/p 12s 3 NodeAffinity: no",
        "default/q a bound, not seen there yet",
        "default/n to b",
        "pods like default/x off b, for 4s at least",
    ):
        assert words in text


def test_an_empty_queue_is_shown_as_such(url: str) -> None:
    assert "No pod waits." in shown(url, STATE | {"queue": {"active": []}})


def test_a_pod_shows_its_story_and_its_zones(url: str) -> None:
    held = {"containers": {"main": [[1]]}, "source": "observed"}
    page = {"queue": {}, "assumed": {}, "histories": [STORY], "node": "a", "held": held}
    text = shown(url, page, "?pod=default%2Fp", "--pod", "p")
    assert "08:01 refused: why no room" in text
    assert "4 lines in the middle were left out" in text
    assert "On a, main in 1 (observed)" in text


def test_a_node_shows_zones_and_pods(url: str) -> None:
    text = shown(url, {"node": NODE}, "?node=a", "--node", "a")
    assert "a: single-numa-node, scope container" in text
    assert "FREE zone 0 zone 1 several zones or none" in text
    assert "cpu 4 of 16 - 1 of 2" in text
    assert "default/q main in 0 or 0+1 predicted not admitted yet" in text


def test_nodes_without_a_report_are_shown_as_such(url: str) -> None:
    silent = {"name": "c", "isThere": True, "pods": ["default/z"]}
    text = shown(url, STATE | {"nodes": [NODE, silent]}, "?nodes=all", "--nodes")
    assert "c: no report; pods: default/z" in text


@pytest.mark.parametrize("fmt", ["json", "yaml"])
def test_machines_get_all_of_it(url: str, fmt: str) -> None:
    assert "keptOff" in shown(url, STATE, "", "-o", fmt)


@pytest.mark.parametrize("name", ["now.json", "now.json.gz"])
def test_a_dump_is_written_and_can_be_read(url: str, tmp_path: Path, name: str) -> None:
    Pages.pages = {"/debug/dump": b"".join(files.pieces(Snapshot(objects={"nodes": (servers.node("a"),)})))}
    file = tmp_path / name
    assert look("dump", "--server", url, "-f", str(file)).exit_code == 0
    assert file.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert len(files.read(file.read_bytes(), name).objects["nodes"]) == 1


def test_a_dump_that_cannot_be_written_leaves_the_last_one(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Pages.pages = {"/debug/dump": b"{}"}
    (tmp_path / "now.json").write_text("before")

    def full(path: Path, target: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    result = look("dump", "--server", url, "-f", str(tmp_path / "now.json"))
    assert (result.exit_code, "cannot be written: No space left" in result.stderr) == (2, True)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("now.json", "before")]


def test_a_dump_is_for_its_owner_and_follows_no_link(url: str, tmp_path: Path) -> None:
    Pages.pages = {"/debug/dump": b"{}"}
    other, file = tmp_path / "other", tmp_path / "now.json"
    other.write_text("another file")
    file.symlink_to(other)
    (tmp_path / "now.json.part").symlink_to(other)
    assert look("dump", "--server", url, "-f", str(file)).exit_code == 0
    assert (file.read_text(), other.read_text(), file.stat().st_mode & 0o777) == ("{}", "another file", 0o600)


def test_a_dump_can_be_written_into_a_pipe(url: str) -> None:
    Pages.pages = {"/debug/dump": b"{}"}
    read, written = os.pipe()
    assert look("dump", "--server", url, "-f", f"/dev/fd/{written}").exit_code == 0
    os.close(written)
    with open(read, "rb") as pipe:
        assert pipe.read() == b"{}"


@pytest.mark.parametrize("file", ["/dev/full", "/nonexistent/x", "", "\0", "/tmp"])
def test_where_nothing_can_be_written_is_named(url: str, file: str) -> None:
    Pages.pages = {"/debug/dump": b"{}"}
    result = look("dump", "--server", url, "-f", file)
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)


STRANGE: dict[str, Any] = {
    "a queue that is a list": {"queue": [1]},
    "pods without a name": {"queue": {"active": [{}]}},
    "histories without lines": {"histories": [{"pod": "p"}]},
    "a node without a name": {"node": {"policy": "none"}},
    "words for numbers": {"queue": {"active": [{"pod": "p", "waits": "long"}]}},
    "nobody on the way": {"assumed": {"p": None}},
}


@pytest.mark.parametrize("page", STRANGE.values(), ids=STRANGE)
def test_a_scheduler_that_speaks_otherwise_is_named(url: str, page: Any) -> None:
    Pages.pages = {"/debug/state": json.dumps(page).encode()}
    result = look("state", "--server", url)
    assert (result.exit_code, "unknown form; -o json prints it" in result.stderr) == (2, True)


UNKNOWN = {
    "pod": ("?pod=default%2Fp", {"queue": {"active": []}, "assumed": {}, "histories": [], "decisions": []}, "no pod"),
    "node": ("?node=p", {"node": {"name": "p", "isThere": False, "pods": []}}, "knows no node p"),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_the_scheduler_does_not_know_is_no_answer(url: str, what: str) -> None:
    query, page, words = UNKNOWN[what]
    Pages.pages = {f"/debug/state{query}": json.dumps(page).encode()}
    result = look("state", "--server", url, f"--{what}", "p")
    assert (result.exit_code, words in result.stderr, result.stdout) == (2, True, "")


UNREACHABLE = {
    "nobody there": ("http://127.0.0.1:9", "cannot be reached"),
    "no address": ("127.0.0.1", "is not the address of a scheduler's pages"),
    "another kind of address": ("ftp://a", "is not the address of a scheduler's pages"),
    "no port": ("http://a:x", "is not the address of a scheduler's pages"),
}


@pytest.mark.parametrize("server, words", UNREACHABLE.values(), ids=UNREACHABLE)
def test_who_cannot_be_asked_is_named(server: str, words: str) -> None:
    result = look("state", "--server", server)
    assert (result.exit_code, words in result.stderr) == (2, True)


def test_a_refusal_is_passed_on(url: str) -> None:
    Pages.pages = {}
    result = look("dump", "--server", url, "-f", "/nonexistent")
    assert (result.exit_code, "answers 403 to /debug/dump: forbidden" in result.stderr) == (2, True)


def test_a_token_does_not_travel_in_the_clear(url: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    result = look("state", "--server", url, "--token-file", str(tmp_path / "token"))
    assert (result.exit_code, "is not encrypted" in result.stderr) == (2, True)
    assert "s3cret" not in result.output


def written(tmp_path: Path, **before: Any) -> str:
    pod = servers.trainer("p", gpus=9)
    told = DecisionRecord(pod="default/p", uid="uid-p", attempt=1, at=0.0, result="unschedulable", **before)
    objects = {"nodes": (servers.node("a"),), "noderesourcetopologies": (servers.reported("a"),), "pods": (pod,)}
    file = tmp_path / "dump.json"
    state = SchedulerState(decisions=(told,) if before else ())
    file.write_bytes(b"".join(files.pieces(Snapshot(objects=objects, state=state))))
    return str(file)


SENTENCE = (
    "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. The pod fits on no node, even when empty: "
    "the pod needs 9 nvidia.com/gpu, a node has at most 8."
)
BEFORE = {
    "the same": ({"message": SENTENCE}, 0, "the same"),
    "the same, and what preemption said": ({"message": f"{SENTENCE} preemption: no use."}, 0, "the same"),
    "another node": ({"node": "b"}, 1, "not the same"),
    "not remembered": ({}, 0, "not remembered"),
}


@pytest.mark.parametrize("before, code, words", BEFORE.values(), ids=BEFORE)
def test_a_decision_is_repeated_and_held_against_the_first(
    tmp_path: Path, before: dict[str, Any], code: int, words: str
) -> None:
    result = look("repeat", written(tmp_path, **before), "--pod", "p")
    assert (result.exit_code, words in result.stdout, SENTENCE in " ".join(result.stdout.split())) == (code, True, True)


def test_one_node_is_shown_in_depth(tmp_path: Path) -> None:
    text = " ".join(look("repeat", written(tmp_path), "--pod", "p", "--node", "a").stdout.split())
    assert "a refuses: the pod needs 9 nvidia.com/gpu, a node has at most 8, even when empty" in text
    assert "a: single-numa-node, scope container FREE zone 0 zone 1" in text


def test_machines_get_the_node_in_depth_too(tmp_path: Path) -> None:
    told = json.loads(look("repeat", written(tmp_path), "--pod", "p", "--node", "a", "-o", "json").stdout)
    assert told["on_node"]["answer"]["lacks"][0]["need"] == 9
    assert told["on_node"]["occupied"]["policy"] == "single-numa-node"
    assert told["on_node"]["ranked"] is None


def test_an_unknown_node_is_refused(tmp_path: Path) -> None:
    result = look("repeat", written(tmp_path), "--pod", "p", "--node", "b")
    assert (result.exit_code, "Node b: is not in the snapshot" in result.stderr) == (2, True)


def test_a_pod_that_is_not_there_cannot_be_repeated(tmp_path: Path) -> None:
    result = look("repeat", written(tmp_path), "--pod", "default/nobody")
    assert (result.exit_code, "Pod default/nobody: is not in the snapshot" in result.stderr) == (2, True)


MANY = STATE | {
    "queue": {
        "unschedulable": [
            WAITING | {"pod": f"{name}/p-{number}", "uid": f"{name}-{number}", "waits": number, "cause": "NodeAdd"}
            for name in ("default", "other")
            for number in range(3)
        ]
    },
}


def test_pods_of_a_namespace_that_wait_for_the_same_reason_are_one_line(url: str) -> None:
    lines = re.findall(r"unschedulable (\S+ and \d+ more)", shown(url, MANY))
    assert lines == ["default/p-0 and 2 more", "other/p-0 and 2 more"]


def test_wide_has_a_line_for_each_pod_with_its_priority_and_what_it_was_tried_after(url: str) -> None:
    lines = re.findall(r"unschedulable (\S+) \S+ \d+ (\d+) (\S+)", shown(url, MANY, "", "-o", "wide"))
    assert lines == [(each["pod"], "0", "NodeAdd") for each in MANY["queue"]["unschedulable"]]


def test_names_and_namespaces_are_those_of_kubectl(url: str) -> None:
    assert shown(url, MANY, "", "-n", "other", "-o", "name").split() == ["pod/p-0", "pod/p-1", "pod/p-2"]
    assert len(shown(url, MANY, "", "-A", "-o", "name").split()) == 6
    assert json.loads(shown(url, MANY, "", "-n", "none", "-o", "json"))["queue"] == {"unschedulable": []}


def test_a_watch_prints_what_is_new(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    again = WAITING | {"pod": "default/p-0", "uid": "default-0", "attempts": 4, "cause": "NodeAdd"}
    Pages.pages = {"/debug/state": json.dumps(MANY).encode()}
    turns = iter([MANY, MANY | {"queue": {"unschedulable": [again]}, "assumed": {"other/p-0": {"node": "b"}}}])

    def turned(_: float) -> None:
        found = next(turns, None)
        if found is None:
            raise KeyboardInterrupt
        Pages.pages = {"/debug/state": json.dumps(found).encode()}

    monkeypatch.setattr(time, "sleep", turned)
    ran = CliRunner().invoke(app, ["state", "--server", url, "--watch", "-o", "name"])
    assert ran.stdout.splitlines()[6:] == [
        "unschedulable  default/p-0  tried 4  NodeAffinity: no",
        "on its way  other/p-0  to b",
    ]


def test_a_history_is_followed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"queue": {}, "histories": [STORY]}
    longer = STORY | {"lines": [*STORY["lines"], {"at": "08:02", "what": "bound", "node": "a"}]}  # type: ignore[misc]
    path = "/debug/state?pod=default%2Fp"
    Pages.pages = {path: json.dumps(first).encode()}

    def turned(_: float) -> None:
        if b"bound" in Pages.pages[path]:
            raise KeyboardInterrupt
        Pages.pages = {path: json.dumps(first | {"histories": [longer]}).encode()}

    monkeypatch.setattr(time, "sleep", turned)
    ran = CliRunner().invoke(app, ["state", "--server", url, "--pod", "p", "-w"])
    assert ran.stdout.splitlines()[-1] == "08:02  bound: node a"
