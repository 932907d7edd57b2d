"""Detects pods that other schedulers bound: the node's report is out of date, and nothing is reserved for them.

The over-reserve cache calls it for every pod event. The reference keeps names and mode in process variables, where
the last profile wins; here they are arguments (scheduler plugin spec 13.7)."""

from collections.abc import Container as Names

from numalign.api.objects.pod import Pod
from numalign.placement.reference import classes
from numalign.placement.referenceargs import ForeignPodsDetect


def is_foreign(pod: Pod, listed: Names[str], profiles: Names[str], detect: ForeignPodsDetect) -> bool:
    """`listed`: the resources in the report of the pod's node; `profiles`: the scheduler names of our profiles."""
    if not pod.spec.node_name or pod.spec.scheduler_name in profiles:
        return False
    if detect is ForeignPodsDetect.ONLY_EXCLUSIVE:
        return classes.is_exclusive_pod(pod, listed)
    return detect is ForeignPodsDetect.ALL
