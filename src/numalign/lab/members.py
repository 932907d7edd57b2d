"""Starts the nodes of a lab; with real containers also adds nodes to a running lab, removes them, and loads images.

`up` starts the nodes of the specification. Tests add and remove nodes, and load images."""

import asyncio
import contextlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from numalign.kube import errors, resources
from numalign.lab import accounts, controlplane, node, processes, schedulers, state
from numalign.lab import spec as specs
from numalign.lab.containers import cgroups, images
from numalign.lab.containers.images import Contents
from numalign.lab.controlplane import Account
from numalign.lab.errors import LabError
from numalign.lab.lab import ContainerLab, Lab
from numalign.lab.node import ContainerPlan, LabNode, NodeAccess, NodePaths
from numalign.lab.processes import Part, ProgramSpec
from numalign.lab.spec import NodeSpec
from numalign.process import privatefile


def start(lab: Lab, found: Mapping[str, Path], known: Mapping[str, Account]) -> None:
    """The nodes of the specification. `known` are accounts by user."""
    if lab.containers is not None:
        _make_pause(lab.place / "pause.tar", found)
    left = [_begin(lab, spec, found, known) for spec in lab.spec.nodes]
    if lab.containers is not None:
        _load(lab, list(lab.nodes.values()))
    for each, programs in left:
        for program in programs:
            run(each, program)
    lab.say(f"{len(lab.nodes)} kubelet{'s' if len(lab.nodes) != 1 else ''} started")


Left = tuple[LabNode, list[ProgramSpec]]
"""A node, and its programs that are not yet started."""


def _begin(lab: Lab, spec: NodeSpec, found: Mapping[str, Path], known: Mapping[str, Account]) -> Left:
    """Start the runtime of a node."""
    place = NodePaths(lab.place / state.NODES / spec.name, lab.trees.of(spec.machine), spec.real)
    users = {accounts.node_user(spec.name): accounts.NODES, accounts.agent_user(spec.name): accounts.AGENTS}
    plan = None
    if lab.containers is not None:
        plan = _plan(lab.containers, spec)
        known = {user: accounts.certified(lab.containers.authority, user, group) for user, group in users.items()}
    kubelet, agent = (accounts.kubeconfig(known[user], lab.url, lab.authority) for user in users)
    port = node.PORT if plan is not None else controlplane.free_port()
    node.prepare(spec, place, NodeAccess(kubelet, agent, port), plan, found)
    made = LabNode(spec, place, {}, plan)
    lab.nodes[spec.name] = made
    programs = node.programs(spec, place, found, plan)
    # A kubelet that does not find containerd ends.
    first = 2 if plan is not None else 1
    for program in programs[:first]:
        run(made, program)
    return made, programs[first:]


def _plan(containers: ContainerLab, spec: NodeSpec) -> ContainerPlan:
    network = containers.network.add_node()
    return ContainerPlan(
        network=network,
        cgroups=cgroups.make(containers.sweeper.cgroup, spec.name),
        system=containers.system,
        serving=containers.authority.issue(accounts.node_user(spec.name), [network.address, spec.name]),
        authority=containers.authority.certificate(),
    )


def run(on: LabNode, program: ProgramSpec) -> None:
    """Start a program on a node."""
    part = Part(program, on.home)
    on.parts[program.name] = part
    part.start()


def _make_pause(file: Path, found: Mapping[str, Path]) -> None:
    contents = Contents(name=images.PAUSE, entrypoint=("/pause",), programs={"pause": found["pause"].read_bytes()})
    privatefile.write(file, images.archive(contents))


def _load(lab: Lab, nodes: Sequence[LabNode]) -> None:
    """The image of the runtime, and those that were loaded before."""
    assert lab.containers is not None
    runtimes = [each.runtime for each in nodes]
    images.until_served(runtimes)
    for path, name in ((lab.place / "pause.tar", images.PAUSE), *lab.containers.loaded):
        images.load(path, name, runtimes, lab.containers.ctr)


async def load(lab: Lab, path: Path, name: str = "") -> str:
    """Load an image archive into every node, also those that come later; its name."""
    containers = _required(lab)
    wanted = images.wanted_name(path, name)
    runtimes = [each.runtime for each in lab.nodes.values()]
    await asyncio.to_thread(images.load, path, wanted, runtimes, containers.ctr)
    containers.loaded.append((path, wanted))
    return wanted


async def add(lab: Lab, spec: NodeSpec) -> LabNode:
    """Start one more node; it is Ready some seconds later."""
    containers = _required(lab)
    specs.check(lab.spec.with_nodes([*(each.spec for each in lab.nodes.values()), spec]))
    async with lab.client() as client:
        await accounts.grant_node(client, spec.name)
    made, programs = _begin(lab, spec, containers.found, {})
    await asyncio.to_thread(_load, lab, [made])
    # Not in that thread: programs end with the one that starts them.
    for program in (*programs, *node.publishers(lab.spec, made, containers.found, lab.kubeconfig)):
        run(made, program)
    lab.announce()
    return made


async def remove(lab: Lab, name: str) -> None:
    """End a node and delete its Node object, as for a machine that is switched off for good."""
    containers = _required(lab)
    gone = lab.nodes.pop(name)
    assert gone.containers is not None
    processes.end_all(gone.parts.values())
    await asyncio.to_thread(cgroups.sweep, f"{containers.sweeper.cgroup}/{name}")
    containers.network.remove_node(gone.containers.network)
    shutil.rmtree(gone.place.folder, ignore_errors=True)
    async with lab.client() as client:
        with contextlib.suppress(errors.NotFound):
            await client.delete(resources.NODES.at(name))
    proxy = lab.parts[schedulers.PROXY]
    if lab.nodes:
        proxy.program = schedulers.proxy_of(next(iter(lab.nodes)), proxy.program)
        proxy.restart()
    lab.announce()


def _required(lab: Lab) -> ContainerLab:
    if lab.containers is None:
        raise LabError(
            f"lab {lab.spec.name} runs no containers; `numalign lab up --runtime containerd` starts one that does"
        )
    return lab.containers
