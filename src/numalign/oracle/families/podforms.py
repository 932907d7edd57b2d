"""Pods as recordings write them, and their conversion to the model's pods.

Recordings contain only what decides placement: names, requests and limits, sidecars, pod-level resources. Quantities
stay text, so that a case can be written exactly as it was read."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, Struct, UnsetType

from numalign.api.decode import quantity
from numalign.api.objects import pod as pods
from numalign.api.objects.meta import ObjectMeta
from numalign.kubelet import demand as demands
from numalign.kubelet.demand import PodDemand, Reading

Amounts = dict[str, str]


class Requirements(Struct, frozen=True, kw_only=True):
    requests: Amounts | UnsetType = UNSET
    limits: Amounts | UnsetType = UNSET

    @property
    def model(self) -> pods.ResourceRequirements:
        return pods.ResourceRequirements(requests=_parsed(self.requests), limits=_parsed(self.limits))


class Container(Requirements, frozen=True, kw_only=True):
    name: str
    restartable: bool | UnsetType = UNSET
    """Whether an init container is a sidecar."""


class Pod(Struct, frozen=True, kw_only=True):
    uid: str
    pod_resources: Requirements | UnsetType = UNSET
    init: tuple[Container, ...] | UnsetType = UNSET
    containers: tuple[Container, ...]

    @property
    def model(self) -> pods.Pod:
        spec = pods.PodSpec(
            init_containers=tuple(map(_container, self.init or ())),
            containers=tuple(map(_container, self.containers)),
            resources=(self.pod_resources or Requirements()).model,
        )
        return pods.Pod(metadata=ObjectMeta(uid=self.uid, name=self.uid), spec=spec)


def demand(pod: Pod) -> PodDemand:
    """The pod's demand for a single manager. These cases were recorded with all gates at their defaults."""
    return demands.of(pod.model, Reading())


def by_uid(recorded: Iterable[Pod]) -> dict[str, PodDemand]:
    return {pod.uid: demand(pod) for pod in recorded}


def _container(recorded: Container) -> pods.Container:
    restart_policy = "Always" if recorded.restartable is True else ""
    return pods.Container(name=recorded.name, restart_policy=restart_policy, resources=recorded.model)


def _parsed(amounts: Amounts | UnsetType) -> pods.ResourceList:
    return {name: quantity.parse(text) for name, text in (amounts or {}).items()}
