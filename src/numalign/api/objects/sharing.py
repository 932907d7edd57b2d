"""Shares equal parts between pods, and between nodes, in memory.

The scheduler's informers pass every pod and node through it before they store it: clusters have tens of thousands. The
result equals the input, except for times and conditions of pods that decide nothing. Identical parts are also quick to
recognise."""

from collections import OrderedDict
from typing import Final

from msgspec import structs

from numalign.api.caches import BoundedCache, interned
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import ContainerImage, Node, NodeCondition, NodeInfo
from numalign.api.objects.pod import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)

MOST_KINDS: Final = 4096
MOST_NAMES: Final = 65_536
CONDITIONS: Final = frozenset({"PodScheduled", "DisruptionTarget"})
RESIZE: Final = "PodResize"
RUNNING: Final = ContainerState(running=ContainerRunning())

Key = tuple[str | int, ...]


class SharedPods:
    """Remembers one pod of each kind, the latest."""

    def __init__(self) -> None:
        self._latest: OrderedDict[Key, Pod] = OrderedDict()
        self._sized: BoundedCache[Key, None] = BoundedCache(MOST_KINDS)
        """Keys that need the sizes to distinguish pods: bare pods of one image may have several."""
        self._names: BoundedCache[str, str] = BoundedCache(MOST_NAMES)

    def shared(self, pod: Pod) -> Pod:
        plain = _key(pod)
        key = plain + _sizes(pod) if plain in self._sized else plain
        before = self._latest.get(key, pod)
        spec = self._spec(pod.spec, before.spec)
        if spec is pod.spec and before is not pod and key is plain:
            self._distinguish_by_size(key)
            key += _sizes(pod)
            before = self._latest.get(key, pod)
            spec = self._spec(pod.spec, before.spec)
        self._latest[key] = made = Pod(
            metadata=_meta(pod.metadata, before.metadata),
            spec=spec,
            status=_status(pod.status, before.status),
        )
        if len(self._latest) > MOST_KINDS:
            self._latest.popitem(last=False)
        return made

    def _distinguish_by_size(self, key: Key) -> None:
        self._sized.keep(key, None)
        latest = self._latest.pop(key)
        self._latest[key + _sizes(latest)] = latest

    def _spec(self, spec: PodSpec, before: PodSpec) -> PodSpec:
        """Shares everything except for the node and the volumes, which differ between pods."""
        if spec.node_name == before.node_name and spec.volumes == before.volumes:
            return before if spec == before else spec
        like = structs.replace(before, node_name=self._name(spec.node_name), volumes=spec.volumes)
        return like if like == spec else spec

    def _name(self, name: str) -> str:
        return interned(self._names, name)


class SharedNodes:
    """Remembers equal parts of nodes, above all images: each node lists up to fifty."""

    def __init__(self) -> None:
        self._images = BoundedCache[ContainerImage, ContainerImage](MOST_NAMES)
        self._lists = BoundedCache[str, tuple[ContainerImage, ...]](MOST_NAMES)
        """The latest list of each node."""
        self._conditions = BoundedCache[tuple[NodeCondition, ...], tuple[NodeCondition, ...]](MOST_NAMES)
        self._infos = BoundedCache[NodeInfo, NodeInfo](MOST_NAMES)

    def shared(self, node: Node) -> Node:
        status = node.status
        return structs.replace(
            node,
            status=structs.replace(
                status,
                images=self._image_list(node.metadata.name, status.images),
                conditions=interned(self._conditions, status.conditions),
                node_info=interned(self._infos, status.node_info),
            ),
        )

    def _image_list(self, node: str, images: tuple[ContainerImage, ...]) -> tuple[ContainerImage, ...]:
        before = self._lists.get(node)
        if before is None or before != images:
            before = self._lists.keep(node, tuple([interned(self._images, each) for each in images]))
        return before


def _key(pod: Pod) -> Key:
    meta = pod.metadata
    return meta.namespace, meta.generate_name, *[container.image for container in pod.spec.containers]


def _sizes(pod: Pod) -> Key:
    return tuple([amount.nanos for each in pod.spec.containers for amount in each.resources.requests.values()])


def _meta(meta: ObjectMeta, before: ObjectMeta) -> ObjectMeta:
    return structs.replace(
        meta,
        namespace=before.namespace,
        generate_name=before.generate_name,
        labels=before.labels if meta.labels == before.labels else meta.labels,
        owner_references=(
            before.owner_references if meta.owner_references == before.owner_references else meta.owner_references
        ),
    )


def _status(status: PodStatus, before: PodStatus) -> PodStatus:
    if not (status.conditions or status.container_statuses or status.init_container_statuses):
        return before if status == before else status
    containers = _timeless(status.container_statuses)
    inits = _timeless(status.init_container_statuses)
    return structs.replace(
        status,
        phase=before.phase if status.phase == before.phase else status.phase,
        qos_class=before.qos_class if status.qos_class == before.qos_class else status.qos_class,
        conditions=tuple([each for each in status.conditions if _decides(each)]),
        container_statuses=before.container_statuses if containers == before.container_statuses else containers,
        init_container_statuses=(before.init_container_statuses if inits == before.init_container_statuses else inits),
    )


def _decides(condition: PodCondition) -> bool:
    return condition.type in CONDITIONS or condition.type.startswith(RESIZE)


def _timeless(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    if not statuses:
        return ()
    return tuple([each if each.state.running is None else structs.replace(each, state=RUNNING) for each in statuses])
