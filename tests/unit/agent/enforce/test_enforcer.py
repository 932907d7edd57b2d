"""The enforcer and a container runtime, in virtual time: connecting, starting containers, mending, and faults."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from numalign.agent.deviceplugin import config
from numalign.agent.enforce import kernel
from numalign.agent.enforce.devices import Devices
from numalign.agent.enforce.enforcer import CHECKING, GRACE, Enforcement, Enforcer
from numalign.agent.enforce.messages import Sandbox
from numalign.agent.enforce.session import UPDATING
from numalign.agent.enforce.state import UNINJECTED
from numalign.api.attributes.directmode import DeviceMinors
from numalign.api.attributes.directresult import ContainerResult, DeviceGrant
from numalign.api.decode import cpuset
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet.machine.machine import Core, Machine, Zone
from numalign.kubelet.settings import Settings
from numalign.simulator import virtualtime
from tests.runtimes import Container, CreateFailed, Pod, Runtime
from tests.unit.agent.enforce.nodes import NODE, annotated, own

MACHINE = Machine(
    "2x8",
    tuple(Zone(zone, tuple(Core(zone, (cpu,)) for cpu in range(8 * zone, 8 * zone + 8))) for zone in range(2)),
)
RESERVED = cpuset.parse("0,8")
SETTINGS = Settings(reserved_cpus=RESERVED)
STATIC = Settings(reserved_cpus=RESERVED, cpu_policy="static")


def pod(name: str, *containers: ContainerResult, run: int = 0) -> Pod:
    uid = f"uid-{name}"
    return Pod(f"box-{name}-{run}", uid, name, dict(annotated(uid, *containers)))


class Host:
    """A node: its runtime, and the agent's enforcer."""

    def __init__(self, host: Path, *, patience: float = 0.0, devices: Devices | None = None) -> None:
        self.runtime = Runtime()
        self.host = host
        self.failures: list[tuple[str, str, str]] = []
        self.settings = Enforcement(socket=Path("/nri.sock"), host=host, patience=patience, devices=devices)
        self._task: asyncio.Task[None] | None = None
        self.enforcer: Enforcer

    async def start(self, settings: Settings = SETTINGS) -> None:
        clock = virtualtime.clock(random.Random(1))
        self.enforcer = Enforcer(NODE, self.settings, clock, lambda: None, self._failed, self.runtime.open)
        self._task = asyncio.create_task(self.enforcer.run())
        self.enforcer.configure(MACHINE, settings, {})
        await asyncio.sleep(3)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def _failed(self, sandbox: Sandbox, container: str, why: str) -> None:
        self.failures.append((sandbox.name, container, why))

    async def run(self, name: str, *containers: ContainerResult) -> Container:
        made = pod(name, *containers)
        await self.runtime.run_pod(made)
        return await self.runtime.create(made, "main")

    def kernel_says(self, made: Container, cpus: str, mems: str = "0-1") -> None:
        folder = self.host / "proc" / str(made.pid)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "status").write_text(f"Name:\tapp\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{mems}\n")

    @property
    def applied(self) -> dict[str, str]:
        """What is acknowledged, by uid."""
        return {each.uid: each.failure or cpuset.text(each.cpus) for each in self.enforcer.state.applied}


@contextlib.asynccontextmanager
async def hosted(path: Path, settings: Settings = SETTINGS, **more: float) -> AsyncIterator[Host]:
    host = Host(path, **more)  # type: ignore[arg-type]
    await host.start(settings)
    try:
        yield host
    finally:
        await host.stop()


def test_containers_start_with_what_the_decision_says_and_shared_ones_leave_before(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as host:
            web = await host.run("web")
            assert (web.cpus, web.quota) == ("1-7,9-15", 0)
            db = await host.run("db", own("main", "1-4", (0,), mems="0"))
            assert (db.cpus, db.mems, db.quota) == ("1-4", "0", -1)
            assert web.cpus == "5-7,9-15"
            await host.runtime.resize(db, 100_000)
            assert db.quota == -1
            await host.runtime.stop(db)
            await host.runtime.stop_pod(db.pod)
            await asyncio.sleep(1)
            assert web.cpus == "1-7,9-15"

    virtualtime.run(story())


def test_the_report_says_direct_mode_only_while_the_runtime_is_connected(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as host:
            report = host.enforcer.advertised(NodeTopology(node=NODE), MACHINE, SETTINGS)
            assert report.facts.mode is not None
            assert report.facts.mode.features == {"cpus", "mems"}
            host.runtime.kill()
            await asyncio.sleep(GRACE / 2)
            assert host.enforcer.can_enforce
            await asyncio.sleep(GRACE)
            assert host.enforcer.advertised(NodeTopology(node=NODE), MACHINE, SETTINGS).facts.mode is None
            assert "does not accept the agent as an NRI plugin: Connection refused" in host.enforcer.standing
            host.runtime.up = True
            await asyncio.sleep(30)
            assert (host.enforcer.can_enforce, host.enforcer.standing) == (True, "")

    virtualtime.run(story())


def test_nothing_is_advertised_or_touched_where_a_manager_of_the_kubelet_is_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path, STATIC) as host:
            assert not host.enforcer.can_enforce
            db = await host.run("db", own("main", "1-4", (0,)))
            assert (db.cpus, host.runtime.updates) == ("", [])
            assert host.failures == [("db", "main", "the kubelet's CPU manager has policy static")]

    virtualtime.run(story())


def test_containers_that_started_while_the_agent_was_away_are_mended_when_it_returns(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as host:
            first = await host.run("first", own("main", "1-4", (0,)))
            await host.stop()
            second = await host.run("second", own("main", "9-12", (1,), mems="1"))
            web = await host.run("web")
            assert (second.cpus, web.cpus) == ("", "")
            host.runtime.part = 2
            await host.start()
            assert (first.cpus, second.cpus, second.mems, web.cpus) == ("1-4", "9-12", "1", "5-7,13-15")
            assert host.runtime.updates.count(first.id) == 0

    virtualtime.run(story())


def test_a_contradiction_makes_the_container_wait_and_then_run_shared_and_is_an_event(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path, patience=60.0) as host:
            await host.run("first", own("main", "1-4", (0,)))
            with pytest.raises(CreateFailed, match="container main of pod default/first runs on CPUs 4"):
                await host.run("second", own("main", "4-5", (0,)))
            assert host.failures == [("second", "main", "container main of pod default/first runs on CPUs 4")]
            await asyncio.sleep(61)
            late = await host.runtime.create(pod("second", own("main", "4-5", (0,))), "main")
            assert late.cpus == "6-7"
            assert len(host.failures) == 1
            assert "runs on CPUs 4" in host.applied["uid-second"]

    virtualtime.run(story())


def test_drift_that_the_kernel_shows_is_mended_within_a_check(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as host:
            db = await host.run("db", own("main", "1-4", (0,)))
            host.kernel_says(db, "1-4")
            await asyncio.sleep(CHECKING)
            assert host.applied == {"uid-db": "1-4"}
            db.cpus = "0-15"
            host.kernel_says(db, "0-15")
            await asyncio.sleep(CHECKING + 1)
            assert db.cpus == "1-4"

    virtualtime.run(story())


def test_a_change_that_fails_costs_no_other_container_and_is_acknowledged(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as host:
            await host.stop()
            odd = await host.run("odd", own("main", "1-2", (0,)))
            fine = await host.run("fine", own("main", "9-10", (1,)))
            host.runtime.failing = lambda container: container == odd.id
            await host.start()
            assert fine.cpus == "9-10"
            assert host.applied == {"uid-odd": "NRI update of some containers failed", "uid-fine": "9-10"}
            host.runtime.failing = lambda _: False
            await asyncio.sleep(CHECKING + 1)
            assert host.applied == {"uid-odd": "1-2", "uid-fine": "9-10"}

    virtualtime.run(story())


def test_a_pod_in_a_form_of_its_own_is_skipped_and_costs_no_other(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as host:
            await host.stop()
            fine = await host.run("fine", own("main", "9-10", (1,)))
            host.runtime.odd = [b"\xff\xff", b"\x22\x02\xc3\x28"]
            await host.start()
            assert fine.cpus == "9-10"
            assert host.enforcer.is_connected

    virtualtime.run(story())


def test_a_runtime_that_does_not_answer_changes_is_asked_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with hosted(tmp_path) as host:
            await host.stop()
            late = await host.run("late", own("main", "9-10", (1,)))
            host.runtime.deaf = True
            await host.start()
            await asyncio.sleep(UPDATING)
            assert host.applied == {"uid-late": "UpdateContainers: no answer within 30 s"}
            host.runtime.deaf = False
            # Another request was on its way.
            await asyncio.sleep(UPDATING + CHECKING)
            assert (late.cpus, host.applied) == ("9-10", {"uid-late": "9-10"})

    virtualtime.run(story())


DEVICES = {
    "devices": {"example.com/gpu": {0: 2, 1: 2}},
    "plugins": {"example.com/gpu": {"allocate": {"cdi": ["example.com/gpu={id}"], "env": {"GPUS": "{ids}"}}}},
}


def test_devices_by_minor_number_are_injected_and_unknown_ones_refused(tmp_path: Path) -> None:
    offers = config.read(DEVICES, "devices.yaml")
    ids = [device.id for device in offers["example.com/gpu"].plugin.devices]

    def with_device(minor: int) -> ContainerResult:
        return ContainerResult(name="main", cpuset="1-2", devices={"example.com/gpu": (DeviceGrant(minor),)})

    async def story() -> None:
        async with hosted(tmp_path, devices=Devices(offers, tmp_path)) as host:  # type: ignore[arg-type]
            report = host.enforcer.advertised(NodeTopology(node=NODE), MACHINE, SETTINGS)
            assert report.facts.minors == (
                DeviceMinors("example.com/gpu", 1, 0b11),
                DeviceMinors("example.com/gpu", 2, 0b1100),
            )
            made = await host.run("gpu", with_device(2))
            assert (made.cdi, made.env) == ((f"example.com/gpu={ids[2]}",), (("GPUS", ids[2]),))
            await host.runtime.stop(made)
            await host.runtime.stop_pod(made.pod)
            odd = await host.run("odd", with_device(9))
            assert odd.cdi == ()
            lacks = {"uid-odd": "this node has no device 9 of example.com/gpu"}
            assert host.applied == lacks
            # It stays so, whatever else changes.
            await host.run("db", own("main", "3-4", (0,)))
            await asyncio.sleep(2 * CHECKING)
            assert host.applied == lacks | {"uid-db": "3-4"}

    virtualtime.run(story())


def test_a_container_that_started_without_the_agent_has_no_devices_and_the_report_says_so(tmp_path: Path) -> None:
    offers = config.read(DEVICES, "devices.yaml")
    devices = Devices(offers, tmp_path)
    wanted = ContainerResult(name="main", cpuset="1-2", devices={"example.com/gpu": (DeviceGrant(0),)})

    async def story() -> None:
        async with hosted(tmp_path, devices=devices) as host:  # type: ignore[arg-type]
            await host.run("early", wanted)
            await host.stop()
            await host.run("late", structs.replace(wanted, cpuset="3-4"))
            await host.start()
            assert host.applied == {"uid-early": "1-2", "uid-late": UNINJECTED}
            assert [each.cpus for each in host.runtime.containers.values()] == ["1-2", "3-4"]

    virtualtime.run(story())


def test_what_the_kernel_reports_is_read_for_this_process(tmp_path: Path) -> None:
    assert kernel.allowed(tmp_path, 7) is None
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "status").write_text("Cpus_allowed:\tff\nCpus_allowed_list:\t0-3\n")
    assert kernel.allowed(tmp_path, 7) is None
    (tmp_path / "proc" / "7" / "status").write_text("Cpus_allowed_list:\t0-3,8\nMems_allowed_list:\t1\n")
    assert kernel.allowed(tmp_path, 7) == (0b1_0000_1111, 0b10)
