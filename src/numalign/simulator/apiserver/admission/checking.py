"""Rules for every kind that has some: the table of checks, and the pod's own order of them.

`errors` is what creates and updates call once the defaults are in. All that is wrong is found at once, as causes with
the field's path; an empty list lets the object in."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.validation import (
    clusterchecks,
    metadatachecks,
    podchecks,
    podupdates,
    rolechecks,
    workloadchecks,
)
from numalign.simulator.trees import Tree

Check = Callable[[Tree, Tree | None], Iterable[Cause]]


def errors(resource: Resource, tree: Tree, old: Tree | None) -> list[Cause]:
    found = metadatachecks.errors(resource, tree["metadata"], old)
    check = CHECKS.get(resource.home)
    return found + list(check(tree, old)) if check is not None else found


def _pod(tree: Tree, old: Tree | None) -> list[Cause]:
    found = list(_spec_errors(trees.encoded(tree["spec"])))
    return found if old is None else found + podupdates.errors(tree["spec"], old["spec"])


# Pods come in sets that have one spec.
@lru_cache(maxsize=1024)
def _spec_errors(data: bytes) -> tuple[Cause, ...]:
    return tuple(podchecks.errors(trees.decoded(data), "spec"))


CHECKS: Final[dict[tuple[str, str], Check]] = {
    resource.home: check
    for resource, check in (
        (resources.PODS, _pod),
        (resources.DEPLOYMENTS, workloadchecks.deployment),
        (resources.REPLICASETS, workloadchecks.replica_set),
        (resources.STATEFULSETS, workloadchecks.stateful_set),
        (resources.DAEMONSETS, workloadchecks.daemon_set),
        (resources.JOBS, workloadchecks.job),
        (resources.SERVICES, clusterchecks.service),
        (resources.NODES, clusterchecks.node),
        (resources.CONFIGMAPS, clusterchecks.config_map),
        (resources.SECRETS, clusterchecks.secret),
        (resources.LEASES, clusterchecks.lease),
        (resources.PODDISRUPTIONBUDGETS, clusterchecks.budget),
        (resources.PRIORITYCLASSES, clusterchecks.priority_class),
        (resources.EVENTS, clusterchecks.event),
        (resources.PERSISTENTVOLUMECLAIMS, clusterchecks.claim),
        (resources.PERSISTENTVOLUMES, clusterchecks.volume),
        (resources.STORAGECLASSES, clusterchecks.storage_class),
        (resources.ROLES, rolechecks.role),
        (resources.CLUSTERROLES, rolechecks.role),
        (resources.ROLEBINDINGS, rolechecks.role_binding),
        (resources.CLUSTERROLEBINDINGS, rolechecks.cluster_role_binding),
    )
}
