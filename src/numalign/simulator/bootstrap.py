"""What a new cluster has before anybody came: its namespaces, the two priority classes of the system, and the kind that
topology reports are of.

`cluster` puts these in place through the front door, as an installer would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.defaults import kinds, pods
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.trees import Tree

MANAGER: Final = "numalign"


def furnish(api: Api) -> None:
    for resource, tree in pieces():
        api.create(resource, tree, manager=MANAGER)


def pieces() -> Iterator[tuple[Resource, Tree]]:
    for name in sorted(kinds.ALWAYS_THERE):
        yield resources.NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name, value in pods.SYSTEM_PRIORITIES.items():
        yield (
            resources.PRIORITYCLASSES,
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "description": "For what the cluster cannot do without.",
            },
        )
    yield resources.CUSTOMRESOURCEDEFINITIONS, crd.crd()
