"""The order in which kinds of objects are created: a namespace before its content, rights before the programs.

`render` prints objects in this order and `apply` applies them in it. Removal goes the other way, so that a program that
stops still has its rights and can release its Lease."""

from typing import Final

KINDS: Final = (
    "Namespace",
    "PriorityClass",
    "CustomResourceDefinition",
    "ResourceQuota",
    "SecurityContextConstraints",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "NetworkPolicy",
    "Secret",
    "ConfigMap",
    # Not rendered: a scheduler makes it. Removed while the ConfigMap that names it still exists.
    "Lease",
    "PodDisruptionBudget",
    "Service",
    "Certificate",
    "Deployment",
    "DaemonSet",
    "PodMonitor",
    "ServiceMonitor",
    "PrometheusRule",
)
