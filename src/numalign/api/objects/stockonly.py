"""Names what kube-scheduler does for a pod and numalign's scheduler does not.

The scheduler counts such pods when it starts, and the doctor warns of them. What the configuration asks for and
numalign does not have, such as extenders and plugins from elsewhere, is refused where the configuration is read."""

from __future__ import annotations

from typing import Final

from numalign.api.objects.pod import PodSpec

CLAIMS: Final = "resource claims (spec.resourceClaims), which numalign does not allocate: these pods wait"
GROUPS: Final = (
    "scheduling groups (spec.schedulingGroup, spec.workloadRef), which numalign ignores: each pod is scheduled alone"
)


def of(spec: PodSpec) -> str:
    """What the pod uses; empty: numalign schedules it as kube-scheduler does."""
    if spec.resource_claims:
        return CLAIMS
    return GROUPS if spec.scheduling_group or spec.workload_ref else ""
