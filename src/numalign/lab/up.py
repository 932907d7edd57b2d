"""Starts a lab from its specification, waits until it is ready, and removes it again.

`numalign lab up`, campaigns and tests enter `up(spec)`. It returns when every node is Ready and has a report if it has
a publisher. The calling process is the parent of every program; they end with it. Programs that end unexpectedly are
restarted, as by an init system. If a program fails to start, LabError contains the end of its log. Leaving the block
removes the lab's folder; after a failed start the folder stays for its logs."""

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec import structs

from numalign.api.objects.node import Node
from numalign.api.objects.pod import ResourceList
from numalign.api.schedulerconfig.configuration import LeaderElection
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.resources import Named, Target
from numalign.kubelet.machine.machine import Machine
from numalign.lab import accounts, build, controlplane, members, node, preflight, processes, schedulers, state
from numalign.lab import spec as specs
from numalign.lab.accounts import AnyObject
from numalign.lab.containers import runtime
from numalign.lab.containers.cgroups import Sweeper
from numalign.lab.containers.network import LabNetwork
from numalign.lab.controlplane import Account, ServerBinaries, ServerPlan
from numalign.lab.errors import LabError
from numalign.lab.lab import ContainerLab, Lab, Say
from numalign.lab.processes import Part, ProgramSpec
from numalign.lab.spec import LabSpec
from numalign.scheduler import settings
from numalign.simulator.nodes.publisher import crd

T = TypeVar("T", bound=Named)
PATIENCE: Final = 120.0
PER_NODE: Final = 15.0
"""Further seconds per node: a start takes two seconds of CPU, and there may be one core."""
POLL: Final = 0.25


DEFINITIONS: Final = resources.of(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", AnyObject
)
ACCOUNT: Final = resources.of("v1", "serviceaccounts", "ServiceAccount", AnyObject).at("default", "default")
TRUST: Final = resources.of("v1", "configmaps", "ConfigMap", AnyObject).at("kube-root-ca.crt", "default")


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
    election = _election(lab.spec)
    lease = resources.LEASES.at(election.resource_name, election.resource_namespace)
    async with lab.client() as client:
        await _until(lab, partial(_has, client, lease), "our scheduler does not lead")
    lab.say("the numalign scheduler holds its lease")


def _election(spec: LabSpec) -> LeaderElection:
    """How numalign's scheduler leads: by the lease of kube-scheduler where it takes its place."""
    return settings.read(schedulers.configuration(spec), "lab").leader_election


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
        await asyncio.sleep(POLL)


ALWAYS: Final = ("etcd", "kube-apiserver", "kubelet", "kubectl")
WITHOUT_CONTAINERS: Final = ("fakecri",)
WITH_CONTAINERS: Final = ("containerd", "containerd-shim-runc-v2", "ctr", "pause", "labrunc")
# The server refuses to advertise a loopback address.
ON_LOOPBACK: Final = ("--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none")
# Without controllers, no program creates service accounts or removes the initial taint of a new node.
ALONE: Final = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
AS_ANYWHERE: Final = "--enable-admission-plugins=NodeRestriction"
SERVER_POLL: Final = 0.1
SERVER_PORT: Final = 6443
"""In a lab's own network namespace, where nothing else listens."""
KUBELETS: Final = "kubelet-client"


async def start(lab: Lab) -> None:
    found = _built(lab)
    # Nodes with real containers can be added later, so they have certificates instead of tokens.
    known = accounts.every(() if lab.spec.runs_containers else (each.name for each in lab.spec.nodes))
    plan = await _start_server(lab, found, known)
    kubeconfigs = _write_kubeconfigs(lab, plan, known)
    async with lab.client() as client:
        await accounts.grant(client, lab.spec, _election(lab.spec))
    if lab.spec.defines_reports:
        # Before the publishers start: one that does not find the CRD retries slowly.
        await define_reports(lab)
    programs = schedulers.programs(lab.spec, plan, found, kubeconfigs)
    _start_beside(lab, [each for each in programs if each.name != schedulers.REFERENCE_PROGRAM])
    members.start(lab, found, known)
    lab.announce()
    await until_ready(lab)
    _start_publishers(lab, found)
    if lab.spec.controllers:
        await until_pods_can_be(lab)
    if lab.spec.runs_scheduler:
        await until_scheduled(lab)
    if any(map(lab.spec.reporters, lab.spec.nodes)):
        await until_reported(lab)
    # The reference scheduler lists reports once, at start, and never learns of reports that appear later.
    _start_beside(lab, [each for each in programs if each.name == schedulers.REFERENCE_PROGRAM])
    lab.announce()


def _built(lab: Lab) -> dict[str, Path]:
    reporters = {reporter for each in lab.spec.nodes for reporter in lab.spec.reporters(each)}
    runtime_names = WITH_CONTAINERS if lab.spec.runs_containers else WITHOUT_CONTAINERS
    names = [
        *ALWAYS,
        *runtime_names,
        *schedulers.binaries(lab.spec),
        *(["nfd-topology-updater"] if "nfd" in reporters else []),
    ]
    wanted = build.chosen(names)
    built = build.build(wanted, lambda each: lab.say(f"building {each.name}: about {each.minutes:.0f} min, once"))
    found = {each.binary.name: each.path for each in built}
    lab.tools = found["kubectl"].parent
    return found


async def _start_server(lab: Lab, found: Mapping[str, Path], known: Mapping[str, Account]) -> ServerPlan:
    plan = ServerPlan(
        folder=lab.place / state.CONTROL,
        etcd_port=controlplane.free_port(),
        peer_port=controlplane.free_port(),
        port=controlplane.free_port(),
        authorization="Node,RBAC",
        flags=(*ON_LOOPBACK, AS_ANYWHERE if lab.spec.controllers else ALONE),
    )
    if lab.spec.runs_containers:
        plan = _with_containers(lab, plan, found, known)
    else:
        controlplane.prepare(plan, known.values())
    lab.url, lab.authority = plan.url, plan.authority
    for program in controlplane.programs_of(plan, ServerBinaries(found["etcd"], found["kube-apiserver"])):
        lab.parts[program.name] = _started(program)
    token, until = known[accounts.ADMIN].token, time.monotonic() + controlplane.SECONDS_TO_START
    while not await asyncio.to_thread(controlplane.is_ready, plan, token):
        controlplane.require_start(lab.parts.values(), until)
        await asyncio.sleep(SERVER_POLL)
    lab.say(f"API server ready at {lab.url}")
    return plan


def _with_containers(lab: Lab, plan: ServerPlan, found: Mapping[str, Path], known: Mapping[str, Account]) -> ServerPlan:
    """Make the lab's network and prepare a server in it, which knows nodes by certificates and may ask kubelets for
    logs."""
    system = runtime.system()
    sweeper = Sweeper(lab.spec.name)
    try:
        network = LabNetwork(system.ip, controlplane.SERVICE_ADDRESSES)
    except BaseException:
        sweeper.finish()
        raise
    flags = (
        f"--advertise-address={network.address}",
        AS_ANYWHERE if lab.spec.controllers else ALONE,
        f"--client-ca-file={plan.authority}",
        f"--kubelet-certificate-authority={plan.authority}",
        f"--kubelet-client-certificate={plan.certificate(KUBELETS)}",
        f"--kubelet-client-key={plan.private(KUBELETS)}",
        "--kubelet-preferred-address-types=InternalIP",
    )
    inside = structs.replace(
        plan, port=SERVER_PORT, bind="0.0.0.0", host=network.address, network=network.path, flags=flags
    )
    authority = controlplane.prepare(inside, known.values())
    controlplane.keep(inside, KUBELETS, authority.issue_client(accounts.KUBELET_CLIENT))
    lab.containers = ContainerLab(network, sweeper, system, authority, found)
    return inside


def _write_kubeconfigs(lab: Lab, plan: ServerPlan, known: Mapping[str, Account]) -> dict[str, Path]:
    """The administrator's kubeconfig in the lab's folder, those of components beside the server."""
    files = {accounts.ADMIN: lab.kubeconfig}
    beside = (*accounts.COMPONENTS, accounts.SCHEDULER, accounts.COLLECTOR)
    files |= {user: plan.folder / f"{user.rpartition(':')[2]}.kubeconfig" for user in beside}
    return {
        user: accounts.write(accounts.kubeconfig(known[user], lab.url, plan.authority), file)
        for user, file in files.items()
    }


def _start_beside(lab: Lab, programs: list[ProgramSpec]) -> None:
    lab.parts |= {each.name: _started(each) for each in programs}


def _start_publishers(lab: Lab, found: Mapping[str, Path]) -> None:
    for each in lab.nodes.values():
        for program in node.publishers(lab.spec, each, found, lab.kubeconfig):
            members.run(each, program)


def _started(program: ProgramSpec) -> Part:
    part = Part(program)
    part.start()
    return part


LOG: Final = logging.getLogger(__name__)
TENDED: Final = 0.5
"""Seconds between checks of the programs."""


@contextlib.asynccontextmanager
async def up(spec: LabSpec, say: Say = LOG.info) -> AsyncIterator[Lab]:
    """The lab, once its nodes are Ready. LabError or BadObject if it cannot start."""
    specs.check(spec)
    preflight.require(len(spec.nodes), spec.reporter_count, containers=spec.runs_containers)
    try:
        with state.INSTANCES.held(spec.name) as place:
            _own(place)
            _empty(place)
            async with _running(Lab(spec, place, say)) as lab:
                yield lab
    finally:
        if not state.INSTANCES.every():
            preflight.release()


@contextlib.asynccontextmanager
async def _running(lab: Lab) -> AsyncIterator[Lab]:
    try:
        await start(lab)
        tending = asyncio.create_task(_tend(lab))
        try:
            yield lab
        finally:
            tending.cancel()
            _end(lab)
            shutil.rmtree(lab.place, ignore_errors=True)
    finally:
        _end(lab)


def _end(lab: Lab) -> None:
    processes.end_all(lab.every_part())
    if lab.containers is not None:
        lab.containers.close()
        lab.containers = None


def _own(place: Path) -> None:
    """Keys and tokens are written there: no other user may read the folder, nor have created it."""
    if place.stat().st_uid != os.geteuid():
        raise LabError(f"{place} belongs to another user; remove it, or set ${state.INSTANCES.variable}")
    place.chmod(0o700)


def _empty(place: Path) -> None:
    """Remove the folders of an earlier lab of this name. The lock and the log of this start stay."""
    for left in place.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


async def _tend(lab: Lab) -> None:
    while True:
        await asyncio.sleep(TENDED)
        lab.tend()
