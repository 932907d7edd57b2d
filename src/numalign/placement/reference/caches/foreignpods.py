"""Pods that somebody else bound: the node's report is out of date, and nobody reserved anything.

The over-reserve cache asks for every pod event. The reference keeps names and mode in variables of the process, where
the last profile wins; here they are arguments (scheduler plugin spec 13.7)."""

from collections.abc import Container as Names

from numalign.api.objects.pod import Pod
from numalign.placement.reference import classes
from numalign.placement.referenceargs import ForeignPodsDetect


def is_foreign(pod: Pod, listed: Names[str], profiles: Names[str], detect: ForeignPodsDetect) -> bool:
    """`listed`: the resources in the report of the pod's node; `profiles`: the schedulers that tell us what they do."""
    if not pod.spec.node_name or pod.spec.scheduler_name in profiles:
        return False
    if detect is ForeignPodsDetect.ONLY_EXCLUSIVE:
        return classes.is_exclusive_pod(pod, listed)
    return detect is ForeignPodsDetect.ALL
