"""How kinds differ in what the verbs do with them, as tables.

`creating`, `updating` and `deleting` look here; everything that is not in a table behaves as most kinds do. The lists
were read off the real server, kind by kind."""

from typing import Final

from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import Resource

Home = tuple[str, str]


def _homes(*listed: Resource) -> frozenset[Home]:
    return frozenset(resource.home for resource in listed)


CREATED_BY_UPDATE: Final = _homes(
    resources.EVENTS,
    resources.SERVICES,
    resources.ENDPOINTS,
    resources.LIMITRANGES,
    resources.LEASES,
    resources.RUNTIMECLASSES,
    resources.ROLES,
    resources.ROLEBINDINGS,
    resources.CLUSTERROLES,
    resources.CLUSTERROLEBINDINGS,
)
"""A PUT of one that is not there creates it."""

NEEDS_VERSION: Final = _homes(
    resources.LEASES,
    resources.RUNTIMECLASSES,
    resources.PODDISRUPTIONBUDGETS,
    resources.CSIDRIVERS,
    resources.CSINODES,
    resources.CSISTORAGECAPACITIES,
    resources.VOLUMEATTACHMENTS,
    resources.CUSTOMRESOURCEDEFINITIONS,
)
"""A PUT over HTTP has to say which version it replaces; so does one of any custom resource."""

SHOWN_WHEN_DELETED: Final = _homes(
    resources.PODS,
    resources.NAMESPACES,
    resources.PERSISTENTVOLUMES,
    resources.PERSISTENTVOLUMECLAIMS,
    resources.PODTEMPLATES,
    resources.RESOURCEQUOTAS,
    resources.SERVICES,
    resources.SERVICEACCOUNTS,
    resources.CSIDRIVERS,
    resources.CSINODES,
    resources.STORAGECLASSES,
    resources.VOLUMEATTACHMENTS,
)
"""DELETE answers with the object that was; with others, with a Status."""

STATUS_ON_CREATE: Final = _homes(resources.NODES, resources.NAMESPACES, resources.SERVICES)
"""A status that comes with a new object is kept; with others it is dropped, being the controllers' to write."""

LABELS_WITH_STATUS: Final = _homes(
    resources.PODS,
    resources.NODES,
    resources.NAMESPACES,
    resources.PERSISTENTVOLUMES,
    resources.PERSISTENTVOLUMECLAIMS,
    resources.SERVICES,
    resources.RESOURCEQUOTAS,
    resources.JOBS,
    resources.REPLICASETS,
    resources.DAEMONSETS,
    resources.STATEFULSETS,
    resources.PODDISRUPTIONBUDGETS,
    resources.REPLICATIONCONTROLLERS,
)
"""A write to their status may change labels and annotations on the way."""


def needs_version(resource: Resource) -> bool:
    return resource.custom or resource.home in NEEDS_VERSION


def has_status(resource: Resource) -> bool:
    """Whether its status is written apart from the rest."""
    return "status" in resource.subresources
