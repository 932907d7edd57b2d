"""Waits until a lab is ready: CRD defined, nodes Ready, reports published.

`assembling` calls these functions in turn. If a program ends meanwhile, LabError contains the end of its log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.api.objects.pod import ResourceList
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.resources import Named, Target
from numalign.kubelet.machine import Machine
from numalign.lab.errors import LabError
from numalign.lab.labs import Lab
from numalign.scheduler import main
from numalign.simulator.nodes.publisher import crd

T = TypeVar("T", bound=Named)
PATIENCE: Final = 120.0
PER_NODE: Final = 15.0
"""Further seconds per node: a start takes two seconds of CPU, and there may be one core."""
LOOK: Final = 0.25


class Thing(Wire, frozen=True):
    """An object of any kind, of which only existence matters."""

    metadata: ObjectMeta = ObjectMeta()


DEFINITIONS: Final = resources.of(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", Thing
)
ACCOUNT: Final = resources.of("v1", "serviceaccounts", "ServiceAccount", Thing).at("default", "default")
TRUST: Final = resources.of("v1", "configmaps", "ConfigMap", Thing).at("kube-root-ca.crt", "default")


async def define_reports(lab: Lab) -> None:
    """Define NodeResourceTopology, so that publishers can write it."""
    async with lab.client() as client:
        await client.create(DEFINITIONS.everywhere(), crd.crd())
        served = resources.TOPOLOGIES.everywhere()
        await _until(lab, lambda: _is_there(client.every(served)), "NodeResourceTopology is not served")


async def until_pods_can_be(lab: Lab) -> None:
    """Wait until controllers have created what every pod in the namespace needs."""
    async with lab.client() as client:
        for needed in (ACCOUNT, TRUST):
            await _until(lab, partial(_has, client, needed), f"{needed.words} is not there")


async def _has(client: Client, needed: Target[T]) -> bool:
    return await _is_there(client.get(needed))


async def _is_there(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except errors.NotFound:
        return False
    return True


async def until_ready(lab: Lab) -> None:
    async with lab.client() as client:
        await _until(lab, lambda: _all_ready(lab, client), "nodes are not Ready")
    lab.say(f"{len(lab.nodes)} node{'s' if len(lab.nodes) != 1 else ''} Ready")


async def until_scheduled(lab: Lab) -> None:
    """Wait until numalign's scheduler holds its lease."""
    election = main.defaults().leader_election
    lease = resources.LEASES.at(election.resource_name, election.resource_namespace)
    async with lab.client() as client:
        await _until(lab, partial(_has, client, lease), "our scheduler does not lead")
    lab.say("the numalign scheduler holds its lease")


async def until_reported(lab: Lab) -> None:
    expected = {each.name for each in lab.spec.nodes if lab.spec.reporters(each)}
    async with lab.client() as client:

        async def reported() -> bool:
            found = await client.every(resources.TOPOLOGIES.everywhere())
            return {each.metadata.name for each in found} >= expected

        await _until(lab, reported, "nodes have no report")
    lab.say("every node has a report")


async def _all_ready(lab: Lab, client: Client) -> bool:
    found = [each for each in await client.every(resources.NODES.everywhere()) if isinstance(each, Node)]
    ready = {each.metadata.name: each.allocatable for each in found if is_ready(each)}
    return all(name in ready and _has_devices(node.spec.machine, ready[name]) for name, node in lab.nodes.items())


def _has_devices(machine: Machine, offered: ResourceList) -> bool:
    """A kubelet reports devices some seconds after their plugin has registered."""
    wanted = {name: sum(each.healthy for each in plugin.devices) for name, plugin in machine.devices.items()}
    return all(name in offered and offered[name].value == count for name, count in wanted.items())


def is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)


async def _until(lab: Lab, reached: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    seconds = PATIENCE + PER_NODE * len(lab.nodes)
    until = time.monotonic() + seconds
    while not await reached():
        for part in lab.every_part():
            part.require()
        if time.monotonic() > until:
            raise LabError(f"{otherwise} after {seconds:.0f} s; look at `numalign lab logs --name {lab.spec.name}`")
        await asyncio.sleep(LOOK)
