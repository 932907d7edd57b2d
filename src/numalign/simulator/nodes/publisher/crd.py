"""The resource NodeResourceTopology, as its CustomResourceDefinition makes it.

`cluster`, the lab and tests install the definition that an installation brings; publishers write `RESOURCE`."""

from typing import Final

from numalign.api.nrt import wire
from numalign.deploy import crds
from numalign.simulator.apiserver.schemas import registry
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.trees import Tree


def crd() -> Tree:
    return crds.node_resource_topologies()


RESOURCE: Final[Resource] = next(
    each.resource for each in registry.custom_resources(crd()) if each.resource.version == wire.V1ALPHA2
)
