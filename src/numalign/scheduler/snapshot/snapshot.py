"""Everything that a decision depends on at one moment: the cluster's objects, and what only a scheduler knows.

`taken` lists the objects from an API server; what the server does not have or does not allow is reported as missing.
`dump` takes a snapshot of a running scheduler, `files` reads and writes it, `restore` builds a cluster from it.
`narrowed` keeps one node, for commands about that node only. Objects keep only the fields that decisions read: no
environments, no secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, field, structs

from numalign.api.decode.structs import Wire
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.resources import NODES, PODS, TOPOLOGIES, Named, Resource
from numalign.placement.dump import LedgerDump
from numalign.scheduler import main
from numalign.scheduler.bind.binder import CLAIMS, VOLUMES
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.intake import watching

T = TypeVar("T", bound=Named)

SCHEMA: Final = 1
RESOURCES: Final[tuple[Resource[Any], ...]] = (
    NODES,
    TOPOLOGIES,
    PODS,
    watching.NAMESPACES,
    watching.SERVICES,
    watching.REPLICATION_CONTROLLERS,
    watching.REPLICA_SETS,
    watching.STATEFUL_SETS,
    watching.BUDGETS,
    watching.CLASSES,
    VOLUMES,
    CLAIMS,
    watching.CSI_NODES,
    watching.CSI_DRIVERS,
    watching.CAPACITIES,
    watching.ATTACHMENTS,
    watching.DEVICE_CLASSES,
)
"""What a snapshot has, in the order in which it is taken in."""
KEPT: Final = ("numalign.io", "kubernetes.io", "k8s.io", "k8stopoawareschedwg")
"""Domains of annotations that decisions read. Other annotations may contain anything."""
APPLIED: Final = "kubectl.kubernetes.io"
"""Except for this one, which repeats the object, with everything that was left out of it."""


class AssumedPod(Wire, frozen=True):
    """A decision whose binding was not seen yet."""

    uid: str
    node: str
    is_bound: bool = False
    score: int = 0


class Nominated(Wire, frozen=True):
    """A pod for which a node was picked, and who has to leave there first."""

    uid: str
    node: str
    victims: tuple[str, ...] = ()


class KeptOff(Wire, frozen=True):
    """A node that pods of this pod's shape stay away from, because it turned one away; all, or those of an owner."""

    pod: Pod
    node: str
    until: float
    last: float
    count: int = 1
    changed: bool = False
    told: bool = False
    reason: str = ""
    owner: str = ""
    """The uid of the controller whose replicas they are; empty: all pods of the shape."""


class SchedulerState(Wire, frozen=True):
    """What only a scheduler knows."""

    rows: tuple[str, ...] = ()
    """Nodes in the order of their rows, which is the order in which equals are drawn from."""
    start: int = 0
    """Where the next search for nodes begins, if it is not for all."""
    assumed: tuple[AssumedPod, ...] = ()
    nominated: tuple[Nominated, ...] = ()
    """In the order in which they were."""
    kept_off: tuple[KeptOff, ...] = ()
    ledger: LedgerDump = LedgerDump()
    deleted_reports: tuple[NodeResourceTopology, ...] = ()
    """The last reports of nodes whose report objects were deleted, and that are still in force."""
    volumes: tuple[PersistentVolume, ...] = ()
    """As they will be once what was decided is written."""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()
    """The latest ones."""
    queue: dict[str, Any] = field(default_factory=dict)
    """For people: who waits, and why."""


class Snapshot(Struct, frozen=True, kw_only=True):
    objects: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """By plural; nodes in the order of their rows, where that is known."""
    config: Configuration = field(default_factory=main.defaults)
    state: SchedulerState | None = None
    """None: it was not taken by a scheduler."""
    wall: str = ""
    """When it was taken, as time stamps are written."""
    now: float = 0.0
    """The same by the scheduler's own clock, which all times in `state` are of."""
    missing: tuple[str, ...] = ()
    """Resources that could not be had, each with the reason."""
    left_out: tuple[str, ...] = ()
    """Objects that nothing could be made of, each with the reason."""

    def every(self, resource: Resource[T]) -> tuple[T, ...]:
        return self.objects.get(resource.plural, ())

    def pod(self, name: str) -> Pod | None:
        """By namespace/name."""
        return next((pod for pod in self.every(PODS) if pod.metadata.full_name == name), None)


def discreet(thing: Any) -> Any:
    """The object without annotations that decisions do not read."""
    meta: ObjectMeta = thing.metadata
    if not meta.annotations or all(map(_is_kept, meta.annotations)):
        return thing
    kept = {name: value for name, value in meta.annotations.items() if _is_kept(name)}
    return structs.replace(thing, metadata=structs.replace(meta, annotations=kept))


def _is_kept(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    return domain != APPLIED and any(domain == each or domain.endswith(f".{each}") for each in KEPT)


NEEDED = (NODES, PODS)
"""Without these there is nothing to say: what is wrong with them is raised."""
UNMISSED = (watching.DEVICE_CLASSES,)
"""A cluster that does not know these has no pods that they would matter to."""


async def taken(client: Client, config: Configuration | None = None) -> Snapshot:
    """KubeError where the server cannot be reached, or does not let us see nodes and pods."""
    objects: dict[str, tuple[Any, ...]] = {}
    missing, left_out = list[str](), list[str]()
    for resource in RESOURCES:
        try:
            found = await client.every(resource.everywhere())
        except (errors.NotFound, errors.Forbidden) as problem:
            if resource in NEEDED:
                raise
            if resource not in UNMISSED or isinstance(problem, errors.Forbidden):
                missing.append(_why(resource, problem))
            continue
        left_out += [str(each.problem) for each in found if isinstance(each, Unreadable)]
        objects[resource.plural] = tuple(discreet(each) for each in found if not isinstance(each, Unreadable))
    clock = client.sender.clock
    return Snapshot(
        objects=objects,
        config=config or main.defaults(),
        wall=clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ"),
        now=clock.now(),
        missing=tuple(missing),
        left_out=tuple(left_out),
    )


def _why(resource: Resource[Any], problem: errors.Refusal) -> str:
    is_unknown = isinstance(problem, errors.NotFound)
    return f"{resource.plural}: " + ("the cluster has no such resource" if is_unknown else "not allowed to list them")


def narrowed(taken: Snapshot, node: str) -> Snapshot:
    """The node, its report and its pods. What a scheduler knows belongs together, and is left as it is."""
    if taken.state is not None:
        return taken
    objects = {
        **taken.objects,
        NODES.plural: tuple(each for each in taken.every(NODES) if each.metadata.name == node),
        TOPOLOGIES.plural: tuple(each for each in taken.every(TOPOLOGIES) if each.metadata.name == node),
        PODS.plural: tuple(each for each in taken.every(PODS) if each.spec.node_name == node),
    }
    return structs.replace(taken, objects=objects)
