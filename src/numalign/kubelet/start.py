"""Starts a kubelet: takes machine and settings, returns managers that are ready to admit, or refuses with the reason.

A started kubelet never changes; its `KubeletState` does. A restart is a start with the state of the managers'
checkpoints (kubelet spec 9)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from msgspec import Struct, structs

from numalign.kubelet import versions
from numalign.kubelet.cpu.static import StaticCPUs, restart_cpu_manager, start_cpu_manager
from numalign.kubelet.demand import Reading
from numalign.kubelet.device import DeviceManager, Ids, Preference, lowest_ids
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.memory.static import StaticMemory, restart_memory_manager, start_memory_manager
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import TOPOLOGY_OPTIONS, Settings, boolean_option, require_available
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager.merge import Rules

MANAGER = TOPOLOGY_OPTIONS.manager
PREFER_CLOSEST = "prefer-closest-numa-nodes"
MAX_ZONES = "max-allowable-numa-nodes"
KNOWN = frozenset({PREFER_CLOSEST, MAX_ZONES})
DEFAULT_MAX_ZONES = 8
OPTIONS_GATE = "TopologyManagerPolicyOptions"
NUMBER = re.compile(r"[+-]?[0-9]{1,4000}")


class Kubelet(Struct, frozen=True, dict=True):
    """One kubelet process: its machine, its settings and its managers. None for a manager that does nothing."""

    machine: Machine
    settings: Settings
    rules: Rules
    devices: DeviceManager
    cpu: StaticCPUs | None = None
    memory: StaticMemory | None = None

    @cached_property
    def reading(self) -> Reading:
        return Reading.of(self.settings)

    def initial(self) -> KubeletState:
        """A node without pods and without history."""
        return KubeletState(
            devices=self.devices.initial(),
            cpu=self.cpu.initial() if self.cpu else None,
            memory=self.memory.initial() if self.memory else None,
        )


def start(machine: Machine, settings: Settings, prefer: Callable[[Preference], Ids] = lowest_ids) -> Kubelet:
    """Start a kubelet, or raise `StartRefusal` with the text that it would log (`Undecided` if it would not get there).

    `prefer` stands for the device plugins."""
    for error in versions.gate_errors(settings.feature_gates, settings.minor):
        raise StartRefusal("featuregates", error)
    return Kubelet(
        machine=machine,
        settings=settings,
        rules=_rules(machine, settings),
        devices=DeviceManager(machine, versions.behaviour(settings.minor), prefer),
        cpu=start_cpu_manager(machine, settings),
        memory=start_memory_manager(machine, settings),
    )


def restart(kubelet: Kubelet, state: KubeletState) -> KubeletState:
    """The state of a new process: checkpoints survive, stored hints and reusable leftovers do not.

    Every active pod has to be admitted again; `active` still lists them, in the order in which that happens."""
    cpu, memory = state.cpu, state.memory
    if kubelet.cpu and cpu:
        cpu = restart_cpu_manager(kubelet.cpu, cpu)
    if kubelet.memory and memory:
        memory = restart_memory_manager(kubelet.memory, memory)
    devices = kubelet.devices.restarted(state.devices)
    return structs.replace(state, cpu=cpu, memory=memory, devices=devices, affinities={})


def _rules(machine: Machine, settings: Settings) -> Rules:
    policy = settings.topology_policy
    if settings.topology_options and not settings.gate(OPTIONS_GATE):
        given = " ".join(f"{name}:{text}" for name, text in sorted(settings.topology_options.items()))
        raise StartRefusal(
            MANAGER, f'topology manager policy options map[{given}] require feature gates "{OPTIONS_GATE}" enabled'
        )
    if policy == "none":
        return Rules(policy, machine.zone_ids)  # scope and options are not even parsed
    closest, most = False, DEFAULT_MAX_ZONES
    for name, text in settings.topology_options.items():
        require_available(name, KNOWN, TOPOLOGY_OPTIONS, settings)
        if name == PREFER_CLOSEST:
            closest = boolean_option(name, text, TOPOLOGY_OPTIONS)
        else:
            most = _max_zones(text)
    if closest and not all(zone.distances for zone in machine.zones):
        raise StartRefusal(MANAGER, "cannot discover NUMA topology: error getting NUMA distances from cadvisor")
    if len(machine.zones) > most:
        raise StartRefusal(MANAGER, f"unsupported on machines with more than {most} NUMA Nodes")
    return Rules(policy, machine.zone_ids, {zone.id: zone.distances for zone in machine.zones} if closest else None)


def _max_zones(text: str) -> int:
    """A limit as Go reads whole numbers; lower than the default is refused."""
    problem = "invalid syntax" if NUMBER.fullmatch(text) is None else ""
    if not problem and not -(1 << 63) <= int(text) < 1 << 63:
        problem = "value out of range"
    if problem:
        raise StartRefusal(
            MANAGER,
            f'unable to convert policy option to integer "{MAX_ZONES}": strconv.Atoi: parsing "{text}": {problem}',
        )
    if int(text) < DEFAULT_MAX_ZONES:
        raise StartRefusal(MANAGER, f'the minimum value of "{MAX_ZONES}" should not be less than {DEFAULT_MAX_ZONES}')
    return int(text)
