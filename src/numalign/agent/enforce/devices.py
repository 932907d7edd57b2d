"""The devices that a node in direct mode hands out, and how a container gets them.

`numalign agent run --direct-devices` reads them from a file in the format of `numalign device-plugin`. The minor number
of a device is its place in the list of its resource. A container gets CDI devices, device files and variables; the
container runtime resolves CDI names itself. With `--find-devices`, GPUs and RDMA NICs that the kernel shows are handed
out in parts and together, too; their minor numbers follow the bus. A decision names the id of such a device, which
tells whether the number still means the same one."""

from __future__ import annotations

import itertools
import logging
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from numalign.agent.deviceplugin.config import Offers
from numalign.agent.enforce.messages import DeviceNode, Injection
from numalign.agent.sources import pcidevices
from numalign.agent.sources.pcidevices import PciDevice
from numalign.api.attributes.devicetable import KINDS, NO_ZONE, WHOLE, Device, DeviceTable, Function
from numalign.api.attributes.directresult import ContainerResult, DeviceGrant
from numalign.kubelet.machine.machine import DevicePlugin

LOG: Final = logging.getLogger(__name__)
NOTHING: Final = Injection()
NVIDIA: Final = ("vendor", "nvidia")
VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
"""The variable by which NVIDIA's container runtime adds the driver's libraries, too."""
FEW: Final = 5
"""Problems that one log line lists."""


class Devices:
    def __init__(self, offers: Offers, host: Path, *, finds: bool = False) -> None:
        """`host`: where the host's root is mounted. `finds`: whether GPUs and NICs of the kernel are handed out."""
        self._offers, self._host, self._finds = offers, host, finds
        self._found: Mapping[tuple[str, int], PciDevice] = {}
        """By type and minor number."""
        self._problems: tuple[str, ...] = ()

    def look(self) -> None:
        """Reads again which GPUs and NICs there are."""
        if not self._finds:
            return
        seen = pcidevices.survey(self._host)
        if seen.problems and seen.problems != self._problems:
            LOG.warning("Problems with devices: %s", "; ".join(seen.problems[:FEW]))
        self._problems = seen.problems
        numbers = {kind: itertools.count() for kind in KINDS}
        self._found = {(each.kind, next(numbers[each.kind])): each for each in seen.devices}

    @property
    def table(self) -> DeviceTable | None:
        """What is handed out in parts or together; None: nothing is looked for."""
        if not self._finds:
            return None
        entries = (_entry(minor, each) for (_, minor), each in self._found.items())
        return DeviceTable(devices=tuple(sorted(entries, key=lambda each: (KINDS.index(each.type), each.minor))))

    @property
    def plugins(self) -> Mapping[str, DevicePlugin]:
        return {resource: offer.plugin for resource, offer in self._offers.items()}

    def injection(self, own: ContainerResult) -> tuple[Injection, str]:
        """What the container gets, and why not all of its devices; empty: all."""
        cdi: list[str] = []
        nodes: list[DeviceNode] = []
        env: dict[str, str] = {}
        for resource, grants in own.devices.items():
            if resource in KINDS:
                shared, why = self._shared(resource, grants)
                if why:
                    return NOTHING, why
                nodes += [each for each in shared.nodes if each not in nodes]
                env |= shared.env
                continue
            offer = self._offers.get(resource)
            devices = offer.plugin.devices if offer is not None else ()
            unknown = [grant.minor for grant in grants if not 0 <= grant.minor < len(devices)]
            if offer is None or unknown:
                return NOTHING, f"this node has no device {', '.join(map(str, unknown))} of {resource}"
            given = offer.gift.to([devices[grant.minor].id for grant in grants])
            cdi += [each["name"] for each in given["cdi"]]
            env |= {each["key"]: each["value"] for each in given["env"]}
            for each in given["files"]:
                try:
                    nodes.append(self._node(each["container"], each["host"]))
                except OSError as problem:
                    return NOTHING, f"{each['host']} cannot be given to the container: {problem.strerror or problem}"
        return Injection(tuple(cdi), tuple(nodes), env), ""

    def _shared(self, kind: str, grants: Sequence[DeviceGrant]) -> tuple[Injection, str]:
        """Devices in parts or together, by their ids; and why not."""
        nodes: list[DeviceNode] = []
        visible: list[str] = []
        for grant in grants:
            found = self._granted(kind, grant)
            if found is None:
                return NOTHING, f"this node has no {kind} {grant.minor} with the id {grant.id or 'of the decision'}"
            files = found.files
            if wanted := [each.bus for each in grant.extension.vfs]:
                known = {each.bus: each.files for each in found.functions}
                if missing := [each for each in wanted if each not in known]:
                    return NOTHING, f"{kind} {grant.minor} has no virtual function {', '.join(missing)}"
                files = tuple(file for each in wanted for file in known[each])
            given = (DeviceNode(each.path, "c", each.major, each.minor) for each in files)
            nodes += [each for each in given if each not in nodes]
            visible += [found.id] if NVIDIA in found.labels else []
        return Injection(nodes=tuple(nodes), env={VISIBLE: ",".join(visible)} if visible else {}), ""

    def _granted(self, kind: str, grant: DeviceGrant) -> PciDevice | None:
        """Koordinator may count devices in another order: the id decides."""
        if grant.id:
            return next((each for (own, _), each in self._found.items() if own == kind and each.id == grant.id), None)
        return self._found.get((kind, grant.minor))

    def _node(self, inside: str, outside: str) -> DeviceNode:
        found = os.stat(self._host / outside.lstrip("/"))
        if stat.S_ISCHR(found.st_mode):
            kind = "c"
        elif stat.S_ISBLK(found.st_mode):
            kind = "b"
        else:
            raise OSError(f"{outside} is not a device file")
        return DeviceNode(inside, kind, os.major(found.st_rdev), os.minor(found.st_rdev))


def _entry(minor: int, found: PciDevice) -> Device:
    return Device(
        type=found.kind,
        minor=minor,
        id=found.id,
        zone=found.zone if found.zone != pcidevices.UNKNOWN_ZONE else NO_ZONE,
        pcie=found.root,
        parts=WHOLE if found.healthy else 0,
        memory=found.memory,
        labels=tuple(sorted(found.labels)),
        functions=tuple(Function(each.bus) for each in found.functions),
    )
