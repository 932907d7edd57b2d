"""The devices that a node in direct mode hands out by minor number, and how a container gets them.

`numalign agent run --direct-devices` reads them from a file in the format of `numalign device-plugin`. The minor number
of a device is its place in the list of its resource. A container gets CDI devices, device files and variables; the
container runtime resolves CDI names itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from numalign.agent.deviceplugin.config import Offers
from numalign.agent.enforce.messages import DeviceNode, Injection
from numalign.api.attributes.directresult import ContainerResult
from numalign.kubelet.machine.machine import DevicePlugin

NOTHING: Final = Injection()


class Devices:
    def __init__(self, offers: Offers, host: Path) -> None:
        """`host`: where the host's root is mounted."""
        self._offers, self._host = offers, host

    @property
    def plugins(self) -> Mapping[str, DevicePlugin]:
        return {resource: offer.plugin for resource, offer in self._offers.items()}

    def injection(self, own: ContainerResult) -> tuple[Injection, str]:
        """What the container gets, and why not all of its devices; empty: all."""
        cdi: list[str] = []
        nodes: list[DeviceNode] = []
        env: dict[str, str] = {}
        for resource, grants in own.devices.items():
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

    def _node(self, inside: str, outside: str) -> DeviceNode:
        found = os.stat(self._host / outside.lstrip("/"))
        if stat.S_ISCHR(found.st_mode):
            kind = "c"
        elif stat.S_ISBLK(found.st_mode):
            kind = "b"
        else:
            raise OSError(f"{outside} is not a device file")
        return DeviceNode(inside, kind, os.major(found.st_rdev), os.minor(found.st_rdev))
