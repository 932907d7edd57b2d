"""Services and controllers of pods: the selector for default topology spreading.

`scheduler.intake` writes, PodTopologySpread reads. The selector has the labels of all Services that select the pod,
and the selector of the pod's controller; other kinds of controllers are ignored (kube-scheduler spec 1.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from numalign.api.objects.pod import Pod
from numalign.api.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from numalign.placement.rules.pods import matchers
from numalign.placement.rules.pods.matchers import Matcher, Pair

Controller = ReplicationController | ReplicaSet | StatefulSet
ControllerKey = tuple[str, str, str, str]
"""Version, kind, namespace and name."""

KINDS: Final[Mapping[type, tuple[str, str]]] = {
    ReplicationController: ("v1", "ReplicationController"),
    ReplicaSet: ("apps/v1", "ReplicaSet"),
    StatefulSet: ("apps/v1", "StatefulSet"),
}


class Owners:
    def __init__(self) -> None:
        self._selectors: dict[tuple[str, str], Mapping[str, str]] = {}
        self._by_label: dict[tuple[str, Pair], dict[str, Mapping[str, str]]] = {}
        """Services by namespace and one label of their selector; then by name."""
        self._controllers: dict[ControllerKey, Controller] = {}
        self.generation = 0
        """Raised whenever a service or a controller comes, goes or changes."""

    def put_service(self, service: Service) -> None:
        namespace, name = service.metadata.namespace, service.metadata.name
        self.drop_service(namespace, name)
        self.generation += 1
        # Without a selector it selects no pods; with an empty one all of them, but adds nothing.
        if service.spec.selector:
            self._selectors[namespace, name] = service.spec.selector
            self._by_label.setdefault((namespace, min(service.spec.selector.items())), {})[name] = service.spec.selector

    def drop_service(self, namespace: str, name: str) -> None:
        self.generation += 1
        selector = self._selectors.pop((namespace, name), None)
        if selector is not None:
            del self._by_label[namespace, min(selector.items())][name]

    def put_controller(self, controller: Controller) -> None:
        self.generation += 1
        self._controllers[_key(type(controller), controller.metadata.namespace, controller.metadata.name)] = controller

    def drop_controller(self, kind: type[Controller], namespace: str, name: str) -> None:
        self.generation += 1
        self._controllers.pop(_key(kind, namespace, name), None)

    def selector(self, pod: Pod) -> Matcher:
        """The selector for default spreading; empty if no Service or controller selects the pod."""
        pairs = self._services_of(pod)
        controller = self._controller_of(pod)
        if not pairs and controller is None:
            return matchers.EVERYTHING
        if isinstance(controller, ReplicationController):
            return matchers.with_labels((pairs | (controller.spec.selector or {})).items())
        return matchers.with_labels(pairs.items()).and_also(controller.spec.selector if controller else None)

    def _services_of(self, pod: Pod) -> dict[str, str]:
        pairs: dict[str, str] = {}
        labels = pod.metadata.labels
        for pair in labels.items():
            for selector in self._by_label.get((pod.metadata.namespace, pair), {}).values():
                if selector.items() <= labels.items():
                    pairs |= selector
        return pairs

    def _controller_of(self, pod: Pod) -> Controller | None:
        owner = pod.metadata.controller
        if owner is None:
            return None
        return self._controllers.get((owner.api_version, owner.kind, pod.metadata.namespace, owner.name))


def _key(kind: type[Controller], namespace: str, name: str) -> ControllerKey:
    return (*KINDS[kind], namespace, name)
