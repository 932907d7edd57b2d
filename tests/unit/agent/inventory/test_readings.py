"""One look at a node: everything at about the same moment, and words for all that is missing."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from numalign.agent.inventory import readings
from numalign.agent.inventory.readings import Readings, Sources
from numalign.agent.sources import kubeletconfig
from numalign.agent.sources.podresources import Allocatable, PodResources, PodResourcesError
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone
from tests.unit.agent.machine_trees import as_seen, written

DATA = Path(__file__).parents[1] / "data" / "checkpoints"
TINY = Machine("tiny", (Zone(0, (Core(0, (0,)), Core(0, (1,))), 4 << 30, (HugePages(2048, 2048),), (10,)),))
PODS = (PodResources("default", "a"),)
CONFIG = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ntopologyManagerPolicy: restricted\n"
IDLE = b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'


class Clock:
    """Whose time passes by sleeping only."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class Kubelet:
    """Answers, and does something of its own in the meantime."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.meanwhile = meanwhile
        self.failure: Exception | None = None
        self.lists = 0

    async def list(self) -> tuple[PodResources, ...]:
        self.lists += 1
        self.meanwhile()
        if self.failure:
            raise self.failure
        return PODS

    async def allocatable(self) -> Allocatable | None:
        return Allocatable(cpus=(1, 2))


@pytest.fixture
def host(tmp_path: Path) -> Path:
    root = written(TINY, tmp_path) / "var/lib/kubelet"
    (root / "device-plugins").mkdir(parents=True)
    (root / "config.yaml").write_text(CONFIG)
    shutil.copy(DATA / "cpu.json", root / "cpu_manager_state")
    shutil.copy(DATA / "memory.json", root / "memory_manager_state")
    shutil.copy(DATA / "devices.json", root / "device-plugins/kubelet_internal_checkpoint")
    return tmp_path


def sources(host: Path, kubelet: Kubelet | None = None) -> Sources:
    root = host / "var/lib/kubelet"
    return Sources(
        host=host,
        kubelet_root=root,
        device_plugins=root / "device-plugins",
        podresources=kubelet,
        clock=Clock(),  # type: ignore[arg-type]
    )


def read(found: Sources) -> Readings:
    return asyncio.run(readings.read(found))


def test_everything_is_there(host: Path) -> None:
    found = read(sources(host, Kubelet()))
    assert found.machine == as_seen(TINY)
    assert (found.settings.topology_policy, found.settings_assumed) == ("restricted", False)
    assert (found.pods, found.allocatable) == (PODS, Allocatable(cpus=(1, 2)))
    assert found.cpu_checkpoint is not None
    assert found.memory_checkpoint is not None
    assert found.device_checkpoint is not None
    assert (found.consistent, found.problems) == (True, ())


def test_a_machine_without_a_kubelet_is_hardware_and_words(host: Path) -> None:
    shutil.rmtree(host / "var")
    found = read(sources(host))
    assert found.machine == as_seen(TINY)
    assert (found.pods, found.cpu_checkpoint, found.settings_assumed) == (None, None, True)
    assert "config.yaml is not there" in found.problems[0]


def test_nothing_at_all_is_no_reason_to_fail(tmp_path: Path) -> None:
    found = read(sources(tmp_path))
    assert found.machine is None
    assert "no CPU is listed there" in found.problems[0]


def test_what_changes_during_the_look_is_looked_at_again(host: Path) -> None:
    state = host / "var/lib/kubelet/cpu_manager_state"
    kubelet = Kubelet(meanwhile=lambda: state.write_bytes(IDLE))
    found = read(sources(host, kubelet))
    assert found.cpu_checkpoint is not None
    assert (found.cpu_checkpoint.policy, found.consistent, kubelet.lists) == ("none", True, 2)


def test_a_half_written_checkpoint_is_whole_a_moment_later(host: Path) -> None:
    state = host / "var/lib/kubelet/cpu_manager_state"
    whole = state.read_bytes()
    state.write_bytes(whole[:100])
    kubelet = Kubelet()
    kubelet.meanwhile = lambda: kubelet.lists == 2 and state.write_bytes(whole)
    found = read(sources(host, kubelet))
    assert (found.cpu_checkpoint is not None, found.problems) == (True, ())


def test_a_checkpoint_that_stays_broken_is_reported_and_ignored(host: Path) -> None:
    (host / "var/lib/kubelet/cpu_manager_state").write_bytes(b'{"policyName"')
    kubelet = Kubelet()
    looked = sources(host, kubelet)
    first, second = read(looked), read(looked)
    assert kubelet.lists == readings.TRIES + 1
    for found in (first, second):
        assert (found.cpu_checkpoint, found.consistent) == (None, True)
        assert "Checkpoint cpu_manager_state" in found.problems[0]


def test_checkpoints_that_keep_changing_are_reported(host: Path) -> None:
    state = host / "var/lib/kubelet/cpu_manager_state"
    kubelet = Kubelet()
    kubelet.meanwhile = lambda: state.write_bytes(IDLE + b" " * kubelet.lists)
    found = read(sources(host, kubelet))
    assert not found.consistent
    assert found.problems == ("the kubelet's checkpoints changed during every attempt to read them",)


def test_a_silent_kubelet_is_a_problem_with_a_kind(host: Path) -> None:
    kubelet = Kubelet()
    kubelet.failure = PodResourcesError("unavailable", "nobody listens")
    found = read(sources(host, kubelet))
    assert (found.pods, found.podresources_error, found.problems) == (None, "unavailable", ("nobody listens",))


def test_unreadable_checkpoints_are_reported(host: Path) -> None:
    state = host / "var/lib/kubelet/memory_manager_state"
    state.unlink()
    state.mkdir()
    found = read(sources(host, Kubelet()))
    assert found.memory_checkpoint is None
    assert "memory_manager_state cannot be read: Is a directory" in found.problems[0]


def test_hardware_is_read_once_a_minute(host: Path) -> None:
    looked = sources(host)
    read(looked)
    (host / "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages").write_text("7\n")
    soon = read(looked)
    looked.clock.time += readings.STEADY  # type: ignore[attr-defined]
    later = read(looked)
    assert soon.machine is not None
    assert later.machine is not None
    assert [found.machine.zones[0].hugepages[0].pages for found in (soon, later) if found.machine] == [2048, 7]


def edited(host: Path, looked: Sources) -> str:
    """The policy that is told a minute after the file was changed under a running kubelet."""
    read(looked)
    (host / "var/lib/kubelet/config.yaml").write_text(CONFIG.replace("restricted", "best-effort"))
    looked.clock.time += readings.STEADY  # type: ignore[attr-defined]
    looked.forget()
    return read(looked).settings.topology_policy


def test_what_is_written_into_the_file_of_a_running_kubelet_does_not_count_yet(host: Path) -> None:
    assert edited(host, sources(host)) == "restricted"


def test_the_file_is_read_once_a_minute_if_the_start_of_the_kubelet_is_unknown(host: Path) -> None:
    root = host / "var/lib/kubelet"
    proxied = Sources(host=host, kubelet_root=root, socket=host / "run/proxy.sock", clock=Clock())  # type: ignore[arg-type]
    assert edited(host, proxied) == "best-effort"


def test_configz_is_asked_once_a_minute(host: Path) -> None:
    answers = ["restricted", "best-effort"]

    async def configz() -> bytes:
        return b'{"kubeletconfig": {"topologyManagerPolicy": "%s"}}' % answers.pop(0).encode()

    looked = Sources(
        host=host,
        kubelet_root=host / "var/lib/kubelet",
        configuration=kubeletconfig.ConfigSources(host=host, configz=configz),
        clock=Clock(),  # type: ignore[arg-type]
    )
    assert edited(host, looked) == "best-effort"
    assert not answers


def test_a_restarted_kubelet_is_asked_for_its_configuration_at_once(host: Path) -> None:
    socket = host / "var/lib/kubelet/pod-resources/kubelet.sock"
    socket.parent.mkdir()
    looked = sources(host)
    read(looked)
    (host / "var/lib/kubelet/config.yaml").write_text(CONFIG.replace("restricted", "best-effort"))
    socket.touch()
    assert read(looked).settings.topology_policy == "best-effort"


@pytest.mark.parametrize("later, unread", [(-1, False), (0, False), (1, True)])
def test_a_file_that_is_newer_than_the_kubelet_is_marked(host: Path, later: int, unread: bool) -> None:
    root = host / "var/lib/kubelet"
    (root / "pod-resources").mkdir()
    (root / "pod-resources/kubelet.sock").touch()
    os.utime(root / "pod-resources/kubelet.sock", ns=(0, 10**18))
    os.utime(root / "config.yaml", ns=(0, 10**18 + later))
    assert read(sources(host)).settings_unread is unread
    proxied = Sources(host=host, kubelet_root=root, socket=host / "run/proxy.sock", clock=Clock())  # type: ignore[arg-type]
    assert not read(proxied).settings_unread


def test_configz_needs_no_file(host: Path) -> None:
    async def configz() -> bytes:
        return b'{"kubeletconfig": {"topologyManagerPolicy": "best-effort"}}'

    socket = host / "var/lib/kubelet/pod-resources/kubelet.sock"
    socket.parent.mkdir()
    socket.touch()
    os.utime(socket, ns=(0, 1))
    looked = sources(host)
    looked.configuration = kubeletconfig.ConfigSources(host=host, configz=configz)
    found = read(looked)
    assert (found.settings.topology_policy, found.settings_unread) == ("best-effort", False)


def test_a_configuration_that_cannot_be_read_any_more_still_counts(host: Path) -> None:
    socket = host / "var/lib/kubelet/pod-resources/kubelet.sock"
    socket.parent.mkdir()
    looked = sources(host)
    read(looked)
    (host / "var/lib/kubelet/config.yaml").unlink()
    socket.touch()
    found = read(looked)
    assert (found.settings.topology_policy, found.settings_assumed) == ("restricted", False)
    assert found.problems[-1] == "using the configuration that was read earlier"


def test_hardware_that_cannot_be_read_any_more_is_what_it_was(host: Path) -> None:
    looked = sources(host)
    read(looked)
    shutil.rmtree(host / "sys")
    looked.clock.time += readings.STEADY  # type: ignore[attr-defined]
    found = read(looked)
    assert found.machine == as_seen(TINY)
    assert "no CPU is listed there" in found.problems[0]


def test_a_guess_is_tried_again_at_the_next_look(host: Path) -> None:
    looked = sources(host)
    (host / "var/lib/kubelet/config.yaml").unlink()
    assert read(looked).settings_assumed
    (host / "var/lib/kubelet/config.yaml").write_text(CONFIG)
    assert read(looked).settings.topology_policy == "restricted"


def test_the_kubelets_version_decides_how_its_settings_are_read(host: Path) -> None:
    looked = sources(host)
    read(looked)
    looked.kubelet_version = "v1.35.2"
    found = read(looked)
    assert (found.kubelet_version, found.settings.minor) == ("v1.35.2", (1, 35))


def test_who_never_answers_is_not_waited_for(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> bytes:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    monkeypatch.setattr(kubeletconfig, "ASKING", 0.01)
    looked = sources(host)
    looked.configuration = kubeletconfig.ConfigSources(host=host, configz=never)
    found = read(looked)
    assert (found.settings.topology_policy, found.settings_assumed) == ("restricted", False)
    assert "/configz: no answer in 0.01 s" in found.problems[0]


@pytest.mark.parametrize(
    "ids, policy, ends",
    [((0, 1), "restricted", False), ((0, 2), "restricted", True), ((0, 2), "single-numa-node", False)],
)
def test_settings_that_crash_the_kubelet_are_reported(
    tmp_path: Path, ids: tuple[int, ...], policy: str, ends: bool
) -> None:
    zones = [Zone(each, (Core(each, (each,)),), 1 << 30, (), (10, 20, 10)) for each in ids]
    root = written(Machine("two", tuple(zones)), tmp_path) / "var/lib/kubelet"
    root.mkdir(parents=True)
    options = "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n"
    (root / "config.yaml").write_text(CONFIG.replace("restricted", policy) + options)
    found = read(sources(tmp_path))
    assert any("panic" in each for each in found.problems) is ends
    assert found.machine is not None
    assert found.machine.zone_ids == ids


def test_what_is_offered_is_asked_for_again_after_a_while_or_when_devices_changed(host: Path) -> None:
    class Counting(Kubelet):
        asked = 0

        async def allocatable(self) -> Allocatable | None:
            self.asked += 1
            return await super().allocatable()

    kubelet = Counting()
    looked, counts = sources(host, kubelet), []
    for wait, changed in ((0.0, False), (1.0, False), (1.0, True), (readings.OFFERED, False)):
        looked.clock.time += wait  # type: ignore[attr-defined]
        if changed:
            looked.offer_changed()
        read(looked)
        counts.append(kubelet.asked)
    assert counts == [1, 1, 2, 3]
