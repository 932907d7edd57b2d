"""The kubelet's admission checks of node affinity and taints.

`loop` calls `misfit` for pods that fit the node's resources. The kubelet checks affinity after the resources and before
host ports (kubelet spec 1). Of taints, it checks NoExecute only."""

from collections.abc import Iterable, Mapping

from numalign.api.objects import nodematching
from numalign.api.objects.node import Taint
from numalign.api.objects.pod import Pod
from numalign.kubelet.predicates import Lacking

AFFINITY = Lacking("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
TAINT = Lacking("TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate")
NO_EXECUTE = "NoExecute"


def misfit(pod: Pod, labels: Mapping[str, str], taints: Iterable[Taint]) -> Lacking | None:
    """Why the pod does not belong on this node."""
    spec = pod.spec
    if not nodematching.allows(spec.node_selector, spec.affinity, spec.node_name, labels):
        return AFFINITY
    hard = (taint for taint in taints if taint.effect == NO_EXECUTE)
    if all(nodematching.tolerated(each.key, each.value, each.effect, spec.tolerations) for each in hard):
        return None
    return TAINT
