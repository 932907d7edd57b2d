"""Shapes: pods reduced to what decides their placement.

Ten thousand replicas are one shape. `intern` finds or makes it; verdicts, scores and reasons are kept per shape.
Names, labels and images are not part of it; container names are taken from the pod itself when something is said.
Where every pod has sizes of its own, shapes come without end: `retain` forgets those that are not in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container as Collected
from collections.abc import Mapping
from itertools import count
from typing import Final

from msgspec import Struct, structs

from numalign.api.attributes import directspec
from numalign.api.attributes import intent as intents
from numalign.api.attributes.intent import Intent
from numalign.api.caches import BoundedCache
from numalign.api.errors import BadObject
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Container, Pod, ResourceList, ResourceRequirements
from numalign.api.objects.qos import QoS
from numalign.kubelet import demand as demands
from numalign.kubelet.demand import PodDemand, Reading

Key = tuple[object, ...]
Place = tuple[int, str, tuple[str | None, ...]]
MOST_REMEMBERED: Final = 1 << 16
POD_NOT_UNDERSTOOD: Final = "pod-not-understood"


class Shape(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """One kind of pod. `number` is its place in every per-shape table."""

    number: int
    pod: Pod
    """A pod of this shape."""
    qos: QoS
    intent: Intent
    totals: Mapping[str, int]
    """What the pod comes to on a node: cpu in thousandths, everything else in units."""

    def demand(self, reading: Reading) -> PodDemand:
        """What it asks of a kubelet that reads pods this way."""
        known: dict[Reading, PodDemand] = self.__dict__.setdefault("_demands", {})
        if reading not in known:
            known[reading] = demands.of(self.pod, reading)
        return known[reading]


class Shapes:
    """All shapes that are known."""

    def __init__(self, *, koordinator: bool = False) -> None:
        """`koordinator`: whether Koordinator's annotations count."""
        self._koordinator = koordinator
        self._wishes = frozenset((*intents.WISHES, *(directspec.KOORDINATOR_SPECS if koordinator else ())))
        self.all: dict[int, Shape] = {}
        """By number."""
        self._numbers = count()
        self._by_key: dict[Key, Shape] = {}
        self._by_containers = BoundedCache[Place, tuple[tuple[Container, ...], Shape]](MOST_REMEMBERED)
        """Of plain pods, whose containers are mostly one object for all of a kind: by its identity, the class that
        the status says, and what annotations ask for."""

    def intern(self, pod: Pod) -> Shape:
        """The pod's shape; BadObject if its annotations ask for something that does not exist."""
        if not is_plain(pod):
            return self._intern(pod)
        containers, annotations = pod.spec.containers, pod.metadata.annotations
        asks = not self._wishes.isdisjoint(annotations)
        said = tuple([annotations.get(name) for name in self._wishes]) if asks else ()
        place = id(containers), pod.status.qos_class, said
        known = self._by_containers.get(place)
        if known is not None:
            return known[1]
        shape = self._intern(pod)
        # Kept with the shape, so that nothing else gets its identity.
        return self._by_containers.keep(place, (containers, shape))[1]

    def intern_any(self, pod: Pod, problems: Counter[str] | None = None) -> Shape:
        """The same for a pod that is bound already: if its annotations make no sense, its shape without them.

        What it holds does not depend on its wishes. `problems`: where such a pod is counted."""
        try:
            return self.intern(pod)
        except BadObject:
            if problems is not None:
                problems[POD_NOT_UNDERSTOOD] += 1
            return self.intern(structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={})))

    def _intern(self, pod: Pod) -> Shape:
        intent, service = intents.intent(pod, koordinator=self._koordinator), qos.of(pod)
        key = (intent, service, *_key(pod))
        found = self._by_key.get(key)
        if found is None:
            found = Shape(number=next(self._numbers), pod=pod, qos=service, intent=intent, totals=totals(pod))
            self.all[found.number] = self._by_key[key] = found
        return found

    def retain(self, used: Collected[int]) -> None:
        """Forget all others. Their numbers are not given again: a pod of such a shape gets a new one."""
        self.all = {number: shape for number, shape in self.all.items() if number in used}
        self._by_key = {key: shape for key, shape in self._by_key.items() if shape.number in used}
        self._by_containers.clear()


def totals(pod: Pod) -> dict[str, int]:
    """The pod's effective requests as the engine counts node totals."""
    return {
        name: amount.milli if name == resourcenames.CPU else amount.value
        for name, amount in requests.effective(pod).items()
    }


def is_plain(pod: Pod) -> bool:
    """Whether nothing but its containers and its class decides, unless annotations say more."""
    spec = pod.spec
    if spec.init_containers or spec.overhead or spec.resources.requests or spec.resources.limits:
        return False
    return not pod.status.container_statuses


def _key(pod: Pod) -> Key:
    spec = pod.spec
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return (
        tuple(map(_container, spec.init_containers)),
        tuple(map(_container, spec.containers)),
        _requirements(spec.resources),
        _amounts(spec.overhead),
        tuple((status.name, _amounts(status.allocated_resources)) for status in statuses if status.allocated_resources),
    )


def _container(container: Container) -> Key:
    return (container.is_sidecar, *_requirements(container.resources))


def _requirements(wants: ResourceRequirements) -> Key:
    return _amounts(wants.requests), _amounts(wants.limits)


def _amounts(amounts: ResourceList) -> Key:
    return tuple(sorted([(name, amount.nanos) for name, amount in amounts.items()]))
