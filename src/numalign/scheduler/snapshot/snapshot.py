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
from numalign.scheduler.record.entries import discreet

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
"""The resources of a snapshot, in the order in which they are applied."""


class AssumedPod(Wire, frozen=True):
    """A decision whose binding the watch has not shown yet."""

    uid: str
    node: str
    is_bound: bool = False
    score: int = 0


class NominatedPod(Wire, frozen=True):
    """A nominated pod, and the victims that must end first."""

    uid: str
    node: str
    victims: tuple[str, ...] = ()
    pod: Pod | None = None
    """If it stands for a room that the node holds: no object shows it."""


class KeptOff(Wire, frozen=True):
    """A record of the storm guard: pods of this shape avoid the node, because its kubelet rejected one."""

    pod: Pod
    node: str
    until: float
    last: float
    count: int = 1
    changed: bool = False
    end_reported: bool = False
    reason: str = ""
    owner: str = ""
    """The uid of the controller whose pods avoid the node; empty: all pods of the shape."""


class SchedulerState(Wire, frozen=True):
    """State that only the scheduler has."""

    rows: tuple[str, ...] = ()
    """Nodes in row order, which decides ties; empty: a vacant row, which the next new node may get."""
    vacant_rows: tuple[int, ...] = ()
    """The vacant rows; the last one is used next."""
    start: int = 0
    """The row at which the next search begins, if searches do not cover all nodes."""
    assumed: tuple[AssumedPod, ...] = ()
    nominated: tuple[NominatedPod, ...] = ()
    """Assumed pods in the order of their decisions."""
    kept_off: tuple[KeptOff, ...] = ()
    ledger: LedgerDump = LedgerDump()
    deleted_reports: tuple[NodeResourceTopology, ...] = ()
    """The last reports of nodes whose report objects were deleted, and that are still in force."""
    former_reports: tuple[str, ...] = ()
    """Nodes whose Node is gone, or is another one now, since their report was written."""
    once_reported: tuple[str, ...] | None = None
    """Nodes that had a report, as pods on them show; None: the snapshot is of a program that did not write them."""
    ready_since: dict[str, float] = field(default_factory=dict)
    """By node without a report: when the scheduler first saw it Ready."""
    volumes: tuple[PersistentVolume, ...] = ()
    """Volumes and claims as planned writes will leave them."""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()
    """The latest decisions."""
    queue: dict[str, Any] = field(default_factory=dict)
    """The queue as text, for readers only."""


class Snapshot(Struct, frozen=True, kw_only=True):
    objects: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Objects by plural resource name; nodes in row order, if it is known."""
    config: Configuration = field(default_factory=main.defaults)
    state: SchedulerState | None = None
    """None: the snapshot was not taken by a scheduler."""
    wall: str = ""
    """The time of the snapshot as a timestamp."""
    now: float = 0.0
    """The same on the scheduler's monotonic clock, which all times in `state` use."""
    missing: tuple[str, ...] = ()
    """Resources that could not be listed, each with the reason."""
    left_out: tuple[str, ...] = ()
    """Objects that could not be decoded, each with the reason."""

    def every(self, resource: Resource[T]) -> tuple[T, ...]:
        return self.objects.get(resource.plural, ())

    def pod(self, name: str) -> Pod | None:
        """The pod of this namespace/name."""
        return next((pod for pod in self.every(PODS) if pod.metadata.full_name == name), None)


NEEDED = (NODES, PODS)
"""Required resources: a failure to list one is raised."""
UNMISSED = (watching.DEVICE_CLASSES,)
"""Optional resources: a cluster that does not serve them has no pods that need them."""


async def taken(client: Client, config: Configuration | None = None) -> Snapshot:
    """Lists the objects. KubeError if the API server cannot be reached or does not allow to list nodes and pods."""
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
    """The snapshot with one node, its report and its pods. The scheduler's state is kept whole."""
    if taken.state is not None:
        return taken
    objects = {
        **taken.objects,
        NODES.plural: tuple(each for each in taken.every(NODES) if each.metadata.name == node),
        TOPOLOGIES.plural: tuple(each for each in taken.every(TOPOLOGIES) if each.metadata.name == node),
        PODS.plural: tuple(each for each in taken.every(PODS) if each.spec.node_name == node),
    }
    return structs.replace(taken, objects=objects)
