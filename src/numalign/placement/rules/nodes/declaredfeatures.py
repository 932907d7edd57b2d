"""NodeDeclaredFeatures: some fields of a pod need a kubelet that says it knows them.

Three features of 1.37 are told from a pod that waits for a node; the other declared ones matter to updates only
(kube-scheduler spec 1.19)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import Coded, Refusal, Refusals, StaticFilter

RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACE_ON_HOST: Final = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"

NOT_DECLARED: Final = Refusal(("node(s) didn't match Pod's required features",), unresolvable=True)


class NodeDeclaredFeatures(StaticFilter):
    name: Final = "NodeDeclaredFeatures"

    def concerns(self, pod: Pod) -> bool:
        return any(_needed(pod))

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | None:
        needed = frozenset(_needed(pod))
        if not needed:
            return None

        def lacking(declared: frozenset[str] | None) -> int:
            return not needed <= (declared or frozenset())

        return Coded(codes=world.features.table(needed, lacking), refusals=Refusals(NOT_DECLARED))


def _needed(pod: Pod) -> Iterator[str]:
    containers = pod.in_admission_order()
    if any(rule.action == "RestartAllContainers" for each in containers for rule in each.restart_policy_rules):
        yield RESTART_ALL
    if pod.spec.host_network and pod.spec.host_users is False:
        yield USER_NAMESPACE_ON_HOST
    if any(mount.bind_mount_options for each in containers for mount in each.volume_mounts):
        yield BIND_MOUNT_OPTIONS
