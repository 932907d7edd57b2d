"""Decisions and machines for tests of enforcement."""

from __future__ import annotations

from collections.abc import Mapping

from numalign.agent.enforce.messages import RuntimeContainer, Sandbox
from numalign.agent.enforce.pools import NodeCPUs
from numalign.api.attributes import directresult
from numalign.api.attributes.directresult import ContainerResult, DirectResult
from numalign.api.decode import cpuset

NODE = "node-0"
TWO_ZONES = NodeCPUs({0: cpuset.parse("0-7"), 1: cpuset.parse("8-15")}, reserved=cpuset.parse("0,8"))


def decision(uid: str, *containers: ContainerResult, node: str = NODE) -> str:
    """The text of the annotation."""
    cpus = 0
    for each in containers:
        cpus |= each.cpus
    result = DirectResult(version=1, uid=uid, node=node, containers=containers, cpuset=cpuset.text(cpus))
    return directresult.encode(result)


def own(name: str, cpus: str = "", zones: tuple[int, ...] = (), mems: str = "") -> ContainerResult:
    return ContainerResult(name=name, cpuset=cpus, zones=zones, mems=mems)


def annotated(uid: str, *containers: ContainerResult) -> Mapping[str, str]:
    return {directresult.RESULT: decision(uid, *containers)} if containers else {}


def sandbox(name: str, *containers: ContainerResult) -> Sandbox:
    uid = f"uid-{name}"
    return Sandbox(id=f"box-{name}", uid=uid, namespace="default", name=name, annotations=annotated(uid, *containers))


def made(pod: Sandbox, name: str, **fields: object) -> RuntimeContainer:
    return RuntimeContainer(id=f"{pod.name}/{name}", sandbox=pod.id, name=name, **fields)  # type: ignore[arg-type]
