"""The agent's NRI plugin with a real containerd: what runc is asked for, and what processes may use."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from numalign.agent.deviceplugin import config
from numalign.agent.enforce import kernel
from numalign.agent.enforce.devices import Devices
from numalign.agent.enforce.enforcer import Enforcement, Enforcer
from numalign.agent.enforce.messages import INJECTED
from numalign.agent.sources import sysfs
from numalign.api.attributes.directresult import ContainerResult, DeviceGrant
from numalign.api.decode import cpuset
from numalign.kube.clock import SystemClock
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.settings import Settings
from numalign.process import rpc
from tests.lab import cri, reals
from tests.lab.cri import Containerd
from tests.unit.agent.enforce.nodes import NODE, annotated, own
from tests.unit.agent.enforce.test_enforcer import MACHINE, RESERVED

PATIENCE = 30.0
DEVICES = {
    "devices": {"example.com/gpu": {0: 1, 1: 1}},
    "plugins": {"example.com/gpu": {"allocate": {"cdi": ["example.com/gpu={id}"]}}},
}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    archive = reals.probe_archive(tmp_path_factory.mktemp("probe"))
    # Short, because paths of sockets are limited.
    with tempfile.TemporaryDirectory() as folder, cri.containerd(Path(folder)) as made:
        made.load(archive.read_bytes(), reals.PROBE)
        yield made


@contextlib.asynccontextmanager
async def enforced(
    runtime: Containerd, machine: Machine = MACHINE, settings: Enforcement | None = None, **more: object
) -> AsyncIterator[Enforcer]:
    if settings is None:
        settings = Enforcement(socket=runtime.nri, host=runtime.host, verified=machine is not MACHINE, **more)  # type: ignore[arg-type]
    enforcer = Enforcer(NODE, settings, SystemClock(), lambda: None, lambda *_: None)
    reserved = RESERVED if machine is MACHINE else 0
    enforcer.configure(machine, Settings(reserved_cpus=reserved), {})
    task = asyncio.create_task(enforcer.run())
    try:
        await until(lambda: enforcer.is_connected, lambda: enforcer.standing)
        yield enforcer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(found: Callable[[], bool], otherwise: Callable[[], object] = lambda: "") -> None:
    ends = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < ends, otherwise()
        await asyncio.sleep(0.05)


def said(name: str, *containers: ContainerResult) -> dict[str, str]:
    return dict(annotated(f"uid-{name}", *containers))


def test_runc_is_asked_for_the_cpus_zones_and_devices_of_the_decision_and_pools_follow(runtime: Containerd) -> None:
    offers = config.read(DEVICES, "devices.yaml")
    first, second = (device.id for device in offers["example.com/gpu"].plugin.devices)
    runtime.cdi.mkdir(exist_ok=True)
    devices = [{"name": each, "containerEdits": {"env": [f"GPU={each}"]}} for each in (first, second)]
    document = {"cdiVersion": "0.6.0", "kind": "example.com/gpu", "devices": devices}
    (runtime.cdi / "gpu.json").write_text(json.dumps(document))

    async def story() -> None:
        given = Devices(offers, runtime.host)
        async with runtime.kubelet() as kubelet, enforced(runtime, devices=given) as enforcer:
            web_pod = await kubelet.run_pod("web", {})
            web = await kubelet.create(web_pod, "main")
            assert runtime.asked(web)["linux"]["resources"]["cpu"]["cpus"] == "1-7,9-15"
            gpu = {"example.com/gpu": (DeviceGrant(1),)}
            whole = ContainerResult(name="main", cpuset="9-12", zones=(1,), mems="1", devices=gpu)
            db_pod = await kubelet.run_pod("db", said("db", whole))
            db = await kubelet.create(db_pod, "main")
            asked = runtime.asked(db)
            cpu = asked["linux"]["resources"]["cpu"]
            assert (cpu["cpus"], cpu["mems"], cpu["quota"], cpu["shares"]) == ("9-12", "1", -1, 1024)
            assert f"GPU={second}" in asked["process"]["env"]
            assert asked["annotations"][INJECTED] == "true"
            await until(lambda: runtime.record(web)["cpus"] == "1-7,13-15")
            await kubelet.resize(db, 50_000)
            assert runtime.record(db)["quota"] == -1
            (applied,) = enforcer.state.applied
            assert (applied.uid, applied.container, cpuset.text(applied.cpus)) == ("uid-db", "main", "9-12")
            async with enforced(runtime, devices=given) as later:
                assert next(each for each in later.state.containers.values() if each.id == db).failure == ""
            await kubelet.stop(db)
            await kubelet.stop_pod(db_pod)
            await until(lambda: runtime.record(web)["cpus"] == "1-7,9-15")
            await kubelet.stop_pod(web_pod)

    asyncio.run(story())


def test_an_app_container_gets_the_cpus_of_its_init_container_and_sidecars_those_of_the_pool(
    runtime: Containerd,
) -> None:
    """Init 8, app 6 in the same zone, and a sidecar that the decision excludes."""
    containers = own("init", "9-15", (1,)), own("app", "9-14", (1,)), own("proxy")

    async def story() -> None:
        async with runtime.kubelet() as kubelet, enforced(runtime):
            pod = await kubelet.run_pod("app", said("app", *containers))
            init = await kubelet.create(pod, "init")
            assert runtime.record(init)["cpus"] == "9-15"
            await kubelet.stop(init)
            app = await kubelet.create(pod, "app")
            proxy = await kubelet.create(pod, "proxy")
            assert (runtime.record(app)["cpus"], runtime.record(proxy)["cpus"]) == ("9-14", "1-7")
            await kubelet.stop_pod(pod)

    asyncio.run(story())


def test_containers_that_started_without_the_agent_are_mended_when_it_returns(runtime: Containerd) -> None:
    async def story() -> None:
        async with runtime.kubelet() as kubelet:
            pod = await kubelet.run_pod("late", said("late", own("main", "1-4", (0,), mems="0")))
            made = await kubelet.create(pod, "main")
            assert "cpus" not in runtime.record(made)
            async with enforced(runtime) as enforcer:
                await until(lambda: runtime.record(made).get("cpus") == "1-4")
                assert (runtime.record(made)["mems"], runtime.record(made)["quota"]) == ("0", -1)
                await until(lambda: [cpuset.text(each.cpus) for each in enforcer.state.applied] == ["1-4"])
                await kubelet.stop_pod(pod)

    asyncio.run(story())


def test_without_nri_containers_are_changed_over_cri_soon_after_they_have_started(runtime: Containerd) -> None:
    settings = Enforcement(socket=runtime.folder / "off.sock", cri=runtime.socket, host=runtime.host, verified=False)

    async def story() -> None:
        async with runtime.kubelet() as kubelet:
            web_pod = await kubelet.run_pod("web", {})
            web = await kubelet.create(web_pod, "main")
            async with enforced(runtime, settings=settings) as enforcer:
                assert enforcer.is_late
                pod = await kubelet.run_pod("late", said("late", own("main", "1-4", (0,), mems="0")))
                made = await kubelet.create(pod, "main")
                await until(lambda: runtime.record(made).get("cpus") == "1-4")
                assert (runtime.record(made)["mems"], runtime.record(made)["quota"]) == ("0", -1)
                await until(lambda: runtime.record(web).get("cpus") == "5-7,9-15")
                await until(lambda: [cpuset.text(each.cpus) for each in enforcer.state.applied] == ["1-4"])
                assert [each.pid > 0 for each in enforcer.state.containers.values()] == [True, True]
                await kubelet.stop(made)
                await kubelet.stop_pod(pod)
                await until(lambda: runtime.record(web).get("cpus") == "1-7,9-15")
            await kubelet.stop_pod(web_pod)

    asyncio.run(story())


def test_a_pod_that_asks_for_it_waits_until_the_agent_is_there(runtime: Containerd) -> None:
    """containerd's validator refuses the container meanwhile, and a kubelet tries again."""
    waits = {"required-plugins.noderesource.dev": '["numalign"]', **said("waiting", own("main", "1-4", (0,)))}

    async def story() -> None:
        async with runtime.kubelet() as kubelet:
            pod = await kubelet.run_pod("waiting", waits)
            with pytest.raises(rpc.CallFailed, match='required plugin "numalign" not present'):
                await kubelet.create(pod, "main")
            async with enforced(runtime):
                made = await kubelet.create(pod, "main")
                assert runtime.record(made)["cpus"] == "1-4"
                await kubelet.stop_pod(pod)

    asyncio.run(story())


def test_a_contradicted_container_is_refused_and_the_reason_reaches_the_kubelet(runtime: Containerd) -> None:
    async def story() -> None:
        async with runtime.kubelet() as kubelet, enforced(runtime, patience=0.5):
            first = await kubelet.run_pod("first", said("first", own("main", "1-4", (0,))))
            await kubelet.create(first, "main")
            second = await kubelet.run_pod("second", said("second", own("main", "4-5", (0,))))
            with pytest.raises(rpc.CallFailed, match="container main of pod default/first runs on CPUs 4"):
                await kubelet.create(second, "main")
            await asyncio.sleep(0.6)
            made = await kubelet.create(second, "main")
            assert runtime.record(made)["cpus"] == "6-7"
            await kubelet.stop_pod(first)
            await until(lambda: runtime.record(made)["cpus"] == "4-5")
            await kubelet.stop_pod(second)

    asyncio.run(story())


def test_the_process_of_a_container_runs_on_its_cpus(runtime: Containerd) -> None:
    """On the machine's own CPUs."""
    machine = sysfs.survey(Path("/"), "host").machine
    cpus = cpuset.members(machine.cpus)
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    mine, rest = str(cpus[-1]), cpuset.text(machine.cpus & ~(1 << cpus[-1]))

    def allowed(pid: int) -> str:
        seen = kernel.allowed(runtime.host, pid)
        return cpuset.text(seen[0]) if seen is not None else ""

    async def story() -> None:
        async with runtime.kubelet() as kubelet, enforced(runtime, machine) as enforcer:

            def pid(container: str) -> int:
                return enforcer.state.containers[container].pid

            web_pod = await kubelet.run_pod("web", {}, "real")
            web = await kubelet.create(web_pod, "main")
            assert allowed(pid(web)) == cpuset.text(machine.cpus)
            pod = await kubelet.run_pod("db", said("db", own("main", mine, (machine.zone_ids[0],), mems="0")), "real")
            db = await kubelet.create(pod, "main")
            assert allowed(pid(db)) == mine
            assert allowed(pid(web)) == rest
            await kubelet.stop_pod(pod)
            await until(lambda: allowed(pid(web)) == cpuset.text(machine.cpus))
            await kubelet.stop_pod(web_pod)

    asyncio.run(story())
