"""Agent, runtime, kubelet and scheduler are killed at every step of a pod's way, in virtual time.

A model of a scheduler decides, a model of a kubelet starts and stops containers, the runtime is that of
`tests.runtimes`, and the enforcer is the real one. Whatever is killed: no CPU is acknowledged to two containers, no
acknowledgement is wrong for longer than a check, no pod is lost, and every container ends up where it belongs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import pytest
from msgspec import Struct

from numalign.agent.enforce.enforcer import CHECKING, Enforcement, Enforcer
from numalign.api.attributes.directresult import ContainerResult
from numalign.api.decode import cpuset
from numalign.kubelet.settings import Settings
from numalign.simulator import virtualtime
from tests.runtimes import Container, CreateFailed, Pod, Runtime
from tests.unit.agent.enforce.nodes import NODE, annotated, own
from tests.unit.agent.enforce.test_enforcer import MACHINE, RESERVED

ALLOCATABLE = MACHINE.cpus & ~RESERVED
SECONDS = 120.0
PODS = 8
FAULTS = 5


class Wanted(Struct):
    """A pod at the API server."""

    name: str
    containers: tuple[ContainerResult, ...]
    deleted: bool = False
    gone: bool = False
    """The kubelet has confirmed that its containers ended."""
    started: bool = False

    @property
    def cpus(self) -> int:
        found = 0
        for each in self.containers:
            found |= each.cpus
        return found

    @property
    def annotations(self) -> dict[str, str]:
        return dict(annotated(f"uid-{self.name}", *self.containers))


class World:
    def __init__(self, seed: int, path: Path, *, nri: bool) -> None:
        self.chances = random.Random(seed)
        self.runtime = Runtime()
        self.runtime.nri = nri
        self.runtime.latency = 0.01
        self.pods: list[Wanted] = []
        self.path = path
        self.shown: dict[int, tuple[str, str]] = {}
        """What was last written for each process."""
        self.enforcer: Enforcer | None = None
        self._agent: asyncio.Task[None] | None = None
        self._kubelet: asyncio.Task[None] | None = None
        self._clock = virtualtime.clock(self.chances)

    def start_agent(self) -> None:
        settings = Enforcement(socket=self.path / "nri.sock", host=self.path, patience=5.0)
        runtime = self.runtime
        call = None if runtime.nri else runtime.cri
        self.enforcer = Enforcer(
            NODE, settings, self._clock, lambda: None, lambda pod, container, why: None, runtime.open, call
        )
        self.enforcer.configure(MACHINE, Settings(reserved_cpus=RESERVED), {})
        self._agent = asyncio.create_task(self.enforcer.run())

    async def kill_agent(self) -> None:
        assert self._agent is not None
        self._agent.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._agent
        self.enforcer = None

    def start_kubelet(self) -> None:
        if self._kubelet is not None and not self._kubelet.done():
            # Another fault has brought it back.
            return
        self._kubelet = asyncio.create_task(self._sync_all())

    async def kill_kubelet(self) -> None:
        assert self._kubelet is not None
        self._kubelet.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._kubelet

    def decide(self, number: int) -> None:
        """A scheduler that has just started: what is free follows from the pods alone."""
        taken = 0
        for each in self.pods:
            taken |= 0 if each.gone else each.cpus
        free = cpuset.members(ALLOCATABLE & ~taken)
        size = self.chances.randint(0, 4)
        if size > len(free):
            return
        chosen = cpuset.text(cpuset.of(self.chances.sample(free, size)))
        init = (own("init", chosen, (0,)),) if size and self.chances.random() < 0.3 else ()
        main = own("main", chosen, (0, 1), mems=self.chances.choice(["", "0"]))
        self.pods.append(Wanted(f"p{number}", (*init, main) if self.chances.random() < 0.8 else ()))

    async def _sync_all(self) -> None:
        """The kubelet knows nothing but the API server's pods and what the runtime lists."""
        async with asyncio.TaskGroup() as group:
            followed: set[str] = set()
            while True:
                for each in self.pods:
                    if each.name not in followed and not each.gone:
                        followed.add(each.name)
                        group.create_task(self._sync(each))
                await asyncio.sleep(0.5)

    async def _sync(self, wanted: Wanted) -> None:
        made = Pod(f"box-{wanted.name}", f"uid-{wanted.name}", wanted.name, wanted.annotations)
        names = [each.name for each in wanted.containers] or ["main"]
        while not wanted.gone:
            await asyncio.sleep(self.chances.uniform(0.2, 2.0))
            with contextlib.suppress(CreateFailed):
                if wanted.deleted:
                    for each in self._of(made):
                        await self.runtime.stop(each)
                    await self.runtime.stop_pod(made)
                    wanted.gone = True
                elif made.id not in self.runtime.pods:
                    await self.runtime.run_pod(made)
                elif not self._of(made):
                    if names[0] == "init" and not wanted.started:
                        init = await self.runtime.create(made, "init")
                        await asyncio.sleep(0.1)
                        await self.runtime.stop(init)
                    await self.runtime.create(made, "main")
                    wanted.started = True
                elif self.chances.random() < 0.05:
                    # The process ended; it is restarted.
                    await self.runtime.stop(self._of(made)[0])

    def _of(self, pod: Pod) -> list[Container]:
        return [each for each in self.runtime.containers.values() if each.pod.id == pod.id]

    async def stop(self) -> None:
        await self.kill_kubelet()
        if self.enforcer is not None:
            await self.kill_agent()


async def fault(world: World) -> None:
    kind = world.chances.choice(["agent", "runtime", "kubelet", "slow", "drift"])
    away = world.chances.uniform(0.01, 15.0)
    if kind == "agent" and world.enforcer is not None:
        await world.kill_agent()
        await asyncio.sleep(away)
        world.start_agent()
    elif kind == "runtime" and world.runtime.up:
        world.runtime.kill()
        await asyncio.sleep(away)
        world.runtime.up = True
    elif kind == "kubelet":
        await world.kill_kubelet()
        await asyncio.sleep(away)
        world.start_kubelet()
    elif kind == "slow":
        world.runtime.failing = lambda _: world.chances.random() < 0.5
        await asyncio.sleep(away)
        world.runtime.failing = lambda _: False
    elif world.runtime.containers:
        world.chances.choice(list(world.runtime.containers.values())).cpus = "0-15"


def mirror(world: World) -> None:
    """What the kernel reports: the sets that the runtime applied."""
    for each in world.runtime.containers.values():
        cpus, mems = each.cpus or "0-15", each.mems or "0-1"
        if world.shown.get(each.pid) == (cpus, mems):
            continue
        world.shown[each.pid] = cpus, mems
        folder = world.path / "proc" / str(each.pid)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "status").write_text(f"Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{mems}\n")


def check(world: World) -> None:
    """At every moment."""
    if world.enforcer is None:
        return
    state = world.enforcer.state
    held = 0
    for each in state.containers.values():
        if each.holds:
            assert not held & each.wants, "a CPU belongs to two containers"
            assert not each.wants & ~ALLOCATABLE
            held |= each.wants


def settled(world: World) -> None:
    """A while after the last fault."""
    assert world.enforcer is not None
    state = world.enforcer.state
    alive = [each for each in world.pods if not each.gone]
    assert not [each.name for each in alive if each.deleted], "a pod was not stopped"
    running = {each.pod.name: each for each in world.runtime.containers.values()}
    decided = 0
    for wanted in alive:
        decided |= wanted.cpus
    for wanted in alive:
        made = running.get(wanted.name)
        if made is None:
            # Between two runs.
            continue
        (part,) = [each for each in wanted.containers if each.name == "main"] or [own("main")]
        pool = cpuset.text(state.cpus.pool(part.zones, decided))
        assert (wanted.name, made.cpus) == (wanted.name, part.cpuset or pool)
        assert not part.cpuset or made.quota == -1
        assert not part.mems or made.mems == part.mems
    for each in state.applied:
        made = running.get(each.uid.removeprefix("uid-"))
        assert not each.failure, each
        assert made is None or cpuset.text(each.cpus) == made.cpus


async def campaign(seed: int, path: Path, *, nri: bool = True) -> None:
    world = World(seed, path, nri=nri)
    world.start_agent()
    world.start_kubelet()
    moments = sorted(world.chances.uniform(0, SECONDS) for _ in range(FAULTS))
    number = 0
    async with asyncio.TaskGroup() as faults:
        step = 0.0
        while step < SECONDS:
            if world.chances.random() < 0.2 and sum(not each.gone for each in world.pods) < PODS:
                world.decide(number)
                number += 1
            if world.chances.random() < 0.05 and (left := [each for each in world.pods if not each.deleted]):
                world.chances.choice(left).deleted = True
            while moments and moments[0] <= step:
                moments.pop(0)
                faults.create_task(fault(world))
            await asyncio.sleep(0.5)
            step += 0.5
            mirror(world)
            check(world)
    if world.enforcer is None:
        world.start_agent()
    # The kernel's state is looked at once before a check, and once after it.
    for _ in range(4):
        for _ in range(int(CHECKING)):
            await asyncio.sleep(1)
            mirror(world)
            check(world)
    if not nri:
        # A container that has just been started again has its CPUs with the next look.
        await world.kill_kubelet()
        await asyncio.sleep(3)
        mirror(world)
    settled(world)
    assert number > 0
    await world.stop()


@pytest.mark.parametrize("seed", range(24))
def test_nothing_is_booked_twice_or_lost_whatever_is_killed(seed: int, tmp_path: Path) -> None:
    virtualtime.run(campaign(seed, tmp_path))


@pytest.mark.parametrize("seed", range(8))
def test_the_same_over_cri(seed: int, tmp_path: Path) -> None:
    virtualtime.run(campaign(seed, tmp_path, nri=False))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(24, 624, 50))
def test_nothing_is_booked_twice_or_lost_in_six_hundred_runs(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        virtualtime.run(campaign(seed, tmp_path / str(seed)))
        virtualtime.run(campaign(seed, tmp_path / f"{seed}-cri", nri=False))
