"""Starts the parts of a lab: builds programs, starts the API server, creates accounts, starts nodes.

`up` calls `start`, which returns when every node is Ready and has a report if it has a publisher. If a program fails,
LabError contains the end of its log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from numalign.lab import accounts, binaries, catalogue, controlplane, granting, node, schedulers, settling, state
from numalign.lab.controlplane import Account, Plan, Programs
from numalign.lab.labs import Lab
from numalign.lab.node import Access, LabNode, Place, Trees
from numalign.lab.parts import Part, Program

ALWAYS: Final = ("etcd", "kube-apiserver", "kubelet", "fakecri", "kubectl")
# The server refuses to advertise a loopback address.
ON_LOOPBACK: Final = ("--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none")
# Without controllers, no program creates service accounts or removes the initial taint of a new node.
ALONE: Final = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
AS_ANYWHERE: Final = "--enable-admission-plugins=NodeRestriction"
LOOK: Final = 0.1


async def start(lab: Lab) -> None:
    found = _built(lab)
    known = accounts.every(each.name for each in lab.spec.nodes)
    plan = await _start_server(lab, found, known)
    kubeconfigs = _write_kubeconfigs(lab, plan, known)
    async with lab.client() as client:
        await granting.grant(client, (each.name for each in lab.spec.nodes))
    # Before the publishers start: one that does not find the CRD retries slowly.
    await settling.define_reports(lab)
    programs = schedulers.programs(lab.spec, plan, found, kubeconfigs)
    _start_beside(lab, [each for each in programs if each.name != schedulers.REFERENCE_PROGRAM])
    _start_nodes(lab, found, {user: accounts.kubeconfig(each, lab.url, plan.authority) for user, each in known.items()})
    lab.announce()
    await settling.until_ready(lab)
    _start_publishers(lab, found)
    if lab.spec.controllers:
        await settling.until_pods_can_be(lab)
    if lab.spec.scheduler:
        await settling.until_scheduled(lab)
    if any(map(lab.spec.reporters, lab.spec.nodes)):
        await settling.until_reported(lab)
    # The reference scheduler lists reports once, at start, and never learns of reports that appear later.
    _start_beside(lab, [each for each in programs if each.name == schedulers.REFERENCE_PROGRAM])
    lab.announce()


def _built(lab: Lab) -> dict[str, Path]:
    reporters = {reporter for each in lab.spec.nodes for reporter in lab.spec.reporters(each)}
    names = [*ALWAYS, *schedulers.binaries(lab.spec), *(["nfd-topology-updater"] if "nfd" in reporters else [])]
    wanted = catalogue.chosen(names)
    built = binaries.build(wanted, lambda each: lab.say(f"building {each.name}: about {each.minutes:.0f} min, once"))
    found = {each.binary.name: each.path for each in built}
    lab.tools = found["kubectl"].parent
    return found


async def _start_server(lab: Lab, found: Mapping[str, Path], known: Mapping[str, Account]) -> Plan:
    plan = Plan(
        folder=lab.place / state.CONTROL,
        etcd_port=controlplane.free_port(),
        peer_port=controlplane.free_port(),
        port=controlplane.free_port(),
        authorization="Node,RBAC",
        flags=(*ON_LOOPBACK, AS_ANYWHERE if lab.spec.controllers else ALONE),
    )
    controlplane.prepare(plan, known.values())
    for program in controlplane.programs_of(plan, Programs(found["etcd"], found["kube-apiserver"])):
        lab.parts[program.name] = _started(program)
    lab.url = f"https://127.0.0.1:{plan.port}"
    token, until = known[accounts.ADMIN].token, time.monotonic() + controlplane.SECONDS_TO_START
    while not await asyncio.to_thread(controlplane.is_ready, plan.port, token):
        controlplane.require_start(lab.parts.values(), until)
        await asyncio.sleep(LOOK)
    lab.say(f"API server ready at {lab.url}")
    return plan


def _write_kubeconfigs(lab: Lab, plan: Plan, known: Mapping[str, Account]) -> dict[str, Path]:
    """The administrator's kubeconfig in the lab's folder, those of components beside the server."""
    files = {accounts.ADMIN: lab.kubeconfig}
    beside = (*accounts.COMPONENTS, accounts.SCHEDULER, accounts.COLLECTOR)
    files |= {user: plan.folder / f"{user.rpartition(':')[2]}.kubeconfig" for user in beside}
    return {
        user: accounts.write(accounts.kubeconfig(known[user], lab.url, plan.authority), file)
        for user, file in files.items()
    }


def _start_nodes(lab: Lab, found: dict[str, Path], logins: Mapping[str, dict[str, object]]) -> None:
    trees = Trees(lab.place / "machines")
    for spec in lab.spec.nodes:
        place = Place(lab.place / state.NODES / spec.name, trees.of(spec.machine))
        kubelet, agent = logins[accounts.node(spec.name)], logins[accounts.agent(spec.name)]
        node.prepare(spec, place, Access(kubelet, agent, controlplane.free_port()))
        programs = node.programs(spec, place, found)
        lab.nodes[spec.name] = LabNode(spec, place, {each.name: _started(each) for each in programs})
    lab.say(f"{len(lab.nodes)} kubelet{'s' if len(lab.nodes) != 1 else ''} started")


def _start_beside(lab: Lab, programs: list[Program]) -> None:
    lab.parts |= {each.name: _started(each) for each in programs}


def _start_publishers(lab: Lab, found: Mapping[str, Path]) -> None:
    for each in lab.nodes.values():
        each.parts |= {
            program.name: _started(program) for program in node.publishers(lab.spec, each, found, lab.kubeconfig)
        }


def _started(program: Program) -> Part:
    part = Part(program)
    part.start()
    return part
