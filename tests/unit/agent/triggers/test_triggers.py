"""What wakes the agent: real files, real inotify, and the same by looking where there is none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from numalign.agent.sources import filewatch
from numalign.agent.triggers import triggers
from numalign.agent.triggers.schedule import Pace
from numalign.agent.triggers.triggers import Triggers
from numalign.api.errors import BadObject

QUICK = Pace(period=600, settle=0.01, gap=0.01)
PATIENCE = 20.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("device-plugins", "pod-resources"):
        (tmp_path / folder).mkdir()
    return tmp_path


@pytest.fixture(params=["told by the kernel", "found by looking"])
def without_sleep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to notice."""

    def none(self: object) -> None:
        raise OSError(38, "no inotify")

    monkeypatch.setattr(triggers, "LOOK", 0.01)
    if request.param == "found by looking":
        monkeypatch.setattr(filewatch.Inotify, "__init__", none)


def replaced(path: Path, text: str = "{}") -> None:
    """As the kubelet writes: a hidden file, renamed into place."""
    hidden = path.with_name(f".{path.name}123")
    hidden.write_text(text)
    hidden.rename(path)


async def woken(files: dict[Path, str], *changes: Callable[[], object]) -> frozenset[str]:
    """The reasons of the look after the first, for which the changes are made."""
    async with asyncio.timeout(PATIENCE), Triggers(files, QUICK) as waiting:
        assert await waiting.wait() == {"start"}
        for change in changes:
            change()
        return await waiting.wait()


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "CPUs assigned": (lambda root: replaced(root / "cpu_manager_state"), "kubelet-state"),
    "memory assigned": (lambda root: replaced(root / "memory_manager_state"), "kubelet-state"),
    "devices assigned": (lambda root: replaced(root / "device-plugins/kubelet_internal_checkpoint"), "kubelet-state"),
    "kubelet restarted": (lambda root: replaced(root / "pod-resources/kubelet.sock"), "podresources"),
    "a look asked for": (lambda root: (root / "notify").write_text("x"), "notified"),
}


def test_a_folder_is_no_file_to_be_touched(tmp_path: Path) -> None:
    with pytest.raises(BadObject, match=r"notify file: .* is a folder; name a file in it"):
        triggers.notification(str(tmp_path))
    assert triggers.notification(str(tmp_path / "notify")) == tmp_path / "notify"
    assert triggers.notification("") is None


@pytest.mark.usefixtures("without_sleep")
@pytest.mark.parametrize("change, reason", CHANGES.values(), ids=CHANGES)
def test_changed_files_wake(change: Callable[[Path], object], reason: str, root: Path) -> None:
    files = triggers.of_kubelet(root, root / "device-plugins", root / "notify")
    assert asyncio.run(woken(files, lambda: change(root))) == {reason}


@pytest.mark.usefixtures("without_sleep")
def test_a_file_that_goes_wakes_too(root: Path) -> None:
    (root / "notify").write_text("x")
    files = triggers.of_kubelet(root, root / "device-plugins", root / "notify")
    assert asyncio.run(woken(files, lambda: (root / "notify").unlink())) == {"notified"}


@pytest.mark.usefixtures("without_sleep")
def test_a_folder_that_comes_later_is_watched(tmp_path: Path) -> None:
    def come() -> None:
        (tmp_path / "late").mkdir()
        replaced(tmp_path / "late/notify")

    assert asyncio.run(woken({tmp_path / "late/notify": "notified"}, come)) == {"notified"}


def test_a_folder_that_was_replaced_is_watched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "LOOK", 0.01)
    (tmp_path / "run").mkdir()

    def come_again() -> None:
        (tmp_path / "run").rename(tmp_path / "old")
        (tmp_path / "run").mkdir()
        replaced(tmp_path / "run/notify")

    assert asyncio.run(woken({tmp_path / "run/notify": "notified"}, come_again)) == {"notified"}


def test_other_files_trigger_nothing(root: Path) -> None:
    def others() -> None:
        (root / "pods").mkdir()
        replaced(root / "cpu_manager_state.bak")
        replaced(root / "memory_manager_state")

    async def told() -> frozenset[str]:
        return await woken({root / "memory_manager_state": "memory", root / "cpu_manager_state": "cpus"}, others)

    assert asyncio.run(told()) == {"memory"}


def test_a_path_with_detours_is_watched_all_the_same(root: Path) -> None:
    path = root / "pod-resources" / ".." / "notify"
    assert asyncio.run(woken({path: "notified"}, lambda: (root / "notify").touch())) == {"notified"}


def test_a_burst_is_one_look(root: Path) -> None:
    async def looks() -> list[frozenset[str]]:
        async with (
            asyncio.timeout(PATIENCE),
            Triggers(triggers.of_kubelet(root, root / "device-plugins"), QUICK) as waiting,
        ):
            await waiting.wait()
            for _ in range(100):
                replaced(root / "cpu_manager_state")
            first = await waiting.wait()
            waiting.ask()
            return [first, await waiting.wait()]

    assert asyncio.run(looks()) == [{"kubelet-state"}, {"asked"}]


def test_a_look_can_be_asked_for_later() -> None:
    async def looks() -> frozenset[str]:
        async with asyncio.timeout(PATIENCE), Triggers({}, QUICK) as waiting:
            await waiting.wait()
            waiting.ask_again(0.02, "released")
            return await waiting.wait()

    assert asyncio.run(looks()) == {"released"}


def test_lost_events_count_as_changes_of_what_changed(tmp_path: Path) -> None:
    told: list[str] = []
    files = {tmp_path / name: name for name in ("a", "b")}

    async def overflow() -> None:
        watch = filewatch.Watch(files, told.append)
        watch.open()
        replaced(tmp_path / "b")
        watch._take(filewatch.Event(-1, filewatch.OVERFLOW, ""))
        watch.close()

    asyncio.run(overflow())
    assert told == ["b"]


def test_nothing_is_left_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(woken(triggers.of_kubelet(root, root / "device-plugins"), lambda: replaced(root / "cpu_manager_state")))
    assert len(os.listdir("/proc/self/fd")) == before
