"""`numalign lab up`, `down`, `status`, `logs`, `shell`, where there is no lab, or cannot be one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from numalign.cli import main
from numalign.lab import build, launching, preflight, state
from numalign.lab.containers import images, runtime
from numalign.lab.containers.images import Contents
from numalign.lab.state import LabState, NodeState, ProgramState

NODE = NodeState(name="node-0", machine="2x16", policy="none", scope="container", folder="", mounts=())


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(state.INSTANCES.variable, str(tmp_path))
    return tmp_path


@pytest.fixture
def told(home: Path) -> LabState:
    """A lab that says it runs, with a log."""
    (home / "a").mkdir()
    log = home / "a" / "nodes" / "node-0" / "logs" / "kubelet.log"
    log.parent.mkdir(parents=True)
    log.write_text("first\nsecond\n")
    piece = ProgramState(name="kubelet", node="node-0", log=str(log), pid=None, began=None, starts=2)
    found = LabState("a", os.getpid(), "https://127.0.0.1:1", "k", "/tools", "1 node", (NODE,), (piece,))
    state.INSTANCES.announce(home / "a", found)
    return found


def numalign(line: str) -> Result:
    return CliRunner().invoke(main.app, ["lab", *line.split()])


NOTHING = {
    "down": ("down", 1, "lab numalign is not running"),
    "a name that is none": ("down Not_A_Name", 2, "is not a valid name"),
    "status": ("status", 0, "no lab is running; `numalign lab up` starts one"),
    "logs": ("logs", 1, "lab numalign is not running; `numalign lab up` starts one"),
    "shell": ("shell --name b node-0", 1, "lab b is not running"),
    "load": ("load --name b image.tar", 1, "lab b is not running"),
    "a runtime that there is not": ("up --runtime docker", 2, "docker"),
    "a machine that nobody knows": ("up --machine nope", 2, "no such preset and no such file"),
    "a policy that there is not": ("up --policy nope", 2, "is not one of 'none', 'best-effort'"),
    "more nodes than fit": ("up --nodes 51", 2, "51"),
}


@pytest.mark.parametrize("line, code, words", NOTHING.values(), ids=NOTHING)
def test_where_there_is_nothing_the_answer_says_what_to_do(line: str, code: int, words: str) -> None:
    result = numalign(line)
    assert result.exit_code == code
    assert words in result.output


def test_logs_and_shells_name_what_there_is(told: LabState) -> None:
    assert numalign("logs --name a node-0/kubelet").output == "first\nsecond\n"
    assert "it has node-0/kubelet" in numalign("logs --name a node-1/kubelet").output
    assert "it has node-0" in numalign("shell --name a node-9 true").output
    assert "a: ended or starting" in numalign("status").output


def test_an_image_is_loaded_only_where_containers_run(told: LabState, home: Path) -> None:
    refused = numalign(f"load --name a {home / 'missing.tar'}")
    assert (refused.exit_code, "cannot be read: No such file" in refused.output) == (2, True)
    contents = Contents(name="localhost/thing:1", entrypoint=("/thing",), programs={"thing": b""})
    (home / "image.tar").write_bytes(images.archive(contents))
    refused = numalign(f"load --name a {home / 'image.tar'}")
    assert (refused.exit_code, "lab a runs no containers" in refused.output) == (1, True)


def test_without_its_packages_a_lab_with_containers_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(build, "found", lambda: True)
    monkeypatch.setattr(runtime, "find", lambda program: None)
    result = numalign("up --runtime containerd")
    assert result.exit_code == 2
    assert "needs runc, iproute2, nftables" in result.output


def test_of_a_lab_that_did_not_come_up_the_logs_are_there(home: Path) -> None:
    (home / "b" / "control").mkdir(parents=True)
    (home / "b" / "control" / "etcd.log").write_text("address in use\n")
    assert "etcd" in numalign("logs --name b").output
    assert numalign("logs --name b etcd").output == "address in use\n"


def test_a_lab_that_ended_without_a_word_is_cleared_away(told: LabState, home: Path) -> None:
    assert numalign("down a").output == "a is down\n"
    assert not (home / "a").exists()


def test_without_root_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    result = numalign("up")
    assert result.exit_code == 2
    assert "needs root" in result.output
    assert "sudo" in result.output


def test_other_systems_and_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("sys.platform", "darwin")
    assert "needs Linux" in preflight.missing()
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(build, "found", lambda: False)
    assert "install Go" in preflight.missing()


def test_more_kubelets_than_the_system_lets_watch_files_are_refused_with_the_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(build, "found", lambda: True)
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    monkeypatch.setattr(launching, "command", lambda *_, **__: ["/bin/true"])
    monkeypatch.setattr(preflight, "free_instances", lambda wanted: min(wanted, 100))
    assert preflight.missing(19) == ""
    assert preflight.missing(20) == (
        "20 kubelets need 102 inotify instances, and root has 100 left;"
        " `sysctl fs.inotify.max_user_instances=512`, or fewer nodes"
    )
    assert "19 kubelets need 116" in preflight.missing(19, reporters=19)


class Instance:
    """One of three that there are."""

    left = 3

    def __init__(self) -> None:
        if not Instance.left:
            raise OSError(24, "Too many open files")
        Instance.left -= 1

    def close(self) -> None:
        Instance.left += 1


def test_what_others_hold_of_inotify_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "Inotify", Instance)
    assert [preflight.free_instances(wanted) for wanted in (2, 3, 4, 3)] == [2, 3, 3, 3]


def test_a_system_that_refuses_mounts_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(build, "found", lambda: True)
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    monkeypatch.setattr(launching, "command", lambda *_, **__: ["/bin/sh", "-c", "echo unshare: no >&2; exit 1"])
    assert "the system refuses (unshare: no)" in preflight.missing()
