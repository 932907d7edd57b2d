"""Enforcement over CRI, where the runtime has no NRI: containers are changed soon after they have started."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from numalign.agent.enforce.enforcer import CHECKING, GRACE, Enforcement, Enforcer
from numalign.agent.enforce.polling import AGAIN, LOOKING
from numalign.api.attributes.attributes import NodeFacts
from numalign.api.decode import cpuset
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet.settings import Settings
from numalign.simulator import virtualtime
from tests.runtimes import Container
from tests.unit.agent.enforce.nodes import NODE, own
from tests.unit.agent.enforce.test_enforcer import MACHINE, SETTINGS, Host, pod

SOON = 2 * LOOKING + 0.5


class HostWithoutNri(Host):
    def __init__(self, host: Path) -> None:
        super().__init__(host)
        self.runtime.nri = False
        self.settings = Enforcement(socket=host / "nri.sock", cri=host / "cri.sock", host=host)

    async def start(self, settings: Settings = SETTINGS) -> None:
        clock = virtualtime.clock(random.Random(1))
        self.enforcer = Enforcer(
            NODE, self.settings, clock, lambda: None, self._failed, self.runtime.open, self.runtime.cri
        )
        self._task = asyncio.create_task(self.enforcer.run())
        self.enforcer.configure(MACHINE, settings, {})
        await asyncio.sleep(10)


def facts(host: Host) -> NodeFacts:
    return host.enforcer.advertised(NodeTopology(node=NODE), MACHINE, SETTINGS).facts


def cpus(made: Container) -> tuple[str, str, int]:
    return made.cpus, made.mems, made.quota


def test_a_container_gets_its_cpus_soon_after_its_start_and_shared_ones_leave_them(tmp_path: Path) -> None:
    async def story() -> None:
        host = HostWithoutNri(tmp_path)
        await host.start()
        assert (host.enforcer.is_connected, host.enforcer.is_late, host.enforcer.standing) == (True, True, "")
        web = await host.run("web")
        await asyncio.sleep(SOON)
        assert web.cpus == "1-7,9-15"
        db = await host.run("db", own("main", "1-4", (0,), mems="0"))
        assert db.cpus == ""
        await asyncio.sleep(SOON)
        assert (cpus(db), web.cpus) == (("1-4", "0", -1), "5-7,9-15")
        (applied,) = host.enforcer.state.applied
        assert (applied.uid, cpuset.text(applied.cpus), applied.failure) == ("uid-db", "1-4", "")
        await host.runtime.stop(db)
        await host.runtime.stop_pod(db.pod)
        await asyncio.sleep(SOON)
        assert web.cpus == "1-7,9-15"
        await host.stop()

    virtualtime.run(story())


def test_the_report_says_that_cpus_and_memory_are_enforced_and_devices_are_not(tmp_path: Path) -> None:
    async def story() -> None:
        host = HostWithoutNri(tmp_path)
        await host.start()
        mode = facts(host).mode
        assert mode is not None
        assert mode.features == {"cpus", "mems"}
        host.runtime.up = False
        await asyncio.sleep(GRACE - 5)
        assert facts(host).mode is not None
        await asyncio.sleep(CHECKING + 5)
        assert facts(host).mode is None
        assert "nor does it answer over CRI" in host.enforcer.standing
        host.runtime.up = True
        await asyncio.sleep(30)
        assert facts(host).mode is not None
        await host.stop()

    virtualtime.run(story())


def test_what_the_kubelet_changes_of_a_container_with_cpus_of_its_own_is_changed_back(tmp_path: Path) -> None:
    async def story() -> None:
        host = HostWithoutNri(tmp_path)
        await host.start()
        db = await host.run("db", own("main", "1-4", (0,)))
        await asyncio.sleep(SOON)
        db.quota, db.cpus = 50_000, "0-15"
        await asyncio.sleep(AGAIN + SOON)
        assert cpus(db)[::2] == ("1-4", -1)
        await host.stop()

    virtualtime.run(story())


def test_a_change_that_fails_is_acknowledged_and_costs_no_other_container(tmp_path: Path) -> None:
    async def story() -> None:
        host = HostWithoutNri(tmp_path)
        await host.start()
        host.runtime.failing = lambda container: container.startswith("bad")
        host.runtime.odd = [b"\xff\xff\xff"]
        bad = await host.run("bad", own("main", "1-2", (0,)))
        good = await host.run("good", own("main", "3-4", (0,)))
        await asyncio.sleep(SOON)
        assert good.cpus == "3-4"
        assert {each.uid: each.failure for each in host.enforcer.state.applied} == {
            "uid-bad": "failed to update resources",
            "uid-good": "",
        }
        assert host.failures == [("bad", "main", "failed to update resources")]
        host.runtime.failing = lambda _: False
        await asyncio.sleep(SOON)
        assert bad.cpus == "1-2"
        await host.stop()

    virtualtime.run(story())


def test_a_contradicted_container_runs_in_the_shared_pools_until_the_other_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        host = HostWithoutNri(tmp_path)
        await host.start()
        first = await host.run("first", own("main", "1-4", (0,)))
        second = await host.run("second", own("main", "4-5", (0,)))
        await asyncio.sleep(SOON)
        assert (first.cpus, second.cpus) == ("1-4", "6-7")
        assert host.failures == [("second", "main", "container main of pod default/first runs on CPUs 4")]
        await host.runtime.stop(first)
        await host.runtime.stop_pod(first.pod)
        await asyncio.sleep(SOON)
        assert second.cpus == "4-5"
        await host.stop()

    virtualtime.run(story())


def test_the_agent_becomes_a_plugin_once_the_runtime_has_nri(tmp_path: Path) -> None:
    async def story() -> None:
        host = HostWithoutNri(tmp_path)
        await host.start()
        db = await host.run("db", own("main", "1-4", (0,)))
        await asyncio.sleep(SOON)
        host.runtime.nri = True
        (tmp_path / "nri.sock").touch()
        await asyncio.sleep(5)
        assert (host.enforcer.is_connected, host.enforcer.is_late) == (True, False)
        made = pod("late", own("main", "5-6", (0,)))
        await host.runtime.run_pod(made)
        late = await host.runtime.create(made, "main")
        assert (db.cpus, late.cpus) == ("1-4", "5-6")
        await host.stop()

    virtualtime.run(story())
