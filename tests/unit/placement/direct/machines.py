"""Machines, pods and states for tests of direct mode."""

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from numalign.api.attributes import directspec
from numalign.api.attributes.devicetable import DeviceTable
from numalign.api.attributes.directmode import FEATURES, NodeDefaults
from numalign.api.attributes.intent import Intent
from numalign.api.objects.pod import Container, Pod
from numalign.kubelet.cpu.topology import CPUTopology, discover
from numalign.kubelet.machine.machine import Core, Machine, Zone
from numalign.placement.columns import deviceshares
from numalign.placement.columns.directmachine import DirectMachine, DirectTerms, FreeState
from numalign.placement.direct import asks, scope
from numalign.placement.direct.asks import PodAsk
from numalign.placement.direct.scope import Assignment, Unplaced
from tests.unit.kubelet import made

GIB = 1 << 30
NO_DEFAULTS = NodeDefaults()


def topology(sockets: int, zones: int, cores: int, threads: int) -> CPUTopology:
    """CPUs are numbered thread by thread, core by core, zone by zone."""
    found, cpu = list[Zone](), 0
    for zone in range(sockets * zones):
        own = []
        for _ in range(cores):
            own.append(Core(zone // zones, tuple(range(cpu, cpu + threads))))
            cpu += threads
        found.append(Zone(zone, tuple(own)))
    return discover(Machine("", tuple(found)))


def machine(
    zones: int = 2,
    cores: int = 8,
    threads: int = 1,
    *,
    memory: int = 64 * GIB,
    devices: Sequence[tuple[str, tuple[int, ...], int]] = (),
    defaults: NodeDefaults = NO_DEFAULTS,
    table: DeviceTable | None = None,
) -> DirectMachine:
    return DirectMachine(
        zones=tuple(range(zones)),
        topology=topology(zones, 1, cores, threads),
        memory=(("memory", (memory,) * zones),),
        devices=tuple(devices),
        stock=deviceshares.stock(table, range(zones)),
        terms=DirectTerms(frozenset(FEATURES), defaults),
    )


def pod(*cpus: Any, init: Sequence[Container] = (), spec: str = "", cpu_spec: str = "", **more: Any) -> Pod:
    """Containers c0, c1, ... with these CPUs, and our annotations."""
    containers = (made.container(f"c{place}", cpu=count) for place, count in enumerate(cpus))
    return with_spec(made.pod("p", *containers, init=init, **more), spec, cpu_spec)


def ask(of: Pod, on: DirectMachine) -> PodAsk:
    return asks.of(of, Intent(direct=directspec.read(of)), on)


def assigned(of: Pod, on: DirectMachine, free: FreeState | None = None) -> Assignment | Unplaced:
    return scope.assign(on, free or on.empty, ask(of, on))


def zones(found: Assignment | Unplaced, on: DirectMachine) -> list[tuple[int, ...]] | None:
    """By container its zones; None: the pod was refused."""
    return [on.ids(grant.zones) for grant in found.grants] if isinstance(found, Assignment) else None


def with_spec(plain: Pod, spec: str, cpu_spec: str = "") -> Pod:
    said = {directspec.TOPOLOGY_SPEC: spec, directspec.CPU_SPEC: cpu_spec}
    annotations = {name: text for name, text in said.items() if text}
    return structs.replace(plain, metadata=structs.replace(plain.metadata, annotations=annotations))
