"""The inventory: which objects an installation consists of, kept in a ConfigMap of its namespace.

`applying` writes it before it creates anything, with the old and the new objects, and again when it is done. So an
interrupted run leaves nothing that the next run or `removing` does not know. It is written with the version that was
read: two deployers at work at the same time do not overwrite each other."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from numalign.deploy.apply import objects, ownership
from numalign.deploy.apply.objects import Ref, Tree
from numalign.deploy.apply.server import AccessQuestion, Server
from numalign.kube import errors
from numalign.kube.request import Selection

OBJECTS: Final = "objects"
SUFFIX: Final = "-inventory"
COMPONENT: Final = "app.kubernetes.io/component"
COMMON: Final = (objects.NAMESPACE, objects.CRD)
"""Kinds whose objects several releases may use."""
LINE: Final = msgspec.json.Decoder(Ref)


class Installation(Struct, frozen=True):
    """A release: its name, and the namespace of its inventory and of most of its objects."""

    name: str
    namespace: str

    @property
    def inventory(self) -> Ref:
        return Ref("v1", "ConfigMap", f"{self.name}{SUFFIX}", self.namespace)


class Inventory(Struct, frozen=True):
    """`live` is the ConfigMap as it was read; None: there is none. `problems` are lines that could not be read."""

    refs: tuple[Ref, ...] = ()
    live: Tree | None = None
    problems: tuple[str, ...] = ()


class Busy(Exception):
    """Another deployer wrote the inventory in the meantime."""


async def read(server: Server, installation: Installation) -> Inventory:
    found = await server.get(installation.inventory)
    if found is None:
        return Inventory()
    refs, problems = _refs(installation, found)
    return Inventory(tuple(refs), found, tuple(problems))


def _refs(installation: Installation, found: Tree) -> tuple[list[Ref], list[str]]:
    """The objects, and lines that name none."""
    refs, problems = [], []
    for number, line in enumerate(str(objects.at(found, "data", OBJECTS) or "").splitlines(), 1):
        try:
            refs.append(LINE.decode(line))
        except (ValueError, RecursionError):
            problems.append(f"{installation.inventory}: line {number} of {OBJECTS} names no object and is skipped")
    return refs, problems


async def shared(server: Server, installation: Installation, wanted: Iterable[Ref]) -> list[str]:
    """Sentences about other releases that have some of these objects: objects without a namespace, for the most part.
    Both would write them in turn, and the removal of one would break the other."""
    identities = {each.identity for each in wanted if each.kind not in COMMON}
    labels = f"{COMPONENT}=inventory,{ownership.MANAGED_BY}={server.manager}"
    try:
        found = await server.every("v1", "ConfigMap", selection=Selection(labels=labels))
    except errors.Forbidden:
        return []
    sentences = []
    for tree in found:
        meta = tree["metadata"]
        other = Installation(meta["name"].removesuffix(SUFFIX), meta.get("namespace") or "")
        both = [each for each in _refs(other, tree)[0] if each.identity in identities]
        if other != installation and both:
            more = f" and {len(both) - 1} more objects belong" if len(both) > 1 else " belongs"
            sentences.append(
                f"{both[0]}{more} to release {other.name} in namespace {other.namespace}; give this release another "
                f"--name, or first: numalign deploy remove --name {other.name} -n {other.namespace}"
            )
    return sentences


async def write(server: Server, installation: Installation, known: Inventory, refs: Iterable[Ref]) -> Inventory:
    """The inventory with these objects; nothing is sent where it has them already."""
    wanted = tuple(sorted(set(refs), key=objects.rank))
    tree = _tree(installation, wanted, server.manager)
    if known.live is not None and _same(known.live, tree):
        return Inventory(wanted, known.live)
    try:
        if known.live is None:
            return Inventory(wanted, await server.create(tree))
        tree["metadata"]["resourceVersion"] = known.live["metadata"]["resourceVersion"]
        return Inventory(wanted, await server.update(tree))
    except errors.Conflict:
        return await _settled(server, installation, wanted)


async def _settled(server: Server, installation: Installation, wanted: Sequence[Ref]) -> Inventory:
    """After a conflict. An answer may have got lost, so that the call conflicts with its own first attempt."""
    found = await read(server, installation)
    if found.live is not None and _same(found.live, _tree(installation, wanted, server.manager)):
        return found
    raise Busy(f"{installation.inventory} was changed meanwhile; another deployer is at work: run the command again")


async def absence(server: Server, installation: Installation) -> str:
    """What to say where there is no inventory: a release of this name may have been installed by another tool."""
    words = f"{installation.name} is not installed in {installation.namespace}"
    ours = Selection(labels=f"app.kubernetes.io/name=numalign,app.kubernetes.io/instance={installation.name}")
    try:
        for kind in ("DaemonSet", "Deployment"):
            for tree in await server.every("apps/v1", kind, installation.namespace, ours):
                # Items of a list do not name their kind.
                which = Ref("apps/v1", kind, tree["metadata"]["name"], installation.namespace)
                return f"{words} by this command: {which} belongs to {ownership.owner(tree)}"
    except errors.Forbidden:
        return words
    return words


def rights(installation: Installation) -> list[AccessQuestion]:
    return [
        AccessQuestion(verb, "", "configmaps", installation.namespace) for verb in ("get", "create", "update", "delete")
    ]


def _tree(installation: Installation, refs: Sequence[Ref], manager: str) -> Tree:
    labels = {
        "app.kubernetes.io/name": "numalign",
        "app.kubernetes.io/instance": installation.name,
        COMPONENT: "inventory",
        ownership.MANAGED_BY: manager,
    }
    which = installation.inventory
    lines = [msgspec.json.encode(each).decode() for each in refs]
    return {
        "apiVersion": which.api_version,
        "kind": which.kind,
        "metadata": {"name": which.name, "namespace": which.namespace, "labels": labels},
        "data": {OBJECTS: "".join(f"{line}\n" for line in lines)},
    }


def _same(live: Tree, wanted: Tree) -> bool:
    labels = objects.at(live, "metadata", "labels")
    return bool(live.get("data") == wanted["data"] and labels == wanted["metadata"]["labels"])
