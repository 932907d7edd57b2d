"""Takes an installation out of a cluster, in the reverse order of its creation, and makes sure that it is gone.

Workloads go first and in the foreground: their pods end while their rights still exist, so a scheduler can release its
Lease. Only objects that the deployer applied are deleted. The definition of the reports stays unless it is asked for,
because its deletion deletes the reports of all publishers. The inventory goes last, so a second run continues an
interrupted one."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from numalign.api.decode import yamltext
from numalign.api.errors import BadObject
from numalign.api.schedulerconfig.configuration import STOCK_LEASE
from numalign.deploy.apply import inventory, objects, ownership, waiting
from numalign.deploy.apply.inventory import Installation, Inventory
from numalign.deploy.apply.objects import Ref, Tree
from numalign.deploy.apply.server import AccessQuestion, Server
from numalign.deploy.apply.waiting import Say
from numalign.kube import errors

STILL_THERE: Final = "is still there; a finalizer may hold it"
SHARED: Final = "kept: its deletion would delete the reports of all nodes; --purge-crds deletes it"
CONTENT: Final = (
    ("v1", "Pod"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("coordination.k8s.io/v1", "Lease"),
)
"""Kinds that are looked for in a namespace before it is deleted."""
IN_EVERY_NAMESPACE: Final = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
SCHEDULER_CONFIG: Final = "KubeSchedulerConfiguration"


class Removal(Struct, frozen=True):
    """What becomes of an object: removed, kept, or still there."""

    action: str
    object: Ref
    why: str = ""


class RemovalPlan(Struct, frozen=True):
    installation: Installation
    known: Inventory
    live: dict[Ref, Tree]
    """What exists, in the order of removal."""
    kept: tuple[Removal, ...]


def why_kept(which: Ref, tree: Tree, manager: str, *, purge: bool = False) -> str:
    """Why this object is not deleted; empty where it is."""
    if which.kind == objects.CRD and not purge:
        return SHARED
    if which.kind == objects.NAMESPACE:
        created = objects.at(tree, "metadata", "annotations", ownership.CREATED) == manager
        return "" if created else "kept: it was there before"
    if which.kind == "Lease" or ownership.is_ours(tree, manager):
        return ""
    return f"kept: it belongs to {ownership.owner(tree)} now"


async def plan_for(server: Server, installation: Installation, *, purge: bool) -> RemovalPlan:
    known = await inventory.read(server, installation)
    # The namespace outlives the inventory that is in it.
    room = Ref("v1", objects.NAMESPACE, installation.namespace)
    refs = objects.backwards({*known.refs, room})
    await server.learn(each.api_version for each in refs)
    found = {which: tree for which, tree in zip(refs, await server.all(refs, server.get), strict=True) if tree}
    if room in found and room not in known.refs and why_kept(room, found[room], server.manager):
        del found[room]
    found |= await _leases(server, found)
    kept = {which: why_kept(which, tree, server.manager, purge=purge) for which, tree in found.items()}
    live = {which: found[which] for which in objects.backwards(found) if not kept[which]}
    return RemovalPlan(
        installation, known, live, tuple(Removal("kept", each, why) for each, why in kept.items() if why)
    )


async def _leases(server: Server, found: dict[Ref, Tree]) -> dict[Ref, Tree]:
    """The Leases of our schedulers, which no set contains: a scheduler makes its own."""
    named = [lease for tree in found.values() if tree["kind"] == "ConfigMap" for lease in leases(tree)]
    live = await server.all(named, server.get)
    return {which: tree for which, tree in zip(named, live, strict=True) if tree}


def leases(configmap: Tree) -> list[Ref]:
    """The Leases that the scheduler configurations of a ConfigMap name, but for kube-scheduler's: that one is taken
    again by kube-scheduler."""
    found = []
    for text in (configmap.get("data") or {}).values():
        if SCHEDULER_CONFIG not in text:
            continue
        try:
            documents = yamltext.documents(text, "scheduler configuration")
        except BadObject:
            continue
        elections = [objects.at(each.value, "leaderElection") or {} for each in documents]
        found += [
            Ref("coordination.k8s.io/v1", "Lease", each["resourceName"], each["resourceNamespace"])
            for each in elections
            if each.get("resourceNamespace") and each.get("resourceName") not in (None, "", STOCK_LEASE)
        ]
    return found


async def check(server: Server, plan: RemovalPlan) -> list[str]:
    """The rights that the user lacks, as sentences."""
    needed = dict.fromkeys(inventory.rights(plan.installation))
    for which in plan.live:
        target = server.target(which)
        needed |= {
            AccessQuestion(verb, target.resource.group, target.resource.plural, target.namespace): None
            for verb in ("get", "delete")
        }
    allowed = await server.all(needed, server.may)
    return [
        f"you may not {right}; ask an administrator for it" for right, ok in zip(needed, allowed, strict=True) if not ok
    ]


async def perform(server: Server, plan: RemovalPlan, seconds: float, say: Say) -> list[Removal]:
    """Deletes kind by kind and waits for each; what remains is `still there`, and stays in the inventory."""
    done = [*plan.kept]
    for each in plan.kept:
        say(line(each))
    rooms = {which: tree for which, tree in plan.live.items() if which.kind == objects.NAMESPACE}
    others = {which: tree for which, tree in plan.live.items() if which not in rooms}
    left: list[Ref] = []
    for kind in dict.fromkeys(which.kind for which in others):
        group = {which: tree["metadata"]["uid"] for which, tree in others.items() if which.kind == kind}
        left += await _deleted(server, group, seconds, done, say)
    if left:
        await inventory.write(server, plan.installation, plan.known, [*left, *rooms])
        return done
    await _forgotten(server, plan.installation, seconds)
    for which, tree in rooms.items():
        why = await _occupied(server, which.name)
        if why:
            done.append(Removal("kept", which, why))
            say(line(done[-1]))
        else:
            await _deleted(server, {which: tree["metadata"]["uid"]}, seconds, done, say)
    return done


async def _deleted(server: Server, uids: dict[Ref, str], seconds: float, done: list[Removal], say: Say) -> list[Ref]:
    for which, uid in uids.items():
        await _delete(server, which, uid)
    left = await waiting.gone(server, uids, seconds)
    for which in uids:
        done.append(Removal("still there", which, STILL_THERE) if which in left else Removal("removed", which))
        say(line(done[-1]))
    return left


async def _delete(server: Server, which: Ref, uid: str) -> None:
    try:
        await server.delete(which, uid)
    except errors.NotFound:
        pass
    except errors.Conflict:
        # The object of this uid is gone, and another one has its name. `gone` sees it by the uid.
        pass


async def _forgotten(server: Server, installation: Installation, seconds: float) -> None:
    which = installation.inventory
    found = await server.get(which)
    if found is not None:
        await _delete(server, which, found["metadata"]["uid"])
        await waiting.gone(server, {which: found["metadata"]["uid"]}, seconds)


async def _occupied(server: Server, namespace: str) -> str:
    """Why a namespace that we made is not deleted: something else is in it."""
    for api_version, kind in CONTENT:
        try:
            items = await server.every(api_version, kind, namespace)
        except errors.Forbidden:
            return f"kept: you may not list its {kind}s, so it may hold something else"
        names = [
            each["metadata"]["name"] for each in items if (kind, each["metadata"]["name"]) not in IN_EVERY_NAMESPACE
        ]
        if names:
            return f"kept: it holds {kind} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    return ""


async def pruned(server: Server, surplus: Sequence[Ref], seconds: float) -> list[tuple[Ref, str]]:
    """Deletes what left a set; with each object why it is kept, or that it is still there."""
    found = await server.all(surplus, server.get)
    live = {which: tree for which, tree in zip(surplus, found, strict=True) if tree}
    kept = {which: why_kept(which, tree, server.manager) for which, tree in live.items()}
    uids = {which: tree["metadata"]["uid"] for which, tree in live.items() if not kept[which]}
    for which, uid in uids.items():
        await _delete(server, which, uid)
    left = await waiting.gone(server, uids, seconds)
    return [(which, kept[which] or (STILL_THERE if which in left else "")) for which in live]


def line(removal: Removal) -> str:
    why = removal.why.removeprefix("kept: ")
    return f"{removal.object}: {removal.action}" + (f" ({why})" if why else "")
